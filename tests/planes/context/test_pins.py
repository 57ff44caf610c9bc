"""System and pinned messages survive in place; pins follow the message; the last N stay."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.core.errors import InvalidPayload
from fieldstone.core.transcripts import CanonicalMessage
from fieldstone.planes.context.outcomes import Refused
from fieldstone.planes.context.rollup import Strategy
from fieldstone.planes.context.summaries import note_of
from tests.planes.context.talks import (
    answered,
    called,
    context_of,
    conversations,
    ids_of,
    long_talk,
    said,
    strategies,
)
from tests.requirements import requirement


@requirement("planes:context:system-and-pins")
@given(talk=conversations(), strategy=strategies, keep_last=st.integers(1, 8), data=st.data())
async def test_system_messages_pins_and_the_last_ones_stay_as_they_are_and_in_their_order(
    talk: list[CanonicalMessage], strategy: Strategy, keep_last: int, data: st.DataObject
) -> None:
    context = await context_of(talk, 50, strategy=strategy, keep_last=keep_last)
    pins = data.draw(st.sets(st.sampled_from(ids_of(talk)))) if talk else set[str]()
    for pin in pins:
        context.pin(pin)
    await context.compact()
    left = [each for each in context.messages if note_of(each) is None]
    assert left == [each for each in talk if each in left]
    staying = [each for each in talk if each.role == "system" or each.id in pins]
    assert all(each in left for each in [*staying, *talk[-keep_last:]])


@requirement("planes:context:no-erosion")
@given(first=conversations("a"), second=conversations("b"), strategy=strategies, data=st.data())
async def test_repeated_compaction_does_not_erode_pinned_facts(
    first: list[CanonicalMessage], second: list[CanonicalMessage], strategy: Strategy, data: st.DataObject
) -> None:
    context = await context_of(first, 50, strategy=strategy, keep_last=1)
    pins = data.draw(st.sets(st.sampled_from(ids_of(first)))) if first else set[str]()
    for pin in pins:
        context.pin(pin)
    for message in second:
        await context.add(message)
        await context.compact()
    pinned = [each for each in first if each.id in pins]
    assert [each for each in context.messages if each.id in pins] == pinned


@requirement("planes:context:pins-follow")
async def test_a_pin_follows_its_message_when_others_before_it_go() -> None:
    context = await context_of(long_talk(20), keep_last=2)
    context.pin("m9")
    for round in range(3):
        await context.compact()
        await context.add(*long_talk(6, first=100 + 10 * round))
    [pinned] = [each for each in context.messages if each.id == "m9"]
    assert pinned == long_talk(20)[9]
    assert ids_of(context.messages).index("m9") == 1, "the summary stands before it, where the first message stood"


@requirement("planes:context:system-and-pins")
async def test_the_system_message_stays_first_and_the_summary_comes_where_the_first_that_went_stood() -> None:
    context = await context_of([said("s", "Be brief.", "system"), *long_talk(12)], keep_last=3)
    await context.compact()
    kinds = ["summary" if note_of(each) else each.id for each in context.messages]
    assert kinds == ["s", "summary", "m9", "m10", "m11"]


@requirement("planes:context:pairs")
async def test_a_pinned_call_keeps_its_results() -> None:
    context = await context_of([called("call", "x", "y"), answered("x", "x"), answered("y", "y"), *long_talk(9)])
    context.pin("y")
    await context.compact()
    assert ids_of(context.messages)[:3] == ["call", "x", "y"]


@requirement("planes:context:pins-follow")
async def test_what_is_no_longer_pinned_may_go() -> None:
    context = await context_of(long_talk(12))
    context.pin("m0")
    await context.compact()
    context.unpin("m0")
    assert context.pinned == frozenset()
    await context.compact()
    assert "m0" not in ids_of(context.messages)


@requirement("planes:context:pins-follow")
async def test_a_pin_on_nothing_is_refused() -> None:
    context = await context_of(long_talk(2))
    with pytest.raises(InvalidPayload, match="no message 'm7'"):
        context.pin("m7")


@requirement("planes:context:system-and-pins")
async def test_where_all_is_pinned_nothing_goes_and_the_answer_says_so() -> None:
    context = await context_of(long_talk(12))
    for message in context.messages:
        context.pin(message.id)
    outcome = await context.compact()
    assert isinstance(outcome, Refused)
    assert outcome.reason.startswith("nothing may go")
    assert list(context.messages) == long_talk(12)


@requirement("planes:context:system-and-pins")
async def test_at_least_the_last_message_stays() -> None:
    with pytest.raises(ValueError, match="keep_last is at least 1"):
        await context_of([], keep_last=0)
