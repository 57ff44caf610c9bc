"""View rows of one stream: reads, and the statements that changes turn into."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, Final

import apsw
from msgspec import json

from fieldstone.backends.sqlite.cold_units import ColdUnits, Row, Window
from fieldstone.backends.sqlite.log import SQL, Span
from fieldstone.core.events import NameKind
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

READ_UNITS: Final = 2_000
ReadCold = Callable[[Window, int | None], list[Row]]

_ALL_OTHERS: Final = (
    "all_conflicts",
    "all_hints",
    "all_relations",
    "all_members",
    "all_compactions",
    "all_guards",
    "all_entries",
    "all_entry_tags",
    "all_feed",
)


class SqliteViews:
    def __init__(self, near: apsw.Connection, span: Span, cold: ColdUnits) -> None:
        self._near = near
        self._span = span
        self._cold = cold

    async def name(self, of: NameKind, digest: bytes) -> int | None:
        number: int | None = self._near.execute(SQL["find_name"], (self._span.stream_no, of, digest)).get
        return number

    async def agents(self) -> Sequence[AgentRow]:
        return [AgentRow(*row) for row in self._all("all_agents")]

    async def unit(self, unit_id: str) -> UnitRow | None:
        for row in self._near.execute(SQL["find_unit"], (unit_id, self._span.stream_no)):
            return UnitRow(*row)
        return self._cold.find(unit_id) if self._cold.moved else None

    async def units(self, seqs: Sequence[int]) -> dict[int, UnitRow]:
        rows = self._near.execute(SQL["get_units"], (self._span.positions(seqs),))
        found = {row[0]: UnitRow(*row) for row in rows}
        if self._cold.moved and len(found) < len(seqs):
            found |= self._cold.get(seq for seq in seqs if seq not in found)
        return found

    async def scan_units(self, *, after: int, limit: int) -> Sequence[UnitRow]:
        return [UnitRow(*row) for row in self._units("scan_units", self._cold.rows_in, after, limit)]

    async def unit_columns(self, *, after: int, limit: int) -> UnitBatch:
        return unit_batch(self._units("unit_columns", self._cold.columns_in, after, limit))

    async def drafted_units(self) -> Sequence[UnitRow]:
        hot = [UnitRow(*row) for row in self._all("drafted_units")]
        return _hot_and_cold(hot, self._cold.drafted()) if self._cold.moved else hot

    async def conflicts(self, statuses: Sequence[ConflictStatus] | None = None) -> Sequence[ConflictRow]:
        query = "all_conflicts" if statuses is None or "resolved" in statuses else "open_conflicts"
        rows = (ConflictRow(*row) for row in self._all(query))
        return [row for row in rows if statuses is None or row.status in statuses]

    async def open_conflicts_of(self, unit: int) -> Sequence[ConflictRow]:
        rows = self._near.execute(SQL["open_conflicts_of"], (self._span.stream_no, unit))
        return [ConflictRow(*row) for row in rows]

    async def relations(self) -> Sequence[RelationRow]:
        return [RelationRow(*row) for row in self._all("all_relations")]

    async def compactions(self) -> Sequence[CompactionRow]:
        return [CompactionRow(*row) for row in self._all("all_compactions")]

    async def guards(self) -> Sequence[PutGuard]:
        return [PutGuard(*row) for row in self._all("all_guards")]

    async def entry(self, session: int, digest: bytes) -> EntryRow | None:
        for row in self._near.execute(SQL["find_entry"], (self._span.position(session), digest)):
            return EntryRow(*row)
        return None

    async def entries_of(self, units: Sequence[int]) -> dict[int, EntryRow]:
        rows = self._near.execute(SQL["get_entries"], (self._span.positions(units),))
        return {row[0]: EntryRow(*row) for row in rows}

    async def entries(
        self,
        session: int,
        *,
        before: int | None = None,
        limit: int,
        tag: bytes | None = None,
        every: bool = False,
    ) -> Sequence[EntryRow]:
        end = self._span.end + 1 if before is None else self._span.position(before)
        bounds = (self._span.position(session), end, limit)
        if tag is not None:
            rows = self._near.execute(SQL["tagged_entries"], (*bounds, tag, every))
        else:
            rows = self._near.execute(SQL["every_entry" if every else "listed_entries"], bounds)
        return [EntryRow(*row) for row in rows]

    async def memories(self) -> dict[int, int]:
        return dict(self._all("count_memories"))

    async def expired_entries(self, at_ms: int, *, limit: int) -> Sequence[EntryRow]:
        rows = self._near.execute(SQL["expired_entries"], (at_ms, self._span.base, self._span.end, limit))
        return [EntryRow(*row) for row in rows]

    async def feed(
        self, *, after: int, limit: int, kinds: Sequence[FeedKind] | None = None, since_ms: int | None = None
    ) -> Sequence[FeedRow]:
        start, since = self._span.position(after), _EARLIEST_MS if since_ms is None else since_ms
        if since_ms is not None:
            first: int | None = self._near.execute(SQL["first_in_feed"], (self._span.stream_no, since)).get
            if first is None:
                return []
            start = max(start, first - 1)
        if kinds is None:
            rows = self._near.execute(SQL["read_feed"], (start, self._span.end, since, limit))
            return [FeedRow(*row) for row in rows]
        found = [
            FeedRow(*row)
            for kind in dict.fromkeys(kinds)
            for row in self._near.execute(SQL["read_feed_of_kind"], (self._span.stream_no, kind, start, since, limit))
        ]
        return sorted(found)[:limit]

    async def feed_of(self, unit: int, kind: FeedKind) -> FeedRow | None:
        for row in self._near.execute(SQL["feed_of_unit"], (self._span.stream_no, unit, kind)):
            return FeedRow(*row)
        return None

    async def members(self) -> Sequence[MemberRow]:
        return [MemberRow(*row) for row in self._all("all_members")]

    async def hints(self) -> Sequence[int]:
        return [row[0] for row in self._all("all_hints")]

    async def checksum(self) -> str:
        digest = hashlib.sha256()
        names = "SELECT number, kind, digest FROM names WHERE stream_no = ? ORDER BY number"
        for row in self._near.execute(names, (self._span.stream_no,)):
            digest.update(repr(row).encode())
        for row in chain(self._all("all_agents"), self._every_unit(), *map(self._all, _ALL_OTHERS)):
            digest.update(repr(row).encode())
        return digest.hexdigest()

    def _units(self, query: str, read_cold: ReadCold[Row], after: int, limit: int) -> Sequence[Row]:
        """Units from the table and from cold storage as one, by seq. A few blocks at a time, and the rows beside them:
        so hardly a row is read that is not wanted, however the two lie."""
        found: list[Row] = []
        while len(found) < limit:
            wanted, window = limit - len(found), self._cold.window(after)
            until = self._span.end if window.until is None else self._span.position(window.until)
            hot: list[Any] = self._near.execute(SQL[query], (self._span.position(after), until, wanted)).fetchall()
            last = hot[-1][0] if len(hot) == wanted else window.until
            cold = read_cold(window, last) if window.blocks else []
            found += _hot_and_cold(hot, cold) if cold else hot
            if last is None:
                break
            after = last
        return found[: max(limit, 0)]

    def _every_unit(self) -> Iterator[tuple[Any, ...]]:
        after = 0
        while rows := self._units("scan_units", self._cold.rows_in, after, READ_UNITS):
            yield from map(tuple, rows)
            after = rows[-1][0]

    def _all(self, query: str) -> apsw.Cursor:
        return self._near.execute(SQL[query], (self._span.base, self._span.end))


def write_changes(connection: apsw.Connection, span: Span, changes: Sequence[Change]) -> None:
    """Write changes in bulk, kind by kind, in the order of `_STATEMENTS`: rows are made before they are altered."""
    by_kind: dict[type[Change], list[Change]] = {}
    of_many: list[Change] = []
    for change in changes:
        if type(change) in _OF_MANY:
            of_many.append(change)
        else:
            by_kind.setdefault(type(change), []).append(change)
    for kind in sorted(by_kind, key=_ORDER.__getitem__) if len(by_kind) > 1 else by_kind:
        for query, bindings in _STATEMENTS[kind]:
            connection.executemany(SQL[query], [bindings(change, span) for change in by_kind[kind]])
    if PutEntry in by_kind:
        connection.executemany(SQL["put_entry_tag"], _tags(by_kind[PutEntry], span))
    for change in of_many:
        if isinstance(change, _OF_ENTRIES):
            _write_entries(connection, span, change)
        else:
            _write_many(connection, span, change)


def changed_units(changes: Sequence[Change]) -> Iterator[int]:
    """The units whose rows are altered, not those that are made."""
    for change in changes:
        match change:
            case SetUnitStatus() | CommitUnit() | MarkEcho():
                yield change.unit
            case ArchiveUnits() | RestoreUnits() | PurgeUnits():
                yield from change.units
            case _:
                pass


def _write_many(connection: apsw.Connection, span: Span, change: Change) -> None:
    """One change of many units, in the order in which they came: what is archived may be restored in the same group."""
    match change:
        case ArchiveUnits(units, epoch):
            connection.execute(SQL["archive_units"], (epoch, span.positions(units)))
        case RestoreUnits(units):
            connection.execute(SQL["archive_units"], (None, span.positions(units)))
        case ElaborateUnits(source, targets):
            connection.execute(SQL["elaborate_units"], (span.base | source, json.encode(targets).decode()))
        case PurgeUnits(units, seq):
            connection.execute(SQL["purge_units"], (seq, span.positions(units)))
        case _:
            raise TypeError(f"{change} is of single rows")


def _write_entries(connection: apsw.Connection, span: Span, change: Change) -> None:
    """Most units are no entries: in a field without any, there is nothing to look for."""
    if not connection.execute(SQL["has_entries"], (span.base, span.end)).get:
        return
    match change:
        case ShelveEntries(units, seq):
            connection.execute(SQL["shelve_entries"], (seq, span.positions(units)))
        case ReturnEntries(units):
            connection.execute(SQL["shelve_entries"], (None, span.positions(units)))
        case RemoveEntries(units, seq, purged):
            positions = span.positions(units)
            connection.execute(SQL["remove_entries"], (seq, positions))
            if purged:
                connection.execute(SQL["forget_entries"], (positions,))
                connection.execute(SQL["drop_tags_of"], (positions,))
        case RelabelEntry(written, digest, tags):
            of_this = (written, span.base, span.end)
            for position, session in connection.execute(SQL["find_written"], of_this).fetchall():
                connection.execute(SQL["drop_entry_tags"], of_this)
                connection.execute(SQL["relabel_entry"], (digest, position))
                connection.executemany(SQL["put_entry_tag"], [(session, tag, position) for tag in tags])
        case _:
            raise TypeError(f"{change} is not of entries")


def erase_views(connection: apsw.Connection, span: Span) -> None:
    connection.execute("DELETE FROM moved_units WHERE position BETWEEN ? AND ?", (span.base, span.end))
    for table in ("agents", "units", "conflicts", "hints", "compactions", "entries", "feed"):
        connection.execute(f"DELETE FROM {table} WHERE position > ? AND position <= ?", (span.base, span.end))
    connection.execute("DELETE FROM relations WHERE source > ? AND source <= ?", (span.base, span.end))
    connection.execute("DELETE FROM entry_tags WHERE session > ? AND session <= ?", (span.base, span.end))
    connection.execute("DELETE FROM guards WHERE unit > ? AND unit <= ?", (span.base, span.end))
    connection.execute("DELETE FROM members WHERE session > ? AND session <= ?", (span.base, span.end))
    connection.execute("DELETE FROM names WHERE stream_no = ?", (span.stream_no,))


def _hot_and_cold(hot: Sequence[Row], cold: Sequence[Row]) -> list[Row]:
    """By seq. Of a row in both the hot one counts."""
    return sorted({row[0]: row for row in (*cold, *hot)}.values(), key=itemgetter(0))


_OF_ENTRIES: Final = (ShelveEntries, ReturnEntries, RemoveEntries, RelabelEntry)
_OF_MANY: Final = frozenset((ElaborateUnits, ArchiveUnits, RestoreUnits, PurgeUnits, *_OF_ENTRIES))
_EARLIEST_MS: Final = -(2**63)

Bindings = Callable[[Any, Span], tuple[Any, ...]]


def _row_at_its_position(
    change: PutAgent | PutUnit | PutConflict | PutCompaction | PutFeed, span: Span
) -> tuple[Any, ...]:
    return (span.base | change.row[0], *change.row[1:])


def _number(change: ReplaceName, span: Span) -> tuple[Any, ...]:
    return (span.stream_no, change.row.number)


def _name(change: PutName | ReplaceName, span: Span) -> tuple[Any, ...]:
    return (span.stream_no, change.row.of, change.row.digest, change.row.number)


def _commit(change: CommitUnit, span: Span) -> tuple[Any, ...]:
    return (change.epoch, change.committed_seq, change.score, span.base | change.unit)


def _status(change: SetUnitStatus, span: Span) -> tuple[Any, ...]:
    return (change.status, span.base | change.unit)


def _relation(change: PutRelation, span: Span) -> tuple[Any, ...]:
    return (span.base | change.row.source, *change.row[1:])


def _echo(change: MarkEcho, span: Span) -> tuple[Any, ...]:
    return (change.of, span.base | change.unit)


def _resolve(change: ResolveConflict, span: Span) -> tuple[Any, ...]:
    return (*change[1:], span.base | change.conflict)


def _guard(change: PutGuard | DropGuard, span: Span) -> tuple[Any, ...]:
    return (span.base | change.unit, change.guard)


def _entry(change: PutEntry, span: Span) -> tuple[Any, ...]:
    unit, session, *rest = change.row
    return (span.base | unit, span.base | session, *rest)


def _end(change: EndCompaction, span: Span) -> tuple[Any, ...]:
    return (*change[1:], span.base | change.compaction)


def _tags(changes: Sequence[Any], span: Span) -> list[tuple[Any, ...]]:
    return [(span.base | row.session, tag, span.base | row.unit) for row, tags in changes for tag in tags]


def _member(change: PutMember | DropMember, span: Span) -> tuple[Any, ...]:
    return (span.base | change.row.session, change.row.agent)


def _hint(change: KeepHint, span: Span) -> tuple[Any, ...]:
    return (span.base | change.seq,)


_STATEMENTS: Final[dict[type[Change], tuple[tuple[str, Bindings], ...]]] = {
    PutName: (("put_name", _name),),
    ReplaceName: (("drop_name", _number), ("replace_name", _name)),
    PutAgent: (("put_agent", _row_at_its_position),),
    PutUnit: (("put_unit", _row_at_its_position),),
    CommitUnit: (("commit_unit", _commit),),
    SetUnitStatus: (("set_unit_status", _status),),
    PutRelation: (("put_relation", _relation),),
    MarkEcho: (("mark_echo", _echo),),
    PutConflict: (("put_conflict", _row_at_its_position),),
    ResolveConflict: (("resolve_conflict", _resolve),),
    PutCompaction: (("put_compaction", _row_at_its_position),),
    EndCompaction: (("end_compaction", _end),),
    PutGuard: (("put_guard", _guard),),
    DropGuard: (("drop_guard", _guard),),
    PutEntry: (("put_entry", _entry),),
    PutFeed: (("put_feed", _row_at_its_position),),
    PutMember: (("put_member", _member),),
    DropMember: (("drop_member", _member),),
    KeepHint: (("keep_hint", _hint),),
}
_ORDER: Final = {kind: place for place, kind in enumerate(_STATEMENTS)}
