"""What the log amounts to: rows that can be thrown away and built again.

A view row refers to texts by seq and to names by number; it holds no text of its own, so erasing a text erases it
everywhere. Changes are values: `projections/` makes them from events, a backend applies them.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from fieldstone.core.events import NameKind
from fieldstone.core.vocabulary import (
    AgentStatus,
    CompactionState,
    ConflictStatus,
    ConflictType,
    DetectedBy,
    FeedKind,
    Guard,
    Mode,
    RelationType,
    Strategy,
    UnitStatus,
)


class NameRow(NamedTuple):
    number: int
    of: NameKind
    digest: bytes  # keyed: finds the number of a name without holding the name


class AgentRow(NamedTuple):
    agent: int
    registration: int
    status: AgentStatus
    authority: int
    credential: str | None = None


class UnitRow(NamedTuple):
    seq: int
    id: str
    mode: Mode
    type: str
    status: UnitStatus
    epoch: int
    at_ms: int
    agent: int
    registration: int
    session: int | None
    task: int | None
    score: float | None
    committed_seq: int | None
    archived_epoch: int | None
    echo_of: int | None = None
    trust: int | None = None
    purged_seq: int | None = None  # by which entry it was purged


class RelationRow(NamedTuple):
    """A relation whose target is a unit of this Field. `place` is its own among its unit's."""

    source: int
    place: int
    type: RelationType
    target: int


class UnitBatch(NamedTuple):
    """Some units, column by column: for those who read all of them and keep no rows. 0 stands for none."""

    seq: NDArray[np.int64]
    mode: Sequence[Mode]
    type: Sequence[str]
    status: Sequence[UnitStatus]
    epoch: NDArray[np.int64]
    agent: NDArray[np.int64]
    registration: NDArray[np.int64]
    session: NDArray[np.int64]
    task: NDArray[np.int64]
    score: NDArray[np.float64]  # NaN stands for none
    committed_seq: NDArray[np.int64]  # by which entry a draft took effect
    archived_epoch: NDArray[np.int64]
    echo_of: NDArray[np.int64]
    trust: NDArray[np.int64]  # DEFAULT_AUTHORITY where it was not noted
    purged_seq: NDArray[np.int64]


class MemberRow(NamedTuple):
    """A closed session and one of its members. Agent 0 stands for nobody: that it is closed."""

    session: int
    agent: int


class CompactionRow(NamedTuple):
    seq: int
    id: str
    strategy: Strategy
    state: CompactionState
    units: int
    syntheses: int
    bytes: int
    ended_seq: int | None


class EntryRow(NamedTuple):
    """A unit that is an entry of an OpenWOP memory."""

    unit: int
    session: int
    written: int  # the entry of the log that says so; its id and tags lie beside that
    digest: bytes | None = None  # of an id of its own, keyed; None: its unit's id is its id
    expires_ms: int | None = None
    run: str | None = None
    archived_seq: int | None = None  # since when it is no longer listed, and still there
    gone_seq: int | None = None  # since when it is no more

    @property
    def listed(self) -> bool:
        return self.archived_seq is None and self.gone_seq is None


class FeedRow(NamedTuple):
    """An event that is told to others as it happens."""

    seq: int
    kind: FeedKind
    at_ms: int
    unit: int | None


class ConflictRow(NamedTuple):
    seq: int
    id: str
    type: ConflictType
    status: ConflictStatus
    unit_a: int
    unit_b: int
    detected_by: DetectedBy
    strategy: str | None
    winner: int | None
    resolved_by: int | None
    resolved_seq: int | None
    resolved_epoch: int | None


# --- changes: one value for each thing that can happen to a row ------------------------------------------------------


class PutName(NamedTuple):
    row: NameRow


class ReplaceName(NamedTuple):
    """The name's text was rewritten: the same number is found by another digest from now on."""

    row: NameRow


class PutAgent(NamedTuple):
    """A new registration takes the place of the agent's earlier one."""

    row: AgentRow


class PutUnit(Struct, frozen=True, gc=False):  # each RECORD makes one, and a named tuple takes five times as long
    row: UnitRow


class SetUnitStatus(NamedTuple):
    unit: int
    status: UnitStatus


class CommitUnit(NamedTuple):
    unit: int
    epoch: int
    committed_seq: int
    score: float | None


class PutRelation(NamedTuple):
    row: RelationRow


class ElaborateUnits(NamedTuple):
    """All relations of a unit that only elaborates others, in their order: a synthesis has thousands of them."""

    source: int
    targets: Sequence[int]


class MarkEcho(NamedTuple):
    unit: int
    of: int


class PutConflict(NamedTuple):
    row: ConflictRow


class ResolveConflict(NamedTuple):
    conflict: int
    strategy: str
    winner: int | None
    resolved_by: int | None
    resolved_seq: int
    resolved_epoch: int


class ArchiveUnits(NamedTuple):
    units: Sequence[int]
    epoch: int


class RestoreUnits(NamedTuple):
    units: Sequence[int]


class PurgeUnits(NamedTuple):
    """Their rows stay, for the tombstone; nothing else of them does."""

    units: Sequence[int]
    seq: int


class PutCompaction(NamedTuple):
    row: CompactionRow


class EndCompaction(NamedTuple):
    compaction: int
    state: CompactionState
    units: int
    syntheses: int
    bytes: int
    ended_seq: int


class PutGuard(NamedTuple):
    unit: int
    guard: Guard


class DropGuard(NamedTuple):
    unit: int
    guard: Guard


class PutEntry(NamedTuple):
    row: EntryRow
    tags: Sequence[bytes] = ()  # keyed digests, also of who wrote it


class RelabelEntry(NamedTuple):
    """The text beside the entry of the log was rewritten: it is found by other digests from now on."""

    written: int
    digest: bytes | None
    tags: Sequence[bytes]


class ShelveEntries(NamedTuple):
    """Units that may be entries were archived."""

    units: Sequence[int]
    seq: int


class ReturnEntries(NamedTuple):
    units: Sequence[int]


class RemoveEntries(NamedTuple):
    """Units that may be entries are no more: retracted, replaced, or purged. Of what is purged no label stays, and no
    time."""

    units: Sequence[int]
    seq: int
    purged: bool = False


class PutFeed(NamedTuple):
    row: FeedRow


class PutMember(NamedTuple):
    """The session is closed from the first one on, and stays so."""

    row: MemberRow


class DropMember(NamedTuple):
    row: MemberRow


class KeepHint(NamedTuple):
    """The read at `seq` has a hint beside it."""

    seq: int


Change = (
    PutName
    | ReplaceName
    | PutAgent
    | PutUnit
    | SetUnitStatus
    | CommitUnit
    | PutRelation
    | ElaborateUnits
    | MarkEcho
    | PutConflict
    | ResolveConflict
    | ArchiveUnits
    | RestoreUnits
    | PurgeUnits
    | PutCompaction
    | EndCompaction
    | PutGuard
    | DropGuard
    | PutEntry
    | RelabelEntry
    | ShelveEntries
    | ReturnEntries
    | RemoveEntries
    | PutFeed
    | PutMember
    | DropMember
    | KeepHint
)


class Views(Protocol):
    """Reads see all that is committed, and nothing else; rows of units wherever they lie, hot or cold."""

    async def name(self, of: NameKind, digest: bytes) -> int | None: ...

    async def agents(self) -> Sequence[AgentRow]:
        """Every agent that ever registered, by number."""
        ...

    async def unit(self, unit_id: str) -> UnitRow | None: ...

    async def units(self, seqs: Sequence[int]) -> dict[int, UnitRow]: ...

    async def scan_units(self, *, after: int, limit: int) -> Sequence[UnitRow]:
        """Units with seq > `after`, ascending."""
        ...

    async def unit_columns(self, *, after: int, limit: int) -> UnitBatch:
        """The same units as `scan_units` gives."""
        ...

    async def drafted_units(self) -> Sequence[UnitRow]:
        """Units that were recorded as drafts, whatever became of them, by seq."""
        ...

    async def conflicts(self, statuses: Sequence[ConflictStatus] | None = None) -> Sequence[ConflictRow]:
        """By seq, ascending; all of them where no status is given."""
        ...

    async def open_conflicts_of(self, unit: int) -> Sequence[ConflictRow]:
        """Conflicts not yet resolved that have this unit on a side."""
        ...

    async def relations(self) -> Sequence[RelationRow]:
        """Every relation between units of this Field, by source and place."""
        ...

    async def compactions(self) -> Sequence[CompactionRow]:
        """By seq, ascending."""
        ...

    async def guards(self) -> Sequence[PutGuard]:
        """Which units are held or pinned, by unit and guard."""
        ...

    async def entry(self, session: int, digest: bytes) -> EntryRow | None:
        """The newest entry of the memory that has this id of its own."""
        ...

    async def entries_of(self, units: Sequence[int]) -> dict[int, EntryRow]:
        """Those of the units that are entries."""
        ...

    async def entries(
        self,
        session: int,
        *,
        before: int | None = None,
        limit: int,
        tag: bytes | None = None,
        every: bool = False,
    ) -> Sequence[EntryRow]:
        """Newest first, of units before this one. With `every` also those that are no longer listed."""
        ...

    async def memories(self) -> dict[int, int]:
        """How many entries each memory lists, by its session."""
        ...

    async def expired_entries(self, at_ms: int, *, limit: int) -> Sequence[EntryRow]:
        """Entries past their time whose text may still be there, listed or not."""
        ...

    async def feed(
        self, *, after: int, limit: int, kinds: Sequence[FeedKind] | None = None, since_ms: int | None = None
    ) -> Sequence[FeedRow]:
        """By seq, ascending; of these kinds, and not before that time."""
        ...

    async def feed_of(self, unit: int, kind: FeedKind) -> FeedRow | None:
        """The newest event of the kind that is about the unit."""
        ...

    async def members(self) -> Sequence[MemberRow]:
        """Every closed session with its members, by session and agent."""
        ...

    async def hints(self) -> Sequence[int]:
        """Seqs of the reads whose hint is kept, ascending."""
        ...

    async def checksum(self) -> str:
        """A digest of every row, the same for the same rows in any backend."""
        ...


def unit_batch(rows: Sequence[Sequence[Any]]) -> UnitBatch:
    """Rows that have the batch's columns in its order, with 0 for none already, but None for no score."""
    columns = zip(*rows, strict=True) if rows else ((),) * len(UnitBatch._fields)
    seq, mode, type_, status, epoch, agent, registration, session, task, score, *rest = columns
    return UnitBatch(
        np.array(seq, np.int64),
        mode,
        type_,
        status,
        np.array(epoch, np.int64),
        np.array(agent, np.int64),
        np.array(registration, np.int64),
        np.array(session, np.int64),
        np.array(task, np.int64),
        np.array(score, np.float64),
        *(np.array(column, np.int64) for column in rest),
    )
