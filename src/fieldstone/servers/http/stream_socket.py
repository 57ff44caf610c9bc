"""Live delivery by WebSocket, version 1: many streams on one socket, JSON text frames `{type, …}`."""

import asyncio
from collections.abc import Awaitable
from functools import partial
from itertools import count
from typing import Any, Final, Literal, NamedTuple

import structlog
from msgspec import UNSET, DecodeError, Struct, UnsetType, ValidationError, json
from starlette.types import Receive, Scope, Send

from fieldstone.core.errors import FieldError, Forbidden, InternalError, StreamCompacted
from fieldstone.core.streams import MAX_SEQ
from fieldstone.planes.delivery import BufferOverflow, ReplayEnd, Subscription
from fieldstone.servers.http.answers import Answer, refusal
from fieldstone.servers.http.entrance import Entrance, Visit
from fieldstone.servers.http.events import StillKnown
from fieldstone.servers.http.gate import Gate

VERSION: Final = 1
LOOKS_PER_CREDENTIAL: Final = 10  # to check a signature a thousand times each second would be too dear
SUBSCRIPTIONS_MAX: Final = 1_000  # of one socket

GOING_AWAY: Final = 1001
PROTOCOL_ERROR: Final = 1002
POLICY: Final = 1008

# UNKNOWN_STREAM is for a stream that one may not see. Whoever may read streams sees all of its tenant's, and to others
# they are as those that were never written: so only a store that refuses a single stream leads to it.
Code = Literal["VERSION_MISMATCH", "UNKNOWN_STREAM", "REPLAY_FAILED", "BUFFER_OVERFLOW", "INVALID_MESSAGE", "COMPACTED"]

logger = structlog.get_logger("fieldstone.socket")


class Times(NamedTuple):
    """How long a client may take for what it has to do."""

    hello_s: float = 10.0
    ping_s: float = 30.0  # between two
    pong_s: float = 10.0
    send_s: float = 10.0  # to take one frame: who takes none for so long is cut off, in a replay too
    look_s: float = 0.5  # how soon it is seen that the server stops


class Hello(Struct, frozen=True, tag="hello"):
    version: Any = None


class Subscribe(Struct, frozen=True, tag="subscribe", rename="camel"):
    stream_id: str
    after_seq: int | None = None


class Unsubscribe(Struct, frozen=True, tag="unsubscribe", rename="camel"):
    stream_id: str


class Pong(Struct, frozen=True, tag="pong"):
    pass


class ServerHello(Struct, frozen=True, tag="server-hello"):
    version: int = VERSION


class ReplayEnded(Struct, frozen=True, tag="replay-end", rename="camel"):
    stream_id: str
    last_replay_seq: int


class Ping(Struct, frozen=True, tag="ping"):
    pass


class SocketError(Struct, frozen=True, tag="error", rename="camel"):
    code: Code
    message: str
    stream_id: str | UnsetType = UNSET
    floor: int | UnsetType = UNSET


_messages: Final = json.Decoder(Hello | Subscribe | Unsubscribe | Pong)
_encoder: Final = json.Encoder()


class Closing(NamedTuple):
    """Why the server ends a socket."""

    code: int
    error: SocketError | None = None


class SocketEndpoint:
    """An ASGI application for the socket's path: who comes in is identified as on every other path."""

    def __init__(self, gate: Gate, entrance: Entrance, *, times: Times = Times()) -> None:
        self._gate = gate
        self._entrance = entrance
        self._times = times

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # websocket.connect
        try:
            if refused := self._gate.refusal(scope["headers"]):
                raise refused
            granted = await self._entrance.identify(scope)
            async with self._entrance.tenants.visit(granted.tenant) as field:
                visit = self._entrance.visit(granted, scope, receive, field)
                field.require(visit.caller, "read a stream")
                await send({"type": "websocket.accept"})
                await StreamSocket(visit, send, self._gate, self._entrance.still_knows, self._times).serve()
        except FieldError as error:
            await _refuse(scope, send, refusal(error, None))
        except OSError:
            pass  # the client went away


class StreamSocket:
    """One socket, once it is accepted, to its end."""

    def __init__(self, visit: Visit, send: Send, gate: Gate, still_known: StillKnown, times: Times) -> None:
        self._visit = visit
        self._delivery = visit.field.planes.delivery
        self._send_event = send
        self._gate = gate
        self._still_known = still_known
        self._times = times
        self._said_hello = asyncio.Event()
        self._ponged = asyncio.Event()
        self._closing: asyncio.Future[Closing] = asyncio.get_running_loop().create_future()
        self._pumps: dict[str, asyncio.Task[None]] = {}
        self._sending_since: dict[str, float] = {}

    async def serve(self) -> None:
        tasks = [asyncio.create_task(each) for each in (self._listen(), self._beat(), self._look())]
        try:
            either: list[asyncio.Future[Any]] = [tasks[0], self._closing]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (*tasks, *self._pumps.values()):
                task.cancel()
            await asyncio.gather(*tasks, *self._pumps.values(), return_exceptions=True)
        if self._closing.done():
            await self._say_goodbye(self._closing.result())

    # --- what the client says ----------------------------------------------------------------------------------------

    async def _listen(self) -> None:
        while True:
            event = await self._visit.receive()
            if event["type"] == "websocket.disconnect":
                return
            try:
                message = _messages.decode(event.get("text") or b"")
            except (DecodeError, ValidationError, RecursionError):
                await self._tell(SocketError("INVALID_MESSAGE", "The message is not one of version 1."))
                continue
            await self._heed(message)

    async def _heed(self, message: Hello | Subscribe | Unsubscribe | Pong) -> None:
        if isinstance(message, Hello):
            await self._greet(message)
        elif isinstance(message, Pong):
            self._ponged.set()
        elif not self._said_hello.is_set():
            await self._tell(SocketError("INVALID_MESSAGE", "Say hello first."))
        elif isinstance(message, Subscribe):
            await self._subscribe(message)
        elif (pump := self._pumps.pop(message.stream_id, None)) is not None:
            pump.cancel()

    async def _greet(self, hello: Hello) -> None:
        if hello.version != VERSION or isinstance(hello.version, bool):
            told = SocketError("VERSION_MISMATCH", f"This server speaks version {VERSION}.")
            self._close(PROTOCOL_ERROR, told)
            return
        self._said_hello.set()
        await self._tell(ServerHello())

    async def _subscribe(self, wanted: Subscribe) -> None:
        stream, after = wanted.stream_id, wanted.after_seq or 0
        invalid = partial(SocketError, "INVALID_MESSAGE", stream_id=stream)
        running = self._pumps.get(stream)
        if running is not None and not running.done():
            await self._tell(invalid("The socket has a subscription to this stream."))
        elif len(self._pumps) >= SUBSCRIPTIONS_MAX:
            await self._tell(invalid(f"A socket has at most {SUBSCRIPTIONS_MAX} subscriptions."))
        elif not 0 <= after <= MAX_SEQ:
            await self._tell(invalid("afterSeq is a seq from 0."))
        elif not await self._still_known(self._visit.scope):  # `_look` comes too late for what is asked only now
            self._close(POLICY)
        else:
            overflow = partial(self._overflow, stream)
            try:
                subscription = self._delivery.subscribe(stream, after=after, on_overflow=overflow)
            except FieldError as error:
                await self._tell(invalid(error.message))
                return
            self._pumps[stream] = pump = asyncio.create_task(self._pump(subscription))
            pump.add_done_callback(partial(self._pumped, stream))

    # --- what it is told ---------------------------------------------------------------------------------------------

    async def _pump(self, subscription: Subscription) -> None:
        stream = subscription.stream
        try:
            async for found in subscription:
                if isinstance(found, ReplayEnd):
                    await self._tell(ReplayEnded(stream, found.last_replay_seq))
                    continue
                for each in found:
                    self._sending_since[stream] = asyncio.get_running_loop().time()
                    await self._send_event({"type": "websocket.send", "text": each.frame})
                self._sending_since.pop(stream, None)
        except StreamCompacted as gone:
            floor = int(str(gone.extra.get("floor", 0)))
            await self._tell(SocketError("COMPACTED", gone.message, stream, floor))
        except BufferOverflow:
            self._overflow(stream)
        except Forbidden as error:
            await self._tell(SocketError("UNKNOWN_STREAM", error.message, stream))
        except OSError:
            pass  # the client went away
        except Exception as broken:  # why: whatever breaks one stream, the others of the socket go on
            logger.error("a replay failed", error=type(broken).__name__, exc_info=broken)
            await self._tell(SocketError("REPLAY_FAILED", InternalError().message, stream))
        finally:
            self._sending_since.pop(stream, None)
            subscription.close()

    def _pumped(self, stream: str, pump: asyncio.Task[None]) -> None:
        if self._pumps.get(stream) is pump:
            del self._pumps[stream]

    async def _tell(self, frame: Struct) -> None:
        try:
            await self._send_event({"type": "websocket.send", "text": _encoder.encode(frame).decode()})
        except OSError:
            pass  # the client went away: `_listen` hears of it

    # --- how it ends -------------------------------------------------------------------------------------------------

    def _overflow(self, stream: str) -> None:
        told = SocketError("BUFFER_OVERFLOW", "The socket does not take its events in time.", stream)
        self._close(POLICY, told)

    def _close(self, code: int, error: SocketError | None = None) -> None:
        if not self._closing.done():
            self._closing.set_result(Closing(code, error))

    async def _beat(self) -> None:
        """One timer for the socket, however often hello is said."""
        if not await _within(self._times.hello_s, self._said_hello.wait()):
            self._close(PROTOCOL_ERROR)
            return
        while True:
            await asyncio.sleep(self._times.ping_s)
            self._ponged.clear()
            sent = await _within(self._times.pong_s, self._tell(Ping()))
            if not sent or not await _within(self._times.pong_s, self._ponged.wait()):
                self._close(GOING_AWAY)
                return

    async def _look(self) -> None:
        """Now and then, for what no frame tells."""
        for looks in count(1):
            await asyncio.sleep(self._times.look_s)
            limit = asyncio.get_running_loop().time() - self._times.send_s
            for stream, since in list(self._sending_since.items()):
                if since < limit:
                    self._overflow(stream)
            if self._gate.stopping or self._delivery.closed.is_set():
                self._close(GOING_AWAY)
            elif looks % LOOKS_PER_CREDENTIAL == 0 and not await self._still_known(self._visit.scope):
                self._close(POLICY)

    async def _say_goodbye(self, closing: Closing) -> None:
        """As far as the client takes it in time. What it did not take lies before it on the line, and so do these: a
        client that comes back to it reads why the socket was closed."""
        if closing.error is not None:
            await _within(self._times.send_s, self._tell(closing.error))
        try:
            await _within(self._times.send_s, self._send_event({"type": "websocket.close", "code": closing.code}))
        except OSError:
            pass  # the client went away


async def _within(seconds: float, work: Awaitable[Any]) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await work
    except TimeoutError:
        return False
    return True


async def _refuse(scope: Scope, send: Send, answer: Answer) -> None:
    """Before the socket is accepted: as on every other path, where the server can."""
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": POLICY})
        return
    headers = [(b"content-type", answer.content_type), *answer.headers]
    await send({"type": "websocket.http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": answer.body})
