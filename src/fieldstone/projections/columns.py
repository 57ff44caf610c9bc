"""What scoring needs of every unit, as numpy columns: 35 bytes a unit, so that all of them can be looked at each time.

Only the field's writer changes them. A reader takes a `Snapshot`: rows are only ever appended, so what it holds stays
true while the writer goes on; a status that changes meanwhile shows either its old or its new value.
"""

from collections.abc import Iterable
from typing import Any, Final, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from fieldstone.core.vocabulary import UnitStatus
from fieldstone.ports.views import Change, CommitUnit, PutUnit, SetUnitStatus, UnitRow

Coded = TypeVar("Coded", int, str)

STATUS_CODES: Final[dict[UnitStatus, int]] = {
    "active": 0,
    "contested": 1,
    "pending_enrichment": 2,
    "draft": 3,
    "superseded": 4,
    "retracted": 5,
}
LAST_SHOWN_STATUS: Final = STATUS_CODES["pending_enrichment"]
NO_SESSION: Final = 0
FIRST_CAPACITY: Final = 1_024

_COLUMNS: Final[dict[str, Any]] = {
    "seq": np.int64,
    "epoch": np.int64,
    "session": np.int64,
    "agent": np.int32,
    "role": np.int32,
    "type": np.uint8,
    "status": np.uint8,
    "archived": np.bool_,
}


class Snapshot(NamedTuple):
    """The first `size` units, and the clock that belongs to them: every unit with an epoch up to it is there."""

    epoch: int
    size: int
    seq: NDArray[np.int64]
    unit_epoch: NDArray[np.int64]
    session: NDArray[np.int64]
    agent: NDArray[np.int32]
    role: NDArray[np.int32]
    type: NDArray[np.uint8]
    status: NDArray[np.uint8]
    archived: NDArray[np.bool_]
    agent_codes: dict[int, int]  # the agent's number → its code
    registrations: list[int]  # role code → the registration that says the role
    types: list[str]  # type code → type

    def agent_code(self, agent: int) -> int:
        """-1 for an agent that has recorded nothing."""
        return self.agent_codes.get(agent, -1)


class UnitColumns:
    def __init__(self) -> None:
        self._size = 0
        self._arrays: dict[str, NDArray[Any]] = {
            name: np.zeros(FIRST_CAPACITY, kind) for name, kind in _COLUMNS.items()
        }
        self._agents = _Codes[int]()
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
        for change in changes:
            match change:
                case PutUnit(row):
                    self.append(row)
                case SetUnitStatus(unit, status):
                    self._arrays["status"][self._at(unit)] = STATUS_CODES[status]
                case CommitUnit(unit, epoch):
                    at = self._at(unit)
                    self._arrays["epoch"][at] = epoch
                    self._arrays["status"][at] = STATUS_CODES["active"]
                case _:
                    pass  # changes of other rows

    def append(self, row: UnitRow) -> None:
        at = self._size
        if at == len(self._arrays["seq"]):
            self._grow()
        arrays = self._arrays
        arrays["seq"][at] = row.seq
        arrays["epoch"][at] = row.epoch
        arrays["agent"][at] = self._agents.code(row.agent)
        arrays["session"][at] = row.session or NO_SESSION
        arrays["role"][at] = self._registrations.code(row.registration)
        arrays["type"][at] = self._types.code(row.type)
        arrays["status"][at] = STATUS_CODES[row.status]
        arrays["archived"][at] = row.archived_epoch is not None
        self._size = at + 1  # last: a snapshot never sees a row that is half there

    def _at(self, unit: int) -> int:
        return int(np.searchsorted(self._arrays["seq"][: self._size], unit))

    def _grow(self) -> None:
        # New arrays: a reader's snapshot keeps the old ones.
        self._arrays = {name: np.concatenate([array, np.zeros_like(array)]) for name, array in self._arrays.items()}


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
