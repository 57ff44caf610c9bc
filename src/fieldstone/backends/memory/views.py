"""View rows in dictionaries."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Any, assert_never

from fieldstone.core.events import NameKind
from fieldstone.core.limits import DEFAULT_AUTHORITY
from fieldstone.core.vocabulary import ConflictStatus, FeedKind
from fieldstone.ports.views import (
    AgentRow,
    ArchiveUnits,
    Change,
    CommitUnit,
    CompactionRow,
    ConflictRow,
    DropGuard,
    DropMember,
    ElaborateUnits,
    EndCompaction,
    EntryRow,
    FeedRow,
    KeepHint,
    MarkEcho,
    MemberRow,
    NameRow,
    PurgeUnits,
    PutAgent,
    PutCompaction,
    PutConflict,
    PutEntry,
    PutFeed,
    PutGuard,
    PutMember,
    PutName,
    PutRelation,
    PutUnit,
    RelabelEntry,
    RelationRow,
    RemoveEntries,
    ReplaceName,
    ResolveConflict,
    RestoreUnits,
    ReturnEntries,
    SetUnitStatus,
    ShelveEntries,
    UnitBatch,
    UnitRow,
    unit_batch,
)


class MemoryViews:
    def __init__(self) -> None:
        self._names: dict[tuple[NameKind, bytes], NameRow] = {}
        self._agents: dict[int, AgentRow] = {}
        self._units: dict[int, UnitRow] = {}
        self._seqs_by_id: dict[str, int] = {}
        self._conflicts: dict[int, ConflictRow] = {}
        self._relations: dict[tuple[int, int], RelationRow] = {}
        self._members: set[MemberRow] = set()
        self._compactions: dict[int, CompactionRow] = {}
        self._guards: set[PutGuard] = set()
        self._entries: dict[int, EntryRow] = {}
        self._tags: set[tuple[int, bytes, int]] = set()  # session, digest, unit
        self._feed: dict[int, FeedRow] = {}
        self._hints: dict[int, None] = {}

    async def name(self, of: NameKind, digest: bytes) -> int | None:
        row = self._names.get((of, digest))
        return row.number if row else None

    async def agents(self) -> Sequence[AgentRow]:
        return sorted(self._agents.values())

    async def unit(self, unit_id: str) -> UnitRow | None:
        seq = self._seqs_by_id.get(unit_id)
        return None if seq is None else self._units[seq]

    async def units(self, seqs: Sequence[int]) -> dict[int, UnitRow]:
        return {seq: self._units[seq] for seq in seqs if seq in self._units}

    async def scan_units(self, *, after: int, limit: int) -> Sequence[UnitRow]:
        return list(islice((row for row in self._units.values() if row.seq > after), limit))

    async def unit_columns(self, *, after: int, limit: int) -> UnitBatch:
        return unit_batch([_columns(row) for row in await self.scan_units(after=after, limit=limit)])

    async def drafted_units(self) -> Sequence[UnitRow]:
        return [row for row in self._units.values() if row.mode == "draft" or row.committed_seq is not None]

    async def conflicts(self, statuses: Sequence[ConflictStatus] | None = None) -> Sequence[ConflictRow]:
        return [row for row in self._conflicts.values() if statuses is None or row.status in statuses]

    async def open_conflicts_of(self, unit: int) -> Sequence[ConflictRow]:
        rows = self._conflicts.values()
        return [row for row in rows if row.status != "resolved" and unit in (row.unit_a, row.unit_b)]

    async def relations(self) -> Sequence[RelationRow]:
        return sorted(self._relations.values())

    async def compactions(self) -> Sequence[CompactionRow]:
        return list(self._compactions.values())

    async def guards(self) -> Sequence[PutGuard]:
        return sorted(self._guards)

    async def entry(self, session: int, digest: bytes) -> EntryRow | None:
        found = [row for row in self._entries.values() if row.session == session and row.digest == digest]
        return max(found, default=None)

    async def entries_of(self, units: Sequence[int]) -> dict[int, EntryRow]:
        return {unit: self._entries[unit] for unit in units if unit in self._entries}

    async def entries(
        self,
        session: int,
        *,
        before: int | None = None,
        limit: int,
        tag: bytes | None = None,
        every: bool = False,
    ) -> Sequence[EntryRow]:
        newest_first = sorted((row for row in self._entries.values() if row.session == session), reverse=True)
        found = (row for row in newest_first if before is None or row.unit < before)
        found = (row for row in found if every or row.listed)
        return list(islice((row for row in found if tag is None or (session, tag, row.unit) in self._tags), limit))

    async def memories(self) -> dict[int, int]:
        return dict(sorted(Counter(row.session for row in self._entries.values() if row.listed).items()))

    async def expired_entries(self, at_ms: int, *, limit: int) -> Sequence[EntryRow]:
        timed = (row for row in self._entries.values() if row.expires_ms is not None and row.expires_ms <= at_ms)
        return sorted(timed, key=_by_expiry)[:limit]

    async def feed(
        self, *, after: int, limit: int, kinds: Sequence[FeedKind] | None = None, since_ms: int | None = None
    ) -> Sequence[FeedRow]:
        wanted = (row for row in self._feed.values() if row.seq > after and (kinds is None or row.kind in kinds))
        return list(islice((row for row in wanted if since_ms is None or row.at_ms >= since_ms), limit))

    async def feed_of(self, unit: int, kind: FeedKind) -> FeedRow | None:
        return max((row for row in self._feed.values() if row.unit == unit and row.kind == kind), default=None)

    async def members(self) -> Sequence[MemberRow]:
        return sorted(self._members)

    async def hints(self) -> Sequence[int]:
        return list(self._hints)

    async def checksum(self) -> str:
        digest = hashlib.sha256()
        rows: list[Sequence[object]] = [
            *sorted(self._names.values()),
            *sorted(self._agents.values()),
            *self._units.values(),
            *self._conflicts.values(),
            *((seq,) for seq in self._hints),
            *sorted(self._relations.values()),
            *sorted(self._members),
            *self._compactions.values(),
            *sorted(self._guards),
            *self._entries.values(),
            *sorted(self._tags),
            *self._feed.values(),
        ]
        for row in rows:
            digest.update(repr(tuple(row)).encode())
        return digest.hexdigest()

    def apply(self, change: Change) -> None:  # noqa: C901 (one case a change)
        match change:
            case PutUnit(row):
                self._units[row.seq] = row
                self._seqs_by_id[row.id] = row.seq
            case SetUnitStatus(unit, status):
                self._units[unit] = self._units[unit]._replace(status=status)
            case CommitUnit():
                self._commit(change)
            case PutRelation(relation):
                self._relations[relation.source, relation.place] = relation
            case ElaborateUnits(source, targets):
                rows = [RelationRow(source, place, "elaborates", target) for place, target in enumerate(targets)]
                self._relations |= {(source, row.place): row for row in rows}
            case MarkEcho(unit, original):
                self._units[unit] = self._units[unit]._replace(echo_of=original)
            case PutName(name):
                self._names[name.of, name.digest] = name
            case ReplaceName(name):
                self._names = {key: row for key, row in self._names.items() if row.number != name.number}
                self._names[name.of, name.digest] = name
            case PutAgent(agent):
                self._agents[agent.agent] = agent
            case PutConflict(conflict):
                self._conflicts[conflict.seq] = conflict
            case ResolveConflict():
                self._resolve(change)
            case ArchiveUnits(units, epoch):
                self._set(units, archived_epoch=epoch)
            case RestoreUnits(units):
                self._set(units, archived_epoch=None)
            case PurgeUnits(units, seq):
                self._set(units, purged_seq=seq)
            case PutCompaction(compaction):
                self._compactions[compaction.seq] = compaction
            case EndCompaction():
                begun = self._compactions[change.compaction]
                self._compactions[begun.seq] = CompactionRow(begun.seq, begun.id, begun.strategy, *change[1:])
            case PutGuard():
                self._guards.add(change)
            case DropGuard(unit, guard):
                self._guards.discard(PutGuard(unit, guard))
            case PutEntry(row, tags):
                self._entries[row.unit] = row
                self._tags.update((row.session, tag, row.unit) for tag in tags)
            case RelabelEntry():
                self._relabel(change)
            case ShelveEntries(units, seq):
                self._set_entries(units, archived_seq=seq)
            case ReturnEntries(units):
                self._set_entries(units, archived_seq=None)
            case RemoveEntries(units, seq, purged):
                self._set_entries([unit for unit in units if self._is_there(unit)], gone_seq=seq)
                if purged:
                    self._set_entries(units, digest=None, expires_ms=None)
                    self._tags = {tag for tag in self._tags if tag[2] not in units}
            case PutFeed(told):
                self._feed[told.seq] = told
            case PutMember(member):
                self._members.add(member)
            case DropMember(member):
                self._members.discard(member)
            case KeepHint(seq):
                self._hints[seq] = None
            case _:
                assert_never(change)

    def drop_hint(self, seq: int) -> None:
        self._hints.pop(seq, None)

    def _set(self, units: Sequence[int], **fields: Any) -> None:
        for unit in units:
            self._units[unit] = self._units[unit]._replace(**fields)

    def _is_there(self, unit: int) -> bool:
        return unit in self._entries and self._entries[unit].gone_seq is None

    def _set_entries(self, units: Sequence[int], **fields: Any) -> None:
        for unit in units:
            if unit in self._entries:
                self._entries[unit] = self._entries[unit]._replace(**fields)

    def _relabel(self, change: RelabelEntry) -> None:
        for row in [row for row in self._entries.values() if row.written == change.written]:
            self._entries[row.unit] = row._replace(digest=change.digest)
            self._tags = {each for each in self._tags if each[2] != row.unit}
            self._tags.update((row.session, tag, row.unit) for tag in change.tags)

    def _commit(self, change: CommitUnit) -> None:
        row = self._units[change.unit]
        self._units[change.unit] = row._replace(
            mode="committed",
            status="active",
            epoch=change.epoch,
            committed_seq=change.committed_seq,
            score=row.score if change.score is None else change.score,
        )

    def _resolve(self, change: ResolveConflict) -> None:
        self._conflicts[change.conflict] = self._conflicts[change.conflict]._replace(
            status="resolved",
            strategy=change.strategy,
            winner=change.winner,
            resolved_by=change.resolved_by,
            resolved_seq=change.resolved_seq,
            resolved_epoch=change.resolved_epoch,
        )


def _by_expiry(row: EntryRow) -> tuple[int, int]:
    return row.expires_ms or 0, row.unit


def _columns(row: UnitRow) -> Sequence[object]:
    values = ((name, getattr(row, name)) for name in UnitBatch._fields)
    absent = {"score": None, "trust": DEFAULT_AUTHORITY}
    return [absent.get(name, 0) if value is None else value for name, value in values]
