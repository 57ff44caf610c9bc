"""What the statuses of a field's units must be, worked out from the accepted requests alone, in whatever order."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from fieldstone.core.units import Relation
from fieldstone.core.vocabulary import UnitStatus


@dataclass
class ModelUnit:
    relations: Sequence[Relation]
    draft: bool
    retracted: bool = False  # or discarded


@dataclass
class Model:
    units: dict[str, ModelUnit] = field(default_factory=dict)

    def statuses(self) -> dict[str, UnitStatus]:
        return {unit: self._status(unit) for unit in self.units}

    def open_conflicts(self) -> set[tuple[str, str]]:
        """(who said so, about whom): both still stand."""
        gone = {unit for unit in self.units if self._status_alone(unit) in ("retracted", "superseded")}
        return {(a, b) for a, b in self._pairs("contradicts") if a not in gone and b not in gone}

    def _status(self, unit: str) -> UnitStatus:
        alone = self._status_alone(unit)
        contested = {side for pair in self.open_conflicts() for side in pair}
        return "contested" if alone == "active" and unit in contested else alone

    def _status_alone(self, unit: str) -> UnitStatus:
        if self.units[unit].retracted:
            return "retracted"
        if self.units[unit].draft:
            return "draft"
        return "superseded" if unit in {target for _, target in self._pairs("supersedes")} else "active"

    def _pairs(self, kind: str) -> set[tuple[str, str]]:
        """Relations take effect with their unit's commit, and what has taken effect stays, retracted or not."""
        return {
            (unit, relation.target_id)
            for unit, made in self.units.items()
            if not made.draft
            for relation in made.relations
            if relation.type == kind
        }
