"""View rows of one stream: reads, and the statements that changes turn into."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Final

import apsw

from fieldstone.backends.sqlite.log import SQL, Span
from fieldstone.core.events import NameKind
from fieldstone.core.vocabulary import ConflictStatus
from fieldstone.ports.views import (
    AgentRow,
    ArchiveUnits,
    Change,
    CommitUnit,
    CompactionRow,
    ConflictRow,
    DropGuard,
    DropMember,
    EndCompaction,
    KeepHint,
    MarkEcho,
    MemberRow,
    PurgeUnits,
    PutAgent,
    PutCompaction,
    PutConflict,
    PutGuard,
    PutMember,
    PutName,
    PutRelation,
    PutUnit,
    RelationRow,
    ReplaceName,
    ResolveConflict,
    RestoreUnits,
    SetUnitStatus,
    UnitBatch,
    UnitRow,
    unit_batch,
)

_ALL_ROWS: Final = (
    "all_agents",
    "scan_units",
    "all_conflicts",
    "all_hints",
    "all_relations",
    "all_members",
    "all_compactions",
    "all_guards",
)


class SqliteViews:
    def __init__(self, near: apsw.Connection, span: Span) -> None:
        self._near = near
        self._span = span

    async def name(self, of: NameKind, digest: bytes) -> int | None:
        number: int | None = self._near.execute(SQL["find_name"], (self._span.stream_no, of, digest)).get
        return number

    async def agents(self) -> Sequence[AgentRow]:
        return [AgentRow(*row) for row in self._all("all_agents")]

    async def unit(self, unit_id: str) -> UnitRow | None:
        for row in self._near.execute(SQL["find_unit"], (unit_id, self._span.stream_no)):
            return UnitRow(*row)
        return None

    async def units(self, seqs: Sequence[int]) -> dict[int, UnitRow]:
        found: dict[int, UnitRow] = {}
        for seq in seqs:
            for row in self._near.execute(SQL["get_unit"], (self._span.position(seq),)):
                found[seq] = UnitRow(*row)
        return found

    async def scan_units(self, *, after: int, limit: int) -> Sequence[UnitRow]:
        rows = self._near.execute(SQL["scan_units"], (self._span.position(after), self._span.end, limit))
        return [UnitRow(*row) for row in rows]

    async def unit_columns(self, *, after: int, limit: int) -> UnitBatch:
        rows = self._near.execute(SQL["unit_columns"], (self._span.position(after), self._span.end, limit))
        return unit_batch(rows.fetchall())

    async def drafted_units(self) -> Sequence[UnitRow]:
        return [UnitRow(*row) for row in self._all("drafted_units")]

    async def units_of(self, agent: int) -> int:
        count: int = self._near.execute(SQL["count_units_of"], (self._span.base, self._span.end, agent)).get
        return count

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

    async def members(self) -> Sequence[MemberRow]:
        return [MemberRow(*row) for row in self._all("all_members")]

    async def hints(self) -> Sequence[int]:
        return [row[0] for row in self._all("all_hints")]

    async def checksum(self) -> str:
        digest = hashlib.sha256()
        names = "SELECT number, kind, digest FROM names WHERE stream_no = ? ORDER BY number"
        for row in self._near.execute(names, (self._span.stream_no,)):
            digest.update(repr(row).encode())
        for query in _ALL_ROWS:
            bounds = (self._span.base, self._span.end) + ((-1,) if query == "scan_units" else ())
            for row in self._near.execute(SQL[query], bounds):
                digest.update(repr(row).encode())
        return digest.hexdigest()

    def _all(self, query: str) -> apsw.Cursor:
        return self._near.execute(SQL[query], (self._span.base, self._span.end))


def write_changes(connection: apsw.Connection, span: Span, changes: Sequence[Change]) -> None:
    """Write changes in bulk, kind by kind, in the order of `_STATEMENTS`: rows are made before they are altered."""
    by_kind: dict[type[Change], list[Change]] = {}
    of_many: list[Change] = []
    for change in changes:
        if isinstance(change, ArchiveUnits | RestoreUnits | PurgeUnits):
            of_many.append(change)
        else:
            by_kind.setdefault(type(change), []).append(change)
    for kind, statements in _STATEMENTS.items():
        if found := by_kind.get(kind):
            for query, bindings in statements:
                connection.executemany(SQL[query], [bindings(change, span) for change in found])
    for change in of_many:
        _write_many(connection, span, change)


def _write_many(connection: apsw.Connection, span: Span, change: Change) -> None:
    """One change of many units, in the order in which they came: what is archived may be restored in the same group."""
    match change:
        case ArchiveUnits(units, epoch):
            rows = [(epoch, span.base | unit) for unit in units]
            connection.executemany(SQL["archive_unit"], rows)
        case RestoreUnits(units):
            connection.executemany(SQL["archive_unit"], [(None, span.base | unit) for unit in units])
        case PurgeUnits(units, seq):
            connection.executemany(SQL["purge_unit"], [(seq, span.base | unit) for unit in units])
        case _:
            raise TypeError(f"{change} is of single rows")


def erase_views(connection: apsw.Connection, span: Span) -> None:
    for table in ("agents", "units", "conflicts", "hints", "compactions"):
        connection.execute(f"DELETE FROM {table} WHERE position > ? AND position <= ?", (span.base, span.end))
    connection.execute("DELETE FROM relations WHERE source > ? AND source <= ?", (span.base, span.end))
    connection.execute("DELETE FROM guards WHERE unit > ? AND unit <= ?", (span.base, span.end))
    connection.execute("DELETE FROM members WHERE session > ? AND session <= ?", (span.base, span.end))
    connection.execute("DELETE FROM names WHERE stream_no = ?", (span.stream_no,))


Bindings = Callable[[Any, Span], tuple[Any, ...]]


def _row_at_its_position(change: PutAgent | PutUnit | PutConflict | PutCompaction, span: Span) -> tuple[Any, ...]:
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


def _end(change: EndCompaction, span: Span) -> tuple[Any, ...]:
    return (*change[1:], span.base | change.compaction)


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
    PutMember: (("put_member", _member),),
    DropMember: (("drop_member", _member),),
    KeepHint: (("keep_hint", _hint),),
}
