"""Conversations, written and drawn, and the tools that tests work on them with."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from hypothesis import strategies as st

from fieldstone.compaction.extractive import Extractive
from fieldstone.core.transcripts import (
    AnyPart,
    CanonicalMessage,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from fieldstone.planes.context.execution import ContextManager
from fieldstone.planes.context.pairs import blocks_of
from fieldstone.planes.context.rollup import Rollup, Strategy
from fieldstone.planes.context.structured import Structured
from fieldstone.planes.context.tiered import Tiered
from fieldstone.planes.context.tools import Tools
from fieldstone.ports.summarizer import Distillate, Original, Summarizer
from fieldstone.redact import Harness, KnownSecret, shared_harness
from fieldstone.testing import ManualClock, SeededIds
from fieldstone.testing.tokens import WordCounter

NOW: Final = "2025-06-15T15:06:40.000Z"
WORDS: Final = WordCounter()
SENTENCES: Final = [
    "Carol moved the cart to Postgres 16 on Friday.",
    "We decided to keep the old index until June.",
    "I prefer short answers.",
    "Who signs it off?",
    "It is not clear yet what the limit is.",
    "See docs/guides/cart.md and https://example.com/cart for CART-17.",
    "The log holds [REDACTED:api-key] in line 7.",
    "It rained, and nobody said anything of note. " * 6,
    "第一に記憶。第二に力！",
    'She said "no" to it.',
    "```\ncode. More\n```",
    "",
]


ROLES: Final[dict[str, Role]] = {"user": "user", "assistant": "assistant", "system": "system"}


class ScriptedSummarizer:
    """Says what it is told to say, or the beginning of everything; and waits until `opened`."""

    name = "scripted"

    def __init__(self, text: str | None = None) -> None:
        self.text = text
        self.opened = asyncio.Event()
        self.opened.set()
        self.asked = asyncio.Event()
        self.groups: list[list[Original]] = []

    async def distil(self, group: Sequence[Original], most_tokens: int) -> Distillate:
        self.groups.append(list(group))
        self.asked.set()
        await self.opened.wait()
        text = " ".join(each.text for each in group)[:40] if self.text is None else self.text
        return Distillate(text, (), WORDS.count(text), self.name)

    async def close(self) -> None:
        """There is nothing to close."""


def tools(summarizer: Summarizer | None = None, known: Sequence[KnownSecret] = ()) -> Tools:
    harness = shared_harness().knowing(known) if known else shared_harness()

    async def cleaning() -> Harness:
        return harness

    return Tools(WORDS, Extractive(WORDS) if summarizer is None else summarizer, cleaning, ManualClock(), SeededIds())


def said(id: str, text: str, role: Role = "user", **metadata: Any) -> CanonicalMessage:
    return message(id, role, TextPart(text), **metadata)


def called(id: str, *call_ids: str, tool: str = "search", text: str = "") -> CanonicalMessage:
    calls = [ToolCallPart(call_id, tool, {"query": f"about {call_id}"}) for call_id in call_ids]
    return message(id, "assistant", *([TextPart(text)] if text else []), *calls)


def answered(id: str, call_id: str, output: Any = "It was found.", tool: str = "search") -> CanonicalMessage:
    return message(id, "tool", ToolResultPart(call_id, tool, output))


def message(id: str, role: Role, *parts: AnyPart, **metadata: Any) -> CanonicalMessage:
    return CanonicalMessage(id, None, role, parts, NOW, {"schemaVersion": 1, **metadata})


def long_talk(turns: int, words: int = 40, *, first: int = 0) -> list[CanonicalMessage]:
    """User and assistant in turn; each says a number that nobody else says."""
    return [
        said(
            f"m{at}",
            f"Run {at} took {at * 7} seconds in Oslo. " + f"Filler number {at} goes on. " * (words // 6),
            "assistant" if at % 2 else "user",
        )
        for at in range(first, first + turns)
    ]


async def context_of(messages: Sequence[CanonicalMessage], max_tokens: int = 1_000, **options: Any) -> ContextManager:
    context = ContextManager(max_tokens, options.pop("tools", None) or tools(), **options)
    await context.add(*messages)
    return context


def ids_of(messages: Sequence[CanonicalMessage]) -> list[str]:
    return [message.id for message in messages]


def split_pairs(before: Sequence[CanonicalMessage], after: Sequence[CanonicalMessage]) -> list[tuple[str, ...]]:
    """Blocks of the first list of which the second holds a part only."""
    left = set(ids_of(after))
    blocks = [tuple(before[place].id for place in block.places) for block in blocks_of(before)]
    return [ids for ids in blocks if 0 < len(left.intersection(ids)) < len(ids)]


strategies: st.SearchStrategy[Strategy] = st.sampled_from([Rollup(), Tiered(), Tiered(2), Structured()])
texts = st.lists(st.sampled_from(SENTENCES), max_size=8).map(" ".join)


@st.composite
def conversations(draw: st.DrawFn, prefix: str = "m", most: int = 24) -> list[CanonicalMessage]:
    """System messages anywhere, calls in parallel, ids of calls that come again, results late, missing or twice."""
    messages: list[CanonicalMessage] = []
    waiting: list[str] = []
    for at in range(draw(st.integers(0, most))):
        id, kind = f"{prefix}{at}", draw(st.sampled_from(["user", "assistant", "system", "call", "result", "result"]))
        if kind == "call":
            calls = draw(st.lists(st.sampled_from(["call_0", "call_1", f"call-{id}"]), min_size=1, unique=True))
            waiting += calls
            messages.append(called(id, *calls, text=draw(texts)))
        elif kind == "result":
            call_id = draw(st.sampled_from(waiting)) if waiting else "nobody"
            if draw(st.booleans()) and call_id in waiting:
                waiting.remove(call_id)
            messages.append(answered(id, call_id, draw(texts)))
        else:
            messages.append(said(id, draw(texts), ROLES[kind]))
    return messages
