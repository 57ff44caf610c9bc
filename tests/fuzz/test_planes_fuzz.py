"""Streams, threads, memories, the seams and the socket against what nobody thought of.

Each seed makes a handful of requests; a seed that fails makes the same ones again. `make fuzz` sends 20,000.
"""

import http.client
import json
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import count
from random import Random
from typing import Any, Final
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from fieldstone.core.streams import MAX_SEQ
from fieldstone.servers.http.openapi import EXAMPLES
from fieldstone.servers.http.routes import MEMORY_ROUTES
from fieldstone.servers.http.serve import SOCKET_BYTES
from fieldstone.servers.http.thread_routes import STREAM_ROUTES, THREAD_ROUTES
from tests.fuzz.bent import (
    ENDINGS,
    HANGS_S,
    MANY,
    METHODS,
    REQUESTS_A_SEED,
    VALUES,
    Sent,
    bent_raw,
    check,
    more_headers,
    sent,
    tokens,
)
from tests.fuzz.served import Guarded, Holder

SEEDS: Final = 400 if MANY else 12
SOCKETS: Final = 1_000 if MANY else 15

SEAMS: Final[dict[tuple[str, str], Any]] = {
    ("POST", "/v1/test/memory/seed"): {"memoryRef": "mem_talk", "entries": [{"id": "a", "content": "It is late."}]},
    ("POST", "/v1/test/memory/compact"): {"memoryRef": "mem_talk"},
    ("POST", "/v1/host/sample/memory/distill"): {"memoryRef": "mem_talk", "tokenBudget": 900, "sources": ["A.", "B."]},
    ("POST", "/v1/host/sample/memory/consolidate"): {"memoryRef": "mem_talk"},
    ("POST", "/v1/runs"): {"workflowId": "conformance-noop"},
    ("GET", "/v1/runs/{id}"): None,
    ("POST", "/v1/runs/{id}"): {},
    ("GET", "/v1/runs/{id}/events"): None,
    ("GET", "/v1/runs/{id}/events/poll"): None,
}
ROUTES: Final[dict[tuple[str, str], Any]] = {
    **{
        (route.method, route.path): EXAMPLES.get(route.name)
        for route in (*STREAM_ROUTES, *THREAD_ROUTES, *MEMORY_ROUTES)
    },
    **SEAMS,
}
KINDS: Final = (
    *("text-delta", "reasoning", "tool-call", "tool-result", "file", "step-started", "step-finished", "error"),
    *("user-message", "", "x" * 300, "\x00"),
)
PAYLOADS: Final = (
    *("delta", "text", "toolCallId", "toolName", "input", "output", "isError", "stepIndex", "finishReason"),
    *("content", "url", "mimeType", "name", "message", "\u200b"),
)
DECIDED: Final = {"delta": "Decision: we go."}
NAMES: Final = (
    *("events", "expectedSeq", "idempotencyKey", "dryRun", "keepEvents", "seq", "forkFromMessageId", "action"),
    *("agentId", "types", "mode", "sessionId", "messageId", "threadId", "staleMs", "recover", "finishedDays"),
    *("content", "tags", "expiresAt", "nodeId", "tag", "source", "memoryRef", "entries", "tokenBudget", "sources"),
)
QUERIES: Final = (
    *("after", "limit", "before", "branch", "selections", "ids", "last", "maxTokens", "reasoning", "toolResults"),
    *("tag", "tokenBudget", "rank", "query", "snapshot", "type", "since", "lastSequence", "x"),
)
ASKED: Final = (
    *("", "-1", "0", "1", "a", "1e3", "9" * 40, "true", "active", "all", "relevance", "recency", "\x00", "{}", "[]"),
    *('{"":"x"}', '["x"]', "[" * 2_000, "2026-01-31T08:00:00Z", "memory.written", "x" * 5_000, "\ud7ff", "null"),
)


ODD: Final = ("%00", "%2e%2e", "x" * 300, "a%2Fb", "%F0%9F%A6%94", "", "ws", "%ff", "forget")

Places = dict[str, tuple[str, ...]]  # what stands for a name in a path


def furnished(connection: http.client.HTTPConnection, operator: Holder, thread: str) -> Places:
    """A committed run and one that goes on, their messages, and a memory: they are there, at the operator's tenant."""

    def posted(path: str, body: Any = None) -> Any:
        headers = [("authorization", f"Bearer {operator.token}")]
        status, told = sent(connection, Sent("POST", path, headers, json.dumps(body).encode() if body else b"", True))
        assert status in (200, 201), told
        return json.loads(told)

    runs = []
    for ends in (True, False):
        run = posted(f"/v1/threads/{thread}/runs")["runId"]
        said = [{"kind": "user-message", "payload": {"content": "And?"}}, {"kind": "text-delta", "payload": DECIDED}]
        posted(f"/v1/threads/{thread}/runs/{run}/events", {"events": said})
        if ends:
            posted(f"/v1/threads/{thread}/runs/{run}/commit")
        runs.append(run)
    entry = posted(f"/v1/memory/{thread}", {"content": "It is cold.", "tags": ["weather"]})["id"]
    fixture = posted("/v1/runs", {"workflowId": "conformance-noop"})["runId"]
    return {
        "id": (f"run:{runs[0]}", f"run:{runs[1]}", entry, entry, fixture, thread, thread, thread, *ODD),
        "thread": (thread,) * 20 + ODD,
        "run": (*runs * 10, fixture, *ODD),
        "ref": (*(thread,) * 15, "mem%3A%2F%2Ftalk", "field:main", "field:", *ODD),
        "name": ("reader", "reader", *ODD),
    }


def made(chance: Random, server: Guarded, places: Places) -> Sent:
    """A request of a route of planes or memories: mostly in its method, with some of it bent."""
    (method, path), example = chance.choice(list(ROUTES.items()))
    for name, found in places.items():
        path = path.replace(f"{{{name}}}", chance.choice(found))
    if chance.random() < 0.1:
        method = chance.choice(METHODS)
    if chance.random() < 0.05:
        path += chance.choice(ENDINGS)
    if chance.random() < 0.4:
        path += "?" + "&".join(_asked(chance) for _ in range(chance.randrange(1, 4)))
    holder = server.operator if chance.random() < 0.6 else chance.choice(server.good)
    headers, is_known = tokens(chance, holder.token, chance.choice(server.bad))
    headers += more_headers(chance)
    raw = body(chance, example).replace(b'"ada"', json.dumps(holder.agent).encode())
    return Sent(method, path, headers, raw, is_known)


def _asked(chance: Random) -> str:
    return f"{chance.choice(QUERIES)}={quote(chance.choice(ASKED))}"


def body(chance: Random, example: Any) -> bytes:
    value = dict(example or {})
    if "events" in value:
        value["events"] = [event(chance) for _ in range(chance.randrange(4))]
    match chance.randrange(12):
        case 0:
            return b""
        case 1:
            return chance.randbytes(chance.randrange(200))
        case 2:
            value = {name: chance.choice(VALUES) for name in chance.sample(NAMES, 3)}
        case 3:
            return b"[" * 5_000 + b"]" * 5_000 if chance.random() < 0.2 else json.dumps(value).encode()
        case 4 | 5 | 6:
            value[chance.choice([*value, *NAMES])] = chance.choice(VALUES)
        case _:
            pass
    return bent_raw(chance, json.dumps(value).encode())


def event(chance: Random) -> Any:
    if chance.random() < 0.05:
        return chance.choice(VALUES)
    payload = {name: chance.choice(VALUES) for name in chance.sample(PAYLOADS, chance.randrange(4))}
    return {"kind": chance.choice(KINDS), "payload": payload}


_numbers = count()


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=SEEDS)
def test_no_request_breaks_or_holds_up_streams_threads_and_memories_and_none_without_a_key_comes_in(
    server: Guarded, connection: http.client.HTTPConnection, seed: int
) -> None:
    chance = Random(seed)
    places = furnished(connection, server.operator, f"talk-{seed}-{next(_numbers)}")
    unanswered = 0
    for _ in range(REQUESTS_A_SEED):
        request = made(chance, server, places)
        status, told = sent(connection, request)
        check(request, status, told)
        unanswered += status == 0
    assert unanswered < REQUESTS_A_SEED / 2
    assert sent(connection, Sent("GET", "/readyz", [], b"", False))[0] == 200


# --- the socket -------------------------------------------------------------------------------------------------------

GOOD: Final = 1000
UNHEARD: Final = 0  # no word of why
CLOSED: Final = (GOOD, 1001, 1002, 1003, 1007, 1008, 1009)
HELLO: Final = '{"type":"hello","version":1}'
LAST: Final = '{"type":"subscribe","streamId":"asked-last"}'
STREAMS: Final = ("s", "talk", "", "x" * 300, "\x00", "run:x", "\U0001f994")


def frame(chance: Random) -> str | bytes:
    """A frame: mostly one of version 1, with some of it bent."""
    match chance.randrange(10):
        case 0:
            return chance.randbytes(chance.randrange(100))
        case 1:
            return chance.choice(("", "{", "null", "[" * 3_000, '{"type":"hello"}' * 2, "x" * 70_000))
        case 2:
            return HELLO
        case _:
            kind = chance.choice(("hello", "subscribe", "subscribe", "unsubscribe", "pong", "event", "x"))
            said = {"type": kind, "streamId": chance.choice(STREAMS), "version": 1}
            if chance.random() < 0.5:
                said[chance.choice(("type", "streamId", "afterSeq", "version"))] = chance.choice(VALUES)
            return bent_raw(chance, json.dumps(said).encode()).decode(errors="replace")


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=SOCKETS)
def test_no_frame_breaks_or_holds_up_a_socket(server: Guarded, seed: int) -> None:
    chance = Random(seed)
    holder = chance.choice([each for each in server.good if not each.agent.endswith("-0")])
    with socket_of(server, holder) as socket:
        frames = [*(frame(chance) for _ in range(chance.randrange(20))), HELLO, LAST]
        ended = talked(socket, frames)
    is_too_large = any(len(each) > SOCKET_BYTES for each in frames)  # it is cut off in the midst of it
    assert ended in CLOSED or (ended == UNHEARD and is_too_large), ended


def socket_of(server: Guarded, holder: Holder) -> ClientConnection:
    url, headers = server.url.replace("http", "ws", 1), {"authorization": f"Bearer {holder.token}"}
    return connect(f"{url}/v1/streams/ws", additional_headers=headers, proxy=None)


def talked(socket: ClientConnection, frames: Sequence[str | bytes]) -> int:
    """Say all that, and hear the answer to the last. How it ended."""
    try:
        for each in frames:
            socket.send(each)
        hear_of(socket, "asked-last")
    except ConnectionClosed as closed:
        return closed.rcvd.code if closed.rcvd else UNHEARD
    return GOOD


def hear_of(socket: ClientConnection, stream: str) -> None:
    while True:
        told = json.loads(socket.recv(timeout=HANGS_S))
        assert told["type"] in ("server-hello", "event", "replay-end", "error", "ping")
        assert told.get("code") != "REPLAY_FAILED", told
        if told["type"] == "replay-end" and told["streamId"] == stream:
            return


@pytest.mark.parametrize("token", ["", "garbage"])
def test_no_socket_opens_without_a_key(server: Guarded, connection: http.client.HTTPConnection, token: str) -> None:
    upgrade = [
        *(("connection", "upgrade"), ("upgrade", "websocket")),
        *(("sec-websocket-version", "13"), ("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA==")),
        ("authorization", f"Bearer {token}"),
    ]
    for path in ("/v1/streams/ws", "/v1/streams/ws?x=1", "/v1/streams/s/sse", "/v1/threads/ws"):
        assert sent(connection, Sent("GET", path, upgrade, b"", False))[0] in (0, 401)


@pytest.mark.parametrize("afters", [(5, 0), (0, 5, 1), (MAX_SEQ, 1, 0)], ids=str)
def test_who_follows_a_stream_from_beyond_its_end_holds_up_nobody_who_follows_it_too(
    server: Guarded, connection: http.client.HTTPConnection, afters: tuple[int, ...]
) -> None:
    stream = f"followed-{'-'.join(map(str, afters))}"
    with ExitStack() as open_sockets:
        for after in afters:
            socket = open_sockets.enter_context(socket_of(server, server.operator))
            socket.send(HELLO)
            socket.send(json.dumps({"type": "subscribe", "streamId": stream, "afterSeq": after}))
            hear_of(socket, stream)
        assert sent(connection, Sent("GET", "/readyz", [], b"", False))[0] == 200
