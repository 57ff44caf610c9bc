"""A compaction in the background: the conversation goes on, and what arrives meanwhile is kept."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.core.transcripts import CanonicalMessage
from fieldstone.planes.context.execution import ContextManager
from fieldstone.planes.context.outcomes import Compacted, Compacting
from fieldstone.planes.context.rollup import Rollup, Strategy
from fieldstone.planes.context.structured import Structured
from fieldstone.planes.context.summaries import note_of
from fieldstone.planes.context.tiered import Tiered
from tests.planes.context.talks import (
    ScriptedSummarizer,
    answered,
    called,
    context_of,
    conversations,
    ids_of,
    long_talk,
    said,
    split_pairs,
    tools,
)
from tests.requirements import requirement


async def held_up(
    messages: list[CanonicalMessage], max_tokens: int, strategy: Strategy | None = None, keep_last: int = 6
) -> tuple[ContextManager, ScriptedSummarizer]:
    """A context whose compaction in the background waits for its summariser."""
    summarizer = ScriptedSummarizer("In short, all was said.")
    summarizer.opened.clear()
    context = await context_of(
        messages, max_tokens, background=True, tools=tools(summarizer), strategy=strategy, keep_last=keep_last
    )
    return context, summarizer


@requirement("planes:context:background")
async def test_the_next_call_does_not_wait_for_it() -> None:
    context, summarizer = await held_up(long_talk(20), 1_100)
    assert list(await context.prepare()) == long_talk(20)
    await summarizer.asked.wait()
    assert list(await context.prepare()) == long_talk(20)
    summarizer.opened.set()
    assert isinstance(await context.settled(), Compacted)
    assert note_of((await context.prepare())[0])
    await context.close()


@requirement("planes:context:background")
async def test_at_the_hard_cap_the_next_call_does_wait() -> None:
    context, summarizer = await held_up(long_talk(20), 1_100)
    await context.prepare()
    await summarizer.asked.wait()
    await context.add(*long_talk(6, first=50))
    waiting = asyncio.ensure_future(context.prepare())
    await asyncio.sleep(0)
    assert not waiting.done()
    summarizer.opened.set()
    seen = await waiting
    assert note_of(seen[0])
    assert ids_of(seen)[-6:] == [f"m{at}" for at in range(50, 56)]
    await context.close()


@requirement("planes:context:background")
@given(
    before=conversations("a"),
    meanwhile=conversations("b"),
    strategy=st.sampled_from([Rollup(), Tiered(2), Structured()]),
    keep_last=st.integers(1, 6),
    data=st.data(),
)
async def test_messages_that_arrive_meanwhile_are_kept_with_their_pins_and_pairs(
    before: list[CanonicalMessage],
    meanwhile: list[CanonicalMessage],
    strategy: Strategy,
    keep_last: int,
    data: st.DataObject,
) -> None:
    context, summarizer = await held_up(before, 50, strategy, keep_last)
    running = asyncio.ensure_future(context.compact())
    await asyncio.sleep(0)
    await context.add(*meanwhile)
    pins = data.draw(st.sets(st.sampled_from(ids_of(before)))) if before else set[str]()
    for pin in pins:
        context.pin(pin)
    summarizer.opened.set()
    await running
    everything = [*before, *meanwhile]
    left = [each for each in context.messages if note_of(each) is None]
    assert left == [each for each in everything if each in left]
    assert [each for each in left if each.id.startswith("b")] == meanwhile
    assert pins <= set(ids_of(left))
    assert split_pairs(everything, left) == []
    stood_for = [id for note in map(note_of, context.messages) if note for id in note.stands_for]
    assert sorted([*ids_of(left), *stood_for]) == sorted(ids_of(everything)), "in the list, or stood for, and not both"


@requirement("planes:context:background")
async def test_a_late_second_result_keeps_its_call() -> None:
    talk = [called("call", "x"), answered("result", "x"), *long_talk(20)]
    context, summarizer = await held_up(talk, 100_000)
    running = asyncio.ensure_future(context.compact())
    await summarizer.asked.wait()
    await context.add(answered("late", "x"))
    summarizer.opened.set()
    assert isinstance(await running, Compacted)
    assert {"call", "result", "late"} <= set(ids_of(context.messages))
    await context.close()


async def test_the_counts_before_and_after_are_over_the_same_messages() -> None:
    context, summarizer = await held_up(long_talk(20), 100_000)
    running = asyncio.ensure_future(context.compact())
    await summarizer.asked.wait()
    await context.add(*long_talk(6, first=50))
    tokens = context.budget.current
    summarizer.opened.set()
    outcome = await running
    assert isinstance(outcome, Compacted)
    assert (outcome.tokens_before, outcome.tokens_after) == (tokens, context.budget.current)


@requirement("planes:context:background")
async def test_two_at_once_take_turns_and_nothing_is_summarised_twice() -> None:
    context, summarizer = await held_up(long_talk(30), 100_000)
    both = asyncio.ensure_future(asyncio.gather(context.compact(), context.compact()))
    await summarizer.asked.wait()
    summarizer.opened.set()
    await both
    [note] = [note for note in map(note_of, context.messages) if note]
    assert len(note.stands_for) == len(set(note.stands_for)) == 24


@requirement("planes:context:background")
async def test_only_one_runs_at_a_time() -> None:
    told: list[Compacting] = []
    summarizer = ScriptedSummarizer("In short, all was said.")
    summarizer.opened.clear()
    context = await context_of(long_talk(20), 1_100, background=True, tools=tools(summarizer), before=told.append)
    for turn in range(3):
        await context.prepare()
        await context.add(said(f"n{turn}", "Go on."))
    await summarizer.asked.wait()
    assert len(told) == 1
    summarizer.opened.set()
    await context.close()


async def test_what_went_wrong_in_the_background_is_raised_with_the_next_turn() -> None:
    def fail(_: Compacting) -> None:
        raise OSError("The hook failed.")

    context = await context_of(long_talk(20), 1_100, background=True, before=fail)
    await context.prepare()
    with pytest.raises(OSError, match="The hook failed"):
        await context.settled()
    assert list(context.messages) == long_talk(20)
    await context.close()


async def test_what_went_wrong_and_was_told_to_nobody_is_raised_at_the_end() -> None:
    def fail(_: Compacting) -> None:
        raise OSError("The hook failed.")

    context = await context_of(long_talk(20), 1_100, background=True, before=fail)
    await context.prepare()
    await asyncio.sleep(0)
    with pytest.raises(OSError, match="The hook failed"):
        await context.close()


async def test_the_end_of_the_generation_cuts_it_off() -> None:
    context, summarizer = await held_up(long_talk(20), 1_100)
    await context.prepare()
    await summarizer.asked.wait()
    await context.close()
    assert context.messages == ()


async def test_a_turn_that_is_given_up_does_not_stop_it() -> None:
    context, summarizer = await held_up(long_talk(20), 1_100)
    await context.prepare()
    await summarizer.asked.wait()
    waiting = asyncio.ensure_future(context.settled())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    summarizer.opened.set()
    assert isinstance(await context.settled(), Compacted)
    await context.close()
