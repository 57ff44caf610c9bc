"""The OpenWOP memory host over HTTP: a list from a long memory, and how long others wait while one is compacted."""

from __future__ import annotations

import os
import re
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import httpx

from benchmarks.corpus import rows
from benchmarks.figures import Figure, Report, percentile

SHORT, LONG = 100, 10_000
PAGE = 50
LISTS = 200
SEEDED_AT_ONCE = 500
LIST_RATIO_MAX = 5.0
WAIT_MS_MAX = 50.0
TIMEOUT_S = 600.0

SHORT_REF, LONG_REF, OTHER_REF = "mem_short", "mem_long", "mem_other"


def measure_memory_host(report: Report, work_dir: Path) -> None:
    with _serving(work_dir / "memory_host.db") as url, httpx.Client(base_url=url, timeout=TIMEOUT_S) as client:
        started = time.perf_counter()
        _seed(client, LONG_REF, LONG)
        report.add(Figure("memory host: entries put", LONG / (time.perf_counter() - started), "/s"))
        _seed(client, SHORT_REF, SHORT)
        _seed(client, OTHER_REF, SHORT)
        _lists(report, client)
        _waits(report, client)


def _lists(report: Report, client: httpx.Client) -> None:
    short, long = _interleaved([lambda: _list(client, SHORT_REF), lambda: _list(client, LONG_REF)], LISTS)
    name = f"memory host: list of {PAGE} out of {LONG:,} entries"
    against = f"out of {SHORT}"
    report.add(Figure(name, long, "ms", against, short, LIST_RATIO_MAX, at_most=True))


def _waits(report: Report, client: httpx.Client) -> None:
    """Others list, get and put in another memory as fast as they are answered."""
    entry_id = client.get(f"/v1/memory/{OTHER_REF}", params={"limit": 1}).json()["entries"][0]["id"]
    asking: tuple[Callable[[], None], ...] = (
        lambda: _list(client, OTHER_REF),
        lambda: _done(client.get(f"/v1/memory/{OTHER_REF}/{entry_id}"), 200),
        lambda: _done(client.post(f"/v1/memory/{OTHER_REF}", json={"content": "Meanwhile."}), 201),
    )
    for ask in asking:
        ask()
    quiet = [_ms(ask) for _ in range(LISTS) for ask in asking]
    busy: list[float] = []
    with ThreadPoolExecutor(1) as pool:
        compacting = pool.submit(_compact, str(client.base_url))
        while not compacting.done():
            busy += [_ms(ask) for ask in asking]
        seconds = compacting.result()
    report.add(Figure(f"memory host: {LONG:,} entries compacted into one", LONG / seconds, "entries/s"))
    meanwhile = f"while {LONG:,} entries are compacted"
    p99, quiet_p99 = percentile(busy, 0.99), percentile(quiet, 0.99)
    report.add(Figure(f"memory host: p99 of other requests {meanwhile}", p99, "ms", "p99 without", quiet_p99))
    longest = f"memory host: longest other request {meanwhile}"
    report.add(Figure(longest, max(busy), "ms", bar=WAIT_MS_MAX, at_most=True))


def _interleaved(asking: Sequence[Callable[[], None]], times: int) -> list[float]:
    """The median of each in ms, taken in turns: what else the machine does hits all of them alike."""
    for ask in asking:
        ask()
    taken: list[list[float]] = [[] for _ in asking]
    for _ in range(times):
        for ask, ms in zip(asking, taken, strict=True):
            ms.append(_ms(ask))
    return [statistics.median(ms) for ms in taken]


def _ms(ask: Callable[[], None]) -> float:
    started = time.perf_counter()
    ask()
    return (time.perf_counter() - started) * 1e3


def _list(client: httpx.Client, ref: str) -> None:
    answer = client.get(f"/v1/memory/{ref}", params={"limit": PAGE})
    _done(answer, 200)
    if len(answer.json()["entries"]) != PAGE:
        raise RuntimeError(f"{ref} has too few entries")


def _seed(client: httpx.Client, ref: str, count: int) -> None:
    contents = (row.content for row in rows(count))
    numbered = ({"id": f"{ref}-{number}", "content": content} for number, content in enumerate(contents))
    while entries := list(islice(numbered, SEEDED_AT_ONCE)):
        _done(client.post("/v1/test/memory/seed", json={"memoryRef": ref, "entries": entries}), 201)


def _compact(url: str) -> float:
    """How long it takes, in seconds."""
    started = time.perf_counter()
    answer = httpx.post(f"{url.rstrip('/')}/v1/test/memory/compact", json={"memoryRef": LONG_REF}, timeout=TIMEOUT_S)
    _done(answer, 200)
    if answer.json()["payload"]["sourceCount"] != LONG:
        raise RuntimeError("not everything was compacted")
    return time.perf_counter() - started


def _done(answer: httpx.Response, status: int) -> None:
    if answer.status_code != status:
        raise RuntimeError(f"{answer.request.method} {answer.request.url.path}: {answer.status_code} {answer.text}")


@contextmanager
def _serving(store: Path) -> Iterator[str]:
    """An open host on this store, in a process of its own; its URL."""
    command = [sys.executable, "-m", "fieldstone", "serve", "--db", str(store), "--port", "0", "--conformance"]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("FIELDSTONE_")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as server:
        try:
            assert server.stdout is not None
            ready = server.stdout.readline()
            url = re.search(r"http://[\d.]+:\d+", ready)
            if url is None:
                raise RuntimeError(f"the server did not start: {ready!r}")
            yield url.group()
        finally:
            server.send_signal(signal.SIGINT)
            server.communicate()
