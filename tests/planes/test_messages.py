"""Events become messages: each sentence of the contract's paragraph, and what must hold of every log."""

from itertools import pairwise

import pytest
from hypothesis import given

from fieldstone.core.streams import StreamEvent
from fieldstone.core.transcripts import (
    CanonicalMessage,
    FilePart,
    MessageTooNew,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    decode_message,
    encode_message,
)
from fieldstone.planes.messages import (
    Chain,
    MessagesState,
    decode_state,
    encode_state,
    message_id,
    messages_of,
    open_calls,
    project_messages,
)
from tests.planes.events import (
    STREAM,
    call,
    decoded,
    delta,
    error,
    file,
    finished,
    logs,
    messages_from,
    reasoning,
    result,
    started,
    user,
)
from tests.requirements import requirement

LONG = 20_000


def links(text: Chain[str] | None) -> int:
    return 0 if text is None else 1 + links(text.before)


def roles(messages: tuple[CanonicalMessage, ...]) -> list[str]:
    return [message.role for message in messages]


@requirement("planes:messages:draft", "planes:messages:deterministic")
def test_a_draft_opens_with_step_started_and_has_its_id_and_time() -> None:
    [message] = messages_from(started(), delta("hello"))
    assert (message.role, message.id) == ("assistant", message_id(STREAM, 1))
    assert message.created_at == "2025-06-15T15:06:41.000Z"


@requirement("planes:messages:draft")
def test_a_draft_opens_with_the_first_content() -> None:
    [message] = messages_from(StreamEvent("ping"), delta(""), delta("hello"))
    assert message.id == message_id(STREAM, 3)


@requirement("planes:messages:draft")
def test_step_started_in_an_open_draft_opens_no_second_one() -> None:
    [message] = messages_from(delta("hel"), started(), delta("lo"))
    assert message.parts == (TextPart("hello"),)


@requirement("planes:messages:text")
def test_consecutive_text_deltas_make_one_text_part() -> None:
    [message] = messages_from(delta("a"), delta("b"), StreamEvent("ping", {"at": 1}), delta("c"))
    assert message.parts == (TextPart("abc"),)


@requirement("planes:messages:parts")
def test_reasoning_tool_call_and_file_are_parts_in_order() -> None:
    [message] = messages_from(
        delta("see "), delta("this"), reasoning("why"), file("u", name="n"), call("c1", q=1), delta("end"), file("v")
    )
    assert message.parts == (
        TextPart("see this"),
        ReasoningPart("why"),
        FilePart("image/png", "u", "n"),
        ToolCallPart("c1", "search", {"q": 1}),
        TextPart("end"),
        FilePart("image/png", "v"),
    )


@requirement("planes:messages:tool-result")
def test_a_tool_result_closes_the_draft_and_is_a_tool_message_of_one_part() -> None:
    messages = messages_from(delta("I look"), call("c1"), result("c1", {"n": 1}), delta("Found"))
    assert roles(messages) == ["assistant", "tool", "assistant"]
    assert messages[1].parts == (ToolResultPart("c1", "search", {"n": 1}, False),)
    assert messages[2].parts == (TextPart("Found"),)


@requirement("planes:messages:tool-result")
def test_a_results_tool_is_the_payloads_else_its_calls_else_unknown() -> None:
    events = [call("c1", "grep"), result("c1", toolName="rg"), call("c2", "grep"), result("c2"), result("c9")]
    names = [part.tool_name for m in messages_from(*events) for part in m.parts if isinstance(part, ToolResultPart)]
    assert names == ["rg", "grep", "unknown"]


@requirement("planes:messages:tool-result")
def test_a_second_result_of_a_call_still_knows_its_tool() -> None:
    messages = messages_from(call("c1", "grep"), result("c1"), result("c1", "again", isError=True))
    assert messages[2].parts == (ToolResultPart("c1", "grep", "again", True),)


@requirement("planes:messages:user-message")
def test_a_user_message_closes_the_draft_and_is_a_user_message() -> None:
    messages = messages_from(delta("Yes?"), user("More, please"))
    assert roles(messages) == ["assistant", "user"]
    assert messages[1].parts == (TextPart("More, please"),)


@requirement("planes:messages:user-message")
def test_a_users_content_may_be_parts_and_is_never_lost() -> None:
    [parts, odd] = messages_from(
        user([{"type": "text", "text": "see"}, {"type": "file", "mimeType": "image/png", "url": "u"}]),
        user({"odd": [1]}),
    )
    assert parts.parts == (TextPart("see"), FilePart("image/png", "u"))
    assert odd.parts == (TextPart('{"odd":[1]}'),)


@requirement("planes:messages:step-finished")
def test_step_finished_closes_the_draft_and_leaves_its_payload_in_metadata() -> None:
    first, second = messages_from(started(), delta("one"), finished(usage={"out": 3}), delta("two"))
    assert first.metadata["stepFinish"] == {"stepIndex": 0, "finishReason": "stop", "usage": {"out": 3}}
    assert "stepFinish" not in second.metadata


@requirement("planes:messages:step-finished")
def test_step_finished_after_a_result_belongs_to_the_message_that_called() -> None:
    asked, found = messages_from(started(), call("c1"), result("c1"), finished(usage={"out": 3}), finished(9))
    assert asked.metadata["stepFinish"]["usage"] == {"out": 3}
    assert found.metadata == {"schemaVersion": 1}


@requirement("planes:messages:error")
def test_an_error_is_metadata_of_the_message_it_belongs_to() -> None:
    [open_draft] = messages_from(delta("half"), error("cut"), delta(" more"))
    assert (open_draft.parts, open_draft.metadata["error"]) == ((TextPart("half more"),), {"message": "cut"})
    [closed] = messages_from(delta("whole"), finished(), error("late"))
    assert closed.metadata["error"] == {"message": "late"}


@requirement("planes:messages:error")
def test_several_errors_of_one_message_are_all_kept() -> None:
    [message] = messages_from(delta("x"), error("one"), error("two"), error("three"))
    assert message.metadata["error"] == {"message": "three"}
    assert message.metadata["errors"] == [{"message": "one"}, {"message": "two"}, {"message": "three"}]


@requirement("planes:messages:error")
def test_an_error_only_run_leaves_a_message_that_says_so() -> None:
    [message] = messages_from(started(), error("no model"), finished())
    assert (message.role, message.parts, message.metadata["error"]) == ("assistant", (), {"message": "no model"})
    asked, failed = messages_from(user("hello?"), error("no model"))
    assert (failed.parent_message_id, failed.metadata["error"]) == (asked.id, {"message": "no model"})
    assert "error" not in asked.metadata


@requirement("planes:messages:empty-step")
def test_an_empty_step_leaves_nothing_and_breaks_no_parent_chain() -> None:
    first, second = messages_from(delta("one"), finished(), started(1), finished(1), started(2), delta("two"))
    assert second.parent_message_id == first.id
    assert messages_from(started(), finished()) == ()


@requirement("planes:messages:end")
def test_the_end_of_the_stream_closes_what_is_open() -> None:
    assert messages_from(started()) == ()
    assert [m.parts for m in messages_from(delta("half"))] == [(TextPart("half"),)]


@requirement("planes:messages:parents")
def test_each_messages_parent_is_the_one_before_and_the_firsts_is_the_fork_point() -> None:
    events = [user("q"), delta("a"), call("c1"), result("c1"), delta("b")]
    messages = messages_from(*events, fork_from="m0")
    assert [m.parent_message_id for m in messages] == ["m0", *(m.id for m in messages[:-1])]
    assert messages_from(*events)[0].parent_message_id is None


@requirement("planes:messages:payloads")
def test_events_that_lack_what_their_kind_needs_leave_no_part() -> None:
    broken = [StreamEvent(kind) for kind in ("text-delta", "reasoning", "tool-call", "tool-result", "file")]
    assert messages_from(*broken, StreamEvent("user-message"), StreamEvent("text-delta", {"delta": 3})) == ()


def test_calls_are_open_until_their_result_comes() -> None:
    messages = project_messages(STREAM)
    messages.apply(decoded([call("c1"), call("c2", "grep"), result("c1")]))
    assert open_calls(messages.state) == {"c2": "grep"}


@requirement("planes:messages:shape")
def test_a_message_reads_back_as_it_was_written() -> None:
    for message in messages_from(user("q"), delta("a"), file("u"), call("c1"), result("c1"), error("e")):
        assert decode_message(encode_message(message)) == message


@requirement("planes:messages:versions")
def test_a_message_of_a_later_schema_is_refused_and_a_field_more_is_read_over() -> None:
    [message] = messages_from(delta("a"))
    body = encode_message(message)
    assert decode_message(body.replace(b'{"id"', b'{"later":1,"id"')) == message
    later = body.replace(b'"schemaVersion":1', b'"schemaVersion":2')
    for refused in (later, later.replace(b'"type":"text"', b'"type":"hologram"')):
        with pytest.raises(MessageTooNew):
            decode_message(refused)


@requirement("planes:messages:parents")
@given(logs)
def test_every_log_gives_one_chain_of_messages_with_ids_that_differ(log: list[StreamEvent]) -> None:
    messages = messages_from(*log, fork_from="m0")
    assert len({m.id for m in messages}) == len(messages)
    assert [m.parent_message_id for m in messages] == ["m0", *(m.id for m in messages)][: len(messages)]
    for message in messages:
        assert message.parts or "error" in message.metadata or message.role == "user"
        assert message.metadata["schemaVersion"] == 1
        kinds = [type(part) for part in message.parts]
        assert (TextPart, TextPart) not in pairwise(kinds) or message.role == "user"


@requirement("planes:messages:text")
@given(logs)
def test_no_text_of_a_log_is_lost_or_doubled(log: list[StreamEvent]) -> None:
    said = "".join(
        e.payload["delta"] for e in log if e.kind == "text-delta" and isinstance(e.payload.get("delta"), str)
    )
    kept = "".join(
        part.text
        for m in messages_from(*log)
        if m.role == "assistant"
        for part in m.parts
        if isinstance(part, TextPart)
    )
    assert kept == said


@given(logs)
def test_a_state_reads_back_as_it_was_written(log: list[StreamEvent]) -> None:
    messages = project_messages(STREAM, "m0")
    messages.apply(decoded(log))
    encoded = encode_state(messages.state)
    assert encode_state(decode_state(encoded)) == encoded
    assert messages_of(decode_state(encoded)) == messages_of(messages.state)


def test_a_long_text_costs_no_more_for_each_delta_than_a_short_one() -> None:
    """As memory, not as time: a text has few links, and whatever came before is shared."""
    messages = project_messages(STREAM)
    messages.apply(decoded([delta("x")] * LONG))
    before: MessagesState = messages.state
    messages.apply(decoded([delta("y")], after=LONG))
    assert messages.state.text == Chain(before.text, "y")
    assert messages.state.text is not None
    assert messages.state.text.before is before.text
    assert links(messages.state.text) <= LONG.bit_length()
    [message] = messages_of(messages.state)
    assert message.parts == (TextPart("x" * LONG + "y"),)
