"""The schedules of a memory host: what is due is done once, whatever happens in between, and nobody hinders anybody."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.compaction.schedule import BadSchedule
from fieldstone.core.access import LOCAL
from fieldstone.core.errors import CompactionRedactionFailed, ShuttingDown, StorageFull, TokenBudgetExceeded
from fieldstone.core.events import MemoryCompacted, MemoryConsolidated
from fieldstone.field import consolidating
from fieldstone.field.entries import KeptEntry
from fieldstone.field.field import LocalField
from fieldstone.field.options import Options
from fieldstone.field.putting import NewEntry
from fieldstone.profiles.openwop.limits import HostLimits
from fieldstone.profiles.openwop.schedules import (
    LOOK_EVERY_MS,
    SETTLING_MS,
    SWEEP_EVERY_MS,
    HostSchedules,
    Listed,
    MemorySchedules,
    in_runs,
    that_fit,
    to_compact,
)
from fieldstone.testing.world import ManualClock, SeededIds
from tests.protocol.ways import Place, open_field_at
from tests.requirements import requirement

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
HOURLY = "0 * * * *"
FEW = HostSchedules(compaction=HOURLY, min_entries=4, keep_newest=1)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consolidating, "PAUSE_MS", 0)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def opened(clock: ManualClock, path: Path | None = None) -> LocalField:
    return await open_field_at(Place(path, Options(), clock, SeededIds()))


async def put(field: LocalField, count: int, memory: str = "m", **more: Any) -> list[int]:
    new = [
        NewEntry(content=f"Step {n} of the {memory} plan takes {n * 7} minutes of work.", **more) for n in range(count)
    ]
    return [kept.row.unit for kept in await field.memories.entries.put(LOCAL, memory, new)]


async def listed(field: LocalField, memory: str = "m") -> Sequence[KeptEntry]:
    return await field.memories.entries.list(memory, limit=None)


async def told(field: LocalField, kind: type) -> list[Any]:
    lines = (await field.log(limit=1_000)).entries
    return [line.entry.event for line in lines if isinstance(line.entry.event, kind)]


# --- when -------------------------------------------------------------------------------------------------------------


@requirement("openwop:compaction:schedule-once")
async def test_nothing_is_due_when_a_host_is_new_and_then_each_hour(clock: ManualClock) -> None:
    field = await opened(clock)
    schedules = MemorySchedules(field, clock, FEW)
    assert await schedules.look() == ()
    clock.advance(HOUR_MS)
    assert await schedules.look() == ("compaction",)
    assert await schedules.look() == ()
    clock.advance(HOUR_MS)
    assert await schedules.look() == ("compaction",)
    await field.close()


@requirement("openwop:compaction:schedule-once")
async def test_a_restart_neither_repeats_a_run_nor_forgets_one(clock: ManualClock, tmp_path: Path) -> None:
    done = []
    for hours in (0, 1, 0, 5, 0):
        clock.advance(hours * HOUR_MS)
        field = await opened(clock, tmp_path / "field.db")
        done.append(await MemorySchedules(field, clock, FEW).look())
        await field.close()
    assert done == [(), ("compaction",), (), ("compaction",), ()], "once for all that were missed"


@requirement("openwop:compaction:schedule-once")
async def test_a_run_that_was_cut_off_is_due_again(clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    field = await opened(clock)
    await put(field, 6)
    await MemorySchedules(field, clock, FEW).look()
    clock.advance(HOUR_MS)

    async def closing(*_: Any, **__: Any) -> None:
        raise ShuttingDown

    with monkeypatch.context() as patched:
        patched.setattr(field.memories.condensing, "compact", closing)
        with pytest.raises(ShuttingDown):
            await MemorySchedules(field, clock, FEW).look()
    assert await MemorySchedules(field, clock, FEW).look() == ("compaction",)
    assert len(await listed(field)) == 2
    await field.close()


@requirement("openwop:compaction:schedule-once")
async def test_a_missed_run_waits_until_the_server_has_settled(clock: ManualClock) -> None:
    field = await opened(clock)
    await MemorySchedules(field, clock, FEW).look()
    clock.advance(3 * HOUR_MS)
    schedules = MemorySchedules(field, clock, FEW)
    schedules.start()
    assert await schedules.look() == ()
    assert await schedules.pause_ms() == SETTLING_MS
    clock.advance(SETTLING_MS)
    assert await schedules.look() == ("compaction",)
    await schedules.close()
    await field.close()


async def test_it_looks_every_minute_or_when_something_is_due(clock: ManualClock) -> None:
    field = await opened(clock)
    schedules = MemorySchedules(field, clock, FEW)
    await schedules.look()
    assert await schedules.pause_ms() == LOOK_EVERY_MS
    until_ms = HOUR_MS - clock.now_ms() % HOUR_MS
    clock.advance(until_ms - 20_000)
    await schedules.look()
    assert await schedules.pause_ms() == 20_000
    await field.close()


@requirement("openwop:compaction:schedule-once")
async def test_a_clock_that_was_ahead_puts_nothing_off(clock: ManualClock) -> None:
    field = await opened(clock)
    schedules = MemorySchedules(field, clock, FEW)
    await schedules.look()
    clock.advance(1_000 * HOUR_MS)
    assert await schedules.look() == ("compaction",)
    clock.advance(-1_000 * HOUR_MS)
    [unit] = await put(field, 1, expires_ms=clock.now_ms() + MINUTE_MS)
    for again in (schedules, MemorySchedules(field, clock, FEW)):
        assert await again.look() == ()
        clock.advance(HOUR_MS)
        assert await again.look() == ("compaction",)
    assert not await field.audit.texts([unit])
    await field.close()


async def test_a_store_without_room_for_the_mark_does_not_make_a_run_repeat_itself(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    field = await opened(clock)
    schedules = MemorySchedules(field, clock, FEW)
    await schedules.look()
    clock.advance(HOUR_MS)

    async def full(*_: Any) -> None:
        raise StorageFull

    monkeypatch.setattr(field.audit.marks, "set", full)
    assert await schedules.look() == ("compaction",)
    assert await schedules.look() == ()
    await field.close()


async def test_the_task_works_by_itself_and_ends_with_the_field(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    field = await opened(clock)
    schedules = MemorySchedules(field, clock, FEW)
    looked = asyncio.Event()
    tries = 0

    async def at_once() -> int:
        return 0

    async def look() -> tuple[()]:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise OSError("the store cannot be read now")
        looked.set()
        return ()

    monkeypatch.setattr("fieldstone.profiles.openwop.schedules.LOOK_EVERY_MS", 0)
    monkeypatch.setattr(schedules, "pause_ms", at_once)
    monkeypatch.setattr(schedules, "look", look)
    schedules.start()
    field.accompany(schedules)
    await asyncio.wait_for(looked.wait(), 10)
    await field.close()
    assert schedules._task is not None
    assert schedules._task.cancelled()


async def test_what_is_no_schedule_is_refused_at_once(clock: ManualClock) -> None:
    field = await opened(clock)
    with pytest.raises(BadSchedule):
        MemorySchedules(field, clock, HostSchedules(consolidation="at night"))
    await field.close()


# --- what -------------------------------------------------------------------------------------------------------------


@requirement("openwop:ttl:erased")
async def test_expired_entries_go_every_ten_minutes_also_without_a_schedule(clock: ManualClock) -> None:
    field = await opened(clock)
    [unit] = await put(field, 1, expires_ms=clock.now_ms() + MINUTE_MS)
    schedules = MemorySchedules(field, clock, HostSchedules())
    assert await schedules.look() == ()
    assert await schedules.pause_ms() == LOOK_EVERY_MS
    clock.advance(2 * MINUTE_MS)
    await schedules.look()
    assert await field.audit.texts([unit]), "not yet: it is only out of sight"
    clock.advance(SWEEP_EVERY_MS)
    await schedules.look()
    assert not await field.audit.texts([unit])
    await field.close()


@requirement("openwop:compaction:scheduled")
async def test_old_entries_are_compacted_and_the_newest_stay(clock: ManualClock) -> None:
    field = await opened(clock)
    units, short = await put(field, 6), await put(field, 3, "short")
    expiring = await put(field, 1, expires_ms=clock.now_ms() + 9 * HOUR_MS)
    schedules = MemorySchedules(field, clock, FEW)
    await schedules.look()
    clock.advance(HOUR_MS)
    await schedules.look()
    output, *rest = await listed(field)
    assert output.is_output
    assert [each.row.unit for each in rest] == [*expiring, units[-1]]
    assert [each.row.unit for each in await listed(field, "short")] == short[::-1]
    [event] = await told(field, MemoryCompacted)
    assert event.units == tuple(units[:-1])
    clock.advance(HOUR_MS)
    await schedules.look()
    assert len(await told(field, MemoryCompacted)) == 1, "there is nothing to do until more is put"
    await field.close()


@requirement("openwop:compaction:max-input")
async def test_a_run_takes_no_more_entries_than_the_limit_and_a_group_no_more_than_a_hundred(
    clock: ManualClock,
) -> None:
    field = await opened(clock)
    await put(field, 21)
    schedules = MemorySchedules(field, clock, FEW, HostLimits(max_input_entries=8))
    await schedules.look()
    clock.advance(HOUR_MS)
    await schedules.look()
    events = await told(field, MemoryCompacted)
    assert sum(event.sources for event in events) == 20
    assert all(event.sources <= 8 for event in events)
    assert len({event.compaction for event in events}) == 3
    await field.close()


@requirement("openwop:compaction:sources-gone")
async def test_with_delete_the_originals_are_gone_for_good(clock: ManualClock) -> None:
    field = await opened(clock)
    units = await put(field, 6)
    schedules = MemorySchedules(field, clock, FEW, HostLimits(deletes=True))
    await schedules.look()
    clock.advance(HOUR_MS)
    await schedules.look()
    assert set(await field.audit.texts(units)) == {units[-1]}
    await field.close()


@requirement("openwop:consolidation:scheduled")
async def test_memories_are_consolidated_when_it_is_due(clock: ManualClock) -> None:
    field = await opened(clock)
    await put(field, 2)
    await put(field, 2)
    await put(field, 1, "alone")
    schedules = MemorySchedules(field, clock, HostSchedules(consolidation=HOURLY))
    await schedules.look()
    clock.advance(HOUR_MS)
    assert await schedules.look() == ("consolidation",)
    [event] = await told(field, MemoryConsolidated)
    assert (event.inputs, event.outputs) == (4, 2)
    await field.close()


@requirement("openwop:distillation:scheduled")
async def test_old_entries_are_distilled_within_the_budget(clock: ManualClock) -> None:
    field = await opened(clock)
    units = await put(field, 12)
    expiring = await put(field, 1, expires_ms=clock.now_ms() + 9 * HOUR_MS)
    wanted = HostSchedules(distillation=HOURLY, min_entries=4, keep_newest=1)
    schedules = MemorySchedules(field, clock, wanted, HostLimits(max_token_budget=100))
    await schedules.look()
    clock.advance(HOUR_MS)
    assert await schedules.look() == ("distillation",)
    [event] = await told(field, MemoryCompacted)
    assert 1 < event.sources < 9, "a dozen words each, and room for what is made from them"
    assert set(event.units) == set(units[: event.sources])
    assert event.tokens_used <= event.token_budget == 100
    assert event.index_updated
    left = [each.row.unit for each in await listed(field) if not each.is_output]
    assert left == [*expiring, *units[event.sources :][::-1]]
    await field.close()


@requirement("openwop:distillation:exceeded")
async def test_a_budget_that_not_even_two_entries_fit_changes_nothing(clock: ManualClock) -> None:
    field = await opened(clock)
    units = await put(field, 6)
    wanted = HostSchedules(distillation=HOURLY, min_entries=4, keep_newest=1)
    schedules = MemorySchedules(field, clock, wanted, HostLimits(max_token_budget=12))
    await schedules.look()
    clock.advance(HOUR_MS)
    await schedules.look()
    assert [each.row.unit for each in await listed(field)] == units[::-1]
    await field.close()


@requirement("openwop:compaction:schedule-apart")
@pytest.mark.parametrize("error", [CompactionRedactionFailed(), TokenBudgetExceeded(), OSError("broken")])
async def test_a_memory_that_fails_hinders_no_other(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    field = await opened(clock)
    await put(field, 6, "bad")
    await put(field, 6, "good")
    schedules = MemorySchedules(field, clock, FEW)
    await schedules.look()
    compact = field.memories.condensing.compact

    async def failing(memory: str, units: Sequence[int], **how: Any) -> object:
        if memory == "bad":
            raise error
        return await compact(memory, units, **how)

    monkeypatch.setattr(field.memories.condensing, "compact", failing)
    clock.advance(HOUR_MS)
    assert await schedules.look() == ("compaction",)
    assert (len(await listed(field, "bad")), len(await listed(field, "good"))) == (6, 2)
    assert await schedules.look() == (), "it is tried again when it is due again"
    await field.close()


# --- choosing ---------------------------------------------------------------------------------------------------------

LISTED = st.lists(st.tuples(st.booleans(), st.booleans()), max_size=40).map(
    lambda kinds: [Listed(len(kinds) - at, *kind) for at, kind in enumerate(kinds)]
)


@requirement("openwop:compaction:scheduled")
@given(LISTED, st.integers(1, 20), st.integers(0, 10))
def test_the_newest_what_expires_and_memories_with_few_entries_are_left(
    newest_first: list[Listed], least: int, keep: int
) -> None:
    chosen = to_compact(newest_first, min_entries=least, keep_newest=keep)
    assert chosen == sorted(chosen), "oldest first"
    by_unit = {each.unit: each for each in newest_first}
    assert not any(by_unit[unit].expires for unit in chosen)
    raw = [each.unit for each in newest_first if not each.expires and not each.is_output]
    outputs = [each.unit for each in newest_first if not each.expires and each.is_output]
    assert not {*raw[:keep], *outputs[:keep]} & set(chosen)
    assert (set(raw[keep:]) <= set(chosen)) if len(raw) >= least else set(raw).isdisjoint(chosen)
    assert (set(outputs[keep:]) <= set(chosen)) if len(outputs) > least else set(outputs).isdisjoint(chosen)


@requirement("openwop:compaction:scheduled")
@given(st.lists(st.integers(), max_size=60), st.integers(1, 25))
def test_runs_hold_all_units_in_order_and_none_too_many(units: list[int], most: int) -> None:
    runs = list(in_runs(units, most))
    assert [unit for run in runs for unit in run] == units
    assert all(0 < len(run) <= most for run in runs)
    assert not runs or max(map(len, runs)) - min(map(len, runs)) <= 1


@requirement("openwop:distillation:scheduled")
@given(st.lists(st.integers(0, 30), max_size=30), st.integers(1, 60))
def test_the_oldest_that_fit_together_are_taken(tokens: list[int], budget: int) -> None:
    fit = that_fit(list(enumerate(tokens)), budget)
    assert sum(tokens[unit] for unit in fit) <= budget
    possible = [unit for unit, size in enumerate(tokens) if size <= budget]
    assert fit == possible[: len(fit)]
    if len(fit) < len(possible):
        assert sum(tokens[unit] for unit in possible[: len(fit) + 1]) > budget
