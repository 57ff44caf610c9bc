"""A compaction on record: who asked for it and for what, before anything is done, and what became of it."""

from collections.abc import Sequence

from fieldstone.core.agents import AgentFacts
from fieldstone.core.events import CompactionBegun, CompactionEnded, ReasonText
from fieldstone.core.replies import Reply
from fieldstone.core.requests import Compact, CompactFilter, Message
from fieldstone.core.text import CleanText
from fieldstone.core.vocabulary import FIELD_AGENT_ID
from fieldstone.field.compacting import Asked, Running
from fieldstone.field.compaction_answers import Remembered, remember
from fieldstone.field.desk import Desk, Draft
from fieldstone.field.idempotency import Fingerprint
from fieldstone.field.synthesis import field_agent
from fieldstone.field.work import NO_ANSWER, Wordless
from fieldstone.ports.replies import RememberedReply


class Beginning:
    """Who asked for it, and for what, goes on record before anything is done."""

    brings_news = True

    def __init__(
        self,
        message: Message,
        request: Compact,
        compaction_id: str,
        agent: AgentFacts,
        asked: Asked,
        fingerprint: Fingerprint | None,
    ) -> None:
        self.message = message
        self._fingerprint = fingerprint
        self._request = request
        self.id = compaction_id
        self._agent = agent
        self._asked = asked
        self.entry = 0

    def texts(self) -> Sequence[str]:
        return (self._request.reason or f"{self._request.strategy} by {self.message.agent_id}",)

    def names(self) -> Sequence[tuple[str, str]]:
        return ()

    async def decide(self, desk: Desk, clean: Sequence[CleanText]) -> tuple[Draft, Reply]:
        draft = desk.draft(self.message.epoch)
        draft.makes_room = self._request.strategy != "summarize"
        wanted = self._request.filter or CompactFilter()
        ancestor = None if wanted.ancestor_id is None else await desk.unit(wanted.ancestor_id)
        self.entry = draft.append(
            CompactionBegun(
                id=self.id,
                strategy=self._request.strategy,
                by=self._agent.number,
                epoch=self._asked.selection.epoch,
                max_age_epochs=wanted.max_age_epochs,
                session=self._asked.selection.session,
                types=wanted.types,
                statuses=wanted.status,
                ancestor=None if ancestor is None else ancestor.seq,
                verify=self._request.verify,
            ),
            ReasonText(clean[0]),
        )
        if self._fingerprint is not None:  # from now on the same message is this compaction, whatever becomes of it
            desk.remember(remember(self._fingerprint, Remembered(self.id, 0), draft.at_ms))
        return draft, NO_ANSWER


class ByField:
    """A retention policy or a memory's host asks for it, in the Field's own voice: nobody else is there when it is due.

    `policy` is a keyed digest of its name.
    """

    message = None
    brings_news = True

    def __init__(self, why: str, compaction_id: str, asked: Asked, *, policy: str | None = None) -> None:
        self._why = why
        self._policy = policy
        self.id = compaction_id
        self._asked = asked
        self.entry = 0

    def texts(self) -> Sequence[str]:
        return (self._why, FIELD_AGENT_ID, FIELD_AGENT_ID)

    def names(self) -> Sequence[tuple[str, str]]:
        return ()

    async def decide(self, desk: Desk, clean: Sequence[CleanText]) -> tuple[Draft, Reply]:
        reason, name, role = clean
        draft, wanted = desk.draft(desk.epoch), self._asked.selection
        by, _ = await field_agent(draft, desk, name, role)
        self.entry = draft.append(
            CompactionBegun(
                id=self.id,
                strategy=wanted.strategy,
                by=by,
                epoch=wanted.epoch,
                max_age_epochs=wanted.max_age_epochs,
                session=wanted.session,
                types=None if wanted.types is None else tuple(wanted.types),
                statuses=None if wanted.statuses is None else tuple(wanted.statuses),
                verify=self._asked.verify,
                policy=self._policy,
                before=wanted.before,
                beyond_newest=wanted.beyond_newest,
                group_units=self._asked.group_units if self._policy is None else None,
                output_bytes=self._asked.output_bytes,
                deletes=self._asked.deletes,
            ),
            ReasonText(reason),
        )
        return draft, NO_ANSWER


class Ending(Wordless):
    def __init__(self, running: Running, remembered: RememberedReply | None) -> None:
        self._running = running
        self._remembered = remembered

    async def decide(self, desk: Desk, clean: Sequence[CleanText]) -> tuple[Draft, Reply]:
        running, draft = self._running, desk.quiet_draft(desk.epoch)
        draft.makes_room = True
        draft.append(
            CompactionEnded(
                compaction=running.entry,
                state=running.state,
                units=running.done,
                syntheses=len(running.syntheses),
                bytes=running.bytes,
            )
        )
        if self._remembered is not None:
            desk.remember(self._remembered)
        return draft, NO_ANSWER
