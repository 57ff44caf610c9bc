"""The desk: where one group of requests is decided, on top of what is committed.

Requests of a group see what the ones before them decided, although nothing is written yet. A request that is refused
leaves nothing: its draft is dropped. When the group is on disk, the desk's state is published; when the disk refuses,
the desk is dropped and nothing has happened.
"""

from collections.abc import Mapping, Sequence
from itertools import chain, islice
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from fieldstone.core import access, clock
from fieldstone.core.agents import AgentFacts
from fieldstone.core.chain import link, seal
from fieldstone.core.events import (
    AgentDeregistered,
    AgentRegistered,
    AgentTexts,
    AnyEvent,
    ContextAttuned,
    Entry,
    NameCoined,
    NameKind,
    NameText,
    TextBundle,
    UnitCommitted,
    UnitRecorded,
    UnitTexts,
    decode_entry,
    decode_texts,
    encode_entry,
    encode_texts,
)
from fieldstone.core.limits import KEPT_HINTS
from fieldstone.core.requests import Message
from fieldstone.core.text import CleanText
from fieldstone.core.vocabulary import Guard
from fieldstone.field.state import FieldState
from fieldstone.ports.log import Head, StoredEntry, StoredText
from fieldstone.ports.replies import RememberedReply
from fieldstone.ports.store import Commit
from fieldstone.ports.views import (
    ArchiveUnits,
    Change,
    CommitUnit,
    ConflictRow,
    DropGuard,
    DropMember,
    EntryRow,
    KeepHint,
    PurgeUnits,
    PutConflict,
    PutGuard,
    PutMember,
    PutUnit,
    ResolveConflict,
    RestoreUnits,
    SetUnitStatus,
    UnitRow,
)
from fieldstone.ports.world import Ids
from fieldstone.projections.sessions import Sessions
from fieldstone.projections.views import project


class Decided(Struct, frozen=True, gc=False):
    event: AnyEvent
    texts: TextBundle | None
    projected: TextBundle | None


class Draft(Struct, eq=False):
    """What one request decides, as long as it has not decided to the end."""

    desk: "Desk"
    first_seq: int
    epoch: int
    at_ms: int
    events: list[Decided] = []
    coined: dict[tuple[NameKind, str], int] = {}
    replaced: list[StoredText] = []
    erased: list[int] = []  # texts that leave the store's hot part
    makes_room: bool = False  # it may use what is kept free for this on a full store
    units: list[tuple[int, bool]] = []  # those that come with it, and whether they are new

    def append(self, event: AnyEvent, texts: TextBundle | None = None, *, projected: TextBundle | None = None) -> int:
        """The number of the entry that this will be. `projected`: texts that views are made from, and that lie beside
        another entry."""
        self.events.append(Decided(event, texts, projected or texts))
        seq = self.first_seq + len(self.events) - 1
        if isinstance(event, UnitRecorded):
            self.units.append((seq, True))
        elif isinstance(event, UnitCommitted):
            self.units.append((event.unit, False))
        return seq

    async def number_of(self, kind: NameKind, name: CleanText) -> int:
        """The number that stands for a name, coined if it is new."""
        number = self.desk.known_number(kind, name) or self.coined.get((kind, name))
        if number is None:
            number = await self.desk.number(kind, name)
        if number is None:
            number = self.coined[kind, name] = self.append(NameCoined(of=kind), NameText(name))
        return number

    def replace_text(self, seq: int, texts: TextBundle) -> str:
        """Another bundle takes the place of the one beside an entry. Its hash."""
        stored, text_hash = self.desk.sealed(seq, texts)
        self.replaced.append(stored)
        return text_hash


class Desk:
    """`known` are the answers that the store remembers of this group's messages."""

    def __init__(
        self, state: FieldState, ids: Ids, known: Mapping[bytes, RememberedReply], *, at_ms: int, epoch_leap: int
    ) -> None:
        self._state = state
        self._ids = ids
        self._at_ms = at_ms
        self._epoch_leap = epoch_leap
        self._seq, self._hash = state.head
        self.epoch = state.epoch
        self._entries: list[StoredEntry] = []
        self._texts: list[StoredText] = []
        self._replaced: list[StoredText] = []
        self._moved: list[int] = []
        self._makes_room: bool | None = None  # all of the group, or nobody: a RECORD beside it must not use that room
        self._changes: list[Change] = []
        self._new_hints: list[int] = []
        self._erased: list[int] = []
        self._known = known
        self._replies: dict[bytes, RememberedReply] = {}
        # What this group has read or changed so far, on top of the store: a row that is changed was read before.
        self._agents: dict[str, AgentFacts] = {}
        self._numbers: dict[tuple[NameKind, str], int] = {}
        self._names: dict[int, str] = {}
        self._units: dict[int, UnitRow] = {}
        self._unit_seqs: dict[str, int] = {}
        self._recorded: dict[int, UnitRecorded] = {}
        self._conflicts: dict[int, ConflictRow] = {}
        self._guards: dict[tuple[int, Guard], bool] = {}
        self._sessions: Sessions | None = None  # None: this group has changed no membership
        self.unit_texts: dict[int, UnitTexts] = {}

    # --- reading ------------------------------------------------------------------------------------------------------

    def agent(self, agent_id: str) -> AgentFacts | None:
        return self._agents.get(agent_id) or self._state.agents.get(agent_id)

    def speaker(self, message: Message) -> AgentFacts:
        """The agent that sent the message."""
        return access.speaker(self.agent(message.agent_id), message.caller)

    def hides(self, unit: UnitRow, agent: AgentFacts) -> bool:
        """Whether it is another's draft, or in a closed session of which the agent is no member."""
        if unit.purged_seq is not None or (unit.mode == "draft" and unit.agent != agent.number):
            return True
        return self.is_closed_to(unit.session, agent)

    def is_guarded(self, unit: int) -> bool:
        """Whether it is held or pinned."""
        if not self._guards and not self._state.guards:  # a compaction asks for every unit
            return False
        return self.has_guard(unit, "hold") or self.has_guard(unit, "pin")

    def has_guard(self, unit: int, guard: Guard) -> bool:
        here = self._guards.get((unit, guard))
        return PutGuard(unit, guard) in self._state.guards if here is None else here

    def is_to_go(self, unit: UnitRow) -> bool:
        """What was archived, purged or guarded since it was planned stays as it is."""
        return unit.archived_epoch is None and unit.purged_seq is None and not self.is_guarded(unit.seq)

    def is_closed_to(self, session: int | None, agent: AgentFacts) -> bool:
        sessions = self._sessions or self._state.sessions
        return not self._state.cross_session and sessions.is_closed_to(session, agent.number)

    def reply(self, key: bytes) -> RememberedReply | None:
        return self._replies.get(key) or self._known.get(key)

    def remember(self, reply: RememberedReply) -> None:
        self._replies[reply.key] = reply

    def known_number(self, kind: NameKind, name: str) -> int | None:
        """As far as it is in memory."""
        return self._numbers.get((kind, name)) or self._state.names.cached_number(kind, name)

    async def number(self, kind: NameKind, name: str) -> int | None:
        return self.known_number(kind, name) or await self._state.names.number(kind, name)

    async def unit(self, unit_id: str) -> UnitRow | None:
        seq = self._unit_seqs.get(unit_id)
        if seq is not None:
            return self._units[seq]
        row = await self._state.store.views.unit(unit_id)
        return self._units.setdefault(row.seq, row) if row else None

    async def unit_at(self, seq: int) -> UnitRow:
        return (await self.units_at([seq]))[0]

    async def units_at(self, seqs: Sequence[int]) -> list[UnitRow]:
        if unread := [seq for seq in seqs if seq not in self._units]:
            self._units.update(await self._state.store.views.units(unread))
        return [self._units[seq] for seq in seqs]

    def units_of(self, agent: int, by: AgentFacts) -> int:
        """How many units of the one agent the other sees."""
        hidden = self._state.hidden_from([by.number])
        committed = [row for row in self._units.values() if row.agent == agent and row.mode == "committed"]
        new = sum(row.seq in self._recorded and row.session not in hidden for row in committed)
        return self._state.columns.committed_by(agent, hidden) + new

    def units_by(self, credential: str | None) -> int:
        """How many units the agents of a credential have recorded, drafts included."""
        agents = {**self._state.agents, **self._agents}.values()
        numbers = {agent.number for agent in agents if agent.credential == credential}
        new = sum(event.agent in numbers for event in self._recorded.values())
        return new + sum(self._state.columns.units_by(number) for number in numbers)

    async def texts_of(self, seq: int) -> UnitTexts | None:
        if seq in self.unit_texts:
            return self.unit_texts[seq]
        stored = (await self._state.store.texts.get([seq])).get(seq)
        return decode_texts(stored.body, UnitTexts) if stored else None

    async def entry(self, session: int, entry_id: str) -> EntryRow | None:
        """The memory's entry that was given this id, as the store has it: whoever gives ids writes one at a time."""
        return await self._state.store.views.entry(session, self._state.names.digest("entry", entry_id))

    async def entries_of(self, units: Sequence[int]) -> dict[int, EntryRow]:
        return await self._state.store.views.entries_of(units)

    async def has_text(self, seq: int) -> bool:
        """Whether the bundle of an earlier entry is still there."""
        return bool(await self._state.store.texts.get([seq]))

    async def recorded(self, seq: int) -> UnitRecorded:
        """The event that brought a unit."""
        if seq in self._recorded:
            return self._recorded[seq]
        event = decode_entry((await self._state.store.log.read(after=seq - 1, limit=1))[0].body).event
        if not isinstance(event, UnitRecorded):
            raise TypeError(f"entry {seq} brought no unit")
        return event

    async def open_conflicts_of(self, unit: int) -> Sequence[ConflictRow]:
        for row in await self._state.store.views.open_conflicts_of(unit):
            self._conflicts.setdefault(row.seq, row)
        rows = self._conflicts.values()
        return [row for row in rows if row.status != "resolved" and unit in (row.unit_a, row.unit_b)]

    def had_a_dispute(self, unit: int) -> bool:
        here = any(unit in (row.unit_a, row.unit_b) for row in self._conflicts.values())
        return here or self._state.had_a_dispute(unit)

    async def conflicts(self) -> Sequence[ConflictRow]:
        """All of them, those of this group included."""
        known = {row.seq: row for row in await self._state.store.views.conflicts()}
        return list({**known, **self._conflicts}.values())

    def hints(self) -> list[int]:
        """The reads whose hints are kept."""
        return [*self._state.hints, *self._new_hints]

    async def shown_by(self, read: int) -> frozenset[int]:
        """The units that a read returned. Every batch of a purge asks, and a read does not change."""
        known = self._state.shown.get(read)
        if known is None:
            event = decode_entry((await self._entry(read)).body).event
            shown = event.shown if isinstance(event, ContextAttuned) else ()
            known = self._state.shown[read] = frozenset(unit for unit, _ in shown)
        return known

    async def _entry(self, seq: int) -> StoredEntry:
        for entry in self._entries:
            if entry.seq == seq:
                return entry
        return (await self._state.store.log.read(after=seq - 1, limit=1))[0]

    def in_dispute(self, unit: int, other: int) -> bool:
        here = any({unit, other} == {row.unit_a, row.unit_b} for row in self._conflicts.values())
        return here or self._state.in_dispute(unit, other)

    # --- deciding -----------------------------------------------------------------------------------------------------

    def draft(self, received_epoch: int) -> Draft:
        """A step of the clock for a request that changes something."""
        clock.check_epoch(self.epoch, received_epoch, leap=self._epoch_leap)
        return Draft(self, self._seq + 1, clock.after_write(self.epoch, received_epoch), self._at_ms)

    def quiet_draft(self, epoch: int) -> Draft:
        """For what a read leaves behind: no step of the clock, at most a raise."""
        return Draft(self, self._seq + 1, clock.after_read(self.epoch, epoch), self._at_ms)

    def accept(self, draft: Draft) -> None:
        if not draft.events:
            return
        for decided in draft.events:
            self._append(decided, draft)
        self._replaced += draft.replaced
        self._moved += draft.erased
        self._makes_room = draft.makes_room and self._makes_room is not False
        self.epoch = draft.epoch

    def commit(self) -> Commit:
        replies = list(self._replies.values())
        erased = [*self._hints_to_erase(), *self._moved]
        return Commit(
            self._entries,
            self._texts,
            self._changes,
            replies,
            erased,
            self._replaced,
            makes_room=self._makes_room is True,
        )

    def publish(self) -> None:
        """The group is on disk: what it changed is now what is."""
        state = self._state
        state.head = Head(self._seq, self._hash)
        state.agents.update(self._agents)
        for (kind, name), number in self._numbers.items():
            state.names.learn(kind, name, number)
        state.columns.apply(self._changes)
        state.note(self._changes)
        state.hints.extend(self._new_hints)
        for _ in self._erased:
            state.shown.pop(state.hints.popleft(), None)
        if self._moved:
            for seq in set(self._moved).intersection(state.hints):
                state.hints.remove(seq)
                state.shown.pop(seq, None)
        state.publish_epoch(self.epoch)

    def sealed(self, seq: int, texts: TextBundle) -> tuple[StoredText, str]:
        """A bundle as it is stored, and the hash that proves it."""
        stored = StoredText(seq, self._ids.salt(), encode_texts(texts))
        return stored, seal(stored.salt, stored.body)

    def _append(self, decided: Decided, draft: Draft) -> None:
        seq = self._seq = self._seq + 1
        text_hash, texts = None, decided.texts
        if texts is not None:
            stored, text_hash = self.sealed(seq, texts)
            self._texts.append(stored)
        entry = Entry(seq, draft.epoch, draft.at_ms, decided.event, text_hash)
        body = encode_entry(entry)
        self._hash = link(self._hash, body)
        self._entries.append(StoredEntry(seq, body, self._hash))
        changes = project(entry, decided.projected, self._state.names.digest)
        self._changes += changes
        self._remember(entry, texts)
        for change in changes:
            self._overlay(change)

    def _remember(self, entry: Entry, texts: TextBundle | None) -> None:
        event = entry.event
        if isinstance(event, UnitRecorded) and isinstance(texts, UnitTexts):
            self._recorded[entry.seq] = event
            self.unit_texts[entry.seq] = texts
        elif isinstance(event, NameCoined) and isinstance(texts, NameText):
            self._numbers[event.of, texts.name] = entry.seq
            self._names[entry.seq] = texts.name
        elif isinstance(event, AgentRegistered) and isinstance(texts, AgentTexts):
            self._remember_agent(entry, event, texts)
        elif isinstance(event, AgentDeregistered):
            self._remember_departure(event)

    def _remember_agent(self, entry: Entry, event: AgentRegistered, texts: AgentTexts) -> None:
        name = self._agent_name(event.agent)
        self._agents[name] = AgentFacts(
            name, event.agent, entry.seq, "idle", event.authority, texts.role, tuple(texts.interests), event.credential
        )

    def _remember_departure(self, event: AgentDeregistered) -> None:
        known = self.agent(self._agent_name(event.agent))
        if known is not None:
            self._agents[known.id] = replace(known, status="offline")

    def _agent_name(self, number: int) -> str:
        if number in self._names:
            return self._names[number]
        return next(agent.id for agent in self._state.agents.values() if agent.number == number)

    def _overlay(self, change: Change) -> None:  # noqa: C901 (one case a change)
        match change:
            case PutUnit(row):
                self._units[row.seq] = row
                self._unit_seqs[row.id] = row.seq
            case SetUnitStatus(unit, status) if unit in self._units:
                self._units[unit] = self._units[unit]._replace(status=status)
            case CommitUnit(unit, epoch) if unit in self._units:
                self._units[unit] = self._units[unit]._replace(mode="committed", status="active", epoch=epoch)
            case ArchiveUnits(units, epoch):
                self._set(units, archived_epoch=epoch)
            case RestoreUnits(units):
                self._set(units, archived_epoch=None)
            case PurgeUnits(units, seq):
                self._set(units, purged_seq=seq)
            case PutMember() | DropMember():
                self._sessions = self._sessions or self._state.sessions.copy()
                self._sessions.apply([change])
            case PutGuard(unit, guard):
                self._guards[unit, guard] = True
            case DropGuard(unit, guard):
                self._guards[unit, guard] = False
            case PutConflict(conflict):
                self._conflicts[conflict.seq] = conflict
            case ResolveConflict(conflict=seq) if seq in self._conflicts:
                self._conflicts[seq] = self._conflicts[seq]._replace(status="resolved")
            case KeepHint(seq):
                self._new_hints.append(seq)
            case _:
                pass

    def _set(self, units: Sequence[int], **fields: Any) -> None:
        for unit in units:
            if unit in self._units:
                self._units[unit] = self._units[unit]._replace(**fields)

    def _hints_to_erase(self) -> Sequence[int]:
        excess = len(self._state.hints) + len(self._new_hints) - KEPT_HINTS
        if excess > 0:
            self._erased = list(islice(chain(self._state.hints, self._new_hints), excess))
        return self._erased
