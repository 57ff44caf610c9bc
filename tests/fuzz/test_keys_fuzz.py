"""A server with keys against requests that nobody thought of, with good tokens, bad ones and none.

Each seed makes a handful of requests; a seed that fails makes the same ones again. `make fuzz` sends 100,000.
"""

import http.client
import json
from random import Random
from typing import Any, Final

from hypothesis import given, settings
from hypothesis import strategies as st

from fieldstone.core.vocabulary import BUILT_OPERATIONS, OPERATION_LEVELS
from fieldstone.servers.http.examples import UNIT_ID, example_message
from fieldstone.servers.http.routes import INSPECTION_ROUTES, UNBUILT_ROUTES
from fieldstone.wire.operations import OPERATION_ROUTES
from tests.fuzz.bent import (
    ENDINGS,
    MANY,
    METHODS,
    PUBLIC,
    REQUESTS_A_SEED,
    VALUES,
    Sent,
    bent_raw,
    check,
    more_headers,
    sent,
    tokens,
)
from tests.fuzz.served import Guarded

SEEDS: Final = 2_000 if MANY else 8

# They read the whole log: now and then is enough.
WHOLE: Final = ("/v1/verify", "/v1/rebuild", "/v1/export", "/v1/sweep")
ROUTES: Final = [
    *(("POST", route.path) for route in OPERATION_ROUTES),
    *[("POST", f"/v1/{operation.lower()}") for operation in (*BUILT_OPERATIONS, "MESSAGES")] * 4,
    *((route.method, route.path) for route in INSPECTION_ROUTES if route.path not in WHOLE),
    *((method, route.path) for route in UNBUILT_ROUTES for method in route.methods),
    *(("GET", path) for path in (*PUBLIC, "/", "/docs")),
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


def made(chance: Random, server: Guarded) -> Sent:
    """A request: mostly of a route that there is, in its method, with some of it bent."""
    if chance.random() < 0.02:
        method, path = chance.choice(METHODS), chance.choice(WHOLE)
    else:
        method, path = chance.choice(ROUTES)
    if chance.random() < 0.1:
        method = chance.choice(METHODS)
    if chance.random() < 0.05:
        path += chance.choice(ENDINGS)
    path = path.replace("{id}", chance.choice(server.ids))
    if chance.random() < 0.15:
        path += "?" + "&".join(f"{chance.choice(('after', 'limit', 'status', 'x'))}={number}" for number in (-1, "a"))
    holder = chance.choice(server.good)
    headers, is_known = tokens(chance, holder.token, chance.choice(server.bad))
    headers += more_headers(chance)
    raw = body(chance, path)
    if b"DEREGISTER" not in raw or chance.random() < 0.02:  # whoever has left is told the same each time
        raw = raw.replace(b'"ada"', json.dumps(holder.agent).encode())
    raw = raw.replace(UNIT_ID.encode(), chance.choice(server.ids).encode())
    return Sent(method, path, headers, raw, is_known)


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
    return bent_raw(chance, json.dumps(value).encode())


def bent(chance: Random, message: dict[str, Any]) -> dict[str, Any]:
    """The message with something else in one place of the envelope, or of the payload."""
    inside = dict(message["payload"])
    if chance.random() < 0.3:
        return {**message, chance.choice(list(message)): chance.choice(VALUES)}
    inside[chance.choice([*inside, *NAMES])] = chance.choice(VALUES)
    return {**message, "payload": inside}


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
