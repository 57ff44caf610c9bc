"""Events as a run tells them, and generated logs of them."""

from collections.abc import Sequence
from typing import Any, Final

from hypothesis import strategies as st
from msgspec import json

from fieldstone.core.streams import StreamEvent
from fieldstone.core.transcripts import CanonicalMessage
from fieldstone.planes.messages import LogEvent, decode_events, messages_of, project_messages
from fieldstone.ports.planes import EventBlock, EventRow
from fieldstone.testing.world import FIRST_DAY_MS

STREAM: Final = "run:one"


def delta(text: str) -> StreamEvent:
    return StreamEvent("text-delta", {"delta": text})


def reasoning(text: str) -> StreamEvent:
    return StreamEvent("reasoning", {"text": text})


def call(call_id: str, tool: str = "search", **given: Any) -> StreamEvent:
    return StreamEvent("tool-call", {"toolCallId": call_id, "toolName": tool, "input": given})


def result(call_id: str, output: object = "found", **more: Any) -> StreamEvent:
    return StreamEvent("tool-result", {"toolCallId": call_id, "output": output, **more})


def file(url: str, **more: Any) -> StreamEvent:
    return StreamEvent("file", {"mimeType": "image/png", "url": url, **more})


def started(index: int = 0) -> StreamEvent:
    return StreamEvent("step-started", {"stepIndex": index})


def finished(index: int = 0, **more: Any) -> StreamEvent:
    return StreamEvent("step-finished", {"stepIndex": index, "finishReason": "stop", **more})


def error(message: str) -> StreamEvent:
    return StreamEvent("error", {"message": message})


def user(content: object) -> StreamEvent:
    return StreamEvent("user-message", {"content": content})


def rows_of(events: Sequence[StreamEvent], *, after: int = 0) -> list[EventRow]:
    """As they lie in the log, one each second."""
    return [
        EventRow(seq, FIRST_DAY_MS + 1_000 * seq, json.encode(event))
        for seq, event in enumerate(events, start=after + 1)
    ]


def decoded(events: Sequence[StreamEvent], *, after: int = 0) -> list[LogEvent]:
    """As a projector gets them."""
    rows = rows_of(events, after=after)
    seqs = range(after + 1, after + 1 + len(rows))
    times_ms = json.encode([row.at_ms for row in rows])
    return decode_events([EventBlock(seqs, times_ms, json.encode(events))])


def messages_from(*events: StreamEvent, fork_from: str | None = None) -> tuple[CanonicalMessage, ...]:
    messages = project_messages(STREAM, fork_from)
    messages.apply(decoded(events))
    return messages_of(messages.state)


_words: Final = st.text(alphabet="ab é\n", max_size=4)
_values: Final = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_words, inner, max_size=2),
    max_leaves=4,
)
_payloads: Final = st.dictionaries(_words, _values, max_size=3)
_calls: Final = st.sampled_from(["c1", "c2", "c3"])

any_event: Final[st.SearchStrategy[StreamEvent]] = st.one_of(
    _words.map(delta),
    _words.map(delta),
    _words.map(reasoning),
    st.builds(lambda call_id, value: call(call_id, value=value), _calls, _values),
    st.builds(result, _calls, _values),
    st.builds(lambda call_id, tool: result(call_id, toolName=tool, isError=True), _calls, _words),
    _words.map(file),
    st.builds(started),
    st.builds(lambda usage: finished(usage=usage), _values),
    _words.map(error),
    _values.map(user),
    st.builds(StreamEvent, st.sampled_from(["text-delta", "tool-call", "tool-result", "file", "new-kind"]), _payloads),
)
logs: Final = st.lists(any_event, max_size=30)
