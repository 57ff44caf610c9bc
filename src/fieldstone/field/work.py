"""A state-changing request on its way to the log."""

from collections.abc import Sequence
from typing import Protocol

from fieldstone.core.replies import Reply
from fieldstone.core.text import CleanText
from fieldstone.field.desk import Desk, Draft


class Work(Protocol):
    """First its texts are cleaned, then it decides, then it is written. It sees clean text only."""

    def texts(self) -> Sequence[str]:
        """Every text from outside that it brings, in an order of its own."""
        ...

    def names(self) -> Sequence[tuple[str, str]]:
        """Ids that the caller chose, each with its kind: refused where they hold a secret, never rewritten."""
        ...

    async def decide(self, desk: Desk, clean: Sequence[CleanText]) -> tuple[Draft, Reply]:
        """The clean texts come in the order of `texts()`, then of `names()`. Raises to refuse; nothing remains."""
        ...
