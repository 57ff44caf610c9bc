"""Budget: max tokens, current, usage, remaining, counted or reported by the model."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.planes.context.budget import Budget, Meter, Report
from fieldstone.planes.context.sayings import FILE_TOKENS, MESSAGE_TOKENS, tokens_of
from fieldstone.planes.context.shapes import file_at
from tests.planes.context.talks import WORDS, answered, called, context_of, long_talk, message, said
from tests.requirements import requirement

tokens = st.integers(0, 1_000_000)


@requirement("planes:context:budget")
def test_a_budget_tells_max_current_usage_and_remaining() -> None:
    budget = Budget(1_000, 250)
    assert (budget.max_tokens, budget.current, budget.usage, budget.remaining) == (1_000, 250, 0.25, 750)
    assert budget.source == "counted"


@requirement("planes:context:budget")
def test_what_is_too_much_leaves_nothing_and_never_less() -> None:
    budget = Budget(1_000, 1_500)
    assert (budget.usage, budget.remaining) == (1.5, 0)


@requirement("planes:context:budget")
async def test_what_is_counted_is_all_that_goes_to_the_model() -> None:
    assert tokens_of(said("a", "one two three"), WORDS) == MESSAGE_TOKENS + 3
    assert tokens_of(called("a", "c", text="one"), WORDS) > tokens_of(called("a", "c"), WORDS) > MESSAGE_TOKENS
    assert tokens_of(answered("a", "c", {"rows": [1, 2]}), WORDS) > tokens_of(answered("a", "c", ""), WORDS)
    context = await context_of([said("a", "one"), said("b", "two three")])
    assert context.budget.current == 2 * MESSAGE_TOKENS + 3


def test_a_picture_counts_the_same_however_long_its_data_are() -> None:
    pictures = [file_at("data:image/png;base64," + "A" * length, "image/png") for length in (10, 100_000)]
    assert {tokens_of(message("a", "user", each), WORDS) for each in pictures} == {MESSAGE_TOKENS + FILE_TOKENS}


@requirement("planes:context:budget")
async def test_what_the_model_reports_holds_from_then_on_and_new_messages_are_added_to_it() -> None:
    context = await context_of(long_talk(4))
    await context.prepare()
    counted = context.budget.current
    context.report(counted + 300)  # the schemas of tools, which nobody counted
    assert (context.budget.current, context.budget.source) == (counted + 300, "reported")
    await context.add(said("new", "one two three"))
    assert context.budget.current >= counted + 300 + MESSAGE_TOKENS + 3


async def test_a_report_without_a_turn_is_about_what_is_there() -> None:
    context = await context_of(long_talk(4))
    context.report(777)
    assert context.budget.current == 777


@requirement("planes:context:budget")
async def test_a_report_is_about_the_messages_that_the_model_was_given() -> None:
    context = await context_of(long_talk(4))
    await context.prepare()
    counted = context.budget.current
    await context.add(said("answer", "one two three"))
    context.report(counted)
    assert context.budget.current == counted + MESSAGE_TOKENS + 3


@given(reported=tokens, counted=st.integers(1, 1_000_000), now=tokens)
def test_of_two_readings_of_a_report_the_larger_holds(reported: int, counted: int, now: int) -> None:
    meter = Meter(1_000)
    meter.learn(Report(reported, counted))
    current = meter.read(now).current
    assert current >= now + reported - counted
    assert current >= now * reported / counted
    assert meter.read(counted).current == reported


def test_a_report_of_an_empty_prompt_is_what_goes_with_every_prompt() -> None:
    meter = Meter(1_000)
    meter.learn(Report(120, 0))
    assert meter.read(50).current == 170


def test_a_limit_that_the_model_told_lowers_the_budget_and_never_raises_it() -> None:
    meter = Meter(1_000)
    meter.lower(800)
    meter.lower(900)
    assert meter.read(0).max_tokens == 800


@pytest.mark.parametrize("max_tokens", [0, -1])
def test_a_budget_of_nothing_is_refused(max_tokens: int) -> None:
    with pytest.raises(ValueError, match="at least one token"):
        Meter(max_tokens)


def test_a_report_below_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot have read"):
        Meter(10).learn(Report(-1, 5))
