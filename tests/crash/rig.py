"""kill -9 under load, again and again: `python -m tests.crash.rig --cycles 1000 [--seed 1] [--planted-bug]`.

Each cycle a process records for a dozen agents at once on an SQLite file and tells every acknowledgement; it is killed
at a moment chosen by the seed. Then the store is opened and everything that was ever acknowledged on it is looked for.
The next cycle goes on with the same file; after a number of cycles a new one is begun, so that each look stays short.
"""

import argparse
import asyncio
import os
import random
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import apsw
from msgspec import json

from fieldstone.backends.memory.vault import MemoryVault
from fieldstone.backends.sqlite.store import SqliteStore
from fieldstone.backends.system import SystemClock, SystemIds
from fieldstone.core.errors import FieldError, UnitNotFound
from fieldstone.core.replies import Accepted
from fieldstone.field.field import LocalField
from fieldstone.field.opening import open_local
from fieldstone.field.options import Models, Options
from fieldstone.field.secrets import Secrets
from fieldstone.redact import shared_harness
from fieldstone.testing import KEY, WordCounter
from tests.crash.nursery import Job
from tests.crash.script import AGENTS, agent_name, content, message
from tests.messages import attune, attuned, register

CYCLES_A_FILE: Final = 40
MOST_LINES: Final = 80  # that a writer may say before it is killed
AT_BIRTH: Final = 0.04  # of all kills: while the store is being opened, or made
PROGRESS_CYCLES: Final = 100


@dataclass
class Figures:
    cycles: int = 0
    acknowledged: int = 0
    lost: int = 0
    unheard: int = 0  # on disk, but the process was killed before it could say so
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        return not self.lost and not self.problems


@dataclass
class Oracle:
    """What is known of one file: all that was acknowledged on it, and what each agent says next."""

    path: Path
    seed: int
    acknowledged: dict[tuple[int, int], str] = field(default_factory=dict)  # (agent, number) → unit id
    of_this_life: dict[tuple[int, int], str] = field(default_factory=dict)
    first: list[int] = field(default_factory=lambda: [1] * AGENTS)

    def take(self, agent: int, number: int, unit_id: str) -> None:
        self.acknowledged[agent, number] = self.of_this_life[agent, number] = unit_id
        self.first[agent] = number + 1


class Nursery:
    """The process that bears and kills the writers, from the outside."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process

    def tell(self, line: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + b"\n")
        self._process.stdin.flush()

    def lines(self) -> Iterator[list[str]]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            yield line.decode().split(maxsplit=3)
        raise RuntimeError("the nursery is gone")


@contextmanager
def nursery() -> Iterator[Nursery]:
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # only a process of one thread may be forked
    command = [sys.executable, "-m", "tests.crash.nursery"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        here = Nursery(process)
        assert next(here.lines()) == ["ready"]
        try:
            yield here
        finally:
            process.kill()


def run(cycles: int, seed: int, *, planted_bug: bool = False, folder: Path | None = None) -> Figures:
    """Stops early only where a planted bug has been caught: there is nothing left to learn."""
    figures = Figures()
    started = time.monotonic()
    chance = random.Random(seed)
    with TemporaryDirectory(dir=folder) as place, nursery() as here:
        oracle = Oracle(Path(place) / "field-0.db", seed)
        for cycle in range(cycles):
            if cycle and cycle % CYCLES_A_FILE == 0:
                _remove(oracle.path)
                oracle = Oracle(Path(place) / f"field-{cycle}.db", seed + cycle)
            figures.acknowledged += _one_life(here, oracle, chance, planted_bug=planted_bug)
            asyncio.run(_look(oracle, figures, cycle))
            figures.cycles += 1
            figures.seconds = time.monotonic() - started
            if planted_bug and not figures.good:
                break
            if figures.cycles % PROGRESS_CYCLES == 0 and figures.cycles < cycles:
                print(_summary(figures), flush=True)
    return figures


def _one_life(here: Nursery, oracle: Oracle, chance: random.Random, *, planted_bug: bool) -> int:
    """From birth to death. How many acknowledgements were told."""
    oracle.of_this_life.clear()
    small_wal = chance.random() < 0.5
    left = 0 if chance.random() < AT_BIRTH else chance.randint(1, MOST_LINES)
    here.tell(json.encode(Job(str(oracle.path), oracle.seed, oracle.first, small_wal, planted_bug)))
    killed = False
    told = 0
    for line in here.lines():
        match line:
            case ["dead", _]:
                return told
            case ["ack", agent, number, unit_id]:
                oracle.take(int(agent), int(number), unit_id.strip())
                told += 1
            case ["broken", *why]:
                raise RuntimeError(f"the writer failed by itself: {' '.join(why)}")
            case _:
                pass
        if left <= 0 and not killed:  # what it said until the kill reached it is still read, and counts
            here.tell(b"kill")
            killed = True
        left -= 1
    raise AssertionError("unreachable")


async def _look(oracle: Oracle, figures: Figures, cycle: int) -> None:
    """Open the store that was left behind, and compare it with what was told."""
    store = SqliteStore.open(oracle.path, KEY)
    here = await open_local(
        store,
        clock=SystemClock(),
        ids=SystemIds(),
        harness=shared_harness,
        secrets=Secrets(MemoryVault()),
        models=Models(WordCounter()),
        options=Options(version="crash"),
    )
    problems = [problem async for problem in _problems(here, oracle, figures)]
    await here.close()
    problems += _half_written(oracle.path)
    figures.problems += [f"cycle {cycle}: {problem}" for problem in problems]


async def _problems(here: LocalField, oracle: Oracle, figures: Figures) -> AsyncIterator[str]:
    found = await here.verify()
    if not found.ok:
        yield f"verify: {found.first_bad}"
    for (agent, number), unit_id in oracle.acknowledged.items():
        try:
            unit = await here.unit(unit_id)
        except UnitNotFound:
            figures.lost += 1
            continue
        if unit.content != content(oracle.seed, agent, number) or unit.source.agent_id != agent_name(agent):
            yield f"{unit_id} is not what was acknowledged"
    rebuilt = await here.rebuild()
    if not rebuilt.unchanged:
        yield "the views are not what the log says"
    units = (await here.status()).units
    if not len(oracle.acknowledged) <= units <= len(oracle.acknowledged) + AGENTS:
        yield f"{units} units, of which {len(oracle.acknowledged)} were acknowledged"
    async for problem in _send_again(here, oracle, figures):
        yield problem
    if (await here.status()).units != len(oracle.acknowledged):
        yield "sending again made more units than were sent"
    shown = await attuned(here, attune(agent_name(0), "cold cache", include_own=True, include_drafts=True))
    statuses = {unit.status for unit in shown}
    if not statuses <= {"active", "contested", "draft"}:
        yield f"attune shows {statuses}"


async def _send_again(here: LocalField, oracle: Oracle, figures: Figures) -> AsyncIterator[str]:
    """What was on its way may be there or not: sent again, it is there once. What was acknowledged stays as it is."""
    for agent in range(AGENTS):
        try:
            await here.send(register(agent_name(agent)))  # where it was killed before it could
        except FieldError:
            pass
        number = oracle.first[agent]
        last = oracle.of_this_life.get((agent, number - 1))
        before = (await here.status()).log_entries
        if last is not None:
            again = await here.send(message(oracle.seed, agent, number - 1, oracle.of_this_life))
            if not isinstance(again, Accepted) or again.memory_unit_id != last:
                yield f"message {number - 1} of agent {agent} sent again is another unit: {again}"
            if (await here.status()).log_entries != before:
                yield f"message {number - 1} of agent {agent} sent again left an entry"
        before = (await here.status()).log_entries
        reply = await here.send(message(oracle.seed, agent, number, oracle.of_this_life))
        if not isinstance(reply, Accepted):
            yield f"message {number} of agent {agent} is not taken: {reply}"
            continue
        oracle.take(agent, number, reply.memory_unit_id)
        figures.unheard += (await here.status()).log_entries == before


def _half_written(path: Path) -> Iterator[str]:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    for part in ("log", "texts"):
        query = f"SELECT count(*) FROM units WHERE position NOT IN (SELECT position FROM {part})"
        missing: int = connection.execute(query).get
        if missing:
            yield f"{missing} units without a row in {part}"
    if connection.pragma("integrity_check") != "ok":
        yield "SQLite's integrity check fails"
    connection.close()


def _remove(path: Path) -> None:
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()


def _summary(figures: Figures) -> str:
    return (
        f"{figures.cycles:,} cycles, {figures.acknowledged:,} acknowledged, {figures.lost:,} lost, "
        f"{figures.unheard:,} written but not yet told, {len(figures.problems)} problems, {figures.seconds:.1f} s"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash.rig", description=__doc__)
    parser.add_argument("--cycles", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=None, help="where the stores lie (a temporary place by default)")
    parser.add_argument("--planted-bug", action="store_true", help="acknowledge before the commit, and be caught")
    given = parser.parse_args()
    figures = run(given.cycles, given.seed, planted_bug=given.planted_bug, folder=given.folder)
    print(_summary(figures))
    for problem in figures.problems[:20]:
        print(f"  {problem}")
    return 0 if figures.good else 1


if __name__ == "__main__":
    sys.exit(main())
