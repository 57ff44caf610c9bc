"""All summaries pass the redaction harness, and so does every message: the model sees what a transcript may hold."""

from base64 import b64encode
from typing import Any

import pytest

from fieldstone.core.errors import InvalidPayload, SecretLeakage
from fieldstone.core.transcripts import ToolCallPart, ToolResultPart
from fieldstone.planes.context.outcomes import Compacted
from fieldstone.planes.context.shapes import file_at
from fieldstone.planes.context.structured import Structured
from fieldstone.planes.context.summaries import note_of
from fieldstone.redact import Harness, KnownSecret, shared_harness
from tests.planes.context import test_anthropic
from tests.planes.context.talks import ScriptedSummarizer, called, context_of, long_talk, message, said, tools
from tests.requirements import requirement

VALUE = "correct-horse" + "-battery-41"  # in parts: no file holds what looks like a secret
KNOWN = [KnownSecret("db-password", VALUE)]
MARK = "[REDACTED:db-password]"


def shown(context: Any) -> str:
    return str(context.messages) + str(context.openai()) + str(context.anthropic())


@requirement("planes:context:redacted")
async def test_a_secret_that_a_summariser_says_is_taken_out_of_the_summary() -> None:
    summarizer = ScriptedSummarizer(f"The password of the cart is {VALUE}, as they said.")
    context = await context_of(long_talk(20), tools=tools(summarizer, KNOWN))
    assert isinstance(await context.compact(), Compacted)
    assert VALUE not in shown(context)
    assert MARK in shown(context)
    note = note_of(context.messages[0])
    assert note is not None
    [passage] = note.passages
    assert passage.author == "summary", "what was rewritten is nobody's words any more"


async def test_a_summary_that_was_rewritten_can_be_summarised_again() -> None:
    summarizer = ScriptedSummarizer(f"The password of the cart is {VALUE}, as they said.")
    context = await context_of(long_talk(20), tools=tools(summarizer, KNOWN))
    await context.compact()
    await context.add(*long_talk(12, first=50))
    assert isinstance(await context.compact(), Compacted)
    assert summarizer.groups[1][0].text == f"The password of the cart is {MARK}, as they said."


@requirement("planes:context:redacted")
async def test_what_comes_in_is_clean_before_the_model_or_a_summariser_sees_it() -> None:
    summarizer = ScriptedSummarizer()
    talk = [
        said("a", f"Use {VALUE} for the cart."),
        message("b", "assistant", ToolCallPart("c", "login", {"password": VALUE, "deep": [{"type": VALUE}]})),
        message("c", "tool", ToolResultPart("c", "login", {"echo": f"got {VALUE}"})),
        said("d", "Hello.", note=f"It was {VALUE}."),
        *long_talk(20),
    ]
    context = await context_of(talk, 100_000, tools=tools(summarizer, KNOWN))
    assert VALUE not in shown(context)
    assert shown(context).count(MARK) >= 4
    await context.compact()
    assert VALUE not in str(summarizer.groups)
    assert VALUE not in str(await context.recall("cart"))


@requirement("planes:context:redacted")
async def test_a_marker_stays_in_what_is_summarised() -> None:
    for strategy in (None, Structured()):
        talk = [said("a", f"The cart answers to {VALUE} only."), *long_talk(20)]
        context = await context_of(talk, tools=tools(known=KNOWN), strategy=strategy)
        await context.compact()
        assert MARK in str(context.messages[0])


@requirement("planes:context:redacted")
async def test_a_secret_that_goes_on_from_one_message_into_the_next_is_found() -> None:
    half = len(VALUE) - 6
    context = await context_of(
        [said("a", f"The first half is {VALUE[:half]}"), said("b", f"{VALUE[half:]} is the other half.")],
        tools=tools(known=KNOWN),
    )
    assert VALUE[half:] not in str(context.messages[1].parts)


@requirement("planes:context:redacted")
async def test_a_secret_that_becomes_known_while_they_talk_is_found_from_then_on() -> None:
    harness = shared_harness()

    async def cleaning() -> Harness:
        return harness

    context = await context_of([said("a", f"Use {VALUE}.")], tools=tools()._replace(cleaning=cleaning))
    harness = harness.knowing(KNOWN)
    await context.add(said("b", f"I used {VALUE}."))
    assert [VALUE in str(each) for each in context.messages] == [True, False]
    await context.add(*long_talk(12))
    await context.compact()
    assert VALUE not in str(context.messages)


async def test_half_a_surrogate_pair_is_refused() -> None:
    context = await context_of([])
    with pytest.raises(InvalidPayload, match="surrogate"):
        await context.add(said("a", "half \ud83d of it"))


async def test_secret_shaped_text_is_found_without_being_known() -> None:
    key = "AKIA" + "IOSFODNN7" + "EXAMPLQ"
    context = await context_of([said("a", f"aws_access_key_id = {key}")])
    assert key not in shown(context)


@requirement("planes:context:redacted")
@pytest.mark.parametrize(
    "bad", [said(VALUE, "Hello."), called("a", VALUE), message("a", "tool", ToolResultPart(VALUE, "search", 1))]
)
async def test_ids_that_hold_a_secret_are_refused(bad: Any) -> None:
    context = await context_of([], tools=tools(known=KNOWN))
    with pytest.raises(SecretLeakage):
        await context.add(bad)
    assert context.messages == ()


async def test_a_signature_goes_with_the_thought_that_was_rewritten() -> None:
    thought = {"type": "thinking", "thinking": f"It is {VALUE}.", "signature": "c2lnbmVk"}
    other = {"type": "thinking", "thinking": "It is late.", "signature": "b3RoZXI="}
    context = await context_of([], tools=tools(known=KNOWN))
    await context.add_anthropic([{"role": "assistant", "content": [thought, other, {"type": "text", "text": "Yes."}]}])
    [shown] = context.anthropic().messages
    assert shown["content"] == [other, {"type": "text", "text": "Yes."}]


async def test_where_there_is_no_secret_nothing_is_changed() -> None:
    context = await context_of([], 10_000, tools=tools(known=KNOWN))
    await context.add_anthropic(test_anthropic.TALK, system=test_anthropic.SYSTEM)
    assert context.anthropic() == (test_anthropic.SYSTEM, test_anthropic.TALK)


async def test_pictures_are_not_read_as_text() -> None:
    data = "data:image/png;base64," + b64encode(VALUE.encode()).decode()
    context = await context_of([message("a", "user", file_at(data, "image/png"))], tools=tools(known=KNOWN))
    assert context.messages[0].parts == (file_at(data, "image/png"),)


@pytest.mark.parametrize("begins", ["data:image/png;base64,", "data:image/", "data:text/plain,"])
async def test_what_only_begins_like_a_picture_is_text(begins: str) -> None:
    told = f"{begins} and the password is {VALUE}"
    encoded = "data:image/png;base64," + b64encode(VALUE.encode()).decode()
    talk = [message("a", "user", file_at(told, "image/png")), said("b", told), said("c", encoded)]
    context = await context_of(talk, tools=tools(known=KNOWN))
    assert VALUE not in shown(context)
    assert encoded not in shown(context)


async def test_a_long_text_is_clean_too() -> None:
    context = await context_of([said("a", "word " * 10_000 + VALUE)], tools=tools(known=KNOWN))
    assert VALUE not in shown(context)
