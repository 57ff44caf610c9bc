"""Where a commit runs: a small one on the spot, a large one where nobody waits for it. And who waits for the WAL."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import pytest

from fieldstone.backends.sqlite import file as sqlite_file
from fieldstone.backends.sqlite.file import LARGE_BYTES, Saved, SqliteFile

PAGE_BYTES = 4096
CHECKPOINT_PAGES = 20


@pytest.fixture
async def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SqliteFile]:
    """One with room for rows, whose WAL is saved every few pages."""
    monkeypatch.setattr(sqlite_file, "CHECKPOINT_PAGES", CHECKPOINT_PAGES)
    monkeypatch.setattr(sqlite_file, "FAST_COMMIT_MS", float("inf"))
    file = SqliteFile(tmp_path / "field.db")
    file.hold()
    file.transact(lambda writer: writer.execute("CREATE TABLE pages (bytes BLOB)").get)
    yield file
    await file.release()


@pytest.mark.parametrize(("size_bytes", "on_the_spot"), [(0, True), (LARGE_BYTES - 1, True), (LARGE_BYTES, False)])
async def test_on_a_fast_disk_a_commit_runs_on_the_spot_unless_it_is_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size_bytes: int, on_the_spot: bool
) -> None:
    monkeypatch.setattr(sqlite_file, "FAST_COMMIT_MS", float("inf"))  # however slow this machine is
    ran: list[int] = []

    def insert(_: apsw.Connection) -> None:
        ran.append(threading.get_ident())

    file = SqliteFile(tmp_path / "field.db")
    file.hold()
    await file.commit(insert, lambda: None, size_bytes=size_bytes)
    await file.release()
    assert (ran == [threading.get_ident()]) is on_the_spot


async def test_with_everything_saved_the_wal_starts_again_and_no_commit_has_waited(file: SqliteFile) -> None:
    await _write(file, CHECKPOINT_PAGES)
    await _end_of_checkpoint(file)
    held, saved = _wal(file)
    assert saved == held >= CHECKPOINT_PAGES
    await _write(file, 1)
    assert _wal(file)[0] < held


async def test_a_wal_that_cannot_start_again_is_saved_once_for_every_so_many_pages(
    file: SqliteFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints = 0
    run_checkpoint = file._run_checkpoint

    def counted() -> Saved:
        nonlocal checkpoints
        checkpoints += 1
        return run_checkpoint()

    monkeypatch.setattr(file, "_run_checkpoint", counted)
    reader = apsw.Connection(str(file.path))
    reader.execute("BEGIN; SELECT * FROM pages").fetchall()  # whoever reads keeps the WAL as it is
    for pages, so_far in ((CHECKPOINT_PAGES, 1), (CHECKPOINT_PAGES // 4, 1), (CHECKPOINT_PAGES, 2)):
        await _write(file, pages)
        await _end_of_checkpoint(file)
        assert checkpoints == so_far
    reader.close()


async def _write(file: SqliteFile, pages: int) -> None:
    def insert(writer: apsw.Connection) -> None:
        writer.execute("INSERT INTO pages VALUES (zeroblob(?))", (pages * PAGE_BYTES,))

    await file.commit(insert, lambda: None, size_bytes=0)


async def _end_of_checkpoint(file: SqliteFile) -> None:
    if file._checkpoint is not None:
        await asyncio.wait([file._checkpoint])


def _wal(file: SqliteFile) -> tuple[int, int]:
    """The WAL's pages, and how many of them are in the database, too."""
    return file.near.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
