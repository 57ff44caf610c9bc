"""uvicorn's HTTP protocol, a third cheaper, and with the Field's error format where it answers by itself."""

import asyncio
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

import httptools
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from fieldstone.core.errors import InvalidEnvelope
from fieldstone.servers.http.answers import JSON, encode_error
from fieldstone.servers.http.exchange import Exchange
from fieldstone.servers.http.streams import CUT_OFF
from fieldstone.servers.http.transport import JoinedWrites
from fieldstone.wire.errors import error_body

MALFORMED: Final = encode_error(error_body(InvalidEnvelope("The request is not valid HTTP/1.1."), None))
SOCKET_PATHS: Final = (b"/v1/streams/ws",)
SHORT_URL_BYTES: Final = 200  # what is remembered stays small


class FieldProtocol(HttpToolsProtocol):
    """It knows what the server's settings are: no root path, no bound on connections, no access log of uvicorn's."""

    cycle: Exchange
    _joined: JoinedWrites
    _answering: RequestResponseCycle | None = None  # `cycle` is the last one that came: in a pipeline, another
    _answered_s = 0.0
    _upgrades = False  # the request that is being read

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        self._joined = JoinedWrites(transport)
        super().connection_made(self._joined)
        self._scope = {
            "type": "http",
            "asgi": {"version": self.asgi_version, "spec_version": "2.3"},
            "http_version": "1.1",
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "root_path": "",
            # Whoever answers a request may cut it off: a follower that takes nothing would hold its line for ever.
            "extensions": {CUT_OFF: {"abort": self._joined.abort}},
        }
        self._answered_s = self.loop.time()
        self._look_again_in(self.timeout_keep_alive)  # also for who connects and never sends a whole request

    def on_message_begin(self) -> None:
        self.url = b""
        self.expect_100_continue = False
        self.headers = []
        self.scope = {**self._scope, "headers": self.headers, "state": {}}  # type: ignore[typeddict-item]

    def on_headers_complete(self) -> None:
        parser, scope = self.parser, self.scope
        scope["method"] = parser.get_method().decode("ascii")
        if (version := parser.get_http_version()) != "1.1":
            scope["http_version"] = version
        self._upgrades = parser.should_upgrade() and self._should_upgrade()
        if self._upgrades:
            return
        split = _split if len(self.url) <= SHORT_URL_BYTES else _split.__wrapped__
        scope["path"], scope["raw_path"], scope["query_string"] = split(self.url)
        before: Exchange | None = self.cycle  # uvicorn has it otherwise, but before the first request: None
        exchange = self.cycle = Exchange(
            scope,
            self._joined,
            self.flow,
            self.server_state,
            self.on_response_complete,
            keep_alive=version != "1.0" and parser.should_keep_alive(),
            expects_100_continue=self.expect_100_continue,
        )
        if before is None or before.response_complete:
            self._start_asgi_task(exchange, self.app)
        else:  # in a pipeline: it waits for the answers before its own
            self.flow.pause_reading()
            self.pipeline.appendleft((exchange, self.app))

    def on_body(self, body: bytes) -> None:
        exchange = self.cycle
        if self._upgrades or exchange.response_complete:
            return
        exchange.add(body)
        if len(exchange.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()

    def on_message_complete(self) -> None:
        exchange = self.cycle
        if not self._upgrades and not exchange.response_complete:
            exchange.more_body = False
            exchange.message_event.set()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._answering = cycle
        self.tasks.add(self.loop.create_task(cycle.run_asgi(app)))

    def connection_lost(self, exc: Exception | None) -> None:
        """uvicorn tells the last request alone. A follower with one behind it would never hear that nobody listens."""
        if (answering := self._answering) is not None and not answering.response_complete:
            answering.disconnected = True
            answering.message_event.set()
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
        cycle: Exchange | None = self.cycle  # as above
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


@lru_cache(maxsize=256)
def _split(url: bytes) -> tuple[str, bytes, bytes]:
    """Path, raw path and query. Callers ask for the same few again and again."""
    parsed = httptools.parse_url(url)
    path = parsed.path.decode("ascii")
    return unquote(path) if "%" in path else path, parsed.path, parsed.query or b""
