"""A process that appends to one stream beside others: `python -m tests.crash.planes_writer STORE NAME [APPENDS]`.

It says each step when it is on disk: `appended <last seq>`, `floor <seq>`, `deleted <rows>`. Without a number of
appends it goes on until it is killed, and truncates the stream behind a snapshot now and then.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Final

from fieldstone.backends.sqlite import runway
from fieldstone.backends.sqlite.planes import SqlitePlanes
from fieldstone.ports.planes import EventRow, PlaneStore, SnapshotRow, StreamRow, Tables

SCOPE: Final = "acme/research"
STREAM: Final = "run:shared"
BATCH: Final = 3
TRUNCATED_EVERY: Final = 5  # appends
KEPT: Final = 20  # events above the floor
CHUNK: Final = 7
SHORT_RUNWAY_PAGES: Final = 8  # so that the kill falls into the lengthening of the WAL's file, too
NOW_MS: Final = 1_750_000_000_000


def body(seq: int, name: str) -> bytes:
    return b'{"kind":"text-delta","payload":{"delta":"%d by %s"}}' % (seq, name.encode())


def append(name: str, tables: Tables) -> int:
    held = tables.stream(STREAM) or StreamRow(STREAM)
    tables.put_stream(held._replace(active_ms=NOW_MS + held.head))
    seqs = range(held.head + 1, held.head + BATCH + 1)
    tables.put_events(STREAM, [EventRow(seq, NOW_MS + seq, body(seq, name)) for seq in seqs])
    return held.head + BATCH


def truncate(tables: Tables) -> int:
    held = tables.stream(STREAM) or StreamRow(STREAM)
    floor = max(held.head - KEPT, held.floor)
    if floor > held.floor:
        tables.put_snapshot(SnapshotRow(STREAM, floor, NOW_MS, 1, b"checksum", b"state at %d" % floor))
        tables.drop_snapshots(STREAM, but=floor)
        tables.put_stream(held._replace(floor=floor))
    return floor


async def write(path: Path, name: str, appends: int | None) -> None:
    planes = SqlitePlanes(path)
    store = planes.open(SCOPE)
    done = 0
    while done != appends:
        say("appended", await store.write(lambda tables: append(name, tables)))
        done += 1
        if appends is None and done % TRUNCATED_EVERY == 0:
            await _truncate(store)
    await planes.close()


async def _truncate(store: PlaneStore) -> None:
    say("floor", await store.write(truncate))
    while await store.read(lambda tables: tables.truncated(limit=1)):
        say("deleted", await store.write(lambda tables: tables.delete_events(STREAM, limit=CHUNK)))


def say(word: str, number: int) -> None:
    os.write(sys.stdout.fileno(), f"{word} {number}\n".encode())


if __name__ == "__main__":
    runway.FIRST_PAGES = runway.NEAR_PAGES = runway.PAGES_AT_ONCE = SHORT_RUNWAY_PAGES  # type: ignore[misc]
    asyncio.run(write(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else None))
