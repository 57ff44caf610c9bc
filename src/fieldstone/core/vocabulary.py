"""The closed word lists of the protocol, and what follows from each word."""

from typing import Final, Literal

Mode = Literal["draft", "committed"]
UnitStatus = Literal["active", "draft", "superseded", "retracted", "contested", "pending_enrichment"]
RelationType = Literal[
    "supports",
    "contradicts",
    "depends_on",
    "supersedes",
    "caused_by",
    "elaborates",
    "answers",
    "blocks",
    "informs",
]
AgentStatus = Literal["idle", "working", "waiting", "offline", "failed"]
ConflictType = Literal["factual", "interpretive", "strategic", "priority"]
ConflictStatus = Literal["detected", "resolving", "resolved", "escalated"]
DetectedBy = Literal["explicit", "semantic", "logical", "temporal"]
Operation = Literal[
    "REGISTER",
    "DEREGISTER",
    "RECORD",
    "ATTUNE",
    "DETECT",
    "MERGE",
    "SUBSCRIBE",
    "REPLAY",
    "COMPACT",
    "COORDINATE",
    "HANDOFF",
    "SESSION",
    "RETRACT",
    "COMMIT",
    "DISCARD",
]

MEMORY_TYPES: Final = (
    "finding",
    "decision",
    "observation",
    "intention",
    "assumption",
    "constraint",
    "question",
    "contradiction",
    "synthesis",
    "correction",
    "human_directive",
)

# The level from which on each operation must exist. RETRACT, COMMIT and DISCARD are ours and come with Level 1.
OPERATION_LEVELS: Final[dict[Operation, int]] = {
    "REGISTER": 0,
    "RECORD": 0,
    "ATTUNE": 0,
    "DEREGISTER": 1,
    "DETECT": 1,
    "COMMIT": 1,
    "DISCARD": 1,
    "RETRACT": 1,
    "SUBSCRIBE": 2,
    "MERGE": 2,
    "REPLAY": 2,
    "COMPACT": 2,
    "HANDOFF": 2,
    "COORDINATE": 3,
    "SESSION": 3,
}

Strategy = Literal["summarize", "archive", "purge"]
CompactionState = Literal["running", "done", "cancelled", "failed"]
Guard = Literal["hold", "pin"]
SecretChange = Literal["registered", "dropped"]
SecretHolder = Literal["tenant", "user", "run"]
FeedKind = Literal["memory.written", "memory.compacted", "agent.memory.consolidated"]

# What this version can do; the rest answers UNSUPPORTED_OPERATION until it is built.
BUILT_OPERATIONS: Final[tuple[Operation, ...]] = (
    "REGISTER",
    "DEREGISTER",
    "RECORD",
    "ATTUNE",
    "DETECT",
    "COMMIT",
    "DISCARD",
    "RETRACT",
    "COMPACT",
)
HIGHEST_COMPLETE_LEVEL: Final = 1

# Statuses that ATTUNE may show to others. A draft is shown to its author alone, and only when asked for.
SHOWN_STATUSES: Final[tuple[UnitStatus, ...]] = ("active", "contested", "pending_enrichment")
UNRESOLVED_STATUSES: Final[tuple[ConflictStatus, ...]] = ("detected", "resolving", "escalated")

# The Field's own voice: a reserved agent id that nobody can register.
FIELD_AGENT_ID: Final = "field"
# Sessions and agents of the OpenWOP memory host live under this prefix and are closed to RECORD and REGISTER.
RESERVED_SESSION_PREFIX: Final = "openwop:"
