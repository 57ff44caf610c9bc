"""RECORD: durable writes against the same rows written bare.

Bare means: the rows that our run left in the store, inserted into the same tables by a plain loop on one connection
with the same settings (WAL, synchronous=FULL), 100 RECORDs a commit, with everything prepared beforehand.
"""

from __future__ import annotations

import asyncio
import itertools
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import apsw

from benchmarks.corpus import AGENTS, Row, rows
from benchmarks.figures import Figure, Report, median_rate
from fieldstone import Agent, open_field

RECORDS = 20_000
SEQUENTIAL = 1_000
ROUNDS = 3
ROWS_A_COMMIT = 100
TABLES = ("log", "texts", "units", "replies")


def measure_record(report: Report, work_dir: Path) -> float:
    """The rate of durable RECORDs by 64 concurrent agents, for the comparison with the peers."""
    data = list(rows(RECORDS))
    ours: dict[bool, list[tuple[int, float]]] = {True: [], False: []}
    bare: dict[bool, list[tuple[int, float]]] = {True: [], False: []}
    many: dict[bool, list[tuple[int, float]]] = {True: [], False: []}
    alone: list[tuple[int, float]] = []
    bare_alone: list[tuple[int, float]] = []
    for _, with_ids in itertools.product(range(ROUNDS), (True, False)):
        with tempfile.TemporaryDirectory(dir=work_dir) as directory:
            store = Path(directory) / "ours.db"
            ours[with_ids].append((RECORDS, asyncio.run(_together(store, data, with_ids=with_ids))))
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
    return median_rate(ours[True])


async def _together(store: Path, data: Sequence[Row], *, with_ids: bool) -> float:
    async with open_field(store) as field:
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
    async with open_field(store) as field:
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
    for (statement,) in source.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid"):
        target.execute(statement)
    return source, target


def _insert(table: str, row: Sequence[object]) -> str:
    return f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})"
