"""Triggers, in order: hard cap, threshold, growth prediction, custom decider."""

import pytest

from fieldstone.planes.context.budget import Budget
from fieldstone.planes.context.outcomes import Compacting
from fieldstone.planes.context.triggers import Trigger, Triggers
from tests.planes.context.talks import context_of, long_talk, said
from tests.requirements import requirement


def budget(current: int) -> Budget:
    return Budget(1_000, current)


@requirement("planes:context:triggers")
@pytest.mark.parametrize(
    ("current", "fired"), [(0, None), (799, None), (800, "threshold"), (949, "threshold"), (950, "hard_cap")]
)
def test_the_hard_cap_is_at_95_percent_and_the_threshold_at_80(current: int, fired: Trigger | None) -> None:
    assert Triggers().fired(budget(current), []) == fired


@requirement("planes:context:triggers")
def test_the_first_that_holds_is_told() -> None:
    every = Triggers(turns_ahead=1, decider=lambda _: True)
    told = [every.fired(budget(current), [500]) for current in (960, 850, 600, 100)]
    assert told == ["hard_cap", "threshold", "growth", "custom"]


@requirement("planes:context:triggers")
def test_growth_is_predicted_only_where_it_is_asked_for() -> None:
    assert Triggers().fired(budget(700), [300, 300]) is None
    assert Triggers(turns_ahead=1).fired(budget(700), [300, 300]) == "growth"


def test_the_prediction_goes_by_the_last_turns_and_reaches_as_many_turns_ahead_as_asked() -> None:
    grown_early = [900, 10, 10, 10, 10]
    assert Triggers(turns_ahead=1).fired(budget(700), grown_early) is None
    assert Triggers(turns_ahead=2).fired(budget(700), [100, 100]) is None
    assert Triggers(turns_ahead=3).fired(budget(700), [100, 100]) == "growth"
    assert Triggers(turns_ahead=3).fired(budget(700), []) is None


@requirement("planes:context:triggers")
def test_a_decider_is_asked_last_and_sees_the_budget() -> None:
    seen: list[Budget] = []

    def decide(budget: Budget) -> bool:
        seen.append(budget)
        return budget.current > 300

    triggers = Triggers(decider=decide)
    assert [triggers.fired(budget(current), []) for current in (100, 400, 850)] == [None, "custom", "threshold"]
    assert [each.current for each in seen] == [100, 400]


@pytest.mark.parametrize(
    "triggers",
    [Triggers(threshold=0.0), Triggers(threshold=0.96), Triggers(hard_cap=1.1), Triggers(turns_ahead=-1)],
)
async def test_triggers_that_contradict_each_other_are_refused(triggers: Triggers) -> None:
    with pytest.raises(ValueError, match=r"threshold|turns_ahead"):
        await context_of([], triggers=triggers)


@requirement("planes:context:triggers")
@pytest.mark.parametrize(
    ("triggers", "max_tokens", "fired"),
    [
        (Triggers(), 5_000, []),
        (Triggers(), 1_100, ["threshold"]),
        (Triggers(), 800, ["hard_cap"]),
        (Triggers(decider=lambda budget: budget.current > 10), 5_000, ["custom"]),
    ],
)
async def test_a_turn_compacts_when_a_trigger_says_so(
    triggers: Triggers, max_tokens: int, fired: list[Trigger]
) -> None:
    told: list[Compacting] = []
    context = await context_of(long_talk(20), max_tokens, triggers=triggers, before=told.append)
    await context.prepare()
    assert [each.trigger for each in told] == fired


@requirement("planes:context:triggers")
async def test_predicted_growth_compacts_before_it_is_too_late() -> None:
    told: list[Compacting] = []
    context = await context_of(long_talk(8), 1_000, triggers=Triggers(turns_ahead=2), before=told.append)
    await context.prepare()
    assert not told, "what was there at first is no growth"
    await context.add(*long_talk(6, first=8))
    await context.prepare()
    assert [each.trigger for each in told] == ["growth"]


async def test_a_try_that_did_not_help_is_not_made_again_with_every_turn() -> None:
    told: list[Compacting] = []
    context = await context_of(long_talk(20), 1_100, keep_last=20, before=told.append)
    for turn in range(3):
        await context.prepare()
        await context.add(said(f"n{turn}", "Go on."))
    assert len(told) == 1
