"""Threads over HTTP: runs, transcripts with branches, reconciling, deletion."""

from typing import Any
from urllib.parse import quote

import pytest
from msgspec import json

from tests.redact.fakes import TOKENS
from tests.requirements import requirement
from tests.servers.live import Live, assert_refused

CHAT = "/v1/threads/chat"


def said(text: str) -> dict[str, Any]:
    return {"kind": "user-message", "payload": {"content": text}}


def delta(text: str) -> dict[str, Any]:
    return {"kind": "text-delta", "payload": {"delta": text}}


def called(call: str) -> dict[str, Any]:
    return {"kind": "tool-call", "payload": {"toolCallId": call, "toolName": "look", "input": {}}}


async def begun(live: Live, thread: str = CHAT, **body: Any) -> dict[str, Any]:
    answer = await live.post(f"{thread}/runs", body)
    assert answer.status_code == 201, answer.text
    run: dict[str, Any] = answer.json()
    return run


async def told(live: Live, *events: dict[str, Any], thread: str = CHAT, **body: Any) -> dict[str, Any]:
    """A run that is committed with these events."""
    run = await begun(live, thread, **body)
    path = f"{thread}/runs/{run['runId']}"
    assert (await live.post(f"{path}/events", {"events": events})).status_code == 201
    answer = await live.post(f"{path}/commit", {})
    assert answer.status_code == 200, answer.text
    committed: dict[str, Any] = answer.json()
    return committed


async def texts(live: Live, **params: str) -> list[str]:
    answer = await live.client.get(f"{CHAT}/messages", params=params)
    assert answer.status_code == 200, answer.text
    return [message["parts"][0]["text"] for message in answer.json()["messages"]]


@requirement("planes:runs:shape", "planes:messages:shape", "planes:http:runs")
async def test_a_run_is_begun_streamed_and_committed(live: Live) -> None:
    run = await begun(live)
    assert set(run) == {
        *("runId", "threadId", "streamId", "forkFromMessageId", "status"),
        *("createdAt", "finishedAt", "messageCount", "lastActivityAt"),
    }
    assert (run["threadId"], run["streamId"], run["status"]) == ("chat", f"run:{run['runId']}", "created")
    path = f"{CHAT}/runs/{run['runId']}"
    answer = await live.post(f"{path}/events", {"events": [said("Hi"), delta("Hel"), delta("lo")]})
    assert answer.status_code == 201
    assert set(answer.json()) == {"events", "head"}
    assert [each["seq"] for each in answer.json()["events"]] == [1, 2, 3]
    assert (await live.client.get(path)).json()["status"] == "streaming"
    committed = (await live.client.post(f"{path}/commit")).json()
    assert (committed["status"], committed["messageCount"]) == ("committed", 2)
    assert (await live.client.get(f"{CHAT}/runs")).json() == {"runs": [committed]}
    page = (await live.client.get(f"{CHAT}/messages")).json()
    assert set(page) == {"messages", "next"}
    user, assistant = page["messages"]
    assert set(user) == {"id", "parentMessageId", "role", "parts", "createdAt", "metadata"}
    assert (user["parentMessageId"], user["role"]) == (None, "user")
    assert (assistant["parentMessageId"], assistant["role"]) == (user["id"], "assistant")
    assert assistant["parts"] == [{"type": "text", "text": "Hello"}]
    assert page["next"] is None


@requirement("planes:runs:fork-point")
async def test_a_run_without_a_word_about_where_goes_on_at_the_active_leaf(live: Live) -> None:
    await told(live, said("One"))
    leaf = (await live.client.get(f"{CHAT}/tree")).json()["activeLeaf"]
    answer = await live.client.post(f"{CHAT}/runs")
    assert answer.status_code == 201, "it needs no body"
    assert answer.json()["forkFromMessageId"] == leaf
    assert (await begun(live, forkFromMessageId=None))["forkFromMessageId"] is None
    assert (await begun(live, forkFromMessageId=leaf))["forkFromMessageId"] == leaf


@requirement("planes:runs:supersedes")
async def test_regenerating_supersedes_and_older_branches_stay_readable(live: Live) -> None:
    await told(live, said("Tell me"))
    fork = (await live.client.get(f"{CHAT}/tree")).json()["activeLeaf"]
    first = await told(live, delta("First"))
    await told(live, delta("Second"), forkFromMessageId=fork)
    assert await texts(live) == ["Tell me", "Second"]
    assert await texts(live, branch="all") == ["Tell me", "First", "Second"]
    runs = (await live.client.get(f"{CHAT}/runs")).json()["runs"]
    assert [run["status"] for run in runs] == ["committed", "superseded", "committed"]
    tree = (await live.client.get(f"{CHAT}/tree")).json()
    assert set(tree["nodes"][0]) == {"id", "parentMessageId", "role", "runId", "createdAt"}
    [old] = [node["id"] for node in tree["nodes"] if node["runId"] == first["runId"]]
    assert await texts(live, selections=json.encode({fork: old}).decode()) == ["Tell me", "First"]
    assert await texts(live) == ["Tell me", "Second"], "a selection counts for its own read"
    answer = await live.client.put(f"{CHAT}/active", content=json.encode({"messageId": old}))
    assert (answer.status_code, answer.json()) == (200, {"activeLeaf": old})
    assert await texts(live) == ["Tell me", "First"]


@requirement("planes:runs:first-message")
async def test_regenerating_the_first_message_forks_at_the_root(live: Live) -> None:
    await told(live, said("One"))
    await told(live, said("Another"), forkFromMessageId=None)
    assert await texts(live) == ["Another"]
    one = (await live.client.get(f"{CHAT}/tree")).json()["nodes"][0]["id"]
    assert await texts(live, selections=json.encode({"": one}).decode()) == ["One"]


@requirement("planes:branches:paged", "planes:http:queries")
@pytest.mark.parametrize("branch", ["active", "all"])
async def test_messages_are_paged_and_a_limit_of_none_gives_none(live: Live, branch: str) -> None:
    await told(live, *(said(f"m{n}") for n in range(5)))
    pages: list[dict[str, Any]] = [{"messages": [], "next": None}]
    for _ in range(3):
        after = {} if pages[-1]["next"] is None else {"after": pages[-1]["next"]}
        params = {"branch": branch, "limit": "2", **after}
        pages.append((await live.client.get(f"{CHAT}/messages", params=params)).json())
    seen = [message["parts"][0]["text"] for page in pages for message in page["messages"]]
    assert seen == [f"m{n}" for n in range(5)]
    assert pages[-1]["next"] is None
    assert await texts(live, branch=branch, limit="0") == []
    assert len(await texts(live, branch=branch, limit="99999")) == 5


async def test_messages_come_by_their_ids_too(live: Live) -> None:
    await told(live, *(said(f"m{n}") for n in range(3)))
    ids = [node["id"] for node in (await live.client.get(f"{CHAT}/tree")).json()["nodes"]]
    assert await texts(live, ids=json.encode([ids[2], "msg-none", ids[0]]).decode()) == ["m2", "m0"]


@requirement("planes:http:lists")
async def test_threads_are_listed_page_by_page(live: Live) -> None:
    for name in ("b", "a", "c"):
        await begun(live, f"/v1/threads/{name}")
    page = (await live.client.get("/v1/threads", params={"limit": 2})).json()
    assert [thread["threadId"] for thread in page["threads"]] == ["a", "b"]
    page = (await live.client.get("/v1/threads", params={"after": page["next"]})).json()
    assert [thread["threadId"] for thread in page["threads"]] == ["c"]
    assert page["next"] is None


@requirement("planes:http:lists")
async def test_runs_are_newest_first_and_go_on_before_one(live: Live) -> None:
    begins = [(await begun(live))["runId"] for _ in range(3)]
    runs = (await live.client.get(f"{CHAT}/runs", params={"limit": 2})).json()["runs"]
    assert [run["runId"] for run in runs] == begins[:0:-1]
    runs = (await live.client.get(f"{CHAT}/runs", params={"before": begins[1]})).json()["runs"]
    assert [run["runId"] for run in runs] == begins[:1]


@requirement("planes:runs:final", "planes:http:errors")
async def test_a_run_ends_once_and_ending_it_the_same_way_again_changes_nothing(live: Live) -> None:
    for ending, status in (("fail", "failed"), ("cancel", "cancelled")):
        path = f"{CHAT}/runs/{(await begun(live))['runId']}"
        ended = (await live.client.post(f"{path}/{ending}")).json()
        assert ended["status"] == status
        assert (await live.client.post(f"{path}/{ending}")).json() == ended
        assert_refused(await live.client.post(f"{path}/commit"), 409, "INVALID_TRANSITION")
        assert_refused(await live.post(f"{path}/events", {"events": [delta("late")]}), 409, "INVALID_TRANSITION")
    done = await told(live, said("One"))
    assert (await live.client.post(f"{CHAT}/runs/{done['runId']}/commit")).json() == done


@requirement("planes:runs:recovery")
async def test_a_run_whose_writer_is_gone_is_recovered(live: Live) -> None:
    path = f"{CHAT}/runs/{(await begun(live))['runId']}"
    await live.post(f"{path}/events", {"events": [called("c1")]})
    recovered = await live.post(f"{path}/recover", {"action": "commit"})
    assert recovered.json()["status"] == "committed"
    page = (await live.client.get(f"{CHAT}/messages")).json()
    assert page["messages"][-1]["parts"][0]["isError"] is True
    other = f"{CHAT}/runs/{(await begun(live))['runId']}"
    assert (await live.post(f"{other}/recover", {"action": "cancel"})).json()["status"] == "cancelled"
    assert_refused(await live.post(f"{other}/recover", {"action": "forget"}), 400, "INVALID_PAYLOAD")


@requirement("planes:remembering:asked-for")
async def test_what_a_run_decided_is_recorded_when_it_is_asked_for(team: Live) -> None:
    run = await told(team, said("Where to?"), delta("We decided to move the store to Lisbon."))
    path = f"{CHAT}/runs/{run['runId']}/remember"
    [unit] = (await team.post(path, {"agentId": "ada"})).json()["units"]
    assert set(unit) == {"memoryUnitId", "type", "messageId", "content", "isNew"}
    assert_refused(await team.post(path, {"agentId": "ada", "types": ["guess"]}), 400, "INVALID_PAYLOAD")
    open_run = f"{CHAT}/runs/{(await begun(team))['runId']}/remember"
    assert_refused(await team.post(open_run, {"agentId": "ada"}), 409, "INVALID_TRANSITION")


@requirement("planes:runs:own-thread", "planes:http:errors")
async def test_events_go_only_to_a_run_of_the_thread(live: Live) -> None:
    run = await begun(live)
    await begun(live, "/v1/threads/other")
    for thread in ("other", "never"):
        code = "RUN_NOT_FOUND" if thread == "other" else "THREAD_NOT_FOUND"
        path = f"/v1/threads/{thread}/runs/{run['runId']}"
        assert_refused(await live.post(f"{path}/events", {"events": [delta("x")]}), 404, code)
        assert_refused(await live.client.post(f"{path}/commit"), 404, code)
        assert_refused(await live.client.get(path), 404, code)
    assert (await live.client.get(f"/v1/streams/{run['streamId']}")).json()["head"] == 0


@requirement("planes:http:runs", "planes:http:errors")
async def test_an_append_sent_again_is_stored_once_and_a_wrong_seq_is_told_the_head(live: Live) -> None:
    run = await begun(live)
    path = f"{CHAT}/runs/{run['runId']}/events"
    body = {"events": [delta("one ")], "idempotencyKey": "k", "expectedSeq": 0}
    first = await live.post(path, body)
    assert (await live.post(path, body)).json() == first.json()
    answer = await live.post(path, {"events": [delta("two ")], "expectedSeq": 0})
    assert (answer.status_code, answer.json()["code"], answer.json()["head"]) == (409, "SEQ_CONFLICT", 1)


@requirement("planes:branches:not-found", "planes:http:errors")
@pytest.mark.parametrize("path", ["messages", "tree", "runs", "context"])
async def test_an_unknown_thread_is_not_found(live: Live, path: str) -> None:
    assert_refused(await live.client.get(f"/v1/threads/never/{path}"), 404, "THREAD_NOT_FOUND")


@requirement("planes:http:any-name")
async def test_nothing_but_what_the_routes_name_is_found(live: Live) -> None:
    for path in (f"{CHAT}/nothing", f"{CHAT}/runs/r/nothing", f"{CHAT}/runs/r/commit/more", "/v1/threads/%ff/runs"):
        assert_refused(await live.client.get(path), 404, "NOT_FOUND")
    answer = await live.client.patch(f"{CHAT}/runs")
    assert_refused(answer, 405, "METHOD_NOT_ALLOWED")
    assert answer.headers["allow"] == "GET, HEAD, POST"


@requirement("planes:http:queries")
@pytest.mark.parametrize(
    ("query", "named"),
    [
        ({"branch": "newest"}, "branch"),
        ({"selections": "{"}, "selections"),
        ({"selections": '["a"]'}, "selections"),
        ({"selections": '{"a": 1}'}, "selections"),
        ({"ids": "a,b"}, "ids"),
        ({"ids": json.encode(["m"] * 1_001).decode()}, "ids"),
        ({"after": "not-a-cursor"}, "after"),
        ({"limit": "-1"}, "limit"),
    ],
)
async def test_a_malformed_query_is_refused_by_its_name(live: Live, query: dict[str, str], named: str) -> None:
    await told(live, said("One"))
    body = assert_refused(await live.client.get(f"{CHAT}/messages", params=query), 400, "INVALID_PAYLOAD")
    assert named in body["message"]


@requirement("planes:http:runs")
@pytest.mark.parametrize("body", [b'{"forkFromMessageId": 1}', b'{"fork": null}', b"[", b'{"forkFromMessageId": ""}'])
async def test_a_malformed_begin_is_refused_and_begins_nothing(live: Live, body: bytes) -> None:
    assert_refused(await live.client.post(f"{CHAT}/runs", content=body), 400, "INVALID_PAYLOAD")
    assert (await live.client.get("/v1/threads")).json() == {"threads": [], "next": None}


@requirement("planes:http:queries")
async def test_an_unknown_message_cannot_be_made_active(live: Live) -> None:
    await told(live, said("One"))
    answer = await live.client.put(f"{CHAT}/active", content=b'{"messageId": "msg-none"}')
    assert_refused(answer, 400, "INVALID_PAYLOAD")


@requirement("planes:http:any-name")
@pytest.mark.parametrize("name", ["team/general", "a b", "ü", "..", "100%", "runs", "q?x=1", "#1"])
async def test_a_thread_may_have_any_name(live: Live, name: str) -> None:
    path = f"/v1/threads/{quote(name, safe='').replace('.', '%2E')}"
    run = await told(live, said("One"), thread=path)
    assert run["threadId"] == name
    [message] = (await live.client.get(f"{path}/messages")).json()["messages"]
    assert message["parts"][0]["text"] == "One"
    assert (await live.client.delete(path)).json()["threadId"] == name


@requirement("planes:secrets:everywhere")
async def test_a_name_that_holds_a_secret_is_refused_and_not_repeated(live: Live) -> None:
    secret = TOKENS["OpenAI old"]
    refused = [
        await live.client.post(f"/v1/threads/{secret}/runs"),
        await live.post(f"{CHAT}/runs", {"forkFromMessageId": secret}),
    ]
    for answer in refused:
        assert_refused(answer, 422, "SECRET_LEAKAGE")
        assert secret not in answer.text
    assert (await live.client.get("/v1/threads")).json()["threads"] == []


@requirement("planes:secrets:any-cut")
async def test_a_secret_that_comes_over_twenty_deltas_is_in_no_transcript(live: Live) -> None:
    secret = TOKENS["OpenAI old"]
    run = await begun(live)
    path = f"{CHAT}/runs/{run['runId']}"
    text = f"The key is {secret}, and that is all."
    step = -(-len(text) // 20)
    for start in range(0, len(text), step):
        await live.post(f"{path}/events", {"events": [delta(text[start : start + step])]})
    await live.client.post(f"{path}/commit")
    [kept] = await texts(live)
    assert kept.startswith("The key is [REDACTED:")
    assert kept.endswith("], and that is all.")


@requirement("planes:prompt:provenance")
async def test_the_end_of_a_thread_comes_as_context_with_its_provenance(live: Live) -> None:
    await told(live, said("One"), called("c1"), said("Two"), {"kind": "reasoning", "payload": {"text": "Hm."}})
    found = (await live.client.get(f"{CHAT}/context", params={"last": "2", "reasoning": "false"})).json()
    assert set(found) == {"messages", "provenance", "tokens"}
    assert found["provenance"]["threadId"] == "chat"
    assert found["provenance"]["count"] == len(found["messages"])
    small = (await live.client.get(f"{CHAT}/context", params={"maxTokens": "3"})).json()
    assert small["tokens"] <= 3
    answer = await live.client.get(f"{CHAT}/context", params={"reasoning": "no"})
    assert_refused(answer, 400, "INVALID_PAYLOAD")


@requirement("planes:branches:delete", "planes:branches:not-found")
async def test_a_deleted_thread_is_gone_with_all_of_it_and_leaves_a_receipt(live: Live) -> None:
    run = await told(live, said("One"), delta("Two"))
    receipt = (await live.client.delete(CHAT)).json()
    assert set(receipt) == {"threadId", "messages", "runs", "streams", "snapshots", "deletedAt"}
    assert (receipt["threadId"], receipt["messages"], receipt["runs"], receipt["streams"]) == ("chat", 2, 1, 1)
    assert_refused(await live.client.get(f"{CHAT}/messages"), 404, "THREAD_NOT_FOUND")
    assert_refused(await live.client.delete(CHAT), 404, "THREAD_NOT_FOUND")
    assert (await live.client.get("/v1/threads")).json()["threads"] == []
    status = (await live.client.get(f"/v1/streams/{run['streamId']}")).json()
    assert status["floor"] == status["head"], "an old reader is told that it is gone"
    assert (await told(live, said("Anew")))["messageCount"] == 1
    assert await texts(live) == ["Anew"]


@requirement("planes:reconcile:dry-run")
async def test_reconciling_is_a_dry_run_unless_it_is_said_otherwise(live: Live) -> None:
    run = await begun(live)
    await live.post(f"{CHAT}/runs/{run['runId']}/events", {"events": [delta("left")]})
    found = (await live.client.post("/v1/reconcile")).json()
    assert (found["dryRun"], found["threads"], found["runs"], found["disagreements"]) == (True, 1, 1, [])
    wanted = {"recover": "commit", "staleMs": 0, "threadId": "chat"}
    [stale] = (await live.post("/v1/reconcile", wanted)).json()["disagreements"]
    assert (stale["kind"], stale["runId"]) == ("stale-run", run["runId"])
    assert (await live.client.get(f"{CHAT}/runs/{run['runId']}")).json()["status"] == "streaming"
    await live.post("/v1/reconcile", {**wanted, "dryRun": False})
    assert (await live.client.get(f"{CHAT}/runs/{run['runId']}")).json()["status"] == "committed"
    assert await texts(live) == ["left"]
    assert_refused(await live.post("/v1/reconcile", {"threadId": "never"}), 404, "THREAD_NOT_FOUND")


@requirement("planes:compaction:retention")
async def test_streams_of_ended_runs_are_compacted_and_the_transcript_stays(live: Live) -> None:
    run = await told(live, said("One"), delta("Two"))
    await begun(live, "/v1/threads/other")
    assert (await live.client.post("/v1/retention/streams")).json() == {"streams": []}, "it ended just now"
    wanted = {"finishedDays": 0, "dryRun": True}
    [planned] = (await live.post("/v1/retention/streams", wanted)).json()["streams"]
    assert (planned["streamId"], planned["compaction"]["eligible"]) == (run["streamId"], 2)
    [kept] = (await live.post("/v1/retention/streams", {**wanted, "keepEvents": 1})).json()["streams"]
    assert kept["compaction"]["eligible"] == 1
    await live.post("/v1/retention/streams", {"finishedDays": 0})
    assert (await live.client.get(f"/v1/streams/{run['streamId']}")).json()["floor"] == 2
    assert await texts(live) == ["One", "Two"]
    assert_refused(await live.post("/v1/retention/streams", {"finishedDays": -1}), 400, "INVALID_PAYLOAD")


READS = [("GET", path) for path in ("", "/chat/messages", "/chat/tree", "/chat/context", "/chat/runs", "/chat/runs/r")]
WRITES = [("POST", "/chat/runs"), *(("POST", f"/chat/runs/r/{end}") for end in ("commit", "fail", "cancel"))]
LEAST: list[tuple[int, str, str, Any]] = [
    *((2, method, f"/v1/threads{path}", None) for method, path in READS),
    *((4, method, f"/v1/threads{path}", {}) for method, path in WRITES),
    (4, "POST", f"{CHAT}/runs/r/events", {"events": []}),
    (4, "POST", f"{CHAT}/runs/r/recover", {"action": "fail"}),
    (2, "POST", f"{CHAT}/runs/r/remember", {"agentId": "ada"}),  # and what the agent needs to record
    (4, "PUT", f"{CHAT}/active", {"messageId": "m"}),
    (8, "POST", "/v1/retention/streams", {}),
    (8, "DELETE", CHAT, None),
    (8, "POST", "/v1/reconcile", {}),
]


@requirement("planes:http:authority")
async def test_each_route_asks_for_its_authority_and_no_more(live: Live) -> None:
    keys = {10: await key(live, 10)}
    for authority in (0, 2, 4, 6, 8):
        keys[authority] = await key(live, authority, keys[10])
    for least, method, path, body in LEAST:
        content = None if body is None else json.encode(body)
        for authority in (least - 2, least):
            headers = {"authorization": f"Bearer {keys[authority]}"}
            answer = await live.client.request(method, path, content=content, headers=headers)
            assert (answer.status_code == 403) == (authority < least), (method, path, authority, answer.text)


async def key(live: Live, authority: int, by: str | None = None) -> str:
    """The first one is made by whoever is there; from then on the server asks for keys."""
    headers = {} if by is None else {"authorization": f"Bearer {by}"}
    body = json.encode({"tenant": "local", "authority": authority})
    answer = await live.client.post("/v1/keys", content=body, headers=headers)
    assert answer.status_code == 201, answer.text
    made: str = answer.json()["key"]
    return made
