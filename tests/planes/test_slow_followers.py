"""Followers that take their events slowly, or not at all: they are cut off, and told why where that can be told."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

from starlette.types import Message, Scope

from fieldstone.core.access import LOCAL
from fieldstone.planes.delivery import PAGE_EVENTS
from fieldstone.planes.streams import Streams
from fieldstone.servers.http.entrance import Visit
from fieldstone.servers.http.gate import Gate
from fieldstone.servers.http.stream_socket import StreamSocket, Times
from fieldstone.servers.http.streams import CUT_OFF, Following
from tests.planes.events import delta
from tests.planes.scene import Scene, a_scene
from tests.planes.transport import STREAM, delivery_of, streams_of
from tests.requirements import requirement

PATIENCE_S = 20
LONG = 2 * PAGE_EVENTS + 1


@requirement("planes:sse:overtaken")
@requirement("planes:sse:compacted", "planes:rules:never-a-hole")
async def test_a_slow_replay_that_a_compaction_overtakes_ends_with_the_floor(scene: Scene) -> None:
    streams = streams_of(scene)
    await streams.append(STREAM, [delta("w ")] * LONG)
    async with following(scene, streams) as pieces:
        assert (await anext(pieces)).count(b"id: ") == PAGE_EVENTS
        await streams.compact(STREAM)
        assert await anext(pieces) == b'event: error\ndata: {"code":"COMPACTED","floor":%d}\n\n' % LONG
        assert [piece async for piece in pieces] == []
    await streams.settled()


@requirement("planes:sse:overflow")
@requirement("planes:delivery:slow-cut-off")
async def test_who_takes_no_piece_of_its_replay_in_time_is_cut_off_and_told_if_it_comes_back(scene: Scene) -> None:
    streams = streams_of(scene)
    await streams.append(STREAM, [delta("w ")] * LONG)
    cut_off = asyncio.Event()
    async with following(scene, streams, send_s=0.01, cut_off=cut_off) as pieces:
        assert (await anext(pieces)).count(b"id: ") == PAGE_EVENTS
        assert (await anext(pieces)).count(b"id: ") == PAGE_EVENTS
        await asyncio.wait_for(cut_off.wait(), PATIENCE_S)
        assert await anext(pieces) == b'event: error\ndata: {"code":"BUFFER_OVERFLOW"}\n\n'
        assert [piece async for piece in pieces] == []


@requirement("planes:delivery:slow-cut-off")
async def test_who_takes_its_pieces_in_time_is_not_cut_off(scene: Scene) -> None:
    streams = streams_of(scene)
    await streams.append(STREAM, [delta("w ")] * LONG)
    cut_off = asyncio.Event()
    async with following(scene, streams, send_s=PATIENCE_S, cut_off=cut_off) as pieces:
        seen = b"".join([await anext(pieces) for _ in range(4)])
    assert seen.count(b"id: ") == LONG
    assert seen.endswith(b": replay-end %d\n\n" % LONG)
    assert not cut_off.is_set()


@requirement("planes:socket:overflow")
async def test_a_stalled_socket_gets_its_error_and_its_close_behind_what_it_did_not_take() -> None:
    async with a_scene("memory") as scene:
        streams = streams_of(scene)
        await streams.append(STREAM, [delta("w ")] * 3)
        delivery = delivery_of(scene, streams)
        heard: asyncio.Queue[Message] = asyncio.Queue()
        offered: asyncio.Queue[Message] = asyncio.Queue()

        async def stalled(message: Message) -> None:
            offered.put_nowait(message)
            if "event" in message.get("text", "") or "error" in message.get("text", ""):
                await asyncio.Event().wait()

        visit = _visit(SimpleNamespace(delivery=delivery), {}, heard)
        times = Times(send_s=0.02, look_s=0.005)
        socket = StreamSocket(visit, stalled, Gate("127.0.0.1"), _always, times)
        for text in ('{"type":"hello","version":1}', f'{{"type":"subscribe","streamId":"{STREAM}"}}'):
            heard.put_nowait({"type": "websocket.receive", "text": text})
        await asyncio.wait_for(socket.serve(), PATIENCE_S)
        told = [offered.get_nowait() for _ in range(offered.qsize())]
        assert "BUFFER_OVERFLOW" in told[-2]["text"]
        assert told[-1] == {"type": "websocket.close", "code": 1008}
        delivery.close()


@asynccontextmanager
async def following(
    scene: Scene, streams: Streams, *, send_s: float = PATIENCE_S, cut_off: asyncio.Event | None = None
) -> AsyncIterator[AsyncIterator[bytes]]:
    """The pieces of an answer, with the first one, each of which is sent when it is taken."""
    delivery = delivery_of(scene, streams)
    body: asyncio.Queue[Message] = asyncio.Queue()
    body.put_nowait({"type": "http.request", "body": b"", "more_body": False})
    extensions = {} if cut_off is None else {CUT_OFF: {"abort": cut_off.set}}
    scope = {"headers": [], "path_params": {"id": STREAM}, "query_string": b"", "extensions": extensions}
    answer = await Following(Gate("127.0.0.1"), _always, send_s=send_s).follow_stream(
        _visit(SimpleNamespace(delivery=delivery), scope, body)
    )
    assert answer.stream is not None
    yield _with_first(answer.body, answer.stream)
    delivery.close()


async def _with_first(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in rest:
        yield piece


def _visit(planes: object, scope: dict[str, Any], heard: "asyncio.Queue[Message]") -> Visit:
    field = cast(Any, SimpleNamespace(planes=planes, require=lambda caller, what: None))
    return Visit(scope, heard.get, field, LOCAL, "local", cast(Any, _Tenants()), lambda caller, times: None)


class _Tenants:
    @asynccontextmanager
    async def visit(self, _tenant: str) -> AsyncIterator[None]:
        yield


async def _always(_scope: Scope) -> bool:
    return True
