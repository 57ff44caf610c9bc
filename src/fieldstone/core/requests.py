"""What agents ask for: one frozen value for each operation, decoded once at the edge."""

from typing import Literal

from msgspec import Struct

from fieldstone.core.access import LOCAL, Caller
from fieldstone.core.units import Confidence, Intent, Relation
from fieldstone.core.vocabulary import Mode, Operation, Strategy

Format = Literal["full", "summary", "ids_only"]
Order = Literal["relevance", "epoch"]
TemporalLayer = Literal["past", "present", "future"]
DetectMode = Literal["check", "scan", "list"]


class Register(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    id: str
    role: str
    interests: tuple[str, ...] | None = None
    required_operations: tuple[str, ...] | None = None
    authority: int | None = None


class Deregister(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    agent_id: str


class Record(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """Fields whose absence has a code of its own are optional here and required in `validate`."""

    mode: Mode
    type: str
    content: str
    intent: Intent | None = None
    confidence: Confidence | None = None
    relations: tuple[Relation, ...] | None = None


class Scope(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    role: str
    max_units: int
    max_tokens: int | None = None
    interests: tuple[str, ...] | None = None
    active_task_id: str | None = None
    temporal_layers: tuple[TemporalLayer, ...] | None = None
    relevance_threshold: float | None = None
    recency_weight: float | None = None
    since_epoch: int | None = None
    include_own: bool = False
    include_archived: bool = False
    include_drafts: bool = False
    include_unvouched: bool = False
    sessions: tuple[str, ...] | None = None
    order: Order = "relevance"


class Attune(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    scope: Scope
    context_hint: str | None = None
    format: Format = "full"
    since_epoch: int | None = None
    min_epoch: int | None = None


class DetectFilter(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    status: tuple[str, ...] | None = None
    types: tuple[str, ...] | None = None
    involving_agents: tuple[str, ...] | None = None


class Detect(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    mode: DetectMode
    target_id: str | None = None
    filter: DetectFilter | None = None
    after_epoch: int | None = None


class Commit(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    memory_unit_id: str
    confidence: Confidence | None = None


class Discard(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    memory_unit_id: str
    reason: str | None = None


class Retract(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    memory_unit_id: str
    reason: str


class CompactFilter(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """None: no restriction."""

    max_age_epochs: int | None = None
    session_id: str | None = None
    types: tuple[str, ...] | None = None
    status: tuple[str, ...] | None = None
    ancestor_id: str | None = None


class Compact(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    strategy: Strategy
    filter: CompactFilter | None = None
    dry_run: bool = False
    reason: str | None = None
    verify: bool = True


Request = Register | Deregister | Record | Attune | Detect | Commit | Discard | Retract | Compact

REQUESTS: dict[Operation, type[Request]] = {
    "REGISTER": Register,
    "DEREGISTER": Deregister,
    "RECORD": Record,
    "ATTUNE": Attune,
    "DETECT": Detect,
    "COMMIT": Commit,
    "DISCARD": Discard,
    "RETRACT": Retract,
    "COMPACT": Compact,
}


class Message(Struct, frozen=True, gc=False):
    """A decoded envelope, and who sent it. `id` is None where the library itself makes the call: nobody can send it
    twice."""

    operation: Operation
    agent_id: str
    request: Request
    session_id: str | None = None
    epoch: int = 0
    id: str | None = None
    caller: Caller = LOCAL
