"""A model that puts what others said into fewer words. Nothing that it writes is believed before it is checked."""

from collections.abc import Sequence
from typing import Protocol

from fieldstone.ports.summarizer import Original


class NotWritten(Exception):
    """Why there is no summary, in a sentence that says nothing of what the units or the model said."""


class Writer(Protocol):
    @property
    def name(self) -> str:
        """As `Distillate.by` tells it: "openai/<model>"."""
        ...

    async def write(self, originals: Sequence[Original], most_tokens: int) -> str:
        """What those originals say that nobody quotes, in about as many tokens; the verbatim ones are quoted already.

        `NotWritten` for whatever a model or a network does, within a bound of its own.
        """
        ...

    async def close(self) -> None:
        """Later calls raise `NotWritten`, and so may those under way. Twice does no harm."""
        ...
