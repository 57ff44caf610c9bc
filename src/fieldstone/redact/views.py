"""Other readings of a text, each of which knows where its bytes came from.

A disguise is taken off by making a view: the text without its punctuation, the bytes behind its base64, and views of
these again. Most views are searched and thrown away, so the way back to the text is worked out only for a finding.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from typing import Final, NamedTuple

import numpy as np

# From a range of a view's bytes to the range of its source's bytes that they were read from.
Origin = Callable[[int, int], tuple[int, int]]
# What stands for a match: always the same, or what the match says.
Meant = bytes | Callable[[re.Match[bytes]], bytes]


class View(NamedTuple):
    """A reading of a text. `origin` leads back to the text itself; `depth` counts the encodings taken off.

    It is `packed` if it came out of base64, hexadecimal digits or compression, of which a part is of no use to anyone.
    """

    data: bytes
    origin: Origin
    depth: int = 0
    packed: bool = False

    def read(self, data: bytes, origin: Origin, *, deeper: bool = False, packed: bool = False) -> "View":
        """A view of this view."""
        depth, packed = self.depth + deeper, self.packed or packed
        return View(data, lambda start, end: self.origin(*origin(start, end)), depth, packed)

    def backwards(self) -> "View":
        size = len(self.data)
        return self.read(self.data[::-1], lambda start, end: (size - end, size - start))

    def translated(self, table: bytes) -> "View":
        """Byte for byte."""
        return self.read(self.data.translate(table), same)

    def kept(self, table: bytes | None, dropped: bytes) -> "View":
        """Without some bytes, the others translated."""
        return self.read(self.data.translate(table, dropped), Kept(self.data, dropped))

    def rewritten(self, pattern: re.Pattern[bytes], meant: Meant, *, deeper: bool = False) -> "View":
        """With something shorter, or nothing, for each match."""
        return self.read(pattern.sub(meant, self.data), Rewritten(self.data, pattern, meant), deeper=deeper)


def whole(text: bytes) -> View:
    return View(text, same)


def same(start: int, end: int) -> tuple[int, int]:
    return start, end


class Kept:
    """The origin of bytes that were kept when others were dropped."""

    def __init__(self, source: bytes, dropped: bytes) -> None:
        self._source: Final = source
        self._dropped: Final = dropped

    def __call__(self, start: int, end: int) -> tuple[int, int]:
        return int(self._places[start]), int(self._places[end - 1]) + 1

    def has_gap(self, at: int) -> bool:
        """Whether something was dropped before this byte, or it is where all begins or ends."""
        return at in {0, len(self._places)} or bool(self._places[at] - self._places[at - 1] > 1)

    @cached_property
    def _places(self) -> "np.ndarray[tuple[int], np.dtype[np.intp]]":
        return np.frombuffer(self._source.translate(_keeps(self._dropped)), dtype=np.bool_).nonzero()[0]


@cache
def _keeps(dropped: bytes) -> bytes:
    """For each byte, whether it is kept. Few different bytes are ever dropped together."""
    return bytes(byte not in dropped for byte in range(256))


class Rewritten:
    """The origin of bytes in which something else stands for each match of a pattern."""

    def __init__(self, source: bytes, pattern: re.Pattern[bytes], meant: Meant) -> None:
        self._source: Final = source
        self._pattern: Final = pattern
        self._meant: Final = meant

    def __call__(self, start: int, end: int) -> tuple[int, int]:
        return self._pieces(start, end)

    @cached_property
    def _pieces(self) -> "Pieced":
        at: list[int] = []
        sources: list[tuple[int, int]] = []
        done = size = 0
        for found in self._pattern.finditer(self._source):
            start, end = found.span()
            for length, source in ((start - done, (done, start)), (self._length(found), (start, end))):
                if length:
                    at.append(size)
                    sources.append(source)
                    size += length
            done = end
        return Pieced([*at, size], [*sources, (done, len(self._source))])

    def _length(self, found: re.Match[bytes]) -> int:
        return len(self._meant if isinstance(self._meant, bytes) else self._meant(found))


class Pieced:
    """The origin of bytes that were put together from pieces, each read from a range of the source as a whole."""

    def __init__(self, at: Sequence[int], sources: Sequence[tuple[int, int]]) -> None:
        """Piece i begins at at[i] and was read from sources[i]; when as long as its source, then byte by byte."""
        self._at: Final = at
        self._sources: Final = sources

    def __call__(self, start: int, end: int) -> tuple[int, int]:
        first, last = bisect_right(self._at, start) - 1, bisect_right(self._at, end - 1) - 1
        return self._place(first, start)[0], self._place(last, end - 1)[1]

    def _place(self, piece: int, at: int) -> tuple[int, int]:
        start, end = self._sources[piece]
        following = self._at[piece + 1] if piece + 1 < len(self._at) else None
        if following is None or following - self._at[piece] == end - start:
            place = start + at - self._at[piece]
            return place, place + 1
        return start, end
