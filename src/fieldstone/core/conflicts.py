"""Conflicts between two units, and the moves that their state machine allows."""

from typing import Final

from msgspec import Struct

from fieldstone.core.errors import InvalidTransition
from fieldstone.core.vocabulary import ConflictStatus, ConflictType, DetectedBy

MOVES: Final[dict[ConflictStatus, tuple[ConflictStatus, ...]]] = {
    "detected": ("resolving", "escalated"),
    "resolving": ("resolved", "escalated"),
    "escalated": ("resolved",),
    "resolved": (),
}


class Resolution(Struct, frozen=True, gc=False):
    strategy: str
    winner_id: str | None
    rationale: str
    resolved_by: str
    epoch_resolved: int


class Conflict(Struct, frozen=True, gc=False):
    id: str
    type: ConflictType
    status: ConflictStatus
    unit_a: str
    unit_b: str
    description: str
    detected_by: DetectedBy
    resolution: Resolution | None = None


def check_move(conflict_id: str, now: ConflictStatus, then: ConflictStatus) -> None:
    if then not in MOVES[now]:
        raise InvalidTransition(f"conflict {conflict_id} is {now} and cannot become {then}.")


def classify(type_a: str, type_b: str) -> ConflictType:
    """What kind of disagreement it is, by the kinds of units that disagree."""
    types = {type_a, type_b}
    if types & {"constraint", "human_directive"}:
        return "priority"
    if types & {"decision", "intention"}:
        return "strategic"
    if types & {"assumption", "synthesis", "question"}:
        return "interpretive"
    return "factual"
