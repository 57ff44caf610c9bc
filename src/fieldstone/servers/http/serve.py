"""From settings to a running server, and to its end: what was accepted is finished and answered."""

import asyncio
import gc
import ipaddress
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from inspect import CORO_CREATED, getcoroutinestate
from types import CoroutineType
from typing import Final, NamedTuple

import uvicorn
from msgspec import Struct, json
from uvicorn.loops.auto import auto_loop_factory

from fieldstone.profiles.openwop.discovery import HostFeatures
from fieldstone.servers.auth.keys import Keys
from fieldstone.servers.http.app import HttpApp
from fieldstone.servers.http.conformance import ConformanceRoutes
from fieldstone.servers.http.entrance import Entrance
from fieldstone.servers.http.gate import Gate, bracketed
from fieldstone.servers.http.logs import configure_logs
from fieldstone.servers.http.protocol import FieldProtocol
from fieldstone.servers.http.routes import DOCS_PATH
from fieldstone.settings import Settings

KEEP_ALIVE_S: Final = 65  # longer than clients keep an idle connection, so that it is they who close it
FINISH_S: Final = 8  # what accepted requests may take once the server is told to stop
CUT_OFF_S: Final = 2  # for the answers of those that were not done by then
POLL_S: Final = 0.1
# A thread that summarises or counts holds the interpreter for this long at most. With Python's own 5 ms, each of the
# ten or so turns that a request takes waits for it: 146 ms at worst while 10,000 entries are compacted, 74 with .5 ms.
# With .1, what RECORD waits for beside a summarize (its p99) is a sixth less than with .5, and the summarize as fast.
SWITCH_S: Final = 0.0001
SOCKET_BYTES: Final = 65_536  # clients send no more than what they want to hear of
EVERYWHERE: Final = ("0.0.0.0", "::")  # addresses that stand for all of them

STOPPED: Final = "Fieldstone has stopped; all that was accepted is on disk.\n"
STOPPED_JSON: Final = '{"state":"stopped"}\n'


class NonLoopbackHost(Exception):
    """Without keys only loopback addresses are served."""


class CannotListen(Exception):
    """The address cannot be had."""


class Ready(Struct, frozen=True):
    """What a program reads that started a server."""

    state: str
    url: str
    store: str
    open_mode: bool
    docs: str


class House(NamedTuple):
    """What is served: the fields behind their entrance, where they lie, and how to tell others where to find us."""

    entrance: Entrance
    keys: Keys
    store: str
    announce: Callable[[str], None]
    host: HostFeatures | None = None  # of the OpenWOP memory host; None: it is off
    conformance: ConformanceRoutes | None = None


def serve(
    settings: Settings, open_house: Callable[[], AbstractAsyncContextManager[House]], *, as_json: bool = False
) -> None:
    """Serve until SIGTERM or SIGINT. `as_json`: the lines on stdout, when it is ready and when it ends, are JSON.

    Raises `NonLoopbackHost`, `CannotListen`, and what `open_house` raises: each a sentence for whoever started it.
    """
    configure_logs(settings.log_level, settings.log_format)
    sys.setswitchinterval(SWITCH_S)
    with asyncio.Runner(loop_factory=auto_loop_factory()) as runner:
        runner.run(_serve(settings, open_house, as_json))


def check_address(host: str, *, is_open: bool) -> None:
    if is_open and not is_loopback(host):
        raise NonLoopbackHost(
            f"{host} is not a loopback address, and there are no keys: whoever reaches it could do everything. "
            "Make one with `fieldstone keys create --tenant NAME --authority 10`, or use --host 127.0.0.1."
        )


class Serving:
    """A server that runs."""

    def __init__(self, server: "_Server", task: asyncio.Task[None], url: str) -> None:
        self._server = server
        self._task = task
        self.url = url

    def begin_stop(self) -> None:
        """New requests are refused from now on. A second call waits for nothing any more."""
        self._server.begin_stop()

    async def ended(self) -> None:
        await asyncio.shield(self._task)

    async def stop(self) -> None:
        """Refuse new requests, finish the accepted ones, and end. The field stays open: its opener closes it."""
        self.begin_stop()
        await self.ended()


async def start(
    entrance: Entrance,
    keys: Keys,
    settings: Settings,
    host: HostFeatures | None = None,
    conformance: ConformanceRoutes | None = None,
) -> Serving:
    """Serve in this event loop; it accepts connections when this returns. Port 0 takes a free one."""
    check_address(settings.host, is_open=entrance.is_open)
    listener = _listen(settings.host, settings.port)
    scheme = "https" if settings.tls_cert else "http"
    gate = Gate(
        settings.host,
        hosts=settings.hosts,
        origins=settings.origins,
        scheme=scheme,
        any_host=not settings.hosts and settings.host in EVERYWHERE,
    )
    app = HttpApp(
        entrance,
        keys,
        gate,
        max_body_bytes=settings.max_body_bytes,
        log_requests=settings.log_level == "debug",
        host=host,
        conformance=conformance,
    )
    server = _Server(_config(app, settings), app)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    ready = asyncio.create_task(server.ready.wait())
    await asyncio.wait({task, ready}, return_when=asyncio.FIRST_COMPLETED)
    if not ready.done():
        ready.cancel()
        await task  # raises what stopped it
    return Serving(server, task, f"{scheme}://{bracketed(settings.host)}:{listener.getsockname()[1]}")


async def _serve(
    settings: Settings, open_house: Callable[[], AbstractAsyncContextManager[House]], as_json: bool
) -> None:
    stop = asyncio.Event()
    serving: list[Serving] = []

    def on_signal() -> None:
        if stop.is_set() and serving:
            serving[0].begin_stop()
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, on_signal)
    async with open_house() as house:
        configure_logs(settings.log_level, settings.log_format, scrub=house.entrance.scrub)
        serving.append(await start(house.entrance, house.keys, settings, house.host, house.conformance))
        house.announce(serving[0].url)
        gc.collect()
        gc.freeze()  # what is loaded by now stays: a full collection over it kept requests waiting for 20 to 130 ms
        sys.stdout.write(_ready_line(serving[0].url, house, as_json) + "\n")
        sys.stdout.flush()
        await _first(stop.wait(), serving[0].ended())
        await serving[0].stop()
    sys.stdout.write(STOPPED_JSON if as_json else STOPPED)


async def _first(*waits: Awaitable[object]) -> None:
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()


def _ready_line(url: str, house: House, as_json: bool) -> str:
    if as_json:
        ready = Ready("ready", url, house.store, house.entrance.is_open, url + DOCS_PATH)
        return json.encode(ready).decode()
    whom = (
        "open for one local operator (no keys): whoever reaches this address may do everything"
        if house.entrance.is_open
        else "for those who have a key"
    )
    return f"Fieldstone serves {house.store} at {url}, {whom}. Docs: {url}{DOCS_PATH}"


def _config(app: HttpApp, settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=FieldProtocol,
        ws="websockets-sansio",
        ws_ping_interval=None,  # the protocol of live delivery has pings of its own
        ws_per_message_deflate=False,
        ws_max_size=SOCKET_BYTES,
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=CUT_OFF_S,
    )


class _Server(uvicorn.Server):
    """uvicorn's server, which leaves signals to us and lets open connections hear that it is going away."""

    def __init__(self, config: uvicorn.Config, app: HttpApp) -> None:
        super().__init__(config)
        self._app = app
        self.ready = asyncio.Event()

    def begin_stop(self) -> None:
        if self.should_exit:
            self.force_exit = True
        self._app.gate.stopping = True
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.ready.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        # Open connections stay open while accepted requests are finished, and are told 503 where they ask for more.
        until = asyncio.get_running_loop().time() + FINISH_S
        while (tasks := self.server_state.tasks) and not self.force_exit and asyncio.get_running_loop().time() < until:
            await asyncio.wait(set(tasks), timeout=POLL_S)
        for task in self.server_state.tasks:
            if _has_begun(task):  # else it tells its caller 503 by itself: cancelled, it would tell nothing
                task.cancel()  # each tells its caller 503
        await super().shutdown(sockets=sockets)


def _has_begun(task: "asyncio.Task[None]") -> bool:
    coroutine = task.get_coro()
    return not isinstance(coroutine, CoroutineType) or getcoroutinestate(coroutine) != CORO_CREATED


def _listen(host: str, port: int) -> socket.socket:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    family, kind, proto, _, address = found[0]
    # With its protocol said: else asyncio leaves Nagle's algorithm on, and each answer waits 40 ms for an ACK.
    listener = socket.socket(family, kind, proto)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise CannotListen(
            f"{bracketed(host)}:{port} cannot be served: {error.strerror}. Choose another port with --port, "
            "or 0 for any free one."
        ) from error
    return listener


def is_loopback(host: str) -> bool:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return bool(found) and all(ipaddress.ip_address(address[0]).is_loopback for *_, address in found)
