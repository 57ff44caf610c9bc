"""Requests bent out of shape, how they are sent, and what must hold of every answer."""

import http.client
import json
import os
from collections.abc import Sequence
from random import Random
from typing import Any, Final, NamedTuple

from fieldstone.servers.http.openwop import PREFIXES

MANY: Final = bool(os.environ.get("FIELDSTONE_FUZZ"))
REQUESTS_A_SEED: Final = 50
HANGS_S: Final = 20
CODED_5XX: Final = (501, 503, 504, 507)
ERROR_FIELDS: Final = {"code", "message", "operation", "recoverable", "suggested_action"}
OPENWOP_FIELDS: Final = {"error", "message", "details"}
PUBLIC: Final = ("/healthz", "/readyz", "/v1/openapi.json", "/.well-known/openwop")
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
HEADERS: Final = (
    ("host", "localhost"),
    ("host", "evil.example"),
    ("origin", "https://evil.example"),
    ("origin", "null"),
    ("x-tenant", "zeta"),
    ("x-forwarded-for", "10.0.0.1"),
    ("prefer", "respond-async"),
    ("accept", "text/event-stream"),
    ("content-type", "text/plain"),
    ("expect", "100-continue"),
    ("range", "bytes=0-1"),
    ("if-none-match", "*"),
    ("last-event-id", "-1"),
    ("last-event-id", "1"),
    ("upgrade", "websocket"),
    ("cookie", "key=" + "x" * 500),
)
ENDINGS: Final = ("/", "/x", "//", "%00", "/../keys", ";a=b", "%C3%A9", "%ff")


class Sent(NamedTuple):
    method: str
    path: str
    headers: list[tuple[str, str]]
    body: bytes
    is_known: bool  # with one good token


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


def more_headers(chance: Random) -> Sequence[tuple[str, str]]:
    return [chance.choice(HEADERS) for _ in range(chance.choice((0, 0, 0, 1, 2)))]


def bent_raw(chance: Random, raw: bytes) -> bytes:
    """Now and then a few bytes are others."""
    if chance.random() < 0.1:
        at = chance.randrange(len(raw) + 1)
        raw = raw[:at] + chance.randbytes(3) + raw[at + chance.randrange(4) :]
    return raw


def sent(connection: http.client.HTTPConnection, request: Sent) -> tuple[int, bytes]:
    """Status and body; a request that is never answered ends in a timeout. Of what has no end, the first piece."""
    names = {name for name, _ in request.headers}
    try:
        connection.putrequest(request.method, request.path, skip_host="host" in names, skip_accept_encoding=True)
        for header in request.headers:
            connection.putheader(*header)
        connection.putheader("content-length", str(len(request.body)))
        connection.endheaders(request.body)
        answer = connection.getresponse()
        if answer.headers.get_content_type() != "text/event-stream" or request.method == "HEAD":
            return answer.status, answer.read()
        piece = answer.read1()
        answer.close()
        connection.close()
        return answer.status, piece
    except (http.client.RemoteDisconnected, ConnectionError):  # the server closes what it will not go on with
        connection.close()
        return 0, b""


def check(request: Sent, status: int, told: bytes) -> None:
    assert status < 500 or status in CODED_5XX, (request, told)
    is_public = request.path.split("?")[0] in PUBLIC and request.method in ("GET", "HEAD")
    if not (request.is_known or is_public):
        assert status in (0, 400, 401, 403, 413), (request, status, told)
    if status >= 400 and request.method != "HEAD":
        check_error(request.path, status, set(json.loads(told)))


def check_error(path: str, status: int, fields: set[str]) -> None:
    """In its envelope. What is no HTTP is refused before anybody looks at the path."""
    is_openwop = path.startswith(PREFIXES)
    if is_openwop and not (status == 400 and fields >= ERROR_FIELDS):
        assert {"error", "message"} <= fields <= OPENWOP_FIELDS, (path, fields)
    else:
        assert fields >= ERROR_FIELDS, (path, fields)
