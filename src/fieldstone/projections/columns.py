"""What scoring needs of every unit, as numpy columns: 65 bytes a unit, so that all of them can be looked at each time.

Only the field's writer changes them. A reader takes a `Snapshot`: rows are only ever appended, so what it holds stays
true while the writer goes on; a status that changes meanwhile shows either its old or its new value.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from fieldstone.core.limits import DEFAULT_AUTHORITY
from fieldstone.core.vocabulary import UnitStatus
from fieldstone.ports.views import (
    ArchiveUnits,
    Change,
    CommitUnit,
    MarkEcho,
    PurgeUnits,
    PutUnit,
    RestoreUnits,
    SetUnitStatus,
    UnitBatch,
    UnitRow,
)

Coded = TypeVar("Coded", int, str)
Mask = NDArray[np.bool_]
Column = Sequence[Any] | NDArray[Any]

STATUS_CODES: Final[dict[UnitStatus, int]] = {
    "active": 0,
    "contested": 1,
    "pending_enrichment": 2,
    "draft": 3,
    "superseded": 4,
    "retracted": 5,
}
PURGED: Final = 6  # no status of the protocol: a purged unit is nowhere any more, and only its tombstone is told
LAST_SHOWN_STATUS: Final = STATUS_CODES["pending_enrichment"]
LAST_EMBEDDED_STATUS: Final = STATUS_CODES["draft"]  # what is superseded or retracted comes out of no search
NO_SESSION: Final = 0
NO_TASK: Final = 0
NO_ROW: Final = -1
NO_CONFIDENCE: Final = -1.0
FIRST_CAPACITY: Final = 1_024
FEW_ROWS: Final = 4

_COLUMNS: Final[dict[str, Any]] = {
    "seq": np.int64,
    "epoch": np.int64,
    "session": np.int64,
    "task": np.int64,
    "agent": np.int32,
    "role": np.int32,
    "type": np.uint8,
    "status": np.uint8,
    "archived": np.bool_,
    "committed": np.bool_,
    "confidence": np.float32,
    "before": np.int32,
    "after": np.int32,
    "echo_of": np.int64,
    "trust": np.int8,
}
_OF_UNITS: Final = frozenset((SetUnitStatus, CommitUnit, ArchiveUnits, RestoreUnits, PurgeUnits, MarkEcho))
_EMPTY: Final[dict[str, Any]] = {"before": NO_ROW, "after": NO_ROW}


class Snapshot(NamedTuple):
    """The first `size` units, and the clock that belongs to them: every unit with an epoch up to it is there."""

    epoch: int
    size: int
    seq: NDArray[np.int64]
    unit_epoch: NDArray[np.int64]
    session: NDArray[np.int64]
    task: NDArray[np.int64]
    agent: NDArray[np.int32]
    role: NDArray[np.int32]
    type: NDArray[np.uint8]
    status: NDArray[np.uint8]
    archived: NDArray[np.bool_]
    committed: NDArray[np.bool_]  # False: a draft, or one that was discarded
    confidence: NDArray[np.float32]
    before: NDArray[np.int32]  # the row of the unit before it in the same conversation, and of the one after
    after: NDArray[np.int32]
    echo_of: NDArray[np.int64]  # the seq of the unit that it restates, or 0
    trust: NDArray[np.int8]
    agent_codes: dict[int, int]  # the agent's number → its code
    registrations: list[int]  # role code → the registration that says the role
    types: list[str]  # type code → type

    def agent_code(self, agent: int) -> int:
        """-1 for an agent that has recorded nothing."""
        return self.agent_codes.get(agent, -1)


class UnitColumns:
    def __init__(self) -> None:
        self._size = 0
        self._arrays: dict[str, NDArray[Any]] = {name: _blank(name, FIRST_CAPACITY) for name in _COLUMNS}
        self._last: dict[tuple[str, int], int] = {}  # the newest row of each conversation
        self._agents = _Codes[int]()
        self._units_by: Counter[int] = Counter()  # agent code → how many units it has recorded, drafts too
        self._registrations = _Codes[int]()
        self._types = _Codes[str]()

    @property
    def size(self) -> int:
        return self._size

    @property
    def newest_epoch(self) -> int:
        return int(self._arrays["epoch"][: self._size].max()) if self._size else 0

    def snapshot(self, epoch: int) -> Snapshot:
        size = self._size
        views = [array[:size] for array in self._arrays.values()]
        coded = (self._agents.codes, self._registrations.values, self._types.values)
        return Snapshot._make([epoch, size, *views, *coded])

    def apply(self, changes: Iterable[Change]) -> None:
        new: list[UnitRow] = []  # that come one after the other
        for change in changes:
            if type(change) is PutUnit:
                new.append(change.row)
            elif type(change) in _OF_UNITS:
                self.append(new)
                new = []
                self._alter(change)
        self.append(new)

    def _alter(self, change: Change) -> None:
        match change:
            case SetUnitStatus(unit, status):
                at = self._at(unit)
                if self._arrays["status"][at] != PURGED:  # what is purged stays so, whatever is said of it
                    self._arrays["status"][at] = STATUS_CODES[status]
            case CommitUnit(unit, epoch, _, score):
                at = self._at(unit)
                if score is not None:
                    self._arrays["confidence"][at] = score
                self._arrays["epoch"][at] = epoch
                self._arrays["status"][at] = STATUS_CODES["active"]
                self._arrays["committed"][at] = True
                self._join(at, int(self._arrays["session"][at]), int(self._arrays["task"][at]))
            case ArchiveUnits(units):
                self._arrays["archived"][self.rows_of(units)] = True
            case RestoreUnits(units):
                self._arrays["archived"][self.rows_of(units)] = False
            case PurgeUnits(units):
                self._arrays["status"][self.rows_of(units)] = PURGED
            case MarkEcho(unit, original):
                self._arrays["echo_of"][self._at(unit)] = original
            case _:
                raise TypeError(f"{change} alters no unit")

    def append(self, rows: Sequence[UnitRow]) -> None:
        """New units, which are neither archived nor purged, and restate nothing yet. Column by column takes half
        the time for 64 of them, and twice the time for one."""
        if len(rows) < FEW_ROWS:
            for row in rows:
                self._append(row)
            return
        first = self._size
        seq, _, mode, type_, status, epoch, _, agent, registration, session, task, score, *_, trust, _ = zip(
            *rows, strict=True
        )
        columns: dict[str, Column] = {
            "seq": seq,
            "epoch": epoch,
            "session": [each or NO_SESSION for each in session],
            "task": [each or NO_TASK for each in task],
            "agent": self._agents.codes_of(agent),
            "role": self._registrations.codes_of(registration),
            "type": self._types.codes_of(type_),
            "status": [STATUS_CODES[each] for each in status],
            "committed": [each == "committed" for each in mode],
            "confidence": [NO_CONFIDENCE if each is None else each for each in score],
            "trust": [DEFAULT_AUTHORITY if each is None else each for each in trust],
        }
        self._put(columns, len(rows))
        for at, row in enumerate(rows, start=first):
            if row.mode == "committed":
                self._join(at, row.session or NO_SESSION, row.task or NO_TASK)

    def _append(self, row: UnitRow) -> None:
        at = self._size
        if at == len(self._arrays["seq"]):
            self._grow()
        arrays = self._arrays
        arrays["seq"][at] = row.seq
        arrays["epoch"][at] = row.epoch
        agent = arrays["agent"][at] = self._agents.code(row.agent)
        self._units_by[agent] += 1
        session, task = row.session or NO_SESSION, row.task or NO_TASK
        arrays["session"][at] = session
        arrays["task"][at] = task
        arrays["role"][at] = self._registrations.code(row.registration)
        arrays["type"][at] = self._types.code(row.type)
        arrays["status"][at] = STATUS_CODES[row.status]
        arrays["committed"][at] = row.mode == "committed"
        arrays["confidence"][at] = NO_CONFIDENCE if row.score is None else row.score
        arrays["trust"][at] = DEFAULT_AUTHORITY if row.trust is None else row.trust
        self._size = at + 1  # last: a snapshot never sees a row that is half there
        if row.mode == "committed":
            self._join(at, session, task)

    def extend(self, batch: UnitBatch) -> None:
        """Many units at once, in no conversation yet: `join_all` follows when they are all there."""
        statuses = np.fromiter(map(STATUS_CODES.__getitem__, batch.status), np.uint8, len(batch.status))
        columns: dict[str, Column] = {
            "seq": batch.seq,
            "epoch": batch.epoch,
            "session": batch.session,
            "task": batch.task,
            "agent": self._agents.codes_of(batch.agent.tolist()),
            "role": self._registrations.codes_of(batch.registration.tolist()),
            "type": self._types.codes_of(batch.type),
            "status": np.where(batch.purged_seq > 0, np.uint8(PURGED), statuses),
            "archived": batch.archived_epoch > 0,
            "committed": [mode == "committed" for mode in batch.mode],
            "confidence": np.nan_to_num(batch.score, nan=NO_CONFIDENCE),
            "echo_of": batch.echo_of,
            "trust": batch.trust,
        }
        self._put(columns, len(batch.seq))

    def _put(self, columns: Mapping[str, Column], count: int) -> None:
        """What is not among the columns stays blank."""
        first, end = self._size, self._size + count
        while end > len(self._arrays["seq"]):
            self._grow()
        for name, column in columns.items():
            self._arrays[name][first:end] = column
        self._units_by.update(columns["agent"])
        self._size = end  # last: a snapshot never sees a row that is half there

    def join_all(self, committed: NDArray[np.int64]) -> None:
        """Put every unit into its conversation. `committed` says by which entry each one took effect; 0: not yet."""
        rows = np.flatnonzero(committed)
        session, task = self._arrays["session"][rows], self._arrays["task"][rows]
        keys = np.where(session != NO_SESSION, session, -task)
        order = np.lexsort((committed[rows], keys))
        rows, keys = rows[order], keys[order]
        same = keys[1:] == keys[:-1]
        self._arrays["before"][rows[1:][same]] = rows[:-1][same]
        self._arrays["after"][rows[:-1][same]] = rows[1:][same]
        newest = np.flatnonzero(np.append(~same, True)[: len(rows)])
        self._last = {
            ("session", key) if key > 0 else ("task", -key): row
            for key, row in zip(keys[newest].tolist(), rows[newest].tolist(), strict=True)
        }

    def units_by(self, agent: int) -> int:
        """How many units the agent has recorded, whatever became of them."""
        return self._units_by[self._agents.codes.get(agent, -1)]

    def committed_by(self, agent: int, without: Collection[int]) -> int:
        """How many units the agent has committed that are not in one of these sessions."""
        units = self.snapshot(0)
        mine = (units.agent == units.agent_code(agent)) & units.committed
        return int(np.count_nonzero(mine & ~np.isin(units.session, np.fromiter(without, np.int64))))

    def row_of(self, seq: int) -> int:
        return self._at(seq)

    def rows_of(self, seqs: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
        return self._arrays["seq"][: self._size].searchsorted(seqs)

    def purged(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these are."""
        purged: NDArray[np.bool_] = self._arrays["status"][rows] == PURGED
        return purged

    def archived(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these are."""
        archived: NDArray[np.bool_] = self._arrays["archived"][rows]
        return archived

    def agents_at(self, rows: NDArray[np.int64]) -> list[int]:
        """The numbers of the agents that recorded them."""
        return list(map(self._agents.values.__getitem__, self._arrays["agent"][rows].tolist()))

    def agent_at(self, row: int) -> int:
        """The number of the agent that recorded it."""
        return self._agents.values[int(self._arrays["agent"][row])]

    def _join(self, at: int, session: int, task: int) -> None:
        """It comes after the newest unit of its conversation. A draft joins when it is committed: nobody else may tell
        from its neighbours that it is there."""
        arrays = self._arrays
        key = ("session", session) if session else ("task", task)  # without either: the field's own course
        before = self._last.get(key, NO_ROW)
        self._last[key] = at
        if before != NO_ROW:
            arrays["before"][at] = before
            arrays["after"][before] = at

    def _at(self, unit: int) -> int:
        return int(np.searchsorted(self._arrays["seq"][: self._size], unit))

    def _grow(self) -> None:
        # New arrays: a reader's snapshot keeps the old ones.
        self._arrays = {name: np.concatenate([array, _blank(name, len(array))]) for name, array in self._arrays.items()}


def _blank(name: str, size: int) -> NDArray[Any]:
    return np.full(size, _EMPTY.get(name, 0), _COLUMNS[name])


class _Codes(Generic[Coded]):
    """Small numbers for values that repeat."""

    def __init__(self) -> None:
        self.values: list[Coded] = []
        self.codes: dict[Coded, int] = {}

    def code(self, value: Coded) -> int:
        code = self.codes.get(value)
        if code is None:
            code = self.codes[value] = len(self.values)
            self.values.append(value)
        return code

    def codes_of(self, values: Iterable[Coded]) -> list[int]:
        return [self.code(value) for value in values]
