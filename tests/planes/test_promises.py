"""What the contract says of runs and of sockets, and no other test asks about: whole tables, costs, and rare ends."""

from collections.abc import Awaitable, Callable
from itertools import count
from typing import Final, cast

import pytest

from fieldstone.core.errors import Forbidden, InvalidTransition
from fieldstone.core.transcripts import Run, RunStatus
from fieldstone.planes.delivery import PAGE_EVENTS
from fieldstone.planes.pages import RowPage, rows_after
from fieldstone.planes.snapshots import replayed, take_snapshot
from fieldstone.planes.streams import Streams
from fieldstone.planes.tree import leaf_through
from fieldstone.ports.planes import EventBlock, EventRow, MessageRow, ReadTables, Tables
from fieldstone.servers.http.stream_socket import StreamSocket, Times
from tests.planes.events import delta
from tests.planes.scene import THREAD, Scene
from tests.planes.test_tree import get, in_tables, put
from tests.planes.transport import STREAM, streams_of
from tests.requirements import requirement
from tests.servers.test_stream_socket import wired

BROKEN: Final = "broken"
TAIL: Final = 5  # events since the snapshot, or since somebody left


# What becomes of a run in each state; what is not here is refused.
STEPS: Final[dict[tuple[RunStatus, str], RunStatus]] = {
    ("created", "append"): "streaming",
    ("created", "fail"): "failed",
    ("created", "cancel"): "cancelled",
    ("streaming", "append"): "streaming",
    ("streaming", "commit"): "committed",
    ("streaming", "fail"): "failed",
    ("streaming", "cancel"): "cancelled",
    ("committed", "commit"): "committed",
    ("failed", "fail"): "failed",
    ("cancelled", "cancel"): "cancelled",
    ("superseded", "commit"): "superseded",
}
STATES: Final[tuple[RunStatus, ...]] = ("created", "streaming", "committed", "failed", "cancelled", "superseded")
CALLS: Final = ("append", "commit", "fail", "cancel")


async def run_in(scene: Scene, status: RunStatus) -> Run:
    run = await scene.begin(None)
    if status != "created":
        await scene.tell(run, delta("a"))
    if status in ("committed", "superseded"):
        await scene.commit(run)
    if status == "failed":
        await scene.runs.fail(THREAD, run.run_id)
    if status == "cancelled":
        await scene.runs.cancel(THREAD, run.run_id)
    if status == "superseded":
        await scene.committed(delta("b"), fork_from=None)
    found = await scene.runs.run(THREAD, run.run_id)
    assert found.status == status
    return found


@requirement("planes:runs:states", "planes:runs:final")
@pytest.mark.parametrize("status", STATES)
@pytest.mark.parametrize("call", CALLS)
async def test_each_call_does_to_a_run_in_each_state_what_the_table_says(
    scene: Scene, status: RunStatus, call: str
) -> None:
    run = await run_in(scene, status)
    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "append": lambda: scene.tell(run, delta("more")),
        "commit": lambda: scene.runs.commit(THREAD, run.run_id),
        "fail": lambda: scene.runs.fail(THREAD, run.run_id),
        "cancel": lambda: scene.runs.cancel(THREAD, run.run_id),
    }
    wanted = STEPS.get((status, call))
    if wanted is None:
        with pytest.raises(InvalidTransition):
            await calls[call]()
    else:
        await calls[call]()
    assert (await scene.runs.run(THREAD, run.run_id)).status == (wanted or status)


@requirement("planes:messages:immutable")
async def test_whatever_comes_after_it_a_message_stays_as_it_was(scene: Scene) -> None:
    [question] = await scene.said("question")
    before = (await scene.transcript.messages(THREAD)).messages
    await scene.said("first", fork_from=question)
    await scene.said("second", fork_from=question)
    await scene.said("anew", fork_from=None)
    await scene.transcript.set_active(THREAD, question)
    open_run = await scene.begin(question)
    await scene.tell(open_run, delta("half"))
    await scene.runs.recover(THREAD, open_run.run_id, "commit")
    await scene.reconcile.reconcile(dry_run=False)
    everything = (await scene.transcript.messages(THREAD, branch="all")).messages
    assert everything[: len(before)] == before


class Counted:
    """Tables that count the events and the messages read."""

    def __init__(self, tables: ReadTables) -> None:
        self._tables = tables
        self.reads = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._tables, name)

    def events(self, stream: str, *, after: int, limit: int, until: int | None = None) -> list[EventRow]:
        found = self._tables.events(stream, after=after, limit=limit, until=until)
        self.reads += len(found)
        return found

    def event_blocks(self, stream: str, *, after: int, limit: int, until: int | None = None) -> list[EventBlock]:
        found = self._tables.event_blocks(stream, after=after, limit=limit, until=until)
        self.reads += sum(len(block.seqs) for block in found)
        return found

    def message(self, thread: str, message_id: str) -> MessageRow | None:
        self.reads += 1
        return self._tables.message(thread, message_id)

    def children(self, thread: str, parent: str | None, *, limit: int | None = None) -> list[MessageRow]:
        found = self._tables.children(thread, parent, limit=limit)
        self.reads += len(found)
        return found


@requirement("planes:branches:cost")
def test_a_switch_costs_the_branch_however_deep_the_fork_and_however_many_branches_are_dead() -> None:
    costs: list[int] = []
    for depth, dead in ((10, 10), (1_000, 300)):

        def work(tables: Tables, depth: int = depth, dead: int = dead) -> None:
            fork: str | None = None
            places = count(1)
            for at in range(depth):
                fork = put(tables, f"trunk {at}", fork, place=next(places)).id
            for at in range(dead):
                put(tables, f"dead {at}", fork, place=next(places), stands=False)
            end = fork
            for at in range(TAIL):
                end = put(tables, f"branch {at}", end, place=next(places)).id
            counted = Counted(tables)
            assert leaf_through(cast(Tables, counted), THREAD, get(tables, "branch 0")).id == end
            assert leaf_through(cast(Tables, counted), THREAD, get(tables, fork or "")).id == end
            costs.append(counted.reads)

        in_tables(work)
    assert costs[0] == costs[1] <= 4 * (TAIL + 1)


@requirement("planes:compaction:warm-start", "planes:delivery:missed-only")
@pytest.mark.parametrize("history", [10, 3_000])
async def test_a_warm_start_and_a_reconnect_read_what_is_new_however_long_the_history(
    scene: Scene, history: int
) -> None:
    streams = streams_of(scene)
    await streams.append(STREAM, [delta("a ")] * history)
    await scene.store.write(lambda tables: take_snapshot(tables, STREAM, now_ms=scene.clock.now_ms()))
    await streams.append(STREAM, [delta("b ")] * TAIL)

    def warm_start(tables: ReadTables) -> int:
        counted = Counted(tables)
        assert replayed(cast(ReadTables, counted), STREAM).last_seq == history + TAIL
        return counted.reads

    def reconnect(tables: ReadTables) -> int:
        counted = Counted(tables)
        page = rows_after(STREAM, history, PAGE_EVENTS, scene.clock.now_ms(), cast(ReadTables, counted))
        assert [row.seq for row in page.rows] == list(range(history + 1, history + TAIL + 1))
        return counted.reads

    assert await scene.store.read(warm_start) == TAIL
    assert await scene.store.read(reconnect) == TAIL


@requirement("planes:socket:ping-times")
def test_a_ping_is_sent_every_30_s_and_a_pong_is_waited_for_10_s() -> None:
    times = Times()
    assert (times.ping_s, times.pong_s) == (30, 10)


@requirement("planes:socket:replay-failed")
async def test_a_replay_that_fails_is_told_by_its_stream_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Streams.rows

    async def broken_rows(streams: Streams, stream: str, *, after: int, limit: int) -> RowPage:
        if stream == BROKEN:
            raise ZeroDivisionError("in the depths of the store")
        return await rows(streams, stream, after=after, limit=limit)

    monkeypatch.setattr(Streams, "rows", broken_rows)
    async with wired() as (wire, streams):
        await streams.append("sound", [delta("a ")])
        for stream in (BROKEN, "sound"):
            wire.say(type="subscribe", streamId=stream)
        frames = [await wire.hear() for _ in range(3)]
        [failed] = [frame for frame in frames if frame["streamId"] == BROKEN]
        assert (failed["type"], failed["code"]) == ("error", "REPLAY_FAILED")
        assert "depths" not in failed["message"]
        assert [frame["type"] for frame in frames if frame is not failed] == ["event", "replay-end"]


@requirement("planes:socket:overflow")
async def test_who_stalls_in_a_replay_and_then_listens_again_is_told_why_it_was_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cut_off = StreamSocket._overflow
    async with wired(Times(send_s=0.05, look_s=0.01)) as (wire, streams):

        def listen_again(socket: StreamSocket, stream: str) -> None:
            cut_off(socket, stream)
            wire.takes.set()

        monkeypatch.setattr(StreamSocket, "_overflow", listen_again)
        await streams.append("s", [delta("a ")] * 100)
        wire.takes.clear()
        wire.say(type="subscribe", streamId="s")
        frames = [await wire.hear()]
        while "close" not in frames[-1]:
            frames.append(await wire.hear())
        assert (frames[-2]["code"], frames[-1]) == ("BUFFER_OVERFLOW", {"close": 1008})


@requirement("planes:socket:unknown-stream")
async def test_a_stream_that_one_may_not_see_is_told_as_unknown_and_the_socket_stays_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def hidden(*_: object, **__: object) -> RowPage:
        raise Forbidden("This stream is not for you.")

    async with wired() as (wire, _):
        with monkeypatch.context() as patched:
            patched.setattr(Streams, "rows", hidden)
            wire.say(type="subscribe", streamId="hidden")
            frame = await wire.hear()
        assert (frame["type"], frame["code"], frame["streamId"]) == ("error", "UNKNOWN_STREAM", "hidden")
        wire.say(type="subscribe", streamId="open")
        assert await wire.hear() == {"type": "replay-end", "streamId": "open", "lastReplaySeq": 0}
