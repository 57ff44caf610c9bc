"""RECORD: durable writes against the same rows written bare.

Bare means: the rows that our run left in the store, inserted into the same tables by a plain loop on one connection
with the same settings (WAL, synchronous=FULL), 100 RECORDs a commit, with everything prepared beforehand. What a bare
loop does not do, ours leaves out there too: no vectors, no looking for conflicts. What these cost is measured apart.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from pydoc_data.topics import topics
from typing import NamedTuple

import apsw

from benchmarks.corpus import AGENTS, Row, rows
from benchmarks.fields import WORDS_ONLY, Given, field_with
from benchmarks.figures import Figure, Report, median_rate
from fieldstone import Agent

RECORDS = 20_000
SEQUENTIAL = 1_000
ROUNDS = 3
ROWS_A_COMMIT = 100
TABLES = ("log", "texts", "units", "replies")
STATIC_SHARE_MIN = 0.6  # of the rate without vectors

EMBEDDED: Given = {"embedder": "static", "detect_conflicts": False}
AS_BY_DEFAULT: Given = {}


class Rates(NamedTuple):
    """Durable RECORDs by 64 concurrent agents, for the comparison with the peers. These get their vectors ready-made,
    so what making them costs is left out of the one, and is in the other."""

    without_vectors: float
    by_default: float


def measure_record(report: Report, work_dir: Path) -> Rates:
    data = list(rows(RECORDS))
    ours: dict[bool, list[tuple[int, float]]] = {True: [], False: []}
    bare: dict[bool, list[tuple[int, float]]] = {True: [], False: []}
    many: dict[bool, list[tuple[int, float]]] = {True: [], False: []}
    alone: list[tuple[int, float]] = []
    bare_alone: list[tuple[int, float]] = []
    for _, with_ids in itertools.product(range(ROUNDS), (True, False)):
        with tempfile.TemporaryDirectory(dir=work_dir) as directory:
            store = Path(directory) / "ours.db"
            ours[with_ids].append((RECORDS, asyncio.run(_together(store, data, WORDS_ONLY, with_ids=with_ids))))
            bare[with_ids].append((RECORDS, _bare(store, Path(directory) / "bare.db", at_once=False)))
            many[with_ids].append((RECORDS, _bare(store, Path(directory) / "many.db", at_once=True)))
            if not with_ids:
                alone.append((SEQUENTIAL, asyncio.run(_alone(store, data[:SEQUENTIAL]))))
                bare_alone.append((SEQUENTIAL, _bare_one_row(store, Path(directory) / "one.db")))
    for with_ids, what in ((True, "RECORD, 64 agents, remembered by id"), (False, "RECORD, 64 agents, no message id")):
        rate, limit = median_rate(ours[with_ids]), median_rate(bare[with_ids])
        report.add(Figure(what, rate, "/s", "the same rows bare, 100 a commit", limit, 0.5))
        report.add(Figure(what, rate, "/s", "the same rows by executemany", median_rate(many[with_ids])))
    report.add(
        Figure(
            "RECORD, one after the other",
            median_rate(alone),
            "/s",
            "bare one-row commits",
            median_rate(bare_alone),
            0.5,
        )
    )
    return Rates(median_rate(ours[True]), _measure_vectors_cost(report, work_dir, data))


def _measure_vectors_cost(report: Report, work_dir: Path, data: Sequence[Row]) -> float:
    """The rate as by default. What is new to the default embedder costs it more, and the words of our rows are no words
    of any language: its own cost is measured on English ones."""
    english = list(_in_english(data))
    ways = {
        "without vectors": (WORDS_ONLY, english),
        "static embedder": (EMBEDDED, english),
        "as by default": (AS_BY_DEFAULT, english),
        "made-up words": (AS_BY_DEFAULT, data),
    }
    runs: dict[str, list[tuple[int, float]]] = {name: [] for name in ways}
    for _, (name, (given, texts)) in itertools.product(range(ROUNDS), ways.items()):
        with tempfile.TemporaryDirectory(dir=work_dir) as directory:
            seconds = asyncio.run(_together(Path(directory) / "ours.db", texts, given, with_ids=True))
            runs[name].append((RECORDS, seconds))
    without, *others = ways
    limit = median_rate(runs[without])
    for name in others:
        bar = STATIC_SHARE_MIN if name == "static embedder" else None
        report.add(Figure(f"RECORD, 64 agents, {name}", median_rate(runs[name]), "/s", without, limit, bar))
    return median_rate(runs["made-up words"])


def _in_english(data: Sequence[Row]) -> Iterator[Row]:
    """The same rows with as many words as before, drawn from Python's own manual: as frequent as they are there."""
    manual = re.findall(r"[a-z]+", " ".join(topics.values()).lower())
    rng = random.Random(13)

    def translated(text: str) -> str:
        return " ".join(rng.choices(manual, k=len(text.split())))

    for row in data:
        yield replace(
            row,
            content=translated(row.content),
            purpose=translated(row.purpose),
            reasoning=translated(row.reasoning),
        )


async def _together(store: Path, data: Sequence[Row], given: Given, *, with_ids: bool) -> float:
    async with field_with(store, given) as field:
        agents = [await field.agent(f"agent-{at}", role="worker", authority=10) for at in range(AGENTS)]
        await _record(agents[0], data[0], None)  # the redaction rules are loaded
        numbers = itertools.count()

        async def work(agent: Agent, share: Sequence[Row]) -> None:
            for row in share:
                await _record(agent, row, f"message-{next(numbers)}" if with_ids else None)

        started = time.perf_counter()
        await asyncio.gather(*(work(agent, data[at::AGENTS]) for at, agent in enumerate(agents)))
        return time.perf_counter() - started


async def _alone(store: Path, data: Sequence[Row]) -> float:
    async with field_with(store, WORDS_ONLY) as field:
        agent = await field.agent("agent-0", role="worker", authority=10)
        await _record(agent, data[0], None)
        started = time.perf_counter()
        for row in data:
            await _record(agent, row, None)
        return time.perf_counter() - started


async def _record(agent: Agent, row: Row, message_id: str | None) -> None:
    await agent.record(
        row.content,
        type=row.type,
        intent=row.purpose,
        confidence=row.score,
        reasoning=row.reasoning,
        session_id=row.session,
        id=message_id,
    )


def _bare(store: Path, path: Path, *, at_once: bool) -> float:
    source, target = _copy_schema(store, path)
    found = {table: list(source.execute(f"SELECT * FROM {table} ORDER BY 1")) for table in TABLES}
    inserts = {table: _insert(table, table_rows[0]) for table, table_rows in found.items() if table_rows}
    started = time.perf_counter()
    for first in range(0, RECORDS, ROWS_A_COMMIT):
        target.execute("BEGIN IMMEDIATE")
        for table, insert in inserts.items():
            batch = found[table][first : first + ROWS_A_COMMIT]
            if at_once:
                target.executemany(insert, batch)
            else:
                for row in batch:
                    target.execute(insert, row)
        target.execute("COMMIT")
    seconds = time.perf_counter() - started
    source.close()
    target.close()
    return seconds


def _bare_one_row(store: Path, path: Path) -> float:
    source, target = _copy_schema(store, path)
    found = list(source.execute("SELECT * FROM log ORDER BY 1 LIMIT ?", (SEQUENTIAL,)))
    insert = _insert("log", found[0])
    started = time.perf_counter()
    for row in found:
        target.execute("BEGIN IMMEDIATE")
        target.execute(insert, row)
        target.execute("COMMIT")
    seconds = time.perf_counter() - started
    source.close()
    target.close()
    return seconds


def _copy_schema(store: Path, path: Path) -> tuple[apsw.Connection, apsw.Connection]:
    source, target = apsw.Connection(str(store)), apsw.Connection(str(path))
    target.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL")
    ours = "sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"  # SQLite makes its own tables by itself
    for (statement,) in source.execute(f"SELECT sql FROM sqlite_schema WHERE {ours} ORDER BY rowid"):
        target.execute(statement)
    return source, target


def _insert(table: str, row: Sequence[object]) -> str:
    return f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})"
