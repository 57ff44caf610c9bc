"""Vectors of one stream, in blocks: a row for each vector would take half a minute to load at a million of them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import apsw
import numpy as np
from numpy.typing import NDArray

from fieldstone.backends.sqlite.connection import open_reader
from fieldstone.backends.sqlite.log import SQL, Span
from fieldstone.ports.vectors import ModelState, Quantized, StoredModel, UnknownModel

BLOCK_BITS: Final = 6  # 64 seqs: 17 kB at 256 dimensions, rewritten as often as one of its units comes
SCAN_BLOCKS: Final = 1_024  # about 64,000 vectors
DROP_BLOCKS: Final = 128  # 2 MB overwritten in one transaction: commits in between wait for a few ms

Write = Callable[[Callable[[apsw.Connection], int]], Awaitable[int]]


class SqliteVectors:
    """A dropped model is out of sight at once; its blocks are overwritten in steps, so that no commit waits long."""

    def __init__(self, path: Path, near: apsw.Connection, span: Span, write: Write) -> None:
        self._path = path
        self._near = near
        self._stream_no = span.stream_no
        self._write = write

    async def models(self) -> Sequence[StoredModel]:
        return [StoredModel(*row) for row in self._near.execute(SQL["all_models"], (self._stream_no,))]

    async def begin(self, name: str, dimension: int, *, state: ModelState) -> StoredModel:
        def insert(writer: apsw.Connection) -> int:
            number: int = writer.execute(SQL["begin_model"], (self._stream_no, name, dimension, state)).get
            return number

        try:
            return StoredModel(await self._write(insert), name, dimension, state)
        except apsw.ConstraintError as error:
            raise ValueError(f"the field has a {state} model already") from error

    async def add(self, model: int, batch: Quantized) -> None:
        def insert(writer: apsw.Connection) -> int:
            found = self._model(writer, model)
            self._sweep(writer)  # what a crash has left of a dropped model goes along
            return _merge(writer, found, batch)

        await self._write(insert)

    async def scan(self, model: int) -> AsyncIterator[Quantized]:
        found = [known for known in await self.models() if known.number == model]
        if not found:
            return
        reader = open_reader(self._path)  # its own, since it reads in another thread
        try:
            first = Span(model).base
            while blocks := await asyncio.to_thread(_read, reader, first, Span(model).end):
                yield _joined(blocks, found[0].dimension)
                first = blocks[-1].position + 1
        finally:
            reader.close()

    async def serve(self, model: int) -> None:
        def swap(writer: apsw.Connection) -> int:
            if self._model(writer, model).state == "serving":
                return 0
            writer.execute(SQL["set_serving_model_dropped"], (self._stream_no,))
            writer.execute(SQL["set_model_state"], ("serving", model))
            return 1

        await self._write(swap)
        await self._overwrite_dropped()

    async def drop(self, model: int) -> None:
        def mark(writer: apsw.Connection) -> int:
            self._model(writer, model)
            writer.execute(SQL["set_model_state"], ("dropped", model))
            return 1

        await self._write(mark)
        await self._overwrite_dropped()

    async def erase(self, seqs: Sequence[int]) -> None:
        def remove(writer: apsw.Connection) -> int:
            gone = np.unique(np.asarray(seqs, np.int64))
            models: list[Any] = writer.execute(SQL["all_model_dimensions"], (self._stream_no,)).fetchall()
            return sum([_remove(writer, number, dimension, gone) for number, dimension in models])

        await self._write(remove)

    async def _overwrite_dropped(self) -> None:
        while await self._write(self._sweep):
            pass

    def _sweep(self, writer: apsw.Connection) -> int:
        """A step of overwriting, 0 when there is nothing to do. A model of which nothing is left is forgotten."""
        number: int | None = writer.execute(SQL["dropped_model"], (self._stream_no,)).get
        if number is None:
            return 0
        span = Span(number)
        writer.execute(SQL["drop_blocks"], (span.base, span.end, DROP_BLOCKS))
        if writer.changes() < DROP_BLOCKS:
            writer.execute(SQL["forget_model"], (number,))
        return 1

    def _model(self, connection: apsw.Connection, number: int) -> StoredModel:
        for row in connection.execute(SQL["find_model"], (number, self._stream_no)):
            return StoredModel(*row)
        raise UnknownModel(f"the field has no model {number}")


class _Block(NamedTuple):
    """A row as it lies on disk."""

    position: int
    seqs: bytes
    scales: bytes
    codes: bytes


def _merge(writer: apsw.Connection, model: StoredModel, batch: Quantized) -> int:
    """Put the batch into its blocks; how many these were."""
    if batch.codes.shape != (len(batch.seqs), model.dimension):
        raise ValueError(f"{batch.codes.shape} codes for {len(batch.seqs)} vectors of {model.dimension} dimensions")
    span = Span(model.number)
    written = 0
    for position, part in _by_position(span, _last_of_each(batch)):
        if blocks := _get(writer, position):
            held = _joined(blocks, model.dimension)
            both = Quantized(*(np.concatenate([before, new]) for before, new in zip(held, part, strict=True)))
            _put(writer, position, _last_of_each(both))
        else:
            _put(writer, position, part)
        written += 1
    return written


def _remove(writer: apsw.Connection, number: int, dimension: int, gone: NDArray[np.int64]) -> int:
    """Take these units out of their blocks; how many vectors that were."""
    removed = 0
    for block in np.unique(gone >> BLOCK_BITS).tolist():
        position = Span(number).position(block)
        held = _joined(_get(writer, position), dimension)
        stays = ~np.isin(held.seqs, gone)
        if not stays.any():
            writer.execute(SQL["drop_block"], (position,))
        elif not stays.all():
            _put(writer, position, _rows(held, stays))
        removed += int((~stays).sum())
    return removed


def _by_position(span: Span, batch: Quantized) -> Iterator[tuple[int, Quantized]]:
    """Cut a batch that is sorted by seq where one block ends and another begins."""
    blocks = batch.seqs >> BLOCK_BITS
    cuts = [0, *(np.flatnonzero(np.diff(blocks)) + 1).tolist(), len(blocks)]
    for first, end in pairwise(cuts):
        if first < end:
            yield span.position(int(blocks[first])), _rows(batch, slice(first, end))


def _last_of_each(batch: Quantized) -> Quantized:
    """Sorted by seq; of several vectors of one unit only the last."""
    _, from_the_end = np.unique(batch.seqs[::-1], return_index=True)
    return _rows(batch, len(batch.seqs) - 1 - from_the_end)


def _rows(batch: Quantized, which: slice | NDArray[np.intp] | NDArray[np.bool_]) -> Quantized:
    return Quantized(batch.seqs[which], batch.scales[which], batch.codes[which])


def _read(reader: apsw.Connection, first: int, end: int) -> list[_Block]:
    return [_Block(*row) for row in reader.execute(SQL["scan_blocks"], (first, end, SCAN_BLOCKS))]


def _get(writer: apsw.Connection, position: int) -> list[_Block]:
    return [_Block(*row) for row in writer.execute(SQL["scan_blocks"], (position, position, 1))]


def _put(writer: apsw.Connection, position: int, block: Quantized) -> None:
    seqs, scales, codes = block.seqs.astype("<i8"), block.scales.astype("<f4"), block.codes.astype("i1")
    writer.execute(SQL["put_block"], (position, seqs.tobytes(), scales.tobytes(), codes.tobytes()))


def _joined(blocks: Sequence[_Block], dimension: int) -> Quantized:
    """No Python for a single vector: the bytes of all blocks are one array."""
    seqs = np.frombuffer(b"".join(block.seqs for block in blocks), "<i8")
    scales = np.frombuffer(b"".join(block.scales for block in blocks), "<f4")
    codes = np.frombuffer(b"".join(block.codes for block in blocks), "i1").reshape(-1, dimension)
    return Quantized(seqs, scales, codes)
