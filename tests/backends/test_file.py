"""Where a commit runs: a small one on the spot, a large one where nobody waits for it."""

import threading
from pathlib import Path

import apsw
import pytest

from fieldstone.backends.sqlite import file as sqlite_file
from fieldstone.backends.sqlite.file import LARGE_BYTES, SqliteFile


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
