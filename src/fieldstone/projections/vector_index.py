"""Units' vectors in memory: row i belongs to row i of `UnitColumns`. A scan of all of them, so a filter is exact.

A vector is kept twice: as bytes (`codes` times a scale), which say how near it is, and as the signs of its numbers, an
eighth of that, which say it roughly. A search looks at all signs and rates the most promising by their bytes. At 256
dimensions that is 293 bytes a unit.

Texts of one field have much in common, so all their vectors lean to one side, and signs alone would hardly differ. They
are therefore taken from the field's own centre: subtracting the same from all vectors changes no order.

Only the field's writer changes it, while others search: segments are only ever appended, or exchanged for one with the
same rows, and a row counts from the moment its `has` is set, which is last. A row that is replaced meanwhile shows its
old vector, its new one or a mixture; one that is removed meanwhile its vector, or none.

A segment of which most rows were removed is packed: it holds those that are left and where they are, and gives its room
back. The first row that comes to it opens it again.
"""

import mmap
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
PACKED_LEAST: Final = 1_024  # fewer rows than this are not worth packing for: 300 kB at 256 dimensions
MAPPED_BYTES: Final = 256 * 1024  # of an array: less than this is not worth a mapping of its own
HUGE_BYTES: Final = 4 * 1024 * 1024  # as numpy does: rows that are picked all over it are found faster in large pages
WORD_BITS: Final = 64
LARGEST_BYTE: Final = 255

Rows = NDArray[np.int64]
Floats = NDArray[np.float32]
Codes = NDArray[np.int8]
Words = NDArray[np.uint64]


def quantize(vectors: Floats) -> tuple[Floats, Codes]:
    """Scales and codes of the vectors' directions: codes times their scale have length 1, or 0 where there is none."""
    largest = np.abs(vectors).max(axis=1, initial=0.0, keepdims=True)
    if not np.isfinite(largest).all():
        raise ValueError("a vector has numbers that are not finite")
    # Not `_divided`, which is for queries: looking at each number whether to divide it takes three times as long.
    whole = vectors / np.where(largest > 0, largest, np.float32(1))
    whole *= np.float32(LARGEST_CODE)
    np.rint(whole, out=whole)
    lengths = np.sqrt(np.vecdot(whole, whole))
    return np.reciprocal(np.where(lengths > 0, lengths, np.float32(np.inf))), whole.astype(np.int8)


class VectorIndex:
    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.count = 0  # rows that have a vector
        self._segments: list[_Segment] = []
        self._packed: set[int] = set()  # which of them are
        self._end = 0  # after the last row that was ever given
        self._centre: Floats | None = None  # while the rows are few enough to be rated all, signs are of no use

    def put(self, rows: Rows, scales: Floats, codes: Codes) -> None:
        """These units have these vectors from now on. No row may come twice."""
        self._end = max(self._end, int(rows.max(initial=-1)) + 1)
        self._grow_to(self._end)
        if self._centre is None:
            self._find_centre(scales, codes)
        if self._packed:
            self._open((rows // SEGMENT_ROWS).tolist())
        for segment, local, places in _by_segment(self._segments, rows):
            segment.codes[local] = codes[places]
            segment.scales[local] = scales[places]
            self._sign(segment, local)
            self.count += len(local) - int(np.count_nonzero(segment.has[local]))
            segment.has[local] = True  # last: a search never rates a row that is half there

    def remove(self, rows: Rows) -> None:
        """Overwrite these vectors; rows that have none are passed over. `shrink` gives their room back."""
        for segment, local, _ in _by_segment(self._segments, rows):
            places = segment.places(local)
            self.count -= int(np.count_nonzero(segment.has[local]))
            segment.has[local] = False
            segment.codes[places] = 0
            segment.scales[places] = 0
            segment.signs[:, places] = 0

    def shrink(self) -> None:
        """Pack the segments of which at least half is gone: so a row is copied once on average, however many steps it
        takes until all of them are."""
        for at, segment in enumerate(self._segments):
            begun = min(SEGMENT_ROWS, self._end - at * SEGMENT_ROWS)  # of a new segment the rest takes no room yet
            taken = begun if segment.at is None else len(segment.scales) - 1
            left = int(np.count_nonzero(segment.has))
            if left <= taken // 2 and taken - left >= PACKED_LEAST:
                self._segments[at] = _packed(segment)
                self._packed.add(at)

    @property
    def taken_bytes(self) -> int:
        return sum(array.nbytes for segment in self._segments for array in segment if array is not None)

    def quantized(self, rows: Rows) -> tuple[Rows, Floats, Codes]:
        """Those of these rows that have a vector, ascending, with their scales and codes."""
        rows = np.sort(rows)
        has = np.zeros(len(rows), np.bool_)
        for segment, local, span in _by_segment_ordered(self._segments, rows):
            has[span] = segment.has[local]
        rows = rows[has]
        scales, codes = np.empty(len(rows), np.float32), np.empty((len(rows), self.dimension), np.int8)
        for segment, local, span in _by_segment_ordered(self._segments, rows):
            places = segment.places(local)
            scales[span], codes[span] = segment.scales[places], segment.codes[places]
        return rows, scales, codes

    def missing(self, size: int) -> Rows:
        """Which of the first `size` rows have no vector."""
        has = np.zeros(size, np.bool_)
        has[_rows_in(self._segments, np.ones(size, np.bool_))] = True
        return np.flatnonzero(~has)

    def vectors(self, rows: Rows) -> Floats:
        """Of unit length; zeros for a row that has none."""
        found = np.zeros((len(rows), self.dimension), np.float32)
        for segment, local, places in _by_segment(self._segments, rows):
            at = segment.places(local)
            found[places] = segment.codes[at] * segment.scales[at, np.newaxis]
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
        if self.count + len(codes) <= RATED_LEAST:
            return
        sample = slice(None, None, max(1, len(codes) // RATED_LEAST))
        total, count = _summed(scales[sample], codes[sample]), len(codes[sample]) + self.count
        there = [(segment, segment.places(np.flatnonzero(segment.has))) for segment in self._segments]
        for segment, places in there:
            total += _summed(segment.scales[places], segment.codes[places])
        self._centre = total / np.float32(count)
        for segment, places in there:
            self._sign(segment, places)

    def _sign(self, segment: "_Segment", places: "Rows | NDArray[np.uint16]") -> None:
        if self._centre is None:
            return
        for first in range(0, len(places), RATED_AT_ONCE):
            some = places[first : first + RATED_AT_ONCE]
            vectors = segment.codes[some] * segment.scales[some, np.newaxis]
            segment.signs[:, some] = _sign_words(vectors > self._centre).T

    def _grow_to(self, size: int) -> None:
        while len(self._segments) * SEGMENT_ROWS < size:
            self._segments.append(_empty_segment(self.dimension, SEGMENT_ROWS))

    def _open(self, segments: Sequence[int]) -> None:
        """Rows come to them: each has its own place again."""
        for at in self._packed.intersection(segments):
            self._segments[at] = _opened(self._segments[at])
            self._packed.remove(at)


class BothIndexes:
    """Two of them as one. A vector on its way from one to the other is in both, and counts once.

    Whoever moves it puts it there before it is removed here, so the first one is asked first. Where it comes back, the
    second keeps it.
    """

    def __init__(self, first: VectorIndex, second: VectorIndex) -> None:
        self._first = first
        self._second = second

    @property
    def count(self) -> int:
        return self._first.count + self._second.count

    def vectors(self, rows: Rows) -> Floats:
        found = self._first.vectors(rows)
        lacking = np.flatnonzero(~found.any(axis=1))
        found[lacking] = self._second.vectors(rows[lacking])
        return found

    def similarities(self, query: Floats, rows: Rows) -> Floats:
        found = self._first.similarities(query, rows)
        lacking = np.flatnonzero(found == 0)
        found[lacking] = self._second.similarities(query, rows[lacking])
        return found

    def search(self, query: Floats, mask: NDArray[np.bool_] | None, most: int) -> tuple[Rows, Floats]:
        here, there = self._first.search(query, mask, most), self._second.search(query, mask, most)
        if not len(here[0]) or not len(there[0]):
            return here if len(here[0]) else there
        rows, similarities = np.concatenate([here[0], there[0]]), np.concatenate([here[1], there[1]])
        order = np.lexsort((rows, -similarities))
        rows, similarities = rows[order], similarities[order]
        nearest_of_each = np.sort(np.unique(rows, return_index=True)[1])[:most]
        return rows[nearest_of_each], similarities[nearest_of_each]


class _Segment(NamedTuple):
    """Where it is packed, `at` says at which place a row is; at the last one there are zeros, for all that are gone."""

    has: NDArray[np.bool_]  # by row, also where it is packed
    scales: Floats
    codes: Codes
    signs: Words  # a row for each word, so that a scan reads memory in its order
    at: NDArray[np.uint16] | None = None

    def places(self, local: Rows) -> Rows | NDArray[np.uint16]:
        return local if self.at is None else self.at[local]


def _empty_segment(dimension: int, places: int, at: NDArray[np.uint16] | None = None) -> _Segment:
    return _Segment(
        np.zeros(SEGMENT_ROWS, np.bool_),
        np.zeros(places, np.float32),
        _zeros((places, dimension), np.dtype(np.int8)),
        _zeros((-(-dimension // WORD_BITS), places), np.dtype(np.uint64)),
        at,
    )


def _zeros(shape: tuple[int, int], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Zeros that nobody has written yet take no room. And what is let go is the system's again, at once: of numpy's own
    zeros the process keeps tens of megabytes for later."""
    size = shape[0] * shape[1] * dtype.itemsize
    if size < MAPPED_BYTES:
        return np.zeros(shape, dtype)
    room = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if size >= HUGE_BYTES and hasattr(mmap, "MADV_HUGEPAGE"):
        room.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(room, dtype).reshape(shape)


def _packed(segment: _Segment) -> _Segment:
    rows = np.flatnonzero(segment.has)
    at = np.full(SEGMENT_ROWS, len(rows), np.uint16)
    at[rows] = np.arange(len(rows))
    return _filled(_empty_segment(segment.codes.shape[1], len(rows) + 1, at), segment, rows)


def _opened(segment: _Segment) -> _Segment:
    rows = np.flatnonzero(segment.has)
    return _filled(_empty_segment(segment.codes.shape[1], SEGMENT_ROWS), segment, rows)


def _filled(new: _Segment, old: _Segment, rows: Rows) -> _Segment:
    """With these rows of the old one."""
    to, at = new.places(rows), old.places(rows)
    new.scales[to], new.codes[to], new.signs[:, to] = old.scales[at], old.codes[at], old.signs[:, at]
    new.has[rows] = True
    return new


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


def _summed(scales: Floats, codes: Codes) -> Floats:
    """The sum of these vectors. A piece at a time: of all of them as floats, getting the room takes longer."""
    total = np.zeros(codes.shape[1], np.float32)
    for first in range(0, len(codes), RATED_AT_ONCE):
        part = slice(first, first + RATED_AT_ONCE)
        total += (codes[part] * scales[part, np.newaxis]).sum(axis=0)
    return total


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
        places = segment.places(local)
        last = int(places[-1])
        if len(places) > last // 2:  # picking words costs as much as counting in a few that are not asked for
            all_of_them = _differing(segment.signs[:, : last + 1], signs, weights)
            found[span] = all_of_them if len(places) == last + 1 else all_of_them[places]
        else:
            found[span] = _differing(segment.signs[:, places], signs, weights)
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
            part = segment.places(local[first : first + RATED_AT_ONCE])
            at = places[first : first + RATED_AT_ONCE]
            # Row by row, not as a matrix product: BLAS would start threads for it, and on a busy machine these wait for
            # each other ten times longer than the work takes.
            found[at] = np.vecdot(segment.codes[part].astype(np.float32), query) * segment.scales[part]
    return found


def _unit(query: Floats) -> Floats:
    return _divided(query.astype(np.float32), np.linalg.norm(query))


def _divided(numbers: Floats, by: Floats | np.floating[Any] | float) -> Floats:
    """0 where there is nothing to divide by."""
    return np.divide(numbers, by, out=np.zeros_like(numbers), where=np.asarray(by) > 0)
