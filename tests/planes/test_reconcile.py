"""Whatever log and transcript disagree about is found, said in a dry run, and brought together by the seed's policy."""

import asyncio
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fieldstone.core.errors import ThreadNotFound
from fieldstone.core.transcripts import TextPart, decode_message, encode_message
from fieldstone.planes.deletion import mark_deleted
from fieldstone.planes.messages import encode_state
from fieldstone.planes.reconcile import STALE_MS, Disagreement
from fieldstone.planes.snapshots import replayed, take_snapshot
from fieldstone.ports.planes import MessageRow, ReadTables, RunRow, StreamRow, Tables, ThreadRow
from tests.planes.events import call, delta, finished, user
from tests.planes.scene import BACKENDS, THREAD, Scene, in_scene
from tests.requirements import requirement

Spoil = Callable[[Tables], None]


async def told(scene: Scene) -> None:
    """q ─ a ─ more ─ b, and a second answer to q."""
    await scene.committed(user("q"))
    await scene.committed(delta("a"), finished(), delta("more"))
    await scene.said("b")
    first = (await scene.transcript.tree(THREAD)).nodes[0].id
    run = await scene.begin(first)
    await scene.tell(run, delta("half"))


def run_at(tables: ReadTables, place: int) -> RunRow:
    [run] = [run for run in tables.runs(THREAD, limit=99) if run.place == place]
    return run


def message_at(tables: ReadTables, place: int) -> MessageRow:
    [row] = tables.messages(THREAD, after_place=place - 1, limit=1)
    return row


def thread(tables: ReadTables) -> ThreadRow:
    row = tables.thread(THREAD)
    assert row is not None
    return row


def stream_of(tables: ReadTables, place: int) -> StreamRow:
    row = tables.stream(run_at(tables, place).stream)
    assert row is not None
    return row


def respell(tables: Tables) -> None:
    """The message at place 2 says something else than the log."""
    body = tables.bodies(THREAD, [2])[2]
    tables.put_bodies(THREAD, {2: encode_message(replace(decode_message(body), parts=(TextPart("forged"),)))})


def lose(tables: Tables) -> None:
    """The two oldest messages are gone."""
    assert tables.drop_thread(THREAD, limit=2) == 2


def add(tables: Tables) -> None:
    """A message that nobody told."""
    run, row = run_at(tables, 3), message_at(tables, 4)
    tables.put_thread(thread(tables)._replace(messages=5))
    tables.put_messages(THREAD, [row._replace(id="extra", run=run.id, place=5, role="user")])
    tables.put_bodies(THREAD, {5: tables.bodies(THREAD, [4])[4]})


def spoil_snapshot(tables: Tables) -> None:
    row = take_snapshot(tables, run_at(tables, 2).stream, now_ms=0)
    assert row is not None
    tables.put_snapshot(row._replace(checksum=b"bad"))


def other_snapshot(tables: Tables) -> None:
    """It is whole, but it says something else than the log does now."""
    run = run_at(tables, 2)
    take_snapshot(tables, run.stream, now_ms=0)
    [row] = tables.events(run.stream, after=0, limit=1)
    tables.replace_events(run.stream, [row._replace(body=row.body.replace(b'"a"', b'"A"'))])
    message = message_at(tables, 2)
    body = tables.bodies(THREAD, [2])[2].replace(b'"a"', b'"A"')
    tables.put_bodies(THREAD, {message.place: body})


GONE = "messages that are gone"

SPOILED: dict[str, tuple[Spoil, set[str]]] = {
    "a run with events that counts as created": (
        lambda tables: tables.put_run(run_at(tables, 4)._replace(status="created")),
        {"run-status"},
    ),
    "two committed runs with one fork point": (
        lambda tables: tables.put_run(
            run_at(tables, 4)._replace(status="committed", finished_ms=1, fork_from=run_at(tables, 2).fork_from)
        ),
        {"superseded-run", "message-missing", "message-count"},
    ),
    "a message that says something else": (respell, {"message-differs"}),
    "a message of another role": (
        lambda tables: tables.put_messages(THREAD, [message_at(tables, 2)._replace(role="user")]),
        {"message-differs"},
    ),
    GONE: (lose, {"message-missing"}),
    "a message that nobody told": (add, {"message-extra"}),
    "a wrong count of messages": (
        lambda tables: tables.put_run(run_at(tables, 2)._replace(messages=7)),
        {"message-count"},
    ),
    "messages of a committed run that do not stand": (
        lambda tables: tables.restand(run_at(tables, 2).id, False),
        {"message-standing"},
    ),
    "a message in the wrong place": (
        lambda tables: tables.put_messages(THREAD, [message_at(tables, 3)._replace(depth=1, jump=None)]),
        {"message-place"},
    ),
    "a wrong jump": (
        lambda tables: tables.put_messages(THREAD, [message_at(tables, 4)._replace(jump=None)]),
        {"message-place"},
    ),
    "a bad snapshot": (spoil_snapshot, {"snapshot"}),
    "a snapshot of another log": (other_snapshot, {"snapshot"}),
    "text that is still held back": (
        lambda tables: tables.put_stream(stream_of(tables, 2)._replace(held_from=1, held_ms=0)),
        {"held-text"},
    ),
    "an active leaf that is none": (
        lambda tables: tables.put_thread(thread(tables)._replace(leaf=message_at(tables, 1).id)),
        {"active-leaf"},
    ),
    "an active leaf that is gone": (
        lambda tables: tables.put_thread(thread(tables)._replace(leaf="gone")),
        {"active-leaf"},
    ),
    "a thread that counted too little": (
        lambda tables: tables.put_thread(thread(tables)._replace(messages=2, runs=1)),
        {"thread-count"},
    ),
}


@requirement("planes:reconcile:dry-run")
async def test_what_agrees_is_left_alone(scene: Scene) -> None:
    await told(scene)
    before = await everything(scene)
    for dry_run in (True, False):
        reconciliation = await scene.reconcile.reconcile(dry_run=dry_run)
        assert reconciliation.disagreements == ()
        assert (reconciliation.threads, reconciliation.runs) == (1, 4)
    assert await everything(scene) == before


@requirement("planes:reconcile:dry-run")
@pytest.mark.parametrize("name", SPOILED)
async def test_a_disagreement_is_found_said_in_a_dry_run_and_brought_together(scene: Scene, name: str) -> None:
    spoil, kinds = SPOILED[name]
    await told(scene)
    await scene.store.write(spoil)
    before = await everything(scene)
    rehearsed = await scene.reconcile.reconcile()
    assert {each.kind for each in rehearsed.disagreements} == kinds
    assert await everything(scene) == before, "a dry run changes nothing"
    done = await scene.reconcile.reconcile(dry_run=False)
    assert done.disagreements == rehearsed.disagreements, "what it said is what it does"
    assert (await scene.reconcile.reconcile()).disagreements == ()
    if "active-leaf" not in kinds and "superseded-run" not in kinds:
        assert len(await scene.path()) == 4


@requirement("planes:reconcile:log-order")
async def test_a_message_that_differs_is_written_as_the_log_tells_it(scene: Scene) -> None:
    await told(scene)
    await scene.store.write(respell)
    assert await scene.path() == ["q", "forged", "more", "b"]
    await scene.reconcile.reconcile(dry_run=False)
    assert await scene.path() == ["q", "a", "more", "b"]


@requirement("planes:reconcile:log-order")
async def test_missing_messages_are_projected_from_the_log_again(scene: Scene) -> None:
    await told(scene)
    await scene.store.write(lose)
    done = await scene.reconcile.reconcile(dry_run=False)
    assert [each.kind for each in done.disagreements].count("message-missing") == 2
    assert await scene.path() == ["q", "a", "more", "b"]
    assert (await scene.reconcile.reconcile()).disagreements == ()


@requirement("planes:reconcile:identity")
async def test_the_transcript_is_the_authority_on_parents(scene: Scene) -> None:
    await told(scene)
    [elsewhere] = await scene.said("elsewhere", fork_from=None)
    body = await scene.store.read(lambda tables: tables.bodies(THREAD, [2])[2])

    def move(tables: Tables) -> None:
        tables.put_messages(THREAD, [message_at(tables, 2)._replace(parent=elsewhere)])
        tables.put_bodies(THREAD, {2: encode_message(replace(decode_message(body), parent_message_id=elsewhere))})

    await scene.store.write(move)
    await scene.reconcile.reconcile(dry_run=False)
    row = await scene.store.read(lambda tables: message_at(tables, 2))
    assert row.parent == elsewhere
    assert (await scene.reconcile.reconcile()).disagreements == ()


@requirement("planes:reconcile:below-floor")
async def test_below_the_floor_the_transcript_wins_and_above_it_the_log(scene: Scene) -> None:
    run = await scene.committed(delta("a"), finished(), delta("b"), finished(), delta("c"))

    def truncate(tables: Tables) -> None:
        take_snapshot(tables, run.stream_id, now_ms=0, until=2)
        row = tables.stream(run.stream_id)
        assert row is not None
        tables.put_stream(row._replace(floor=2))
        for place, said in ((1, b"transcript 1"), (2, b"transcript 2")):
            body = tables.bodies(THREAD, [place])[place]
            text = b"ab"[place - 1 : place]
            tables.put_bodies(THREAD, {place: body.replace(b'"text":"' + text, b'"text":"' + said)})

    await scene.store.write(truncate)
    assert await scene.path() == ["transcript 1", "transcript 2", "c"]
    done = await scene.reconcile.reconcile(dry_run=False)
    assert [each.kind for each in done.disagreements] == ["message-differs"]
    assert await scene.path() == ["transcript 1", "b", "c"]


@requirement("planes:reconcile:below-floor")
async def test_a_stream_that_was_deleted_says_nothing_against_the_transcript(scene: Scene) -> None:
    run = await scene.committed(delta("a"))
    await scene.store.write(lambda tables: tables.put_stream(StreamRow(run.stream_id, head=1, floor=1)))
    assert (await scene.reconcile.reconcile()).disagreements == ()


@requirement("planes:reconcile:uncommitted")
async def test_a_run_that_was_never_committed_is_ignored_until_recovery_is_asked_for(scene: Scene) -> None:
    await told(scene)
    scene.clock.advance(STALE_MS)
    found = await scene.reconcile.reconcile(dry_run=False)
    [stale] = found.disagreements
    assert (stale.kind, stale.action) == ("stale-run", "none until recovery is asked for")
    assert await scene.path() == ["q", "a", "more", "b"]
    done = await scene.reconcile.reconcile(dry_run=False, recover="commit")
    assert [each.action for each in done.disagreements] == ["commit what is there"]
    assert await scene.path() == ["q", "half"]
    assert (await scene.reconcile.reconcile()).disagreements == ()


@requirement("planes:reconcile:uncommitted")
@pytest.mark.parametrize(("recover", "status"), [("fail", "failed"), ("cancel", "cancelled"), ("commit", "created")])
async def test_a_stale_run_that_told_nothing_is_ended_but_never_committed(
    scene: Scene, recover: str, status: str
) -> None:
    run = await scene.begin()
    scene.clock.advance(STALE_MS)
    await scene.reconcile.reconcile(dry_run=False, recover=recover)  # type: ignore[arg-type]
    assert (await scene.runs.run(THREAD, run.run_id)).status == status


@requirement("planes:reconcile:uncommitted")
async def test_a_dry_run_of_a_recovery_ends_no_run(scene: Scene) -> None:
    run = await scene.begin()
    await scene.tell(run, call("c1"))
    scene.clock.advance(STALE_MS)
    rehearsed = await scene.reconcile.reconcile(recover="commit")
    assert [each.action for each in rehearsed.disagreements] == ["commit what is there"]
    assert (await scene.runs.run(THREAD, run.run_id)).status == "streaming"


@requirement("planes:reconcile:dry-run")
async def test_a_deletion_that_was_cut_short_is_finished(scene: Scene) -> None:
    await told(scene)
    await scene.said("other", thread="t2")
    await scene.store.write(lambda tables: mark_deleted(tables, THREAD, 1))
    for dry_run in (True, False):
        found = await scene.reconcile.reconcile(dry_run=dry_run)
        assert [each.kind for each in found.disagreements] == ["deletion"]
    assert (await scene.reconcile.reconcile()).disagreements == ()
    assert await scene.store.read(lambda tables: tables.messages(THREAD, after_place=0, limit=1)) == []
    assert await scene.path("t2") == ["other"]


@requirement("planes:reconcile:dry-run")
async def test_one_thread_can_be_reconciled_by_itself(scene: Scene) -> None:
    await told(scene)
    await scene.said("other", thread="t2")
    await scene.store.write(respell)
    assert (await scene.reconcile.reconcile(thread="t2")).disagreements == ()
    found = (await scene.reconcile.reconcile(thread=THREAD)).disagreements
    assert [(each.kind, each.thread_id) for each in found] == [("message-differs", THREAD)]
    with pytest.raises(ThreadNotFound):
        await scene.reconcile.reconcile(thread="t9")


@requirement("planes:reconcile:dry-run")
async def test_a_disagreement_says_what_it_found_and_where(scene: Scene) -> None:
    await told(scene)
    await scene.store.write(respell)
    [found] = (await scene.reconcile.reconcile()).disagreements
    run_id, message = await scene.store.read(lambda tables: (run_at(tables, 2).id, message_at(tables, 2).id))
    assert found == Disagreement(
        "message-differs",
        THREAD,
        "The log tells the message otherwise than the transcript.",
        "write it as the log tells it",
        run_id,
        message,
    )


@requirement("planes:reconcile:dry-run")
@pytest.mark.parametrize("backend", BACKENDS)
@given(st.lists(st.sampled_from(sorted(SPOILED)), unique=True, min_size=2, max_size=4))
def test_several_disagreements_at_once_are_all_brought_together(backend: str, names: list[str]) -> None:
    async def play(scene: Scene) -> None:
        await told(scene)
        for name in sorted(names, key=GONE.__eq__):  # the others name messages by their places
            await scene.store.write(partial(spoil, name))
        rehearsed = await scene.reconcile.reconcile()
        done = await scene.reconcile.reconcile(dry_run=False)
        assert done.disagreements == rehearsed.disagreements
        assert (await scene.reconcile.reconcile()).disagreements == ()
        for run in await scene.runs.runs(THREAD):
            state = await scene.store.read(partial(projected, run.stream_id))
            assert state

    asyncio.run(in_scene(backend, play))


def spoil(name: str, tables: Tables) -> None:
    SPOILED[name][0](tables)


def projected(stream: str, tables: ReadTables) -> bytes:
    return encode_state(replayed(tables, stream).state)


async def everything(scene: Scene) -> object:
    def read(tables: ReadTables) -> object:
        rows = tables.messages(THREAD, after_place=0, limit=99)
        runs = tables.runs(THREAD, limit=99)
        streams = [(tables.stream(run.stream), tables.snapshots(run.stream)) for run in runs]
        return thread(tables), rows, tables.bodies(THREAD, [row.place for row in rows]), runs, streams

    return await scene.store.read(read)
