"""Hooks with token counts, emergencies, and a generation from its beginning to its end."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from fieldstone.core.errors import InvalidPayload
from fieldstone.core.transcripts import CanonicalMessage, decode_message, encode_message
from fieldstone.planes.context.budget import Budget
from fieldstone.planes.context.execution import EMERGENCIES_MAX
from fieldstone.planes.context.outcomes import Compacted, Compacting, Outcome, Refused
from fieldstone.planes.context.refusals import LengthRefusal, length_refusal
from fieldstone.planes.context.sayings import tokens_of
from fieldstone.planes.context.summaries import note_of
from tests.planes.context.talks import WORDS, answered, called, context_of, ids_of, long_talk, said
from tests.requirements import requirement


class TooLong(Exception):
    """As clients raise it: what went wrong is in `code`."""

    code = "context_length_exceeded"


class SmallModel:
    """Refuses what is longer than it can read, and says so in the words that it was given."""

    def __init__(self, limit_tokens: int, words: str = "") -> None:
        self.limit_tokens = limit_tokens
        self.words = words
        self.prompts: list[int] = []

    async def __call__(self, messages: Sequence[CanonicalMessage]) -> str:
        size = sum(tokens_of(message, WORDS) for message in messages)
        self.prompts.append(size)
        if size > self.limit_tokens:
            raise TooLong(self.words.format(limit=self.limit_tokens, size=size))
        return "An answer."


@requirement("planes:context:hooks")
async def test_hooks_are_told_before_and_after_with_token_counts() -> None:
    told: list[Compacting | Outcome] = []
    context = await context_of(long_talk(20), before=told.append, after=told.append)
    tokens = context.budget.current
    await context.compact()
    before, after = told
    assert before == Compacting("asked", "rollup", tokens, 20)
    assert isinstance(after, Compacted)
    assert (after.tokens_before, after.tokens_after) == (tokens, context.budget.current)
    assert after.replaced == 14
    assert after.summaries == (context.messages[0].id,)
    assert after.by == ("extractive",)


@requirement("planes:context:hooks")
async def test_hooks_are_told_of_a_refusal_too_and_may_be_asynchronous() -> None:
    told: list[Any] = []

    async def tell(what: Any) -> None:
        await asyncio.sleep(0)
        told.append(what)

    context = await context_of(long_talk(3), before=tell, after=tell)
    outcome = await context.compact()
    assert isinstance(outcome, Refused)
    assert told == [Compacting("asked", "rollup", context.budget.current, 3), outcome]


@requirement("planes:context:hooks")
async def test_a_hook_that_fails_before_leaves_everything_as_it_was() -> None:
    def fail(_: Compacting) -> None:
        raise OSError("The hook failed.")

    context = await context_of(long_talk(20), before=fail)
    with pytest.raises(OSError, match="The hook failed"):
        await context.compact()
    assert list(context.messages) == long_talk(20)


@requirement("planes:context:seen-is-persisted")
async def test_what_the_model_sees_is_what_is_persisted() -> None:
    context = await context_of(long_talk(20))
    await context.prepare()
    seen = await context.prepare()
    persisted = [decode_message(encode_message(message)) for message in context.messages]
    assert list(seen) == persisted == list(context.messages)
    again = await context_of(persisted)
    assert again.openai() == context.openai()
    assert again.anthropic() == context.anthropic()


async def test_a_context_that_is_due_is_brought_to_half_of_its_budget() -> None:
    context = await context_of(long_talk(40), 2_000)
    assert context.budget.usage > 0.8
    await context.prepare()
    assert context.budget.usage <= 0.5


@requirement("planes:context:emergency")
@pytest.mark.parametrize(
    "words",
    [
        "",
        "This model's maximum context length is {limit} tokens. However, your messages resulted in {size} tokens.",
        "prompt is too long: {size} tokens > {limit} maximum",
    ],
)
async def test_a_model_that_refuses_for_length_gets_less_and_answers(words: str) -> None:
    told: list[Compacting] = []
    model = SmallModel(600, words)
    context = await context_of(long_talk(30), 100_000, before=told.append)
    assert await context.generate(model) == "An answer."
    assert {each.trigger for each in told} == {"emergency"}
    assert model.prompts == sorted(model.prompts, reverse=True)


@requirement("planes:context:emergency")
async def test_an_emergency_takes_of_the_last_messages_what_it_has_to_and_not_the_very_last() -> None:
    context = await context_of([*long_talk(4), *long_talk(4, words=600, first=4), said("q", "So?")], 100_000)
    outcome = await context.emergency(LengthRefusal(limit_tokens=1_000))
    assert isinstance(outcome, Compacted)
    assert context.budget.current <= 1_000
    assert context.messages[-1].id == "q"


@requirement("planes:context:pairs")
async def test_an_emergency_splits_no_pair_of_the_last_messages() -> None:
    talk = [*long_talk(4), called("call", "x"), answered("result", "x", "word " * 900), said("q", "So?")]
    context = await context_of(talk, 100_000)
    await context.emergency(LengthRefusal(limit_tokens=300))
    assert not {"call", "result"} & set(ids_of(context.messages))
    assert context.messages[-1].id == "q"


@requirement("planes:context:emergency")
async def test_an_emergency_learns_what_the_model_told() -> None:
    context = await context_of(long_talk(30), 100_000)
    counted = context.budget.current
    await context.emergency(LengthRefusal(limit_tokens=1_000, size_tokens=counted + 500))
    assert context.budget.max_tokens == 1_000
    assert context.budget.source == "reported"


@requirement("planes:context:emergency")
async def test_where_nothing_more_can_go_the_models_own_refusal_is_raised() -> None:
    model = SmallModel(10)
    context = await context_of(long_talk(20), 100_000)
    with pytest.raises(TooLong):
        await context.generate(model)
    assert len(model.prompts) <= EMERGENCIES_MAX + 1


async def test_other_errors_of_a_model_are_none_of_our_business() -> None:
    async def broken(_: Sequence[CanonicalMessage]) -> str:
        raise OSError("connection reset")

    context = await context_of(long_talk(20), 100_000)
    with pytest.raises(OSError, match="connection reset"):
        await context.generate(broken)
    assert list(context.messages) == long_talk(20)


@requirement("planes:context:emergency")
@pytest.mark.parametrize(
    ("said_by_the_model", "found"),
    [
        ("Error code: 400 - {'code': 'context_length_exceeded'}", LengthRefusal()),
        (
            "This model's maximum context length is 8192 tokens. However, you requested 9,001 tokens",
            LengthRefusal(8192, 9001),
        ),
        ("prompt is too long: 210000 tokens > 200000 maximum", LengthRefusal(200_000, 210_000)),
        ("the request exceeds the available context size", LengthRefusal()),
        ("Input is too long for requested model.", LengthRefusal()),
        ("rate limit of 90000 tokens per minute reached", None),
        ("The file name is too long.", None),
        ("", None),
    ],
)
def test_refusals_for_length_are_told_from_other_errors(said_by_the_model: str, found: LengthRefusal | None) -> None:
    assert length_refusal(RuntimeError(said_by_the_model)) == found


async def test_a_message_comes_once() -> None:
    context = await context_of(long_talk(20))
    await context.compact()
    for id in ("m0", "m19"):
        with pytest.raises(InvalidPayload, match="there already"):
            await context.add(said(id, "Again."))


@requirement("planes:context:nothing-stored")
async def test_after_the_end_nothing_is_kept_and_nothing_comes() -> None:
    async with await context_of(long_talk(20)) as context:
        context.pin("m3")
        await context.compact()
    assert (context.messages, context.pinned, context.budget) == ((), frozenset(), Budget(1_000, 0))
    for late in (context.prepare(), context.compact(), context.emergency(), context.add(said("x", "Late."))):
        with pytest.raises(RuntimeError, match="has ended"):
            await late
    await context.close()


async def test_a_summary_is_made_by_whoever_the_builder_chose_and_the_outcome_says_who() -> None:
    context = await context_of(long_talk(20))
    outcome = await context.compact()
    assert isinstance(outcome, Compacted)
    note = note_of(context.messages[0])
    assert note is not None
    assert (note.by, outcome.by, outcome.fell_back) == ("extractive", ("extractive",), None)
