"""What nobody waits for steps back behind what somebody waits for."""

import os
import sys
import threading
from pathlib import Path

import pytest

from fieldstone.backends.sqlite.cold import SqliteColdFile
from fieldstone.backends.sqlite.file import Saved, SqliteFile
from fieldstone.backends.sqlite.text_index import SqliteIndexFile
from fieldstone.compaction.pace import in_thread
from fieldstone.ports.threads import BEHIND, CLOSE_BEHIND, background_threads
from tests.requirements import requirement

HAS_ITS_OWN = sys.platform == "linux"  # elsewhere a thread has no niceness of its own, and is left as it is


def _niceness() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id() if HAS_ITS_OWN else 0)


def _stepped_back(niceness: int) -> int:
    return max(niceness, _niceness()) if HAS_ITS_OWN else _niceness()


@requirement("akashik:compact:others-go-first")
async def test_what_a_compaction_computes_and_copies_steps_back_and_the_loop_does_not(tmp_path: Path) -> None:
    cold = SqliteColdFile(tmp_path / "field.db")
    before = _niceness()
    assert await in_thread(_niceness) == _stepped_back(BEHIND)
    assert await cold.write(lambda _: _niceness()) == _stepped_back(BEHIND)
    assert _niceness() == before
    cold.close()


async def test_the_text_index_steps_back_a_little_since_it_has_to_keep_up(tmp_path: Path) -> None:
    index = SqliteIndexFile(tmp_path / "field.db-index")
    assert await index.write(lambda _: _niceness(), lambda: None) == _stepped_back(CLOSE_BEHIND)
    index.close()


async def test_a_checkpoint_steps_back_a_little_since_it_has_to_keep_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[int] = []

    def checkpoint(self: SqliteFile) -> Saved:
        found.append(_niceness())
        return Saved(0, 0)

    monkeypatch.setattr(SqliteFile, "_run_checkpoint", checkpoint)
    file = SqliteFile(tmp_path / "field.db")
    await file._begin_checkpoint()
    assert found == [_stepped_back(CLOSE_BEHIND)]
    file.close()


@pytest.mark.parametrize("refuses", ["getpriority", "setpriority"])
def test_where_it_is_forbidden_the_work_is_done_all_the_same(monkeypatch: pytest.MonkeyPatch, refuses: str) -> None:
    def forbidden(*_: int) -> int:
        raise PermissionError

    monkeypatch.setattr(os, refuses, forbidden)
    with background_threads(1, "test") as threads:
        assert threads.submit(lambda: 1).result() == 1


def test_a_process_that_stands_further_back_is_not_brought_forward(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(os, "getpriority", lambda *_: 15)
    monkeypatch.setattr(os, "setpriority", lambda _kind, _thread, niceness: asked.append(niceness))
    with background_threads(1, "test") as threads:
        threads.submit(lambda: None).result()
    assert asked == ([15] if HAS_ITS_OWN else [])
