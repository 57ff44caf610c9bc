"""What follows from a unit's relations when it takes effect, and from a unit's leaving."""

from collections.abc import Sequence

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
from fieldstone.core.vocabulary import ConflictType
from fieldstone.field.desk import Desk, Draft
from fieldstone.ports.views import ConflictRow, UnitRow
from fieldstone.ports.world import Ids

_MUST_EXIST = ("contradicts", "supersedes")
_GONE = ("superseded", "retracted")


async def find_target(desk: Desk, author: AgentFacts, relation: Relation) -> UnitRow | None:
    """The unit that a relation points to, or None where it may point beyond the Field."""
    target = await desk.unit(relation.target_id)
    if target is not None and target.mode == "draft" and target.agent != author.number:
        target = None  # nobody learns of another's draft
    if relation.type not in _MUST_EXIST:
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
    gone: set[int] = set()
    for relation in relations:
        if relation.type == "supersedes" and relation.target is not None and relation.target not in gone:
            target = await desk.unit_at(relation.target)
            gone.add(target.seq)
            if target.status not in _GONE:
                draft.append(UnitSuperseded(unit=target.seq, by_unit=unit))
                await settle(draft, desk, target.seq, "superseded")
    found: dict[int, str] = {}
    for relation, description in zip(relations, descriptions, strict=True):
        if relation.type == "contradicts" and relation.target is not None and relation.target not in found:
            target = await desk.unit_at(relation.target)
            moot = target.seq in gone or target.status in _GONE
            kind = conflicts.classify(unit_type, target.type)
            found[target.seq] = _contest(draft, ids, unit, target, kind, description, moot=moot, again=bool(found))
    return list(found.values())


async def settle(draft: Draft, desk: Desk, unit: int, how: str) -> None:
    """Resolve the conflicts of a unit that left, and let the other sides stand again."""
    for conflict in await desk.open_conflicts_of(unit):
        other = conflict.unit_b if conflict.unit_a == unit else conflict.unit_a
        _resolve(draft, conflict, winner=other, how=how)
        remaining = [row for row in await desk.open_conflicts_of(other) if row.seq != conflict.seq]
        other_row = await desk.unit_at(other)
        if not remaining and other_row.status == "contested":
            draft.append(UnitReinstated(unit=other))


def _contest(
    draft: Draft,
    ids: Ids,
    unit: int,
    target: UnitRow,
    kind: ConflictType,
    description: CleanText | None,
    *,
    moot: bool,
    again: bool,
) -> str:
    conflict_id = ids.conflict()
    conflict = draft.append(
        ConflictDetected(id=conflict_id, type=kind, detected_by="explicit", unit_a=unit, unit_b=target.seq),
        None if description is None else ReasonText(description),
    )
    if moot:
        # One side is gone already: the conflict is on record, and there is nothing left to contest.
        draft.append(ConflictResolved(conflict=conflict, strategy="superseded", winner=unit))
        return conflict_id
    if not again:
        draft.append(UnitContested(unit=unit, conflict=conflict))
    if target.status != "contested":
        draft.append(UnitContested(unit=target.seq, conflict=conflict))
    return conflict_id


def _resolve(draft: Draft, conflict: ConflictRow, *, winner: int, how: str) -> None:
    if conflict.status == "detected":
        conflicts.check_move(conflict.id, "detected", "resolving")
        conflicts.check_move(conflict.id, "resolving", "resolved")
    else:
        conflicts.check_move(conflict.id, conflict.status, "resolved")
    draft.append(ConflictResolved(conflict=conflict.seq, strategy=how, winner=winner))
