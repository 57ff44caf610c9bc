"""How far a unit can be trusted: no further than its author, and a synthesis no further than what it was made of."""

from collections.abc import Sequence
from typing import Final

from fieldstone.core.limits import DEFAULT_AUTHORITY
from fieldstone.core.units import Relation
from fieldstone.core.vocabulary import RelationType
from fieldstone.ports.views import UnitRow

# What a synthesis stands against is not what it was made of.
_AGAINST: Final[tuple[RelationType, ...]] = ("contradicts", "supersedes")


def trust_of(unit_type: str, authority: int, targets: Sequence[UnitRow | None], relations: Sequence[Relation]) -> int:
    if unit_type != "synthesis":
        return authority
    sources = [
        target
        for target, relation in zip(targets, relations, strict=True)
        if target is not None and relation.type not in _AGAINST
    ]
    return min((authority, *(noted_trust(source) for source in sources)))


def noted_trust(unit: UnitRow) -> int:
    return DEFAULT_AUTHORITY if unit.trust is None else unit.trust
