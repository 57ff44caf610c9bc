"""From a stream's events to its messages.

A draft of an assistant's message opens with step-started or the first content. tool-result, user-message,
step-finished and the end of the stream close it. Ids and times come from the event that opened a message, so that
whoever projects the same events gets the same messages, byte for byte.

An event of an unknown kind, or without what its kind needs, tells nothing: it stays in the log and leaves no part.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from hashlib import blake2b
from itertools import islice
from typing import Any, Final, Generic, NamedTuple, TypeVar

from msgspec import UNSET, Raw, Struct, ValidationError, convert, json

from fieldstone.core.streams import (
    ERROR,
    FILE,
    REASONING,
    STEP_FINISHED,
    STEP_STARTED,
    TEXT_DELTA,
    TOOL_CALL,
    TOOL_RESULT,
    USER_MESSAGE,
    StreamEvent,
)
from fieldstone.core.transcripts import (
    SCHEMA_VERSION,
    AnyPart,
    CanonicalMessage,
    FilePart,
    ReasoningPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from fieldstone.planes.projector import Projector, unchanged
from fieldstone.ports.planes import EventBlock
from fieldstone.retrieval.reading import timestamp

STATE_VERSION: Final = 1  # of what `encode_state` writes; a snapshot of another version is not read
MESSAGE_ID_BYTES: Final = 16
LOOKED_BACK: Final = 100  # messages
UNKNOWN_TOOL: Final = "unknown"

Payload = Mapping[str, Any]
Metadata = Mapping[str, Any]
T = TypeVar("T")


class LogEvent(NamedTuple):
    """A stored event, decoded."""

    seq: int
    at_ms: int
    kind: str
    payload: Payload


class Chain(NamedTuple, Generic[T]):
    """A list whose copies share what is the same: one item more costs as much after a million as after none."""

    before: "Chain[T] | None"
    item: T


class Draft(NamedTuple):
    """An assistant's message that may still grow. The text that came last is in the state's `text`."""

    seq: int  # of the event that opened it
    at_ms: int
    parts: Chain[AnyPart] | None = None
    metadata: Mapping[str, Any] = {}


class MessagesState(NamedTuple):
    """What the events so far make. It is never changed in place."""

    stream: str
    parent: str | None  # of the next message: the one before, or the fork point
    done: Chain[CanonicalMessage] | None = None
    answer: CanonicalMessage | None = None  # the last assistant's message: what ends its step may still belong to it
    after: Chain[CanonicalMessage] | None = None  # the results that came after it
    draft: Draft | None = None
    calls: Mapping[str, str] = {}  # tool calls without a result → the tool
    text: Chain[str] | None = None  # the draft's running text, in pieces


Messages = Projector[MessagesState, LogEvent]


def project_messages(stream: str, fork_from: str | None = None, *, last_seq: int = 0) -> Messages:
    """A projector at the beginning of a stream, or after `last_seq` where what was before is gone."""
    return Projector(MessagesState(stream, fork_from), reduce_event, last_seq=last_seq, copy=unchanged)


def go_on_from(state: MessagesState, last_seq: int) -> Messages:
    return Projector(state, reduce_event, last_seq=last_seq, copy=unchanged)


def decode_events(blocks: Iterable[EventBlock]) -> list[LogEvent]:
    return [
        LogEvent(seq, at_ms, event.kind, event.payload)
        for seqs, times_ms, bodies in blocks
        for seq, at_ms, event in zip(seqs, _TIMES.decode(times_ms), _EVENTS.decode(bodies), strict=True)
    ]


def reduce_event(state: MessagesState, event: LogEvent) -> MessagesState:
    rule = _RULES.get(event.kind)
    return state if rule is None else rule(state, event)


def messages_of(state: MessagesState) -> tuple[CanonicalMessage, ...]:
    """The messages if the stream ended here: its end closes what is open."""
    return _closed_messages(_close(state))


def open_calls(state: MessagesState) -> Mapping[str, str]:
    """Tool calls that have no result yet, by id, with the tool's name."""
    return state.calls


def message_id(stream: str, seq: int) -> str:
    """Of the message that the event opens."""
    return "msg-" + blake2b(f"{stream}\n{seq}".encode(), digest_size=MESSAGE_ID_BYTES).hexdigest()


def created_ms(message: CanonicalMessage) -> int:
    """The time of the event that opened it."""
    return round(datetime.fromisoformat(message.created_at).timestamp() * 1_000)


class _StoredDraft(Struct, frozen=True, gc=False, rename="camel"):
    seq: int
    at_ms: int
    parts: tuple[AnyPart, ...]
    metadata: dict[str, Any]


class _StoredState(Struct, frozen=True, gc=False, rename="camel"):
    """As a snapshot keeps it, and shows it: the closed messages, and what is still open."""

    stream_id: str
    parent_message_id: str | None
    messages: tuple[Raw, ...]  # each encoded by itself: one call over megabytes lets no other thread run
    answer: int | None  # where among the messages
    draft: _StoredDraft | None
    open_calls: dict[str, str]


def encode_state(state: MessagesState) -> bytes:
    """The same events give the same bytes, whether or not a snapshot stood between them."""
    results = 0 if state.answer is None else len(_listed(state.after))
    messages = tuple(Raw(_ENCODER.encode(message)) for message in _closed_messages(state))
    draft = state.draft and _StoredDraft(
        state.draft.seq, state.draft.at_ms, _parts(state.draft, state.text), dict(state.draft.metadata)
    )
    answer = None if state.answer is None else len(messages) - results - 1
    return _ENCODER.encode(
        _StoredState(state.stream, state.parent, messages, answer, draft, dict(sorted(state.calls.items())))
    )


def decode_state(encoded: bytes) -> MessagesState:
    stored = _STATES.decode(encoded)
    messages = tuple(map(_MESSAGES.decode, stored.messages))
    at = len(messages) if stored.answer is None else stored.answer
    draft, text = (None, None) if stored.draft is None else _reopened(stored.draft)
    return MessagesState(
        stored.stream_id,
        stored.parent_message_id,
        _chained(messages[:at]),
        None if stored.answer is None else messages[at],
        _chained(messages[at + 1 :]),
        draft,
        stored.open_calls,
        text,
    )


def _text_delta(state: MessagesState, event: LogEvent) -> MessagesState:
    delta = event.payload.get("delta")
    if not delta or not isinstance(delta, str):
        return state
    stream, parent, done, answer, after, draft, calls, text = state
    draft = draft or Draft(event.seq, event.at_ms)
    return MessagesState(stream, parent, done, answer, after, draft, calls, _going_on(text, delta))


def _reasoning(state: MessagesState, event: LogEvent) -> MessagesState:
    text = event.payload.get("text")
    return _with_part(state, event, ReasoningPart(text)) if text and isinstance(text, str) else state


def _file(state: MessagesState, event: LogEvent) -> MessagesState:
    mime_type, url, name = (event.payload.get(key) for key in ("mimeType", "url", "name"))
    if not isinstance(mime_type, str) or not isinstance(url, str):
        return state
    return _with_part(state, event, FilePart(mime_type, url, name if isinstance(name, str) else UNSET))


def _tool_call(state: MessagesState, event: LogEvent) -> MessagesState:
    call, tool = event.payload.get("toolCallId"), event.payload.get("toolName")
    if not isinstance(call, str) or not isinstance(tool, str):
        return state
    state = _with_part(state, event, ToolCallPart(call, tool, event.payload.get("input")))
    return state._replace(calls={**state.calls, call: tool})


def _tool_result(state: MessagesState, event: LogEvent) -> MessagesState:
    call = event.payload.get("toolCallId")
    if not isinstance(call, str):
        return state
    state = _close(state)
    tool = event.payload.get("toolName")
    if not isinstance(tool, str):
        tool = state.calls.get(call) or _named_before(state, call)
    result = ToolResultPart(call, tool, event.payload.get("output"), event.payload.get("isError") is True)
    message = _message(state, event.seq, event.at_ms, "tool", (result,))
    calls = {known: name for known, name in state.calls.items() if known != call}
    return state._replace(parent=message.id, after=Chain(state.after, message), calls=calls)


def _user_message(state: MessagesState, event: LogEvent) -> MessagesState:
    if "content" not in event.payload:
        return state
    state = _settle(_close(state))
    message = _message(state, event.seq, event.at_ms, "user", _content(event.payload["content"]))
    return state._replace(parent=message.id, done=Chain(state.done, message))


def _step_started(state: MessagesState, event: LogEvent) -> MessagesState:
    return state if state.draft else state._replace(draft=Draft(event.seq, event.at_ms))


def _step_finished(state: MessagesState, event: LogEvent) -> MessagesState:
    told = dict(event.payload)
    if state.draft:
        return _close(_noting(state, {"stepFinish": told}))
    # A result has closed the draft, but the step was that message's.
    unfinished = state.answer is not None and "stepFinish" not in state.answer.metadata
    return _noting(state, {"stepFinish": told}) if unfinished else state


def _error(state: MessagesState, event: LogEvent) -> MessagesState:
    if not state.draft and not state.answer:
        state = state._replace(draft=Draft(event.seq, event.at_ms))
    metadata, told = _metadata(state), dict(event.payload)
    if ERROR not in metadata:
        return _noting(state, {ERROR: told})
    earlier = metadata.get("errors", [metadata[ERROR]])
    return _noting(state, {ERROR: told, "errors": [*earlier, told]})


_RULES: Final[dict[str, Callable[[MessagesState, LogEvent], MessagesState]]] = {
    TEXT_DELTA: _text_delta,
    REASONING: _reasoning,
    FILE: _file,
    TOOL_CALL: _tool_call,
    TOOL_RESULT: _tool_result,
    USER_MESSAGE: _user_message,
    STEP_STARTED: _step_started,
    STEP_FINISHED: _step_finished,
    ERROR: _error,
}


def _with_part(state: MessagesState, event: LogEvent, part: AnyPart) -> MessagesState:
    draft = state.draft or Draft(event.seq, event.at_ms)
    parts = Chain(_with_text(draft.parts, state.text), part)
    return state._replace(draft=draft._replace(parts=parts), text=None)


def _going_on(text: Chain[str] | None, delta: str) -> Chain[str]:
    """Pieces no longer than what follows them are joined with it, as a counter carries: a text of a million deltas has
    some twenty links. With a link for each, the garbage collector stopped all threads for up to 50 ms, again and again.
    """
    while text is not None and len(text.item) <= len(delta):
        delta = text.item + delta
        text = text.before
    return Chain(text, delta)


def _with_text(parts: Chain[AnyPart] | None, text: Chain[str] | None) -> Chain[AnyPart] | None:
    return parts if text is None else Chain(parts, TextPart("".join(_listed(text))))


def _parts(draft: Draft, text: Chain[str] | None) -> tuple[AnyPart, ...]:
    return tuple(_listed(_with_text(draft.parts, text)))


def _noting(state: MessagesState, told: Metadata) -> MessagesState:
    """With this in the metadata of the draft, or of the message that the step has left."""
    if state.draft:
        return state._replace(draft=state.draft._replace(metadata={**state.draft.metadata, **told}))
    assert state.answer is not None
    return state._replace(answer=_noted(state.answer, told))


def _noted(message: CanonicalMessage, told: Metadata) -> CanonicalMessage:
    metadata = {**message.metadata, **told}
    return CanonicalMessage(
        message.id, message.parent_message_id, message.role, message.parts, message.created_at, metadata
    )


def _metadata(state: MessagesState) -> Metadata:
    if state.draft:
        return state.draft.metadata
    return state.answer.metadata if state.answer else {}


def _close(state: MessagesState) -> MessagesState:
    """An empty draft leaves nothing; one with an error and no part is a message that says so."""
    if state.draft is None:
        return state
    parts = _parts(state.draft, state.text)
    closed = state._replace(draft=None, text=None)
    if not parts and ERROR not in state.draft.metadata:
        return closed
    message = _message(state, state.draft.seq, state.draft.at_ms, "assistant", parts, state.draft.metadata)
    return _settle(closed)._replace(parent=message.id, answer=message)


def _settle(state: MessagesState) -> MessagesState:
    """Nothing that comes belongs to the last answer any more."""
    if state.answer is None and state.after is None:
        return state
    done = state.done if state.answer is None else Chain(state.done, state.answer)
    for message in _listed(state.after):
        done = Chain(done, message)
    return state._replace(done=done, answer=None, after=None)


def _message(
    state: MessagesState,
    seq: int,
    at_ms: int,
    role: Role,
    parts: tuple[AnyPart, ...],
    told: Metadata | None = None,
) -> CanonicalMessage:
    metadata = {"schemaVersion": SCHEMA_VERSION, **(told or {})}
    return CanonicalMessage(message_id(state.stream, seq), state.parent, role, parts, timestamp(at_ms), metadata)


def _content(content: object) -> tuple[AnyPart, ...]:
    """Text, or a list of parts as some clients send it. Anything else is kept as its JSON, for nothing may be lost."""
    if isinstance(content, str):
        return (TextPart(content),)
    try:
        return convert(content, tuple[TextPart | FilePart, ...])
    except ValidationError:
        return (TextPart(json.encode(content).decode()),)


def _named_before(state: MessagesState, call: str) -> str:
    """The tool of a call that has had a result: a second one is rare, so nothing is kept for it, and it is not looked
    for further back than a step reaches."""
    for message in islice(_newest_first(state), LOOKED_BACK):
        for part in message.parts:
            if isinstance(part, ToolCallPart) and part.tool_call_id == call:
                return part.tool_name
    return UNKNOWN_TOOL


def _newest_first(state: MessagesState) -> Iterator[CanonicalMessage]:
    answer = None if state.answer is None else Chain(None, state.answer)
    for chain in (state.after, answer, state.done):
        while chain is not None:
            yield chain.item
            chain = chain.before


def _closed_messages(state: MessagesState) -> tuple[CanonicalMessage, ...]:
    return tuple(_listed(_settle(state).done))


def _reopened(stored: _StoredDraft) -> tuple[Draft, Chain[str] | None]:
    """A text at the end may go on, so it is the running text again."""
    parts, text = stored.parts, None
    last = parts[-1] if parts else None
    if isinstance(last, TextPart):
        parts, text = parts[:-1], Chain(None, last.text)
    return Draft(stored.seq, stored.at_ms, _chained(parts), stored.metadata), text


def _chained(items: Iterable[T]) -> Chain[T] | None:
    chain: Chain[T] | None = None
    for item in items:
        chain = Chain(chain, item)
    return chain


def _listed(chain: Chain[T] | None) -> list[T]:
    items = []
    while chain is not None:
        chain, item = chain
        items.append(item)
    return items[::-1]


_ENCODER: Final = json.Encoder()
_EVENTS: Final = json.Decoder(list[StreamEvent])
_TIMES: Final = json.Decoder(list[int])
_STATES: Final = json.Decoder(_StoredState)
_MESSAGES: Final = json.Decoder(CanonicalMessage)
