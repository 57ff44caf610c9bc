"""What a field holds in memory while it is open: all of it is read back from the store when it opens."""

import asyncio
from collections import deque
from collections.abc import Collection, Sequence
from typing import Final

import numpy as np

from fieldstone.core.agents import AgentFacts
from fieldstone.core.events import AgentTexts, decode_entry, decode_texts
from fieldstone.field.recent import RecentReads
from fieldstone.ports.log import Head
from fieldstone.ports.store import Store
from fieldstone.ports.views import Change, DropGuard, KeepHint, PutAgent, PutConflict, PutEntry, PutGuard, PutUnit
from fieldstone.projections.columns import UnitColumns
from fieldstone.projections.names import Names
from fieldstone.projections.relations import Relations
from fieldstone.projections.sessions import Sessions

LOAD_BATCH_UNITS: Final = 2_000


class FieldState:
    """The published state: what is committed. Only the writer changes it, after a commit."""

    def __init__(self, store: Store, *, cross_session: bool = False) -> None:
        self.store = store
        self.cross_session = cross_session
        self.names = Names(store.views, store.texts, store.digest_key)
        self.agents: dict[str, AgentFacts] = {}
        self.columns = UnitColumns()
        self.relations = Relations()
        self.sessions = Sessions()
        self.recent = RecentReads()
        self.guards: set[PutGuard] = set()
        self.memories: set[int] = set()  # sessions that are memories of the OpenWOP host
        self.rewriting = asyncio.Lock()  # whoever moves or rewrites stored texts: a sweep, or a step of a compaction
        self._disputed: set[int] = set()
        self._disputes: set[tuple[int, int]] = set()
        self.hints: deque[int] = deque()
        self.shown: dict[int, frozenset[int]] = {}  # the units that a read with a kept hint returned, if it was asked
        self.head = Head(0, b"")
        self.epoch = 0
        self._epoch_waiters: list[tuple[int, asyncio.Future[None]]] = []
        self._moved = asyncio.Event()  # the log has grown; each time another one

    @classmethod
    async def load(cls, store: Store, *, cross_session: bool = False) -> "FieldState":
        state = cls(store, cross_session=cross_session)
        await state.reload()
        return state

    async def reload(self) -> None:
        head, epoch = await self.store.log.head(), 0
        if head.seq:
            last = (await self.store.log.read(after=head.seq - 1, limit=1))[0]
            # Epochs never fall along the log, so the last entry has the clock.
            epoch = decode_entry(last.body).epoch
        hints = deque(await self.store.views.hints())
        columns = await self._load_columns()
        relations = Relations(await self.store.views.relations())
        sessions = Sessions(await self.store.views.members())
        guards = set(await self.store.views.guards())
        memories = set(await self.store.views.memories())
        disputes = {_pair(row.unit_a, row.unit_b) for row in await self.store.views.conflicts()}
        recent = await RecentReads.read_back(self.store.log, head.seq)
        await self._load_agents()
        # All of it is read: a store that cannot be read leaves what was published.
        self.head, self.hints, self.columns, self.relations = head, hints, columns, relations
        self.sessions, self._disputes, self.recent, self.guards = sessions, disputes, recent, guards
        self.memories = memories
        self._disputed = {unit for pair in disputes for unit in pair}
        self.publish_epoch(epoch)

    async def absorb(self, changes: Sequence[Change], head: Head, epoch: int) -> None:
        """Entries came in that no desk decided."""
        self.head = head
        self.columns.apply(changes)
        self.note(changes)
        self.hints.extend(change.seq for change in changes if isinstance(change, KeepHint))
        if any(isinstance(change, PutAgent) for change in changes):
            await self._load_agents()
        self.publish_epoch(epoch)

    def note(self, changes: Sequence[Change]) -> None:
        """Changes are on disk: relations, members and conflicts among them count from now on."""
        others = [change for change in changes if type(change) is not PutUnit]  # nearly all are new units
        self.relations.apply(others)
        self.sessions.apply(others)
        for change in others:
            if isinstance(change, PutConflict):
                self._disputes.add(_pair(change.row.unit_a, change.row.unit_b))
                self._disputed.update((change.row.unit_a, change.row.unit_b))
            elif isinstance(change, PutEntry):
                self.memories.add(change.row.session)
            elif isinstance(change, PutGuard):
                self.guards.add(change)
            elif isinstance(change, DropGuard):
                self.guards.discard(PutGuard(change.unit, change.guard))

    def had_a_dispute(self, unit: int) -> bool:
        """Whether there is a conflict on record that the unit is a side of."""
        return unit in self._disputed

    def in_dispute(self, unit: int, other: int) -> bool:
        """Whether there is a conflict of the two on record, whatever became of it."""
        return _pair(unit, other) in self._disputes

    def hidden_from(self, agents: Collection[int]) -> frozenset[int]:
        """The sessions that these agents do not see into, unless the field lets everyone see across sessions."""
        return frozenset() if self.cross_session else self.sessions.hidden_from(agents)

    def publish_epoch(self, epoch: int) -> None:
        self.epoch = epoch
        self._moved.set()
        self._moved = asyncio.Event()
        for waiter in [waiter for waiter in self._epoch_waiters if waiter[0] <= epoch]:
            self._epoch_waiters.remove(waiter)
            if not waiter[1].done():
                waiter[1].set_result(None)

    async def passed(self, seq: int) -> None:
        """Return when the log has come further than this entry."""
        while self.head.seq <= seq:
            await self._moved.wait()

    async def epoch_reached(self, epoch: int, *, timeout_ms: int) -> bool:
        if self.epoch >= epoch:
            return True
        waiter = (epoch, asyncio.get_running_loop().create_future())
        self._epoch_waiters.append(waiter)
        try:
            await asyncio.wait_for(waiter[1], timeout_ms / 1e3)
        except TimeoutError:
            return False
        finally:
            if waiter in self._epoch_waiters:
                self._epoch_waiters.remove(waiter)
        return True

    async def reload_names(self) -> None:
        """Texts of names or roles were replaced: nothing that was read of the old ones counts any more."""
        self.names.forget()
        await self._load_agents()

    async def _load_agents(self) -> None:
        agents: dict[str, AgentFacts] = {}
        rows = await self.store.views.agents()
        texts = await self.store.texts.get([row.registration for row in rows])
        for row in rows:
            name = await self.names.name(row.agent)
            self.names.learn("agent", name, row.agent)
            stored = texts.get(row.registration)
            told = decode_texts(stored.body, AgentTexts) if stored else None
            agents[name] = AgentFacts(
                id=name,
                number=row.agent,
                registration=row.registration,
                status=row.status,
                authority=row.authority,
                role=told.role if told else "",
                interests=told.interests if told else (),
                credential=row.credential,
            )
        self.agents = agents

    async def _load_columns(self) -> UnitColumns:
        columns = UnitColumns()
        committed = [np.empty(0, np.int64)]
        batch = await self.store.views.unit_columns(after=0, limit=LOAD_BATCH_UNITS)
        while len(batch.seq):
            columns.extend(batch)
            is_draft = np.asarray([mode == "draft" for mode in batch.mode])
            committed.append(np.where(is_draft, 0, np.maximum(batch.seq, batch.committed_seq)))
            batch = await self.store.views.unit_columns(after=int(batch.seq[-1]), limit=LOAD_BATCH_UNITS)
        columns.join_all(np.concatenate(committed))
        return columns


def _pair(unit: int, other: int) -> tuple[int, int]:
    return (unit, other) if unit < other else (other, unit)
