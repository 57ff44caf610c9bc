"""One request and its answer: uvicorn's, and a shorter way for those that are whole, as nearly all of them are.

A request that is there with its last byte needs no event to wait for, and an answer that is complete no look at each
of its headers. Everything else (streams, bodies in pieces, callers that go away) takes uvicorn's way, unchanged.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from starlette.types import Receive, Send
from uvicorn._types import ASGI3Application, HTTPScope
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle
from uvicorn.server import ServerState

from fieldstone.servers.http.answers import Answer, Header
from fieldstone.servers.http.transport import JoinedWrites

_log: Final = logging.getLogger("uvicorn.error")


class Exchange(RequestResponseCycle):
    transport: JoinedWrites

    # What every request begins with is set once. Requests are logged by `endpoint.py`, whatever the process's handlers.
    logger = access_logger = _log
    access_log = False
    disconnected = False
    more_body = True
    response_started = False
    response_complete = False
    chunked_encoding: bool | None = None
    expected_content_length = 0

    def __init__(
        self,
        scope: HTTPScope,
        transport: JoinedWrites,
        flow: FlowControl,
        state: ServerState,
        on_response: Callable[[], None],
        *,
        keep_alive: bool,
        expects_100_continue: bool,
    ) -> None:
        self.scope = scope
        self.transport = transport
        self.flow = flow
        self.on_response = on_response
        self.default_headers = state.default_headers
        self.keep_alive = keep_alive
        self.waiting_for_100_continue = expects_100_continue
        self.message_event = asyncio.Event()
        self.body = b""  # type: ignore[assignment]  # see `on_body`
        self._tasks = state.tasks

    async def run_asgi(self, app: ASGI3Application) -> None:
        """The task takes itself off the list: a callback would be one more turn of the loop for each request."""
        try:
            await super().run_asgi(app)
        finally:
            self._tasks.discard(asyncio.current_task())


def whole_body(receive: Receive) -> bytes | None:
    """The body of a request that is there with its last byte. None: it has to be waited for."""
    exchange = getattr(receive, "__self__", None)
    if type(exchange) is not Exchange or exchange.more_body or not exchange.message_event.is_set():
        return None
    if exchange.waiting_for_100_continue or exchange.disconnected or exchange.response_complete:
        return None
    if exchange.flow.read_paused:
        exchange.flow.resume_reading()
    exchange.message_event.clear()
    body, exchange.body = bytes(exchange.body), bytearray()
    return body


def answer_whole(answer: Answer, send: Send) -> bool:
    """An answer that is complete, in one write, as uvicorn would have it in two. False: it has to go the way of all
    others."""
    exchange = getattr(send, "__self__", None)
    if type(exchange) is not Exchange or answer.headers or answer.stream is not None:
        return False
    if exchange.response_started or exchange.disconnected or exchange.flow.write_paused or not exchange.keep_alive:
        return False
    if exchange.scope["method"] == "HEAD":
        return False
    exchange.response_started = True
    exchange.waiting_for_100_continue = False
    head = _head(answer.status, answer.content_type, tuple(exchange.default_headers))
    exchange.transport.write_whole(b"%b%d\r\n\r\n%b" % (head, len(answer.body), answer.body))
    exchange.response_complete = True
    exchange.message_event.set()
    exchange.on_response()
    return True


@lru_cache(maxsize=32)  # each for as long as the date does not change
def _head(status: int, content_type: bytes, headers: tuple[Header, ...]) -> bytes:
    lines = b"".join(b"%b: %b\r\n" % header for header in headers)
    return b"%b%bcontent-type: %b\r\ncontent-length: " % (STATUS_LINE[status], lines, content_type)
