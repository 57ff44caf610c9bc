"""What goes back to the caller: a status, a body, and the headers that belong to it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final, NamedTuple, Protocol

from msgspec import json
from starlette.types import Receive, Send

from fieldstone.core.errors import FieldError
from fieldstone.wire.errors import ErrorBody, error_body, http_status
from fieldstone.wire.openwop import openwop_error

JSON: Final = b"application/json"
JSON_LINES: Final = b"application/jsonl"
EVENT_STREAM: Final = b"text/event-stream"
HTML: Final = b"text/html; charset=utf-8"

Header = tuple[bytes, bytes]
CLOSE: Final[Header] = (b"connection", b"close")
CHALLENGE: Final[Header] = (b"www-authenticate", b"Bearer")

_encoder = json.Encoder()


class Answer(NamedTuple):
    status: int
    body: bytes
    content_type: bytes = JSON
    headers: tuple[Header, ...] = ()
    stream: AsyncIterator[bytes] | None = None  # after the body
    operation: str | None = None  # for the request log, where the route does not tell it


def reply(value: Any, status: int = 200) -> Answer:
    return Answer(status, _encoder.encode(value))


def done(*headers: Header) -> Answer:
    """204: there is nothing more to say."""
    return Answer(204, b"", headers=headers)


def refusal(error: FieldError, operation: str | None, *headers: Header) -> Answer:
    return Answer(http_status(error), _encoder.encode(error_body(error, operation)), headers=headers)


class Refuse(Protocol):
    def __call__(self, error: FieldError, operation: str | None, *headers: Header) -> Answer: ...


def openwop_refusal(error: FieldError, operation: str | None, *headers: Header) -> Answer:
    """As OpenWOP has it: on its routes every error looks so."""
    return Answer(http_status(error), _encoder.encode(openwop_error(error)), headers=headers)


def encode_error(body: ErrorBody) -> bytes:
    return _encoder.encode(body)


async def send_answer(answer: Answer, receive: Receive, send: Send, method: str) -> None:
    if answer.stream is not None:
        await _send_stream(answer, answer.stream, receive, send, method)
        return
    await send(
        {
            "type": "http.response.start",
            "status": answer.status,
            "headers": [
                (b"content-type", answer.content_type),
                (b"content-length", b"%d" % len(answer.body)),
                *answer.headers,
            ],
        }
    )
    await send({"type": "http.response.body", "body": answer.body})


async def _send_stream(answer: Answer, stream: AsyncIterator[bytes], receive: Receive, send: Send, method: str) -> None:
    headers = [(b"content-type", answer.content_type), *answer.headers]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    if method != "HEAD":
        await send({"type": "http.response.body", "body": answer.body, "more_body": True})
        gone = asyncio.ensure_future(receive())  # the body was read: the next event is that the caller went away
        try:
            async for piece in stream:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
                await asyncio.sleep(0)  # a long answer to one caller leaves room for the others
                if gone.done():
                    return
        finally:
            gone.cancel()
    await send({"type": "http.response.body", "body": b""})
