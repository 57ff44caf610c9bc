"""The transport log's values: events as they are given, as they are stored, and their bounds."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from msgspec import Struct

EventKind = Literal[
    "text-delta",
    "tool-call",
    "tool-result",
    "reasoning",
    "file",
    "step-started",
    "step-finished",
    "error",
    "user-message",
]

TEXT_DELTA: Final = "text-delta"
TOOL_CALL: Final = "tool-call"
TOOL_RESULT: Final = "tool-result"
REASONING: Final = "reasoning"
FILE: Final = "file"
STEP_STARTED: Final = "step-started"
STEP_FINISHED: Final = "step-finished"
ERROR: Final = "error"
USER_MESSAGE: Final = "user-message"

# The texts that an event of a kind tells something by: without them it would leave no part of a message, in silence.
TEXT_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    TEXT_DELTA: ("delta",),
    REASONING: ("text",),
    TOOL_CALL: ("toolCallId", "toolName"),
    TOOL_RESULT: ("toolCallId",),
    FILE: ("mimeType", "url"),
}

MAX_STREAM_ID_CHARS: Final = 256  # stream, thread, run, message and reader ids are names, not texts
MAX_KIND_CHARS: Final = 256
MAX_APPEND_EVENTS: Final = 10_000  # one transaction, for which all other writers of the store wait
MAX_EVENT_BYTES: Final = 4_000_000  # a tool's output or a file as a data URL; larger ones belong behind a URL
MAX_SEQ: Final = 2**30 - 1  # a thousand million events a stream; see the layout in backends/sqlite/planes.sql

DEFAULT_READ_EVENTS: Final = 1_000
MAX_READ_EVENTS: Final = 10_000


class StreamEvent(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """What a run tells. `kind` is one of `EventKind` or any other name: unknown kinds are stored and passed on."""

    kind: str
    payload: dict[str, Any] = {}


class StoredEvent(Struct, frozen=True, gc=False, rename="camel"):
    """An event as readers get it: dense from 1 within its stream, its time in UTC to the millisecond."""

    stream_id: str
    seq: int
    timestamp: str
    event: StreamEvent


class StreamInfo(Struct, frozen=True, gc=False):
    """`head` is the last seq ever given, `floor` the one up to which events are gone. Neither ever falls."""

    head: int
    floor: int


UNKNOWN_STREAM: Final = StreamInfo(head=0, floor=0)  # it reads as empty
