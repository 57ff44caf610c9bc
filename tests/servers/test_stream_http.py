"""Streams over HTTP: append, read, compact, delete, readers, and server-sent events."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from msgspec import json

from tests.redact.fakes import TOKENS
from tests.requirements import requirement
from tests.servers.live import ERROR_FIELDS, Live, live_server

EVENTS = "/v1/streams/run:1/events"
STEP = [
    {"kind": "step-started", "payload": {"stepIndex": 0}},
    {"kind": "text-delta", "payload": {"delta": "Hello "}},
    {"kind": "text-delta", "payload": {"delta": "you"}},
    {"kind": "step-finished", "payload": {"stepIndex": 0, "finishReason": "stop"}},
]


def delta(text: str) -> dict[str, Any]:
    return {"kind": "text-delta", "payload": {"delta": text}}


@requirement("planes:streams:stored-event", "planes:http:streams")
async def test_appended_events_come_back_as_stored_events_with_the_head(live: Live) -> None:
    answer = await live.post(EVENTS, {"events": STEP})
    assert answer.status_code == 201
    body = answer.json()
    assert set(body) == {"events", "head"}
    assert body["head"] == 4
    assert set(body["events"][0]) == {"streamId", "seq", "timestamp", "event"}
    assert [each["event"] for each in body["events"]] == STEP
    assert body["events"][0]["timestamp"].endswith("Z")
    page = (await live.client.get(EVENTS)).json()
    assert page == {"events": body["events"], "head": 4, "floor": 0}


@requirement("planes:streams:unknown-stream", "planes:streams:paged")
async def test_reading_is_paged_and_an_unknown_stream_is_empty(live: Live) -> None:
    await live.post(EVENTS, {"events": STEP})
    page = (await live.client.get(EVENTS, params={"after": 1, "limit": 2})).json()
    assert [each["seq"] for each in page["events"]] == [2, 3]
    assert (await live.client.get(EVENTS, params={"limit": 0})).json()["events"] == []
    assert (await live.client.get("/v1/streams/never/events")).json() == {"events": [], "head": 0, "floor": 0}
    assert (await live.client.get(EVENTS, params={"limit": 1_000_000})).status_code == 200


@requirement("planes:streams:paged")
async def test_a_limit_above_the_largest_page_gives_the_largest_page(live: Live) -> None:
    for _ in range(2):
        await live.post("/v1/streams/long/events", {"events": [delta("w ")] * 6_000})
    page = (await live.client.get("/v1/streams/long/events", params={"limit": 99_999})).json()
    assert (len(page["events"]), page["head"]) == (10_000, 12_000)
    assert len((await live.client.get("/v1/streams/long/events")).json()["events"]) == 1_000


@requirement("planes:streams:expected-seq", "planes:http:errors")
async def test_another_expected_seq_is_a_conflict_that_tells_the_head(live: Live) -> None:
    await live.post(EVENTS, {"events": STEP, "expectedSeq": 0})
    answer = await live.post(EVENTS, {"events": STEP, "expectedSeq": 0})
    assert answer.status_code == 409
    body = answer.json()
    assert set(body) == ERROR_FIELDS | {"head"}
    assert (body["code"], body["head"]) == ("SEQ_CONFLICT", 4)


@requirement("planes:streams:idempotency-key")
async def test_a_request_sent_again_with_its_key_is_stored_once(live: Live) -> None:
    request = {"events": STEP, "idempotencyKey": "k1"}
    first = await live.post(EVENTS, request)
    assert (await live.post(EVENTS, request)).json() == first.json()
    assert (await live.client.get(EVENTS)).json()["head"] == 4


@requirement("planes:streams:batch-atomic")
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"events": "none"},
        {"events": [{"payload": {}}]},
        {"events": [{"kind": "x", "payload": []}]},
        {"events": [{"kind": "", "payload": {}}]},
        {"events": [], "expectedSeq": -1},
        {"events": [], "unknown": 1},
        {"events": STEP, "idempotencyKey": ""},
    ],
)
async def test_a_malformed_append_is_refused_and_stores_nothing(live: Live, body: dict[str, Any]) -> None:
    answer = await live.post(EVENTS, body)
    assert answer.status_code == 400
    assert answer.json()["code"] == "INVALID_PAYLOAD"
    assert (await live.client.get(EVENTS)).json()["head"] == 0


@requirement("planes:http:queries")
@pytest.mark.parametrize("query", [{"after": "-1"}, {"after": "x"}, {"limit": "-1"}])
async def test_a_malformed_page_is_refused(live: Live, query: dict[str, str]) -> None:
    assert (await live.client.get(EVENTS, params=query)).status_code == 400


@requirement(
    "planes:rules:snapshot-shape",
    "planes:compaction:dry-run",
    "planes:compaction:nothing-eligible",
    "planes:http:streams",
)
async def test_compaction_answers_the_snapshot_and_what_is_held(live: Live) -> None:
    await live.post(EVENTS, {"events": STEP})
    dry = await live.post("/v1/streams/run:1/compact", {"dryRun": True})
    assert dry.json() == {"snapshot": {"lastSeq": 4}, "eligible": 4, "held": []}
    assert (await live.client.get("/v1/streams/run:1")).json() == {"head": 4, "floor": 0, "snapshot": None}
    assert (await live.client.get("/v1/streams/run:1/snapshot")).status_code == 404
    await live.client.put("/v1/streams/run:1/readers/ui", content=b'{"seq": 2}')
    done = (await live.post("/v1/streams/run:1/compact", {})).json()
    assert done == {"snapshot": {"lastSeq": 2}, "eligible": 2, "held": [{"reason": "reader", "seq": 2}]}
    status = (await live.client.get("/v1/streams/run:1")).json()
    assert (status["head"], status["floor"], status["snapshot"]["lastSeq"]) == (4, 2, 2)
    snapshot = (await live.client.get("/v1/streams/run:1/snapshot")).json()
    assert set(snapshot) == {"streamId", "state", "lastSeq", "createdAt", "stateVersion", "checksum"}
    assert (await live.post("/v1/streams/run:1/compact", {})).json()["snapshot"] is None


@requirement("planes:rules:never-a-hole", "planes:sse:compacted", "planes:http:errors")
async def test_below_the_floor_is_gone_and_the_floor_is_told(live: Live) -> None:
    await live.post(EVENTS, {"events": STEP})
    await live.post("/v1/streams/run:1/compact", {})
    for path in (EVENTS, "/v1/streams/run:1/sse"):
        answer = await live.client.get(path, params={"after": 3})
        assert answer.status_code == 410
        assert (answer.json()["code"], answer.json()["floor"]) == ("COMPACTED", 4)
    assert (await live.client.get(EVENTS, params={"after": 4})).json()["events"] == []


@requirement("planes:rules:reader-cursor", "planes:http:streams")
async def test_readers_are_registered_and_dropped(live: Live) -> None:
    await live.post(EVENTS, {"events": STEP})
    path = "/v1/streams/run:1/readers/ui"
    assert (await live.client.put(path, content=b'{"seq": 1}')).status_code == 204
    assert (await live.client.put(path, content=b'{"seq": 9}')).status_code == 400
    assert (await live.client.delete(path)).status_code == 204
    assert (await live.client.delete(path)).status_code == 204
    assert (await live.post("/v1/streams/run:1/compact", {})).json()["eligible"] == 4


@requirement("planes:rules:never-twice", "planes:http:streams")
async def test_a_deleted_stream_is_empty_and_its_numbers_go_on(live: Live) -> None:
    await live.post(EVENTS, {"events": STEP})
    assert (await live.client.delete("/v1/streams/run:1")).status_code == 204
    assert (await live.client.get("/v1/streams/run:1")).json() == {"head": 4, "floor": 4, "snapshot": None}
    assert (await live.post(EVENTS, {"events": STEP[:1]})).json()["head"] == 5


@requirement("planes:secrets:everywhere")
async def test_a_secret_is_stored_nowhere_and_an_id_that_holds_one_is_refused(live: Live) -> None:
    secret = TOKENS["OpenAI old"]
    for character in f"use {secret} now":
        await live.post(EVENTS, {"events": [delta(character)]})
    page = (await live.client.get(EVENTS)).json()
    stored = "".join(each["event"]["payload"]["delta"] for each in page["events"])
    assert stored.startswith("use [REDACTED:")
    assert stored.endswith("] now")
    answer = await live.post(f"/v1/streams/{secret}/events", {"events": STEP})
    assert answer.status_code == 422
    assert secret not in answer.text


@requirement("planes:sse:stream")
async def test_server_sent_events_replay_and_go_on_live(live: Live) -> None:
    await live.post(EVENTS, {"events": STEP})
    async with following(live) as events:
        assert [await anext(events) for _ in range(4)] == [1, 2, 3, 4]
        await live.post(EVENTS, {"events": [delta("more ")]})
        assert await anext(events) == 5


@requirement("planes:sse:resume")
async def test_a_browser_that_connects_again_goes_on_after_its_last_event(live: Live) -> None:
    await live.post(EVENTS, {"events": STEP})
    async with following(live, **{"last-event-id": "3"}) as events:
        assert await anext(events) == 4
    for wrong in ("x", "-1", "9" * 30):
        answer = await live.client.get("/v1/streams/run:1/sse", headers={"last-event-id": wrong})
        assert answer.status_code == 400


@requirement("planes:sse:ends")
async def test_open_event_streams_do_not_hold_up_the_servers_end() -> None:
    async with live_server() as live:
        async with following(live) as events:
            waiting = asyncio.create_task(anext(events, None))
            await live.post(EVENTS, {"events": STEP[:1]})
            assert await waiting == 1
            begun = asyncio.get_running_loop().time()
            await live.serving.stop()
            assert asyncio.get_running_loop().time() - begun < 5


@asynccontextmanager
async def following(live: Live, **headers: str) -> AsyncIterator[AsyncIterator[int]]:
    """The seqs of the events, each of which is a StoredEvent under its id."""
    async with live.client.stream("GET", "/v1/streams/run:1/sse", headers=headers) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/event-stream"
        yield _seqs(answer)


async def _seqs(answer: httpx.Response) -> AsyncIterator[int]:
    event_id = 0
    async for line in answer.aiter_lines():
        if line.startswith("id: "):
            event_id = int(line.removeprefix("id: "))
        elif line.startswith("data: "):
            stored = json.decode(line.removeprefix("data: "))
            assert (stored["seq"], stored["streamId"]) == (event_id, "run:1")
            yield event_id
