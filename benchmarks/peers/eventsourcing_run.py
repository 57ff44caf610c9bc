"""eventsourcing's SQLite recorder: `python -m benchmarks.peers.eventsourcing_run DELTAS COUNT DIRECTORY append|replay`.

As its documentation sets it up: an application on a file, an aggregate for the run, an event for each text-delta, 100
of them a save. It turns to WAL by itself and keeps SQLite's synchronous=FULL, so each save is one durable transaction.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from eventsourcing.application import Application  # type: ignore[import-not-found]
from eventsourcing.domain import Aggregate, event  # type: ignore[import-not-found]

EVENTS_A_SAVE = 100


class Run(Aggregate):  # type: ignore[misc]  # it is Any here
    def __init__(self) -> None:
        self.deltas: list[str] = []

    @event("TextDelta")  # type: ignore[untyped-decorator]
    def add(self, delta: str) -> None:
        self.deltas.append(delta)


def main(deltas_file: Path, count: int, directory: Path, what: str) -> None:
    with deltas_file.open(encoding="utf-8") as lines:
        deltas: list[str] = [json.loads(line) for line in islice(lines, count)]
    runs: Application = Application(
        env={"PERSISTENCE_MODULE": "eventsourcing.sqlite", "SQLITE_DBNAME": str(directory / "runs.sqlite")}
    )
    run = Run()
    runs.save(run)
    seconds = _seconds(lambda: append(runs, run, deltas))
    if what == "replay":
        replayed: list[Run] = []
        seconds = _seconds(lambda: replayed.append(runs.repository.get(run.id)))
        if replayed[0].deltas != deltas:
            raise SystemExit("what was replayed is not what was appended")
    figures = {"name": f"eventsourcing, {what}", "rows": count, "seconds": round(seconds, 3)}
    print(json.dumps({**figures, "rows_per_s": round(count / seconds, 1)}))


def append(runs: Application, run: Run, deltas: list[str]) -> None:
    for first in range(0, len(deltas), EVENTS_A_SAVE):
        for delta in deltas[first : first + EVENTS_A_SAVE]:
            run.add(delta)
        runs.save(run)


def _seconds(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])
