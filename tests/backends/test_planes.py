"""What is SQLite's alone about the planes: processes, states, a full disk, and what is left in the file."""

import asyncio
import random
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import apsw
import pytest

from fieldstone.backends.sqlite import planes as sqlite_planes
from fieldstone.backends.sqlite.planes import SCHEMA_VERSION, SqlitePlanes, planes_path
from fieldstone.backends.sqlite.runway import Runway
from fieldstone.core.errors import StorageFull
from fieldstone.ports.planes import EventRow, PlaneStore, ReadTables, StreamRow, Tables
from fieldstone.ports.store import StoreTooNew
from fieldstone.testing.plane_rows import (
    NOW_MS,
    PLENTY,
    append,
    change_all,
    everything,
    fill,
    message_row,
    put_messages,
    snapshot_row,
    truncate,
)
from fieldstone.testing.planes import SCOPE, head, seqs
from tests.crash.planes_writer import BATCH, STREAM
from tests.faults.disk import faulty_disk

PROCESSES: Final = 4
APPENDS: Final = 300
TEXTS: Final = 1_000
SMALL_WAL_PAGES: Final = 20
PAGE_BYTES: Final = 4_096
LONG_MS: Final = 60_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "field.db"


@pytest.fixture
async def planes(path: Path) -> AsyncIterator[SqlitePlanes]:
    planes = SqlitePlanes(path)
    yield planes
    await planes.close()


@pytest.fixture
def store(planes: SqlitePlanes) -> PlaneStore:
    return planes.open(SCOPE)


# --- the file --------------------------------------------------------------------------------------------------------


async def test_the_file_is_made_when_it_is_first_needed(planes: SqlitePlanes, path: Path) -> None:
    store = planes.open(SCOPE)
    assert await store.scour()
    assert await store.bytes_used() == 0
    assert list(path.parent.iterdir()) == []
    await store.write(append("s", 1))
    assert planes_path(path).exists()


async def test_what_was_written_is_there_when_it_is_opened_again(path: Path) -> None:
    first = SqlitePlanes(path)
    await first.open(SCOPE).write(fill)
    await first.open(SCOPE).write(change_all)
    before = await first.open(SCOPE).read(everything)
    await first.close()
    again = SqlitePlanes(path)
    assert await again.open(SCOPE).read(everything) == before
    await again.close()


async def test_a_file_of_a_newer_version_is_refused_and_left_as_it_is(planes: SqlitePlanes, path: Path) -> None:
    await planes.open(SCOPE).write(append("s", 1))
    await planes.close()
    _execute(path, f"PRAGMA user_version={SCHEMA_VERSION + 1}")
    newer = SqlitePlanes(path)
    with pytest.raises(StoreTooNew):
        await newer.open(SCOPE).read(everything)
    await newer.close()
    assert _execute(path, "PRAGMA user_version") == SCHEMA_VERSION + 1


# --- other processes -------------------------------------------------------------------------------------------------


async def test_four_processes_with_300_appends_each_to_one_stream_leave_no_gap_and_meet_no_error(
    path: Path, store: PlaneStore
) -> None:
    command = [sys.executable, "-m", "tests.crash.planes_writer", str(path)]
    writers = [
        await asyncio.create_subprocess_exec(*command, f"writer-{number}", str(APPENDS), stdout=subprocess.PIPE)
        for number in range(PROCESSES)
    ]
    told = [(await writer.communicate())[0].split() for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * PROCESSES
    lasts = sorted(int(number) for words in told for number in words[1::2])
    assert lasts == list(range(BATCH, PROCESSES * APPENDS * BATCH + 1, BATCH))
    assert await seqs(store, STREAM) == list(range(1, PROCESSES * APPENDS * BATCH + 1))


async def test_what_another_process_commits_wakes_whoever_waits(path: Path, store: PlaneStore) -> None:
    seen = await store.changed(-1, timeout_ms=0)
    waiting = asyncio.ensure_future(store.changed(seen, timeout_ms=LONG_MS))
    command = [sys.executable, "-m", "tests.crash.planes_writer", str(path), "other", "1"]
    writer = await asyncio.create_subprocess_exec(*command, stdout=subprocess.DEVNULL)
    assert await waiting != seen
    assert await writer.wait() == 0
    assert await head(store, STREAM) == BATCH


async def test_a_commit_of_ours_is_told_once(store: PlaneStore) -> None:
    await store.write(append("s", 1))
    seen = await store.changed(-1, timeout_ms=0)
    assert await store.changed(seen, timeout_ms=50) == seen


async def test_a_write_waits_for_another_processs_transaction(path: Path, store: PlaneStore) -> None:
    await store.write(append("s", 1))
    with _transaction(path) as other:
        writing = asyncio.ensure_future(store.write(append("s", 1)))
        assert await seqs(store) == [1]
        assert not writing.done()
        other.execute("UPDATE streams SET active_ms = 7")
    assert await writing == 2


async def test_a_file_is_opened_and_read_while_another_process_writes(path: Path, store: PlaneStore) -> None:
    await store.write(append("s", 1))
    with _transaction(path):
        late = SqlitePlanes(path)
        assert await seqs(late.open(SCOPE)) == [1]
        await late.close()


async def test_who_waits_for_too_long_is_told_so_in_words(
    path: Path, store: PlaneStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.write(append("s", 1))
    monkeypatch.setattr(sqlite_planes, "MOST_WAITS", 3)
    with _transaction(path):
        outcomes = await asyncio.gather(*(store.write(append("s", 1)) for _ in range(3)), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [TimeoutError] * 3
    assert await store.write(append("s", 1)) == 2


# --- states ----------------------------------------------------------------------------------------------------------


async def test_a_read_sees_one_state_whatever_is_committed_meanwhile(store: PlaneStore) -> None:
    await store.write(append("s", 2))
    begun, committed = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def work(tables: ReadTables) -> tuple[object, object]:
        before = everything(tables)
        loop.call_soon_threadsafe(begun.set)
        assert committed.wait(LONG_MS / 1e3)
        return before, everything(tables)

    reading = asyncio.ensure_future(store.read(work))
    await begun.wait()
    await store.write(append("s", 2))
    assert await seqs(store) == [1, 2, 3, 4]
    committed.set()
    before, after = await reading
    assert before == after


async def test_a_read_waits_for_no_writer_and_sees_nothing_of_it(
    store: PlaneStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.write(append("s", 2))
    monkeypatch.setattr(sqlite_planes, "FAST_MS", -1.0)  # as where the disk is slow
    begun, read = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def work(tables: Tables) -> None:
        append("s", 2)(tables)
        loop.call_soon_threadsafe(begun.set)
        assert read.wait(LONG_MS / 1e3)

    writing = asyncio.ensure_future(store.write(work))
    await begun.wait()
    assert await seqs(store) == [1, 2]
    assert not writing.done()
    read.set()
    await writing
    assert await seqs(store) == [1, 2, 3, 4]


async def test_writes_that_wait_share_a_commit(path: Path, store: PlaneStore) -> None:
    await store.write(append("s", 1))
    with faulty_disk(lambda name: name.endswith("-wal")) as disk:
        planes = SqlitePlanes(path)
        other = planes.open(SCOPE)
        await other.write(append("s", 1))
        disk.operations.clear()
        await asyncio.gather(*(other.write(append("s", 1)) for _ in range(50)))
        assert disk.operations.count("sync") <= 5
        await planes.close()
    assert await seqs(store) == list(range(1, 53))


async def test_a_read_that_raises_leaves_no_older_state_open(store: PlaneStore) -> None:
    await store.write(fill)

    def work(tables: ReadTables) -> None:
        tables.events("s", after=0, limit=1)
        raise LookupError

    for _ in range(4):
        with pytest.raises(LookupError):
            await store.read(work)
    assert await store.scour()


# --- room ------------------------------------------------------------------------------------------------------------


async def test_a_full_disk_refuses_the_append_whole_loses_nothing_and_goes_on_when_there_is_room(path: Path) -> None:
    with faulty_disk(lambda name: "-planes" in name) as disk:
        planes = SqlitePlanes(path)
        store = planes.open(SCOPE)
        await store.write(append("s", 100))
        disk.shrink_to(disk.taken_bytes() + 20_000)
        with pytest.raises(StorageFull):
            await store.write(append("s", 500, said="word " * 50))
        assert await seqs(store) == list(range(1, 101))
        disk.heal()
        assert await store.write(append("s", 500)) == 600
        assert await seqs(store) == list(range(1, 601))
        await planes.close()


async def test_of_writes_that_share_a_commit_those_that_have_room_are_written(path: Path) -> None:
    with faulty_disk(lambda name: "-planes" in name) as disk:
        planes = SqlitePlanes(path)
        store = planes.open(SCOPE)
        await store.write(append("s", 1))
        disk.shrink_to(disk.taken_bytes() + 60_000)
        works = [append("s", 1), append("large", 500, said="word " * 50), append("s", 1)]
        outcomes = await asyncio.gather(*map(store.write, works), return_exceptions=True)
        assert isinstance(outcomes[1], StorageFull)
        assert [outcomes[0], outcomes[2]] == [2, 3]
        assert await seqs(store) == [1, 2, 3]
        assert await head(store, "large") == 0
        disk.heal()
        await planes.close()


async def test_the_wal_is_kept_small_while_more_and_more_is_written(
    path: Path, store: PlaneStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Runway, "reached", lambda _self, _pages: None)  # so the file is as long as the WAL
    monkeypatch.setattr(sqlite_planes, "CHECKPOINT_PAGES", SMALL_WAL_PAGES)
    monkeypatch.setattr(sqlite_planes, "WAL_LIMIT_PAGES", 2 * SMALL_WAL_PAGES)
    for _ in range(60):
        await store.write(append("s", 100, said="word " * 20))
    pages = _wal_pages(path)
    assert 0 < pages < 4 * SMALL_WAL_PAGES
    assert await head(store) == 6_000


async def test_the_wal_is_laid_out_ahead_of_what_is_written(store: PlaneStore, monkeypatch: pytest.MonkeyPatch) -> None:
    reached: list[int] = []
    monkeypatch.setattr(Runway, "reached", lambda _self, pages: reached.append(pages))
    await store.write(append("s", 1))
    await store.write(append("s", 1))
    assert len(reached) == 2
    assert 0 < reached[0] < reached[1]


# --- what is left ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 3])  # of four, those with which SQLite's own overwriting leaves something
async def test_nothing_of_truncated_and_rewritten_events_is_left_after_scouring(
    path: Path, store: PlaneStore, seed: int
) -> None:
    chance = random.Random(seed)
    sizes = [chance.choice((3, 30, 75, 600)) for _ in range(TEXTS)]
    rows = [EventRow(seq, NOW_MS + seq, b"<%07d>" % seq * size) for seq, size in enumerate(sizes, 1)]
    await store.write(append("other", 50))
    for first in range(0, TEXTS, 50):
        await store.write(append("other", 3))
        await store.write(partial(_append, rows[first : first + 50]))
    rewritten = chance.sample(range(501, TEXTS + 1), 200)
    clean = [EventRow(seq, NOW_MS + seq, b'{"delta":"[REDACTED]"}') for seq in rewritten]
    for first in range(0, len(clean), 20):
        await store.write(partial(_replace, clean[first : first + 20]))
    await store.write(truncate("s", 500))
    while await store.write(lambda tables: tables.delete_events("s", limit=130)):
        pass
    assert await store.scour()
    left = _bytes_of(path)
    gone = {*range(1, 501), *rewritten}
    assert not [seq for seq in gone if b"<%07d>" % seq in left]
    assert all(b"<%07d>" % seq in left for seq in range(1, TEXTS + 1) if seq not in gone)
    assert await seqs(store) == list(range(501, TEXTS + 1))
    assert _execute(path, "PRAGMA integrity_check") == "ok"


async def test_nothing_of_dropped_snapshots_and_threads_is_left_after_scouring(path: Path, store: PlaneStore) -> None:
    def work(tables: Tables) -> None:
        fill(tables)
        for seq in (3, 4, 5):
            tables.put_snapshot(snapshot_row(seq, state=b"<snapshot>" * 40 * seq**3))
        put_messages(tables, [message_row(place) for place in range(1, 400)])
        tables.put_bodies("t", {place: b"<message>" * (place % 90 + 1) for place in range(1, 400)})

    await store.write(work)
    assert b"<snapshot>" in _bytes_of(path)
    assert b"<message>" in _bytes_of(path)
    await store.write(lambda tables: tables.drop_snapshots("s", but=2))
    while await store.write(lambda tables: tables.drop_thread("t", limit=150)):
        pass
    assert await store.scour()
    left = _bytes_of(path)
    assert b"<snapshot>" not in left
    assert b"<message>" not in left
    assert await store.read(lambda tables: tables.snapshot("s")) == snapshot_row(2)


async def test_while_a_reader_keeps_an_older_state_scouring_waits_and_then_leaves_nothing(
    path: Path, store: PlaneStore
) -> None:
    await store.write(append("s", 20, said="nowhere47else11"))
    older = apsw.Connection(str(planes_path(path)))
    older.execute("BEGIN; SELECT count(*) FROM events").get  # noqa: B018 (it is the read that matters)
    await store.write(truncate("s", 20))
    await store.write(lambda tables: tables.delete_events("s", limit=PLENTY))
    assert not await store.scour()
    assert b"nowhere47else11" in _bytes_of(path)
    older.close()
    assert await store.scour()
    assert b"nowhere47else11" not in _bytes_of(path)
    assert await store.write(append("s", 1)) == 21


def _append(rows: Sequence[EventRow], tables: Tables) -> None:
    tables.put_stream(tables.stream("s") or StreamRow("s"))
    tables.put_events("s", rows)


def _replace(rows: Sequence[EventRow], tables: Tables) -> None:
    tables.replace_events("s", rows)


def _bytes_of(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(path.parent.glob(f"{planes_path(path).name}*")))


def _wal_pages(path: Path) -> int:
    return Path(f"{planes_path(path)}-wal").stat().st_size // PAGE_BYTES


def _execute(path: Path, statement: str) -> object:
    connection = apsw.Connection(str(planes_path(path)))
    try:
        return connection.execute(statement).get
    finally:
        connection.close()


@contextmanager
def _transaction(path: Path) -> Iterator[apsw.Connection]:
    """As another process has it: of a connection of its own."""
    connection = apsw.Connection(str(planes_path(path)))
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    finally:
        connection.close()
