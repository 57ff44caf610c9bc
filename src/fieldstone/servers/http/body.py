"""Reading a request's body within its bounds."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, TypeVar

from msgspec import DecodeError, ValidationError, json
from starlette.types import Message, Receive, Scope

from fieldstone.core.errors import InvalidPayload, PayloadTooLarge
from fieldstone.servers.http.exchange import whole_body
from fieldstone.wire.messages import told

BODY_S: Final = 60
SMALL_BYTES: Final = 200_000  # a key's agents, or a secret's value
DRAIN_BYTES: Final = 64_000_000  # read off before a refusal, so that a client which sends first and reads then sees it


T = TypeVar("T")


class ClientGone(Exception):
    """The connection ended before the body did: there is nobody left to answer."""


class BodyTooSlow(Exception):
    """The body did not arrive in time: whoever sends it drop by drop holds a place that others wait for."""


class EndlessBody(Exception):
    """More than DRAIN_BYTES: the answer is sent and the connection closed."""


async def read_body(scope: Scope, receive: Receive, *, most_bytes: int) -> bytes:
    """The whole body. One that is too large is read off, and then refused."""
    body = whole_body(receive)
    if body is None:
        return await _read_in_pieces(scope, receive, most_bytes=most_bytes)
    if len(body) > most_bytes:
        raise _too_large(most_bytes)
    return body


async def _read_in_pieces(scope: Scope, receive: Receive, *, most_bytes: int) -> bytes:
    declared = _declared_bytes(scope)
    if declared > DRAIN_BYTES:
        raise EndlessBody
    async with _in_time():
        return await _read_on(receive, most_bytes=most_bytes, too_large=declared > most_bytes)


async def read_json(scope: Scope, receive: Receive, kind: type[T]) -> T:
    """A small body of a given shape."""
    return await read_json_within(scope, receive, kind, most_bytes=SMALL_BYTES)


async def read_optional_json(scope: Scope, receive: Receive, kind: type[T]) -> T:
    """A body in which nothing has to be said need not be there."""
    body = await read_body(scope, receive, most_bytes=SMALL_BYTES)
    return _decoded(body or b"{}", kind, tells=True)


async def read_json_within(scope: Scope, receive: Receive, kind: type[T], *, most_bytes: int, tells: bool = True) -> T:
    """`tells`: what is wrong, which may repeat the name of a field."""
    return _decoded(await read_body(scope, receive, most_bytes=most_bytes), kind, tells=tells)


def _decoded(body: bytes, kind: type[T], *, tells: bool) -> T:
    try:
        return json.decode(body, type=kind)
    except RecursionError:
        raise InvalidPayload("The body is nested too deeply.") from None
    except ValidationError as error:
        what = told(str(error), kind) if tells else "a field is missing, unknown, or of the wrong kind"
        raise InvalidPayload(f"The body is malformed: {what}.") from error
    except (DecodeError, UnicodeDecodeError) as error:
        raise InvalidPayload("The body is not valid JSON in UTF-8.") from error


async def drain(receive: Receive) -> None:
    """Read off a body that nobody wants."""
    if whole_body(receive) is not None:
        return
    size = 0
    more = True
    async with _in_time():
        while more:
            event = await receive()
            size += len(_piece(event))
            if size > DRAIN_BYTES:
                raise EndlessBody
            more = event.get("more_body", False)


@asynccontextmanager
async def _in_time() -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(BODY_S):
            yield
    except TimeoutError:
        raise BodyTooSlow(f"The body did not arrive within {BODY_S} s.") from None


async def _read_on(receive: Receive, *, most_bytes: int, too_large: bool) -> bytes:
    kept: list[bytes] = []
    size = 0
    while True:
        event = await receive()
        piece = _piece(event)
        size += len(piece)
        if size > DRAIN_BYTES:
            raise EndlessBody
        if size > most_bytes:
            too_large = True
        if too_large:
            kept.clear()
        else:
            kept.append(piece)
        if not event.get("more_body"):
            break
    if too_large:
        raise _too_large(most_bytes)
    return b"".join(kept)


def _too_large(most_bytes: int) -> PayloadTooLarge:
    return PayloadTooLarge(f"The request body is larger than {most_bytes} bytes.")


def _piece(event: Message) -> bytes:
    if event["type"] == "http.disconnect":
        raise ClientGone
    piece: bytes = event.get("body", b"")
    return piece


def _declared_bytes(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value[:20])  # the parser has bounded it; this keeps it cheap whatever the parser
    return 0
