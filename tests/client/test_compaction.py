"""Compaction through the API: the same calls wherever the field is."""

import asyncio
from typing import Any

import pytest

from fieldstone import Agent, Field, open_field
from fieldstone.compaction import plan
from fieldstone.core import errors
from fieldstone.field.archiving import Archive
from tests.requirements import requirement

WHY: dict[str, Any] = {"intent": "size the market", "confidence": 0.8, "reasoning": "two reports"}


async def recorded(ada: Agent, count: int = 3, **more: Any) -> list[str]:
    return [
        (await ada.record(f"Region {n} grows by {n}.5% a year.", **WHY, **more)).memory_unit_id for n in range(count)
    ]


async def found(agent: Agent, **scope: Any) -> set[str]:
    attuned = await agent.attune("region grows", include_own=True, **scope)
    return {each.memory_unit.id for each in attuned.record}


async def senior(field: Field) -> Agent:
    return await field.agent("ada", role="researcher", authority=10)


@requirement("akashik:compact:archive-out-of-attune", "akashik:compact:restore")
async def test_what_is_archived_is_found_when_asked_for_and_comes_back(field: Field) -> None:
    ada = await senior(field)
    units = await recorded(ada)
    done = await ada.compact("archive")
    assert done.units_affected == 3
    assert await found(ada) == set()
    assert await found(ada, include_archived=True) == set(units)
    assert await field.restore(units[:2]) == 2
    assert await found(ada) == set(units[:2])
    assert await field.restore(units[2]) == 1  # one id is no list of letters
    assert await found(ada) == set(units)


@requirement("akashik:compact:restore")
async def test_all_that_a_compaction_archived_and_that_is_not_back_yet_comes_back(field: Field) -> None:
    ada = await senior(field)
    units = await recorded(ada)
    done = await ada.compact("archive")
    assert await field.restore(units[:2]) == 2
    assert done.compaction_id is not None
    assert await field.restore_compaction(done.compaction_id) == 1
    assert await found(ada) == set(units)


@requirement("akashik:compact:filter", "akashik:compact:dry-run")
async def test_filters_restrict_and_a_dry_run_does_nothing(field: Field) -> None:
    ada = await senior(field)
    inside, outside = await recorded(ada, session_id="s-1"), await recorded(ada, type="decision")
    assert (await ada.compact("archive", session_id="s-1", dry_run=True)).units_affected == 3
    assert (await ada.compact("archive", types=["decision"], dry_run=True)).units_affected == 3
    assert (await ada.compact("archive", max_age_epochs=2, dry_run=True)).units_affected == 3
    assert (await ada.compact("archive", status=["retracted"], dry_run=True)).units_affected == 0
    assert await found(ada) == {*inside, *outside}
    assert (await ada.compact("archive", session_id="s-1")).units_affected == 3
    assert await found(ada) == set(outside)


@requirement("akashik:compact:guards")
async def test_held_and_pinned_units_stay_until_they_are_released(field: Field) -> None:
    ada = await senior(field)
    held, pinned, free = await recorded(ada)
    await field.hold(held)
    await field.pin(pinned)
    done = await ada.compact("purge", types=["finding"], reason="asked for")
    assert {(each.unit_id, each.reason) for each in done.skipped} == {(held, "held"), (pinned, "pinned")}
    with pytest.raises(errors.UnitPurged):
        await field.unit(free)
    await field.unhold(held)
    await field.unpin(pinned)
    assert (await ada.compact("archive")).units_affected == 2


async def test_a_synthesis_and_its_originals_know_each_other(field: Field) -> None:
    ada = await senior(field)
    units = await recorded(ada)
    done = await ada.compact("summarize", verify=False)
    assert isinstance(done.synthesis_units, tuple)
    [synthesis] = done.synthesis_units
    assert set((await field.lineage(synthesis)).made_from) == set(units)
    assert (await field.lineage(units[0])).made_into == (synthesis,)
    assert (await ada.compact("purge", ancestor_id=units[0])).units_affected == 1


async def test_one_in_the_background_is_watched_to_its_result(field: Field) -> None:
    ada = await senior(field)
    await recorded(ada)
    begun = await ada.begin_compaction("archive")
    steps = [step async for step in field.watch_compaction(begun.compaction_id)]
    assert (steps[-1].state, steps[-1].units_done, steps[-1].units_total) == ("done", 3, 3)
    assert steps[-1].result == (await field.compaction(begun.compaction_id)).result


@requirement("akashik:compact:nothing-matches")
async def test_one_that_has_nothing_to_do_is_answered_at_once(field: Field) -> None:
    ada = await senior(field)
    begun = await ada.begin_compaction("archive")
    assert (begun.compaction_id, begun.state) == ("", "done")
    await recorded(ada)
    planned = await ada.begin_compaction("archive", dry_run=True)
    assert planned.result is not None
    assert planned.result.units_affected == 3  # type: ignore[union-attr]  # it is there: a dry run has only a result


async def test_a_cancelled_one_stops_after_its_step_and_what_is_done_stays_done(
    field: Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = await senior(field)
    await recorded(ada)
    reached, go_on = gate_before_the_second_step(monkeypatch)
    begun = await ada.begin_compaction("archive")
    await reached.wait()
    with pytest.raises(errors.CompactionRunning):
        await ada.compact("archive")
    assert (await field.cancel_compaction(begun.compaction_id)).state == "running"
    go_on.set()
    steps = [step async for step in field.watch_compaction(begun.compaction_id)]
    assert (steps[-1].state, steps[-1].units_done) == ("cancelled", 2)
    assert len(await found(ada)) == 1


async def test_who_watches_a_compaction_that_breaks_is_told(field: Field, monkeypatch: pytest.MonkeyPatch) -> None:
    ada = await senior(field)
    await recorded(ada)
    reached, go_on = gate_before_the_second_step(monkeypatch, breaks=True)
    begun = await ada.begin_compaction("archive")
    await reached.wait()
    go_on.set()
    steps = [step async for step in field.watch_compaction(begun.compaction_id)]
    assert (steps[-1].state, steps[-1].units_done) == ("failed", 1)


async def test_unknown_units_and_compactions_are_not_found(field: Field) -> None:
    for asked in (field.lineage("mem-gone"), field.hold("mem/gone"), field.restore(["mem-gone"])):
        with pytest.raises(errors.UnitNotFound):
            await asked
    for refused in (
        field.compaction("comp-gone"),
        field.restore_compaction("comp-gone"),
        field.cancel_compaction("comp-gone"),
    ):
        with pytest.raises(errors.NotFound, match=r"List the compactions\."):
            await refused
    with pytest.raises(errors.NotFound):
        await field.cancel_compaction("c/d")
    with pytest.raises(errors.NotFound, match=r"List the compactions\."):
        await anext(field.watch_compaction("comp-gone"))


@requirement("akashik:compact:authority")
async def test_authority_is_asked_for(field: Field) -> None:
    ben = await field.agent("ben", role="analyst", authority=6)
    await recorded(ben)
    with pytest.raises(errors.Forbidden):
        await ben.compact("purge", max_age_epochs=0)
    with pytest.raises(errors.InvalidPayload):
        await (await senior(field)).compact("purge")


def test_the_sync_face_has_all_of_it() -> None:
    with open_field("memory:") as field:
        ada = field.agent("ada", role="researcher", authority=10)
        units = [ada.record(f"Region {n} grows.", **WHY).memory_unit_id for n in range(3)]
        field.hold(units[0])
        field.unhold(units[0])
        field.pin(units[1])
        begun = ada.begin_compaction("archive")
        assert [step.state for step in field.watch_compaction(begun.compaction_id)][-1] == "done"
        assert field.compaction(begun.compaction_id).units_done == 2
        assert field.restore_compaction(begun.compaction_id) == 2
        field.unpin(units[1])
        assert ada.compact("archive").units_affected == 3
        assert field.restore(units) == 3
        assert field.lineage(units[0]).made_into == ()


def gate_before_the_second_step(
    monkeypatch: pytest.MonkeyPatch, *, breaks: bool = False
) -> tuple[asyncio.Event, asyncio.Event]:
    """Steps of one unit. The second waits until it may go on, and then may break."""
    reached, go_on, put, steps = asyncio.Event(), asyncio.Event(), Archive.put, iter(range(100))

    async def slow(self: Archive, units: list[int], compaction: int) -> tuple[int, int]:
        if next(steps) == 1:
            reached.set()
            await go_on.wait()
            if breaks:
                raise errors.StorageFull
        return await put(self, units, compaction)

    monkeypatch.setattr(plan, "BATCH_UNITS", 1)
    monkeypatch.setattr(Archive, "put", slow)
    return reached, go_on
