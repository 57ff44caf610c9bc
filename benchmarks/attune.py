"""ATTUNE by words at 100,000 units against the bare FTS5 query with the same pruned terms; and a start on them.

With vectors it is measured in `scale`: a full-text query has nothing to compare them with.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import apsw

from benchmarks.corpus import AGENTS, ROLES, hints, rows
from benchmarks.fields import WORDS_ONLY, field_with
from benchmarks.figures import Figure, Report, percentile
from fieldstone.backends.analysis import Analyzer
from fieldstone.field.ranking import LEAST_POSTINGS, POSTINGS_SHARE
from fieldstone.ports.text_index import prune
from fieldstone.retrieval.words import Query

UNITS = 100_000
HINTS = 300
START_TIMEOUT_S = 60
PAGE = 20


def measure_attune(report: Report, work_dir: Path) -> None:
    with tempfile.TemporaryDirectory(dir=work_dir) as directory:
        store = Path(directory) / "field.db"
        asked = list(hints(HINTS))
        asyncio.run(_fill(store))
        bare = _bare(Path(directory) / "bare.db", asked)
        ours = asyncio.run(_attune(store, asked))
        for name, share in (("p50", 0.5), ("p95", 0.95)):
            report.add(
                Figure(
                    f"ATTUNE by words, {name}, {UNITS:,} units",
                    percentile(ours, share) * 1e3,
                    "ms",
                    "bare FTS5, same terms",
                    percentile(bare, share) * 1e3,
                    2.0 if name == "p50" else None,
                    at_most=True,
                )
            )
        report.add(Figure(f"server start, {UNITS:,} units", _start(store), "s", bar=2.0, at_most=True))


async def _fill(store: Path) -> None:
    async with field_with(store, WORDS_ONLY) as field:
        agents = [await field.agent(f"agent-{at}", role=ROLES[at % len(ROLES)], authority=10) for at in range(AGENTS)]
        data = list(rows(UNITS))

        async def work(at: int) -> None:
            for row in data[at::AGENTS]:
                await agents[at].record(
                    row.content, type=row.type, intent=row.purpose, confidence=row.score, reasoning=row.reasoning
                )

        await asyncio.gather(*(work(at) for at in range(AGENTS)))


async def _attune(store: Path, asked: Sequence[str]) -> list[float]:
    seconds: list[float] = []
    async with field_with(store, WORDS_ONLY) as field:
        reader = await field.agent("reader", role="analyst")
        for _ in range(2):  # the first round warms caches, as a server's would be
            seconds = []
            for hint in asked:
                started = time.perf_counter()
                await reader.attune(hint, max_units=PAGE)
                seconds.append(time.perf_counter() - started)
    return seconds


def _bare(path: Path, asked: Sequence[str]) -> list[float]:
    """What anyone would write: a contentless FTS5 table with Porter stems, ranked by bm25, the best 20."""
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute(
        "CREATE VIRTUAL TABLE bare USING fts5(text, content='', tokenize='porter unicode61 remove_diacritics 2')"
    )
    connection.execute("CREATE VIRTUAL TABLE vocabulary USING fts5vocab(bare, 'row')")
    with connection:
        connection.executemany(
            "INSERT INTO bare (rowid, text) VALUES (?, ?)",
            ((at, f"{row.content}\n{row.purpose}") for at, row in enumerate(rows(UNITS), start=1)),
        )
    frequencies = dict(connection.execute("SELECT term, doc FROM vocabulary"))
    queries = [_pruned(hint, frequencies) for hint in asked]
    seconds: list[float] = []
    for _ in range(2):
        seconds = []
        for query in queries:
            started = time.perf_counter()
            connection.execute(
                "SELECT rowid, rank FROM bare WHERE bare MATCH ? ORDER BY rank LIMIT ?", (query, PAGE)
            ).fetchall()
            seconds.append(time.perf_counter() - started)
    connection.close()
    return seconds


def _pruned(hint: str, frequencies: dict[str, int]) -> str:
    query = Query([hint], Analyzer().terms)
    known = {term: frequencies.get(term, 0) for term in query.words}
    kept = prune(known, max(LEAST_POSTINGS, int(UNITS * POSTINGS_SHARE)))
    return " OR ".join(f'"{query.words[term]}"' for term in kept)


def _start(store: Path) -> float:
    command = [sys.executable, "-m", "fieldstone", "serve", "--db", str(store), "--port", "18420"]
    started = time.perf_counter()
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while time.perf_counter() - started < START_TIMEOUT_S:
            try:
                with urllib.request.urlopen("http://127.0.0.1:18420/readyz", timeout=1):
                    return time.perf_counter() - started
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.005)
    finally:
        server.terminate()
        server.wait(timeout=30)
    raise TimeoutError("the server did not become ready")
