"""The process that bears writers, lets them write, and kills them: `python -m tests.crash.nursery`.

It is warm: modules and redaction rules are loaded once, and every writer is a fork of it. A writer opens the store by
itself, and dies by SIGKILL, which no process can notice, let alone delay.

    in   a job: one line of JSON          out  born, opened, commit, ack <agent> <number> <unit id>, broken <why>
         kill                                  dead <signal>
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from msgspec import Struct, json

from fieldstone.backends.memory.vault import MemoryVault
from fieldstone.backends.sqlite import file as sqlite_file
from fieldstone.backends.sqlite import runway
from fieldstone.backends.sqlite.store import SqliteStore
from fieldstone.backends.system import SystemClock, SystemIds
from fieldstone.core.errors import AgentIdTaken
from fieldstone.core.replies import Accepted
from fieldstone.field.field import LocalField
from fieldstone.field.opening import open_local
from fieldstone.field.options import Models, Options
from fieldstone.field.secrets import Secrets
from fieldstone.ports.store import Commit, Store
from fieldstone.redact import shared_harness
from fieldstone.testing import KEY, FaultyStore, WordCounter
from tests.crash.script import AGENTS, agent_name, message
from tests.messages import attune, register

SMALL_WAL_PAGES = 40  # so that checkpoints, too, are killed in the middle
SHORT_RUNWAY_PAGES = 8  # and the thread that makes the WAL's file longer


class Job(Struct, frozen=True):
    path: str
    seed: int
    first: list[int]  # agent → the number of its next message
    small_wal: bool = False
    planted_bug: bool = False


def say(line: str) -> None:
    """Whole or not at all: a short write to a pipe is never split, and nothing waits in a buffer of ours."""
    os.write(sys.stdout.fileno(), f"{line}\n".encode())


class TellingStore(FaultyStore):
    """It says when it begins to write, so that the kill can fall into the writing."""

    async def commit(self, commit: Commit) -> None:
        say("commit")
        await super().commit(commit)


class HastyStore(TellingStore):
    """The planted bug: it says that a commit is on disk, and writes it with the next one."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._owed: Commit | None = None

    async def commit(self, commit: Commit) -> None:
        if self._owed is not None:
            await super().commit(self._owed)
        self._owed = commit


async def live(job: Job) -> None:
    if job.small_wal:
        sqlite_file.CHECKPOINT_PAGES = SMALL_WAL_PAGES  # type: ignore[misc]
        runway.FIRST_PAGES = runway.NEAR_PAGES = runway.PAGES_AT_ONCE = SHORT_RUNWAY_PAGES  # type: ignore[misc]
    real = SqliteStore.open(Path(job.path), KEY)
    store = HastyStore(real) if job.planted_bug else TellingStore(real)
    field = await open_local(
        store,
        clock=SystemClock(),
        ids=SystemIds(),
        harness=shared_harness,
        secrets=Secrets(MemoryVault()),
        models=Models(WordCounter()),
        # An answer that tells what was found out may come after a further commit, which would hide the planted bug.
        options=Options(version="crash", detect_conflicts=not job.planted_bug),
    )
    say("opened")
    acknowledged: dict[tuple[int, int], str] = {}
    await asyncio.gather(*(_write(field, job, agent, acknowledged) for agent in range(AGENTS)))


async def _write(field: LocalField, job: Job, agent: int, acknowledged: dict[tuple[int, int], str]) -> None:
    """One message after the other, until the end."""
    try:
        await field.send(register(agent_name(agent)))
    except AgentIdTaken:
        pass  # in an earlier life
    number = job.first[agent]
    while True:
        reply = await field.send(message(job.seed, agent, number, acknowledged))
        assert isinstance(reply, Accepted)
        acknowledged[agent, number] = reply.memory_unit_id
        say(f"ack {agent} {number} {reply.memory_unit_id}")
        if agent == 0:
            await field.send(attune(agent_name(agent), "cold cache", max_units=5))
        number += 1


def bear(job: Job) -> int:
    """A writer, and what it does is all it does: it never comes back from here."""
    child = os.fork()
    if child:
        return child
    try:
        asyncio.run(live(job))
    except BaseException as error:
        say(f"broken {error!r}")
    finally:
        signal.pause()  # until it is killed
        os._exit(1)


def main() -> None:
    shared_harness()
    say("ready")
    for line in sys.stdin.buffer:
        child = bear(json.decode(line, type=Job))
        say("born")
        sys.stdin.buffer.readline()  # kill, or the end of the rig
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        say(f"dead {os.WTERMSIG(status)}")


if __name__ == "__main__":
    main()
