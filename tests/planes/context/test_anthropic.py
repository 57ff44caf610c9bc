"""Messages in the shape of Anthropic's messages, in and out; and from one shape into the other."""

from typing import Any

import pytest

from fieldstone.core.errors import InvalidPayload
from fieldstone.core.transcripts import ReasoningPart, ToolCallPart, ToolResultPart
from fieldstone.planes.context.anthropic import from_anthropic
from tests.planes.context import test_openai
from tests.planes.context.talks import context_of, long_talk, message, said
from tests.requirements import requirement

SYSTEM = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
TALK: list[dict[str, Any]] = [
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "What is this?"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
            {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
            {"type": "document", "source": {"type": "file", "file_id": "file_7"}, "title": "Map"},
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Words."}},
        ],
    },
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Let me look.", "signature": "c2lnbmVk"},
            {"type": "redacted_thinking", "data": "aGlkZGVu"},
            {"type": "text", "text": "I look it up."},
            {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": 1}},
            {"type": "tool_use", "id": "t2", "name": "look", "input": {"at": 2}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": "A cat."},
            {
                "type": "tool_result",
                "tool_use_id": "t2",
                "content": [{"type": "text", "text": "No light."}],
                "is_error": True,
                "cache_control": {"type": "ephemeral"},
            },
            {"type": "text", "text": "Well?"},
        ],
    },
    {"role": "assistant", "content": [{"type": "text", "text": "A cat."}]},
]


@requirement("planes:context:shapes")
async def test_a_conversation_goes_out_as_it_came_in() -> None:
    context = await context_of([], 10_000)
    await context.add_anthropic(TALK, system=SYSTEM)
    assert context.anthropic() == (SYSTEM, TALK)


async def test_a_plain_text_is_one_block() -> None:
    context = await context_of([])
    await context.add_anthropic([{"role": "user", "content": "Hello."}], system="Be brief.")
    system, messages = context.anthropic()
    assert system == [{"type": "text", "text": "Be brief."}]
    assert messages == [{"role": "user", "content": [{"type": "text", "text": "Hello."}]}]


async def test_without_a_system_text_there_is_no_system_message() -> None:
    context = await context_of([])
    await context.add_anthropic([{"role": "user", "content": "Hello."}])
    await context.add_anthropic([{"role": "user", "content": "Hello?"}], system="")
    assert [each.role for each in context.messages] == ["user", "user"]


async def test_every_result_of_a_tool_is_a_message_of_its_own() -> None:
    context = await context_of([])
    ids = await context.add_anthropic(TALK)
    assert [each.role for each in context.messages] == ["user", "assistant", "tool", "tool", "user", "assistant"]
    assert ids == [each.id for each in context.messages]
    assert context.messages[2].parts == (ToolResultPart("t1", "look", "A cat."),)
    assert context.messages[3].parts == (ToolResultPart("t2", "look", [{"type": "text", "text": "No light."}], True),)


async def test_thoughts_that_are_not_signed_and_empty_texts_do_not_go_out() -> None:
    thought = message("a", "assistant", ReasoningPart("Hm."), ToolCallPart("c", "look", {}))
    context = await context_of([said("u", "Go."), thought, said("e", "", "assistant")])
    _, messages = context.anthropic()
    assert messages[1]["content"] == [{"type": "tool_use", "id": "c", "name": "look", "input": {}}]


async def test_neighbours_of_one_side_are_one_message() -> None:
    context = await context_of([said("a", "One."), said("b", "Two."), said("c", "Three.", "assistant")])
    _, messages = context.anthropic()
    assert [(each["role"], len(each["content"])) for each in messages] == [("user", 2), ("assistant", 1)]


async def test_after_a_compaction_the_first_message_is_still_a_users() -> None:
    context = await context_of([said("s", "Be brief.", "system"), *long_talk(12)], keep_last=5)
    await context.compact()
    system, messages = context.anthropic()
    assert system == [{"type": "text", "text": "Be brief."}]
    assert messages[0]["role"] == "user"


@requirement("planes:context:shapes")
async def test_what_came_in_one_shape_goes_out_in_the_other_with_its_calls_and_results() -> None:
    context = await context_of([], 10_000)
    await context.add_openai(test_openai.TALK)
    system, messages = context.anthropic()
    assert [block["text"] for block in system] == ["Be brief.", "Answer in English."]
    assert [each["role"] for each in messages] == ["user", "assistant", "user", "assistant", "user", "assistant"]
    assert [block["type"] for block in messages[1]["content"]] == ["tool_use", "tool_use"]
    assert messages[1]["content"][1]["input"] == {"input": "{not json"}
    assert [block["tool_use_id"] for block in messages[2]["content"]] == ["c1", "c2"]

    other = await context_of([], 10_000)
    await other.add_anthropic(TALK, system=SYSTEM)
    shown = other.openai()
    assert [each["role"] for each in shown] == ["system", "user", "assistant", "tool", "tool", "user", "assistant"]
    assert [call["id"] for call in shown[2]["tool_calls"]] == ["t1", "t2"]
    assert [each["tool_call_id"] for each in shown[3:5]] == ["t1", "t2"]


async def test_tools_that_ran_at_the_makers_stay_in_their_message() -> None:
    found = [{"type": "web_search_result", "url": "https://example.com", "title": "Cats"}]
    served = [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "cats"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": found},
        {"type": "text", "text": "Cats."},
    ]
    context = await context_of([])
    await context.add_anthropic([{"role": "user", "content": "Cats?"}, {"role": "assistant", "content": served}])
    assert [each.role for each in context.messages] == ["user", "assistant"]
    assert context.anthropic().messages[1]["content"] == served
    assert context.openai()[1] == {"role": "assistant", "content": "Cats."}
    await context.add(*long_talk(12))
    await context.compact()
    assert "example.com" in str(await context.recall("cats"))


@pytest.mark.parametrize(
    "bad",
    [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": None},
        {"role": "user", "content": [{"type": "hologram"}]},
        {"role": "user", "content": [{"type": "tool_result", "content": "x"}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": 7}]},
        {"role": "user", "content": [{"type": "image", "source": {"type": "disk"}}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "n", "input": "x"}]},
    ],
)
def test_what_is_no_message_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidPayload):
        from_anthropic([bad], {})
