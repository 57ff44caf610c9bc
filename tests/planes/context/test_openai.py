"""Messages in the shape of OpenAI's chat, in and out."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.core.errors import InvalidPayload
from fieldstone.core.transcripts import FilePart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from fieldstone.planes.context.openai import from_openai
from tests.planes.context.talks import context_of, message
from tests.requirements import requirement

PICTURE = "data:image/png;base64,AAAA"
TALK: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "developer", "content": "Answer in English."},
    {"role": "user", "content": "How is the weather in Oslo?", "name": "carol"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}},
            {"id": "c2", "type": "function", "function": {"name": "time", "arguments": "{not json"}},
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "4 degrees"},
    {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "noon"}]},
    {"role": "assistant", "content": "4 degrees at noon."},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "And what is this?"},
            {"type": "image_url", "image_url": {"url": PICTURE, "detail": "low"}},
            {"type": "input_audio", "input_audio": {"data": "BBBB", "format": "wav"}},
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,CCCC", "filename": "map.pdf"}},
            {"type": "file", "file": {"file_id": "file-7"}},
        ],
    },
    {"role": "assistant", "content": [{"type": "refusal", "refusal": "I cannot tell."}]},
    {"role": "assistant", "content": ""},
]


@requirement("planes:context:shapes")
async def test_a_conversation_goes_out_as_it_came_in() -> None:
    context = await context_of([])
    await context.add_openai(TALK)
    assert context.openai() == TALK


@requirement("planes:context:shapes")
async def test_parts_are_those_of_a_transcript() -> None:
    context = await context_of([])
    await context.add_openai(TALK)
    assert [each.role for each in context.messages] == [
        *("system", "system", "user", "assistant", "tool", "tool", "assistant", "user", "assistant", "assistant")
    ]
    calls, first, second = context.messages[3:6]
    assert calls.parts == (ToolCallPart("c1", "weather", {"city": "Oslo"}), ToolCallPart("c2", "time", "{not json"))
    assert first.parts == (ToolResultPart("c1", "weather", "4 degrees"),)
    assert second.parts == (ToolResultPart("c2", "time", [{"type": "text", "text": "noon"}]),)
    assert context.messages[7].parts[1] == FilePart("image/png", PICTURE)


async def test_messages_come_one_by_one_and_results_still_know_their_tool() -> None:
    context = await context_of([])
    for each in TALK:
        await context.add_openai([each])
    assert context.messages[4].parts == (ToolResultPart("c1", "weather", "4 degrees"),)
    assert context.openai() == TALK


async def test_ids_are_made_or_those_of_a_transcript() -> None:
    context = await context_of([])
    made = await context.add_openai(TALK[:2])
    given = await context.add_openai(TALK[2:3], ids=["msg-7"])
    assert [each.id for each in context.messages] == [*made, *given]
    assert given == ["msg-7"]
    assert len(set(made)) == 2


async def test_as_many_ids_as_messages_or_none() -> None:
    context = await context_of([])
    with pytest.raises(InvalidPayload, match="3 messages, with 1 ids"):
        await context.add_openai(TALK[:3], ids=["a"])
    assert context.messages == ()


async def test_reasoning_comes_in_and_does_not_go_out() -> None:
    context = await context_of([])
    await context.add_openai([{"role": "assistant", "content": "Yes.", "reasoning_content": "It must be."}])
    assert context.messages[0].parts == (ReasoningPart("It must be."), TextPart("Yes."))
    assert context.openai() == [{"role": "assistant", "content": "Yes."}]


async def test_what_a_tool_answered_in_json_goes_out_as_a_text() -> None:
    context = await context_of([message("a", "tool", ToolResultPart("c", "search", {"rows": [1]}))])
    assert context.openai() == [{"role": "tool", "tool_call_id": "c", "content": '{"rows":[1]}'}]


@given(
    said=st.lists(
        st.tuples(st.sampled_from(["system", "user", "assistant"]), st.text(st.characters(codec="utf-8"), max_size=20)),
        max_size=8,
    )
)
async def test_texts_go_out_as_they_came_in(said: list[tuple[str, str]]) -> None:
    context = await context_of([])
    talk = [{"role": role, "content": text} for role, text in said]
    await context.add_openai(talk)
    assert context.openai() == talk


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"role": "robot", "content": "Hello."},
        {"role": "function", "name": "f", "content": "old"},
        {"role": "user"},
        {"role": "user", "content": 7},
        {"role": "user", "content": ["text"]},
        {"role": "user", "content": [{"type": "hologram"}]},
        {"role": "user", "content": [{"type": "text"}]},
        {"role": "user", "content": [{"type": "image_url", "image_url": "x"}]},
        {"role": "tool", "content": "x"},
        {"role": "tool", "tool_call_id": "c", "content": None},
        {"role": "assistant", "tool_calls": ["c"]},
        {"role": "assistant", "tool_calls": [{"id": "c"}]},
        {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {}}}]},
    ],
)
def test_what_is_no_message_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidPayload):
        from_openai([bad], {})
