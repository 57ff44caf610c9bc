"""COMPACT: units a second against the same row changes done bare, and how long a RECORD waits meanwhile."""

from __future__ import annotations

import asyncio
import gc
import itertools
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import apsw

from benchmarks.corpus import Row, rows
from benchmarks.fields import WORDS_ONLY
from benchmarks.figures import Figure, Report, percentile
from fieldstone.backends.analysis import TOKENIZER
from fieldstone.backends.sqlite.connection import open_writer
from fieldstone.backends.sqlite.log import SQL
from fieldstone.core.replies import Accepted, Compacted
from fieldstone.core.requests import Compact, CompactFilter, Message, Record, Register
from fieldstone.core.units import Confidence, Intent
from fieldstone.core.vocabulary import Strategy
from fieldstone.field.field import LocalField
from fieldstone.servers.http.serve import SWITCH_S
from fieldstone.settings import load_settings
from fieldstone.testing.rows import unit_row
from fieldstone.wiring import open_local_field

UNITS = 30_000
LARGE_UNITS = 100_000
AT_ONCE = 256
BARE_AT_ONCE = 1_000
QUIET_S = 10.0  # before, and once more after: of a few seconds alone the slowest hundredth is anybody's guess
PAUSE_S = 0.005
OPERATOR = "operator"
STRATEGIES: tuple[Strategy, ...] = ("archive", "summarize", "purge")
DONE: dict[Strategy, str] = {"archive": "archived", "summarize": "summarized", "purge": "purged"}
BARS: dict[Strategy, float] = {"archive": 0.5, "purge": 0.5}
SUMMARIZED_PER_S_MIN = 2_000.0
P99_MOST = 2.0


def measure_compaction(report: Report, work_dir: Path, *, large: bool = True) -> None:
    asyncio.run(_rates(report, work_dir))
    for strategy in STRATEGIES:
        asyncio.run(_waits(report, work_dir, strategy, LARGE_UNITS if large else UNITS))


async def _rates(report: Report, work_dir: Path) -> None:
    field = await _filled(work_dir / "compact.db", UNITS)
    for at, strategy in enumerate(STRATEGIES):
        session = f"part {at}"
        started = time.perf_counter()
        answer = await _compact(field, strategy, session)
        rate = answer.units_affected / (time.perf_counter() - started)
        if strategy == "summarize":
            report.add(Figure("COMPACT summarize", rate, "units/s", bar=SUMMARIZED_PER_S_MIN))
        else:
            bare = _bare(work_dir / f"bare-{strategy}.db", answer.units_affected, moves=strategy == "archive")
            name = f"COMPACT {strategy}"
            report.add(Figure(name, rate, "units/s", "the same rows bare", bare, BARS[strategy]))
    await field.close()


async def _waits(report: Report, work_dir: Path, strategy: Strategy, units: int) -> None:
    field = await _filled(work_dir / f"waits-{strategy}.db", units)
    for row in rows(2):
        await _record(field, row, "first")
    await _compact(field, "summarize", "first")  # what the first one loads, a server has loaded when it starts
    with _as_served():
        quiet = await _probes(field, asyncio.ensure_future(asyncio.sleep(QUIET_S)))
        busy = await _probes(field, asyncio.ensure_future(_compact(field, strategy, None)))
        quiet += await _probes(field, asyncio.ensure_future(asyncio.sleep(QUIET_S)))
    beside = f"while {units:,} units are {DONE[strategy]}"
    report.add(_beside(f"RECORD p99 {beside}", [each.taken_s for each in busy], [each.taken_s for each in quiet]))
    report.add(
        _beside(
            f"RECORD p99 from when it was due, {beside}",
            [each.since_due_s for each in busy],
            [each.since_due_s for each in quiet],
        )
    )
    report.add(
        Figure(f"longest RECORD {beside}", max(each.taken_s for each in busy) * 1e3, "ms", bar=50.0, at_most=True)
    )
    await field.close()


def _beside(name: str, busy: list[float], quiet: list[float]) -> Figure:
    with_it, without = percentile(busy, 0.99) * 1e3, percentile(quiet, 0.99) * 1e3
    return Figure(name, with_it, "ms", "p99 without", without, P99_MOST, at_most=True)


@contextmanager
def _as_served() -> Iterator[None]:
    """What a server does for those who wait: what is loaded stays where it is, and threads take turns more often."""
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
    sys.setswitchinterval(before_s)


async def _filled(store: Path, count: int) -> LocalField:
    settings = load_settings(environ={}, given={"db": str(store), **WORDS_ONLY}).values
    field = await open_local_field(settings)
    await field.send(Message("REGISTER", OPERATOR, Register(OPERATOR, "operator", authority=10)))
    batch: list[asyncio.Future[object]] = []
    for at, row in enumerate(rows(count)):
        batch.append(asyncio.ensure_future(_record(field, row, f"part {at * 3 // count}")))
        if len(batch) == AT_ONCE:
            await asyncio.gather(*batch)
            batch = []
    await asyncio.gather(*batch)
    return field


async def _record(field: LocalField, row: Row, session: str | None) -> Accepted:
    request = Record("committed", row.type, row.content, Intent(row.purpose), Confidence(row.score, row.reasoning))
    answer = await field.send(Message("RECORD", OPERATOR, request, session_id=session))
    assert isinstance(answer, Accepted)
    return answer


async def _compact(field: LocalField, strategy: Strategy, session: str | None) -> Compacted:
    wanted = CompactFilter(session_id=session) if session else CompactFilter(status=("active",))  # all of them
    answer = await field.send(Message("COMPACT", OPERATOR, Compact(strategy, wanted, verify=False)))
    assert isinstance(answer, Compacted)
    return answer


class Probe(NamedTuple):
    taken_s: float  # from the call to the answer
    since_due_s: float  # and with what the loop had to do before the call could be made


async def _probes(field: LocalField, meanwhile: asyncio.Future[object]) -> list[Probe]:
    """RECORDs at the same pace, as long as something else goes on: after a pause each one is slower than in a row."""
    probes: list[Probe] = []
    for row in itertools.cycle(list(rows(1_000, seed=1))):
        if meanwhile.done():
            break
        due = time.perf_counter() + PAUSE_S
        await asyncio.sleep(PAUSE_S)
        called = time.perf_counter()
        await _record(field, row, "probes")
        answered = time.perf_counter()
        probes.append(Probe(answered - called, answered - due))
    await meanwhile
    return probes


def _bare(path: Path, count: int, *, moves: bool) -> float:
    """The same rows in one file and nothing else: texts and unit rows moved to other tables, or texts deleted and unit
    rows changed, and words likewise, in transactions of 1,000."""
    connection = open_writer(path)
    texts = [(at, b"salt of 16 bytes", row.content.encode()) for at, row in enumerate(rows(count))]
    connection.execute("CREATE TABLE cold (position INTEGER PRIMARY KEY, salt BLOB, body BLOB)")
    connection.execute("CREATE TABLE cold_units AS SELECT * FROM units")
    connection.execute("CREATE UNIQUE INDEX cold_units_by_id ON cold_units (id)")
    for table in ("hot_words", "cold_words"):
        columns = f"text, content='', contentless_delete=1, detail=none, tokenize='{TOKENIZER}'"
        connection.execute(f"CREATE VIRTUAL TABLE {table} USING fts5({columns})")
    with connection:
        connection.executemany("INSERT INTO texts (position, salt, body) VALUES (?, ?, ?)", texts)
        connection.executemany(SQL["put_unit"], [unit_row(at) for at in range(count)])
        words = [(at, body.decode()) for at, _, body in texts]
        connection.executemany("INSERT INTO hot_words (rowid, text) VALUES (?, ?)", words)
    started = time.perf_counter()
    for start in range(0, count, BARE_AT_ONCE):
        _bare_step(connection, texts[start : start + BARE_AT_ONCE], moves=moves)
    seconds = time.perf_counter() - started
    connection.close()
    return count / seconds


def _bare_step(connection: apsw.Connection, texts: list[tuple[int, bytes, bytes]], *, moves: bool) -> None:
    seqs = [(at,) for at, _, _ in texts]
    with connection:
        if moves:
            connection.executemany("INSERT INTO cold (position, salt, body) VALUES (?, ?, ?)", texts)
            words = [(at, body.decode()) for at, _, body in texts]
            connection.executemany("INSERT INTO cold_words (rowid, text) VALUES (?, ?)", words)
        connection.executemany("DELETE FROM texts WHERE position = ?", seqs)
        connection.executemany("DELETE FROM hot_words WHERE rowid = ?", seqs)
        if moves:
            connection.executemany("UPDATE units SET archived_epoch = 1 WHERE position = ?", seqs)
            connection.executemany("INSERT INTO cold_units SELECT * FROM units WHERE position = ?", seqs)
            connection.executemany("DELETE FROM units WHERE position = ?", seqs)
        else:
            connection.executemany("UPDATE units SET purged_seq = 1 WHERE position = ?", seqs)
