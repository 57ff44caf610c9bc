"""What the Field answers: one frozen value for each operation."""

from typing import Generic, Literal

from msgspec import UNSET, Struct, UnsetType

from fieldstone.core.conflicts import Conflict
from fieldstone.core.units import MemoryUnit, ScopedMemoryUnit, Shown, UnitRef
from fieldstone.core.vocabulary import AgentStatus, CompactionState, Guard, Strategy


class Warning(Struct, frozen=True, gc=False):
    """Something the caller should know of a request that was carried out."""

    code: Literal["REDACTED", "FIELD_IGNORED", "ENRICHMENT_FAILED", "DETECTION_TIMEOUT"]
    message: str


Warnings = tuple[Warning, ...] | UnsetType


class AgentProfile(Struct, frozen=True, gc=False):
    id: str
    role: str
    status: AgentStatus
    interests: tuple[str, ...]
    current_task_id: str | None = None
    authority: int = 4


class FieldCapabilities(Struct, frozen=True, gc=False):
    conformance_level: int
    supported_operations: tuple[str, ...]
    protocol_version: str
    persistence: bool
    conflict_strategies: tuple[str, ...]


class Registered(Struct, frozen=True, gc=False):
    agent: AgentProfile
    field_capabilities: FieldCapabilities
    epoch: int
    status: Literal["registered"] = "registered"
    rejection_reason: None = None
    warnings: Warnings = UNSET


class Cleanup(Struct, frozen=True, gc=False):
    units_orphaned: int
    tasks_reassigned: int


class Deregistered(Struct, frozen=True, gc=False):
    status: Literal["ok", "not_found"]
    cleanup: Cleanup
    epoch: int


class Accepted(Struct, frozen=True, gc=False):
    """RECORD and COMMIT: the unit is on disk."""

    memory_unit_id: str
    epoch: int
    conflicts_detected: tuple[str, ...] = ()
    status: Literal["accepted"] = "accepted"
    rejection_reason: None = None
    conflict_detection: Literal["deferred"] | UnsetType = UNSET
    warnings: Warnings = UNSET


class Done(Struct, frozen=True, gc=False):
    """RETRACT and DISCARD."""

    memory_unit_id: str
    epoch: int
    status: Literal["ok"] = "ok"
    warnings: Warnings = UNSET


class LeftOutUnit(Struct, frozen=True, gc=False):
    memory_unit_id: str
    reason: str


class LeftOut(Struct, frozen=True, gc=False):
    """The receipt: candidates that are not on the page, and why. Counts of all; the first 100 by name."""

    over_budget: int
    below_threshold: int
    duplicate: int
    over_max_units: int
    units: tuple[LeftOutUnit, ...]


class ContextBudget(Struct, frozen=True, gc=False):
    units_returned: int
    units_available: int
    tokens_used: int | None = None
    tokens_budget: int | None = None
    tokenizer: str | UnsetType = UNSET
    left_out: LeftOut | UnsetType = UNSET
    next_since_epoch: int | UnsetType = UNSET


class AttuneReply(Struct, Generic[Shown], frozen=True, gc=False):
    record: tuple[ScopedMemoryUnit[Shown], ...]
    conflicts: tuple[Conflict, ...]
    context_budget: ContextBudget
    epoch: int
    status: Literal["ok"] = "ok"
    warnings: Warnings = UNSET


Attunement = AttuneReply[MemoryUnit]
AttunementOfIds = AttuneReply[UnitRef]


class ScanCoverage(Struct, frozen=True, gc=False):
    units_scanned: int
    new_conflicts_found: int
    complete: bool = True
    next_after_epoch: int | None = None


class Detection(Struct, frozen=True, gc=False):
    conflicts: tuple[Conflict, ...]
    scan_coverage: ScanCoverage
    epoch: int
    status: Literal["ok"] = "ok"
    warnings: Warnings = UNSET


class Skipped(Struct, frozen=True, gc=False):
    unit_id: str
    reason: str


class Tested(Struct, frozen=True, gc=False):
    """What the field's recent requests would still find after a summarize. `kept_share` of the relevance mass."""

    result: Literal["tested", "untested", "skipped"]
    requests: int = 0
    kept_share: float | None = None


class PlannedGroup(Struct, frozen=True, gc=False):
    """What a dry run would do with units that belong together."""

    units: int
    tokens_before: int
    tokens_after: int | None
    bytes: int
    session_id: str | None = None
    unit_ids: tuple[str, ...] = ()


class Compacted(Struct, frozen=True, gc=False, omit_defaults=False):
    units_affected: int
    synthesis_units_created: int
    storage_reclaimed_bytes: int | None
    epoch: int
    status: Literal["ok"] = "ok"
    compaction_id: str | None = None
    skipped: tuple[Skipped, ...] = ()
    synthesis_units: tuple[str, ...] | UnsetType = UNSET
    residue: Literal["none", "pending"] | UnsetType = UNSET
    tested: Tested | UnsetType = UNSET
    fell_back: tuple[str, ...] | UnsetType = UNSET
    cancelled: bool | UnsetType = UNSET
    groups: tuple[PlannedGroup, ...] | UnsetType = UNSET  # of a dry run
    warnings: Warnings = UNSET


class CompactionProgress(Struct, frozen=True, gc=False):
    compaction_id: str
    state: CompactionState
    units_done: int
    units_total: int
    result: Compacted | UnsetType = UNSET


class ListedCompaction(Struct, frozen=True, gc=False):
    """`agent_id`: who asked for it; `field` where a retention policy or a memory's host did."""

    compaction_id: str
    strategy: Strategy
    agent_id: str
    state: CompactionState
    units_done: int
    begun_at: str
    ended_at: str | None


class CompactionPage(Struct, frozen=True, gc=False):
    compactions: tuple[ListedCompaction, ...]
    next: int | None


class GuardedUnit(Struct, frozen=True, gc=False):
    """A unit that no compaction touches: it is held for a legal reason, or pinned."""

    unit_id: str
    guard: Guard


class GuardPage(Struct, frozen=True, gc=False):
    guards: tuple[GuardedUnit, ...]
    next: int | None


class Lineage(Struct, frozen=True, gc=False):
    """From a synthesis to its originals, and from an original to what was made of it."""

    unit_id: str
    made_from: tuple[str, ...]
    made_into: tuple[str, ...]


class EmbeddingProgress(Struct, frozen=True, gc=False):
    """How far the vectors of a model are: `waiting` units have none yet."""

    model: str
    state: Literal["serving", "preparing"]
    units: int
    waiting: int


class FieldStatus(Struct, frozen=True, gc=False):
    """GET /v1/field/status."""

    tenant: str
    field: str
    epoch: int
    conformance_level: int
    supported_operations: tuple[str, ...]
    protocol_version: str
    units: int  # that are there, archived ones among them
    agents: int
    conflicts_open: int
    log_entries: int
    text_index_position: int
    embeddings: tuple[EmbeddingProgress, ...]
    detection_behind: int
    store: str | None  # for the local operator: the file is none of a tenant's business, and its size is others', too
    bytes: int | None
    version: str
    units_archived: int = 0  # of the units; a server of before did not tell
    open_mode: bool = True
    status: Literal["ok"] = "ok"


Reply = Registered | Deregistered | Accepted | Done | Attunement | AttunementOfIds | Detection | Compacted
