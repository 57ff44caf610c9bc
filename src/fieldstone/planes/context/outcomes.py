"""What became of a compaction, as hooks and callers are told."""

from collections.abc import Awaitable, Callable
from typing import Literal

from msgspec import Struct

from fieldstone.planes.context.triggers import Trigger

Reason = Literal[
    "nothing may go: what is there is the system's, pinned, among the last, or waits for a tool",
    "the summary would not be smaller than what it stands for",
    "nothing could be said in so few tokens",
]


class Compacting(Struct, frozen=True):
    """One is about to begin."""

    trigger: Trigger
    strategy: str
    tokens: int
    messages: int


class Compacted(Struct, frozen=True):
    """`tokens` are counted, before and after, over the same messages: those that came meanwhile are in both."""

    trigger: Trigger
    strategy: str
    tokens_before: int
    tokens_after: int
    replaced: int  # messages that went
    summaries: tuple[str, ...]  # ids of those that came
    by: tuple[str, ...]  # who wrote each
    fell_back: str | None = None  # why another than the chosen summariser did


class Refused(Struct, frozen=True):
    """Nothing was changed."""

    trigger: Trigger
    strategy: str
    tokens: int
    reason: Reason


Outcome = Compacted | Refused
Before = Callable[[Compacting], Awaitable[None] | None]
After = Callable[[Outcome], Awaitable[None] | None]
