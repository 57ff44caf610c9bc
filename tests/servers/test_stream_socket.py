"""The WebSocket protocol, version 1: its frames, order and close codes; and the client that misses no event."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec import json
from starlette.types import Message, Scope
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import InvalidStatus

from fieldstone.client.streams import Patience, StreamClient, VersionMismatch
from fieldstone.core.access import LOCAL
from fieldstone.core.errors import StreamCompacted, Unauthenticated
from fieldstone.planes.delivery import Delivery
from fieldstone.planes.streams import Streams
from fieldstone.servers.http.entrance import Visit
from fieldstone.servers.http.gate import Gate
from fieldstone.servers.http.stream_socket import StreamSocket, Times
from tests.planes.events import delta
from tests.planes.scene import a_scene
from tests.planes.transport import delivery_of, streams_of
from tests.requirements import requirement
from tests.servers.live import Live, live_server

QUICK = Patience(handshake_s=2.0, first_pause_s=0.001, longest_pause_s=0.01)


class Talk:
    """A client that speaks the protocol by hand."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    async def say(self, **frame: Any) -> None:
        await self._socket.send(json.encode(frame).decode())

    async def send(self, text: str | bytes) -> None:
        await self._socket.send(text)

    async def hear(self) -> dict[str, Any]:
        frame: dict[str, Any] = json.decode(await asyncio.wait_for(self._socket.recv(), 20))
        return frame

    async def close_code(self) -> int:
        """Of the server, when all it had to say is heard."""
        await asyncio.wait_for(self._socket.wait_closed(), 20)
        assert self._socket.close_code is not None
        return self._socket.close_code


@asynccontextmanager
async def talking(live: Live, *, greeted: bool = True, **headers: str) -> AsyncIterator[Talk]:
    async with connect(_address(live), proxy=None, additional_headers=headers) as socket:
        talk = Talk(socket)
        if greeted:
            await talk.say(type="hello", version=1)
            assert await talk.hear() == {"type": "server-hello", "version": 1}
        yield talk


async def append(live: Live, *texts: str, stream: str = "s") -> None:
    events = [{"kind": "text-delta", "payload": {"delta": text}} for text in texts]
    assert (await live.post(f"/v1/streams/{stream}/events", {"events": events})).status_code == 201


@requirement("planes:delivery:order")
async def test_replayed_events_then_the_replays_end_then_live_events(live: Live) -> None:
    await append(live, "a ", "b ")
    async with talking(live) as talk:
        await talk.say(type="subscribe", streamId="s")
        frames = [await talk.hear() for _ in range(3)]
        assert [each["type"] for each in frames] == ["event", "event", "replay-end"]
        assert frames[2] == {"type": "replay-end", "streamId": "s", "lastReplaySeq": 2}
        page = (await live.client.get("/v1/streams/s/events")).json()
        assert [each["event"] for each in frames[:2]] == page["events"]
        await append(live, "c ")
        frame = await talk.hear()
        assert (frame["type"], frame["streamId"], frame["event"]["seq"]) == ("event", "s", 3)


@requirement("planes:delivery:unknown-stream", "planes:socket:many-streams", "planes:socket:unknown-stream")
async def test_many_streams_share_a_socket(live: Live) -> None:
    await append(live, "a ", stream="one")
    async with talking(live) as talk:
        await talk.say(type="subscribe", streamId="one", afterSeq=1)
        assert await talk.hear() == {"type": "replay-end", "streamId": "one", "lastReplaySeq": 1}
        await talk.say(type="subscribe", streamId="unknown")
        assert await talk.hear() == {"type": "replay-end", "streamId": "unknown", "lastReplaySeq": 0}
        for stream in ("one", "unknown"):
            await append(live, "b ", stream=stream)
            assert (await talk.hear())["streamId"] == stream


@requirement("planes:socket:many-streams")
async def test_who_unsubscribes_hears_no_more_and_may_subscribe_again(live: Live) -> None:
    async with talking(live) as talk:
        await talk.say(type="subscribe", streamId="s")
        assert (await talk.hear())["type"] == "replay-end"
        await talk.say(type="unsubscribe", streamId="s")
        await talk.say(type="unsubscribe", streamId="never")
        await talk.say(type="subscribe", streamId="other")
        assert (await talk.hear())["streamId"] == "other"
        await append(live, "a ")
        await append(live, "b ", stream="other")
        assert (await talk.hear())["streamId"] == "other"
        await talk.say(type="subscribe", streamId="s")
        assert (await talk.hear())["event"]["seq"] == 1


@requirement("planes:socket:version")
async def test_another_version_is_refused_and_the_socket_closed_with_1002(live: Live) -> None:
    for version in (2, "1", None, True):
        async with talking(live, greeted=False) as talk:
            await talk.say(type="hello", version=version)
            frame = await talk.hear()
            assert (frame["type"], frame["code"]) == ("error", "VERSION_MISMATCH")
            assert await talk.close_code() == 1002


@requirement("planes:socket:invalid")
@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"type":"dance"}', '{"type":"subscribe"}', '{"type":"subscribe","streamId":7}', b"\x00"]
)
async def test_an_invalid_message_is_told_and_the_socket_stays_open(live: Live, text: str | bytes) -> None:
    async with talking(live) as talk:
        await talk.send(text)
        frame = await talk.hear()
        assert (frame["type"], frame["code"]) == ("error", "INVALID_MESSAGE")
        await talk.say(type="subscribe", streamId="s")
        assert (await talk.hear())["type"] == "replay-end"


@requirement("planes:socket:hello")
async def test_who_does_not_say_hello_first_is_told_so(live: Live) -> None:
    async with talking(live, greeted=False) as talk:
        await talk.say(type="subscribe", streamId="s")
        assert (await talk.hear())["code"] == "INVALID_MESSAGE"
        await talk.say(type="hello", version=1)
        assert (await talk.hear())["type"] == "server-hello"


@requirement("planes:socket:invalid")
async def test_a_second_subscription_to_a_stream_and_a_bad_seq_are_invalid(live: Live) -> None:
    async with talking(live) as talk:
        await talk.say(type="subscribe", streamId="s")
        assert (await talk.hear())["type"] == "replay-end"
        for wrong in ({"streamId": "s"}, {"streamId": "t", "afterSeq": -1}, {"streamId": ""}):
            await talk.say(type="subscribe", **wrong)
            frame = await talk.hear()
            assert (frame["code"], frame["streamId"]) == ("INVALID_MESSAGE", wrong["streamId"])


@requirement("planes:socket:compacted")
async def test_below_the_floor_the_floor_is_told_and_the_socket_stays_open(live: Live) -> None:
    await append(live, "a ", "b ")
    await live.post("/v1/streams/s/compact", {})
    async with talking(live) as talk:
        await talk.say(type="subscribe", streamId="s")
        frame = await talk.hear()
        assert (frame["code"], frame["streamId"], frame["floor"]) == ("COMPACTED", "s", 2)
        await talk.say(type="subscribe", streamId="s", afterSeq=2)
        assert await talk.hear() == {"type": "replay-end", "streamId": "s", "lastReplaySeq": 2}


@requirement("planes:socket:gate")
async def test_a_foreign_page_and_a_stranger_are_refused_before_the_socket_opens(live: Live) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with talking(live, origin="https://elsewhere.example"):
            pass
    assert refused.value.response.status_code == 403
    assert json.decode(refused.value.response.body or b"")["code"] == "FORBIDDEN"


@requirement("planes:socket:server-end")
async def test_the_servers_end_closes_sockets_at_once() -> None:
    async with live_server() as live, talking(live) as talk:
        begun = asyncio.get_running_loop().time()
        await live.serving.stop()
        assert await talk.close_code() in {1001, 1012}
        assert asyncio.get_running_loop().time() - begun < 5


# --- one socket, with time and the wire in the test's hand ------------------------------------------------------------


class Wire:
    """The two ends of a socket without a network. `stalled`: the client takes nothing."""

    def __init__(self, delivery: Delivery, times: Times) -> None:
        self.delivery = delivery
        self._heard: asyncio.Queue[Message] = asyncio.Queue()
        self.sent: asyncio.Queue[Message] = asyncio.Queue()
        self.takes = asyncio.Event()
        self.takes.set()
        field = cast(Any, SimpleNamespace(planes=SimpleNamespace(delivery=delivery)))
        tenants = cast(Any, None)
        visit = Visit({}, self._heard.get, field, LOCAL, "local", tenants, lambda caller, times: None)
        self.gate = Gate("127.0.0.1")
        self.is_known = True
        self.serving = asyncio.create_task(StreamSocket(visit, self._send, self.gate, self._still_known, times).serve())

    def say(self, **frame: Any) -> None:
        self._heard.put_nowait({"type": "websocket.receive", "text": json.encode(frame).decode()})

    def leave(self) -> None:
        self._heard.put_nowait({"type": "websocket.disconnect", "code": 1000})

    async def hear(self) -> dict[str, Any]:
        message = await asyncio.wait_for(self.sent.get(), 20)
        if message["type"] == "websocket.close":
            return {"close": message["code"]}
        frame: dict[str, Any] = json.decode(message["text"])
        return frame

    async def _still_known(self, _scope: Scope) -> bool:
        return self.is_known

    async def _send(self, message: Message) -> None:
        await self.takes.wait()
        self.sent.put_nowait(dict(message))


@asynccontextmanager
async def wired(times: Times = Times(), *, greeted: bool = True, **bounds: int) -> AsyncIterator[tuple[Wire, Streams]]:
    async with a_scene("memory") as scene:
        streams = streams_of(scene)
        delivery = delivery_of(scene, streams, **bounds)
        wire = Wire(delivery, times)
        if greeted:
            wire.say(type="hello", version=1)
            assert (await wire.hear())["type"] == "server-hello"
        yield wire, streams
        wire.leave()
        await asyncio.wait_for(wire.serving, 20)
        delivery.close()


@requirement("planes:socket:hello")
async def test_a_client_that_never_says_hello_is_closed() -> None:
    async with wired(Times(hello_s=0.01), greeted=False) as (wire, _):
        assert await wire.hear() == {"close": 1002}


@requirement("planes:socket:ping")
async def test_who_does_not_answer_a_ping_is_closed_with_1001() -> None:
    async with wired(Times(ping_s=0.01, pong_s=0.01)) as (wire, _):
        assert await wire.hear() == {"type": "ping"}
        assert await wire.hear() == {"close": 1001}


@requirement("planes:socket:gate")
async def test_a_socket_whose_key_counts_no_more_is_closed() -> None:
    async with wired(Times(look_s=0.001)) as (wire, _):
        wire.is_known = False
        assert await wire.hear() == {"close": 1008}


@requirement("planes:socket:gate")
async def test_a_socket_whose_key_counts_no_more_begins_no_further_stream() -> None:
    """It is not looked at before long, but who asks for more is looked at."""
    async with wired(Times(look_s=60)) as (wire, streams):
        await streams.append("s1", [delta("later")])
        wire.is_known = False
        wire.say(type="subscribe", streamId="s1")
        assert await wire.hear() == {"close": 1008}


@requirement("planes:socket:ping")
async def test_who_answers_stays() -> None:
    async with wired(Times(ping_s=0.001, pong_s=10)) as (wire, _):
        for _ in range(5):
            assert await wire.hear() == {"type": "ping"}
            wire.say(type="pong")


@requirement("planes:socket:one-timer")
async def test_a_second_hello_starts_no_second_timer() -> None:
    async with wired(Times(ping_s=0.02, pong_s=10)) as (wire, _):
        wire.say(type="hello", version=1)
        assert await wire.hear() == {"type": "server-hello", "version": 1}
        assert await wire.hear() == {"type": "ping"}
        done, _ = await asyncio.wait([asyncio.create_task(wire.hear())], timeout=0.05)
        assert not done, "the next ping waits for the answer to the first, of the one timer"


@requirement("planes:socket:overflow")
async def test_a_live_client_that_stalls_is_cut_off_with_1008() -> None:
    async with wired(queue_events=5) as (wire, streams):
        wire.say(type="subscribe", streamId="s")
        assert (await wire.hear())["type"] == "replay-end"
        await streams.append("s", [delta("a ")])
        assert (await wire.hear())["event"]["seq"] == 1
        wire.takes.clear()
        for _ in range(8):
            await streams.append("s", [delta("b ")])
            await asyncio.sleep(0)
        wire.takes.set()
        frames = [await wire.hear()]
        while "close" not in frames[-1]:
            frames.append(await wire.hear())
        assert (frames[-2]["code"], frames[-1]) == ("BUFFER_OVERFLOW", {"close": 1008})


@requirement("planes:socket:overflow")
async def test_a_client_that_stalls_in_its_replay_is_cut_off_with_1008() -> None:
    async with wired(Times(send_s=0.05, look_s=0.01)) as (wire, streams):
        await streams.append("s", [delta("a ")] * 100)
        wire.takes.clear()
        wire.say(type="subscribe", streamId="s")
        done, _ = await asyncio.wait([wire.serving], timeout=20)
        assert done


@requirement("planes:delivery:slow-cut-off")
async def test_a_stream_that_is_cut_off_leaves_the_other_sockets_alone() -> None:
    async with wired(queue_events=5) as (wire, streams):
        other = Wire(wire.delivery, Times())
        other.say(type="hello", version=1)
        for each in (wire, other):
            each.say(type="subscribe", streamId="s")
        assert [(await other.hear())["type"] for _ in range(2)] == ["server-hello", "replay-end"]
        assert (await wire.hear())["type"] == "replay-end"
        wire.takes.clear()
        for n in range(1, 20):
            await streams.append("s", [delta("b ")])
            assert (await other.hear())["event"]["seq"] == n
        wire.takes.set()
        other.leave()
        await other.serving


# --- the client -------------------------------------------------------------------------------------------------------


@requirement("planes:client:resumes")
async def test_the_client_hands_over_what_was_there_and_what_comes(live: Live) -> None:
    await append(live, "a ", "b ")
    async with StreamClient(live.serving.url) as client:
        following = client.follow("s")
        assert [(await anext(following)).seq for _ in range(2)] == [1, 2]
        waiting = asyncio.create_task(anext(following))
        await append(live, "c ")
        event = await asyncio.wait_for(waiting, 20)
        assert (event.seq, event.event.payload) == (3, {"delta": "c "})
        assert following.caught_up.is_set()


@requirement("planes:client:resumes")
async def test_the_client_goes_on_after_the_last_event_it_handed_over_when_the_server_comes_again(live: Live) -> None:
    await append(live, "a ", "b ", "c ")
    client = StreamClient(live.serving.url, patience=QUICK, chance=random.Random(1))
    following = client.follow("s", after=1)
    assert (await anext(following)).seq == 2
    assert following._socket is not None
    await following._socket.close()
    await append(live, "d ")
    assert [(await asyncio.wait_for(anext(following), 20)).seq for _ in range(2)] == [3, 4]
    await client.close()


@requirement("planes:client:closes")
async def test_closing_the_client_ends_its_iterators(live: Live) -> None:
    client = StreamClient(live.serving.url)
    waiting = [asyncio.create_task(_all(client.follow(stream))) for stream in ("s", "t")]
    lost = StreamClient("http://127.0.0.1:9", patience=Patience(first_pause_s=30))
    waiting.append(asyncio.create_task(_all(lost.follow("s"))))
    await asyncio.sleep(0.05)
    await asyncio.gather(client.close(), lost.close())
    assert await asyncio.wait_for(asyncio.gather(*waiting), 20) == [[], [], []]
    assert await _all(client.follow("s")) == []


@requirement("planes:client:version")
async def test_the_client_gives_up_at_once_on_another_version() -> None:
    async with server_that_says([{"type": "server-hello", "version": 2}]) as (url, hellos):
        with pytest.raises(VersionMismatch):
            await anext(StreamClient(url, patience=QUICK).follow("s"))
        assert hellos == [{"type": "hello", "version": 1}]
    async with server_that_says([{"type": "error", "code": "VERSION_MISMATCH", "message": "2"}]) as (url, hellos):
        with pytest.raises(VersionMismatch):
            await anext(StreamClient(url, patience=QUICK).follow("s"))
        assert len(hellos) == 1


@requirement("planes:client:deadline")
async def test_a_server_that_never_says_hello_is_left_after_the_deadline() -> None:
    hello = {"type": "server-hello", "version": 1}
    async with server_that_says([], [], [hello, _event(1)]) as (url, heard):
        client = StreamClient(url, patience=QUICK._replace(handshake_s=0.05))
        assert (await asyncio.wait_for(anext(client.follow("s")), 20)).seq == 1
        assert [each["type"] for each in heard[:3]] == ["hello"] * 3
        await client.close()


@requirement("planes:client:resumes")
async def test_the_client_hands_no_event_over_twice_and_asks_again_for_one_that_is_missing() -> None:
    hello = {"type": "server-hello", "version": 1}
    told = [hello, *(_event(seq) for seq in (1, 1, 2, 4))]
    async with server_that_says(told, [hello, *(_event(seq) for seq in (2, 3, 4))]) as (url, heard):
        client = StreamClient(url, patience=QUICK)
        following = client.follow("s")
        assert [(await asyncio.wait_for(anext(following), 20)).seq for _ in range(4)] == [1, 2, 3, 4]
        subscribes = [each["afterSeq"] for each in heard if each["type"] == "subscribe"]
        assert subscribes == [0, 2]
        await client.close()


@requirement("planes:client:deadline")
async def test_the_client_answers_pings_and_leaves_a_server_that_is_silent() -> None:
    hello = {"type": "server-hello", "version": 1}
    async with server_that_says([hello, {"type": "ping"}], [hello, _event(1)]) as (url, heard):
        client = StreamClient(url, patience=QUICK._replace(silence_s=0.05))
        assert (await asyncio.wait_for(anext(client.follow("s")), 20)).seq == 1
        assert {"type": "pong"} in heard
        await client.close()


@requirement("planes:client:back-off")
async def test_pauses_grow_up_to_a_bound_and_are_drawn_by_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    paused: list[float] = []

    async def no_wait(waiting: Any, seconds: float) -> None:
        waiting.close()
        paused.append(seconds)

    client = StreamClient(
        "http://127.0.0.1:9", patience=Patience(first_pause_s=1, longest_pause_s=8), chance=random.Random(7)
    )
    following = client.follow("s")
    with monkeypatch.context() as patch:
        patch.setattr(asyncio, "wait_for", no_wait)
        for _ in range(6):
            await following._pause()
    for longest, pause in zip((1, 2, 4, 8, 8, 8), paused, strict=True):
        assert longest / 2 <= pause <= longest
    assert len(set(paused)) == 6
    await client.close()


@requirement("planes:client:refusals")
async def test_what_the_server_refuses_is_raised(live: Live) -> None:
    await append(live, "a ", "b ")
    await live.post("/v1/streams/s/compact", {})
    async with StreamClient(live.serving.url) as client:
        with pytest.raises(StreamCompacted) as told:
            await anext(client.follow("s"))
        assert told.value.extra == {"floor": 2}
    assert (await live.post("/v1/keys", {"tenant": "local", "authority": 10})).status_code == 201
    async with StreamClient(live.serving.url, key="wrong") as client:
        with pytest.raises(Unauthenticated):
            await anext(client.follow("s"))


@asynccontextmanager
async def server_that_says(*scripts: list[dict[str, Any]]) -> AsyncIterator[tuple[str, list[dict[str, Any]]]]:
    """One script for each connection, the last one for all that follow. What it was told is on the list."""
    heard: list[dict[str, Any]] = []
    left = list(scripts)

    async def talk(socket: ServerConnection) -> None:
        script = left.pop(0) if len(left) > 1 else left[0]
        heard.append(json.decode(await socket.recv()))
        for frame in script:
            await socket.send(json.encode(frame).decode())
        async for text in socket:
            heard.append(json.decode(text))

    async with serve(talk, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        yield f"http://127.0.0.1:{port}", heard


def _event(seq: int) -> dict[str, Any]:
    stored = {"streamId": "s", "seq": seq, "timestamp": "2025-01-01T00:00:00.000Z", "event": {"kind": "x"}}
    return {"type": "event", "streamId": "s", "event": stored}


async def _all(following: AsyncIterator[object]) -> list[object]:
    return [each async for each in following]


def _address(live: Live) -> str:
    host, port = live.address
    return f"ws://{host}:{port}/v1/streams/ws"
