"""Compaction of streams: a verified snapshot first, then chunked deletion, never past what somebody still needs."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json

from fieldstone.core.errors import FieldError, InternalError, InvalidPayload, StreamCompacted
from fieldstone.core.streams import StreamEvent
from fieldstone.planes import compaction
from fieldstone.planes.compaction import Held, SnapshotSeq, StreamCompaction
from fieldstone.planes.messages import encode_state
from fieldstone.planes.retention import DAY_MS, StreamRetention, apply_retention
from fieldstone.planes.snapshots import replayed
from fieldstone.planes.streams import SnapshotMark, Streams
from fieldstone.ports.planes import PlaneStore, ReadTables, SnapshotRow, Tables
from tests.planes.events import delta, finished, logs, started
from tests.planes.scene import BACKENDS, Scene, in_scene, tell
from tests.planes.transport import KNOWN, STREAM, cleaning, streams_of
from tests.requirements import requirement

T = TypeVar("T")
STEP = [started(), delta("Hello "), delta("you"), finished()]


@requirement("planes:rules:verified-first")
async def test_a_snapshot_stands_for_the_events_that_go(scene: Scene) -> None:
    streams = streams_of(scene)
    await streams.append(STREAM, STEP)
    assert await streams.compact(STREAM) == StreamCompaction(SnapshotSeq(4), 4, [])
    info = await streams.info(STREAM)
    assert (info.head, info.floor) == (4, 4)
    assert info.snapshot == SnapshotMark(4, "2025-06-15T15:06:40.000Z")
    snapshot = await streams.snapshot(STREAM)
    assert snapshot is not None
    state = json.decode(snapshot.state)
    assert (snapshot.stream_id, snapshot.last_seq) == (STREAM, 4)
    assert [part["text"] for part in state["messages"][0]["parts"]] == ["Hello you"]
    await streams.settled()
    assert await _rows(scene) == 0


@requirement("planes:rules:head-apart", "planes:rules:never-a-hole")
async def test_a_reader_below_the_floor_is_told_and_never_sees_a_hole(scene: Scene) -> None:
    streams = streams_of(scene)
    await streams.append(STREAM, STEP)
    await streams.compact(STREAM)
    await streams.append(STREAM, [delta("more")])
    for after in range(4):
        with pytest.raises(StreamCompacted) as told:
            await streams.read(STREAM, after=after)
        assert told.value.extra == {"floor": 4}
    assert [each.seq for each in (await streams.read(STREAM, after=4)).events] == [5]
    await streams.settled()


@requirement("planes:rules:snapshot-equals-replay")
@given(events=logs, cut=st.integers(0, 30), backend=st.sampled_from(BACKENDS))
def test_snapshot_and_tail_are_the_full_replay_byte_for_byte(events: list[StreamEvent], cut: int, backend: str) -> None:
    async def play(scene: Scene) -> None:
        streams = streams_of(scene)
        now_ms = scene.clock.now_ms()
        await scene.store.write(lambda tables: tell(tables, "whole", events, now_ms))
        await scene.store.write(lambda tables: tell(tables, "cut", events[:cut], now_ms))
        await streams.compact("cut")
        await scene.store.write(lambda tables: tell(tables, "cut", events[cut:], now_ms))
        whole, compacted = await scene.store.read(lambda tables: (_state(tables, "whole"), _state(tables, "cut")))
        assert compacted == whole
        await streams.settled()

    asyncio.run(in_scene(backend, play))


@requirement("planes:compaction:dry-run")
async def test_a_dry_run_says_what_would_go_and_touches_nothing(scene: Scene) -> None:
    streams = streams_of(scene)
    await streams.append(STREAM, STEP)
    assert await streams.compact(STREAM, dry_run=True) == StreamCompaction(SnapshotSeq(4), 4, [])
    info = await streams.info(STREAM)
    assert (info.floor, info.snapshot) == (0, None)
    assert len((await streams.read(STREAM)).events) == 4


@requirement("planes:compaction:nothing-eligible")
async def test_with_nothing_eligible_there_is_no_snapshot(scene: Scene) -> None:
    streams = streams_of(scene)
    assert await streams.compact("never") == StreamCompaction(None, 0, [])
    assert await scene.store.read(lambda tables: tables.stream("never")) is None
    await streams.append(STREAM, STEP)
    await streams.compact(STREAM)
    assert await streams.compact(STREAM) == StreamCompaction(None, 0, [])
    await streams.settled()


@requirement("planes:rules:uncommitted-run")
async def test_an_uncommitted_run_keeps_its_events(scene: Scene) -> None:
    streams = streams_of(scene)
    run = await scene.begin()
    await streams.append(run.stream_id, STEP)
    assert await streams.compact(run.stream_id) == StreamCompaction(None, 0, [Held("uncommitted_run", 0)])
    await scene.commit(run)
    assert (await streams.compact(run.stream_id)).eligible == 4
    await streams.settled()


@requirement("planes:rules:reader-cursor")
async def test_a_readers_cursor_keeps_what_it_has_not_read(scene: Scene) -> None:
    streams = streams_of(scene)
    await streams.append(STREAM, STEP)
    await streams.set_reader(STREAM, "slow", 1)
    await streams.set_reader(STREAM, "quick", 3)
    done = await streams.compact(STREAM)
    assert done == StreamCompaction(SnapshotSeq(1), 1, [Held("reader", 1), Held("reader", 3)])
    assert [each.seq for each in (await streams.read(STREAM, after=1)).events] == [2, 3, 4]
    await streams.drop_reader(STREAM, "slow")
    assert (await streams.compact(STREAM)).snapshot == SnapshotSeq(3)
    await streams.set_reader(STREAM, "quick", 4)
    assert (await streams.compact(STREAM)).snapshot == SnapshotSeq(4)
    await streams.settled()


@requirement("planes:rules:hold")
async def test_a_hold_keeps_everything_until_it_is_lifted(scene: Scene) -> None:
    streams = streams_of(scene)
    await streams.append(STREAM, STEP)
    await streams.hold(STREAM, "audit")
    assert await streams.readers(STREAM) == {}
    assert await streams.compact(STREAM) == StreamCompaction(None, 0, [Held("hold", 0)])
    await streams.lift(STREAM, "audit")
    assert (await streams.compact(STREAM)).eligible == 4
    with pytest.raises(InvalidPayload):
        await streams.set_reader(STREAM, "hold:mine", 4)
    await streams.settled()


@requirement("planes:rules:fork-base")
async def test_the_message_that_an_uncommitted_run_forks_from_stays(scene: Scene) -> None:
    streams = streams_of(scene)
    run = await scene.begin()
    await streams.append(
        run.stream_id, [delta("one"), finished(), delta("two"), finished(), delta("three"), finished()]
    )
    await scene.commit(run)
    second = (await scene.store.read(lambda tables: tables.messages_of_run(run.run_id)))[1]
    fork = await scene.begin(second.id)
    done = await streams.compact(run.stream_id)
    assert done == StreamCompaction(SnapshotSeq(2), 2, [Held("fork_base", 2)])
    await scene.runs.cancel(fork.thread_id, fork.run_id)
    assert (await streams.compact(run.stream_id)).snapshot == SnapshotSeq(6)
    await streams.settled()


@requirement("planes:secrets:compacted")
async def test_what_may_still_begin_a_secret_is_in_no_snapshot(scene: Scene) -> None:
    streams = streams_of(scene)
    await streams.append(STREAM, [delta("use "), delta(KNOWN[:8])])
    scene.clock.advance(1_000)
    assert await streams.compact(STREAM) == StreamCompaction(SnapshotSeq(1), 1, [Held("undecided_text", 1)])
    await streams.append(STREAM, [delta(KNOWN[8:])])
    done = await streams.compact(STREAM)
    snapshot = await streams.snapshot(STREAM)
    assert done.eligible == 2
    assert snapshot is not None
    assert b"use [REDACTED:db-key]" in bytes(snapshot.state)
    await streams.settled()


@requirement("planes:secrets:compacted")
async def test_a_secret_that_a_compaction_cut_in_two_is_taken_out_of_both_halves(scene: Scene) -> None:
    """So few characters may begin anything: they hold no compaction up."""
    for stream, writer in (("same", streams_of(scene)), ("another", None)):
        streams = writer or streams_of(scene)
        first, rest = KNOWN[:3], KNOWN[3:]
        await streams.append(stream, [delta("see "), delta(first)])
        assert (await streams.compact(stream)).eligible == 2
        before = await streams.snapshot(stream)
        assert before is not None
        assert f"see {first}".encode() in bytes(before.state), "so far it is no secret"
        for piece in (rest, " indeed"):
            await (writer or streams_of(scene)).append(stream, [delta(piece)])
        scene.clock.advance(1_000)
        snapshot = await streams.snapshot(stream)
        assert snapshot is not None, "it is good, with another text"
        assert b"see [REDACTED:db-key]" in bytes(snapshot.state)
        assert first.encode() not in bytes(snapshot.state)
        shown = [each.event.payload["delta"] for each in (await streams.read(stream, after=2)).events]
        assert shown == ["", " indeed"]
        await streams.settled()


@requirement("planes:rules:reader-cursor")
async def test_a_reader_that_registers_while_the_snapshot_is_taken_keeps_its_events(scene: Scene) -> None:
    await streams_of(scene).append(STREAM, STEP)

    async def register() -> None:
        await streams_of(scene).set_reader(STREAM, "late", 2)

    streams = Streams(_Meddled(scene.store, register, after_writes=2), cleaning, scene.clock)
    assert (await streams.compact(STREAM)).eligible == 0
    assert len((await streams.read(STREAM)).events) == 4


@requirement("planes:secrets:compacted")
async def test_a_secret_that_completes_while_the_snapshot_is_taken_is_in_no_snapshot(scene: Scene) -> None:
    await streams_of(scene).append(STREAM, [delta("a "), delta(KNOWN[:12]), delta(", no")])

    async def complete() -> None:
        await scene.store.write(_rewrite)

    streams = Streams(_Meddled(scene.store, complete, after_writes=1), cleaning, scene.clock)
    assert (await streams.compact(STREAM)).eligible == 3
    snapshot = await streams.snapshot(STREAM)
    assert snapshot is not None
    assert KNOWN[:12].encode() not in bytes(snapshot.state)
    await streams.settled()


@requirement("planes:rules:verified-first")
async def test_a_snapshot_that_cannot_be_read_back_costs_no_event(scene: Scene) -> None:
    await streams_of(scene).append(STREAM, STEP)
    streams = Streams(_Forgetful(scene.store), cleaning, scene.clock)
    with pytest.raises(InternalError):
        await streams.compact(STREAM)
    assert (await streams.info(STREAM)).floor == 0
    assert len((await streams.read(STREAM)).events) == 4


@requirement("planes:rules:crash", "planes:rules:chunks")
async def test_deletion_goes_in_chunks_and_is_finished_when_the_store_is_opened_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "CHUNK_EVENTS", 10)
    streams = streams_of(scene)
    await streams.append(STREAM, [delta(f"{n} ") for n in range(95)])
    await streams.compact(STREAM)
    await streams.close()  # before anything was deleted
    assert await scene.store.read(lambda tables: tables.truncated(limit=10)) == [STREAM]
    assert (await streams_of(scene).read(STREAM, after=95)).floor == 95
    again = streams_of(scene)
    again.resume()
    await again.settled()
    assert await scene.store.read(lambda tables: tables.truncated(limit=10)) == []
    assert await _rows(scene) == 0


@requirement("planes:rules:crash")
@pytest.mark.parametrize("is_written", [False, True], ids=["before a write", "after it"])
async def test_a_crash_at_any_step_leaves_a_store_that_is_correct(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, is_written: bool
) -> None:
    """Each write is on disk whole or not at all; so the steps between them are all that a crash can tell apart."""
    monkeypatch.setattr(compaction, "CHUNK_EVENTS", 3)
    for writes in range(9):
        stream = f"run {writes}"
        await streams_of(scene).append(stream, STEP * 3)
        before = await scene.store.read(partial(_state, stream=stream))
        crashing = Streams(_Crashing(scene.store, writes, is_written=is_written), cleaning, scene.clock)
        await asyncio.gather(crashing.compact(stream), return_exceptions=True)
        await asyncio.gather(crashing.settled(), return_exceptions=True)
        streams = streams_of(scene)
        assert await scene.store.read(partial(_state, stream=stream)) == before
        info = await streams.info(stream)
        assert (info.head, info.floor) in {(12, 0), (12, 12)}
        assert len((await streams.read(stream, after=info.floor)).events) == 12 - info.floor
        assert (info.snapshot is not None) or info.floor == 0
        streams.resume()
        await streams.settled()
        assert (await streams.compact(stream)).eligible == 12 - info.floor
        await streams.settled()
        assert await scene.store.read(partial(_state, stream=stream)) == before
        assert await scene.store.read(lambda tables: tables.truncated(limit=1)) == []


@requirement("planes:rules:chunks")
async def test_appends_and_reads_go_on_while_events_are_deleted(scene: Scene) -> None:
    streams = streams_of(scene)
    for _ in range(5):
        await streams.append(STREAM, [delta("word ") for _ in range(1_000)])
    await streams.compact(STREAM)
    for n in range(20):
        assert (await streams.append(STREAM, [delta("x ")])).head == 5_001 + n
        assert len((await streams.read(STREAM, after=5_000)).events) == n + 1
    await streams.settled()


@requirement("planes:compaction:retention")
async def test_some_of_the_newest_events_can_be_kept(scene: Scene) -> None:
    streams = streams_of(scene)
    await streams.append(STREAM, [delta("word ") for _ in range(10)])
    done = await streams.compact(STREAM, keep_events=4)
    assert done == StreamCompaction(SnapshotSeq(6), 6, [Held("kept_events", 6)])
    assert (await streams.compact(STREAM, keep_events=4)).eligible == 0
    with pytest.raises(InvalidPayload):
        await streams.compact(STREAM, keep_events=-1)
    await streams.settled()


@requirement("planes:compaction:retention")
async def test_retention_takes_finished_runs_whose_time_is_up_and_nothing_else(scene: Scene) -> None:
    streams = streams_of(scene)
    old, running = await scene.begin(thread="a"), await scene.begin(thread="b")
    for stream in (old.stream_id, running.stream_id, "no run"):
        await streams.append(stream, STEP)
    await scene.commit(old)
    scene.clock.advance(8 * DAY_MS)
    young = await scene.begin(thread="c")
    await streams.append(young.stream_id, STEP)
    await scene.commit(young)
    settings = StreamRetention(finished_days=7, keep_events=1)
    planned = [each async for each in apply_retention(streams, settings, scene.clock, dry_run=True)]
    assert [each.stream_id for each in planned] == [old.stream_id]
    assert (await streams.info(old.stream_id)).floor == 0
    done = [each async for each in apply_retention(streams, settings, scene.clock)]
    assert done == planned
    floors = [(await streams.info(stream)).floor for stream in (old.stream_id, running.stream_id, young.stream_id)]
    assert floors == [3, 0, 0]
    assert [each async for each in apply_retention(streams, settings, scene.clock)] == []
    await streams.settled()


@requirement("planes:compaction:retention")
async def test_streams_without_a_run_are_retained_unless_asked(scene: Scene) -> None:
    streams = streams_of(scene)
    await streams.append(STREAM, STEP)
    scene.clock.advance(8 * DAY_MS)
    assert [each async for each in apply_retention(streams, StreamRetention(), scene.clock)] == []
    done = [each async for each in apply_retention(streams, StreamRetention(without_run=True), scene.clock)]
    assert [each.stream_id for each in done] == [STREAM]
    with pytest.raises(InvalidPayload):
        [each async for each in apply_retention(streams, StreamRetention(finished_days=-1), scene.clock)]
    await streams.settled()


async def _rows(scene: Scene) -> int:
    """Rows that are still there, seen or not: deleting them tells."""
    return await scene.store.write(lambda tables: tables.delete_events(STREAM, limit=1_000))


def _state(tables: ReadTables, stream: str) -> bytes:
    """As a snapshot has it, without what comes from the stream's name: ids and parents."""
    state = json.decode(encode_state(replayed(tables, stream).state))
    for message in state["messages"]:
        del message["id"], message["parentMessageId"]
    return json.encode({**state, "streamId": "", "parentMessageId": ""})


def _rewrite(tables: Tables) -> None:
    """As an append does that completes a secret."""
    [row] = tables.events(STREAM, after=1, limit=1)
    tables.replace_events(STREAM, [row._replace(body=json.encode(delta("[REDACTED:db-key]")))])
    tables.drop_snapshots(STREAM)


class _Meddled:
    """A store in which something happens after so many writes."""

    def __init__(self, store: PlaneStore, meddle: Callable[[], Any], *, after_writes: int) -> None:
        self._store = store
        self._meddle = meddle
        self._left = after_writes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def write(self, work: Callable[[Tables], T], *, large: bool = False) -> T:
        done = await self._store.write(work, large=large)
        self._left -= 1
        if self._left == 0:
            await self._meddle()
        return done


class Crash(FieldError):
    """The process was killed."""


class _Crashing:
    """A store that takes so many writes, and then nothing any more."""

    def __init__(self, store: PlaneStore, writes: int, *, is_written: bool) -> None:
        self._store = store
        self._left = writes
        self._is_written = is_written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def write(self, work: Callable[[Tables], T], *, large: bool = False) -> T:
        if self._left == 0 and self._is_written:
            await self._store.write(work, large=large)
        self._left -= 1
        if self._left < 0:
            self._is_written = False
            raise Crash
        return await self._store.write(work, large=large)

    async def scour(self) -> bool:
        return True


class _Forgetful:
    """A store whose snapshots come back with a bit flipped."""

    def __init__(self, store: PlaneStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def read(self, work: Callable[[ReadTables], T]) -> T:
        return await self._store.read(lambda tables: work(_FlippedTables(tables)))


class _FlippedTables:
    def __init__(self, tables: ReadTables) -> None:
        self._tables = tables

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tables, name)

    def snapshots(self, stream: str) -> list[SnapshotRow]:
        return [each._replace(state=each.state[:-1] + b" ") for each in self._tables.snapshots(stream)]
