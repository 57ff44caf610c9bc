"""A summary with sections: decisions, preferences, current state, open questions, references.

What decides, prefers or asks is quoted. The summariser tells the current state, in what room is left.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from fieldstone.core.transcripts import CanonicalMessage
from fieldstone.planes.context.sections import Section, sorted_out
from fieldstone.planes.context.summaries import Draft, Passage, Passed, as_group, passages_of
from fieldstone.planes.context.tools import Tools
from fieldstone.ports.summarizer import Distillate
from fieldstone.ports.tokens import TokenCounter

STATE: Final = "current state"
# The most that each may take of the summary; the state gets the rest, and so at least .3 of it.
SHARES: Final[dict[Section, float]] = {
    "decisions": 0.3,
    "preferences": 0.15,
    "open questions": 0.15,
    "references": 0.1,
}
ORDER: Final[tuple[Section, ...]] = ("decisions", "preferences", STATE, "open questions", "references")


class Structured:
    """One summary. An earlier one is taken up section by section; where a section is full, its oldest items go."""

    name: Final = "structured"

    async def drafts(
        self, going: Sequence[CanonicalMessage], after: Sequence[CanonicalMessage], tools: Tools, most_tokens: int
    ) -> list[Draft]:
        kept, state = await asyncio.to_thread(_sorted, going, after, tools.counter, most_tokens)
        left = most_tokens - sum(tools.counter.count(_line(each)) for items in kept.values() for each in items)
        made = await tools.summarizer.distil(as_group(state), left)
        page = _Page()
        for section in ORDER:
            if section == STATE:
                page.tell(made, state)
            else:
                page.list(section, kept[section])
        ids = tuple(message.id for message in going)
        return [Draft(ids, page.text, tuple(page.passages), 1, made.by, made.fell_back)]


def _sorted(
    going: Sequence[CanonicalMessage], after: Sequence[CanonicalMessage], counter: TokenCounter, most_tokens: int
) -> tuple[dict[Section, list[Passed]], list[Passed]]:
    """What is quoted, by section, and what the state is told from."""
    said = list(sorted_out(going, after))
    kept: dict[Section, list[Passed]] = {}
    for section, share in SHARES.items():
        items = [each for each in said if each.section == section]
        kept[section] = _newest(items, int(share * most_tokens), counter)
    return kept, [each for each in said if each.section == STATE and each.text.strip()]


class _Page:
    """The text while it is written, and where its passages stand."""

    def __init__(self) -> None:
        self.text = ""
        self.passages: list[Passage] = []

    def list(self, section: Section, items: Sequence[Passed]) -> None:
        if items:
            self._title(section)
        for item in items:
            start = len(self.text) + _line(item).index(item.text)
            self.passages.append(Passage(start, start + len(item.text), item.author, section))
            self.text += _line(item)

    def tell(self, made: Distillate, said: Sequence[Passed]) -> None:
        if not made.text:
            return
        self._title(STATE)
        at = len(self.text)
        self.passages += [
            Passage(each.start + at, each.end + at, each.author, STATE) for each in passages_of(made, said)
        ]
        self.text += f"{made.text}\n"

    def _title(self, section: str) -> None:
        self.text += f"{section.capitalize()}:\n"


def _line(item: Passed) -> str:
    return f"- {item.text}\n" if item.section == "references" else f'- {item.author}: "{item.text}"\n'


def _newest(items: Sequence[Passed], most_tokens: int, counter: TokenCounter) -> list[Passed]:
    """As many as fit, in the order in which they were said, each once."""
    kept: dict[str, Passed] = {}
    left = most_tokens
    for item in reversed(items):
        tokens = counter.count(_line(item))
        if item.text not in kept and tokens <= left:
            kept[item.text] = item
            left -= tokens
    return list(kept.values())[::-1]
