"""Retention: policies act when somebody applies them, or on their schedule, and otherwise never."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import UNSET, json

from fieldstone.backends.memory.store import MemoryStore
from fieldstone.compaction import plan
from fieldstone.compaction.retention import Match, Policy
from fieldstone.core import errors
from fieldstone.core.access import Caller
from fieldstone.core.events import CompactionBegun, RetentionSet, RetentionTexts
from fieldstone.core.replies import Reply
from fieldstone.core.requests import Compact, Message
from fieldstone.core.text import CleanText
from fieldstone.field.archiving import Archive
from fieldstone.field.desk import Desk, Draft
from fieldstone.field.field import LocalField
from fieldstone.field.retention import LOOKED, SET, Outcome
from fieldstone.field.scheduling import LOOK_EVERY_MS, SETTLING_MS
from fieldstone.field.work import NO_ANSWER, Wordless
from fieldstone.testing import KEY, ManualClock
from tests.field.fields import opened, staffed
from tests.messages import accepted, attune, attuned, record, register
from tests.requirements import requirement

MINUTE_MS = 60_000
DAY_MS = 24 * 60 * MINUTE_MS
HOURLY = "0 * * * *"


def policy(**fields: Any) -> Policy:
    said: dict[str, Any] = {"name": "aged", "strategy": "archive", "max_units": 1}
    return Policy(**said | fields)


def clock(field: LocalField) -> ManualClock:
    assert isinstance(field._clock, ManualClock)
    return field._clock


async def recorded(field: LocalField, count: int, **more: Any) -> list[str]:
    return [await accepted(field, record("ada", f"Latency of step {n} is {n} ms.", **more)) for n in range(count)]


async def shown(field: LocalField) -> set[str]:
    return {unit.id for unit in await attuned(field, attune("ben"))}


def units(outcomes: tuple[Outcome, ...]) -> list[int | None]:
    return [None if each.result is None else each.result.units_affected for each in outcomes]


async def test_a_policy_is_planned_and_applied_and_nothing_goes_before() -> None:
    field = await staffed()
    made = await recorded(field, 3)
    await field.set_retention([policy()])
    assert units(await field.plan_retention()) == [2]
    assert await shown(field) == set(made)
    assert units(await field.apply_retention()) == [2]
    assert await shown(field) == {made[-1]}
    assert units(await field.apply_retention()) == [0]
    await field.close()


async def test_age_is_counted_in_epochs_or_in_time() -> None:
    field = await staffed()
    old = await recorded(field, 2)
    clock(field).advance(2 * DAY_MS)
    young = await recorded(field, 2)
    await field.set_retention([policy(max_units=None, max_age="1d"), policy(name="b", max_units=None, max_age="3d")])
    assert units(await field.plan_retention()) == [2, 0]
    await field.set_retention([policy(max_units=None, max_age_epochs=0)])
    assert units(await field.plan_retention()) == [3], "the newest has no age yet"
    await field.set_retention([policy(max_units=None, max_age="1d")])
    await field.apply_retention()
    assert await shown(field) == set(young)
    assert not await shown(field) & set(old)
    await field.close()


async def test_an_age_and_a_cap_work_side_by_side() -> None:
    field = await staffed()
    await recorded(field, 2)
    clock(field).advance(2 * DAY_MS)
    made = await recorded(field, 3)
    await field.set_retention([policy(max_units=4, max_age="1d")])
    assert units(await field.apply_retention()) == [2], "two are too old, and only one is beyond the cap"
    await field.set_retention([policy(max_units=1, max_age="1d")])
    assert units(await field.apply_retention()) == [2]
    assert await shown(field) == {made[-1]}
    await field.close()


async def test_a_policy_is_about_what_it_matches() -> None:
    field = await staffed()
    await recorded(field, 2, session="s-1")
    await recorded(field, 2, type="decision")
    for match, expected in (
        (Match(session="s-1"), 2),
        (Match(session="s-2"), 0),
        (Match(types=("decision",)), 2),
        (Match(status=("retracted",)), 0),
        (Match("s-1", ("decision",)), 0),
    ):
        await field.set_retention([policy(match=match, max_units=0)])
        assert units(await field.plan_retention()) == [expected]
    await field.close()


@requirement("akashik:compact:guards")
@pytest.mark.parametrize("strategy", ["archive", "summarize", "purge"])
async def test_holds_and_pins_are_never_overridden(strategy: str) -> None:
    field = await staffed()
    held, pinned, *_ = made = await recorded(field, 5)
    await field.guard(held, "hold")
    await field.guard(pinned, "pin")
    await field.set_retention([policy(strategy=strategy, max_units=0)])
    [outcome] = await field.apply_retention()
    assert outcome.result is not None
    assert {each.unit_id for each in outcome.result.skipped} == {held, pinned}
    assert await shown(field) & set(made) == {held, pinned}
    await field.close()


async def test_a_policy_that_is_not_enabled_does_nothing() -> None:
    field = await staffed()
    await recorded(field, 3)
    await field.set_retention([policy(enabled=False), policy(name="b", max_units=2)])
    assert units(await field.plan_retention()) == [None, 1]
    assert units(await field.apply_retention()) == [None, 1]
    await field.close()


@requirement("akashik:compact:audit")
async def test_a_run_goes_on_record_with_its_policy_in_the_fields_own_name() -> None:
    field = await staffed()
    await recorded(field, 3)
    await field.set_retention([policy()])
    await field.apply_retention()
    events = [line.entry.event for line in (await field.log(limit=1_000)).entries]
    [begun] = [event for event in events if isinstance(event, CompactionBegun)]
    assert (bool(begun.policy), begun.beyond_newest) == (True, 1)
    assert begun.policy != "aged", "the name is somebody's text"
    assert begun.by == field._state.agents["field"].number
    assert [event for event in events if isinstance(event, RetentionSet)] == [RetentionSet(policies=1)]
    assert (await field.verify()).ok
    await field.close()


async def test_policies_and_their_last_runs_survive_a_restart_and_lost_marks() -> None:
    store = MemoryStore(KEY)
    field = await staffed(store=store)
    await recorded(field, 3)
    wanted = (policy(schedule=HOURLY, match=Match("s-1")), policy(name="b", schedule=HOURLY))
    await field.set_retention([policy(name="former")])
    await field.set_retention(wanted)
    await field.apply_retention()
    told = await field.retention_status()
    assert [each.last_run is not None for each in told] == [False, True]
    await field.close()
    for lost in (False, True):
        if lost:
            await store.marks.set(SET, 0)
            await store.marks.set(LOOKED, 0)
        field = await opened(store=store, seed=2)
        assert await field.retention() == wanted
        assert await field.retention_status() == told
        await field.close()


async def test_policies_come_with_the_log_that_they_are_in() -> None:
    field = await staffed()
    await field.set_retention([policy(schedule=HOURLY)])
    lines = b"".join([piece async for piece in field.export()]).splitlines()
    other = await opened(seed=2)
    assert await other.retention() == ()
    await other.import_lines(lines)
    assert await other.retention() == (policy(schedule=HOURLY),)
    assert other._scheduling._task is not None
    await field.close()
    await other.close()


@pytest.mark.parametrize("text", ["{}", '{"name":"aged","strategy":"archive","max_age":"[REDACTED:x]"}'])
async def test_a_policy_that_nobody_understands_any_more_is_not_applied(text: str) -> None:
    field = await staffed()
    await field.set_retention([policy(), policy(name="b")])
    await field._writer.submit(Unreadable(text))
    await field._retention.load()
    assert await field.retention() == (policy(),)
    await field.close()


async def test_a_policy_without_a_schedule_is_never_due() -> None:
    field = await staffed()
    made = await recorded(field, 3)
    await field.set_retention([policy()])
    clock(field).advance(400 * DAY_MS)
    assert await field._scheduling.look() == ()
    assert field._scheduling._task is None
    assert await shown(field) == set(made)
    await field.close()


async def test_a_scheduled_policy_runs_when_it_is_due_and_not_before() -> None:
    field = await staffed()
    made = await recorded(field, 3)
    clock(field).advance(DAY_MS - clock(field).now_ms() % DAY_MS + SETTLING_MS)  # a minute past midnight
    await field.set_retention([policy(schedule=HOURLY)])
    assert await field._scheduling.look() == ()
    assert await field._scheduling.pause_ms() == LOOK_EVERY_MS
    clock(field).advance(59 * MINUTE_MS - 1_000)
    assert await field._scheduling.look() == ()
    assert await field._scheduling.pause_ms() == 1_000
    clock(field).advance(1_000)
    assert units(await field._scheduling.look()) == [2]
    assert await shown(field) == {made[-1]}
    assert await field._scheduling.look() == ()
    clock(field).advance(60 * MINUTE_MS)
    assert units(await field._scheduling.look()) == [0], "it looks again, and finds nothing"
    assert await field._scheduling.look() == ()
    await field.close()


async def test_a_run_that_was_missed_while_the_field_was_closed_is_made_up_for_once() -> None:
    store = MemoryStore(KEY)
    field = await staffed(store=store)
    await recorded(field, 3)
    await field.set_retention([policy(schedule=HOURLY)])
    await field.close()
    field = await opened(store=store, seed=2)
    clock(field).advance(5 * DAY_MS)
    field._scheduling._not_before_ms = clock(field).now_ms() + SETTLING_MS  # as if it had been opened now
    assert await field._scheduling.look() == (), "not by a command that is over in a moment"
    clock(field).advance(SETTLING_MS)
    assert units(await field._scheduling.look()) == [2]
    assert await field._scheduling.look() == ()
    await field.close()


async def test_what_cannot_run_because_another_compaction_does_runs_later(monkeypatch: pytest.MonkeyPatch) -> None:
    field = await staffed()
    await field.send(register("eve", authority=10))
    await recorded(field, 4)
    await field.set_retention([policy(schedule=HOURLY)])
    clock(field).advance(DAY_MS)
    reached, go_on = gate(monkeypatch)
    other = await field.begin_compaction(Message("COMPACT", "eve", Compact("archive")))
    await reached.wait()
    assert await field._scheduling.look() == ()
    assert await field._scheduling.pause_ms() == LOOK_EVERY_MS
    await field.cancel_compaction(other.compaction_id)
    go_on.set()
    assert [step.state async for step in field.watch_compaction(other.compaction_id)][-1] == "cancelled"
    assert units(await field._scheduling.look()) == [1]
    await field.close()


@requirement("akashik:compact:resumable")
async def test_a_run_that_was_cut_off_goes_on_with_the_same_units(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore(KEY)
    field = await staffed(store=store)
    made = await recorded(field, 4)
    await field.set_retention([policy()])
    with monkeypatch.context() as patch:
        reached, go_on = gate(patch)
        applying = asyncio.ensure_future(field.apply_retention())
        await reached.wait()
        closing = asyncio.ensure_future(field.close())
        await asyncio.sleep(0)
        go_on.set()
        await closing
        with pytest.raises(errors.ShuttingDown):
            await applying
    field = await opened(store=store, seed=2)
    [status] = await field.retention_status()
    assert status.last_run is not None
    [*_, last] = [step async for step in field.watch_compaction(status.last_run.compaction_id)]
    assert last.state == "done"
    assert await shown(field) == {made[-1]}
    await field.close()


async def test_who_may_not_purge_cannot_have_a_policy_do_it() -> None:
    field = await staffed()
    senior, creator = Caller("key-6", 6), Caller("key-8", 8)
    with pytest.raises(errors.Forbidden):
        await field.set_retention([policy()], senior)
    with pytest.raises(errors.Forbidden):
        await field.set_retention([policy(strategy="purge")], creator)
    with pytest.raises(errors.Forbidden):
        await field.apply_retention(senior)
    await field.set_retention([policy()], creator)
    assert await field.retention(senior) == (policy(),)
    assert units(await field.plan_retention(senior)) == [0]
    with pytest.raises(errors.Forbidden):
        await field.plan_retention(Caller("key-4", 4))
    await field.close()


async def test_who_does_not_see_into_every_session_is_told_how_many_units_and_not_which() -> None:
    field = await staffed()
    held, *_ = await recorded(field, 3)
    await field.guard(held, "hold")
    await field.set_retention([policy(max_units=0)])
    for asked in (field.plan_retention(Caller("key-8", 8)), field.apply_retention(Caller("key-8", 8))):
        [outcome] = await asked
        assert outcome.result is not None
        assert outcome.result.units_affected == 2
        assert (outcome.result.skipped, outcome.result.groups) == ((), UNSET)
    [operators] = await field.plan_retention()
    assert operators.result is not None
    assert [each.unit_id for each in operators.result.skipped] == [held]
    await field.close()


async def test_a_policy_that_names_a_secret_is_refused_and_the_old_ones_hold() -> None:
    field = await staffed()
    await field.set_retention([policy()])
    await field.put_secret("db", "s3kr3t-value-of-the-db")
    with pytest.raises(errors.SecretLeakage):
        await field.set_retention([policy(match=Match("s3kr3t-value-of-the-db"))])
    with pytest.raises(errors.InvalidPayload):
        await field.set_retention([policy(), policy()])
    assert await field.retention() == (policy(),)
    await field.close()


class Unreadable(Wordless):
    """Policies of which one cannot be read, as a sweep or a strange import may leave them."""

    def __init__(self, text: str) -> None:
        self._text = text

    async def decide(self, desk: Desk, clean: Sequence[CleanText]) -> tuple[Draft, Reply]:
        draft = desk.quiet_draft(desk.epoch)
        good = CleanText(json.encode(policy()).decode())
        draft.append(RetentionSet(policies=2), RetentionTexts((good, CleanText(self._text))))
        return draft, NO_ANSWER


def gate(monkeypatch: pytest.MonkeyPatch) -> tuple[asyncio.Event, asyncio.Event]:
    """Steps of one unit. The second waits until it may go on."""
    reached, go_on, put, steps = asyncio.Event(), asyncio.Event(), Archive.put, iter(range(100))

    async def slow(self: Archive, units: list[int], compaction: int) -> tuple[int, int]:
        if next(steps) == 1:
            reached.set()
            await go_on.wait()
        return await put(self, units, compaction)

    monkeypatch.setattr(plan, "BATCH_UNITS", 1)
    monkeypatch.setattr(Archive, "put", slow)
    return reached, go_on
