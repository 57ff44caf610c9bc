"""Which units are related, in memory and in both directions."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from fieldstone.ports.views import Change, ElaborateUnits, PutRelation, RelationRow

# A unit with such a relation was made from the one it points to.
DERIVING: Final = ("caused_by", "depends_on")  # and `elaborates`, which is kept by itself

# One unit, or several. Most have one, and a list for each of these would be an object that every collection of garbage
# goes through: of 10,000 units that were summarized, 30,000 lists and 20 ms.
Others = dict[int, int | list[int]]


class Relations:
    def __init__(self, rows: Iterable[RelationRow] = ()) -> None:
        self._related: Others = {}
        self.answers: list[tuple[int, int]] = []  # the unit that answers, and the one that is answered
        self.supports: list[tuple[int, int]] = []
        self._elaborated: Others = {}  # by each unit
        self._elaborating: Others = {}
        self._derived: Others = {}  # from each unit, in another way
        for row in rows:
            self._put(row)

    def apply(self, changes: Iterable[Change]) -> None:
        for change in changes:
            if isinstance(change, PutRelation):
                self._put(change.row)
            elif isinstance(change, ElaborateUnits):
                self._elaborate(change.source, change.targets)

    def around(self, units: Iterable[int], most: int) -> set[int]:
        """The units that stand in a relation with one of these, at most so many."""
        related = self._related
        return set(islice((other for unit in units for other in _of(unit, related)), most))

    def elaborated_by(self, unit: int) -> Sequence[int]:
        return _of(unit, self._elaborated)

    def elaborating(self, unit: int) -> Sequence[int]:
        return _of(unit, self._elaborating)

    @property
    def first_quoting(self) -> int | None:
        """The first unit that elaborates another."""
        return min(self._elaborated, default=None)

    def originals_of(self, unit: int) -> set[int]:
        """Everything that went into it, through as many steps as there are."""
        found: set[int] = set()
        waiting = [unit]
        while waiting:
            new = set(self.elaborated_by(waiting.pop())) - found
            found |= new
            waiting += new
        return found

    def derived_from(self, ancestor: int) -> set[int]:
        """Everything that was made from the unit, and from what was made from it."""
        found: set[int] = set()
        waiting = [ancestor]
        while waiting:
            unit = waiting.pop()
            new = {*_of(unit, self._elaborating), *_of(unit, self._derived)} - found - {ancestor}
            found |= new
            waiting += new
        return found

    def _put(self, row: RelationRow) -> None:
        if row.type == "elaborates":
            self._elaborate(row.source, (row.target,))
            return
        _add((row.target,), row.source, self._related)
        _add((row.source,), row.target, self._related)
        if row.type == "answers":
            self.answers.append((row.source, row.target))
        elif row.type == "supports":
            self.supports.append((row.source, row.target))
        if row.type in DERIVING:
            _add((row.source,), row.target, self._derived)

    def _elaborate(self, source: int, targets: Sequence[int]) -> None:
        _add(targets, source, self._related)
        _add(targets, source, self._elaborated)
        sources = (source,)
        for target in targets:
            _add(sources, target, self._related)
            _add(sources, target, self._elaborating)


def _add(others: Sequence[int], unit: int, to: Others) -> None:
    known = to.get(unit)
    if isinstance(known, list):
        known.extend(others)
    elif known is None and len(others) == 1:
        to[unit] = others[0]
    else:
        to[unit] = [*_of(unit, to), *others]


def _of(unit: int, others: Others) -> Sequence[int]:
    known = others.get(unit, ())
    return (known,) if isinstance(known, int) else known
