"""The process that bears compactions and lets them die: `python -m tests.crash.compactor`.

A compaction kills itself with SIGKILL at a given step on its way to the disk: before that step, or after it.
"""

import os
import signal
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from fieldstone.backends.memory.vault import MemoryVault
from fieldstone.backends.sqlite.store import SqliteStore
from fieldstone.backends.system import SystemClock, SystemIds
from fieldstone.core.requests import Compact, CompactFilter, Message
from fieldstone.field.field import LocalField
from fieldstone.field.opening import open_local
from fieldstone.field.options import Models, Options
from fieldstone.field.secrets import Secrets
from fieldstone.ports.store import Store
from fieldstone.redact import shared_harness
from fieldstone.testing import KEY, WordCounter
from tests.crash.mortal import bear_all
from tests.scripted import ScriptedEmbedder

# What takes a step to the disk, and where.
STEPS = {
    "": ("commit", "move_units", "scour"),
    "cold_units": ("copy",),
    "cold": ("put", "erase"),
    "cold.index": ("add", "remove"),
    "text_index": ("add", "remove"),
    "vectors": ("cool", "erase"),
    "vectors._cold": ("add",),  # the copy is there, and the original is not erased yet
    "marks": ("set",),
    "replies": ("forget_where",),
}


class Job(Struct, frozen=True):
    path: str
    strategy: Literal["archive", "summarize", "purge"]
    step: int
    when: Literal["before", "after"]


class Steps:
    """Counts, once it is armed, and ends the process at its step."""

    def __init__(self, step: int, when: str) -> None:
        self.armed = False
        self._left = step
        self._when = when

    def watch(self, store: Store) -> None:
        for part, names in STEPS.items():
            watched: Any = store
            for name in filter(None, part.split(".")):
                watched = getattr(watched, name)
            for name in names:
                setattr(watched, name, self._watched(getattr(watched, name)))

    def _watched(self, step: Any) -> Any:
        async def take(*args: Any, **named: Any) -> Any:
            self._left -= self.armed
            if self.armed and self._left == 0 and self._when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            result = await step(*args, **named)
            if self.armed and self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return take


async def open_at(path: str) -> tuple[SqliteStore, LocalField]:
    store = SqliteStore.open(Path(path), KEY)
    field = await open_local(
        store,
        clock=SystemClock(),
        ids=SystemIds(),
        harness=shared_harness,
        secrets=Secrets(MemoryVault()),
        models=Models(WordCounter(), ScriptedEmbedder()),
        options=Options(version="crash", detect_conflicts=False),
    )
    return store, field


async def compact(job: Job) -> None:
    store, field = await open_at(job.path)
    steps = Steps(job.step, job.when)
    steps.watch(store)
    steps.armed = True
    filter_ = CompactFilter(session_id="old")
    request = Compact(strategy=job.strategy, filter=filter_, reason="a test", verify=False)
    await field.send(Message("COMPACT", "op", request))
    await field.close()


if __name__ == "__main__":
    bear_all(Job, compact)
