"""GET /v1/events: the feed page by page, and as a stream that goes on from where a caller left off."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx
import pytest
from starlette.types import Message, Scope

from fieldstone.backends.memory.access import MemoryAccess
from fieldstone.backends.system import SystemClock
from fieldstone.field.field import LocalField
from fieldstone.profiles.openwop import MemoryAdapter, SeedEntry
from fieldstone.servers.auth.credentials import Credentials
from fieldstone.servers.auth.keys import Keys, NewKey
from fieldstone.servers.http.answers import openwop_refusal
from fieldstone.servers.http.endpoint import Endpoint
from fieldstone.servers.http.entrance import Entrance
from fieldstone.servers.http.events import HEARTBEAT, EventRoutes
from fieldstone.servers.http.gate import Gate
from fieldstone.servers.http.serve import FINISH_S, start
from fieldstone.servers.tenants import Tenants
from fieldstone.settings import Settings
from fieldstone.wiring.house import host_features
from tests.field.fields import opened
from tests.requirements import requirement
from tests.servers.houses import entrance_to

STREAM: Final = {"accept": "text/event-stream"}
PATIENCE_S: Final = 30


class Feeds:
    """The route alone, without a network: what is sent is seen piece by piece."""

    def __init__(self, field: LocalField, *, looks_per_beat: int = 1_000_000) -> None:
        async def the_field(_tenant: str) -> LocalField:
            return field

        self.field = field
        self.keys = Keys(MemoryAccess(), SystemClock())
        self.gate = Gate("127.0.0.1")
        self.tenants = Tenants(the_field)
        entrance = Entrance(self.tenants, Credentials(self.keys, local_tenant="local"), SystemClock())
        routes = EventRoutes(self.gate, entrance.still_knows, look_s=0.01, looks_per_beat=looks_per_beat)
        self._endpoint = Endpoint("/v1/events", {"GET": routes.events}, self.gate, entrance, refuse=openwop_refusal)

    async def get(self, query: str = "", **headers: str) -> "Line":
        line = Line(self._endpoint, query, headers)
        await line.begin()
        return line

    async def page(self, query: str = "") -> dict[str, Any]:
        line = await self.get(query)
        assert line.status == 200, await line.whole()
        page: dict[str, Any] = json.loads(await line.whole())
        return page

    @asynccontextmanager
    async def stream(self, query: str = "", **headers: str) -> AsyncIterator["Line"]:
        line = await self.get(query, **STREAM, **headers)
        assert line.headers[b"content-type"] == b"text/event-stream"
        try:
            yield line
        finally:
            await line.hang_up()

    async def seed(self, *ids: str) -> None:
        entries = [SeedEntry(id=entry_id, content=f"Entry {entry_id} tells of pears.") for entry_id in ids]
        await MemoryAdapter(self.field).seed("notes", entries)


class Line:
    """One request, and what comes back on it."""

    def __init__(self, endpoint: Endpoint, query: str, headers: dict[str, str]) -> None:
        own = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        self._scope: Scope = {
            "type": "http",
            "method": "GET",
            "path": "/v1/events",
            "query_string": query.encode(),
            "headers": [(b"host", b"127.0.0.1"), *own],
        }
        self._endpoint = endpoint
        self._asked = False
        self._gone = asyncio.Event()
        self._sent: asyncio.Queue[Message] = asyncio.Queue()
        self._pending = b""

    async def begin(self) -> None:
        self._task = asyncio.create_task(self._endpoint(self._scope, self._receive, self._sent.put))
        start = await asyncio.wait_for(self._sent.get(), PATIENCE_S)
        self.status: int = start["status"]
        self.headers = dict(start["headers"])

    async def whole(self) -> bytes:
        await asyncio.wait_for(self._task, PATIENCE_S)
        rest = b""
        while not self._sent.empty():
            rest += self._sent.get_nowait().get("body", b"")
        return rest

    async def piece(self) -> bytes:
        """What stands between two empty lines."""
        while b"\n\n" not in self._pending:
            self._pending += (await asyncio.wait_for(self._sent.get(), PATIENCE_S))["body"]
        piece, _, self._pending = self._pending.partition(b"\n\n")
        return piece + b"\n\n"

    async def event(self) -> dict[str, Any]:
        """The next event; beats are passed over."""
        while (piece := await self.piece()) == HEARTBEAT:
            pass
        fields = dict(line.split(": ", 1) for line in piece.decode().splitlines() if line)
        event: dict[str, Any] = json.loads(fields["data"])
        assert fields == {"event": event["type"], "id": event["id"], "data": fields["data"]}
        return event

    async def ended(self) -> None:
        await asyncio.wait_for(self._task, PATIENCE_S)

    async def hang_up(self) -> None:
        self._gone.set()
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _receive(self) -> Message:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}


@pytest.fixture
async def feeds() -> AsyncIterator[Feeds]:
    field = await opened()
    yield Feeds(field)
    await field.close()


# --- pages ------------------------------------------------------------------------------------------------------------


@requirement("openwop:events:shape")
async def test_a_page_is_flat_events_and_a_cursor(feeds: Feeds) -> None:
    assert await feeds.page() == {"events": [], "next": "0"}
    await feeds.seed("a", "b")
    page = await feeds.page()
    assert [event["memoryId"] for event in page["events"]] == ["a", "b"]
    assert set(page["events"][0]) == {"id", "type", "ts", "memoryRef", "memoryId"}
    assert page["next"] == page["events"][-1]["id"]
    assert await feeds.page(f"since={page['next']}") == {"events": [], "next": page["next"]}


@requirement("openwop:events:types", "openwop:events:since")
async def test_type_since_and_limit_narrow_it(feeds: Feeds) -> None:
    await feeds.seed("a", "b", "c")
    await MemoryAdapter(feeds.field).compact("notes", why="asked", whole=True)
    first = await feeds.page("limit=2")
    assert len(first["events"]) == 2
    [compacted] = (await feeds.page(f"since={first['next']}&type=memory.compacted"))["events"]
    assert compacted["sourceIds"] == ["a", "b", "c"]
    both = await feeds.page("type=memory.compacted,memory.written&since=2020-01-01T00:00:00Z")
    assert both["events"] == (await feeds.page())["events"]


@requirement("openwop:events:since")
@pytest.mark.parametrize(
    "query",
    [
        *("since=yesterday", "since=", "limit=0", "limit=-1", "limit=1001", "limit=x", "type=run.started", "type="),
        *("type=memory.written,", "since=1&since=2"),
    ],
)
@pytest.mark.parametrize("headers", [{}, STREAM])
async def test_a_question_that_makes_no_sense_is_a_validation_error(
    feeds: Feeds, query: str, headers: dict[str, str]
) -> None:
    line = await feeds.get(query, **headers)
    assert line.status == 400
    body = json.loads(await line.whole())
    assert body["error"] == "validation_error"
    assert set(body) == {"error", "message"}


@requirement("openwop:errors:key")
@pytest.mark.parametrize("headers", [{}, STREAM])
async def test_any_key_reads_the_events_and_nobody_without_one(feeds: Feeds, headers: dict[str, str]) -> None:
    key = feeds.keys.create(NewKey(tenant="local", authority=0)).key
    for refused in ({}, {"authorization": "Bearer " + "none"}):
        line = await feeds.get(**refused, **headers)
        assert line.status == 401
        assert json.loads(await line.whole())["error"] == "unauthenticated"
    line = await feeds.get(authorization=f"Bearer {key}", **headers)
    assert line.status == 200
    await line.hang_up()


# --- streams ----------------------------------------------------------------------------------------------------------


@requirement("openwop:events:sse")
async def test_a_stream_tells_what_was_and_then_what_happens(feeds: Feeds) -> None:
    await feeds.seed("a")
    async with feeds.stream() as line:
        assert (await line.event())["memoryId"] == "a"
        await feeds.seed("b")
        event = await line.event()
        assert event["memoryId"] == "b"
    assert event == (await feeds.page())["events"][-1]


@requirement("openwop:events:sse")
@pytest.mark.parametrize("accept", ["text/event-stream", "application/json;q=0.5, Text/Event-Stream ;q=1"])
async def test_whoever_takes_a_stream_gets_one(feeds: Feeds, accept: str) -> None:
    line = await feeds.get(accept=accept)
    assert line.headers[b"content-type"] == b"text/event-stream"
    assert line.headers[b"cache-control"] == b"no-store"
    await line.hang_up()


@requirement("openwop:events:sse-resume")
async def test_a_stream_goes_on_after_since_and_rather_after_the_last_event_that_was_seen(feeds: Feeds) -> None:
    await feeds.seed("a", "b", "c")
    first, second, _ = (event["id"] for event in (await feeds.page())["events"])
    async with feeds.stream(f"since={first}") as line:
        assert (await line.event())["memoryId"] == "b"
    async with feeds.stream(f"since={first}", last_event_id=second) as line:
        assert (await line.event())["memoryId"] == "c"


@requirement("openwop:events:sse-resume")
async def test_an_id_of_a_last_event_that_is_none_is_refused(feeds: Feeds) -> None:
    assert (await feeds.get(last_event_id="yesterday", **STREAM)).status == 400


@requirement("openwop:events:sse")
async def test_a_long_past_comes_whole_and_in_order(feeds: Feeds) -> None:
    await feeds.seed(*(str(number) for number in range(250)))
    async with feeds.stream("limit=100") as line:
        assert [(await line.event())["memoryId"] for _ in range(250)] == [str(number) for number in range(250)]


@requirement("openwop:events:sse")
async def test_a_stream_of_one_type_tells_no_other(feeds: Feeds) -> None:
    async with feeds.stream("type=memory.compacted") as line:
        await feeds.seed("a", "b")
        await MemoryAdapter(feeds.field).compact("notes", why="asked", whole=True)
        assert (await line.event())["type"] == "memory.compacted"


@requirement("openwop:events:sse")
async def test_a_quiet_stream_beats_and_the_first_beat_comes_at_once() -> None:
    field = await opened()
    async with Feeds(field, looks_per_beat=2).stream() as line:
        assert [await line.piece() for _ in range(3)] == [HEARTBEAT] * 3
    await field.close()


@requirement("openwop:events:sse-ends")
async def test_a_stream_ends_when_the_server_stops(feeds: Feeds) -> None:
    await feeds.seed("a")
    async with feeds.stream() as line:
        await line.event()
        feeds.gate.stopping = True
        await line.ended()


@requirement("openwop:events:sse-ends")
async def test_a_stream_ends_when_its_key_is_revoked_and_tells_nothing_from_then_on(feeds: Feeds) -> None:
    made = feeds.keys.create(NewKey(tenant="local", authority=0))
    await feeds.seed("a")
    async with feeds.stream(authorization=f"Bearer {made.key}") as line:
        await line.event()
        feeds.keys.revoke(made.id, "local")
        await feeds.seed("b")
        assert b"memory.written" not in await line.whole()


async def test_a_field_stays_open_while_somebody_listens(feeds: Feeds) -> None:
    async with feeds.stream() as line:
        await feeds.seed("a")
        await line.event()
        assert feeds.tenants._rooms["local"].visitors == 1
        feeds.gate.stopping = True
        await line.ended()
    assert feeds.tenants._rooms["local"].visitors == 0


# --- on a real line ---------------------------------------------------------------------------------------------------


@requirement("openwop:events:sse-ends")
async def test_a_server_that_stops_waits_for_no_stream(feeds: Feeds) -> None:
    settings = Settings(port=0)
    serving = await start(*entrance_to(feeds.field), settings, host_features(settings))
    await feeds.seed("a")
    async with httpx.AsyncClient(base_url=serving.url) as client:
        async with client.stream("GET", "/v1/events", headers=STREAM) as answer:
            lines = answer.aiter_lines()
            assert await anext(lines) == "event: memory.written"
            async with asyncio.timeout(FINISH_S / 2):
                await serving.stop()
            assert [line async for line in lines][-1] == ""  # ended as a whole answer does, not cut off
