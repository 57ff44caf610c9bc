"""Runs and threads: what must not grow with their history, and who must not wait for whom. Redaction is on.

What is compared is taken in turns on stores of their own, a long one and a short one: what else the machine does hits
both alike. Everything goes the way of a user: through streams, runs, transcript and delivery, not to the store itself.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.figures import Figure, Report, percentile
from fieldstone.backends.sqlite.planes import SqlitePlanes
from fieldstone.backends.system import SystemClock, SystemIds
from fieldstone.core.streams import MAX_READ_EVENTS, STEP_FINISHED, TEXT_DELTA, USER_MESSAGE, StreamEvent
from fieldstone.planes.delivery import Delivery, ReplayEnd, Subscription
from fieldstone.planes.runs import ForkPoint, Runs
from fieldstone.planes.snapshots import replayed, take_snapshot
from fieldstone.planes.streams import Streams
from fieldstone.planes.transcript import Transcript
from fieldstone.ports.planes import PlaneStore
from fieldstone.redact import Harness, shared_harness

GROWTH_MAX = 1.5  # of what must not grow
TIMES = 200

SHORT_LOG, LONG_LOG = 1_000, 1_000_000
APPENDED_AT_ONCE = 1_000
MISSED = 100
STATE_BYTES_MAX = 10_000

SHORT_THREAD, LONG_THREAD = 1_000, 100_000
PAGE = 100
PROMPT = 20  # messages that are read after a switch
FEW_BRANCHES, MANY_BRANCHES = 10, 1_000

PROCESSES = 4
APPENDS = 300

WAIT_MS_MAX = 50.0
QUIET_S = 5.0
PAUSE_S = 0.002  # between two looks: one that is always waiting would only measure itself
MESSAGE_DELTAS = 1_000

SUBSCRIBERS, STALLED = 1_000, 100
TOLD = 100  # appends
TOLD_AT_ONCE = 10
TOLD_EVERY_S = 0.02
STALLED_QUEUE_EVENTS = 650  # who stalls is cut off when two thirds are told
ROUNDS = 3
P99_MOST = 2.0

STREAM, THREAD = "run:benchmark", "benchmark"
SCOPE = "acme/research"

Look = Callable[[], Awaitable[object]]


class Planes(NamedTuple):
    """One store as one process has it open."""

    store: PlaneStore
    streams: Streams
    runs: Runs
    transcript: Transcript


def measure_threads(report: Report, work_dir: Path, *, large: bool = True) -> None:
    parts = (
        partial(_logs, length=LONG_LOG if large else LONG_LOG // 10),
        partial(_transcripts, length=LONG_THREAD if large else LONG_THREAD // 10),
        _branches,
        partial(_truncation, length=LONG_LOG if large else LONG_LOG // 10),
        _subscribers,
    )
    for part in parts:
        with tempfile.TemporaryDirectory(dir=work_dir) as directory:
            asyncio.run(part(report, Path(directory)))
    with tempfile.TemporaryDirectory(dir=work_dir) as directory:
        _processes(report, Path(directory) / "field.db")


@asynccontextmanager
async def _opened(path: Path) -> AsyncIterator[Planes]:
    harness, clock = shared_harness(), SystemClock()

    async def cleaning() -> Harness:
        return harness

    planes = SqlitePlanes(path)
    store = planes.open(SCOPE)
    streams = Streams(store, cleaning, clock)
    yield Planes(store, streams, Runs(store, clock, SystemIds()), Transcript(store, clock))
    await streams.close()
    await planes.close()


async def _in_turns(looks: Mapping[int, Look], times: int = TIMES) -> dict[int, float]:
    """The median of each in ms."""
    taken: dict[int, list[float]] = {size: [] for size in looks}
    for turn, (size, look) in itertools.product(range(times + 1), looks.items()):
        took_ms = await _ms(look)
        if turn:  # the first one warms up
            taken[size].append(took_ms)
    return {size: statistics.median(each) for size, each in taken.items()}


async def _ms(look: Look) -> float:
    started = time.perf_counter()
    await look()
    return (time.perf_counter() - started) * 1e3


def _grown(report: Report, what: str, medians: Mapping[int, float], of: str) -> None:
    (short, short_ms), (long, long_ms) = sorted(medians.items())
    figure = Figure(f"{what} {long:,} {of}", long_ms, "ms", f"{short:,} {of}", short_ms, GROWTH_MAX, at_most=True)
    report.add(figure)


def _expect(found: object, expected: object) -> None:
    if found != expected:
        raise SystemExit(f"{expected} was expected, and {found} found")


# --- warm start and reconnect ----------------------------------------------------------------------------------------


async def _logs(report: Report, folder: Path, *, length: int) -> None:
    paths = {count: folder / f"{count}.db" for count in (SHORT_LOG, length)}
    for count, path in paths.items():
        async with _opened(path) as planes:
            await _tell_progress(planes, count)
    starts = {count: partial(_start, path, count) for count, path in paths.items()}
    _grown(
        report, f"warm start with {MISSED} events behind the snapshot, history of", await _in_turns(starts), "events"
    )
    async with _opened(paths[SHORT_LOG]) as short, _opened(paths[length]) as long:
        hubs = {SHORT_LOG: Delivery(short.streams, SystemClock()), length: Delivery(long.streams, SystemClock())}
        medians = await _in_turns({count: partial(_reconnect, hub, count) for count, hub in hubs.items()})
        _grown(report, f"reconnect of a subscriber with {MISSED} missed, history of", medians, "events")
        for hub in hubs.values():
            hub.close()


async def _tell_progress(planes: Planes, count: int) -> None:
    """A long run that says little: most of its events tell how far a tool has come, and leave no message."""
    events = [StreamEvent("progress", {"percent": at % 100}) for at in range(APPENDED_AT_ONCE - 2)]
    events += [StreamEvent(TEXT_DELTA, {"delta": "It goes on."}), StreamEvent("progress", {"percent": 100})]
    await planes.streams.append(STREAM, [*events[:-1], StreamEvent(STEP_FINISHED, {"stepIndex": 0})])
    for _ in range(APPENDED_AT_ONCE, count, APPENDED_AT_ONCE):
        await planes.streams.append(STREAM, [*events[:-2], *events[-1:] * 2])
    now_ms = SystemClock().now_ms()
    taken = await planes.store.write(lambda tables: take_snapshot(tables, STREAM, now_ms=now_ms, until=count - MISSED))
    if taken is None or len(taken.state) > STATE_BYTES_MAX:
        raise SystemExit("the snapshot is not as small as it should be")


async def _start(path: Path, head: int) -> None:
    """A process comes back to a run: the file is opened, and the messages are there."""
    planes = SqlitePlanes(path)
    messages = await planes.open(SCOPE).read(lambda tables: replayed(tables, STREAM))
    await planes.close()
    _expect(messages.last_seq, head)


async def _reconnect(hub: Delivery, head: int) -> None:
    subscription = hub.subscribe(STREAM, after=head - MISSED)
    seen = 0
    async for found in subscription:
        if isinstance(found, ReplayEnd):
            break
        seen += len(found)
    subscription.close()
    _expect(seen, MISSED)


# --- transcripts -----------------------------------------------------------------------------------------------------


async def _transcripts(report: Report, folder: Path, *, length: int) -> None:
    """A chain of messages, and a second branch that leaves it just before its end."""
    async with _opened(folder / "short.db") as short, _opened(folder / "long.db") as long:
        stores = {SHORT_THREAD: short, length: long}
        forks = {count: await _fork_at_end(planes, count) for count, planes in stores.items()}
        pages = {count: partial(_first_page, planes) for count, planes in stores.items()}
        _grown(report, f"first page of {PAGE} out of", await _in_turns(pages), "messages")
        switches = {count: partial(_switch, planes, forks[count].ends) for count, planes in stores.items()}
        _grown(report, "two branch switches at a fork depth of", await _in_turns(switches), "messages")
        reads = {count: partial(_select, planes, forks[count]) for count, planes in stores.items()}
        _grown(report, "a branch read by its selection at a fork depth of", await _in_turns(reads), "messages")


async def _branches(report: Report, folder: Path) -> None:
    """Many branches from one message, of which all but the last are superseded."""
    async with _opened(folder / "few.db") as few, _opened(folder / "many.db") as many:
        stores = {FEW_BRANCHES: few, MANY_BRANCHES: many}
        forks = {count: await _fork_often(planes, count) for count, planes in stores.items()}
        switches = {count: partial(_switch, planes, forks[count].ends) for count, planes in stores.items()}
        _grown(report, "two branch switches beside", await _in_turns(switches), "dead branches")
        reads = {count: partial(_select, planes, forks[count]) for count, planes in stores.items()}
        _grown(report, "a branch read by its selection beside", await _in_turns(reads), "dead branches")


class Fork(NamedTuple):
    """A message, and the first ones of two branches from it."""

    at: str
    ends: tuple[str, str]


async def _fork_at_end(planes: Planes, count: int) -> Fork:
    before, last = "", ""
    for _ in range(0, count, APPENDED_AT_ONCE):
        *_, before, last = await _said(planes, APPENDED_AT_ONCE)
    other, _ = await _said(planes, 2, fork_from=before)
    return Fork(before, (last, other))


async def _fork_often(planes: Planes, count: int) -> Fork:
    [root] = await _said(planes, 1)
    branches = [(await _said(planes, 3, fork_from=root))[0] for _ in range(count + 1)]
    return Fork(root, (branches[0], branches[-1]))


async def _said(planes: Planes, messages: int, fork_from: ForkPoint | None = None) -> list[str]:
    """A committed run. The ids of its messages."""
    run = await (planes.runs.begin_run(THREAD, fork_from) if fork_from else planes.runs.begin_run(THREAD))
    events = [StreamEvent(USER_MESSAGE, {"content": f"And what of question {at}?"}) for at in range(messages)]
    await planes.streams.append(run.stream_id, events)
    await planes.runs.commit(THREAD, run.run_id)
    return [each.id for each in await planes.transcript.messages_of_run(THREAD, run.run_id)]


async def _first_page(planes: Planes) -> None:
    _expect(len((await planes.transcript.messages(THREAD, limit=PAGE)).messages), PAGE)


async def _switch(planes: Planes, ends: Sequence[str]) -> None:
    """There and back, each time with what the next prompt needs."""
    for each in ends:
        leaf = await planes.transcript.set_active(THREAD, each)
        context = await planes.transcript.context(THREAD, last=PROMPT)
        _expect(context.messages[-1].id, leaf)


async def _select(planes: Planes, fork: Fork) -> None:
    for each in fork.ends:
        context = await planes.transcript.context(THREAD, last=PROMPT, selections={fork.at: each})
        _expect(each in {message.id for message in context.messages}, True)


# --- truncation ------------------------------------------------------------------------------------------------------


async def _truncation(report: Report, folder: Path, *, length: int) -> None:
    """A compaction from its beginning until nothing of the events is left in the file."""
    async with _opened(folder / "field.db") as planes:
        deltas = [StreamEvent(TEXT_DELTA, {"delta": f" word {at}"}) for at in range(MESSAGE_DELTAS - 1)]
        for _ in range(0, length, MESSAGE_DELTAS):
            await planes.streams.append(STREAM, [*deltas, StreamEvent(STEP_FINISHED, {"stepIndex": 0})])
        await planes.streams.append("run:short", deltas[:MISSED])
        gc.collect()
        gc.freeze()  # as a server does when it is loaded: a full collection stops whoever waits, too
        looks: dict[str, Look] = {
            "an append": lambda: planes.streams.append("run:live", deltas[:MISSED]),
            "a read": lambda: planes.streams.read("run:short", limit=MISSED),
        }
        quiet = await _beside(looks, asyncio.sleep(QUIET_S))
        started = time.perf_counter()
        busy = await _beside(looks, _compact(planes.streams, length))
        took_s = time.perf_counter() - started
        gc.unfreeze()
    report.add(Figure(f"compaction of {length:,} events, until the file holds none of them", took_s, "s"))
    for what in looks:
        meanwhile = f"{what} while {length:,} events are compacted"
        p99, quiet_p99 = percentile(busy[what], 0.99), percentile(quiet[what], 0.99)
        report.add(Figure(f"p99 of {meanwhile}", p99, "ms", "p99 without", quiet_p99))
        report.add(Figure(f"longest wait of {what} in {QUIET_S:g} s without a compaction", max(quiet[what]), "ms"))
        report.add(Figure(f"longest wait of {meanwhile}", max(busy[what]), "ms", bar=WAIT_MS_MAX, at_most=True))


async def _compact(streams: Streams, length: int) -> None:
    compacted = await streams.compact(STREAM)
    await streams.settled()
    _expect(compacted.eligible, length)


async def _beside(looks: Mapping[str, Look], work: Awaitable[object]) -> dict[str, list[float]]:
    """How long each look took while the work was done, in ms."""
    done = asyncio.Event()
    watches = {what: asyncio.create_task(_watch(look, done)) for what, look in looks.items()}
    await work
    done.set()
    return {what: await watch for what, watch in watches.items()}


async def _watch(look: Look, done: asyncio.Event) -> list[float]:
    times = []
    while not done.is_set():
        times.append(await _ms(look))
        await asyncio.sleep(PAUSE_S)
    return times


# --- many subscribers ------------------------------------------------------------------------------------------------


async def _subscribers(report: Report, folder: Path) -> None:
    waits: dict[int, list[float]] = {0: [], STALLED: []}
    async with _opened(folder / "field.db") as planes:
        for turn, stalled in itertools.product(range(ROUNDS + 1), waits):
            heard = await _hear(planes.streams, f"run:{turn}-{stalled}", SUBSCRIBERS - STALLED, stalled)
            if turn:  # the first one warms up
                waits[stalled] += heard
    p99 = {stalled: percentile(each, 0.99) for stalled, each in waits.items()}
    name = f"p99 of an event's way to {SUBSCRIBERS - STALLED} subscribers, {STALLED} others stalled"
    report.add(Figure(name, p99[STALLED], "ms", "none stalled", p99[0], P99_MOST, at_most=True))


async def _hear(streams: Streams, stream: str, listening: int, stalled: int) -> list[float]:
    """From the call of each append to each who listens, in ms."""
    hub = Delivery(streams, SystemClock(), queue_events=STALLED_QUEUE_EVENTS)
    told_at: list[float] = []
    subscriptions = [hub.subscribe(stream) for _ in range(listening + stalled)]
    for each in subscriptions:
        await _go_live(each)
    hearing = [asyncio.create_task(_listen(each, told_at)) for each in subscriptions[:listening]]
    for _ in range(TOLD):
        told_at.append(time.perf_counter())
        await streams.append(stream, [StreamEvent(TEXT_DELTA, {"delta": " and so on"})] * TOLD_AT_ONCE)
        await asyncio.sleep(TOLD_EVERY_S)
    heard = await asyncio.gather(*hearing)
    hub.close()
    return [wait for each in heard for wait in each]


async def _go_live(subscription: Subscription) -> None:
    while not isinstance(await subscription.next(timeout_s=0), ReplayEnd):
        pass
    await subscription.next(timeout_s=0)


async def _listen(subscription: Subscription, told_at: Sequence[float]) -> list[float]:
    waits: list[float] = []
    async for found in subscription:
        now = time.perf_counter()
        if isinstance(found, ReplayEnd):
            continue
        waits += [(now - told_at[(each.seq - 1) // TOLD_AT_ONCE]) * 1e3 for each in found]
        if len(waits) == TOLD * TOLD_AT_ONCE:
            break
    subscription.close()
    return waits


# --- many processes --------------------------------------------------------------------------------------------------


def _processes(report: Report, path: Path) -> None:
    spawning = multiprocessing.get_context("spawn")
    writers = [spawning.Process(target=_append_alone, args=(path,)) for _ in range(PROCESSES)]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    _expect([each.exitcode for each in writers], [0] * PROCESSES)
    seqs = asyncio.run(_seqs(path))
    expected = PROCESSES * APPENDS
    _expect(seqs, list(range(1, expected + 1)))
    name = f"events of {PROCESSES} processes × {APPENDS} appends to one stream, without a gap or an error"
    report.add(Figure(name, len(seqs), "events", bar=expected))


def _append_alone(path: Path) -> None:
    async def append() -> None:
        async with _opened(path) as planes:
            for at in range(APPENDS):
                await planes.streams.append(STREAM, [StreamEvent(TEXT_DELTA, {"delta": f" {at}"})])

    asyncio.run(append())


async def _seqs(path: Path) -> list[int]:
    async with _opened(path) as planes:
        page = await planes.streams.read(STREAM, limit=MAX_READ_EVENTS)
        return [each.seq for each in page.events]
