"""What reads stand on: the published state, the store behind it, and what a read leaves behind."""

import functools
from collections.abc import Mapping, Sequence

from msgspec import UNSET, UnsetType

from fieldstone.core import access, clock
from fieldstone.core.access import Caller
from fieldstone.core.agents import AgentFacts
from fieldstone.core.errors import NotFound, StorageFull, UnitPurged
from fieldstone.core.events import (
    ConflictsListed,
    ContextAttuned,
    ReasonText,
    UnitsArchived,
    UnitsPurged,
    UnitTexts,
    decode_entry,
    decode_texts,
)
from fieldstone.core.replies import Lineage
from fieldstone.core.requests import Message
from fieldstone.core.units import DerivedFrom
from fieldstone.core.validate import Rules
from fieldstone.core.vocabulary import FIELD_AGENT_ID
from fieldstone.field.meanings import Meanings
from fieldstone.field.observe import Observing, RaisingClock
from fieldstone.field.sight import Sight
from fieldstone.field.state import FieldState
from fieldstone.field.writer import Writer
from fieldstone.ports.text_index import Postings, TextIndex, joined
from fieldstone.ports.tokens import TokenCounter
from fieldstone.ports.views import UnitRow, Views
from fieldstone.projections.columns import Snapshot
from fieldstone.projections.meaning import Meaning, Reach
from fieldstone.projections.names import Names
from fieldstone.projections.relations import Relations
from fieldstone.projections.text_follower import TailUnit, Terms, TextFollower
from fieldstone.projections.vector_index import Floats
from fieldstone.retrieval.reading import Reading, timestamp
from fieldstone.retrieval.score import Kept
from fieldstone.retrieval.words import STOP_WORDS, split


class Reads:
    def __init__(
        self,
        state: FieldState,
        writer: Writer,
        follower: TextFollower,
        meanings: Meanings,
        counter: TokenCounter,
        rules: Rules,
        *,
        log_reads: bool,
        weights: Mapping[str, float],
        vouch_authority: int = 0,
    ) -> None:
        self._state = state
        self._writer = writer
        self._follower = follower
        self._meanings = meanings
        self._rules = rules
        self._log_reads = log_reads
        self.counter = counter
        self.kept_factors: tuple[tuple[int, int, str], Kept] | None = None
        self.weights = weights
        self.vouch_authority = vouch_authority
        self.reading = Reading(state.store, state.names)

    @property
    def epoch(self) -> int:
        return self._state.epoch

    @property
    def level(self) -> int:
        return self._rules.conformance_level

    @property
    def extended(self) -> bool:
        """Whether the extended scope counts: a lowered level leaves it out."""
        return self._rules.extended_scope

    @property
    def meaning(self) -> Meaning | None:
        return self._meanings.meaning if self.extended else None

    async def reach(self, *, archived: bool) -> Reach | None:
        """The vectors that a request looks at; with `archived` also those in cold storage."""
        return await self._meanings.whole() if archived and self.extended else self.meaning

    @property
    def model_is_silent(self) -> bool:
        """A model is configured, but there is nothing to compare with: it has never answered, or not yet."""
        return self.extended and self._meanings.configured and self._meanings.meaning is None

    @property
    def narrator(self) -> int | None:
        """The Field's own agent, once it has spoken."""
        agent = self._state.agents.get(FIELD_AGENT_ID)
        return None if agent is None else agent.number

    @property
    def relations(self) -> Relations:
        return self._state.relations

    @property
    def names(self) -> Names:
        return self._state.names

    @property
    def views(self) -> Views:
        return self._state.store.views

    @property
    def text_index(self) -> TextIndex:
        return self._state.store.text_index

    def speaker(self, message: Message) -> AgentFacts:
        """The agent that sent the message."""
        return access.speaker(self._state.agents.get(message.agent_id), message.caller)

    def sight_of(self, agent: AgentFacts) -> Sight:
        return Sight(frozenset((agent.number,)), self._state.hidden_from((agent.number,)))

    def sight(self, caller: Caller) -> Sight:
        """What a request sees that names no agent: an operator all of it, others what their agents see."""
        if caller.sees_all:
            return Sight(None)
        agents = self._state.agents.values()
        numbers = frozenset(agent.number for agent in agents if caller.may_take(agent.id, agent.credential))
        return Sight(numbers, self._state.hidden_from(numbers))

    def snapshot(self) -> Snapshot:
        return self._state.columns.snapshot(self._state.epoch)

    async def embed(self, text: str) -> Floats | None:
        return await self._meanings.embed_query(text)

    def shown_to(self, agent: int) -> Sequence[int]:
        return self._state.recent.shown_to(agent)

    def agents_named(self, words: Sequence[str]) -> dict[int, tuple[str, ...]]:
        """The agents whose id stands among these words, each with the words of its id."""
        there = set(words)
        found = {}
        for agent_id, agent in self._state.agents.items():
            parts = words_of_id(agent_id)
            if there.issuperset(parts) and not STOP_WORDS.issuperset(parts):
                found[agent.number] = parts
        return found

    async def contents(self, units: Sequence[int]) -> dict[int, str]:
        stored = await self._state.store.texts.get(units)
        return {seq: decode_texts(each.body, UnitTexts).content for seq, each in stored.items()}

    async def search(
        self, queries: Sequence[Sequence[str]], *, most_postings: int, archived: bool
    ) -> Sequence[Postings]:
        """Where words stand; with `archived` also among what lies in cold storage."""
        hot = await self.text_index.search(queries, most_postings=most_postings)
        if not archived:
            return hot
        cold = await self._state.store.cold.index.search(queries, most_postings=most_postings)
        return [joined(*each) for each in zip(hot, cold, strict=True)]

    async def derived_from(self, row: UnitRow) -> DerivedFrom | UnsetType:
        """What a synthesis of the Field's own was made from."""
        originals = self._state.relations.elaborated_by(row.seq) if row.type == "synthesis" else ()
        field_agent = self._state.agents.get(FIELD_AGENT_ID)
        if not originals or field_agent is None or row.agent != field_agent.number:
            return UNSET
        agents = dict.fromkeys(self._state.columns.agents_at(self._state.columns.rows_of(originals)))
        return DerivedFrom(len(originals), tuple([await self.names.name(agent) for agent in agents]))

    async def lineage(self, row: UnitRow, sight: Sight) -> Lineage:
        relations = self._state.relations
        ids = [
            await self._ids(seqs, sight) for seqs in (relations.elaborated_by(row.seq), relations.elaborating(row.seq))
        ]
        return Lineage(row.id, *ids)

    async def _ids(self, units: Sequence[int], sight: Sight) -> tuple[str, ...]:
        rows = await self.views.units(units)
        return tuple(rows[seq].id for seq in units if seq in rows and sight.sees(rows[seq]))

    async def archived_by(self, compaction_id: str) -> list[int]:
        """The units that a compaction archived, as the log says."""
        found = [row for row in await self.views.compactions() if row.id == compaction_id]
        if not found:
            raise NotFound("There is no such compaction.", suggested_action="List the compactions.")
        units: list[int] = []
        at, end = found[0].seq, found[0].ended_seq or self._state.head.seq
        while at < end and (stored := await self._state.store.log.read(after=at, limit=1_000)):
            events = [decode_entry(each.body).event for each in stored]
            units += [
                unit
                for event in events
                if isinstance(event, UnitsArchived) and event.compaction == found[0].seq
                for unit in event.units
            ]
            at = stored[-1].seq
        return units

    async def tombstone(self, row: UnitRow) -> UnitPurged:
        """What is left of a purged unit: when it went, and why."""
        [stored] = await self._state.store.log.read(after=(row.purged_seq or 0) - 1, limit=1)
        entry = decode_entry(stored.body)
        compaction = entry.event.compaction if isinstance(entry.event, UnitsPurged) else None
        why = entry.seq if compaction is None else compaction
        told = (await self._state.store.texts.get([why])).get(why)
        reason = decode_texts(told.body, ReasonText).reason if told else ""
        tombstone = {"unit_id": row.id, "deleted_at": timestamp(entry.at_ms), "reason": reason}
        return UnitPurged(extra={"tombstone": tombstone})

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
        if isinstance(event, ContextAttuned):
            self._state.recent.note(event.agent, [seq for seq, _ in event.shown])
        if self._log_reads:
            self._writer.leave(Observing(message, event, hint, epoch))


@functools.lru_cache(100_000)
def words_of_id(agent_id: str) -> tuple[str, ...]:
    return tuple(split(agent_id))
