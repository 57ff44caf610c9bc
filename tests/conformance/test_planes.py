"""Both stores of the planes keep what the port promises, and the same."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.backends.memory.planes import MemoryPlanes
from fieldstone.backends.sqlite import planes as sqlite_planes
from fieldstone.backends.sqlite.planes import SqlitePlanes
from fieldstone.ports.planes import Appended, PlaneFile, PlaneStore, StreamRow, Tables
from fieldstone.testing.plane_names import PlaneNamesTests
from fieldstone.testing.plane_rows import (
    append,
    event_row,
    everything,
    fill,
    message_row,
    put_messages,
    run_row,
    snapshot_row,
    truncate,
)
from fieldstone.testing.planes import SCOPE, OpenPlanes, PlaneStoreTests, TranscriptTablesTests
from tests.requirements import requirement

MOST_EVENTS: Final = 12
MOST_PLACES: Final = 6


class InMemory:
    @pytest.fixture
    def open_planes(self) -> OpenPlanes:
        made: list[MemoryPlanes] = []

        def open_it(*, max_bytes: int | None = None) -> PlaneFile:
            if not made:
                made.append(MemoryPlanes(max_bytes=max_bytes))
            return made[0]

        return open_it


class InSqlite:
    @pytest.fixture
    def open_planes(self, tmp_path: Path) -> OpenPlanes:
        def open_it(*, max_bytes: int | None = None) -> PlaneFile:
            return SqlitePlanes(tmp_path / "field.db", max_bytes=max_bytes)

        return open_it


@requirement("planes:streams:dense", "planes:streams:one-conformance", "planes:rules:head-apart")
class TestMemoryPlanes(InMemory, PlaneStoreTests): ...


class TestMemoryTranscripts(InMemory, TranscriptTablesTests): ...


class TestMemoryNames(InMemory, PlaneNamesTests): ...


@requirement("planes:streams:dense", "planes:streams:one-conformance", "planes:rules:head-apart")
class TestSqlitePlanes(InSqlite, PlaneStoreTests): ...


class TestSqliteTranscripts(InSqlite, TranscriptTablesTests): ...


class TestSqliteNames(InSqlite, PlaneNamesTests): ...


@requirement("planes:streams:one-conformance")
class TestSqlitePlanesOnASlowDisk(InSqlite, PlaneStoreTests):
    """There every transaction goes to the writer's thread."""

    @pytest.fixture(autouse=True)
    def slow_disk(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sqlite_planes, "FAST_MS", -1.0)


# --- two ways to keep the same ---------------------------------------------------------------------------------------

Step = Callable[[Tables], object]

streams = st.sampled_from(("s", "another"))
seqs = st.integers(0, MOST_EVENTS)
places = st.integers(1, MOST_PLACES)
parents = st.none() | st.integers(1, MOST_PLACES).map("msg-{}".format)
runs = places.map("run-t-{}".format)
statuses = st.sampled_from(("created", "streaming", "committed", "superseded"))


def _append(stream: str, count: int) -> Step:
    return append(stream, count)


def _put_events(stream: str, seq: int) -> Step:
    return lambda tables: tables.put_events(stream, [event_row(seq)])


def _put_stream(stream: str, head: int, floor: int) -> Step:
    return lambda tables: tables.put_stream(StreamRow(stream, head, floor, floor, head, 7))


def _truncate(stream: str, floor: int) -> Step:
    return lambda tables: tables.stream(stream) and truncate(stream, floor)(tables)


def _delete(stream: str, limit: int) -> Step:
    return lambda tables: tables.delete_events(stream, limit=limit)


def _replace(stream: str, seq: int) -> Step:
    return lambda tables: tables.replace_events(stream, [event_row(seq, "[REDACTED]")])


def _snapshot(stream: str, seq: int) -> Step:
    return lambda tables: tables.put_snapshot(snapshot_row(seq, stream=stream))


def _drop_snapshots(stream: str, but: int | None) -> Step:
    return lambda tables: tables.drop_snapshots(stream, but=but)


def _remember(stream: str, seq: int) -> Step:
    return lambda tables: tables.put_appended(stream, "key", Appended(b"digest", seq, seq))


def _forget(stream: str, limit: int) -> Step:
    return lambda tables: tables.drop_appended(stream, limit=limit)


def _reader(stream: str, seq: int) -> Step:
    return lambda tables: tables.put_reader(stream, "ada", seq)


def _fill(_stream: str) -> Step:
    """It raises halfway where the stream is there already, so that what it did has to be undone."""
    return fill


def _run(place: int, run_id: str, status: str, fork_from: str | None) -> Step:
    stream = f"run:{run_id}"
    return lambda tables: tables.put_run(run_row(place, id=run_id, stream=stream, status=status, fork_from=fork_from))


def _message(place: int, number: int, run: str, parent: str | None) -> Step:
    def work(tables: Tables) -> None:
        tables.put_messages("t", [message_row(place, id=f"msg-{number}", run=run, parent=parent)])
        tables.put_bodies("t", {place: b"body of %d" % number})

    return work


def _messages(count: int) -> Step:
    return lambda tables: put_messages(tables, [message_row(place) for place in range(1, count + 1)])


def _restand(run: str, stands: bool) -> Step:
    return lambda tables: tables.restand(run, stands)


def _drop_thread(limit: int) -> Step:
    return lambda tables: tables.drop_thread("t", limit=limit)


of_streams = st.one_of(
    st.builds(_append, streams, seqs),
    st.builds(_put_events, streams, seqs),
    st.builds(_put_stream, streams, seqs, seqs),
    st.builds(_truncate, streams, seqs),
    st.builds(_delete, streams, seqs),
    st.builds(_replace, streams, seqs),
    st.builds(_snapshot, streams, seqs),
    st.builds(_drop_snapshots, streams, st.none() | seqs),
    st.builds(_remember, streams, seqs),
    st.builds(_forget, streams, seqs),
    st.builds(_reader, streams, seqs),
    st.builds(_fill, streams),
)
of_threads = st.one_of(
    st.builds(_run, places, runs, statuses, parents),
    st.builds(_message, places, places, runs, parents),
    st.builds(_messages, places),
    st.builds(_restand, runs, st.booleans()),
    st.builds(_drop_thread, seqs),
)


@requirement("planes:streams:one-conformance")
@given(steps=st.lists(st.one_of(of_streams, of_threads), max_size=25))
def test_memory_and_sqlite_keep_refuse_and_read_the_same(steps: list[Step]) -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(_compare(Path(folder) / "field.db", steps))


async def _compare(path: Path, steps: list[Step]) -> None:
    memory, sqlite = MemoryPlanes(), SqlitePlanes(path)
    stores: tuple[PlaneStore, PlaneStore] = (memory.open(SCOPE), sqlite.open(SCOPE))
    for step in steps:
        outcomes = [await _taken(store, step) for store in stores]
        assert outcomes[0] == outcomes[1]
    assert await stores[0].read(everything) == await stores[1].read(everything)
    await sqlite.close()


async def _taken(store: PlaneStore, step: Step) -> object:
    try:
        return await store.write(step)
    except ValueError:
        return ValueError
