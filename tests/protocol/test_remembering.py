"""From runs to the Field: what a committed run decided and found becomes units, once, and leads back to its message."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from fieldstone.backends.memory.planes import MemoryPlanes
from fieldstone.backends.memory.store import MemoryStore
from fieldstone.backends.memory.vault import MemoryVault
from fieldstone.backends.sqlite.planes import SqlitePlanes
from fieldstone.backends.sqlite.store import SqliteStore
from fieldstone.core.access import Caller
from fieldstone.core.errors import (
    AgentNotRegistered,
    Forbidden,
    InvalidPayload,
    InvalidTransition,
    RateLimited,
    RunNotFound,
)
from fieldstone.core.events import UnitRecorded
from fieldstone.core.requests import Compact, CompactFilter, Message, Record, Register, Retract
from fieldstone.core.streams import StreamEvent
from fieldstone.core.transcripts import Run, TextPart
from fieldstone.core.units import Confidence, Intent, MemoryUnit, Relation
from fieldstone.field.field import LocalField
from fieldstone.field.opening import open_local
from fieldstone.field.remembering import RememberedUnit, Remembering
from fieldstone.field.secrets import Secrets
from fieldstone.redact import shared_harness
from fieldstone.testing.world import ManualClock, SeededIds
from tests.planes.events import delta, finished, user
from tests.protocol.rig import options
from tests.protocol.ways import KEY, words_only
from tests.redact.fakes import noise
from tests.requirements import requirement

SCOPE: Final = f"{KEY.tenant}/{KEY.field}"
THREAD: Final = "chat"
DAY_MS: Final = 24 * 60 * 60 * 1_000
TALK: Final = (
    user("Which database do we take?"),
    delta("I looked at both. I found that SQLite is fast enough. "),
    delta("We decided to keep SQLite."),
    finished(),
)
FOUND: Final = [("finding", "I found that SQLite is fast enough."), ("decision", "We decided to keep SQLite.")]


class Scene(NamedTuple):
    field: LocalField
    clock: ManualClock
    reopen: Callable[[], Awaitable["Scene"]]

    async def told(self, *events: StreamEvent, **where: Any) -> Run:
        run = await self.field.planes.runs.begin_run(THREAD, **where)
        await self.field.planes.streams.append(run.stream_id, events)
        return await self.field.planes.runs.commit(THREAD, run.run_id)

    async def remember(self, run: Run, agent: str = "ada", **how: Any) -> Sequence[RememberedUnit]:
        return await Remembering(self.field).remember(run.thread_id, run.run_id, agent, **how)

    async def units(self) -> list[MemoryUnit]:
        """All that were recorded, by the log."""
        events = [line.entry.event for line in (await self.field.log(limit=1_000)).entries]
        return [await self.field.unit(event.id) for event in events if isinstance(event, UnitRecorded)]

    async def contents(self) -> list[tuple[str, str]]:
        return [(unit.type, unit.content) for unit in await self.units()]


@pytest.fixture(params=["memory", "sqlite"])
async def scene(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Scene]:
    """A field with its planes, with ada and ben in it, and eve, who may do everything."""
    clock, ids, opened = ManualClock(), SeededIds(), list[LocalField]()
    memory = request.param == "memory"
    store = MemoryStore(KEY)
    planes = MemoryPlanes() if memory else SqlitePlanes(tmp_path / "field.db")

    async def open_scene() -> Scene:
        for field in opened:
            await field.close()
        field = await open_local(
            store if memory else SqliteStore.open(tmp_path / "field.db", KEY),
            clock=clock,
            ids=ids,
            harness=shared_harness,
            secrets=Secrets(MemoryVault()),
            models=words_only(),
            options=options(),
            planes=planes.open(SCOPE),
        )
        opened[:] = [field]
        return Scene(field, clock, open_scene)

    scene = await open_scene()
    for agent in ("ada", "ben"):
        await scene.field.send(Message("REGISTER", agent, Register(agent, "researcher")))
    await scene.field.send(Message("REGISTER", "eve", Register("eve", "operator", authority=10)))
    yield scene
    await opened[0].close()
    await planes.close()


@requirement("planes:remembering:asked-for")
async def test_a_commit_alone_records_nothing(scene: Scene) -> None:
    before = await scene.field.log(limit=1_000)
    await scene.told(*TALK)
    assert await scene.field.log(limit=1_000) == before


@requirement("planes:remembering:asked-for", "planes:remembering:caused-by")
async def test_decisions_and_findings_become_units_that_are_caused_by_their_message(scene: Scene) -> None:
    run = await scene.told(*TALK)
    remembered = await scene.remember(run, session_id="planning")
    assert [(each.type, each.content, each.is_new) for each in remembered] == [(*each, True) for each in FOUND]
    [_, answer] = (await scene.field.planes.transcript.messages(THREAD)).messages
    for unit, told in zip(await scene.units(), remembered, strict=True):
        assert (unit.id, unit.type, unit.content) == (told.memory_unit_id, told.type, told.content)
        assert unit.relations == (Relation("caused_by", answer.id),)
        assert (unit.source.agent_id, unit.source.session_id, unit.status) == ("ada", "planning", "active")
        assert unit.intent.purpose in (
            "Keep what was found on: Which database do we take?",
            "Keep what was decided on: Which database do we take?",
        )
        assert unit.confidence is not None
        assert unit.confidence.reasoning == "The assistant said it in these words; found by rule."


@requirement("planes:remembering:caused-by")
async def test_from_a_unit_the_way_leads_to_its_run_its_thread_and_its_message(scene: Scene) -> None:
    run = await scene.told(*TALK)
    [told, _] = await scene.remember(run)
    unit = await scene.field.unit(told.memory_unit_id)
    assert unit.intent.task_id is not None
    [found] = [each for each in await scene.field.planes.runs.runs(THREAD) if each.run_id == unit.intent.task_id]
    [cause] = unit.relations
    [message] = await scene.field.planes.transcript.messages_by_id(found.thread_id, [cause.target_id])
    [part] = message.parts
    assert isinstance(part, TextPart)
    assert unit.content in part.text


async def test_an_answer_given_again_is_remembered_on_what_was_asked_before_it(scene: Scene) -> None:
    await scene.told(user("Which database do we take?"))
    [asked] = (await scene.field.planes.transcript.messages(THREAD)).messages
    [told] = await scene.remember(await scene.told(delta("We decided to wait."), fork_from=asked.id))
    unit = await scene.field.unit(told.memory_unit_id)
    assert unit.intent.purpose == "Keep what was decided on: Which database do we take?"


@requirement("planes:remembering:once")
async def test_asked_again_nothing_is_recorded_twice_not_even_days_later_by_another_process(scene: Scene) -> None:
    run = await scene.told(*TALK)
    first = await scene.remember(run)
    again = await scene.remember(run)
    assert [(each.memory_unit_id, each.is_new) for each in again] == [(each.memory_unit_id, False) for each in first]
    scene.clock.advance(30 * DAY_MS)  # answers are remembered for one
    scene = await scene.reopen()
    assert await scene.remember(run) == again
    assert await scene.contents() == FOUND


@requirement("planes:remembering:once")
async def test_of_many_that_ask_at_the_same_time_one_records(scene: Scene) -> None:
    run = await scene.told(*TALK)
    await asyncio.gather(*(scene.remember(run) for _ in range(5)))
    assert await scene.contents() == FOUND


@requirement("planes:remembering:once")
async def test_what_was_cut_off_in_the_middle_is_completed(scene: Scene) -> None:
    run = await scene.told(*TALK)
    caller = Caller("key-1", 10, quota_units=1)
    await scene.field.send(Message("REGISTER", "carl", Register("carl", "clerk"), caller=caller))
    with pytest.raises(RateLimited):
        await Remembering(scene.field, caller).remember(THREAD, run.run_id, "carl")
    assert await scene.contents() == FOUND[:1]
    scene.clock.advance(2 * DAY_MS)
    assert [each.is_new for each in await scene.remember(run, "carl")] == [False, True]
    assert await scene.contents() == FOUND


async def test_another_agent_that_asks_has_units_of_its_own(scene: Scene) -> None:
    run = await scene.told(*TALK)
    first, other = await scene.remember(run), await scene.remember(run, "ben")
    assert all(each.is_new for each in other)
    assert not {each.memory_unit_id for each in first} & {each.memory_unit_id for each in other}


@requirement("planes:remembering:once")
async def test_what_was_archived_or_retracted_is_not_recorded_again(scene: Scene) -> None:
    run = await scene.told(*TALK)
    first = await scene.remember(run, session_id="planning")
    await scene.field.send(Message("RETRACT", "ada", Retract(first[0].memory_unit_id, "It is too slow.")))
    archive = Compact("archive", CompactFilter(session_id="planning"))
    await scene.field.send(Message("COMPACT", "eve", archive))
    scene.clock.advance(2 * DAY_MS)
    assert [each.memory_unit_id for each in await scene.remember(run)] == [each.memory_unit_id for each in first]
    assert await scene.contents() == FOUND


@requirement("planes:remembering:once")
async def test_what_was_purged_does_not_come_back(scene: Scene) -> None:
    run = await scene.told(*TALK)
    await scene.remember(run, session_id="planning")
    purge = Compact("purge", CompactFilter(session_id="planning", types=("decision",)))
    await scene.field.send(Message("COMPACT", "eve", purge))
    before = await scene.field.log(limit=1_000)
    [left] = await scene.remember(run)
    assert (left.type, left.content) == FOUND[0]
    assert (await scene.field.log(limit=1_000)).entries == before.entries


@requirement("planes:remembering:asked-for")
async def test_only_the_types_that_are_asked_for_are_recorded_and_as_drafts_if_that_is_wanted(scene: Scene) -> None:
    run = await scene.told(*TALK)
    [draft] = await scene.remember(run, types=["decision"], mode="draft")
    unit = await scene.field.unit(draft.memory_unit_id)
    assert (unit.type, unit.status) == ("decision", "draft")
    both = await scene.remember(run)
    assert [(each.type, each.is_new) for each in both] == [("decision", False), ("finding", True)]
    for types in ([], ["synthesis"]):
        with pytest.raises(InvalidPayload):
            await scene.remember(run, types=types)


async def test_a_unit_recorded_by_hand_under_the_runs_id_counts_for_nothing(scene: Scene) -> None:
    run = await scene.told(*TALK)
    kind, content = FOUND[1]
    intent, confidence = Intent("keep it", task_id=run.run_id), Confidence(0.9, "I was there")
    await scene.field.send(Message("RECORD", "ada", Record("committed", kind, content, intent, confidence)))
    assert [each.is_new for each in await scene.remember(run)] == [True, True]


async def test_a_run_in_which_nothing_was_decided_or_found_leaves_nothing(scene: Scene) -> None:
    run = await scene.told(user("Hello."), delta("How are you?"), finished())
    assert await scene.remember(run) == ()
    assert await scene.units() == []


@requirement("planes:remembering:committed-only")
@pytest.mark.parametrize("end", ["open", "failed", "cancelled", "superseded"])
async def test_only_a_committed_run_is_remembered(scene: Scene, end: str) -> None:
    runs = scene.field.planes.runs
    run = await runs.begin_run(THREAD)
    await scene.field.planes.streams.append(run.stream_id, TALK)
    if end == "failed":
        await runs.fail(THREAD, run.run_id)
    elif end == "cancelled":
        await runs.cancel(THREAD, run.run_id)
    elif end == "superseded":
        await runs.commit(THREAD, run.run_id)
        await scene.told(delta("Another answer."), fork_from=None)
    with pytest.raises(InvalidTransition):
        await scene.remember(run)
    assert await scene.units() == []


@requirement("planes:remembering:committed-only")
async def test_a_run_of_another_thread_is_not_found(scene: Scene) -> None:
    run = await scene.told(*TALK)
    await scene.field.planes.runs.begin_run("other")
    with pytest.raises(RunNotFound):
        await Remembering(scene.field).remember("other", run.run_id, "ada")


async def test_only_a_registered_agent_of_the_callers_with_the_authority_to_record_remembers(scene: Scene) -> None:
    run = await scene.told(*TALK)
    with pytest.raises(AgentNotRegistered):
        await scene.remember(run, "nobody")
    for caller in (Caller("key-1", 1), Caller("key-1", 3, frozenset({"ada"})), Caller("key-1", 9, frozenset({"ben"}))):
        with pytest.raises(Forbidden):
            await Remembering(scene.field, caller).remember(THREAD, run.run_id, "ada")
    assert await scene.units() == []


async def test_nobody_learns_of_the_drafts_that_anothers_agent_has_of_a_run(scene: Scene) -> None:
    run = await scene.told(*TALK)
    await scene.remember(run, mode="draft")
    await scene.field.send(Message("REGISTER", "carl", Register("carl", "clerk"), caller=Caller("key-1", 4)))
    with pytest.raises(Forbidden):  # as if there were none
        await Remembering(scene.field, Caller("key-1", 4)).remember(THREAD, run.run_id, "ada")
    assert await scene.contents() == FOUND


@requirement("planes:remembering:clean")
async def test_a_secret_that_became_known_after_the_run_is_not_recorded(scene: Scene) -> None:
    secret = f"zeppelin {noise(10).lower()}"
    run = await scene.told(user("How do we get in?"), delta(f"We agreed on {secret} for the door."), finished())
    await scene.field.put_secret("door", secret)
    [told] = await scene.remember(run)
    assert told.content == "We agreed on [REDACTED:door] for the door."
    scene.clock.advance(2 * DAY_MS)
    assert [each.is_new for each in await scene.remember(run)] == [False]
    assert secret not in repr(await scene.units())
