"""RECORD: durable writes against the same rows written bare.

Bare means: the rows that our run left, inserted into the same tables by a plain loop, 100 RECORDs a commit, with
everything prepared beforehand (`bare_rows`). A RECORD leaves rows in the store and, a little later, in the full-text
table beside it; the loop writes as many of those as our run had when it was over. What a bare loop does not do, ours
leaves out there too: no vectors, no looking for conflicts. What these cost is measured apart.
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
from typing import Final, NamedTuple

from benchmarks.bare_rows import seconds_one_by_one, seconds_together
from benchmarks.corpus import AGENTS, Row, rows
from benchmarks.fields import WORDS_ONLY, Given, field_with
from benchmarks.figures import Figure, Report, median_rate
from fieldstone import Agent

RECORDS = 20_000
SEQUENTIAL = 1_000
ROUNDS = 5
VECTORS_ROUNDS = 11  # what vectors cost is less than what a noisy minute does: taken in turn, so that it meets all
STATIC_SHARE_MIN = 0.6  # of the rate without vectors
# What ours is compared with, and the bar.
BARE: Final = {
    "the same rows bare, 100 a commit": 0.5,
    "the same rows by executemany": None,
    "the same rows bare, without those of the full-text table": None,
}

EMBEDDED: Given = {"embedder": "static", "detect_conflicts": False}
AS_BY_DEFAULT: Given = {}


class Rates(NamedTuple):
    """Durable RECORDs by 64 concurrent agents, for the comparison with the peers. These get their vectors ready-made,
    so what making them costs is left out of the one, and is in the other."""

    without_vectors: float
    by_default: float


class Ran(NamedTuple):
    seconds: float
    indexed: int  # RECORDs that were in the full-text table when the last one was answered


def measure_record(report: Report, work_dir: Path) -> Rates:
    data = list(rows(RECORDS))
    runs: dict[tuple[bool, str], list[tuple[int, float]]] = {}
    for _, with_ids in itertools.product(range(ROUNDS), (True, False)):
        with tempfile.TemporaryDirectory(dir=work_dir) as directory:
            for what, seconds in _against_bare(Path(directory), data, with_ids=with_ids):
                runs.setdefault((with_ids, what), []).append((RECORDS, seconds))
    for with_ids, what in ((True, "RECORD, 64 agents, remembered by id"), (False, "RECORD, 64 agents, no message id")):
        rate = median_rate(runs[with_ids, "ours"])
        for against, bar in BARE.items():
            report.add(Figure(what, rate, "/s", against, median_rate(runs[with_ids, against]), bar))
    _measure_alone(report, work_dir, data[:SEQUENTIAL])
    return Rates(median_rate(runs[True, "ours"]), _measure_vectors_cost(report, work_dir, data))


def _against_bare(directory: Path, data: Sequence[Row], *, with_ids: bool) -> Iterator[tuple[str, float]]:
    store = directory / "ours.db"
    ours = asyncio.run(_together(store, data, WORDS_ONLY, with_ids=with_ids))
    yield "ours", ours.seconds
    every, by_many, stored = BARE
    yield every, seconds_together(store, directory / "every.db", RECORDS, indexed=ours.indexed)
    yield by_many, seconds_together(store, directory / "many.db", RECORDS, indexed=ours.indexed, at_once=True)
    yield stored, seconds_together(store, directory / "stored.db", RECORDS)


def _measure_alone(report: Report, work_dir: Path, data: Sequence[Row]) -> None:
    alone, bare = [], []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory(dir=work_dir) as directory:
            store = Path(directory) / "ours.db"
            alone.append((SEQUENTIAL, asyncio.run(_alone(store, data))))
            bare.append((SEQUENTIAL, seconds_one_by_one(store, Path(directory) / "one.db", SEQUENTIAL)))
    rate, limit = median_rate(alone), median_rate(bare)
    report.add(Figure("RECORD, one after the other", rate, "/s", "bare one-row commits", limit, 0.5))


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
    for _, (name, (given, texts)) in itertools.product(range(VECTORS_ROUNDS), ways.items()):
        with tempfile.TemporaryDirectory(dir=work_dir) as directory:
            ran = asyncio.run(_together(Path(directory) / "ours.db", texts, given, with_ids=True))
            runs[name].append((RECORDS, ran.seconds))
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


async def _together(store: Path, data: Sequence[Row], given: Given, *, with_ids: bool) -> Ran:
    async with field_with(store, given) as field:
        agents = [await field.agent(f"agent-{at}", role="worker", authority=10) for at in range(AGENTS)]
        await _record(agents[0], data[0], None)  # the redaction rules are loaded
        numbers = itertools.count()

        async def work(agent: Agent, share: Sequence[Row]) -> None:
            for row in share:
                await _record(agent, row, f"message-{next(numbers)}" if with_ids else None)

        started = time.perf_counter()
        await asyncio.gather(*(work(agent, data[at::AGENTS]) for at, agent in enumerate(agents)))
        seconds = time.perf_counter() - started
        status = await field.status()
        names = status.log_entries - len(data)  # agents and sessions, which the text index does not hold
        return Ran(seconds, max(0, status.text_index_position - names))


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
