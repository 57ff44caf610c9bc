"""What a route of streams and threads does not know behind the question mark is refused, not passed over."""

from tests.requirements import requirement
from tests.servers.live import live_server

MISTYPED = [
    ("GET", "/v1/streams/s/events?aftr=1", "aftr"),
    ("GET", "/v1/streams/s/sse?aftr=1", "aftr"),
    ("GET", "/v1/streams/s?dryRun=true", "dryRun"),
    ("POST", "/v1/streams/s/compact?dryRun=true", "dryRun"),
    ("DELETE", "/v1/streams/s?dryRun=true", "dryRun"),
    ("GET", "/v1/threads?limt=1", "limt"),
    ("GET", "/v1/threads/t/messages?limt=1", "limt"),
    ("GET", "/v1/threads/t/tree?parts=false", "parts"),
    ("GET", "/v1/threads/t/context?lst=1", "lst"),
    ("DELETE", "/v1/threads/t?dryRun=true", "dryRun"),
]


@requirement("planes:http:queries")
async def test_a_mistyped_field_of_a_query_is_refused_by_its_name_and_nothing_is_done() -> None:
    async with live_server() as live:
        event = {"kind": "user-message", "payload": {"content": "hello"}}
        await live.post("/v1/streams/s/events", {"events": [event]})
        await live.post("/v1/threads/t/runs", {})
        for method, path, field in MISTYPED:
            answer = await live.client.request(method, path, content=b"{}" if method == "POST" else None)
            assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_PAYLOAD"), path
            assert field in answer.json()["message"]
        assert (await live.client.get("/v1/streams/s")).json() == {"head": 1, "floor": 0, "snapshot": None}
        assert len((await live.client.get("/v1/threads/t/runs")).json()["runs"]) == 1
