"""uvicorn's HTTP protocol, a third cheaper, and with the Field's error format where it answers by itself."""

import asyncio
from typing import Any, Final

from starlette.types import Send
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from fieldstone.core.errors import InvalidEnvelope
from fieldstone.servers.http.answers import JSON, Answer, encode_error
from fieldstone.servers.http.streams import CUT_OFF
from fieldstone.wire.errors import error_body

MALFORMED: Final = encode_error(error_body(InvalidEnvelope("The request is not valid HTTP/1.1."), None))
SOCKET_PATHS: Final = (b"/v1/streams/ws",)
HEAD: Final = b"HTTP/1.1 "
INTERIM: Final = b"HTTP/1.1 1"


class FieldProtocol(HttpToolsProtocol):
    _joined: "JoinedWrites"
    _extensions: dict[str, dict[object, object]]
    _answered_s = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        self._joined = JoinedWrites(transport)
        # Whoever answers a request may cut it off: a follower that takes nothing would hold its line for ever.
        self._extensions = {CUT_OFF: {"abort": self._joined.abort}}
        super().connection_made(self._joined)
        self._answered_s = self.loop.time()
        self._look_again_in(self.timeout_keep_alive)  # also for who connects and never sends a whole request
        self.access_log = False  # whatever the handlers of the process: requests are logged by `endpoint.py`

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = self._extensions

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()

    def on_response_complete(self) -> None:
        """As uvicorn does it, but with one timer for the connection instead of one for each answer."""
        self._joined.flush()  # an answer to HEAD has no body to wait for
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
            return
        self._answered_s = self.loop.time()

    def _unset_keepalive_if_required(self) -> None:
        """The timer looks for itself whether the connection is idle."""

    def timeout_keep_alive_handler(self) -> None:
        cycle: RequestResponseCycle | None = self.cycle  # uvicorn has it otherwise, but before the first request: None
        is_idle = cycle is None or cycle.response_complete
        idle_s = self.loop.time() - self._answered_s if is_idle else 0.0
        if idle_s >= self.timeout_keep_alive:
            self.transport.close()
        else:
            self._look_again_in(self.timeout_keep_alive - idle_s)

    def _look_again_in(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def send_400_response(self, msg: str) -> None:
        if self.transport.is_closing():
            return
        head = b"content-type: %b\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % (JSON, len(MALFORMED))
        self.transport.write(STATUS_LINE[400] + head + MALFORMED)
        self.transport.close()

    def _should_upgrade(self) -> bool:
        return super()._should_upgrade() and self.url.partition(b"?")[0] in SOCKET_PATHS

    def handle_websocket_upgrade(self) -> None:
        """From here on the connection is the socket's: it has its own timers, and writes as it likes."""
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
        self._joined.flush()
        self.transport = self._joined.beneath
        super().handle_websocket_upgrade()

    def _unsupported_upgrade_warning(self) -> None:
        """Elsewhere the request is answered like any other, and that is all there is to say."""


def answer_whole(answer: Answer, send: Send) -> bool:
    """An answer that is complete, in one write, as uvicorn would have it in two, each header of which it looks at:
    a sixteenth of what a small request costs. False: it has to go the way of all others."""
    cycle = getattr(send, "__self__", None)
    if type(cycle) is not RequestResponseCycle or not isinstance(cycle.transport, JoinedWrites):
        return False
    if answer.headers or answer.stream is not None or cycle.scope["method"] == "HEAD":
        return False
    if cycle.response_started or cycle.disconnected or cycle.flow.write_paused or not cycle.keep_alive:
        return False
    cycle.response_started = True
    cycle.waiting_for_100_continue = False
    cycle.transport.write_whole(
        b"%b%bcontent-type: %b\r\ncontent-length: %d\r\n\r\n%b"
        % (
            STATUS_LINE[answer.status],
            b"".join([b"%b: %b\r\n" % header for header in cycle.default_headers]),
            answer.content_type,
            len(answer.body),
            answer.body,
        )
    )
    cycle.response_complete = True
    cycle.message_event.set()
    cycle.on_response()
    return True


class JoinedWrites(asyncio.Transport):
    """A transport that keeps an answer's head until its body comes. uvicorn writes the two one after the other, and
    each write is a system call that wakes the client: together they are a third of what a small request costs."""

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__()
        self._transport = transport
        self._head = b""

    @property
    def beneath(self) -> asyncio.Transport:
        return self._transport

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._head:
            data, self._head = self._head + data, b""
        elif data[:9] == HEAD and data[:10] != INTERIM:
            self._head = bytes(data)
            return
        self._transport.write(data)

    def write_whole(self, data: bytes) -> None:
        """Head and body at once."""
        self._transport.write(data)

    def flush(self) -> None:
        if self._head:
            self.write(b"")

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)
