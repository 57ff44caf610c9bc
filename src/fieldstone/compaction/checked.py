"""A synthesis in a model's words, around what must be said in the group's own.

What has to stand verbatim does not go through the model: it is quoted in front, as the extractive synthesis quotes it.
The model's words follow in one paragraph that says that it is one, so that none of them can pass for a quote. Where
they do not stand up to the checks, the group is quoted instead, and the result says why.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from msgspec.structs import replace

from fieldstone.compaction.extractive import Extractive, in_order
from fieldstone.compaction.facts import facts_in
from fieldstone.compaction.invented import invented
from fieldstone.compaction.pace import in_thread
from fieldstone.compaction.pieces import SENTENCES_MAX, pieces_of, whole
from fieldstone.compaction.writing import Span, written
from fieldstone.detection.stems import stem
from fieldstone.ports.summarizer import VERBATIM_TYPES, Distillate, Original, Quote
from fieldstone.ports.tokens import TokenCounter
from fieldstone.ports.writer import NotWritten, Writer
from fieldstone.retrieval.sentences import MARKER, sentences_of

LEAD: Final = "In other words: "
ROOM_TOKENS_MIN: Final = 16  # less is no sentence
# Of the words that carry meaning. Of 99 summaries of conversations by a model the median has .31 of its own, and two
# more than this; measured against another conversation of the same people, the lowest has .51, and a refusal nearly 1.
OWN_WORDS_MAX: Final = 0.5

_QUOTED: Final = re.compile(r'["“„]([^"“”„]++)["”“]')
_STOPS: Final = " .,;:!?…"
_LABEL: Final = re.compile(rf"\((?:contested|{'|'.join(sorted(VERBATIM_TYPES))})\b[^)]{{0,100}}\)")


class Checked:
    """The `Summarizer` that has a model write, and believes nothing of it before it is checked."""

    def __init__(self, writer: Writer, counter: TokenCounter) -> None:
        self._writer: Final = writer
        self._counter: Final = counter
        self._extractive: Final = Extractive(counter)

    @property
    def name(self) -> str:
        return self._writer.name

    async def distil(self, group: Sequence[Original], most_tokens: int) -> Distillate:
        said = in_order([original for original in group if original.text.strip()])
        if not said:
            return Distillate("", (), 0, self.name)
        try:
            frame = await in_thread(_framed, said, most_tokens, self._counter)
            words = await self._writer.write(said, most_tokens - frame.tokens)
            return await in_thread(self._believed, said, frame, words, most_tokens)
        except NotWritten as why:
            return replace(await self._extractive.distil(group, most_tokens), fell_back=str(why))

    async def close(self) -> None:
        await self._writer.close()

    def _believed(self, group: Sequence[Original], frame: "_Frame", words: str, most_tokens: int) -> Distillate:
        paragraph = " ".join(words.split())
        _check(paragraph, group)
        text = frame.text + paragraph
        tokens = self._counter.count_within(text, most_tokens)
        if tokens is None:
            raise NotWritten("The model's summary is longer than it may be.")
        quotes = (*frame.quotes, *_quoted(paragraph, len(frame.text), group))
        return Distillate(text, quotes, tokens, self.name)


class _Frame(NamedTuple):
    """What stands before the model's words."""

    text: str
    quotes: tuple[Quote, ...]
    tokens: int


def _framed(group: Sequence[Original], most_tokens: int, counter: TokenCounter) -> _Frame:
    """The quotes that no summary may do without, if there is something beside them to say, and room to say it in."""
    everything = [Span(at, *whole(original.text)) for at, original in enumerate(group)]
    if counter.count_within(written(group, everything)[0], most_tokens) is not None:
        raise NotWritten("All of it could be quoted: nothing had to be said in other words.")
    quoted, quotes = written(group, [piece.span for piece in pieces_of(group) if piece.essential])
    text = f"{quoted}\n{LEAD}" if quoted else LEAD
    tokens = counter.count(text)
    if most_tokens - tokens < ROOM_TOKENS_MIN:
        raise NotWritten("What has to be quoted leaves no room for a summary.")
    return _Frame(text, quotes, tokens)


def _check(paragraph: str, group: Sequence[Original]) -> None:
    """`NotWritten` for words that are not those of a summary of this group."""
    sources = [*(original.text for original in group), *(original.author for original in group)]
    if _has_little_to_do_with(paragraph, sources):
        raise NotWritten("The model's answer has little to do with the units.")
    if _misquotes(paragraph, sources):
        raise NotWritten("The model's summary quotes what nobody said.")
    if not set(MARKER.findall(paragraph)).issubset(MARKER.findall("\n".join(sources))):
        raise NotWritten("The model's summary has a redaction marker that no unit has.")
    if found := invented(paragraph, sources):
        raise NotWritten(f"The model's summary has figures, names or dates that no unit has: {len(found)}.")


def _has_little_to_do_with(paragraph: str, sources: Sequence[str]) -> bool:
    said = [stem(word) for word in facts_in(paragraph).words]
    known = {stem(word) for source in sources for word in facts_in(source).words}
    return not said or sum(word not in known for word in said) > OWN_WORDS_MAX * len(said)


def _misquotes(paragraph: str, sources: Sequence[str]) -> bool:
    """Quotation marks around what no unit says, or the label of what binds somebody: only the frame has those."""
    if _LABEL.search(paragraph):
        return True
    said = "\n".join(" ".join(source.split()) for source in sources).lower()
    return any(quote.strip(_STOPS).lower() not in said for quote in _QUOTED.findall(paragraph))


def _quoted(paragraph: str, at: int, group: Sequence[Original]) -> list[Quote]:
    """The sentences of originals that the model left as they were. The paragraph begins at a place of the text."""
    found = [
        Quote(original.unit_id, start, end, at + place)
        for original in group
        for start, end, sentence in islice(sentences_of(original.text), SENTENCES_MAX)
        for place in islice(_places(sentence, paragraph), 1)
    ]
    return sorted(found, key=lambda quote: quote.at)


def _places(sentence: str, paragraph: str) -> Iterator[int]:
    """Where it stands as words, and not inside of others."""
    place = paragraph.find(sentence)
    while place >= 0:
        before, after = paragraph[:place][-1:], paragraph[place + len(sentence) :][:1]
        if not (before.isalnum() and sentence[0].isalnum()) and not (after.isalnum() and sentence[-1].isalnum()):
            yield place
        place = paragraph.find(sentence, place + 1)
