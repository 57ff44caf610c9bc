"""Where a secret stands in a text."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Span(NamedTuple):
    """A secret, by its byte offsets in the UTF-8 text."""

    start: int
    end: int
    rule_id: str


def merged(text: bytes, spans: Iterable[Span], known: frozenset[str] = frozenset()) -> list[Span]:
    """The spans in order and on whole characters, those that overlap made one.

    A known secret gives its name before a rule, then the longest, among equals the first in the alphabet: the order of
    detectors must not show.
    """
    result: list[Span] = []
    rank = (False, 0, "")
    for span in sorted(_on_characters(text, span) for span in spans):
        its_rank = (span.rule_id not in known, span.start - span.end, span.rule_id)
        if not result or span.start >= result[-1].end:
            rank = its_rank
            result.append(span)
            continue
        last = result[-1]
        rank = min(rank, its_rank)
        result[-1] = Span(last.start, max(last.end, span.end), rank[-1])
    return result


def outside(text: bytes, span: Span, holes: Sequence[tuple[int, int]]) -> list[Span]:
    """What is left of the span outside the holes, which are in order and apart.

    A remainder with no letter or digit in it, such as a quotation mark, gives nothing away and is not kept.
    """
    left = []
    start = span.start
    for at in range(bisect_right(holes, span.start, key=_end), len(holes)):
        hole_start, hole_end = holes[at]
        if hole_start >= span.end:
            break
        left.append(Span(start, hole_start, span.rule_id))
        start = hole_end
    left.append(Span(start, span.end, span.rule_id))
    return [piece for piece in left if piece == span or _TELLING.search(text, piece.start, max(piece.start, piece.end))]


def _end(hole: tuple[int, int]) -> int:
    return hole[1]


_TELLING = re.compile(rb"[A-Za-z0-9\x80-\xff]")


def _on_characters(text: bytes, span: Span) -> Span:
    start, end = span.start, span.end
    while start > 0 and _continues(text, start):
        start -= 1
    while end < len(text) and _continues(text, end):
        end += 1
    return Span(start, end, span.rule_id)


def _continues(text: bytes, at: int) -> bool:
    return text[at] & 0xC0 == 0x80
