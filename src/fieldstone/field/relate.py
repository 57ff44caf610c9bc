"""What follows from a unit's relations when it takes effect, and from a unit's leaving."""

from collections.abc import Sequence
from typing import Literal

from fieldstone.core import conflicts
from fieldstone.core.agents import AgentFacts
from fieldstone.core.authority import SUPERSEDE_ANOTHERS, check_authority
from fieldstone.core.errors import InvalidTransition, UnitNotFound
from fieldstone.core.events import (
    ConflictDetected,
    ConflictResolved,
    LoggedRelation,
    ReasonText,
    UnitContested,
    UnitReinstated,
    UnitSuperseded,
)
from fieldstone.core.text import CleanText
from fieldstone.core.units import Relation
from fieldstone.core.vocabulary import ConflictType, DetectedBy, UnitStatus
from fieldstone.field.desk import Desk, Draft
from fieldstone.ports.views import ConflictRow, UnitRow
from fieldstone.ports.world import Ids

Departure = Literal["superseded", "retracted", "purged"]

MUST_EXIST = ("contradicts", "supersedes")
_GONE = ("superseded", "retracted")


async def find_target(desk: Desk, author: AgentFacts, relation: Relation) -> UnitRow | None:
    """The unit that a relation points to, or None where it may point beyond the Field."""
    target = await desk.unit(relation.target_id)
    if target is not None and desk.hides(target, author):
        target = None  # nobody learns of another's draft, or of what is in a closed session
    if relation.type not in MUST_EXIST:
        return target
    if target is None:
        raise UnitNotFound(f"There is no memory unit for the {relation.type} relation to point to.")
    if target.mode == "draft":
        raise InvalidTransition(f"{target.id} is a draft: COMMIT or DISCARD it instead.")
    if relation.type == "supersedes" and target.agent != author.number:
        check_authority(author.authority, SUPERSEDE_ANOTHERS, "superseding another agent's unit")
    return target


async def relate(
    draft: Draft,
    desk: Desk,
    ids: Ids,
    author: AgentFacts,
    unit: int,
    unit_type: str,
    relations: Sequence[LoggedRelation],
    descriptions: Sequence[CleanText | None],
) -> list[str]:
    """Supersede first, then contradict: what is superseded needs no contest. The ids of the conflicts."""
    standings = _Standings(draft, desk)
    standings.enter(unit)
    for relation in relations:
        if relation.type != "supersedes" or relation.target is None:
            continue
        if await standings.of(relation.target) not in _GONE:
            draft.append(UnitSuperseded(unit=relation.target, by_unit=unit))
            await standings.leave(relation.target, "superseded")
    found: dict[int, str] = {}
    for relation, description in zip(relations, descriptions, strict=True):
        if relation.type == "contradicts" and relation.target is not None and relation.target not in found:
            target = await desk.unit_at(relation.target)
            kind = conflicts.classify(unit_type, target.type)
            found[target.seq] = await _contest(draft, standings, ids, unit, target.seq, kind, "explicit", description)
    return list(found.values())


async def contest(
    draft: Draft, desk: Desk, ids: Ids, unit: UnitRow, other: UnitRow, how: DetectedBy, description: CleanText
) -> str:
    """The Field itself found that two units contradict each other. The conflict's id."""
    kind = conflicts.classify(unit.type, other.type)
    return await _contest(draft, _Standings(draft, desk), ids, unit.seq, other.seq, kind, how, description)


async def settle(draft: Draft, desk: Desk, units: Sequence[int], how: Departure) -> None:
    """Resolve the conflicts of units that left together, and let the other sides stand again."""
    standings = _Standings(draft, desk, leaving=frozenset(units))
    for unit in units:
        await standings.leave(unit, how)


class _Standings:
    """Where each unit stands by what this draft has decided so far: the desk learns of it only when it is accepted."""

    def __init__(self, draft: Draft, desk: Desk, leaving: frozenset[int] = frozenset()) -> None:
        self._draft = draft
        self._desk = desk
        self._leaving = leaving  # they stand nowhere again, whatever becomes of their conflicts
        self._statuses: dict[int, UnitStatus] = {}
        self._resolved: set[int] = set()

    async def of(self, unit: int) -> UnitStatus:
        return self._statuses.get(unit) or (await self._desk.unit_at(unit)).status

    def enter(self, unit: int) -> None:
        self._statuses[unit] = "active"

    async def contest(self, unit: int, conflict: int) -> None:
        if await self.of(unit) != "contested":
            self._draft.append(UnitContested(unit=unit, conflict=conflict))
            self._statuses[unit] = "contested"

    async def leave(self, unit: int, how: Departure) -> None:
        if how != "purged":
            self._statuses[unit] = how
        for conflict in await self._open_conflicts_of(unit):
            other = conflict.unit_b if conflict.unit_a == unit else conflict.unit_a
            _resolve(self._draft, conflict, winner=other, how=how)
            self._resolved.add(conflict.seq)
            if await self._stands_again(other):
                self._draft.append(UnitReinstated(unit=other))
                self._statuses[other] = "active"

    async def _stands_again(self, unit: int) -> bool:
        if unit in self._leaving or await self.of(unit) != "contested":
            return False
        return not await self._open_conflicts_of(unit)

    async def _open_conflicts_of(self, unit: int) -> list[ConflictRow]:
        return [row for row in await self._desk.open_conflicts_of(unit) if row.seq not in self._resolved]


async def _contest(
    draft: Draft,
    standings: _Standings,
    ids: Ids,
    unit: int,
    target: int,
    kind: ConflictType,
    how: DetectedBy,
    description: CleanText | None,
) -> str:
    conflict_id = ids.conflict()
    conflict = draft.append(
        ConflictDetected(id=conflict_id, type=kind, detected_by=how, unit_a=unit, unit_b=target),
        None if description is None else ReasonText(description),
    )
    standing = await standings.of(target)
    if standing in _GONE:
        # One side is gone already: the conflict is on record, and there is nothing left to contest.
        draft.append(ConflictResolved(conflict=conflict, strategy=standing, winner=unit))
        return conflict_id
    await standings.contest(unit, conflict)
    await standings.contest(target, conflict)
    return conflict_id


def _resolve(draft: Draft, conflict: ConflictRow, *, winner: int, how: Departure) -> None:
    if conflict.status == "detected":
        conflicts.check_move(conflict.id, "detected", "resolving")
        conflicts.check_move(conflict.id, "resolving", "resolved")
    else:
        conflicts.check_move(conflict.id, conflict.status, "resolved")
    draft.append(ConflictResolved(conflict=conflict.seq, strategy=how, winner=winner))
