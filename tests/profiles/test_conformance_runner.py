"""The conformance mode: seams and fixtures that do on the real memory what OpenWOP's scenarios then ask about."""

import asyncio
from collections.abc import AsyncIterator
from hashlib import sha256
from itertools import count
from typing import Any, Final

import pytest
from msgspec import json
from starlette.types import Message

from fieldstone.backends.memory.store import MemoryStore
from fieldstone.core.access import LOCAL, Caller
from fieldstone.core.errors import FieldError, Forbidden, InvalidPayload, NotFound, TokenBudgetExceeded
from fieldstone.field.field import LocalField
from fieldstone.ports.log import FieldKey
from fieldstone.profiles.openwop.adapter import MemoryAdapter
from fieldstone.profiles.openwop.conformance.fixtures import FIXTURES, Place
from fieldstone.profiles.openwop.conformance.runner import Run, Runs
from fieldstone.profiles.openwop.conformance.seams import CORPUS, Seams
from fieldstone.profiles.openwop.discovery import HostFeatures
from fieldstone.profiles.openwop.feed import Feed
from fieldstone.profiles.openwop.limits import HostLimits
from fieldstone.servers.http.conformance import PROBE_TENANTS, ConformanceRoutes
from fieldstone.servers.http.entrance import Visit
from fieldstone.servers.tenants import Tenants
from fieldstone.testing import SeededIds
from tests.field.fields import opened
from tests.requirements import requirement

Body = dict[str, Any]

NOOP, ROUNDTRIP, TTL, REDACTION, CROSS_TENANT, BUDGET, BYOK = FIXTURES
LIMITS: Final = HostLimits()
REF: Final = "mem_tenant:default_agent:conformance_longTerm"
RUN_EVENT: Final = {"eventId", "runId", "type", "payload", "timestamp", "sequence"}
CANARY: Final = "sk" + "-CANARY-openwop" + "-CONFORMANCE-NEVER-SECRET-" + "a1B2c3D4e5F6g7H8"
SEED, COMPACT = "/v1/test/memory/seed", "/v1/test/memory/compact"
DISTILL, CONSOLIDATE = "/v1/host/sample/memory/distill", "/v1/host/sample/memory/consolidate"
RUNS, RUN, EVENTS, POLL = "/v1/runs", "/v1/runs/{id}", "/v1/runs/{id}/events", "/v1/runs/{id}/events/poll"


class House:
    """A server's tenants, each with a field of its own in memory, and the routes of the conformance mode."""

    def __init__(self, **features: Any) -> None:
        self.ids = SeededIds(99)
        self.routes = ConformanceRoutes(HostFeatures(**features), self.ids)
        self.runs = Runs(self.ids)
        self.opened: list[str] = []
        self._seeds = count(1)
        self.tenants = Tenants(self._open)
        self.options: Body = {}

    async def _open(self, tenant: str) -> LocalField:
        self.opened.append(tenant)
        return await opened(store=MemoryStore(FieldKey(tenant, "main")), seed=next(self._seeds), **self.options)

    async def field(self, tenant: str = "acme") -> LocalField:
        async with self.tenants.visit(tenant) as field:
            return field

    async def memory(self, tenant: str = "acme") -> MemoryAdapter:
        return MemoryAdapter(await self.field(tenant), LOCAL, LIMITS)

    async def seams(self, caller: Caller = LOCAL) -> Seams:
        return Seams(await self.field(), caller, LIMITS, self.ids)

    async def place(self, *, elsewhere: str = "other", caller: Caller = LOCAL) -> Place:
        return Place(await self.field(), caller, LIMITS, lambda: self.tenants.visit(elsewhere))

    async def ran(self, workflow: str, **where: Any) -> Run:
        run = await self.runs.start("acme", workflow, await self.place(**where))
        return self.runs.get("acme", run.run_id)

    async def variables(self, workflow: str, **where: Any) -> Body:
        run = await self.ran(workflow, **where)
        assert run.snapshot.status == "completed"
        variables: Body = plain(run.snapshot.variables)
        return variables

    async def ask(
        self, path: str, body: Any = None, *, tenant: str = "acme", query: str = "", **params: str
    ) -> tuple[int, Any]:
        """What the route answers: POST where there is a body."""
        handler = self.routes.handlers()[path]["GET" if body is None else "POST"]
        sent = body if isinstance(body, bytes) else json.encode(body)

        async def receive() -> Message:
            return {"type": "http.request", "body": sent}

        scope = {"path_params": params, "query_string": query.encode(), "headers": []}
        async with self.tenants.visit(tenant) as field:
            answer = await handler(Visit(scope, receive, field, LOCAL, tenant, self.tenants, lambda *_: None))
        return answer.status, json.decode(answer.body) if answer.body else None


@pytest.fixture
async def house() -> AsyncIterator[House]:
    house = House()
    yield house
    await house.tenants.close()


def plain(value: Any) -> Any:
    """As it is on the wire."""
    return json.decode(json.encode(value))


def with_authority(authority: int) -> Caller:
    return Caller(credential="key-1", authority=authority)


# --- runs -------------------------------------------------------------------------------------------------------------


@requirement("openwop:attribution:resolvable", "openwop:conformance:real")
@pytest.mark.parametrize("workflow", FIXTURES)
async def test_every_fixture_comes_to_its_end_and_tells_what_it_wrote(house: House, workflow: str) -> None:
    run = await house.ran(workflow)
    assert run.snapshot.status == "completed"
    types = [event.type for event in run.events]
    assert types[:2] == ["run.started", "node.started"]
    assert set(types[2:-2]) == {"memory.written"}
    assert types[-2:] == ["node.completed", "run.completed"]


@requirement("openwop:conformance:runs")
@pytest.mark.parametrize("workflow", FIXTURES)
async def test_a_run_event_has_openwops_shape_and_nothing_else(house: House, workflow: str) -> None:
    run = await house.ran(workflow)
    events = plain(run.events)
    for event in events:
        assert set(event) - {"nodeId"} == RUN_EVENT
        assert event["runId"] == run.snapshot.run_id
        assert 1 <= len(event["eventId"]) <= 128
    assert [event["sequence"] for event in events] == list(range(len(events)))
    assert len({event["eventId"] for event in events}) == len(events)
    assert sorted(event["timestamp"] for event in events) == [event["timestamp"] for event in events]


@requirement("openwop:attribution:per-run")
async def test_what_a_run_wrote_is_told_as_the_feed_tells_it(house: House) -> None:
    run = await house.ran(BUDGET)
    page = await Feed(await house.field()).page()
    written = [event.payload for event in run.events if event.type == "memory.written"]
    assert written == [event.payload for event in page.events]
    assert not any("content" in payload for payload in written)


@requirement("openwop:attribution:per-run")
async def test_what_others_write_meanwhile_is_not_the_runs(house: House) -> None:
    memory = await house.memory()
    run, other, entry = await asyncio.gather(
        house.ran(BUDGET), house.ran(NOOP), memory.put(REF, content="Of somebody else.")
    )
    ids = [
        {event.payload["memoryId"] for event in each.events if event.type == "memory.written"} for each in (run, other)
    ]
    assert (len(ids[0]), len(ids[1])) == (5, 1)
    assert not ids[0] & ids[1]
    assert entry.id not in ids[0] | ids[1]


@requirement("openwop:attribution:resolvable", "openwop:conformance:real")
async def test_what_a_run_wrote_is_there_afterwards(house: House) -> None:
    run = await house.ran(NOOP)
    [written] = [event.payload for event in run.events if event.type == "memory.written"]
    assert await (await house.memory()).get(written["memoryRef"], written["memoryId"]) is not None


@requirement("openwop:conformance:runs-tenant")
async def test_a_run_of_another_tenant_is_one_that_there_is_not(house: House) -> None:
    run = await house.ran(NOOP)
    for tenant, run_id in (("zeta", run.snapshot.run_id), ("acme", "run-unknown")):
        with pytest.raises(NotFound, match=r"^There is no such run\."):
            house.runs.get(tenant, run_id)


async def test_only_the_newest_runs_are_kept(house: House) -> None:
    runs, place = Runs(house.ids, most_runs=2), await house.place()
    ids = [(await runs.start("acme", NOOP, place)).run_id for _ in range(3)]
    assert [runs.get("acme", each).snapshot.run_id for each in ids[1:]] == ids[1:]
    with pytest.raises(NotFound):
        runs.get("acme", ids[0])


@requirement("openwop:conformance:runs")
async def test_a_workflow_that_there_is_not_is_not_found_and_not_repeated(house: House) -> None:
    with pytest.raises(NotFound) as refused:
        await house.ran(f"nonexistent-{CANARY}")
    assert CANARY not in refused.value.message


@requirement("openwop:conformance:key")
async def test_who_may_not_write_starts_no_run(house: House) -> None:
    with pytest.raises(Forbidden):
        await house.ran(REDACTION, caller=with_authority(2))
    assert (await Feed(await house.field()).page()).events == ()


@requirement("openwop:sr-1:policy-refuse")
async def test_a_run_that_the_tenant_refuses_has_failed_and_says_so(house: House) -> None:
    house.options = {"refuse_secrets": True}
    run = await house.ran(REDACTION)
    assert run.snapshot.status == "failed"
    assert run.events[-1].type == "run.failed"
    assert run.events[-1].payload == {"error": "secret_leakage"}
    assert await (await house.field()).secrets() == []


# --- fixtures ---------------------------------------------------------------------------------------------------------


@requirement("openwop:memory:round-trip")
async def test_the_round_trip_reads_back_what_it_put(house: House) -> None:
    run = await house.ran(ROUNDTRIP)
    [written] = [event.payload for event in run.events if event.type == "memory.written"]
    kept = await (await house.memory()).get(written["memoryRef"], written["memoryId"])
    assert run.snapshot.variables == {"memoryReadback": kept}


@requirement("openwop:ttl:not-returned")
async def test_what_is_over_is_stored_and_not_listed(house: House) -> None:
    seen = await house.variables(TTL)
    assert [entry["id"] for entry in seen["memoryList"]] == [seen["freshId"]]
    field = await house.field()
    [ref] = await field.memories.entries.memories()
    assert await field.memories.entries.find(ref, seen["expiredId"]) is not None


@requirement("openwop:sr-1:registry")
async def test_a_secret_that_the_host_knows_is_marked_and_then_dropped(house: House) -> None:
    seen = await house.variables(REDACTION)
    field = await house.field()
    assert "[REDACTED:openwop-conformance-canary-secret." in seen["memoryReadback"]["content"]
    assert await field.secrets() == []


@requirement("openwop:sr-1:registry")
async def test_runs_at_the_same_time_do_not_drop_each_others_secrets(house: House) -> None:
    runs = await asyncio.gather(*(house.ran(workflow) for workflow in (REDACTION, BYOK) * 4))
    assert {run.snapshot.status for run in runs} == {"completed"}
    for run in runs[::2]:
        content = run.snapshot.variables["memoryReadback"].content
        assert content.count(f"[REDACTED:openwop-conformance-canary-secret.{run.snapshot.run_id}]") == 1
    assert await (await house.field()).secrets() == []


@requirement("openwop:cti-1:probed")
async def test_another_tenant_finds_nothing_under_the_same_ref_and_id(house: House) -> None:
    seen = await house.variables(CROSS_TENANT)
    assert [entry["id"] for entry in seen["ownerProbe"]] == [seen["ownerEntryId"]]
    assert seen["crossTenantProbe"] == []
    assert house.opened == ["acme", "other"]


@requirement("openwop:cti-1:probed")
async def test_the_probe_would_find_it_if_the_tenants_were_not_apart(house: House) -> None:
    seen = await house.variables(CROSS_TENANT, elsewhere="acme")
    assert {entry["id"] for entry in seen["crossTenantProbe"]} == {seen["ownerEntryId"]}
    seen = await house.variables(BUDGET, elsewhere="acme")
    assert seen["crossTenantBudgetedProbe"] == seen["budgetedEntries"]


@requirement("openwop:budget:whole")
async def test_the_list_within_a_budget_leaves_out_what_is_too_large(house: House) -> None:
    seen = await house.variables(BUDGET)
    listed = [entry["id"] for entry in seen["budgetedEntries"]]
    count_tokens = (await house.field()).memories.count_tokens
    total = sum(count_tokens(entry["content"]) for entry in seen["budgetedEntries"])
    assert 0 < total == seen["budgetedTokenTotal"] <= seen["tokenBudget"]
    assert seen["overBudgetEntryOmitted"] is True
    assert seen["overBudgetEntryId"] not in listed
    assert "[REDACTED:" in seen["redactedContentSample"]
    assert seen["crossTenantBudgetedProbe"] == []


@requirement("openwop:budget:relevance")
async def test_what_the_query_is_about_comes_first_though_it_is_the_oldest(house: House) -> None:
    seen = await house.variables(BUDGET)
    assert sorted(seen["recencyOrder"]) == sorted(seen["relevanceOrder"])
    assert seen["recencyOrder"][-1] == seen["relevanceOrder"][0]


@requirement("openwop:conformance:byok")
async def test_a_resolved_secret_is_told_by_its_digest_alone(house: House) -> None:
    run = await house.ran(BYOK)
    resolved = run.snapshot.variables["resolve-secret"]
    value = SeededIds(99)
    value.run()
    secret = value.salt().hex()
    assert resolved == {"secretSha256": sha256(secret.encode()).hexdigest(), "secretLength": len(secret)}
    done = [event for event in run.events if event.type == "node.completed" and event.node_id == "resolve-secret"]
    assert len(done) == 1
    [written] = [event.payload for event in run.events if event.type == "memory.written"]
    kept = await (await house.memory()).get(written["memoryRef"], written["memoryId"])
    assert secret not in f"{run}{kept}"


# --- seams ------------------------------------------------------------------------------------------------------------


async def seeded(house: House, contents: list[str]) -> None:
    entries = [{"id": f"s{number}", "content": content} for number, content in enumerate(contents)]
    assert await house.ask(SEED, {"memoryRef": REF, "entries": entries}) == (201, {})


@requirement("openwop:conformance:compact")
async def test_all_entries_become_one_and_its_content_is_told(house: House) -> None:
    await seeded(house, ["The fair opens at nine. [BYOK:till-key]", "It closes at noon.", "Pears cost two coins."])
    status, answer = await house.ask(COMPACT, {"memoryRef": REF})
    assert (status, set(answer), answer["type"]) == (200, {"type", "payload", "outputContent"}, "memory.compacted")
    [output] = (await (await house.memory()).list(REF)).entries
    assert (output.id, output.content) == (answer["payload"]["outputId"], answer["outputContent"])
    assert "[REDACTED:till-key]" in output.content
    assert set(answer["payload"]["sourceIds"]) == {"s0", "s1", "s2"}


@requirement("openwop:compaction:nothing-under-two")
@pytest.mark.parametrize("contents", [[], ["One alone."]])
async def test_of_fewer_than_two_there_is_nothing_to_compact(house: House, contents: list[str]) -> None:
    await seeded(house, contents)
    assert await house.ask(COMPACT, {"memoryRef": REF}) == (204, None)


@requirement("openwop:conformance:distill")
async def test_a_memory_that_nobody_wrote_to_gets_a_corpus_and_is_distilled(house: House) -> None:
    for _ in range(2):  # the second time there is what the first one left, which is not enough
        status, answer = await house.ask(DISTILL, {"memoryRef": REF, "tokenBudget": 8_000})
        assert status == 200
        assert answer["event"]["sourceCount"] == len(CORPUS)
        assert 0 < answer["event"]["distillation"]["tokensUsed"] <= 8_000
        assert "indexFile" not in answer
    status, answer = await house.ask(DISTILL, {"memoryRef": REF, "tokenBudget": 8_000})
    assert answer["event"]["sourceCount"] == 2


@requirement("openwop:distillation:exceeded")
async def test_a_budget_that_is_too_small_leaves_nothing_of_the_corpus(house: House) -> None:
    with pytest.raises(TokenBudgetExceeded) as refused:
        await house.ask(DISTILL, {"memoryRef": REF, "tokenBudget": 1})
    assert refused.value.extra["details"]
    assert (await (await house.memory()).list(REF)).entries == ()
    assert (await Feed(await house.field()).page()).events == ()


@requirement("openwop:distillation:byte-stable")
async def test_given_sources_decide_the_archive_whatever_lies_there(house: House) -> None:
    request = {"memoryRef": REF, "tokenBudget": 8_000, "sources": ["s1", {"content": "s2"}, "s3"]}
    first, second, third = [(await house.ask(DISTILL, request))[1] for _ in range(3)]
    assert first["archiveChecksum"] == second["archiveChecksum"] == third["archiveChecksum"]
    assert {each["event"]["sourceCount"] for each in (first, second, third)} == {3}


@requirement("openwop:distillation:concurrent")
async def test_distillations_of_one_memory_at_the_same_time_all_come_to_an_end(house: House) -> None:
    seams = await house.seams()
    with_sources = [seams.distil(REF, 8_000, ["s1", "s2", "s3"], index=False) for _ in range(3)]
    without = [seams.distil(REF, 8_000, None, index=True) for _ in range(3)]
    made = await asyncio.gather(*with_sources, *without)
    assert len({each.archive_checksum for each in made[:3]}) == 1
    assert all(each.index_file for each in made[3:])


@requirement("openwop:conformance:distill")
async def test_one_source_alone_is_distilled_and_what_looks_like_a_key_is_not_told(house: House) -> None:
    sources = [{"content": f"Notes with {CANARY} in them."}]
    request = {"memoryRef": REF, "tokenBudget": 8_000, "includeSecretCanary": True, "sources": sources}
    status, answer = await house.ask(DISTILL, request)
    assert (status, answer["event"]["sourceCount"]) == (200, 1)
    assert CANARY not in str(answer)


@requirement("openwop:distillation:index")
async def test_an_index_is_told_when_it_is_asked_for(house: House) -> None:
    _, answer = await house.ask(DISTILL, {"memoryRef": REF, "tokenBudget": 8_000, "indexEmitted": True})
    assert answer["event"]["distillation"]["indexUpdated"] is True
    assert answer["event"]["outputId"] in str(answer["indexFile"])


@requirement("openwop:consolidation:idempotent", "openwop:conformance:consolidate")
async def test_a_pass_has_work_to_do_where_a_secret_is_planted_and_the_next_has_none(house: House) -> None:
    for _ in range(2):  # a suite that is run again finds what it left
        _, first = await house.ask(CONSOLIDATE, {"memoryRef": REF, "includeSecretCanary": True})
        assert first["event"]["outputCount"] < first["event"]["inputCount"]
        assert first["secretLeaked"] is False
        _, again = await house.ask(CONSOLIDATE, {"memoryRef": REF})
        assert again["event"]["inputCount"] == again["event"]["outputCount"] == first["event"]["outputCount"]
        assert "secretLeaked" not in again
    contents = [entry.content for entry in (await (await house.memory()).list(REF)).entries]
    assert sum("[REDACTED:" in content for content in contents) == 1
    assert await (await house.field()).secrets() == []


@requirement("openwop:conformance:consolidate")
async def test_an_empty_memory_is_consolidated_to_an_empty_one_and_its_ref_is_not_repeated(house: House) -> None:
    answer = await house.ask(CONSOLIDATE, {"memoryRef": f"mem_{CANARY}"})
    assert answer == (200, {"event": {"inputCount": 0, "outputCount": 0}})


@requirement("openwop:conformance:key")
async def test_who_may_not_compact_plants_nothing(house: House) -> None:
    with pytest.raises(Forbidden):
        await (await house.seams(with_authority(4))).consolidate(REF, plants_secret=True)
    assert (await (await house.memory()).list(REF)).entries == ()


# --- over HTTP --------------------------------------------------------------------------------------------------------


@requirement("openwop:conformance:runs")
async def test_a_run_is_started_read_and_polled(house: House) -> None:
    status, started = await house.ask(RUNS, {"workflowId": NOOP})
    assert (status, set(started), started["status"]) == (201, {"runId", "status"}, "completed")
    run_id = started["runId"]
    told = {"runId": run_id, "workflowId": NOOP, "status": "completed", "variables": {}}
    assert await house.ask(RUN, id=run_id) == (200, told)
    _, events = await house.ask(EVENTS, id=run_id)
    assert await house.ask(POLL, id=run_id) == (200, {**events, "isComplete": True})
    assert (await house.ask(POLL, id=run_id, query="lastSequence=-1&timeout=5"))[1]["events"] == events["events"]
    assert (await house.ask(POLL, id=run_id, query="lastSequence=1&timeout=5"))[1]["events"] == events["events"][2:]
    last = len(events["events"]) - 1
    polled = await house.ask(POLL, id=run_id, query=f"lastSequence={last}")
    assert polled == (200, {"events": [], "isComplete": True})


@requirement("openwop:cti-1:key-decides")
async def test_the_tenant_is_the_keys_whatever_the_body_says(house: House) -> None:
    _, started = await house.ask(RUNS, {"workflowId": NOOP, "tenantId": "zeta"})
    for path in (RUN, EVENTS, POLL):
        assert (await house.ask(path, id=started["runId"]))[0] == 200
        with pytest.raises(NotFound):
            await house.ask(path, id=started["runId"], tenant="zeta")


async def test_nothing_that_a_client_sends_along_with_a_run_comes_back(house: House) -> None:
    inputs = {"userSuppliedField": CANARY, "deep": {"er": [CANARY]}}
    request = {"workflowId": NOOP, "inputs": inputs, "configurable": {"ai": {"credentialRef": CANARY}}, CANARY: CANARY}
    _, started = await house.ask(RUNS, request)
    answers = [await house.ask(path, id=started["runId"]) for path in (RUN, EVENTS, POLL)]
    assert CANARY not in f"{started}{answers}"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        *[
            (path, body)
            for path in (SEED, COMPACT, DISTILL, CONSOLIDATE, RUNS)
            for body in (b"", b"[]", b"null", b"{}")
        ],
        *[(path, {"memoryRef": ref}) for path in (COMPACT, DISTILL, CONSOLIDATE) for ref in ("", 5, None)],
        (SEED, {"memoryRef": REF}),
        (SEED, {"memoryRef": REF, "entries": [{"id": "a", "content": "Good."}, {"id": "", "content": "No id."}]}),
        (SEED, {"memoryRef": REF, "entries": [{"id": "a", "content": "Good."}, {"id": "b"}]}),
        (DISTILL, {"memoryRef": REF, "tokenBudget": 0}),
        (DISTILL, {"memoryRef": REF, "tokenBudget": "many"}),
        (DISTILL, {"memoryRef": REF, "sources": []}),
        (DISTILL, {"memoryRef": REF, "sources": "text"}),
        (DISTILL, {"memoryRef": REF, "sources": [{"text": "no content"}]}),
        (DISTILL, {"memoryRef": REF, "indexEmitted": "yes"}),
        (CONSOLIDATE, {"memoryRef": REF, "includeSecretCanary": 1}),
        (RUNS, {"workflowId": ""}),
        (RUNS, {"workflowId": 7}),
    ],
    ids=str,
)
async def test_a_request_that_is_none_is_refused_and_leaves_nothing(house: House, path: str, body: Any) -> None:
    with pytest.raises(InvalidPayload):
        await house.ask(path, body)
    assert (await Feed(await house.field()).page()).events == ()


@requirement("openwop:conformance:runs")
@pytest.mark.parametrize(
    "query", ["lastSequence=", "lastSequence=x", "lastSequence=1.5", "lastSequence=1&lastSequence=2"]
)
async def test_a_place_to_poll_from_that_is_none_is_refused(house: House, query: str) -> None:
    _, started = await house.ask(RUNS, {"workflowId": NOOP})
    with pytest.raises(InvalidPayload):
        await house.ask(POLL, id=started["runId"], query=query)


@requirement("openwop:errors:no-echo")
@pytest.mark.parametrize("place", ["ref", "id", "workflow"])
async def test_a_refusal_repeats_nothing_of_what_was_sent(house: House, place: str) -> None:
    requests = {
        "ref": (SEED, {"memoryRef": f"mem_{CANARY}", "entries": [{"id": "a", "content": "Fine."}]}),
        "id": (SEED, {"memoryRef": REF, "entries": [{"id": CANARY, "content": "Fine."}]}),
        "workflow": (RUNS, {"workflowId": f"nonexistent-{CANARY}"}),
    }
    with pytest.raises(FieldError) as refused:
        await house.ask(*requests[place])
    assert CANARY not in f"{refused.value.message}{refused.value.extra}"


@requirement("openwop:discovery:no-engine")
async def test_a_run_takes_no_command_since_replay_is_not_advertised(house: House) -> None:
    with pytest.raises(NotFound):
        await house.ask(RUN, {"fromSeq": 0, "mode": "replay"}, id="run-x:fork")


@requirement("openwop:cti-1:probed")
async def test_another_tenant_is_probed_also_by_the_one_that_is_kept_for_it(house: House) -> None:
    for tenant in ("acme", *PROBE_TENANTS):
        _, started = await house.ask(RUNS, {"workflowId": CROSS_TENANT}, tenant=tenant)
        _, run = await house.ask(RUN, id=started["runId"], tenant=tenant)
        assert run["variables"]["ownerProbe"]
        assert run["variables"]["crossTenantProbe"] == []


@requirement("openwop:discovery:off-is-404")
async def test_what_is_switched_off_has_no_seam() -> None:
    house = House(compaction=False, distillation=False, consolidation=False)
    assert not {COMPACT, DISTILL, CONSOLIDATE} & set(house.routes.handlers())
    assert {SEED, RUNS} <= set(house.routes.handlers())
