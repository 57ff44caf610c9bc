"""A secret cut in parts, which stand in several texts: of one unit, or of entries that follow each other.

A trail remembers what an author, or the writers of a session, said just before: no text, but which parts of which
secrets, and the last letters of a text where they could be the beginning of one. It is small, whatever was written.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from fieldstone.redact.fragments import Key, Part, split
from fieldstone.redact.known import Beginning, Known
from fieldstone.redact.spans import Span

# Entries after which a part is forgotten. More give chance more to put together.
ENTRIES_MAX: Final = 4
# Of one entry. An honest one has none or few.
PARTS_MAX: Final = 256
WORDS_MAX: Final = 256
BEGINNINGS_MAX: Final = 16


class Trace(NamedTuple):
    """What one entry may have said of secrets: parts of them, words that could be a rest, open beginnings."""

    parts: tuple[Part, ...] = ()
    words: frozenset[bytes] = frozenset()
    beginnings: tuple[Beginning, ...] = ()


class Trail(NamedTuple):
    """The traces of the last entries, the newest last."""

    traces: tuple[Trace, ...] = ()

    def then(self, trace: Trace) -> "Trail":
        return Trail((*self.traces, trace)[-ENTRIES_MAX:])


class Entry(NamedTuple):
    """The texts of an entry as they came, and with the secrets taken out that each holds as a whole.

    What a part was is told by the first: it may be gone from the second, for another reason.
    """

    texts: Sequence[bytes]
    cleaned: Sequence[bytes]


def followed(known: Known, trails: Sequence[Trail], entry: Entry) -> tuple[list[list[Span]], list[Trail]]:
    """What is to be taken out of an entry's clean texts, after these trails; and the trails that go on from it."""
    traces = {trace for trail in trails for trace in trail.traces}
    before = [part for trace in traces for part in trace.parts]
    here = [part for text in entry.texts for part in known.parts(text)]
    most = [part for part in (*before, *here) if part.is_most]
    if most:
        here += [rest for text in entry.texts for rest in known.rests(most, text)]
        before += known.said_rests(most, frozenset().union(*(trace.words for trace in traces)))
    secrets = split([*before, *here])
    spans = [_taken_out(known, text, secrets, most) for text in entry.cleaned]
    if not trails and len(entry.texts) == 1:
        return spans, []
    beginnings = {each for trail in trails for trace in trail.traces[-1:] for each in trace.beginnings}
    trace = Trace(_longest(here), _words(known, entry.texts), _across(known, beginnings, entry.cleaned, spans))
    return spans, [trail.then(trace) for trail in trails]


def _words(known: Known, texts: Sequence[bytes]) -> frozenset[bytes]:
    words = frozenset[bytes]().union(*(known.ends(text) for text in texts))
    return words if len(words) <= WORDS_MAX else frozenset(sorted(words, key=len)[-WORDS_MAX:])


def _taken_out(known: Known, text: bytes, secrets: set[Key], most: Sequence[Part]) -> list[Span]:
    return known.part_spans(text, most, secrets) if secrets else []


def _across(
    known: Known, before: set[Beginning], texts: Sequence[bytes], spans: Sequence[list[Span]]
) -> tuple[Beginning, ...]:
    """Adds the secrets that go on from one text into another. Gives the beginnings that stand open in the end."""
    mine: set[Beginning] = set()
    for text, its_spans in zip(texts, spans, strict=True):
        its_spans += known.across(before | mine, text)
        mine |= {each for each in known.beginnings(before | mine, text) if each.letters}
    return tuple(sorted(mine, key=lambda each: -len(each.letters))[:BEGINNINGS_MAX])


def _longest(parts: Sequence[Part]) -> tuple[Part, ...]:
    return tuple(sorted(parts, key=lambda part: part.first - part.last)[:PARTS_MAX])
