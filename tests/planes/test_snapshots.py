"""Snapshot + tail equals the full replay, byte for byte; a snapshot that cannot be believed is discarded."""

from collections.abc import Callable

import pytest
from hypothesis import given

from fieldstone.backends.memory.planes import MemoryPlanes
from fieldstone.core.streams import StreamEvent
from fieldstone.planes.messages import (
    STATE_VERSION,
    encode_state,
    go_on_from,
    messages_of,
    project_messages,
)
from fieldstone.planes.projector import SequenceGap
from fieldstone.planes.snapshots import replayed, shown, snapshot_of, state_in, take_snapshot
from fieldstone.ports.planes import PlaneStore, ReadTables, SnapshotRow, StreamRow, Tables
from tests.planes.events import STREAM, decoded, delta, logs, rows_of, user
from tests.requirements import requirement

NOW_MS = 1_760_000_000_000
LOG = [user("q"), delta("one "), delta("two"), user("more"), delta("three")]


def filled(log: list[StreamEvent], *, head: int | None = None) -> Callable[[Tables], None]:
    def work(tables: Tables) -> None:
        tables.put_stream(StreamRow(STREAM))
        tables.put_events(STREAM, rows_of(log[:head]))

    return work


async def a_store(log: list[StreamEvent]) -> PlaneStore:
    store = MemoryPlanes().open("acme/research")
    await store.write(filled(log))
    return store


@requirement("planes:rules:snapshot-equals-replay", "planes:messages:deterministic")
@given(logs)
def test_snapshot_and_tail_equal_the_full_replay_byte_for_byte_at_every_seq(log: list[StreamEvent]) -> None:
    events = decoded(log)
    whole = project_messages(STREAM, "m0")
    whole.apply(events)
    until = project_messages(STREAM, "m0")
    for seq in range(len(events) + 1):
        row = snapshot_of(STREAM, until, now_ms=NOW_MS)
        state = state_in(row, head=len(events))
        assert state is not None
        warm = go_on_from(state, row.last_seq)
        warm.apply(events)
        assert encode_state(warm.state) == encode_state(whole.state)
        assert messages_of(warm.state) == messages_of(whole.state)
        until.apply(events[seq : seq + 1])


@requirement("planes:compaction:warm-start")
async def test_a_replay_begins_at_the_newest_good_snapshot() -> None:
    store = await a_store(LOG)
    row = await store.write(lambda tables: take_snapshot(tables, STREAM, now_ms=NOW_MS, until=3))
    assert row is not None
    assert row.last_seq == 3
    assert await store.read(tables_state) == await fresh_state(LOG)
    await store.write(lambda tables: tables.put_stream(StreamRow(STREAM, head=5, floor=3)))
    assert await store.read(tables_state) == await fresh_state(LOG)


@requirement("planes:rules:bad-snapshot")
@pytest.mark.parametrize(
    "spoil",
    [
        lambda row: row._replace(state_version=STATE_VERSION + 1),
        lambda row: row._replace(checksum=b"\0" * 32),
        lambda row: row._replace(state=row.state.replace(b"one", b"two")),
        lambda row: row._replace(last_seq=4),
        lambda row: row._replace(last_seq=9),
        lambda row: row._replace(state=b"{}"),
    ],
    ids=["unknown version", "bad checksum", "changed state", "other seq", "beyond head", "no state"],
)
async def test_a_snapshot_that_cannot_be_believed_is_discarded_and_the_log_alone_is_correct(
    spoil: Callable[[SnapshotRow], SnapshotRow],
) -> None:
    store = await a_store(LOG)
    row = await store.write(lambda tables: take_snapshot(tables, STREAM, now_ms=NOW_MS, until=3))
    assert row is not None
    spoiled = spoil(row)
    await store.write(lambda tables: tables.drop_snapshots(STREAM))
    await store.write(lambda tables: tables.put_snapshot(spoiled))
    assert state_in(spoiled, head=5) is None
    assert await store.read(tables_state) == await fresh_state(LOG)


@requirement("planes:rules:bad-snapshot")
async def test_behind_a_bad_snapshot_an_older_good_one_is_used() -> None:
    store = await a_store(LOG)
    await store.write(lambda tables: take_snapshot(tables, STREAM, now_ms=NOW_MS, until=2))
    newest = await store.write(lambda tables: take_snapshot(tables, STREAM, now_ms=NOW_MS, until=3))
    assert newest is not None
    await store.write(lambda tables: tables.put_snapshot(newest._replace(checksum=b"")))
    await store.write(lambda tables: tables.put_stream(StreamRow(STREAM, head=5, floor=2)))
    assert await store.read(tables_state) == await fresh_state(LOG)


@requirement("planes:rules:a-cache")
async def test_losing_all_snapshots_loses_nothing_that_was_not_truncated() -> None:
    store = await a_store(LOG)
    await store.write(lambda tables: take_snapshot(tables, STREAM, now_ms=NOW_MS))
    assert await store.write(lambda tables: tables.drop_snapshots(STREAM)) == 1
    assert await store.read(tables_state) == await fresh_state(LOG)


@requirement("planes:rules:never-a-hole")
async def test_a_snapshot_that_ends_below_the_floor_is_not_joined_to_what_comes_after_a_hole() -> None:
    store = await a_store(LOG)
    await store.write(lambda tables: take_snapshot(tables, STREAM, now_ms=NOW_MS, until=2))
    await store.write(lambda tables: tables.put_stream(StreamRow(STREAM, head=5, floor=3)))
    messages = await store.read(lambda tables: replayed(tables, STREAM))
    assert messages.last_seq == 5
    assert len(messages_of(messages.state)) == 2


async def test_nothing_is_taken_of_a_stream_without_events() -> None:
    store = MemoryPlanes().open("acme/research")
    assert await store.write(lambda tables: take_snapshot(tables, STREAM, now_ms=NOW_MS)) is None
    assert (await store.read(lambda tables: replayed(tables, STREAM))).last_seq == 0


@requirement("planes:projector:gap")
def test_a_projector_refuses_a_tail_that_does_not_follow_its_snapshot() -> None:
    messages = project_messages(STREAM, last_seq=2)
    with pytest.raises(SequenceGap):
        messages.apply(decoded(LOG)[4:])


@requirement("planes:rules:snapshot-shape")
def test_a_snapshot_is_shown_with_its_state_as_json() -> None:
    messages = project_messages(STREAM)
    messages.apply(decoded(LOG))
    snapshot = shown(snapshot_of(STREAM, messages, now_ms=NOW_MS))
    assert (snapshot.stream_id, snapshot.last_seq, snapshot.created_at) == (STREAM, 5, "2025-10-09T08:53:20.000Z")
    assert bytes(snapshot.state).startswith(b'{"streamId":"run:one","parentMessageId":')


def tables_state(tables: ReadTables) -> bytes:
    return encode_state(replayed(tables, STREAM).state)


async def fresh_state(log: list[StreamEvent]) -> bytes:
    return await (await a_store(log)).read(tables_state)
