"""Follow streams of a server live, over WebSocket. A connection that breaks is made anew, and no event is missed.

async with StreamClient("http://127.0.0.1:8080", key=key) as client:
    async for event in client.follow("run:42"):
        ...
"""

import asyncio
import random
import ssl
from collections.abc import Callable, Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, NamedTuple, TypeVar

from msgspec import DecodeError, Struct, json
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus, WebSocketException

from fieldstone.core.errors import FieldError, InternalError, InvalidPayload, StreamCompacted, UnknownStream
from fieldstone.core.streams import StoredEvent
from fieldstone.wire.errors import ErrorBody, error_from

VERSION: Final = 1
SOCKET_PATH: Final = "/v1/streams/ws"
MAX_FRAME_BYTES: Final = 16_000_000  # four times the largest event
COMES_BACK: Final = frozenset({408, 429, 500, 502, 503, 504})  # what a server answers that may say otherwise soon

T = TypeVar("T")


class VersionMismatch(Exception):
    """The server speaks another version of the stream protocol. Upgrade Fieldstone here or there."""


class Patience(NamedTuple):
    """How long the client waits, and for what."""

    handshake_s: float = 10.0  # until the server has said hello
    silence_s: float = 45.0  # the server pings every 30 s: one that is silent for longer is gone
    first_pause_s: float = 0.1  # before the second attempt; each further one is twice as long
    longest_pause_s: float = 30.0


class Frame(Struct, frozen=True, rename="camel"):
    """Whatever the server says; `type` tells which of the fields are there."""

    type: str
    version: int | None = None
    stream_id: str | None = None
    event: StoredEvent | None = None
    last_replay_seq: int | None = None
    code: str | None = None
    message: str = ""
    floor: int | None = None


_frames: Final = json.Decoder(Frame)


class StreamClient:
    """`chance` spreads the attempts of many clients that lost the same server."""

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        ca_file: str | None = None,
        patience: Patience = Patience(),
        chance: random.Random | None = None,
    ) -> None:
        scheme, _, rest = url.rstrip("/").partition("://")
        if scheme not in {"http", "https"}:
            raise ValueError("The server's address begins with http:// or https://.")
        self.address: Final = f"{'wss' if scheme == 'https' else 'ws'}://{rest}{SOCKET_PATH}"
        self.headers: Final = {} if key is None else {"authorization": f"Bearer {key}"}
        self.tls: Final = ssl.create_default_context(cafile=ca_file) if scheme == "https" else None
        self.patience: Final = patience
        self.chance: Final = chance or random.Random()
        self.closed: Final = asyncio.Event()
        self._open: set[Following] = set()

    def follow(self, stream: str, *, after: int = 0) -> "Following":
        """The stream's events behind `after`, and then what comes, without an end until the client is closed."""
        following = Following(self, stream, after, self._open.discard)
        self._open.add(following)
        return following

    async def close(self) -> None:
        """Every iterator ends."""
        self.closed.set()
        await asyncio.gather(*(each.close() for each in list(self._open)))

    async def __aenter__(self) -> "StreamClient":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class Following:
    """One stream, over a connection of its own: who takes its events slowly holds up no other."""

    def __init__(self, client: StreamClient, stream: str, after: int, on_close: "Callable[[Following], None]") -> None:
        self.stream: Final = stream
        self.last_seq = after  # the last event that was handed over
        self.caught_up: Final = asyncio.Event()  # all that was there when it last connected has been handed over
        self._client = client
        self._socket: ClientConnection | None = None
        self._attempts = 0
        self._closed = False
        self._on_close = on_close

    def __aiter__(self) -> "Following":
        return self

    async def __anext__(self) -> StoredEvent:
        while not self._is_closed():
            try:
                if self._socket is None:
                    self._socket = await self._unless_closed(self._connected())
                    continue
                event = self._taken(await self._receive(self._socket))
                if event is not None:
                    return event
            except (OSError, TimeoutError, WebSocketException, _Broken):
                await self._drop()
                await self._pause()
            except Exception:  # why: whatever it was, the connection ends with it
                await self.close()
                raise
        raise StopAsyncIteration

    async def close(self) -> None:
        self._closed = True
        await self._drop()
        self._on_close(self)

    def _is_closed(self) -> bool:
        return self._closed or self._client.closed.is_set()

    # --- the connection ----------------------------------------------------------------------------------------------

    async def _connected(self) -> ClientConnection:
        client = self._client
        try:
            async with asyncio.timeout(client.patience.handshake_s):
                socket = await connect(
                    client.address,
                    additional_headers=client.headers,
                    ssl=client.tls,
                    compression=None,
                    proxy=None,
                    open_timeout=None,
                    ping_interval=None,
                    max_size=MAX_FRAME_BYTES,
                )
                try:
                    await self._greet(socket)
                except BaseException:  # why: whatever it was, the connection ends with it
                    await socket.close()
                    raise
        except InvalidStatus as refused:
            raise _refusal(refused) from refused
        return socket

    async def _greet(self, socket: ClientConnection) -> None:
        await _say(socket, {"type": "hello", "version": VERSION})
        answer = _decoded(await socket.recv())
        if answer.type == "error":
            raise self._error(answer)
        if answer.type != "server-hello" or answer.version != VERSION:
            raise VersionMismatch(f"The server speaks version {answer.version}, and this client {VERSION}.")
        self.caught_up.clear()
        await _say(socket, {"type": "subscribe", "streamId": self.stream, "afterSeq": self.last_seq})

    async def _receive(self, socket: ClientConnection) -> Frame:
        async with asyncio.timeout(self._client.patience.silence_s):
            frame = _decoded(await socket.recv())
        if frame.type == "ping":
            await _say(socket, {"type": "pong"})
        elif frame.type == "error":
            raise self._error(frame)
        return frame

    def _taken(self, frame: Frame) -> StoredEvent | None:
        """The event, if there is one to hand over."""
        if frame.type == "replay-end":
            self._attempts = 0
            self.caught_up.set()
        event = frame.event
        if event is None or event.seq <= self.last_seq:
            return None
        if event.seq != self.last_seq + 1:
            raise _Broken  # one is missing: it is asked for again
        self._attempts = 0
        self.last_seq = event.seq
        return event

    def _error(self, frame: Frame) -> Exception:
        match frame.code:
            case "VERSION_MISMATCH":
                return VersionMismatch(frame.message)
            case "COMPACTED":
                return StreamCompacted(frame.message, extra={"floor": frame.floor or 0})
            case "UNKNOWN_STREAM":
                return UnknownStream(frame.message)
            case "INVALID_MESSAGE":
                return InvalidPayload(frame.message)
            case _:
                return _Broken(frame.message)  # BUFFER_OVERFLOW, REPLAY_FAILED: where it was it goes on

    async def _drop(self) -> None:
        socket, self._socket = self._socket, None
        if socket is not None:
            with suppress(OSError, TimeoutError, WebSocketException):
                await socket.close()

    async def _pause(self) -> None:
        """Longer each time, and never the same for two clients."""
        patience = self._client.patience
        longest = min(patience.longest_pause_s, patience.first_pause_s * 2.0 ** min(self._attempts, 30))
        self._attempts += 1
        with suppress(TimeoutError):
            await asyncio.wait_for(self._client.closed.wait(), longest * self._client.chance.uniform(0.5, 1.0))

    async def _unless_closed(self, work: Coroutine[Any, Any, T]) -> T:
        """A client that is closed waits for no handshake."""
        task = asyncio.ensure_future(work)
        closed = asyncio.ensure_future(self._client.closed.wait())
        waits: list[asyncio.Future[Any]] = [task, closed]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise _Broken
            return task.result()
        finally:
            for each in waits:
                each.cancel()
            await asyncio.gather(*waits, return_exceptions=True)


class _Broken(Exception):
    """The connection is of no more use; another one is."""


async def _say(socket: ClientConnection, frame: dict[str, Any]) -> None:
    await socket.send(json.encode(frame).decode())


def _decoded(text: str | bytes) -> Frame:
    try:
        return _frames.decode(text)
    except DecodeError as error:
        raise InternalError("The server sent something that is not a frame of the stream protocol.") from error


def _refusal(refused: InvalidStatus) -> Exception:
    status = refused.response.status_code
    if status in COMES_BACK:
        return _Broken(f"The server answered {status}.")
    try:
        error: FieldError = error_from(json.decode(refused.response.body or b"", type=ErrorBody), status)
    except DecodeError:
        return InternalError(f"The server answered {status}, and not as a Field does.")
    return error
