"""Every unit's vector in memory: row i belongs to row i of `UnitColumns`. A scan of all of them, so a filter is exact.

A vector is kept twice: as bytes (`codes` times a scale), which say how near it is, and as the signs of its numbers, an
eighth of that, which say it roughly. A search looks at all signs and rates the most promising by their bytes. At 256
dimensions that is 293 bytes a unit.

Texts of one field have much in common, so all their vectors lean to one side, and signs alone would hardly differ. They
are therefore taken from the field's own centre: subtracting the same from all vectors changes no order.

Only the field's writer changes it, while others search: segments are only ever appended, and a row counts from the
moment its `has` is set, which is last. A row that is replaced meanwhile shows its old vector, its new one or a mixture.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

SEGMENT_ROWS: Final = 1 << 15  # what a scan touches at once stays in the cache, and growing never copies
RATED_LEAST: Final = 8_000  # fewer rows than this are all rated by their bytes
RATED_SHARE: Final = 1 / 50  # and of more rows this part on top: see the recall in benchmarks/vectors
RATED_AT_ONCE: Final = 1_024  # rows as floats: one megabyte
LARGEST_CODE: Final = 127
LEVEL_BITS: Final = (
    2  # a query's numbers count 0 to 3 times: much better than signs alone, for less than twice the time
)
TOP_LEVEL_AT: Final = 2.5  # times the mean: from there on a number counts most. Anything from 2 to 3 does as well
WORD_BITS: Final = 64
LARGEST_BYTE: Final = 255

Rows = NDArray[np.int64]
Floats = NDArray[np.float32]
Codes = NDArray[np.int8]
Words = NDArray[np.uint64]


def quantize(vectors: Floats) -> tuple[Floats, Codes]:
    """Scales and codes of the vectors' directions: codes times their scale have length 1, or 0 where there is none."""
    if not np.isfinite(vectors).all():
        raise ValueError("a vector has numbers that are not finite")
    largest = np.abs(vectors).max(axis=1, initial=0.0, keepdims=True)
    # Not `_divided`, which is for queries: looking at each number whether to divide it takes three times as long.
    whole = np.rint(vectors / np.where(largest > 0, largest, np.float32(1)) * np.float32(LARGEST_CODE))
    lengths = np.sqrt(np.vecdot(whole, whole))
    return _divided(np.ones_like(lengths), lengths), whole.astype(np.int8)


class VectorIndex:
    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self._segments: list[_Segment] = []
        self._end = 0  # after the last row that was ever given
        self._centre: Floats | None = None  # while the rows are few enough to be rated all, signs are of no use

    def put(self, rows: Rows, scales: Floats, codes: Codes) -> None:
        """These units have these vectors from now on. No row may come twice."""
        self._end = max(self._end, int(rows.max(initial=-1)) + 1)
        self._grow_to(self._end)
        if self._centre is None:
            self._find_centre(scales, codes)
        for segment, local, places in _by_segment(self._segments, rows):
            segment.codes[local] = codes[places]
            segment.scales[local] = scales[places]
            self._sign(segment, local)
            segment.has[local] = True  # last: a search never rates a row that is half there

    def remove(self, rows: Rows) -> None:
        """Overwrite these vectors; rows that have none are passed over."""
        for segment, local, _ in _by_segment(self._segments, rows):
            segment.has[local] = False
            segment.codes[local] = 0
            segment.scales[local] = 0
            segment.signs[:, local] = 0

    def missing(self, size: int) -> Rows:
        """Which of the first `size` rows have no vector."""
        has = np.zeros(size, np.bool_)
        has[_rows_in(self._segments, np.ones(size, np.bool_))] = True
        return np.flatnonzero(~has)

    def vectors(self, rows: Rows) -> Floats:
        """Of unit length; zeros for a row that has none."""
        found = np.zeros((len(rows), self.dimension), np.float32)
        for segment, local, places in _by_segment(self._segments, rows):
            found[places] = segment.codes[local] * segment.scales[local, np.newaxis]
        return found

    def similarities(self, query: Floats, rows: Rows) -> Floats:
        """The cosine between the query and each of these rows; 0 for a row that has no vector."""
        return _rate(self._segments, _unit(query), rows)

    def search(self, query: Floats, mask: NDArray[np.bool_] | None, most: int) -> tuple[Rows, Floats]:
        """The nearest rows in the mask, nearest first, and their cosines.

        Fewer than `most` only where the mask has no more rows with a vector. If these are few, all of them are rated;
        if they are many, those that look nearest by their signs.
        """
        segments = tuple(self._segments)
        query = _unit(query)
        rows = _rows_in(segments, mask)
        rated = max(most, RATED_LEAST + int(len(rows) * RATED_SHARE))
        if len(rows) > rated:
            rows = _least(rows, _distances(segments, rows, query), rated)
        similarities = _rate(segments, query, rows)
        best = np.argpartition(-similarities, most)[:most] if len(rows) > most else np.arange(len(rows))
        best = best[np.argsort(-similarities[best], kind="stable")]
        return rows[best], similarities[best]

    def _find_centre(self, scales: Floats, codes: Codes) -> None:
        """From what is there and what comes, once that is enough. What is there gets its signs before anyone asks."""
        if self._end <= RATED_LEAST:
            return
        known = _rows_in(self._segments, None)
        if len(known) + len(codes) <= RATED_LEAST:
            return
        sample = slice(None, None, max(1, len(codes) // RATED_LEAST))
        coming = codes[sample] * scales[sample, np.newaxis]
        self._centre = np.concatenate([self.vectors(known), coming]).mean(axis=0)
        for segment, local, _ in _by_segment(self._segments, known):
            self._sign(segment, local)

    def _sign(self, segment: "_Segment", local: Rows) -> None:
        if self._centre is None:
            return
        for first in range(0, len(local), RATED_AT_ONCE):
            some = local[first : first + RATED_AT_ONCE]
            vectors = segment.codes[some] * segment.scales[some, np.newaxis]
            segment.signs[:, some] = _sign_words(vectors > self._centre).T

    def _grow_to(self, size: int) -> None:
        while len(self._segments) * SEGMENT_ROWS < size:
            self._segments.append(_empty_segment(self.dimension))


class _Segment(NamedTuple):
    has: NDArray[np.bool_]
    scales: Floats
    codes: Codes
    signs: Words  # a row for each word, so that a scan reads memory in its order


def _empty_segment(dimension: int) -> _Segment:
    # Zeros that nobody has written yet take no room.
    return _Segment(
        np.zeros(SEGMENT_ROWS, np.bool_),
        np.zeros(SEGMENT_ROWS, np.float32),
        np.zeros((SEGMENT_ROWS, dimension), np.int8),
        np.zeros((-(-dimension // WORD_BITS), SEGMENT_ROWS), np.uint64),
    )


def _by_segment(segments: Sequence[_Segment], rows: Rows) -> Iterator[tuple[_Segment, Rows, NDArray[np.intp]]]:
    """For each segment its rows, counted from its beginning, and their places in `rows`."""
    order = np.argsort(rows, kind="stable")
    for segment, local, span in _by_segment_ordered(segments, rows[order]):
        yield segment, local, order[span]


def _by_segment_ordered(segments: Sequence[_Segment], rows: Rows) -> Iterator[tuple[_Segment, Rows, slice]]:
    """The same of rows that ascend. Those after the last segment are in none."""
    cuts = np.searchsorted(rows, np.arange(len(segments) + 1) * SEGMENT_ROWS)
    for at, (first, end) in enumerate(pairwise(cuts.tolist())):
        if first < end:
            yield segments[at], rows[first:end] - at * SEGMENT_ROWS, slice(first, end)


def _rows_in(segments: Sequence[_Segment], mask: NDArray[np.bool_] | None) -> Rows:
    """The rows of the mask that have a vector, ascending."""
    if not segments:
        return np.empty(0, np.int64)
    has = np.concatenate([segment.has for segment in segments])
    return np.flatnonzero(has if mask is None else has[: len(mask)] & mask[: len(has)])


# --- roughly, by signs -----------------------------------------------------------------------------------------------


def _distances(segments: Sequence[_Segment], rows: Rows, query: Floats) -> NDArray[np.uint16]:
    """How much of the query's weight points the other way, for each of these rows, which ascend."""
    signs, weights = _sign_words(query > 0), _weight_words(query)
    found = np.empty(len(rows), np.uint16)
    for segment, local, span in _by_segment_ordered(segments, rows):
        last = int(local[-1])
        if len(local) > last // 2:  # picking words costs as much as counting in a few that are not asked for
            all_of_them = _differing(segment.signs[:, : last + 1], signs, weights)
            found[span] = all_of_them if len(local) == last + 1 else all_of_them[local]
        else:
            found[span] = _differing(segment.signs[:, local], signs, weights)
    return found


def _differing(words: Words, signs: Words, weights: Words) -> NDArray[np.uint16]:
    """The sum of the weights of the bits that differ. Nothing here makes Python look at a single row."""
    count = words.shape[1]
    differing, weighed, bits = np.empty(count, np.uint64), np.empty(count, np.uint64), np.empty(count, np.uint8)
    total, sums = np.zeros(count, np.uint16), np.zeros((LEVEL_BITS, count), np.uint8)
    most = np.zeros(LEVEL_BITS, np.int64)  # what the sums can have come to
    for word, sign, weight in zip(words, signs, weights.T, strict=True):
        np.bitwise_xor(word, sign, out=differing)
        for level, summed in enumerate(sums):
            most[level] += np.bitwise_count(weight[level])
            if most[level] > LARGEST_BYTE:
                total += summed.astype(np.uint16) << level
                summed[:] = 0
                most[level] = np.bitwise_count(weight[level])
            np.bitwise_and(differing, weight[level], out=weighed)
            np.bitwise_count(weighed, out=bits)
            np.add(summed, bits, out=summed)
    for level, summed in enumerate(sums):
        total += summed.astype(np.uint16) << level
    return total


def _least(rows: Rows, distances: NDArray[np.uint16], most: int) -> Rows:
    """The `most` rows with the least distances, ascending; of those that are equally far the first."""
    up_to = np.cumsum(np.bincount(distances))
    limit = int(np.searchsorted(up_to, most))
    nearer = distances < limit
    nearer[np.flatnonzero(distances == limit)[: most - int(np.count_nonzero(nearer))]] = True
    return rows[nearer]


def _sign_words(positive: NDArray[np.bool_]) -> Words:
    """Bits in words, along the last axis; what the last word has too many is 0."""
    if missing := -positive.shape[-1] % WORD_BITS:
        positive = np.pad(positive, [(0, 0)] * (positive.ndim - 1) + [(0, missing)])
    return np.packbits(positive, axis=-1, bitorder="little").view(np.uint64)


def _weight_words(query: Floats) -> Words:
    """How much each number of the query counts, 0 to 3, bit by bit: the lower bits in the first row."""
    sizes = np.abs(query)
    top = 2**LEVEL_BITS - 1
    levels = np.rint(np.minimum(_divided(sizes, TOP_LEVEL_AT * sizes.mean()), 1) * top).astype(np.uint8)
    return np.stack([_sign_words((levels >> bit & 1).astype(np.bool_)) for bit in range(LEVEL_BITS)])


# --- exactly, by codes -----------------------------------------------------------------------------------------------


def _rate(segments: Sequence[_Segment], query: Floats, rows: Rows) -> Floats:
    found = np.zeros(len(rows), np.float32)
    for segment, local, places in _by_segment(segments, rows):
        for first in range(0, len(local), RATED_AT_ONCE):
            part, at = local[first : first + RATED_AT_ONCE], places[first : first + RATED_AT_ONCE]
            # Row by row, not as a matrix product: BLAS would start threads for it, and on a busy machine these wait for
            # each other ten times longer than the work takes.
            found[at] = np.vecdot(segment.codes[part].astype(np.float32), query) * segment.scales[part]
    return found


def _unit(query: Floats) -> Floats:
    return _divided(query.astype(np.float32), np.linalg.norm(query))


def _divided(numbers: Floats, by: Floats | np.floating[Any] | float) -> Floats:
    """0 where there is nothing to divide by."""
    return np.divide(numbers, by, out=np.zeros_like(numbers), where=np.asarray(by) > 0)
