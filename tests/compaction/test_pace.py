"""Long work in a thread goes at a pace at which the event loop's own work goes first."""

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.compaction import pace
from fieldstone.compaction.pace import giving_way, in_thread, unhurried
from tests.requirements import requirement


@given(items=st.lists(st.integers()))
def test_unhurried_items_are_the_same_in_the_same_order(items: list[int]) -> None:
    assert list(unhurried(items)) == items


@requirement("openwop:compaction:waits")
async def test_long_work_rests_between_two_items_until_the_loop_has_gone_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "STRETCH_S", 0.0)
    monkeypatch.setattr(pace, "SHORT_S", 0.0)
    turns = 0

    async def turn() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    def seen() -> list[int]:
        return [turns for _ in unhurried(range(20))]

    turning = asyncio.ensure_future(turn())
    assert all(later > earlier for earlier, later in pairwise(await in_thread(seen)))
    turning.cancel()


@requirement("openwop:compaction:waits")
@pytest.mark.parametrize(("somebody_waits", "rests"), [(True, 5), (False, 0)])
async def test_long_work_rests_sooner_while_somebody_waits(
    monkeypatch: pytest.MonkeyPatch, somebody_waits: bool, rests: int
) -> None:
    monkeypatch.setattr(pace, "STRETCH_S", float("inf"))
    monkeypatch.setattr(pace, "SHORT_S", 0.0)
    rested: list[None] = []
    monkeypatch.setattr(pace._Rests, "_rest", lambda _: rested.append(None))
    with giving_way(lambda: somebody_waits):
        await in_thread(lambda: list(unhurried(range(5))))
    assert len(rested) == rests


async def test_work_that_breaks_tells_it_and_the_next_one_is_not_slowed(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise OSError("broken")

    with pytest.raises(OSError, match="broken"):
        await in_thread(broken)
    rested: list[None] = []
    monkeypatch.setattr(pace._Rests, "rest_if_due", lambda _: rested.append(None))
    assert list(unhurried(range(3))) == [0, 1, 2]
    assert not rested  # outside of a thread nobody waits


async def test_a_loop_that_turns_no_more_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "STRETCH_S", 0.0)
    monkeypatch.setattr(pace, "SHORT_S", 0.0)
    monkeypatch.setattr(pace, "LONGEST_REST_S", 0.001)
    stopped = asyncio.new_event_loop()
    pace._Rests(stopped, lambda: False).rest_if_due()
    stopped.close()
