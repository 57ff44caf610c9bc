"""Vectors in blocks of neighbouring seqs: how a batch is cut, and put together again."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fieldstone.ports.vectors import Quantized

BLOCK_BITS: Final = 6  # 64 seqs: 17 kB at 256 dimensions, rewritten as often as one of its units comes

Which = slice | NDArray[np.intp] | NDArray[np.bool_]


def by_block(batch: Quantized) -> Iterator[tuple[int, Quantized]]:
    """Cut a batch that is sorted by seq where one block ends and another begins."""
    blocks = batch.seqs >> BLOCK_BITS
    cuts = [0, *(np.flatnonzero(np.diff(blocks)) + 1).tolist(), len(blocks)]
    for first, end in pairwise(cuts):
        if first < end:
            yield int(blocks[first]), picked(batch, slice(first, end))


def last_of_each(batch: Quantized) -> Quantized:
    """Sorted by seq; of several vectors of one unit only the last."""
    _, from_the_end = np.unique(batch.seqs[::-1], return_index=True)
    return picked(batch, len(batch.seqs) - 1 - from_the_end)


def merged(held: Quantized, new: Quantized) -> Quantized:
    """Sorted by seq; a new vector takes the place of the one that was held."""
    return last_of_each(joined([held, new]))


def without(held: Quantized, gone: NDArray[np.int64]) -> Quantized:
    return picked(held, ~np.isin(held.seqs, gone))


def picked(batch: Quantized, which: Which) -> Quantized:
    return Quantized(batch.seqs[which], batch.scales[which], batch.codes[which])


def check_shape(batch: Quantized, dimension: int) -> None:
    if batch.codes.shape != (len(batch.seqs), dimension):
        raise ValueError(f"{batch.codes.shape} codes for {len(batch.seqs)} vectors of {dimension} dimensions")


def no_vectors(dimension: int) -> Quantized:
    return Quantized(np.empty(0, np.int64), np.empty(0, np.float32), np.empty((0, dimension), np.int8))


def joined(parts: Sequence[Quantized]) -> Quantized:
    return Quantized(*(np.concatenate(each) for each in zip(*parts, strict=True)))
