"""The process that bears compactions of a stream and lets them die: `python -m tests.crash.stream_compactor`.

A compaction kills itself with SIGKILL at a given write on its way to the disk, or when it overwrites what was deleted:
before that step, or after it.
"""

import os
import signal
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct

from fieldstone.backends.sqlite.planes import SqlitePlanes
from fieldstone.backends.system import SystemClock
from fieldstone.planes.streams import Streams
from fieldstone.ports.planes import PlaneStore
from fieldstone.redact import Harness, shared_harness
from tests.crash.mortal import bear_all

SCOPE: Final = "acme/research"
STREAM: Final = "run:long"


class Job(Struct, frozen=True):
    path: str
    step: int
    when: Literal["before", "after"]


class MortalStore:
    """Ends the process at its step."""

    def __init__(self, store: PlaneStore, step: int, when: str) -> None:
        self._store = store
        self._left = step
        self._when = when

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def write(self, work: Any, *, large: bool = False) -> Any:
        return await self._take(lambda: self._store.write(work, large=large))

    async def scour(self) -> bool:
        done: bool = await self._take(self._store.scour)
        return done

    async def _take(self, step: Any) -> Any:
        self._left -= 1
        if self._left == 0 and self._when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = await step()
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return result


async def cleaning() -> Harness:
    return shared_harness()


async def compact(job: Job) -> None:
    planes = SqlitePlanes(Path(job.path))
    store: Any = MortalStore(planes.open(SCOPE), job.step, job.when)
    streams = Streams(store, cleaning, SystemClock())
    await streams.compact(STREAM)
    await streams.settled()
    await streams.close()
    await planes.close()


if __name__ == "__main__":
    bear_all(Job, compact)
