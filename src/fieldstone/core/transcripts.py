"""The durable transcript's values: messages and what is in them, runs and how they end, threads and what is left."""

from typing import Any, Final, Literal

from msgspec import UNSET, Struct, UnsetType, ValidationError, json

Role = Literal["user", "assistant", "system", "tool"]
RunStatus = Literal["created", "streaming", "committed", "failed", "cancelled", "superseded"]
RecoveryAction = Literal["fail", "cancel", "commit"]
Branch = Literal["active", "all"]

# What a run may become. Nothing leads out of failed, cancelled and superseded.
RUN_STEPS: Final[dict[RunStatus, frozenset[RunStatus]]] = {
    "created": frozenset({"streaming", "failed", "cancelled"}),
    "streaming": frozenset({"committed", "failed", "cancelled"}),
    "committed": frozenset({"superseded"}),
    "failed": frozenset(),
    "cancelled": frozenset(),
    "superseded": frozenset(),
}
OPEN_STATUSES: Final[frozenset[RunStatus]] = frozenset({"created", "streaming"})

SCHEMA_VERSION: Final = 1  # of messages; changes are additive, and readers take every version up to theirs

DEFAULT_PAGE: Final = 1_000
MAX_PAGE: Final = 10_000
MAX_SELECTIONS: Final = 1_000  # forks that one read may choose at


class MessageTooNew(Exception):
    """The message was written by a newer version of Fieldstone. Upgrade Fieldstone to read it."""


class Part(Struct, frozen=True, gc=False, rename="camel", tag_field="type"):
    """What a message is made of, in its order."""


class TextPart(Part, frozen=True, gc=False, rename="camel", tag="text"):
    text: str


class ReasoningPart(Part, frozen=True, gc=False, rename="camel", tag="reasoning"):
    text: str


class ToolCallPart(Part, frozen=True, gc=False, rename="camel", tag="tool-call"):
    tool_call_id: str
    tool_name: str
    input: Any


class ToolResultPart(Part, frozen=True, gc=False, rename="camel", tag="tool-result"):
    tool_call_id: str
    tool_name: str
    output: Any
    is_error: bool = False


class FilePart(Part, frozen=True, gc=False, rename="camel", tag="file"):
    mime_type: str
    url: str
    name: str | UnsetType = UNSET


AnyPart = TextPart | ReasoningPart | ToolCallPart | ToolResultPart | FilePart


class CanonicalMessage(Struct, frozen=True, gc=False, rename="camel"):
    """The truth of a conversation, in pieces. `metadata` has schemaVersion, and what the run told about the message."""

    id: str
    parent_message_id: str | None
    role: Role
    parts: tuple[AnyPart, ...]
    created_at: str
    metadata: dict[str, Any]


class Run(Struct, frozen=True, gc=False, rename="camel"):
    run_id: str
    thread_id: str
    stream_id: str
    fork_from_message_id: str | None
    status: RunStatus
    created_at: str
    finished_at: str | None
    message_count: int
    last_activity_at: str


class MessagePage(Struct, frozen=True, gc=False):
    """`next` is where to go on, None at the end."""

    messages: tuple[CanonicalMessage, ...]
    next: str | None = None


class Node(Struct, frozen=True, gc=False, rename="camel"):
    """A message without its parts."""

    id: str
    parent_message_id: str | None
    role: str
    run_id: str
    created_at: str


class Tree(Struct, frozen=True, gc=False, rename="camel"):
    """Nodes in the order of creation."""

    nodes: tuple[Node, ...]
    active_leaf: str | None


class Thread(Struct, frozen=True, gc=False, rename="camel"):
    thread_id: str
    created_at: str
    last_activity_at: str
    active_leaf: str | None


class ThreadPage(Struct, frozen=True, gc=False):
    threads: tuple[Thread, ...]
    next: str | None = None


class ThreadReceipt(Struct, frozen=True, gc=False, rename="camel"):
    """What a deletion took away."""

    thread_id: str
    messages: int
    runs: int
    streams: int
    snapshots: int
    deleted_at: str


class Provenance(Struct, frozen=True, gc=False, rename="camel"):
    """Where a context comes from. `branch` is the last message of the path that was read, None for an empty one."""

    thread_id: str
    count: int
    first_message_id: str | None
    last_message_id: str | None
    branch: str | None


class Context(Struct, frozen=True, gc=False):
    """The end of a conversation, oldest message first, for the next prompt. `tokens` is known where it was counted."""

    messages: tuple[CanonicalMessage, ...]
    provenance: Provenance
    tokens: int | None = None


class _Version(Struct, rename="camel"):
    schema_version: int = SCHEMA_VERSION


class _Header(Struct):
    metadata: _Version


_ENCODER: Final = json.Encoder()
_MESSAGES: Final = json.Decoder(CanonicalMessage)
_HEADERS: Final = json.Decoder(_Header)


def encode_message(message: CanonicalMessage) -> bytes:
    return _ENCODER.encode(message)


def decode_message(body: bytes) -> CanonicalMessage:
    """Raises `MessageTooNew` where a later version may have changed what the words mean."""
    try:
        message = _MESSAGES.decode(body)
    except ValidationError:
        _check_version(_HEADERS.decode(body).metadata.schema_version)
        raise
    _check_version(message.metadata.get("schemaVersion", SCHEMA_VERSION))
    return message


def _check_version(version: int) -> None:
    if version > SCHEMA_VERSION:
        raise MessageTooNew(f"The message has schema version {version}; this reader knows up to {SCHEMA_VERSION}.")
