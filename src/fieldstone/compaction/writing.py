"""Quotes as a text: who said it, and in which words."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from msgspec import Struct

from fieldstone.compaction.pace import unhurried
from fieldstone.ports.summarizer import Original, Quote
from fieldstone.retrieval.summary import GAP


class Span(Struct, frozen=True, order=True, gc=False):
    """A stretch of an original, which is named by its place in the group."""

    original: int
    start: int
    end: int


def line(group: Sequence[Original], span: Span) -> str:
    """A quote that stands alone."""
    original = group[span.original]
    label = _label(original)
    return f"{_opening(label)}{original.text[span.start : span.end]}{_closing(label)}\n"


def written(group: Sequence[Original], spans: Iterable[Span]) -> tuple[str, tuple[Quote, ...]]:
    """A line for what one agent said before another spoke, and in it quotation marks for each original. What nobody in
    particular has said stands there without a name and without marks."""
    parts: list[str] = []
    quotes: list[Quote] = []
    length, speaking = 0, ""
    for at, of_one in groupby(unhurried(sorted(spans)), key=lambda span: span.original):
        original, label = group[at], _label(group[at])
        before = _joint(speaking, label) if parts else _opening(label)
        for start, end in _joined(original.text, of_one):
            quotes.append(Quote(original.unit_id, start, end, length + len(before)))
            parts += before, original.text[start:end]
            length += len(before) + end - start
            before = GAP
        speaking = label
    return "".join(parts) + (_closing(speaking) if parts else ""), tuple(quotes)


def _joint(speaking: str, label: str) -> str:
    """What stands between the words of one original and those of the next."""
    if label and label == speaking:
        return '" "'
    return f"{_closing(speaking)}\n{_opening(label)}"


def _opening(label: str) -> str:
    return f'{label}: "' if label else ""


def _closing(label: str) -> str:
    return '"' if label else ""


def _label(original: Original) -> str:
    """Of what is quoted verbatim a reader has to know what it is."""
    if not original.verbatim:
        return original.author
    return f"{original.author} ({'contested ' if original.contested else ''}{original.type})"


def _joined(text: str, spans: Iterable[Span]) -> Iterator[tuple[int, int]]:
    """Neighbours stay as they stood."""
    runs: list[tuple[int, int]] = []
    for span in spans:
        start, end = span.start, span.end
        if runs and not text[runs[-1][1] : start].strip():
            start, _ = runs.pop()
        runs.append((start, end))
    return iter(runs)
