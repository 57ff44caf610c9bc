"""The short form of units that belong together."""

from collections.abc import Sequence
from typing import Final, Protocol

from msgspec import Struct

# Each of them binds somebody, or waits for somebody: what they say must not be said in other words.
VERBATIM_TYPES: Final = frozenset({"decision", "constraint", "human_directive", "question"})


class Original(Struct, frozen=True, weakref=True):
    """A unit that goes into a synthesis."""

    unit_id: str
    epoch: int
    type: str
    author: str  # the agent who recorded it, as the synthesis names it
    text: str
    contested: bool = False

    @property
    def verbatim(self) -> bool:
        return self.contested or self.type in VERBATIM_TYPES


class Quote(Struct, frozen=True, gc=False):
    """A stretch of an original that stands in the distillate word for word. Places are in characters."""

    unit_id: str
    start: int  # in the original's text
    end: int
    at: int  # in the distillate's text


class Distillate(Struct, frozen=True):
    """What a group became. `quotes` are in the order of the text. It is empty where nothing of it was short enough."""

    text: str
    quotes: tuple[Quote, ...]
    tokens: int
    by: str  # the summariser that made it
    over_budget: bool = False  # what must be quoted is more than was allowed; nothing else is there
    fell_back: str | None = None  # why another summariser than the chosen one made it, in a sentence


class Summarizer(Protocol):
    """The text is new text: it takes the redaction road before it is kept, whatever it was made from.

    Verbatim originals are quoted whole, and every redaction marker of an original stands in the text. Where these alone
    are longer than the budget, they win. The order in which the group is given does not matter.
    """

    @property
    def name(self) -> str:
        """As `Distillate.by` tells it: "extractive", "openai/<model>"."""
        ...

    async def distil(self, group: Sequence[Original], most_tokens: int) -> Distillate:
        """It answers within a bound of its own and never raises for what a model or a network does: it falls back.

        The event loop goes on meanwhile. Two originals of a group never have the same id.
        """
        ...

    async def close(self) -> None:
        """Later calls fall back, and so may those under way. Twice does no harm."""
        ...
