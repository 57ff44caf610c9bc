"""Runs: one state machine, each step compared and set in one transaction."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from fieldstone.core.errors import InvalidPayload, InvalidTransition, RunNotFound, ThreadNotFound
from fieldstone.core.transcripts import Run, RunStatus, ToolResultPart
from fieldstone.planes import runs as runs_module
from fieldstone.planes.messages import message_id
from fieldstone.planes.runs import NEVER_ANSWERED, Runs, commit_run
from fieldstone.planes.snapshots import state_in
from fieldstone.ports.planes import MessageRow, Tables
from fieldstone.testing import SeededIds
from tests.planes.events import call, delta, finished, result, started, user
from tests.planes.scene import BACKENDS, THREAD, Scene, in_scene
from tests.requirements import requirement

MANY = 20


@requirement("planes:runs:shape", "planes:runs:fork-point")
async def test_the_first_run_of_a_thread_makes_it_and_forks_at_the_root(scene: Scene) -> None:
    run = await scene.begin()
    assert (run.thread_id, run.status, run.fork_from_message_id) == (THREAD, "created", None)
    assert run.stream_id == f"run:{run.run_id}"
    assert (run.message_count, run.finished_at) == (0, None)
    assert [each.thread_id for each in (await scene.transcript.threads()).threads] == [THREAD]


@requirement("planes:runs:shape", "planes:runs:states")
async def test_a_run_is_streaming_with_its_first_event_and_committed_with_its_messages(scene: Scene) -> None:
    run = await scene.begin()
    await scene.tell(run, user("q"), delta("a"))
    assert (await scene.runs.run(THREAD, run.run_id)).status == "streaming"
    committed = await scene.commit(run)
    assert (committed.status, committed.message_count) == ("committed", 2)
    assert committed.finished_at is not None
    assert await scene.path() == ["q", "a"]


@requirement("planes:runs:fork-point")
async def test_without_a_fork_point_a_run_goes_on_at_the_active_leaf(scene: Scene) -> None:
    [*_, leaf] = await scene.said("one", "two")
    assert (await scene.begin()).fork_from_message_id == leaf
    assert (await scene.begin(None)).fork_from_message_id is None


@requirement("planes:runs:final")
@pytest.mark.parametrize("end", ["commit", "fail", "cancel"])
async def test_finalising_again_with_the_same_status_changes_nothing_and_with_another_is_refused(
    scene: Scene, end: str
) -> None:
    ends = {"commit": scene.runs.commit, "fail": scene.runs.fail, "cancel": scene.runs.cancel}
    run = await scene.begin()
    await scene.tell(run, delta("a"))
    first = await ends[end](THREAD, run.run_id)
    scene.clock.advance(1_000)
    assert await ends.pop(end)(THREAD, run.run_id) == first
    for other in ends.values():
        with pytest.raises(InvalidTransition):
            await other(THREAD, run.run_id)
    assert await scene.runs.run(THREAD, run.run_id) == first
    assert len((await scene.transcript.messages(THREAD)).messages) == first.message_count


@requirement("planes:runs:states")
async def test_a_run_that_told_nothing_can_fail_or_be_cancelled_but_not_committed(scene: Scene) -> None:
    one, other = await scene.begin(), await scene.begin()
    with pytest.raises(InvalidTransition):
        await scene.commit(one)
    assert (await scene.runs.fail(THREAD, one.run_id)).status == "failed"
    assert (await scene.runs.cancel(THREAD, other.run_id)).status == "cancelled"


@requirement("planes:runs:uncommitted-leaves-nothing")
async def test_a_run_that_is_not_committed_leaves_no_message(scene: Scene) -> None:
    for end in (scene.runs.fail, scene.runs.cancel):
        run = await scene.begin()
        await scene.tell(run, delta("half"))
        await end(THREAD, run.run_id)
    assert await scene.path() == []


@requirement("planes:streams:finished-run", "planes:runs:states")
async def test_an_ended_run_takes_no_more_events(scene: Scene) -> None:
    run = await scene.committed(delta("a"))
    with pytest.raises(InvalidTransition):
        await scene.tell(run, delta("b"))
    assert await scene.store.read(lambda tables: tables.events(run.stream_id, after=1, limit=1)) == []


@requirement("planes:runs:supersedes")
async def test_committing_supersedes_the_other_committed_runs_with_the_same_fork_point(scene: Scene) -> None:
    [question] = await scene.said("question")
    first = await scene.committed(delta("first"), fork_from=question)
    elsewhere = await scene.committed(delta("elsewhere"))
    open_run = await scene.begin(question)
    second = await scene.committed(delta("second"), fork_from=question)
    statuses = {run.run_id: run.status for run in await scene.runs.runs(THREAD)}
    assert statuses[first.run_id] == "superseded"
    assert statuses[second.run_id] == "committed"
    assert statuses[elsewhere.run_id] == "committed"
    assert statuses[open_run.run_id] == "created"
    assert await scene.path() == ["question", "second"]
    assert len((await scene.transcript.messages(THREAD, branch="all")).messages) == 4, "nothing is deleted"


@requirement("planes:runs:first-message")
async def test_regenerating_the_first_message_works_the_same_way(scene: Scene) -> None:
    await scene.said("first try", "and on")
    await scene.said("second try", fork_from=None)
    assert await scene.path() == ["second try"]
    assert [run.status for run in await scene.runs.runs(THREAD)] == ["committed", "superseded"]


@requirement("planes:runs:supersedes")
async def test_a_superseded_run_that_is_committed_again_stays_superseded(scene: Scene) -> None:
    run = await scene.committed(delta("first"))
    await scene.committed(delta("second"), fork_from=None)
    assert (await scene.commit(run)).status == "superseded"
    assert await scene.path() == ["second"]


@requirement("planes:runs:one-transcript")
async def test_two_concurrent_commits_give_one_transcript(scene: Scene) -> None:
    run = await scene.begin()
    await scene.tell(run, user("q"), delta("a"))
    answers = await asyncio.gather(*(scene.runs.commit(THREAD, run.run_id) for _ in range(MANY)))
    assert len(set(map(repr, answers))) == 1
    assert await scene.path() == ["q", "a"]


@requirement("planes:runs:one-winner")
async def test_a_commit_that_races_a_cancel_has_one_winner(scene: Scene) -> None:
    for turn in range(MANY):
        run = await scene.begin(None)
        await scene.tell(run, delta("a"))
        ends = [scene.runs.commit, scene.runs.cancel, scene.runs.fail]
        asked = [end(THREAD, run.run_id) for end in ends[turn % 3 :] + ends[: turn % 3]]
        outcomes = await asyncio.gather(*asked, return_exceptions=True)
        winners = [each for each in outcomes if isinstance(each, Run)]
        assert [type(each) for each in outcomes].count(InvalidTransition) == 2
        assert [await scene.runs.run(THREAD, run.run_id)] == winners


@requirement("planes:runs:append-or-refused")
async def test_an_append_that_races_a_commit_is_in_the_transcript_or_refused(scene: Scene) -> None:
    run = await scene.begin()
    await scene.tell(run, delta("0"))
    tells = [scene.tell(run, delta(f" {number}")) for number in range(1, MANY)]
    half = len(tells) // 2
    outcomes = await asyncio.gather(
        *tells[:half], scene.runs.commit(THREAD, run.run_id), *tells[half:], return_exceptions=True
    )
    refused = sum(isinstance(each, InvalidTransition) for each in outcomes)
    [text] = await scene.path()
    assert len(text.split()) == MANY - refused


@requirement("planes:runs:own-thread")
async def test_runs_of_another_thread_and_unknown_ones_are_not_found(scene: Scene) -> None:
    run = await scene.begin()
    await scene.begin(thread="t2")
    with pytest.raises(RunNotFound):
        await scene.runs.commit("t2", run.run_id)
    with pytest.raises(RunNotFound):
        await scene.runs.run(THREAD, "run-of-nobody")
    with pytest.raises(ThreadNotFound):
        await scene.runs.runs("t3")


@pytest.mark.parametrize("thread", ["", "x" * 257])
async def test_ids_have_1_to_256_characters(scene: Scene, thread: str) -> None:
    with pytest.raises(InvalidPayload):
        await scene.begin(thread=thread)
    with pytest.raises(InvalidPayload):
        await scene.begin(thread)


@requirement("planes:http:lists")
async def test_runs_are_listed_newest_first_and_page_by_page(scene: Scene) -> None:
    begun = [(await scene.begin()).run_id for _ in range(5)]
    first = await scene.runs.runs(THREAD, limit=2)
    rest = await scene.runs.runs(THREAD, before=first[-1].run_id)
    assert [run.run_id for run in (*first, *rest)] == begun[::-1]
    assert await scene.runs.runs(THREAD, limit=0) == ()


@requirement("planes:runs:stale")
async def test_a_run_is_stale_by_its_last_activity_and_not_by_its_age(scene: Scene) -> None:
    old, older = await scene.begin(), await scene.begin()
    scene.clock.advance(10_000)
    await scene.tell(older, delta("still here"))
    scene.clock.advance(1_000)
    assert [run.run_id for run in await scene.runs.open_runs(inactive_ms=5_000)] == [old.run_id]


@requirement("planes:runs:recovery")
async def test_recovery_commits_what_is_there_and_answers_open_calls_with_an_error(scene: Scene) -> None:
    run = await scene.begin()
    await scene.tell(run, user("q"), call("c1", "grep"), call("c2"), result("c2"), call("c3"))
    recovered = await scene.runs.recover(THREAD, run.run_id, "commit")
    assert (recovered.status, recovered.message_count) == ("committed", 6)
    messages = (await scene.transcript.messages(THREAD)).messages
    assert [message.parts for message in messages[4:]] == [
        (ToolResultPart("c1", "grep", NEVER_ANSWERED, True),),
        (ToolResultPart("c3", "search", NEVER_ANSWERED, True),),
    ]
    again = await scene.reconcile.reconcile()
    assert again.disagreements == (), "the log has it, too"


@requirement("planes:runs:recovery")
@pytest.mark.parametrize(("action", "status"), [("fail", "failed"), ("cancel", "cancelled"), ("commit", "committed")])
async def test_recovery_ends_a_run_as_it_is_told(scene: Scene, action: str, status: RunStatus) -> None:
    run = await scene.begin()
    await scene.tell(run, delta("half"))
    recovered = await scene.runs.recover(THREAD, run.run_id, action)  # type: ignore[arg-type]
    assert recovered.status == status
    assert await scene.path() == (["half"] if action == "commit" else [])


@requirement("planes:secrets:commit-decides")
async def test_ending_a_run_shows_the_text_that_was_held_back(scene: Scene) -> None:
    for end in (scene.runs.commit, scene.runs.fail, scene.runs.cancel):
        run = await scene.begin()
        await scene.tell(run, delta("abcd"))

        def hold(tables: Tables, stream: str = run.stream_id) -> None:
            row = tables.stream(stream)
            assert row is not None
            tables.put_stream(row._replace(held_from=1, held_ms=0))

        await scene.store.write(hold)
        await end(THREAD, run.run_id)
        row = await scene.store.read(lambda tables: tables.stream(run.stream_id))  # noqa: B023 (called at once)
        assert row is not None
        assert row.held_from is None


async def test_a_long_run_is_projected_in_steps_before_its_commit(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs_module, "COMMITTED_EVENTS", 10)
    run = await scene.begin()
    await scene.tell(run, *(delta(f"{number} ") for number in range(95)))
    assert (await scene.commit(run)).message_count == 1
    [text] = await scene.path()
    assert text.split() == [str(number) for number in range(95)]
    [row] = await scene.store.read(lambda tables: tables.snapshots(run.stream_id))
    assert row.last_seq >= 85
    assert state_in(row, head=95) is not None


@requirement("planes:branches:switch")
async def test_a_commit_moves_the_active_leaf_only_where_its_fork_point_is_on_the_active_path(scene: Scene) -> None:
    [one, two] = await scene.said("one", "two")
    await scene.said("other", fork_from=one)
    assert await scene.path() == ["one", "other"]
    await scene.said("three", fork_from=two)
    assert await scene.path() == ["one", "other"]
    await scene.transcript.set_active(THREAD, two)
    assert await scene.path() == ["one", "two", "three"]
    await scene.said("four")
    assert await scene.path() == ["one", "two", "three", "four"]


async def test_a_run_without_messages_moves_nothing(scene: Scene) -> None:
    await scene.said("one")
    run = await scene.committed(started(), finished())
    assert (run.status, run.message_count) == ("committed", 0)
    assert await scene.path() == ["one"]


@requirement("planes:runs:fork-point", "planes:branches:missing-parent")
async def test_a_fork_point_that_is_not_there_yet_starts_a_chain_that_is_attached_later(scene: Scene) -> None:
    coming = await scene.begin(None)
    await scene.tell(coming, delta("parent"))
    parent = message_id(coming.stream_id, 1)
    await scene.said("early", fork_from=parent)
    assert await scene.path() == ["early"]
    await scene.commit(coming)
    assert await scene.path() == ["parent", "early"]
    assert (await scene.reconcile.reconcile()).disagreements == ()


class Stopped(Exception):
    """The process ends here."""


class StoppingTables:
    """Every write up to the last one is done; then the process ends."""

    def __init__(self, tables: Tables, writes: int) -> None:
        self._tables = tables
        self.left = writes

    def __getattr__(self, name: str) -> object:
        found = getattr(self._tables, name)
        if not name.startswith(("put_", "restand", "drop_", "delete_", "replace_")):
            return found
        if not self.left:
            raise Stopped
        self.left -= 1
        return found


@requirement("planes:runs:crash")
async def test_a_commit_that_stops_at_any_step_leaves_nothing_and_can_be_done_again(scene: Scene) -> None:
    [question] = await scene.said("question")
    await scene.said("first", fork_from=question)
    run = await scene.begin(question)
    await scene.tell(run, delta("second"), call("c1"), result("c1"))
    before = await everything(scene)
    for writes in range(100):
        try:
            await scene.store.write(partial(commit_and_stop, run.run_id, writes))
            break
        except Stopped:
            assert await everything(scene) == before
    assert writes >= 8
    assert (await scene.path())[:2] == ["question", "second"]
    assert (await scene.reconcile.reconcile()).disagreements == ()


def commit_and_stop(run_id: str, writes: int, tables: Tables) -> None:
    commit_run(cast(Tables, StoppingTables(tables, writes)), THREAD, run_id, 1)


async def everything(scene: Scene) -> object:
    tree = await scene.transcript.tree(THREAD)
    return tree, await scene.runs.runs(THREAD), await scene.transcript.messages(THREAD, branch="all")


class Model:
    """The same by the words of the contract, without any index: messages by id, and who stands."""

    def __init__(self) -> None:
        self.messages: dict[str, MessageRow] = {}

    def update(self, rows: list[MessageRow]) -> None:
        self.messages = {row.id: row for row in rows}

    def default_path(self) -> list[str]:
        path: list[str] = []
        while children := [row for row in self.messages.values() if row.parent == (path[-1] if path else None)]:
            standing = [row for row in children if row.stands] or children
            path.append(max(standing, key=lambda row: row.place).id)
        return path


steps = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 3), st.sampled_from(["commit", "fail"])), max_size=15)


@requirement("planes:branches:active")
@pytest.mark.parametrize("backend", BACKENDS)
@given(steps)
def test_as_long_as_nobody_switches_the_active_path_is_the_one_of_the_default_rule(
    backend: str, steps: list[tuple[int, int, str]]
) -> None:
    async def play(scene: Scene) -> None:
        model = Model()
        for where, count, end in steps:
            known = [None, *model.messages]
            run = await scene.begin(UNSET if where == 0 else known[where % len(known)])
            await scene.tell(run, *(each for number in range(count) for each in (delta(str(number)), finished())))
            await (scene.runs.commit if end == "commit" else scene.runs.fail)(THREAD, run.run_id)
            model.update(await scene.store.read(lambda tables: tables.messages(THREAD, after_place=0, limit=1_000)))
            found = (await scene.transcript.messages(THREAD)).messages
            assert [message.id for message in found] == model.default_path()
        assert (await scene.reconcile.reconcile()).disagreements == ()

    asyncio.run(in_scene(backend, play))


EndRun = Callable[[Runs, str], Awaitable[Run]]
ENDS: dict[str, EndRun] = {
    "commit": lambda runs, run_id: runs.commit(THREAD, run_id),
    "fail": lambda runs, run_id: runs.fail(THREAD, run_id),
    "cancel": lambda runs, run_id: runs.cancel(THREAD, run_id),
    "recover": lambda runs, run_id: runs.recover(THREAD, run_id, "commit"),
}


@requirement("planes:runs:one-transcript")
@pytest.mark.parametrize("backend", BACKENDS)
@given(st.lists(st.sampled_from([*ENDS, "tell"]), min_size=2, max_size=8))
def test_whatever_races_a_run_ends_once_and_its_transcript_is_what_was_told(backend: str, asked: list[str]) -> None:
    async def play(scene: Scene) -> None:
        others = Runs(scene.elsewhere, scene.clock, SeededIds(2))
        run = await scene.begin()
        await scene.tell(run, delta("x"))
        works = [
            scene.tell(run, delta("x")) if each == "tell" else ENDS[each](others if at % 2 else scene.runs, run.run_id)
            for at, each in enumerate(asked)
        ]
        outcomes = await asyncio.gather(*works, return_exceptions=True)
        assert all(isinstance(each, Run | InvalidTransition | None) for each in outcomes), outcomes
        ended = {each.status for each in outcomes if isinstance(each, Run)}
        assert len(ended) == (0 if set(asked) == {"tell"} else 1)
        told = 1 + sum(each is None for each in outcomes)
        assert await scene.path() == (["x" * told] if ended == {"committed"} else [])

    asyncio.run(in_scene(backend, play))
