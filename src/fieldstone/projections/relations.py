"""Which units are related, in memory and in both directions."""

from collections.abc import Iterable
from itertools import islice

from fieldstone.ports.views import Change, PutRelation, RelationRow


class Relations:
    def __init__(self, rows: Iterable[RelationRow] = ()) -> None:
        self._related: dict[int, list[int]] = {}
        self.answers: list[tuple[int, int]] = []  # the unit that answers, and the one that is answered
        self.supports: list[tuple[int, int]] = []
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

    def _put(self, row: RelationRow) -> None:
        self._related.setdefault(row.source, []).append(row.target)
        self._related.setdefault(row.target, []).append(row.source)
        if row.type == "answers":
            self.answers.append((row.source, row.target))
        elif row.type == "supports":
            self.supports.append((row.source, row.target))
