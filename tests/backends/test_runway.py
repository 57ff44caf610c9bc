"""The WAL's file is longer than what is in it, and never at the cost of what is in it."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import apsw
import pytest

from fieldstone.backends.sqlite.connection import empty_journal
from fieldstone.backends.sqlite.file import SqliteFile
from fieldstone.backends.sqlite.runway import FIRST_PAGES, NEAR_PAGES, PAGES_AT_ONCE, SPARE_BYTES, Runway

PAGE_BYTES = 4096
FRAME_BYTES = PAGE_BYTES + 24


class Store:
    """A file whose WAL nobody saves, with a runway."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.writer = apsw.Connection(str(path))
        for setting in ("journal_mode=WAL", "synchronous=OFF", "wal_autocheckpoint=0"):
            self.writer.execute(f"PRAGMA {setting}").fetchall()
        self.writer.execute("CREATE TABLE pages (number INTEGER PRIMARY KEY, bytes BLOB)")
        self.runway = Runway(self.writer)
        self.reached = 0
        self.writer.set_wal_hook(self._note)

    def write(self, pages: int) -> None:
        self.writer.execute("INSERT INTO pages (bytes) VALUES (randomblob(?))", (pages * PAGE_BYTES,))

    def settle(self) -> None:
        self.runway._thread.submit(lambda: None).result()  # its only thread: what was begun before is over

    def room_pages(self) -> int:
        return Path(self.writer.filename_wal).stat().st_size // FRAME_BYTES

    def _note(self, _connection: apsw.Connection, _database: str, pages: int) -> int:
        self.reached = pages
        self.runway.reached(pages)
        return apsw.SQLITE_OK


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "field.db")
    yield store
    store.runway.close()
    store.writer.close()


def test_whoever_writes_a_few_pages_gets_no_runway(store: Store) -> None:
    while store.reached < FIRST_PAGES - 8:
        store.write(1)
    store.settle()
    assert store.room_pages() == store.reached


def test_whoever_makes_a_store_and_writes_a_few_units_gets_none_either(tmp_path: Path) -> None:
    file = SqliteFile(tmp_path / "field.db")
    file.transact(lambda writer: writer.execute("CREATE TABLE more (number INTEGER)"))
    assert 0 < file._wal_pages < FIRST_PAGES // 2
    file.close()


def test_a_store_that_is_written_to_gets_its_runway(tmp_path: Path) -> None:
    file = SqliteFile(tmp_path / "field.db")
    file.transact(lambda writer: writer.execute("CREATE TABLE pages (bytes BLOB)"))
    file.transact(lambda writer: writer.execute("INSERT INTO pages VALUES (zeroblob(?))", (FIRST_PAGES * PAGE_BYTES,)))
    file._runway._thread.submit(lambda: None).result()
    assert Path(f"{file.path}-wal").stat().st_size // FRAME_BYTES >= file._wal_pages + PAGES_AT_ONCE
    file.close()


def test_a_file_that_is_long_enough_is_not_made_longer_by_the_next_one_who_writes_to_it(
    store: Store,
) -> None:
    """Nor by many who come and go: a process that opens it knows nothing of what others have laid out."""
    store.write(FIRST_PAGES)
    store.settle()
    room = store.room_pages()
    for _ in range(3):
        store.runway.close()
        store.runway = Runway(store.writer)
        store.write(1)
        store.settle()
        assert store.room_pages() == room
    store.write(PAGES_AT_ONCE - NEAR_PAGES + 16)
    store.settle()
    assert store.room_pages() >= store.reached + PAGES_AT_ONCE


def test_a_commit_is_not_told_as_broken_where_no_thread_is_to_be_had(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_thread: Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(Thread, "start", refused)
        store.write(FIRST_PAGES)
    assert store.room_pages() == store.reached
    store.write(PAGES_AT_ONCE)
    store.settle()
    assert store.room_pages() >= store.reached + PAGES_AT_ONCE


def test_a_wal_that_is_gone_hinders_no_commit_and_is_looked_for_again_later(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("fieldstone.backends.sqlite.runway.os.open", _gone)
        store.write(FIRST_PAGES)
        store.settle()
    assert store.room_pages() == store.reached
    store.write(PAGES_AT_ONCE)
    store.settle()
    assert store.room_pages() >= store.reached + PAGES_AT_ONCE


def _gone(*_: object) -> int:
    raise FileNotFoundError


def test_commits_stay_within_a_file_that_has_its_length_already(store: Store) -> None:
    store.write(FIRST_PAGES)
    store.settle()
    for _ in range(4 * PAGES_AT_ONCE // NEAR_PAGES):
        before = store.room_pages()
        store.write(NEAR_PAGES // 2)
        assert store.reached <= before
        store.settle()
        assert store.room_pages() - store.reached >= NEAR_PAGES


def test_no_commit_is_lost_while_the_file_is_made_longer_and_others_find_all_of_it_after_a_crash(
    store: Store, tmp_path: Path
) -> None:
    for _ in range(600):
        store.write(4)  # goes on while the thread lays out more
    store.settle()
    written = store.writer.execute("SELECT number, bytes FROM pages ORDER BY 1").fetchall()
    for suffix in ("", "-wal"):  # what a process that is killed leaves
        shutil.copyfile(f"{store.path}{suffix}", tmp_path / f"killed.db{suffix}")
    left = apsw.Connection(str(tmp_path / "killed.db"))
    assert left.execute("SELECT number, bytes FROM pages ORDER BY 1").fetchall() == written
    assert left.pragma("integrity_check") == "ok"
    left.close()
    assert len(written) == 600
    assert store.room_pages() > store.reached


def test_a_wal_that_was_emptied_gets_a_runway_again(store: Store) -> None:
    store.write(FIRST_PAGES)
    store.settle()
    assert empty_journal(store.writer)
    store.runway.cut()
    assert store.room_pages() == 0
    store.write(FIRST_PAGES)
    store.settle()
    assert store.room_pages() >= PAGES_AT_ONCE


def test_so_does_one_that_was_emptied_while_it_was_made_longer(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(_path: str) -> SimpleNamespace:
        store.runway.cut()
        return SimpleNamespace(free=0)

    with monkeypatch.context() as patch:
        patch.setattr("fieldstone.backends.sqlite.runway.shutil.disk_usage", cut)
        store.write(FIRST_PAGES)
        store.settle()
    assert empty_journal(store.writer)
    store.write(FIRST_PAGES)
    store.settle()
    assert store.room_pages() >= PAGES_AT_ONCE


def test_what_is_left_of_a_disk_that_is_nearly_full_is_not_taken_and_asked_for_again_later(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = SPARE_BYTES - 1
    monkeypatch.setattr("fieldstone.backends.sqlite.runway.shutil.disk_usage", lambda _path: SimpleNamespace(free=free))
    for _ in range(4):
        store.write(FIRST_PAGES)
        store.settle()
        assert store.room_pages() == store.reached
    free = SPARE_BYTES
    store.write(PAGES_AT_ONCE)
    store.settle()
    assert store.room_pages() >= store.reached + PAGES_AT_ONCE


def test_a_disk_that_takes_no_zeros_hinders_no_commit(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_file: int, _bytes: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fieldstone.backends.sqlite.runway.os.write", full)
    store.write(FIRST_PAGES)
    store.settle()
    store.write(1)
    assert store.writer.execute("SELECT count(*) FROM pages").get == 2
    assert store.room_pages() == store.reached
