"""What reads leave behind: who was shown what, at which epoch; and a clock that a read has raised."""

from collections.abc import Sequence

from fieldstone.core.errors import AgentNotRegistered
from fieldstone.core.events import ClockRaised, ConflictsListed, ContextAttuned, HintText
from fieldstone.core.replies import Reply
from fieldstone.core.requests import Message
from fieldstone.core.text import CleanText
from fieldstone.field.desk import Desk, Draft
from fieldstone.field.work import NO_ANSWER, Wordless


class Observing:
    """A read's compact event. It joins the next group commit and never slows the answer."""

    brings_news = True

    def __init__(self, message: Message, event: ContextAttuned | ConflictsListed, hint: str | None, epoch: int) -> None:
        self.message = message
        self._event = event
        self._hint = hint
        self._epoch = epoch

    def texts(self) -> Sequence[str]:
        return () if self._hint is None else (self._hint,)

    def names(self) -> Sequence[tuple[str, str]]:
        return ()

    async def decide(self, desk: Desk, clean: Sequence[CleanText]) -> tuple[Draft, Reply]:
        if desk.agent(self.message.agent_id) is None:
            raise AgentNotRegistered
        draft = desk.quiet_draft(self._epoch)
        draft.append(self._event, HintText(clean[0]) if clean else None)
        return draft, NO_ANSWER


class RaisingClock(Wordless):
    """A later epoch that a read brought is on disk before the answer tells it on: a poller relies on it."""

    def __init__(self, message: Message) -> None:
        self.message = message
        self._epoch = message.epoch

    async def decide(self, desk: Desk, clean: Sequence[CleanText]) -> tuple[Draft, Reply]:
        draft = desk.quiet_draft(self._epoch)
        if draft.epoch > desk.epoch:
            draft.append(ClockRaised())
        return draft, NO_ANSWER
