"""RECORD over HTTP beside a bare Starlette route that only decodes the same body, from keep-alive connections.

    python -m benchmarks.http_load        prints both, and their ratio

The servers run in processes of their own; the load comes from this one, over raw sockets. Standard library only, but
for the corpus: the client must cost little beside the server.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.corpus import AGENTS, rows

CONNECTIONS = 32
REQUESTS = 10_000
ROUNDS = 11  # taken in turn, so that a noisy minute meets both
READY_TIMEOUT_S = 60

SERVE = "import sys; from fieldstone.settings import Settings; from fieldstone.wiring import serve; " + (
    "serve(Settings(db=sys.argv[1], port=0, embedder=sys.argv[2], detect_conflicts=sys.argv[2] != 'none'))"
)


@dataclass(frozen=True, slots=True)
class Load:
    requests_per_s: float
    p50_ms: float
    p99_ms: float
    refused: int  # answers other than 200


@dataclass(frozen=True, slots=True)
class Comparison:
    bare: Load
    record: Load  # neither embedding nor looking for conflicts: what the transport and the write cost
    everything: Load  # as a server is by default
    ratio: float


def compare(*, requests: int = REQUESTS, connections: int = CONNECTIONS, rounds: int = ROUNDS) -> Comparison:
    """Medians over the rounds; the ratio is the median of the rounds' ratios."""
    bare: list[Load] = []
    record: list[Load] = []
    everything: list[Load] = []
    with tempfile.TemporaryDirectory() as folder, ExitStack() as servers:
        bare_url = servers.enter_context(_server([sys.executable, "-m", "benchmarks.bare_http"]))
        url, full_url = (
            servers.enter_context(
                _server([sys.executable, "-c", SERVE, str(Path(folder) / f"{embedder}.db"), embedder])
            )
            for embedder in ("none", "static")
        )
        register_agents(url)
        register_agents(full_url)
        for turn in range(rounds):
            bodies = list(record_bodies(requests, prefix=f"r{turn}"))
            bare.append(load(bare_url, "/v1/record", bodies, connections=connections))
            record.append(load(url, "/v1/record", bodies, connections=connections))
            everything.append(load(full_url, "/v1/record", bodies, connections=connections))
    ratios = [ours.requests_per_s / theirs.requests_per_s for ours, theirs in zip(record, bare, strict=True)]
    return Comparison(_median(bare), _median(record), _median(everything), statistics.median(ratios))


def load(url: str, path: str, bodies: Sequence[bytes], *, connections: int = CONNECTIONS) -> Load:
    """Send all bodies, each connection one after the other, and measure."""
    return asyncio.run(_load(url, path, bodies, connections))


def record_bodies(count: int, *, prefix: str) -> Iterator[bytes]:
    for number, row in enumerate(rows(count)):
        payload = {
            "mode": "committed",
            "type": "finding" if row.type == "human_directive" else row.type,
            "content": row.content,
            "intent": {"purpose": row.purpose},
            "confidence": {"score": row.score, "reasoning": row.reasoning},
        }
        yield _message("RECORD", row.agent, f"{prefix}-{number}", payload, session=row.session)


def register_agents(url: str) -> None:
    agents = {row.agent: row.role for row in rows(AGENTS * 20)}
    bodies = [
        _message("REGISTER", agent, f"join-{agent}", {"id": agent, "role": role}) for agent, role in agents.items()
    ]
    if load(url, "/v1/register", bodies, connections=1).refused:
        raise RuntimeError("the agents could not register")


def _message(operation: str, agent: str, message_id: str, payload: object, *, session: str | None = None) -> bytes:
    envelope = {
        "protocol": "akashik",
        "version": "0.1.0",
        "id": message_id,
        "operation": operation,
        "agent_id": agent,
        "session_id": session,
        "epoch": 0,
        "payload": payload,
    }
    return json.dumps(envelope, separators=(",", ":")).encode()


async def _load(url: str, path: str, bodies: Sequence[bytes], connections: int) -> Load:
    address = urlsplit(url)
    host, port = address.hostname or "127.0.0.1", address.port or 80
    head = f"POST {path} HTTP/1.1\r\nhost: {host}:{port}\r\ncontent-type: application/json\r\ncontent-length: "
    work = [b"%b%d\r\n\r\n%b" % (head.encode(), len(body), body) for body in reversed(bodies)]
    loop = asyncio.get_running_loop()
    clients = [(await loop.create_connection(lambda: _Client(work), host, port))[1] for _ in range(connections)]
    begun = time.perf_counter()
    for client in clients:
        client.send_next()
    await asyncio.gather(*(client.finished for client in clients))
    seconds = time.perf_counter() - begun
    times = sorted(ms for client in clients for ms in client.times_ms)
    for client in clients:
        client.transport.close()
    return Load(
        requests_per_s=len(times) / seconds,
        p50_ms=times[len(times) // 2],
        p99_ms=times[len(times) * 99 // 100],
        refused=sum(client.refused for client in clients),
    )


class _Client(asyncio.Protocol):
    """One connection: the next request goes out when the answer is in."""

    transport: asyncio.Transport
    _length = re.compile(rb"\r\ncontent-length: (\d+)\r\n", re.IGNORECASE)

    def __init__(self, work: list[bytes]) -> None:
        self._work = work
        self._buffer = b""
        self._expected = -1
        self._sent = 0.0
        self.times_ms: list[float] = []
        self.refused = 0
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.finished.done():
            self.finished.set_exception(ConnectionError("the server closed the connection"))

    def send_next(self) -> None:
        if not self._work:
            self.finished.set_result(None)
            return
        self._sent = time.perf_counter()
        self.transport.write(self._work.pop())

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._expected < 0:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            found = self._length.search(self._buffer, 0, end + 2)
            assert found is not None
            self._expected = end + 4 + int(found[1])
        if len(self._buffer) >= self._expected:
            self.times_ms.append((time.perf_counter() - self._sent) * 1e3)
            self.refused += not self._buffer.startswith(b"HTTP/1.1 200")
            self._buffer = b""
            self._expected = -1
            self.send_next()


@contextmanager
def _server(command: list[str]) -> Iterator[str]:
    """The URL that the server prints when it is ready."""
    environ = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://[\w.:\[\]]+", line)
        if found is None:
            raise RuntimeError(f"the server did not start: {line!r}")
        yield found[0]
    finally:
        process.terminate()
        process.wait(READY_TIMEOUT_S)


def _median(loads: Sequence[Load]) -> Load:
    return sorted(loads, key=lambda load: load.requests_per_s)[len(loads) // 2]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--requests", type=int, default=REQUESTS)
    arguments.add_argument("--connections", type=int, default=CONNECTIONS)
    arguments.add_argument("--rounds", type=int, default=ROUNDS)
    options = arguments.parse_args()
    result = compare(requests=options.requests, connections=options.connections, rounds=options.rounds)
    for name, measured in (("bare Starlette route", result.bare), ("durable RECORD", result.record)):
        print(
            f"{name:22} {measured.requests_per_s:8.0f} requests/s   p50 {measured.p50_ms:6.2f} ms   "
            f"p99 {measured.p99_ms:6.2f} ms   refused {measured.refused}"
        )
    print(f"{'ratio':22} {result.ratio:8.2f}")


if __name__ == "__main__":
    main()
