"""What OpenWOP's documents look like, for checking one that came over the wire."""

from datetime import datetime
from typing import Any, Final

import httpx

from tests.openwop.host import Body

ENTRY: Final = {"id", "content", "tags", "createdAt", "expiresAt"}
RUN_EVENT: Final = {"eventId", "runId", "type", "payload", "timestamp", "sequence"}
RUN_EVENT_ALSO: Final = {"nodeId", "causationId", "schemaVersion", "engineVersion"}
COMPACTED: Final = {"memoryRef", "outputId", "sourceCount", "trigger", "byteSize"}
COMPACTED_ALSO: Final = {"sourceIds", "ts", "distillation"}
WRITTEN: Final = {"memoryRef", "memoryId"}
WRITTEN_ALSO: Final = {"nodeId", "agentId", "tags"}
CONSOLIDATED: Final = {"memoryRef", "inputCount", "outputCount"}
CONSOLIDATED_ALSO: Final = {"mergedIds", "trigger"}
FEED: Final = {"id", "type", "ts"}
ERROR_STATUS: Final = {
    "validation_error": 400,
    "unauthenticated": 401,
    "forbidden": 403,
    "not_found": 404,
    "token_budget_exceeded": 422,
    "secret_leakage": 422,
    "compaction_redaction_failed": 422,
}


def moment(text: Any) -> datetime:
    """RFC 3339 with its zone."""
    assert isinstance(text, str)
    found = datetime.fromisoformat(text)
    assert found.tzinfo is not None, text
    return found


def assert_keys(found: Body, needed: set[str], also: set[str]) -> None:
    assert needed <= set(found) <= needed | also, found


def assert_entry(entry: Body) -> None:
    assert_keys(entry, ENTRY - {"expiresAt"}, {"expiresAt"})
    assert isinstance(entry["id"], str)
    assert 1 <= len(entry["id"]) <= 1_500
    assert isinstance(entry["content"], str)
    assert all(isinstance(tag, str) and len(tag) <= 256 for tag in entry["tags"])
    moment(entry["createdAt"])
    if "expiresAt" in entry:
        moment(entry["expiresAt"])


def assert_compacted(payload: Body, *beside: str) -> None:
    """What `memory.compacted` says; `beside`: what stands flat with it in the feed."""
    assert_keys(payload, COMPACTED | set(beside), COMPACTED_ALSO)
    assert payload["memoryRef"]
    assert payload["outputId"]
    assert type(payload["sourceCount"]) is int
    assert payload["sourceCount"] >= 1
    assert payload["trigger"] == "host-managed"
    assert type(payload["byteSize"]) is int
    assert payload["byteSize"] >= 0
    if "sourceIds" in payload:
        assert all(isinstance(each, str) and each for each in payload["sourceIds"])
        assert len(payload["sourceIds"]) == payload["sourceCount"]
    if "distillation" in payload:
        spent = payload["distillation"]
        assert_keys(spent, {"tokenBudget", "tokensUsed"}, {"indexUpdated"})
        assert 0 <= spent["tokensUsed"] <= spent["tokenBudget"]


def assert_written(payload: Body, *beside: str) -> None:
    assert_keys(payload, WRITTEN | set(beside), WRITTEN_ALSO)
    assert all(isinstance(payload[name], str) and payload[name] for name in WRITTEN)


def assert_consolidated(payload: Body, *beside: str) -> None:
    assert_keys(payload, CONSOLIDATED | set(beside), CONSOLIDATED_ALSO)
    assert 0 <= payload["outputCount"] <= payload["inputCount"]
    assert payload.get("trigger", "host-managed") in ("host-managed", "scheduled", "on-demand")


def assert_run_event(event: Body, run_id: str) -> None:
    assert_keys(event, RUN_EVENT, RUN_EVENT_ALSO)
    assert event["runId"] == run_id
    assert isinstance(event["eventId"], str)
    assert 1 <= len(event["eventId"]) <= 128
    assert type(event["sequence"]) is int
    moment(event["timestamp"])


def assert_error(response: httpx.Response, code: str) -> Body:
    """The one envelope of every refusal. Its body."""
    assert response.status_code == ERROR_STATUS[code], f"{response.status_code} {response.text}"
    body = assert_envelope(response)
    assert body["error"] == code
    return body


def assert_envelope(response: httpx.Response) -> Body:
    assert response.status_code >= 400, f"{response.status_code} {response.text}"
    body: Body = response.json()
    assert_keys(body, {"error", "message"}, {"details"})
    assert isinstance(body["error"], str)
    assert isinstance(body["message"], str)
    assert isinstance(body.get("details", {}), dict)
    return body
