"""Which units are related, in memory and in both directions."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from fieldstone.ports.views import Change, PutRelation, RelationRow

# A unit with such a relation was made from the one it points to.
DERIVING: Final = ("elaborates", "caused_by", "depends_on")


class Relations:
    def __init__(self, rows: Iterable[RelationRow] = ()) -> None:
        self._related: dict[int, list[int]] = {}
        self.answers: list[tuple[int, int]] = []  # the unit that answers, and the one that is answered
        self.supports: list[tuple[int, int]] = []
        self._elaborated: dict[int, list[int]] = {}  # by each unit
        self._elaborating: dict[int, list[int]] = {}
        self._derived: dict[int, list[int]] = {}  # from each unit
        for row in rows:
            self._put(row)

    def apply(self, changes: Iterable[Change]) -> None:
        for change in changes:
            if isinstance(change, PutRelation):
                self._put(change.row)

    def around(self, units: Iterable[int], most: int) -> set[int]:
        """The units that stand in a relation with one of these, at most so many."""
        related = self._related
        return set(islice((other for unit in units for other in related.get(unit, ())), most))

    def elaborated_by(self, unit: int) -> Sequence[int]:
        return self._elaborated.get(unit, ())

    def elaborating(self, unit: int) -> Sequence[int]:
        return self._elaborating.get(unit, ())

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
            new = set(self._derived.get(waiting.pop(), ())) - found - {ancestor}
            found |= new
            waiting += new
        return found

    def _put(self, row: RelationRow) -> None:
        self._related.setdefault(row.source, []).append(row.target)
        self._related.setdefault(row.target, []).append(row.source)
        if row.type == "answers":
            self.answers.append((row.source, row.target))
        elif row.type == "supports":
            self.supports.append((row.source, row.target))
        elif row.type == "elaborates":
            self._elaborated.setdefault(row.source, []).append(row.target)
            self._elaborating.setdefault(row.target, []).append(row.source)
        if row.type in DERIVING:
            self._derived.setdefault(row.target, []).append(row.source)
