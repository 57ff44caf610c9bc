"""The entries of an OpenWOP memory: put, listed, found, taken away. A memory is a session that the host alone uses."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from fieldstone.core.access import Caller
from fieldstone.core.agents import AgentFacts
from fieldstone.core.errors import Forbidden
from fieldstone.core.events import EntryTexts, UnitTexts, decode_texts
from fieldstone.core.requests import Attune, Scope
from fieldstone.field.compact import Compactions
from fieldstone.field.putting import ROLE, NewEntry, Putting, host_agent, session_of
from fieldstone.field.ranking import rank
from fieldstone.field.reads import Reads
from fieldstone.field.state import FieldState
from fieldstone.field.writer import Writer
from fieldstone.ports.views import EntryRow
from fieldstone.ports.world import Clock, Ids

PAGE_ENTRIES: Final = 200
SWEPT_AT_ONCE: Final = 100
RUN_BYTES: Final = 8
NO_TEXTS: Final = EntryTexts()


class Moment(Struct, frozen=True):
    """When a run began: it sees what was there then, and what it wrote itself."""

    seq: int
    run: str


class KeptEntry(Struct, frozen=True):
    row: EntryRow
    id: str
    unit_id: str
    type: str
    content: str
    tags: tuple[str, ...]
    at_ms: int
    node_id: str | None = None
    agent_id: str | None = None

    @property
    def is_output(self) -> bool:
        """Made by a compaction."""
        return self.type == "synthesis"


class Entries:
    """`shared`: every agent of the tenant sees what is in memories."""

    def __init__(
        self,
        state: FieldState,
        writer: Writer,
        reads: Reads,
        compactions: Compactions,
        clock: Clock,
        ids: Ids,
        *,
        shared: bool,
    ) -> None:
        self._state = state
        self._writer = writer
        self._reads = reads
        self._compactions = compactions
        self._clock = clock
        self._ids = ids
        self.shared = shared

    @property
    def seal_key(self) -> bytes:
        """For seals that only this field can make."""
        return self._state.store.digest_key

    def begin(self) -> Moment:
        """A run begins now."""
        return Moment(self._state.head.seq, self._ids.salt()[:RUN_BYTES].hex())

    async def put(self, caller: Caller, memory: str, entries: Sequence[NewEntry]) -> Sequence[KeptEntry]:
        """All of them or none. They are on disk when it returns."""
        work = Putting(caller, memory, entries, self._ids, shared=self.shared)
        await self._writer.submit(work)
        rows = await self._state.store.views.entries_of(work.units)
        return await self.told([rows[unit] for unit in work.units])

    async def session(self, memory: str) -> int | None:
        return await self._state.names.number("session", session_of(memory))

    async def memories(self) -> dict[str, int]:
        """How many entries each memory lists."""
        counted = await self._state.store.views.memories()
        named = {await self._state.names.name(session): count for session, count in counted.items()}
        return {name.removeprefix(session_of("")): count for name, count in named.items()}

    async def get(self, memory: str, entry_id: str, moment: Moment | None = None) -> KeptEntry | None:
        """What a compaction made is found by its id also after it was compacted itself."""
        row = await self.find(memory, entry_id)
        if row is not None and not await self._is_got(row, moment):
            row = await self._version(row, moment)
        told = await self.told([row]) if row is not None else ()
        return told[0] if told else None

    async def list(
        self, memory: str, *, limit: int | None, tag: str | None = None, moment: Moment | None = None
    ) -> Sequence[KeptEntry]:
        """Newest first."""
        found: list[KeptEntry] = []
        async for page in self.pages(memory, limit, tag=tag, moment=moment):
            found += page
            if limit is not None and len(found) >= limit:
                return found[:limit]
        return found

    async def ranked(
        self, caller: Caller, memory: str, query: str, *, tag: str | None = None, moment: Moment | None = None
    ) -> Sequence[KeptEntry]:
        """The ones that matter most to the question first, as ATTUNE would bring them."""
        found = {each.row.unit: each for each in await self.list(memory, limit=None, tag=tag, moment=moment)}
        units = self._reads.snapshot()
        mask = np.isin(units.seq, np.fromiter(found, np.int64, len(found)))
        request = Attune(Scope(ROLE, max(1, len(found)), include_own=True, include_archived=True), query)
        host = AgentFacts(host_agent(caller), 0, 0, "idle", caller.authority, ROLE, ())
        ranking = await rank(self._reads, host, request, units, mask, frozenset())
        rows = np.flatnonzero(mask)
        best_first = np.lexsort((-units.seq[rows], -ranking.scores.total[rows]))
        return [found[int(seq)] for seq in units.seq[rows[best_first]]]

    async def pages(
        self, memory: str, limit: int | None, *, tag: str | None = None, moment: Moment | None = None
    ) -> AsyncIterator[Sequence[KeptEntry]]:
        session = await self.session(memory)
        if session is None:
            return
        digest = None if tag is None else self._state.names.digest("tag", tag)
        size = PAGE_ENTRIES if limit is None else max(1, min(limit, PAGE_ENTRIES))
        before: int | None = None
        views = self._state.store.views
        while rows := await views.entries(session, before=before, limit=size, tag=digest, every=moment is not None):
            yield await self.told([row for row in rows if self._is_seen(row, moment)])
            before = rows[-1].unit
            await asyncio.sleep(0)  # a memory may be long, and others have questions, too

    async def listed(self, memory: str) -> Sequence[tuple[EntryRow, bool]]:
        """What the memory lists, newest first, and whether a compaction made it; without a text being read."""
        session = await self.session(memory)
        found: list[EntryRow] = []
        before = self._state.head.seq + 1  # what lies behind is on disk at most, and in no column yet
        views = self._state.store.views
        while session is not None and (
            rows := await views.entries(session, before=before, limit=PAGE_ENTRIES, every=False)
        ):
            found += [row for row in rows if self._is_seen(row, None)]
            before = rows[-1].unit
            await asyncio.sleep(0)
        units = self._state.columns.snapshot(self._state.epoch)
        at = np.searchsorted(units.seq, np.fromiter((row.unit for row in found), np.int64, len(found)))
        made = [units.types[code] == "synthesis" for code in units.type[at].tolist()]
        return list(zip(found, made, strict=True))

    async def delete(self, caller: Caller, memory: str, entry_id: str) -> bool:
        """Its text is gone for good, and with it what it was made from."""
        row = await self.find(memory, entry_id)
        if row is None or not (await self._is_got(row, None) or await self._gave_way(row)):
            return False
        earlier = [] if row.digest is None else await self._labelled(row.session, row.digest)
        units = {row.unit, *self._state.relations.originals_of(row.unit), *earlier}
        if units & {guard.unit for guard in self._state.guards}:
            raise Forbidden(
                "It is held or pinned, or what it was made from is: no deletion touches it until that is lifted.",
                suggested_action="Have the hold or pin lifted first.",
            )
        await self._compactions.erase(sorted(units), caller.credential)
        return True

    async def forget(self, caller: Caller, memory: str, *, tag: str | None = None, source: str | None = None) -> int:
        """Everything under a tag, or of one who wrote it (an agent or a node), archived or not; how many went."""
        session = await self.session(memory)
        if session is None:
            return 0
        digest = self._state.names.digest("tag", tag) if tag is not None else self._source(source or "")
        found = await self._labelled(session, digest)
        rows = await self._state.store.views.units(found)
        # A summary bears the tags of its sources: it goes, or is made anew from the rest, with those that go.
        return await self._erase([unit for unit in found if rows[unit].type != "synthesis"], caller.credential)

    async def drop_expired(self) -> int:
        """Entries past their time are not shown; now they are gone, too."""
        gone = 0
        views = self._state.store.views
        guards = {guard.unit for guard in self._state.guards}  # held ones stay, and hide none behind them
        while rows := await views.expired_entries(self._clock.now_ms(), limit=SWEPT_AT_ONCE + len(guards)):
            erased = await self._compactions.erase([row.unit for row in rows], None)
            gone += erased
            if not erased:  # they are held: whoever lifts the hold lets them go
                break
        return gone

    async def find(self, memory: str, entry_id: str) -> EntryRow | None:
        """By an id of its own, or its unit's."""
        session = await self.session(memory)
        if session is None:
            return None
        views = self._state.store.views
        row = await views.entry(session, self._state.names.digest("entry", entry_id))
        if row is not None:
            return row
        unit = await views.unit(entry_id)
        row = None if unit is None else (await views.entries_of([unit.seq])).get(unit.seq)
        return row if row is not None and row.session == session and row.digest is None else None

    async def told(self, rows: Sequence[EntryRow]) -> Sequence[KeptEntry]:
        """With their texts; one whose text is gone is left out."""
        units = await self._state.store.views.units([row.unit for row in rows])
        texts = await self._state.store.texts.get([seq for row in rows for seq in (row.unit, row.written)])
        found: list[KeptEntry] = []
        for row in rows:
            if row.unit not in texts:
                continue
            unit = decode_texts(texts[row.unit].body, UnitTexts)
            beside = decode_texts(texts[row.written].body, EntryTexts) if row.written in texts else NO_TEXTS
            recorded = units[row.unit]
            found.append(
                KeptEntry(
                    row,
                    beside.id or recorded.id,
                    recorded.id,
                    recorded.type,
                    unit.content,
                    beside.tags,
                    recorded.at_ms,
                    beside.node_id,
                    beside.agent_id,
                )
            )
        return found

    async def _labelled(self, session: int, digest: bytes) -> Sequence[int]:
        """Every entry that bears it and was not purged: listed, archived, or replaced."""
        found: list[int] = []
        before: int | None = None
        views = self._state.store.views
        while rows := await views.entries(session, before=before, limit=PAGE_ENTRIES, tag=digest, every=True):
            found += [row.unit for row in rows]
            before = rows[-1].unit
        return found

    async def _erase(self, units: Sequence[int], credential: str | None) -> int:
        erased = 0
        for start in range(0, len(units), SWEPT_AT_ONCE):
            erased += await self._compactions.erase(units[start : start + SWEPT_AT_ONCE], credential)
        return erased

    def _source(self, source: str) -> bytes:
        return self._state.names.digest("source", source)

    async def _is_got(self, row: EntryRow, moment: Moment | None) -> bool:
        """What is listed, and what a compaction made, as long as it is there."""
        if self._is_seen(row, moment):
            return True
        was_there = moment is None or row.unit <= moment.seq or row.run == moment.run
        return was_there and await self._is_output(row)

    async def _gave_way(self, row: EntryRow) -> bool:
        """To another entry, in a consolidation; its text is still there, and whoever knows its id may delete it."""
        unit = (await self._state.store.views.units([row.unit]))[row.unit]
        return row.gone_seq is not None and unit.purged_seq is None

    async def _version(self, row: EntryRow, moment: Moment | None) -> EntryRow | None:
        """The one that had the id when the run began."""
        if moment is None or row.digest is None:
            return None
        units = await self._labelled(row.session, row.digest)
        rows = await self._state.store.views.entries_of(units)
        return next((rows[unit] for unit in units if self._is_seen(rows[unit], moment)), None)

    async def _is_output(self, row: EntryRow) -> bool:
        """Made by a compaction, and still there."""
        if row.gone_seq is not None or self._is_expired(row):
            return False
        return (await self._state.store.views.units([row.unit]))[row.unit].type == "synthesis"

    def _is_expired(self, row: EntryRow) -> bool:
        return row.expires_ms is not None and row.expires_ms <= self._clock.now_ms()

    def _is_seen(self, row: EntryRow, moment: Moment | None) -> bool:
        if self._is_expired(row):  # also in a snapshot: what is promised to be gone by then is not shown after
            return False
        if moment is None:
            return row.listed
        if row.run == moment.run:
            return row.gone_seq is None
        left = [seq for seq in (row.archived_seq, row.gone_seq) if seq is not None]
        return row.unit <= moment.seq and all(seq > moment.seq for seq in left)
