"""Fields of one SQLite file in one process: one writer that they take turns with, and one lease for all of them."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final, NamedTuple

import apsw
import pytest

from fieldstone.backends.sqlite import file as sqlite_file
from fieldstone.backends.sqlite.file import SqliteFile
from fieldstone.backends.sqlite.lease import FileLease
from fieldstone.backends.sqlite.runway import Runway
from fieldstone.backends.sqlite.store import SqliteStore, SqliteStores
from fieldstone.ports.lease import Holder, StoreHeld
from fieldstone.ports.log import FieldKey
from fieldstone.ports.store import Commit, FieldOpen, UnknownField
from fieldstone.ports.text_index import Document
from fieldstone.testing.lease import FIRST, SECOND
from fieldstone.testing.opening import KEY, OTHER_KEY
from fieldstone.testing.rows import entries, head_of, text

PAGE_BYTES: Final = 4_096
SMALL_WAL_PAGES: Final = 20
TELLING: Final = "nowhere47else11"  # a term as it is: no ending that would be cut off
GIVE_UP_S: Final = 10  # a test that fails before it opens its gate ends all the same
STREAMS: Final = 100
FILE_THREADS: Final = 6  # for writes, checkpoints, the runway, the index and two searches


class Place(NamedTuple):
    path: Path
    file: SqliteFile
    stores: SqliteStores


class Failed(Exception):
    pass


class Gate:
    """Work that begins in a thread and does not end before it is let."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error
        self._begun = threading.Event()
        self._open = threading.Event()

    def __call__(self, _writer: apsw.Connection) -> None:
        self._begun.set()
        assert self._open.wait(GIVE_UP_S)
        if self._error is not None:
            raise self._error

    async def begun(self) -> None:
        await asyncio.to_thread(self._begun.wait)

    def open(self) -> None:
        self._open.set()


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    path = tmp_path / "field.db"
    lease = FileLease(path)
    lease.acquire(FIRST)
    file = SqliteFile(path)
    here = Place(path, file, SqliteStores(file, lease))
    yield here
    await here.stores.close()


async def test_closing_one_field_keeps_the_lease_and_closing_all_gives_it_back(tmp_path: Path) -> None:
    path = tmp_path / "field.db"
    lease = FileLease(path)
    lease.acquire(FIRST)
    stores = SqliteStores(SqliteFile(path), lease)
    ours, theirs = await stores.open(KEY), await stores.open(OTHER_KEY)
    await ours.close()
    await theirs.commit(Commit(entries=entries(1)))
    await theirs.close()
    with pytest.raises(StoreHeld):
        FileLease(path).acquire(SECOND)
    await stores.open(KEY)
    await stores.close()
    next_one = FileLease(path)
    next_one.acquire(SECOND)
    next_one.release()
    assert _wal_pages(path) == 0


async def test_who_wants_the_file_next_is_told_where_its_holder_can_be_reached(place: Place) -> None:
    place.stores.announce(Holder(FIRST.pid, FIRST.host, FIRST.program, FIRST.since, "http://127.0.0.1:8420"))
    with pytest.raises(StoreHeld, match=r"serving at http://127\.0\.0\.1:8420"):
        FileLease(place.path).acquire(SECOND)


async def test_a_file_that_is_opened_for_one_field_alone_is_closed_with_it(tmp_path: Path) -> None:
    path = tmp_path / "field.db"
    store = SqliteStore.open(path, KEY)
    await store.commit(Commit(entries=entries(1)))
    assert _wal_pages(path) > 0
    await store.close()
    assert _wal_pages(path) == 0


async def test_a_file_that_does_not_hold_the_field_is_closed_again(tmp_path: Path) -> None:
    path = tmp_path / "field.db"
    await SqliteStore.open(path, OTHER_KEY).close()
    with pytest.raises(UnknownField) as unknown:
        SqliteStore.open(path, KEY, create=False)
    assert not _shared_memory(path)  # although the error is still at hand, and all that it refers to
    assert OTHER_KEY.field in str(unknown.value)


@pytest.mark.parametrize("error", [Failed(), None], ids=["it fails", "it succeeds"])
async def test_a_write_that_is_cancelled_draws_nobody_into_its_transaction(place: Place, error: Failed | None) -> None:
    theirs = await place.stores.open(KEY)
    gate = Gate(error)
    writing = asyncio.create_task(place.file.write(gate))
    await gate.begun()
    committing = asyncio.create_task(theirs.commit(Commit(entries=entries(2), texts=[text(1), text(2)])))
    for _ in range(3):  # however often it is told
        writing.cancel()
        await asyncio.sleep(0)
    assert not committing.done()
    gate.open()
    await committing
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert _heads(place.path) == [head_of(entries(2)).seq]
    assert await theirs.log.head() == head_of(entries(2))


async def test_a_field_is_closed_when_all_that_it_was_given_is_on_disk(place: Place) -> None:
    store = await place.stores.open(KEY)
    gate = Gate()
    writing = asyncio.create_task(place.file.write(gate))
    await gate.begun()
    committing = asyncio.create_task(store.commit(Commit(entries=entries(2))))
    await asyncio.sleep(0)
    closing = asyncio.create_task(store.close())
    await asyncio.sleep(0)
    with pytest.raises(FieldOpen):  # for another one would not know of what is still on its way
        await place.stores.open(KEY)
    gate.open()
    await closing
    again = await place.stores.open(KEY)
    await again.commit(Commit(entries=entries(1, after=head_of(entries(2)))))
    await asyncio.gather(writing, committing)


async def test_a_field_is_made_when_the_writer_is_free_and_the_event_loop_goes_on_meanwhile(place: Place) -> None:
    gate = Gate()
    writing = asyncio.create_task(place.file.write(gate))
    await gate.begun()
    opening = asyncio.create_task(place.stores.open(KEY))
    await asyncio.sleep(0)
    assert await place.stores.fields() == []
    gate.open()
    await writing
    assert (await opening).key == KEY


async def test_a_field_that_is_there_is_opened_and_read_whatever_is_being_written(place: Place) -> None:
    store = await place.stores.open(KEY)
    await store.commit(Commit(entries=entries(1)))
    await store.close()
    gates = Gate(), Gate()
    writing = [
        asyncio.create_task(place.file.write(gates[0])),
        asyncio.create_task(place.file.index.write(gates[1], lambda: None)),
    ]
    await asyncio.gather(*(gate.begun() for gate in gates))
    again = await place.stores.open(KEY)
    assert await again.log.head() == head_of(entries(1))
    assert await again.text_index.search([["word"]], most_postings=10)
    for gate in gates:
        gate.open()
    await asyncio.gather(*writing)


async def test_batches_of_one_index_that_come_at_once_are_all_in_it(place: Place) -> None:
    store = await place.stores.open(KEY)
    await store.commit(Commit(entries=entries(5)))
    await asyncio.gather(*(store.text_index.add([Document(seq, "word")], position=seq) for seq in range(1, 6)))
    [found] = await store.text_index.search([["word"]], most_postings=10)
    assert (found.position, found.documents, sorted(found.seqs["word"])) == (5, 5, [1, 2, 3, 4, 5])


async def test_the_index_of_another_history_is_not_used_and_is_made_again(place: Place) -> None:
    store = await place.stores.open(KEY)
    await store.commit(Commit(entries=entries(2)))
    await store.text_index.add([Document(1, "stale word")], position=2)
    await store.close()
    await place.file.index.write(_execute("UPDATE text_indexes SET anchor = x'00'"), lambda: None)
    again = await place.stores.open(KEY)
    assert await again.text_index.position() == 0
    [found] = await again.text_index.search([["stale"]], most_postings=10)
    assert (found.documents, found.frequencies, found.seqs) == (0, {"stale": 0}, {})
    await again.text_index.add([Document(2, "fresh word")], position=2)
    [found] = await again.text_index.search([["stale", "fresh", "word"]], most_postings=10)
    assert (found.documents, found.frequencies) == (1, {"stale": 0, "fresh": 1, "word": 1})


async def test_scouring_leaves_nothing_of_an_index_of_another_history(place: Place) -> None:
    store = await place.stores.open(KEY)
    await store.commit(Commit(entries=entries(2)))
    await store.text_index.add([Document(1, TELLING)], position=2)
    await store.close()
    await place.file.index.write(_execute("UPDATE text_indexes SET anchor = x'00'"), lambda: None)
    again = await place.stores.open(KEY)
    assert TELLING.encode() in _bytes_of(place.path.parent)
    assert await again.scour()
    assert TELLING.encode() not in _bytes_of(place.path.parent)


async def test_the_wal_is_kept_small_for_all_fields_together(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Runway, "reached", lambda _self, _pages: None)  # so the file is as long as the WAL
    monkeypatch.setattr(sqlite_file, "CHECKPOINT_PAGES", SMALL_WAL_PAGES)
    monkeypatch.setattr(sqlite_file, "WAL_LIMIT_PAGES", 2 * SMALL_WAL_PAGES)
    stores = [await place.stores.open(FieldKey("acme", name)) for name in ("a", "b", "c")]
    written = entries(30)
    for entry in written:
        texts = [text(entry.seq, "x" * 10_000)]
        await asyncio.gather(*(store.commit(Commit(entries=[entry], texts=texts)) for store in stores))
    assert 0 < _wal_pages(place.path) < 4 * SMALL_WAL_PAGES
    assert _heads(place.path) == [30, 30, 30]


async def test_a_hundred_fields_need_no_more_threads_than_one(place: Place) -> None:
    before = set(threading.enumerate())
    stores = [await place.stores.open(FieldKey(f"tenant{number}", "field")) for number in range(STREAMS)]
    await asyncio.gather(*(_write_and_search(store) for store in stores))
    assert len(set(threading.enumerate()) - before) <= FILE_THREADS
    assert _heads(place.path) == [1] * STREAMS


async def _write_and_search(store: SqliteStore) -> None:
    await store.commit(Commit(entries=entries(1)))
    await store.marks.set("detected", 1)
    await store.text_index.add([Document(1, store.key.tenant)], position=1)
    [found] = await store.text_index.search([[store.key.tenant]], most_postings=10)
    assert found.seqs == {store.key.tenant: [1]}


def _execute(statement: str) -> Callable[[apsw.Connection], None]:
    def work(writer: apsw.Connection) -> None:
        writer.execute(statement)

    return work


def _heads(path: Path) -> list[object]:
    """Of every field, as another connection sees them: what is committed, and nothing else."""
    connection = apsw.Connection(str(path))
    heads: list[object] = [head for (head,) in connection.execute("SELECT head_seq FROM streams ORDER BY stream_no")]
    connection.close()
    return heads


def _bytes_of(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(folder.iterdir()))


def _shared_memory(path: Path) -> bool:
    """It is there for as long as a connection is."""
    return Path(f"{path}-shm").exists()


def _wal_pages(path: Path) -> int:
    """0 where there is no WAL: the last connection that is closed takes it away."""
    wal = Path(f"{path}-wal")
    return wal.stat().st_size // PAGE_BYTES if wal.exists() else 0
