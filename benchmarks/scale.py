"""ATTUNE at 10,000, 100,000 and a million units, beside a bare scan of the same vectors and what users would pick.

One store is filled step by step and asked at each size by a process of its own, which prints what it measured:
`python -m benchmarks.scale STORE HINTS_FILE`. Looking for conflicts is off while the store is filled, and while it is
asked: the units that were not compared would be compared behind the answers. The rest is as by default.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.corpus import AGENTS, ROLES, Row, hints, rows, write_rows_file
from benchmarks.figures import Figure, Report, percentile
from benchmarks.peers import PeerFailed
from benchmarks.peers.environment import ROOT, bench_python
from fieldstone import Agent
from fieldstone.backends.models.static import StaticEmbedder
from fieldstone.backends.sqlite.store import SqliteStore
from fieldstone.client.field import Field
from fieldstone.ports.log import FieldKey
from fieldstone.settings import Settings, load_settings
from fieldstone.wiring import open_door

SIZES = (10_000, 100_000, 1_000_000)
MEM0_UNITS, LANCEDB_UNITS, FAISS_UNITS = SIZES  # where each of them is compared
HINTS = 200
WARMING_HINTS = 100  # others than those that are timed: what is asked again is answered from a cache
PAGE = 20
SCANNED_MOST = 200
FAISS_ROUNDS = 3
PEER_TIMEOUT_S = 1_800  # mem0 takes 100 s for 10,000 rows
CHILD_TIMEOUT_S = 600

FAISS_RATIO_MAX = 1.5
LANCEDB_RATIO_MAX = 1 / 3
MEM0_RATIO_MAX = 1 / 5
FIRST_ANSWER_S_MAX = 6.0
KB_A_UNIT_MAX = 0.6


@dataclass(frozen=True, slots=True)
class Asked:
    """What a process saw that opened a store and asked it."""

    first_answer_s: float  # from the process's start
    seconds: Sequence[float]  # of each ATTUNE while nobody writes
    written_seconds: Sequence[float]  # of each with a RECORD before it: nothing that was kept for the next one is true
    anonymous_kb: int  # of memory that is no file's


def measure_scale(report: Report, work_dir: Path, *, sizes: Sequence[int] = SIZES) -> None:
    with tempfile.TemporaryDirectory(dir=work_dir) as directory:
        store = Path(directory) / "field.db"
        asked = _ask_at_sizes(report, store, sizes)
        if FAISS_UNITS in asked:
            _compare_with_faiss(report, store)
            _report_process(report, store.parent, asked[FAISS_UNITS])
        _compare_with_lancedb(report, store.parent, asked)
        _compare_with_mem0(report, store.parent, asked)


def _ask_at_sizes(report: Report, store: Path, sizes: Sequence[int]) -> dict[int, Asked]:
    asked: dict[int, Asked] = {}
    source, filled = rows(max(sizes)), 0
    for count in sizes:
        seconds = asyncio.run(_fill(store, itertools.islice(source, count - filled)))
        report.add(Figure(f"filling from {filled:,} to {count:,} units", (count - filled) / seconds, "/s"))
        filled = count
        asked[count] = _ask(store)
        for what, each in (("", asked[count].seconds), (" after a RECORD", asked[count].written_seconds)):
            for name, share in (("p50", 0.5), ("p95", 0.95)):
                report.add(Figure(f"ATTUNE{what} {name}, {count:,} units", percentile(each, share) * 1e3, "ms"))
    return asked


def _report_process(report: Report, directory: Path, asked: Asked) -> None:
    name = f"first answer after start, {FAISS_UNITS:,} units"
    report.add(Figure(name, asked.first_answer_s, "s", bar=FIRST_ANSWER_S_MAX, at_most=True))
    empty = directory / "empty.db"
    asyncio.run(_fill(empty, ()))
    kb_a_unit = (asked.anonymous_kb - _ask(empty).anonymous_kb) / FAISS_UNITS
    report.add(Figure(f"memory, {FAISS_UNITS:,} units", kb_a_unit, "kB a unit", bar=KB_A_UNIT_MAX, at_most=True))


def _compare_with_faiss(report: Report, store: Path) -> None:
    """In turn, so that a noisy minute meets both; the round with the median ratio counts."""
    rounds: list[tuple[Asked, list[float]]] = []
    with tempfile.TemporaryDirectory(dir=store.parent) as directory:
        vectors, queries = Path(directory) / "vectors.npy", Path(directory) / "queries.npy"
        count = asyncio.run(_write_vectors(store, vectors, queries))
        for _ in range(FAISS_ROUNDS):
            theirs = peer_seconds("faiss_scan", vectors, queries, count, SCANNED_MOST, work_dir=store.parent)
            rounds.append((_ask(store), theirs))
    rounds.sort(key=lambda each: percentile(each[0].seconds, 0.5) / percentile(each[1], 0.5))
    asked, theirs = rounds[FAISS_ROUNDS // 2]
    _report_ratio(report, FAISS_UNITS, asked, "faiss flat SQ8, one thread", theirs, FAISS_RATIO_MAX)


def _compare_with_lancedb(report: Report, directory: Path, asked: Mapping[int, Asked]) -> None:
    # The bar is on the scan that finds what ours finds. The index finds less, and is there to be seen.
    for vector_index, name, bar in (("flat", "exact", LANCEDB_RATIO_MAX), ("ivf_pq", "IVF-PQ", None)):
        theirs = _peer_search("lancedb_hybrid", directory, LANCEDB_UNITS, vector_index)
        _report_ratio(report, LANCEDB_UNITS, asked[LANCEDB_UNITS], f"LanceDB hybrid, {name}", theirs, bar)


def _compare_with_mem0(report: Report, directory: Path, asked: Mapping[int, Asked]) -> None:
    theirs = _peer_search("mem0_search", directory, MEM0_UNITS)
    for count in (MEM0_UNITS, LANCEDB_UNITS):  # ours has ten times as many there, and has to be as far ahead
        name = f"mem0 search, qdrant-local, {MEM0_UNITS:,}"
        _report_ratio(report, count, asked[count], name, theirs, MEM0_RATIO_MAX)


def _report_ratio(
    report: Report, count: int, asked: Asked, against: str, theirs: Sequence[float], bar: float | None
) -> None:
    ours_ms, theirs_ms = percentile(asked.seconds, 0.5) * 1e3, percentile(theirs, 0.5) * 1e3
    report.add(Figure(f"ATTUNE p50, {count:,} units", ours_ms, "ms", against, theirs_ms, bar, at_most=True))


# --- ours ------------------------------------------------------------------------------------------------------------


def _settings(store: Path) -> Settings:
    # Only what is given here: the variables of whoever runs it do not count.
    return load_settings(environ={}, given={"db": str(store), "detect_conflicts": False}).values


def _field(store: Path) -> Field:
    return Field(lambda: open_door(_settings(store)))


async def _fill(store: Path, source: Iterable[Row]) -> float:
    async with _field(store) as field:
        agents = [await field.agent(f"agent-{at}", role=ROLES[at % len(ROLES)], authority=10) for at in range(AGENTS)]
        shared = iter(source)  # each takes the next: no list of a million rows

        async def work(agent: Agent) -> None:
            for row in shared:
                await agent.record(
                    row.content,
                    type=row.type,
                    intent=row.purpose,
                    confidence=row.score,
                    reasoning=row.reasoning,
                    session_id=row.session,
                )

        started = time.perf_counter()
        await asyncio.gather(*(work(agent) for agent in agents))
        return time.perf_counter() - started


def _ask(store: Path) -> Asked:
    """In a process of its own, which has nothing else in its memory."""
    hints_file = store.with_name("hints.json")
    hints_file.write_text(json.dumps([*hints(WARMING_HINTS, seed=12), *hints(2 * HINTS)]), encoding="utf-8")
    command = [sys.executable, "-m", "benchmarks.scale", str(store), str(hints_file)]
    started = time.perf_counter()
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        child.stdout.readline()  # it has answered once
        first_answer_s = time.perf_counter() - started
        rest, _ = child.communicate(timeout=CHILD_TIMEOUT_S)
    if child.returncode != 0:
        raise RuntimeError(f"asking {store.name}: exit {child.returncode}")
    seen = json.loads(rest)
    return Asked(first_answer_s, **seen)


async def _answer(store: Path, asked: Sequence[str]) -> None:
    async with _field(store) as field:
        reader = await field.agent("reader", role="analyst")
        await reader.attune(asked[0], max_units=PAGE)
        print("answered", flush=True)
        writer = await field.agent("writer", role="writer", authority=10)
        await _seconds(reader, asked[1:WARMING_HINTS])
        timed, timed_after_writes = asked[WARMING_HINTS:-HINTS], asked[-HINTS:]
        seen = {
            "seconds": await _seconds(reader, timed),
            "written_seconds": await _seconds(reader, timed_after_writes, writer),
            "anonymous_kb": _anonymous_kb(),
        }
        print(json.dumps(seen))


async def _seconds(reader: Agent, asked: Sequence[str], writer: Agent | None = None) -> list[float]:
    seconds: list[float] = []
    for hint in asked:
        if writer is not None:
            await writer.record(hint, intent="keep what is asked", confidence=0.5, reasoning="it was about to be asked")
        started = time.perf_counter()
        await reader.attune(hint, max_units=PAGE)
        seconds.append(time.perf_counter() - started)
    return seconds


def _anonymous_kb() -> int:
    """Resident, and no copy of a file: what the page cache has, others may have as well."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Anonymous:"))


async def _write_vectors(store: Path, vectors_file: Path, queries_file: Path) -> int:
    """The store's own vectors, and those of the hints, as floats."""
    settings = _settings(store)
    opened = SqliteStore.open(store, FieldKey(settings.tenant, settings.field))
    (model,) = await opened.vectors.models()
    pieces = [piece async for piece in opened.vectors.scan(model.number)]
    await opened.close()
    count = sum(len(piece.seqs) for piece in pieces)
    vectors = np.lib.format.open_memmap(vectors_file, "w+", np.float32, (count, model.dimension))
    first = 0
    for piece in pieces:
        vectors[first : first + len(piece.seqs)] = piece.codes * piece.scales[:, np.newaxis]
        first += len(piece.seqs)
    vectors.flush()
    embedder = StaticEmbedder()
    np.save(queries_file, await embedder.embed(list(hints(HINTS))))
    await embedder.close()
    return count


# --- peers -----------------------------------------------------------------------------------------------------------


def _peer_search(module: str, directory: Path, count: int, *options: str) -> list[float]:
    rows_file, hints_file = directory / "rows.jsonl", directory / "hints.json"
    write_rows_file(rows_file, count)
    hints_file.write_text(json.dumps(list(hints(2 * WARMING_HINTS))), encoding="utf-8")
    with tempfile.TemporaryDirectory(dir=directory) as home:
        return peer_seconds(module, rows_file, hints_file, count, home, *options, work_dir=directory)


def peer_seconds(module: str, *arguments: object, work_dir: Path) -> list[float]:
    """What a module of `benchmarks.peers` printed, run in the peers' environment with the network refused."""
    guarded = [str(bench_python()), "-m", "benchmarks.peers.offline", f"benchmarks.peers.{module}"]
    with tempfile.TemporaryDirectory(dir=work_dir, prefix="peer-") as home:
        clean = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": home,
            "MEM0_DIR": home,
            "MEM0_TELEMETRY": "False",
        }
        ran = subprocess.run(
            [*guarded, *map(str, arguments)],
            cwd=ROOT,
            env=clean,
            capture_output=True,
            text=True,
            timeout=PEER_TIMEOUT_S,
            check=False,
        )
    if ran.returncode != 0:
        raise PeerFailed(f"{module}: exit {ran.returncode}\n{ran.stderr}")
    seconds: list[float] = json.loads(ran.stdout.splitlines()[-1])
    return seconds


if __name__ == "__main__":
    asyncio.run(_answer(Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))))
