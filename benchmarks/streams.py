"""The transport log: durable appends and replay against the same rows written and read bare, and against a peer.

Bare means: the same events encoded by the same encoder, one row each, in a plain loop on one connection with the same
settings (WAL, synchronous=FULL), 100 a commit; and for replay the same rows read in one go and decoded.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import re
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from pydoc_data.topics import topics
from typing import NamedTuple

import apsw
import msgspec

from benchmarks.figures import Figure, Report, median_rate
from benchmarks.peers import measure_peer
from benchmarks.peers.environment import bench_python
from fieldstone.backends.sqlite.planes import SqlitePlanes
from fieldstone.backends.system import SystemClock
from fieldstone.core.streams import MAX_READ_EVENTS, TEXT_DELTA, StreamEvent
from fieldstone.planes.streams import Streams
from fieldstone.ports.planes import EventBlock, EventRow, PlaneStore, ReadTables, StreamRow, Tables
from fieldstone.redact import Harness, shared_harness

DELTAS = 50_000
PEER_DELTAS = 20_000
BATCH = 100
ROUNDS = 5
PEER = "benchmarks.peers.eventsourcing_run"

SHORT, LONG = 1_000, 1_000_000
FILLED_AT_ONCE = 1_000
MISSED = 100
RECONNECTS = 300
DELETED_AT_ONCE = 1_000
PAUSE_S = 0.002  # between two looks: one that is always waiting would only measure itself
LONGEST_WAIT_MS = 50.0

STREAM = "run:benchmark"
NOW_MS = 1_750_000_000_000


class Timed(NamedTuple):
    events: int
    append_s: float
    replay_s: float


def measure_streams(report: Report, work_dir: Path, *, large: bool = True, peer_python: Path | None = None) -> None:
    """`peer_python`: an interpreter that has the peer, where it is not the one of `.venv-bench`."""
    events = [StreamEvent(TEXT_DELTA, {"delta": delta}) for delta in _deltas(DELTAS)]
    python = peer_python or bench_python()
    ways: dict[str, Callable[[Path], Timed]] = {
        "ours": lambda folder: asyncio.run(_ours(folder / "field.db", events)),
        "store": lambda folder: asyncio.run(_store_alone(folder / "field.db", events)),
        "bare": lambda folder: _bare(folder / "bare.db", events),
        "peer": lambda folder: _peer(folder, python),
    }
    times: dict[str, list[Timed]] = {name: [] for name in ways}
    for _, (name, way) in itertools.product(range(ROUNDS), ways.items()):
        with tempfile.TemporaryDirectory(dir=work_dir) as directory:
            times[name].append(way(Path(directory)))
    appends = {name: median_rate([(timed.events, timed.append_s) for timed in runs]) for name, runs in times.items()}
    replays = {name: median_rate([(timed.events, timed.replay_s) for timed in runs]) for name, runs in times.items()}
    _report(report, f"append, {BATCH} text-deltas a call", appends, bare_bar=None, peer_bar=2.0)
    _report(report, "replay", replays, bare_bar=0.5, peer_bar=5.0)
    _measure_long_streams(report, work_dir, LONG if large else LONG // 10)


def _report(report: Report, what: str, rates: dict[str, float], *, bare_bar: float | None, peer_bar: float) -> None:
    bare = "the same rows bare"
    report.add(Figure(f"{what}, redaction on", rates["ours"], "/s", bare, rates["bare"], bare_bar))
    report.add(Figure(f"{what}, redaction on", rates["ours"], "/s", "eventsourcing", rates["peer"], peer_bar))
    report.add(Figure(f"{what}, the store alone", rates["store"], "/s", bare, rates["bare"]))


def _peer(folder: Path, python: Path) -> Timed:
    deltas_file = folder / "deltas.jsonl"
    deltas_file.write_text("".join(json.dumps(delta) + "\n" for delta in _deltas(PEER_DELTAS)))
    append_s, replay_s = (
        measure_peer(python, PEER, deltas_file, PEER_DELTAS, (what,), work_dir=folder).seconds
        for what in ("append", "replay")
    )
    return Timed(PEER_DELTAS, append_s, replay_s)


def _deltas(count: int) -> list[str]:
    """A word each, as models stream them, as frequent as in Python's own manual."""
    words = re.findall(r"\S+", " ".join(topics.values()))
    rng = random.Random(13)
    return [f" {word}" for word in rng.choices(words, k=count)]


# --- append and replay -----------------------------------------------------------------------------------------------


async def _ours(path: Path, events: Sequence[StreamEvent]) -> Timed:
    harness = shared_harness()

    async def cleaning() -> Harness:
        return harness

    async with _opened(path) as store:
        streams = Streams(store, cleaning, SystemClock())
        await streams.append("run:warm", events[:BATCH])  # the redaction rules are loaded
        started = time.perf_counter()
        for first in range(0, len(events), BATCH):
            await streams.append(STREAM, events[first : first + BATCH])
        appended = time.perf_counter()
        count = after = 0
        while page := (await streams.read(STREAM, after=after, limit=MAX_READ_EVENTS)).events:
            count += len(page)
            after = page[-1].seq
        replayed = time.perf_counter()
        await streams.close()
    _expect(count, len(events))
    return Timed(count, appended - started, replayed - appended)


async def _store_alone(path: Path, events: Sequence[StreamEvent]) -> Timed:
    """No cleaning, and no answer made of what was stored."""
    async with _opened(path) as store:
        await store.write(partial(_append, "run:warm", events[:BATCH]))
        started = time.perf_counter()
        for first in range(0, len(events), BATCH):
            await store.write(partial(_append, STREAM, events[first : first + BATCH]))
        appended = time.perf_counter()
        count = 0
        while blocks := await _read(store, after=count):
            count += sum(len(_list_decoder.decode(block.bodies)) for block in blocks)
        replayed = time.perf_counter()
    _expect(count, len(events))
    return Timed(count, appended - started, replayed - appended)


def _bare(path: Path, events: Sequence[StreamEvent]) -> Timed:
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE events (seq INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, body BLOB NOT NULL)")
    started = time.perf_counter()
    for first in range(0, len(events), BATCH):
        connection.execute("BEGIN IMMEDIATE")
        for seq, event in enumerate(events[first : first + BATCH], first + 1):
            connection.execute("INSERT INTO events VALUES (?, ?, ?)", (seq, NOW_MS, _encoder.encode(event)))
        connection.execute("COMMIT")
    appended = time.perf_counter()
    rows = connection.execute("SELECT seq, at_ms, body FROM events ORDER BY seq")
    count = len([(seq, at_ms, _decoder.decode(body)) for seq, at_ms, body in rows])
    replayed = time.perf_counter()
    connection.close()
    _expect(count, len(events))
    return Timed(count, appended - started, replayed - appended)


def _append(stream: str, events: Sequence[StreamEvent], tables: Tables) -> None:
    held = tables.stream(stream) or StreamRow(stream)
    tables.put_stream(held._replace(active_ms=NOW_MS))
    rows = [EventRow(seq, NOW_MS, _encoder.encode(event)) for seq, event in enumerate(events, held.head + 1)]
    tables.put_events(stream, rows)


async def _read(store: PlaneStore, *, after: int) -> list[EventBlock]:
    return await store.read(lambda tables: tables.event_blocks(STREAM, after=after, limit=MAX_READ_EVENTS))


@asynccontextmanager
async def _opened(path: Path) -> AsyncIterator[PlaneStore]:
    planes = SqlitePlanes(path)
    yield planes.open("acme/research")
    await planes.close()


def _expect(found: int, expected: int) -> None:
    if found != expected:
        raise SystemExit(f"{found} events were read, {expected} expected")


# --- long streams ----------------------------------------------------------------------------------------------------


def _measure_long_streams(report: Report, work_dir: Path, length: int) -> None:
    with tempfile.TemporaryDirectory(dir=work_dir) as directory:
        asyncio.run(_measure_long(report, Path(directory) / "field.db", length))


async def _measure_long(report: Report, path: Path, length: int) -> None:
    events = [StreamEvent(TEXT_DELTA, {"delta": delta}) for delta in _deltas(FILLED_AT_ONCE)]
    async with _opened(path) as store:
        for stream, count in (("run:short", SHORT), (STREAM, length)):
            for _ in range(0, count, FILLED_AT_ONCE):
                await store.write(partial(_append, stream, events))
        short, long = await _reconnect_ms(store, "run:short", SHORT), await _reconnect_ms(store, STREAM, length)
        name = f"reconnect with {MISSED} missed, history of {length:,}"
        report.add(Figure(name, long, "ms", f"of {SHORT:,}", short, 1.5, at_most=True))
        waits = await _truncate(store, length, events)
    for what, waited in waits.items():
        name = f"longest wait of {what} while {length:,} events are truncated"
        report.add(Figure(name, max(waited), "ms", bar=LONGEST_WAIT_MS, at_most=True))


async def _reconnect_ms(store: PlaneStore, stream: str, head: int) -> float:
    times = []
    for _ in range(RECONNECTS):
        started = time.perf_counter()
        rows = await store.read(lambda tables: tables.events(stream, after=head - MISSED, limit=MAX_READ_EVENTS))
        times.append((time.perf_counter() - started) * 1e3)
        _expect(len(rows), MISSED)
    return statistics.median(times)


async def _truncate(store: PlaneStore, length: int, events: Sequence[StreamEvent]) -> dict[str, list[float]]:
    """How long each append and each read beside it took, in ms."""
    done = asyncio.Event()

    async def watch(look: Callable[[], Awaitable[object]]) -> list[float]:
        times = [0.0]
        while not done.is_set():
            started = time.perf_counter()
            await look()
            times.append((time.perf_counter() - started) * 1e3)
            await asyncio.sleep(PAUSE_S)
        return times

    appending = asyncio.create_task(watch(lambda: store.write(partial(_append, "run:live", events[:BATCH]))))
    reading = asyncio.create_task(watch(lambda: store.read(_first_events)))
    await store.write(lambda tables: tables.put_stream(StreamRow(STREAM, length, length, active_ms=NOW_MS)))
    while await store.write(lambda tables: tables.delete_events(STREAM, limit=DELETED_AT_ONCE)):
        pass
    done.set()
    return {"an append": await appending, "a read": await reading}


def _first_events(tables: ReadTables) -> list[EventRow]:
    return tables.events("run:short", after=0, limit=MISSED)


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(StreamEvent)
_list_decoder = msgspec.json.Decoder(list[StreamEvent])
