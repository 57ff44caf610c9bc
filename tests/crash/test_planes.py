"""kill -9 while two processes append to one stream and truncate it: what was acknowledged is there, whole, once."""

import asyncio
import random
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import apsw

from fieldstone.backends.sqlite.planes import SqlitePlanes, planes_path
from fieldstone.ports.planes import ReadTables
from tests.crash.planes_writer import BATCH, CHUNK, SCOPE, STREAM, append, body
from tests.requirements import requirement

LIVES: Final = 5
WRITERS: Final = ("ada", "ben")
MOST_LINES: Final = 60
PLENTY: Final = 1_000_000


@requirement("planes:streams:many-writers", "planes:streams:durable")
def test_no_acknowledged_append_is_lost_and_none_is_half_there_after_a_kill_at_any_step(tmp_path: Path) -> None:
    chance = random.Random(7)
    told = {"appended": 0, "floor": 0, "deleted": 0}
    for _ in range(LIVES):
        for word, number in _one_life(tmp_path / "field.db", chance):
            told[word] = max(told[word], number)
        asyncio.run(_look(tmp_path / "field.db", told))
    assert all(told.values())


def _one_life(path: Path, chance: random.Random) -> list[tuple[str, int]]:
    """What the writers said until the kill reached them counts, too."""
    said: list[tuple[str, int]] = []
    with ExitStack() as stack:
        command = [sys.executable, "-m", "tests.crash.planes_writer", str(path)]
        writers = [
            stack.enter_context(subprocess.Popen([*command, name], stdout=subprocess.PIPE, text=True))
            for name in WRITERS
        ]
        for writer in writers:
            assert writer.stdout is not None
            left = chance.randint(1, MOST_LINES)
            for line in writer.stdout:
                word, number = line.split()
                said.append((word, int(number)))
                left -= 1
                if left == 0:
                    writer.kill()
    return said


async def _look(path: Path, told: dict[str, int]) -> None:
    planes = SqlitePlanes(path)
    store = planes.open(SCOPE)
    head, floor = await store.read(lambda tables: _check(tables, told))
    while await store.write(lambda tables: tables.delete_events(STREAM, limit=CHUNK)) == CHUNK:
        pass  # what the kill has left is deleted by whoever comes next
    assert await store.write(lambda tables: append("the next one", tables)) == head + BATCH
    assert await store.read(lambda tables: tables.truncated(limit=1)) == []
    assert await store.scour()
    await planes.close()
    connection = apsw.Connection(str(planes_path(path)))
    assert connection.pragma("integrity_check") == "ok"
    assert connection.execute("SELECT count(*) FROM events").get == head + BATCH - floor
    connection.close()


def _check(tables: ReadTables, told: dict[str, int]) -> tuple[int, int]:
    row = tables.stream(STREAM)
    assert row is not None
    assert row.head >= told["appended"]
    assert row.head % BATCH == 0
    assert row.floor >= told["floor"]
    events = tables.events(STREAM, after=0, limit=PLENTY)
    assert [event.seq for event in events] == list(range(row.floor + 1, row.head + 1))
    names = (*WRITERS, "the next one")
    assert all(event.body in {body(event.seq, name) for name in names} for event in events)
    snapshot = tables.snapshot(STREAM)
    assert row.floor == (0 if snapshot is None else snapshot.last_seq)
    return row.head, row.floor
