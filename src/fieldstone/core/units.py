"""Memory units as agents see them, and what is in them."""

from typing import Generic, TypeVar

from msgspec import UNSET, Struct, UnsetType

from fieldstone.core.vocabulary import Guard, Mode, RelationType, UnitStatus


class Intent(Struct, frozen=True, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """Why a unit was recorded. The purpose is what makes a memory usable by others."""

    purpose: str | None = None
    task_id: str | None = None
    question: str | None = None


class Confidence(Struct, frozen=True, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    score: float | None = None
    reasoning: str | None = None
    evidence: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()


class Relation(Struct, frozen=True, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    type: RelationType
    target_id: str
    description: str | None = None


class Source(Struct, frozen=True, gc=False):
    """Where a unit came from. The Field writes it; an agent cannot."""

    agent_id: str
    agent_role: str
    session_id: str | None
    timestamp: str


class MemoryUnit(Struct, frozen=True, gc=False):
    id: str
    mode: Mode
    type: str
    content: str
    intent: Intent
    confidence: Confidence | None
    source: Source
    relations: tuple[Relation, ...]
    status: UnitStatus
    epoch: int
    archived_epoch: int | UnsetType = UNSET
    guards: tuple[Guard, ...] | UnsetType = UNSET  # set where one is read by itself, has any, and the reader may know


class UnitRef(Struct, frozen=True, gc=False):
    """What `ids_only` returns of a unit."""

    id: str
    epoch: int


class DerivedFrom(Struct, frozen=True, gc=False):
    """From how many units of which agents a synthesis was made."""

    units: int
    agents: tuple[str, ...]


Shown = TypeVar("Shown", MemoryUnit, UnitRef)


class ScopedMemoryUnit(Struct, Generic[Shown], frozen=True, gc=False):
    """A unit as ATTUNE brings it: how much it matters to this agent, and why."""

    memory_unit: Shown
    relevance_score: float
    relevance_reason: str
    format: str
    factors: dict[str, float] | UnsetType = UNSET
    duplicate_of: str | UnsetType = UNSET
    trust: int | UnsetType = UNSET
    derived_from: DerivedFrom | UnsetType = UNSET  # set for a synthesis that the Field made
    untrusted: bool | UnsetType = UNSET  # set where it is so: fence it off before a model reads it
