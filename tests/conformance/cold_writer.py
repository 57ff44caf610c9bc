"""A process that archives and erases until it is killed: `python -m tests.conformance.cold_writer STORE`.

It says each step when it is on disk: `put <batch>`, and `erased <batch>` for the batch's even seqs.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Final

from fieldstone.backends.sqlite.store import SqliteStore
from fieldstone.ports.log import StoredText
from fieldstone.testing import KEY
from fieldstone.testing.rows import text

BATCH_TEXTS: Final = 100  # a batch lies in several blocks, and shares one with the next


def batch(number: int) -> list[StoredText]:
    return [text(seq, f"said at {seq}") for seq in range(number * BATCH_TEXTS + 1, (number + 1) * BATCH_TEXTS + 1)]


async def write(path: Path) -> None:
    store = SqliteStore.open(path, KEY)
    there = list(await store.cold.read(after=0, limit=sys.maxsize))
    number = there[-1].seq // BATCH_TEXTS if there else 0
    while True:
        await store.cold.put(batch(number))
        say(f"put {number}")
        await store.cold.erase([each.seq for each in batch(number) if each.seq % 2 == 0])
        say(f"erased {number}")
        number += 1


def say(line: str) -> None:
    os.write(sys.stdout.fileno(), f"{line}\n".encode())


if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1])))
