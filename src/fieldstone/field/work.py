"""A state-changing request on its way to the log."""

from collections.abc import Sequence
from typing import Final, Protocol

from fieldstone.core.replies import Done, Reply
from fieldstone.core.requests import Message
from fieldstone.core.text import CleanText
from fieldstone.field.desk import Desk, Draft

NO_ANSWER: Final = Done("", 0)  # of work that the Field does by itself: nobody waits for it


class Work(Protocol):
    """First its texts are cleaned, then it decides, then it is written. It sees clean text only.

    `message` is what somebody sent; None: the Field does it by itself.
    """

    @property
    def message(self) -> Message | None: ...

    @property
    def brings_news(self) -> bool:
        """Whether its texts are new to the Field. The policy to refuse secrets is about those; others are rewritten."""
        ...

    def texts(self) -> Sequence[str]:
        """Every text from outside that it brings, in an order of its own."""
        ...

    def names(self) -> Sequence[tuple[str, str]]:
        """Ids that the caller chose, each with its kind: refused where they hold a secret, never rewritten."""
        ...

    async def decide(self, desk: Desk, clean: Sequence[CleanText]) -> tuple[Draft, Reply]:
        """The clean texts come in the order of `texts()`, then of `names()`. Raises to refuse; nothing remains."""
        ...


class Wordless:
    """Work that brings no text from outside."""

    brings_news = False

    message: Message | None = None  # of whom it is, if somebody asked for it

    def texts(self) -> Sequence[str]:
        return ()

    def names(self) -> Sequence[tuple[str, str]]:
        return ()
