"""A server with keys against requests that nobody thought of, with good tokens, bad ones and none.

Each seed makes a handful of requests; a seed that fails makes the same ones again. `make fuzz` sends 100,000.
"""

import http.client
import json
import os
from collections.abc import Iterator
from random import Random
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fieldstone.core.vocabulary import BUILT_OPERATIONS, OPERATION_LEVELS
from fieldstone.servers.http.examples import UNIT_ID, example_message
from fieldstone.servers.http.routes import INSPECTION_ROUTES, UNBUILT_ROUTES
from fieldstone.wire.operations import OPERATION_ROUTES
from tests.fuzz.served import Guarded, guarded

MANY = bool(os.environ.get("FIELDSTONE_FUZZ"))
REQUESTS_A_SEED: Final = 50
SEEDS: Final = 2_000 if MANY else 8
HANGS_S: Final = 20
CODED_5XX: Final = (501, 503, 504, 507)
ERROR_FIELDS: Final = {"code", "message", "operation", "recoverable", "suggested_action"}

PUBLIC: Final = ("/healthz", "/readyz", "/v1/openapi.json")
# They read the whole log: now and then is enough.
WHOLE: Final = ("/v1/verify", "/v1/rebuild", "/v1/export", "/v1/sweep")
ROUTES: Final = [
    *(("POST", route.path) for route in OPERATION_ROUTES),
    *[("POST", f"/v1/{operation.lower()}") for operation in (*BUILT_OPERATIONS, "MESSAGES")] * 4,
    *((route.method, route.path) for route in INSPECTION_ROUTES if route.path not in WHOLE),
    *((method, route.path) for route in UNBUILT_ROUTES for method in route.methods),
    *(("GET", path) for path in (*PUBLIC, "/", "/docs")),
]
METHODS: Final = ("GET", "POST", "PUT", "DELETE", "HEAD", "PATCH", "OPTIONS", "TRACE", "BREW")
VALUES: Final[list[Any]] = [
    *(
        None,
        True,
        0,
        -1,
        11,
        2**53,
        2**64,
        1e308,
        "",
        " ",
        "\x00",
        "\u200b",
        "ada",
        "field",
        "acme",
        "zeta",
        "openwop:x",
    ),
    *("draft", "purge", "9999-12-31T23:59:59Z", "x" * 3_000, "\ud800", [], {}, [[]], {"a": {}}, ["ada"] * 50),
]
NAMES: Final = (
    "tenant",
    "authority",
    "agents",
    "expires",
    "value",
    "scope",
    "filter",
    "id",
    "relations",
    "source",
    "y",
)
HEADERS: Final = (
    ("host", "localhost"),
    ("host", "evil.example"),
    ("origin", "https://evil.example"),
    ("origin", "null"),
    ("x-tenant", "zeta"),
    ("x-forwarded-for", "10.0.0.1"),
    ("prefer", "respond-async"),
    ("content-type", "text/plain"),
    ("expect", "100-continue"),
    ("range", "bytes=0-1"),
    ("if-none-match", "*"),
    ("last-event-id", "-1"),
    ("upgrade", "websocket"),
    ("cookie", "key=" + "x" * 500),
)


class Sent(NamedTuple):
    method: str
    path: str
    headers: list[tuple[str, str]]
    body: bytes
    is_known: bool  # with one good token


def made(chance: Random, server: Guarded) -> Sent:
    """A request: mostly of a route that there is, in its method, with some of it bent."""
    if chance.random() < 0.02:
        method, path = chance.choice(METHODS), chance.choice(WHOLE)
    else:
        method, path = chance.choice(ROUTES)
    if chance.random() < 0.1:
        method = chance.choice(METHODS)
    if chance.random() < 0.05:
        path += chance.choice(("/", "/x", "//", "%00", "/../keys", ";a=b", "%C3%A9", "%ff"))
    path = path.replace("{id}", chance.choice(server.ids))
    if chance.random() < 0.15:
        path += "?" + "&".join(f"{chance.choice(('after', 'limit', 'status', 'x'))}={number}" for number in (-1, "a"))
    holder = chance.choice(server.good)
    headers, is_known = tokens(chance, holder.token, chance.choice(server.bad))
    headers += [chance.choice(HEADERS) for _ in range(chance.choice((0, 0, 0, 1, 2)))]
    raw = body(chance, path)
    if b"DEREGISTER" not in raw or chance.random() < 0.02:  # whoever has left is told the same each time
        raw = raw.replace(b'"ada"', json.dumps(holder.agent).encode())
    raw = raw.replace(UNIT_ID.encode(), chance.choice(server.ids).encode())
    return Sent(method, path, headers, raw, is_known)


def tokens(chance: Random, good: str, bad: str) -> tuple[list[tuple[str, str]], bool]:
    match chance.randrange(16):
        case 0:
            return [], False
        case 1:
            return [("authorization", f"Bearer {bad}")], False
        case 2:
            return [("authorization", f"{chance.choice(('Basic', 'bearer:', '', 'Key'))} {good}")], False
        case 3:
            return [("authorization", f"Bearer {good}"), ("authorization", f"Bearer {bad}")], False
        case _:
            return [("authorization", f"Bearer {good}")], True


def body(chance: Random, path: str) -> bytes:
    operation = path.rsplit("/", 1)[-1].upper()
    if operation not in OPERATION_LEVELS:
        operation = chance.choice(list(OPERATION_LEVELS))
    value: Any = example_message(operation)
    value = json.loads(json.dumps(value)) | {"id": str(chance.random())}
    match chance.randrange(12):
        case 0:
            return b""
        case 1:
            return chance.randbytes(chance.randrange(200))
        case 2:
            value = {name: chance.choice(VALUES) for name in chance.sample(NAMES, 3)}
        case 3:
            value = [bent(chance, value) for _ in range(chance.randrange(4))]
        case 4 | 5:
            value = bent(chance, value)
        case _:
            pass
    raw = json.dumps(value).encode()
    if chance.random() < 0.1:
        at = chance.randrange(len(raw) + 1)
        raw = raw[:at] + chance.randbytes(3) + raw[at + chance.randrange(4) :]
    return raw


def bent(chance: Random, message: dict[str, Any]) -> dict[str, Any]:
    """The message with something else in one place of the envelope, or of the payload."""
    inside = dict(message["payload"])
    if chance.random() < 0.3:
        return {**message, chance.choice(list(message)): chance.choice(VALUES)}
    inside[chance.choice([*inside, *NAMES])] = chance.choice(VALUES)
    return {**message, "payload": inside}


@pytest.fixture(scope="module")
def server() -> Iterator[Guarded]:
    with guarded() as one:
        yield one


@pytest.fixture(scope="module")
def connection(server: Guarded) -> Iterator[http.client.HTTPConnection]:
    address = urlsplit(server.url)
    one = http.client.HTTPConnection(address.hostname or "", address.port, timeout=HANGS_S)
    yield one
    one.close()


def sent(connection: http.client.HTTPConnection, request: Sent) -> tuple[int, bytes]:
    """Status and body; a request that is never answered ends in a timeout."""
    names = {name for name, _ in request.headers}
    try:
        connection.putrequest(request.method, request.path, skip_host="host" in names, skip_accept_encoding=True)
        for header in request.headers:
            connection.putheader(*header)
        connection.putheader("content-length", str(len(request.body)))
        connection.endheaders(request.body)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (http.client.RemoteDisconnected, ConnectionError):  # the server closes what it will not go on with
        connection.close()
        return 0, b""


def check(request: Sent, status: int, told: bytes) -> None:
    assert status < 500 or status in CODED_5XX, (request, told)
    is_public = request.path.split("?")[0] in PUBLIC and request.method in ("GET", "HEAD")
    if not (request.is_known or is_public):
        assert status in (0, 400, 401, 403, 413), (request, status, told)
    if status >= 400 and request.method != "HEAD":
        assert set(json.loads(told)) >= ERROR_FIELDS, (request, told)


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=SEEDS)
def test_no_request_breaks_or_holds_up_a_server_with_keys_and_none_without_a_key_comes_in(
    server: Guarded, connection: http.client.HTTPConnection, seed: int
) -> None:
    chance = Random(seed)
    unanswered = 0
    for _ in range(REQUESTS_A_SEED):
        request = made(chance, server)
        status, told = sent(connection, request)
        check(request, status, told)
        unanswered += status == 0
    assert unanswered < REQUESTS_A_SEED / 2
    assert sent(connection, Sent("GET", "/readyz", [], b"", False))[0] == 200
