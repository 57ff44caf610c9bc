"""A tool call is never split from its result."""

from hypothesis import given
from hypothesis import strategies as st

from fieldstone.core.transcripts import CanonicalMessage, ToolResultPart
from fieldstone.planes.context.pairs import blocks_of
from fieldstone.planes.context.rollup import Strategy
from fieldstone.planes.context.summaries import note_of
from tests.planes.context.talks import (
    answered,
    called,
    context_of,
    conversations,
    ids_of,
    long_talk,
    message,
    said,
    split_pairs,
    strategies,
)
from tests.requirements import requirement


def places(*messages: CanonicalMessage) -> list[tuple[int, ...]]:
    return [block.places for block in blocks_of(messages)]


@requirement("planes:context:pairs")
def test_a_call_and_its_result_are_one_block_and_others_are_alone() -> None:
    assert places(said("a", "Hello."), called("b", "x"), answered("c", "x"), said("d", "Bye.")) == [(0,), (1, 2), (3,)]


@requirement("planes:context:pairs")
def test_calls_in_parallel_and_all_their_results_are_one_block() -> None:
    assert places(called("a", "x", "y"), answered("b", "y"), said("c", "Wait."), answered("d", "x")) == [
        (0, 1, 3),
        (2,),
    ]


@requirement("planes:context:pairs")
def test_results_of_several_calls_in_one_message_join_those_calls() -> None:
    both = message("c", "tool", ToolResultPart("x", "search", 1), ToolResultPart("y", "search", 2))
    assert places(called("a", "x"), called("b", "y"), both) == [(0, 1, 2)]


def test_an_id_that_comes_again_is_another_call() -> None:
    talk = [called("a", "call_0"), answered("b", "call_0"), called("c", "call_0"), answered("d", "call_0")]
    assert places(*talk) == [(0, 1), (2, 3)]


def test_a_second_result_of_the_same_call_belongs_to_it_too() -> None:
    assert places(called("a", "x"), answered("b", "x"), answered("c", "x")) == [(0, 1, 2)]


def test_a_result_without_a_call_is_alone() -> None:
    assert places(answered("a", "x"), called("b", "x")) == [(0,), (1,)]


def test_a_block_is_open_as_long_as_one_of_its_calls_waits() -> None:
    talk = [called("a", "x", "y"), answered("b", "x")]
    assert [block.is_open for block in blocks_of(talk)] == [True]
    assert [block.is_open for block in blocks_of([*talk, answered("c", "y")])] == [False]


@given(talk=conversations())
def test_every_message_is_in_one_block(talk: list[CanonicalMessage]) -> None:
    found = [place for block in blocks_of(talk) for place in block.places]
    assert sorted(found) == list(range(len(talk)))


@requirement("planes:context:pairs")
@given(talk=conversations(), strategy=strategies, keep_last=st.integers(1, 8))
async def test_whatever_goes_goes_with_its_call_and_all_its_results(
    talk: list[CanonicalMessage], strategy: Strategy, keep_last: int
) -> None:
    context = await context_of(talk, 50, strategy=strategy, keep_last=keep_last)
    await context.compact()
    assert split_pairs(talk, context.messages) == []
    await context.emergency()
    assert split_pairs(talk, context.messages) == []


@requirement("planes:context:pairs")
async def test_a_pair_at_the_border_of_the_last_messages_stays_whole() -> None:
    talk = [*long_talk(10), called("call", "x"), answered("result", "x"), said("last", "Thanks.")]
    context = await context_of(talk, keep_last=2)
    await context.compact()
    assert ids_of(context.messages)[1:] == ["call", "result", "last"]


@requirement("planes:context:pairs")
async def test_a_call_that_waits_for_its_result_stays_until_it_has_come() -> None:
    context = await context_of([called("call", "x"), *long_talk(10)], keep_last=2)
    await context.compact()
    assert "call" in ids_of(context.messages)
    await context.add(answered("result", "x"), *long_talk(4, first=10))
    await context.compact()
    assert not {"call", "result"} & set(ids_of(context.messages))
    [summary] = [each for each in context.messages if note_of(each)]
    assert {"call", "result"} <= set(ids_of(await context.originals(summary.id)))
