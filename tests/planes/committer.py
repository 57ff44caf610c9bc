"""A process that commits runs to one thread beside others until it is killed: `python -m tests.planes.committer STORE`.

It says each step when it is on disk: `begun RUN`, `committed RUN`, `cancelled RUN`, `switched MESSAGE`.
"""

import asyncio
import os
import sys
from pathlib import Path

from msgspec import UNSET

from fieldstone.backends.sqlite.planes import SqlitePlanes
from fieldstone.backends.system import SystemClock, SystemIds
from fieldstone.planes.runs import Runs
from fieldstone.planes.transcript import Transcript
from tests.planes.events import call, delta, finished, result, user
from tests.planes.scene import SCOPE, THREAD, tell

FORKED_EVERY = 4
CANCELLED_EVERY = 5
LONG_EVERY = 3


async def commit_on(path: Path) -> None:
    planes = SqlitePlanes(path)
    store, clock = planes.open(SCOPE), SystemClock()
    runs, transcript = Runs(store, clock, SystemIds()), Transcript(store, clock)
    done = 0
    while True:
        done += 1
        run = await runs.begin_run(THREAD, None if done % FORKED_EVERY == 0 else UNSET)
        say("begun", run.run_id)
        events = [user("q"), delta("a"), call("c1"), result("c1"), finished()] * (3 if done % LONG_EVERY == 0 else 1)
        await store.write(lambda tables: tell(tables, run.stream_id, events, clock.now_ms()))  # noqa: B023
        if done % CANCELLED_EVERY == 0:
            say("cancelled", (await runs.cancel(THREAD, run.run_id)).run_id)
            continue
        say("committed", (await runs.commit(THREAD, run.run_id)).run_id)
        first = (await transcript.messages(THREAD, limit=1)).messages[0].id
        say("switched", await transcript.set_active(THREAD, first))


def say(word: str, named: str) -> None:
    os.write(sys.stdout.fileno(), f"{word} {named}\n".encode())


if __name__ == "__main__":
    asyncio.run(commit_on(Path(sys.argv[1])))
