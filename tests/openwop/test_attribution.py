"""RFC 0057: each write is told, by whom it came and where it lies, and never what it says."""

from typing import Final

import pytest

from tests.openwop.host import Caller, memory, told
from tests.openwop.shapes import FEED, assert_error, assert_run_event, assert_written
from tests.requirements import requirement

TYPE: Final = "memory.written"
NOOP: Final = "conformance-noop"
TERMINAL: Final = {"run.completed", "run.failed", "run.cancelled"}


@requirement("openwop:attribution:resolvable")
def test_a_run_that_writes_tells_so_and_the_entry_is_there(acme: Caller) -> None:
    run = acme.finished(NOOP, tenantId="mem-attr-no-content", inputs={})
    written = [event for event in acme.run_events(run["runId"]) if event["type"] == TYPE]
    assert written
    for event in written:
        assert_run_event(event, run["runId"])
        assert_written(event["payload"])
        entry = told(acme.entry(event["payload"]["memoryRef"], event["payload"]["memoryId"]))
        assert entry["content"] not in str(event)


@requirement("openwop:attribution:per-run")
def test_the_writes_of_a_run_stand_in_the_feed_too(acme: Caller) -> None:
    run = acme.finished(NOOP)
    written = [event["payload"] for event in acme.run_events(run["runId"]) if event["type"] == TYPE]
    told_ids = {event["memoryId"] for event in acme.events(TYPE)}
    assert {payload["memoryId"] for payload in written} <= told_ids


@requirement("openwop:attribution:per-run")
def test_a_run_tells_its_own_writes_only(acme: Caller) -> None:
    runs = [acme.finished(NOOP, tenantId="mem-attr-cti") for _ in range(2)]
    ids = [
        {event["payload"]["memoryId"] for event in acme.run_events(run["runId"]) if event["type"] == TYPE}
        for run in runs
    ]
    assert ids[0]
    assert not ids[0] & ids[1]


@requirement("openwop:cti-1:key-decides")
def test_the_tenant_of_a_run_is_the_keys_whatever_the_body_says(acme: Caller, zeta: Caller) -> None:
    run = acme.finished(NOOP, tenantId="zeta")
    assert_error(zeta.get(f"/v1/runs/{run['runId']}"), "not_found")
    assert told(acme.get(f"/v1/runs/{run['runId']}"))["status"] == "completed"


@requirement("openwop:conformance:runs")
def test_a_runs_events_are_in_order_and_end_with_its_end(acme: Caller) -> None:
    run = acme.finished(NOOP)
    events = acme.run_events(run["runId"])
    assert len(events) >= 2
    assert [event["sequence"] for event in events] == list(range(len(events)))
    assert [event["type"] for event in events if event["type"] in TERMINAL] == [events[-1]["type"]] == ["run.completed"]
    assert acme.run_events(run["runId"]) == events


@requirement("openwop:conformance:runs")
def test_polling_gives_the_same_events_and_says_that_the_run_is_over(acme: Caller) -> None:
    run = acme.finished(NOOP)
    events = acme.run_events(run["runId"])
    path = f"/v1/runs/{run['runId']}/events/poll"
    assert told(acme.get(path)) == {"events": events, "isComplete": True}
    assert told(acme.get(path, lastSequence=0, timeout=5))["events"] == events[1:]
    assert told(acme.get(path, lastSequence=len(events) - 1, timeout=1)) == {"events": [], "isComplete": True}


@requirement("openwop:attribution:fields")
def test_a_put_tells_its_node_its_agent_and_its_tags(acme: Caller, ref: str) -> None:
    entry = acme.put(ref, "Of a node.", tags=["note"], nodeId="summarize-2", agentId="summarizer")
    plain = acme.put(ref, "Of nobody.")
    first, second = acme.events_of(ref, TYPE)
    for event in (first, second):
        assert_written(event, *FEED)
    assert (first["memoryId"], first["nodeId"], first["agentId"], first["tags"]) == (
        entry["id"],
        "summarize-2",
        "summarizer",
        ["note"],
    )
    assert second["memoryId"] == plain["id"]
    assert "nodeId" not in second
    assert set(entry) == {"id", "content", "tags", "createdAt"}


@requirement("openwop:attribution:written")
def test_each_write_is_told_once_and_a_refused_one_not_at_all(acme: Caller, ref: str) -> None:
    ids = [acme.put(ref, f"Number {number}.")["id"] for number in range(5)]
    acme.post(memory(ref), {"content": "Refused.", "id": "mine"})
    assert [event["memoryId"] for event in acme.events_of(ref, TYPE)] == ids


@requirement("openwop:attribution:written")
def test_what_compaction_writes_is_told_as_a_write_too(acme: Caller, ref: str) -> None:
    acme.seed(ref, {"a": "One thing.", "b": "Another thing."})
    output = acme.compacted(ref)["payload"]["outputId"]
    written = [event["memoryId"] for event in acme.events_of(ref, TYPE)]
    assert sorted(written) == sorted(["a", "b", output])


@requirement("openwop:events:content-free", "openwop:attribution:fields")
def test_no_event_carries_content(acme: Caller, ref: str) -> None:
    word = "periwinkle"
    acme.put(ref, f"A {word} on the sill.", nodeId="n")
    [event] = acme.events_of(ref, TYPE)
    assert "content" not in event
    assert word not in acme.get("/v1/events", limit=1_000).text


@requirement("openwop:discovery:no-engine")
def test_a_run_cannot_be_replayed_by_fork_since_that_is_not_advertised(acme: Caller) -> None:
    run = acme.finished(NOOP)
    forked = acme.post(f"/v1/runs/{run['runId']}:fork", {"fromSeq": 0, "mode": "replay"})
    assert_error(forked, "not_found")


@requirement("openwop:conformance:runs")
@pytest.mark.parametrize("workflow", [None, "", 7, "no-such-workflow"])
def test_a_run_of_no_fixture_is_refused(acme: Caller, workflow: object) -> None:
    answer = acme.post("/v1/runs", {"workflowId": workflow})
    assert_error(answer, "not_found" if workflow == "no-such-workflow" else "validation_error")


@requirement("openwop:conformance:byok")
def test_the_fixture_that_resolves_a_secret_tells_its_digest_and_length_alone(acme: Caller) -> None:
    run = acme.finished("openwop-smoke-byok-roundtrip")
    assert run["status"] == "completed"
    resolved = run["variables"].get("resolve-secret", run["variables"])
    assert len(resolved["secretSha256"]) == 64
    assert set(resolved["secretSha256"]) <= set("0123456789abcdef")
    assert resolved["secretLength"] > 0
    events = acme.run_events(run["runId"])
    done = [event for event in events if event["type"] == "node.completed" and event.get("nodeId") == "resolve-secret"]
    assert len(done) == 1
    for word in ('"value"', '"password"', '"plaintext"', '"raw_secret"'):
        assert word not in acme.get(f"/v1/runs/{run['runId']}/events").text


@requirement("openwop:conformance:runs")
def test_a_started_run_says_its_id_and_its_status(acme: Caller) -> None:
    started = told(acme.post("/v1/runs", {"workflowId": NOOP}), 201)
    assert isinstance(started["status"], str)
    run = told(acme.get(f"/v1/runs/{started['runId']}"))
    assert (run["runId"], run["workflowId"]) == (started["runId"], NOOP)
