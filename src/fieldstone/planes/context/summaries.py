"""Summaries as messages. What one is, and what it stands for, is said by its metadata and never by its words."""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta, Struct

from fieldstone.core.transcripts import SCHEMA_VERSION, CanonicalMessage, TextPart
from fieldstone.planes.context.sayings import author_of, said_in
from fieldstone.ports.summarizer import Distillate, Original, Quote

KEY: Final = "summary"  # in the metadata
OWN_WORDS: Final = "summary"  # who says what no message said in these words

# A line of quotes, with the quoted words blanked out.
_QUOTING: Final = re.compile('[^"\0\n]+: "[\0" …]+"')


# Metadata may have been written by anybody: a name must not look like a line of somebody else's words.
Author = Annotated[str, Meta(pattern=r"\A[\w.-]{1,64}(?: [\w.-]{1,64})?\Z")]


class Passage(Struct, frozen=True, array_like=True):
    """A stretch of a summary's text that can be told apart: a message's words, or the summariser's own."""

    start: int
    end: int
    author: Author
    section: str = ""


class SummaryNote(Struct, frozen=True, rename="camel"):
    """What the metadata say of a summary. Tier 1 is made of messages, tier 2 of summaries of tier 1, and so on."""

    strategy: str
    tier: int
    by: str
    stands_for: tuple[str, ...]  # the ids of messages, never of other summaries
    passages: tuple[Passage, ...] = ()
    fell_back: str | None = None


class Draft(NamedTuple):
    """A summary that a strategy made. `replaces` are ids of messages of the list, which may be summaries."""

    replaces: tuple[str, ...]
    text: str
    passages: tuple[Passage, ...]
    tier: int
    by: str
    fell_back: str | None = None
    tokens: int = 0  # of the text, once it is clean


def note_of(message: CanonicalMessage) -> SummaryNote | None:
    """None for what is no summary. What looks like one and is malformed is a message like others."""
    if KEY not in message.metadata:
        return None
    try:
        note = msgspec.convert(message.metadata[KEY], SummaryNote)
    except msgspec.ValidationError:
        return None
    length = len(_text(message))
    return note if all(0 <= each.start < each.end <= length for each in note.passages) else None


def tier_of(message: CanonicalMessage) -> int:
    note = note_of(message)
    return 0 if note is None else note.tier


def stood_for(messages: Iterable[CanonicalMessage]) -> tuple[str, ...]:
    """The ids of the messages themselves; for a summary, of those that it stands for."""
    ids: dict[str, None] = {}
    for message in messages:
        note = note_of(message)
        ids.update(dict.fromkeys((message.id,) if note is None else note.stands_for))
    return tuple(ids)


def summary_message(id: str, created_at: str, text: str, note: SummaryNote) -> CanonicalMessage:
    """A user's message: what users and tools said must not come back with the authority of the system."""
    as_stored = msgspec.json.decode(msgspec.json.encode(note))  # so that it is the same after it was stored
    metadata = {"schemaVersion": SCHEMA_VERSION, KEY: as_stored}
    return CanonicalMessage(id, None, "user", (TextPart(text),), created_at, metadata)


class Passed(NamedTuple):
    """What a summariser is given: a message, or a passage of an earlier summary, which needs no second telling."""

    author: str
    text: str
    section: str = ""


def passed_on(messages: Iterable[CanonicalMessage]) -> Iterator[Passed]:
    for message in messages:
        note = note_of(message)
        if note is None:
            yield Passed(author_of(message), said_in(message))
        elif not note.passages:
            yield Passed(OWN_WORDS, _text(message))
        else:
            text = _text(message)
            yield from (Passed(each.author, text[each.start : each.end], each.section) for each in note.passages)


def as_group(said: Sequence[Passed]) -> list[Original]:
    """None of them is quoted whole for what it is: a long conversation would leave no room."""
    return [Original(str(at), at, "observation", each.author, each.text) for at, each in enumerate(said)]


def passages_of(made: Distillate, said: Sequence[Passed]) -> tuple[Passage, ...]:
    """Its quotes; and each line that is more than quotes as one passage in the summariser's own words."""
    blanked = list(made.text)
    for quote in made.quotes:
        blanked[quote.at : quote.at + quote.end - quote.start] = "\0" * (quote.end - quote.start)
    passages: list[Passage] = []
    quotes = deque(made.quotes)
    for line in re.finditer(r"[^\n]+", "".join(blanked)):
        inside = []
        while quotes and quotes[0].at < line.end():
            inside.append(quotes.popleft())
        if _QUOTING.fullmatch(line.group()):
            passages += [_passage(quote, said) for quote in inside]
        else:
            passages.append(Passage(line.start(), line.end(), OWN_WORDS))
    return tuple(passages)


def _passage(quote: Quote, said: Sequence[Passed]) -> Passage:
    return Passage(quote.at, quote.at + quote.end - quote.start, said[int(quote.unit_id)].author)


def _text(message: CanonicalMessage) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, TextPart))
