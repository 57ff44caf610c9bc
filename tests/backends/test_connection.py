"""Transactions: whole or not at all, and nobody else in the process waits for the disk meanwhile."""

import asyncio
import threading
from pathlib import Path

import apsw
import pytest

from fieldstone.backends.sqlite.connection import BUSY_TIMEOUT_MS, transaction


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "some.db"
    _open(path).execute("CREATE TABLE said (word TEXT NOT NULL)")
    return path


def test_a_transaction_is_there_as_a_whole(path: Path) -> None:
    writer = _open(path)
    with transaction(writer):
        writer.execute("INSERT INTO said VALUES ('quagga'), ('okapi')")
        assert _words(path) == []
    assert _words(path) == ["quagga", "okapi"]


def test_of_a_transaction_that_broke_nothing_is_there_and_the_next_one_can_begin(path: Path) -> None:
    writer = _open(path)
    with pytest.raises(apsw.ConstraintError):
        _say(writer, "INSERT INTO said VALUES (NULL)")
    with transaction(writer):
        writer.execute("INSERT INTO said VALUES ('okapi')")
    assert _words(path) == ["okapi"]


def test_the_error_that_undid_a_transaction_is_the_one_that_is_raised(path: Path) -> None:
    # OR ROLLBACK: SQLite undoes it by itself, as it does where there is no room.
    with pytest.raises(apsw.ConstraintError):
        _say(_open(path), "INSERT OR ROLLBACK INTO said VALUES (NULL)")
    assert _words(path) == []


async def test_whoever_keeps_a_commit_waiting_can_go_on_and_let_it_pass(path: Path) -> None:
    """`with connection` would keep this thread from running, and the commit would wait for it in vain."""
    reader, written = _open(path), threading.Event()
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM said").get == 0  # now no commit can end

    def write() -> None:
        writer = _open(path)
        with transaction(writer):
            writer.execute("INSERT INTO said VALUES ('quagga')")
            written.set()

    writing = asyncio.ensure_future(asyncio.to_thread(write))
    await asyncio.to_thread(written.wait)
    reader.execute("COMMIT")
    await writing
    assert _words(path) == ["quagga"]


def _open(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))  # with a rollback journal, where a commit has to wait for readers
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    return connection


def _say(writer: apsw.Connection, statement: str) -> None:
    with transaction(writer):
        writer.execute("INSERT INTO said VALUES ('quagga')")
        writer.execute(statement)


def _words(path: Path) -> list[str]:
    return [word for (word,) in _open(path).execute("SELECT word FROM said ORDER BY rowid")]
