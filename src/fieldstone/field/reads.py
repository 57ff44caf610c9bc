"""What reads stand on: the published state, the store behind it, and what a read leaves behind."""

from collections.abc import Sequence

from fieldstone.core import clock
from fieldstone.core.agents import AgentFacts
from fieldstone.core.errors import AgentNotRegistered, StorageFull
from fieldstone.core.events import ConflictsListed, ContextAttuned
from fieldstone.core.requests import Message
from fieldstone.core.validate import Rules
from fieldstone.field.observe import Observing, RaisingClock
from fieldstone.field.state import FieldState
from fieldstone.field.writer import Writer
from fieldstone.ports.text_index import TextIndex
from fieldstone.ports.views import Views
from fieldstone.projections.columns import Snapshot
from fieldstone.projections.names import Names
from fieldstone.projections.text_follower import TailUnit, Terms, TextFollower
from fieldstone.retrieval.reading import Reading


class Reads:
    def __init__(
        self, state: FieldState, writer: Writer, follower: TextFollower, rules: Rules, *, log_reads: bool
    ) -> None:
        self._state = state
        self._writer = writer
        self._follower = follower
        self._rules = rules
        self._log_reads = log_reads
        self.reading = Reading(state.store, state.names)

    @property
    def epoch(self) -> int:
        return self._state.epoch

    @property
    def level(self) -> int:
        return self._rules.conformance_level

    @property
    def names(self) -> Names:
        return self._state.names

    @property
    def views(self) -> Views:
        return self._state.store.views

    @property
    def text_index(self) -> TextIndex:
        return self._state.store.text_index

    def active_agent(self, agent_id: str) -> AgentFacts:
        agent = self._state.agents.get(agent_id)
        if agent is None or not agent.active:
            raise AgentNotRegistered
        return agent

    def snapshot(self) -> Snapshot:
        return self._state.columns.snapshot(self._state.epoch)

    def tail(self) -> Sequence[TailUnit]:
        return self._follower.tail()

    def drafts(self, seqs: Sequence[int]) -> Terms:
        return self._follower.drafts(seqs)

    async def learn_epoch(self, message: Message) -> None:
        """A read raises the clock to what the caller knows, and no further."""
        clock.check_epoch(self._state.epoch, message.epoch, leap=self._rules.epoch_leap)
        if message.epoch > self._state.epoch:
            try:
                await self._writer.submit(RaisingClock(message))
            except StorageFull:
                pass  # reads go on: the answer tells an epoch that is on disk

    async def epoch_reached(self, epoch: int, timeout_ms: int) -> bool:
        return await self._state.epoch_reached(epoch, timeout_ms=timeout_ms)

    def leave(
        self, message: Message, event: ContextAttuned | ConflictsListed, *, hint: str | None = None, epoch: int
    ) -> None:
        if self._log_reads:
            self._writer.leave(Observing(message, event, hint, epoch))
