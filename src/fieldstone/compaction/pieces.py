"""A group of originals, cut into what can be quoted."""

from collections.abc import Iterator, Sequence
from typing import Final
from weakref import WeakKeyDictionary

from msgspec import Struct

from fieldstone.compaction.facts import Facts, facts_in
from fieldstone.compaction.pace import unhurried
from fieldstone.compaction.writing import Span
from fieldstone.ports.summarizer import Original
from fieldstone.retrieval.sentences import MARKER, sentences_of

# A text of a few sentences is one statement: half of it could be another one, so it is quoted as a whole or not at all.
# (To leave greetings and questions back out of it was tried: one question in a hundred more, and half the turns whole.)
# Of a longer text each sentence may stand without the others.
STATEMENT_CHARS: Final = 600
SENTENCES_MAX: Final = 20_000  # of one text; a million characters of prose have no more, and of marks they take seconds


class Piece(Struct, frozen=True, gc=False):
    span: Span
    facts: Facts
    essential: bool


class _Found(Struct, frozen=True, gc=False):
    """A piece of one original, whatever group it is in."""

    start: int
    end: int
    facts: Facts
    essential: bool


# Groups that share a budget are looked at twice, together and one by one. What was found in an original is kept for as
# long as the original is.
_found: Final[WeakKeyDictionary[Original, tuple[_Found, ...]]] = WeakKeyDictionary()


def pieces_of(group: Sequence[Original]) -> list[Piece]:
    """In the order of the group, and of each text."""
    return [
        Piece(Span(at, found.start, found.end), found.facts, found.essential)
        for at, original in enumerate(unhurried(group))
        for found in _found_in(original)
    ]


def _found_in(original: Original) -> tuple[_Found, ...]:
    known = _found.get(original)
    if known is None:
        text = original.text
        known = tuple(
            _Found(start, end, facts_in(text[start:end]), essential) for start, end, essential in _cut(original)
        )
        _found[original] = known
    return known


def forget(group: Sequence[Original]) -> None:
    """What was found in these is not asked for again. Left to the originals' end, it would go in the event loop, with
    all those of a window at once: that took 7 ms."""
    for original in unhurried(group):
        _found.pop(original, None)


def whole(text: str) -> tuple[int, int]:
    """Where it begins and ends, without the space around it."""
    start = len(text) - len(text.lstrip())
    return start, max(start, len(text.rstrip()))


def _cut(original: Original) -> Iterator[tuple[int, int, bool]]:
    text = original.text
    marked = MARKER.search(text) is not None
    if not text.strip():
        return
    if original.verbatim or (len(text) <= STATEMENT_CHARS and not marked):
        yield *whole(text), original.verbatim
        return
    for number, sentence in enumerate(sentences_of(text)):
        # That something was redacted must not be lost, too: a sentence that says so is essential.
        essential = marked and MARKER.search(sentence.text) is not None
        if essential or number < SENTENCES_MAX:
            yield sentence.start, sentence.end, essential
