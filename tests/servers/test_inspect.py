"""What operators ask: GET routes, verify, rebuild, export and import."""

import itertools
from pathlib import Path

import pytest
from msgspec import json

from fieldstone.servers.http.inspect import IMPORT_CHUNK_BYTES
from tests.requirements import requirement
from tests.servers.live import Live, assert_refused, live_server


@requirement("akashik:http:field-status")
async def test_the_status_tells_clock_level_and_counts(team: Live) -> None:
    await team.record("ada", "The cache is cold.")
    status = (await team.client.get("/v1/field/status")).json()
    told = {name: status[name] for name in ("status", "epoch", "conformance_level", "units", "agents")}
    assert told == {"status": "ok", "epoch": 3, "conformance_level": 1, "units": 1, "agents": 2}
    assert status["conflicts_open"] == 0


@requirement("akashik:http:agents")
async def test_agents_are_listed(team: Live) -> None:
    agents = (await team.client.get("/v1/agents")).json()["agents"]
    assert [agent["id"] for agent in agents] == ["ada", "ben"]


@requirement("akashik:http:conflicts")
async def test_conflicts_are_listed_by_status(team: Live) -> None:
    first = await team.record("ada", "The cache is cold.")
    contradicts = {"type": "contradicts", "target_id": first}
    second = await team.record("ben", "The cache is warm.", relations=[contradicts])
    [conflict] = (await team.client.get("/v1/conflicts")).json()["conflicts"]
    assert {conflict["unit_a"], conflict["unit_b"]} == {first, second}
    for query, count in {"detected": 1, "resolved": 0, "resolved,detected": 1, "detected,detected": 1}.items():
        answer = (await team.client.get("/v1/conflicts", params={"status": query})).json()
        assert len(answer["conflicts"]) == count


@pytest.mark.parametrize("status", ["open", "detected,open", "DETECTED", "", ",", "detected,"])
async def test_an_unknown_conflict_status_is_refused(live: Live, status: str) -> None:
    answer = await live.client.get("/v1/conflicts", params={"status": status})
    assert "status" in assert_refused(answer, 400, "INVALID_PAYLOAD")["message"]


@requirement("akashik:http:unit")
async def test_a_unit_is_answered_and_an_unknown_one_is_404(team: Live) -> None:
    unit_id = await team.record("ada", "The cache is cold.")
    found = (await team.client.get(f"/v1/units/{unit_id}")).json()
    assert (found["id"], found["content"], found["source"]["agent_id"]) == (unit_id, "The cache is cold.", "ada")
    for unknown in ("unit-0", "%00", "%ff", "a" * 5_000):
        assert_refused(await team.client.get(f"/v1/units/{unknown}"), 404, "UNIT_NOT_FOUND")


@requirement("akashik:http:log")
async def test_following_next_reads_the_whole_log_once(team: Live) -> None:
    for number in range(7):
        await team.record("ada", f"Number {number}.")
    seqs, after = [], 0
    for _ in itertools.count():
        page = (await team.client.get("/v1/log", params={"after": after, "limit": 3})).json()
        seqs += [line["entry"]["seq"] for line in page["entries"]]
        if page["next"] is None:
            break
        after = page["next"]
    assert seqs == list(range(1, await team.log_entries() + 1))


async def test_the_log_begins_at_the_beginning_and_ends_with_nothing(team: Live) -> None:
    page = (await team.client.get("/v1/log")).json()
    assert len(page["entries"]) == await team.log_entries()
    assert (await team.client.get("/v1/log?after=99999999")).json() == {"entries": [], "next": None}


@pytest.mark.parametrize(
    "query",
    [
        *("after=-1", "after=x", "after=1.5", "after=1_0", "after=%D9%A3", "after=99999999999999999999", "after="),
        *("limit=1001", "limit=-1", "after=1&after=2", "&".join(f"q{n}=1" for n in range(101))),
    ],
)
async def test_a_bad_query_of_the_log_is_refused(live: Live, query: str) -> None:
    assert_refused(await live.client.get(f"/v1/log?{query}"), 400, "INVALID_PAYLOAD")


@requirement("akashik:http:verify", "akashik:authority:open-mode-operator")
async def test_verify_finds_all_well(team: Live) -> None:
    await team.record("ada", "The cache is cold.")
    verified = (await team.client.post("/v1/verify")).json()
    assert verified["ok"] is True
    assert verified["entries"] == await team.log_entries()
    assert verified["first_bad"] is None


@requirement("akashik:http:rebuild", "akashik:authority:open-mode-operator")
async def test_rebuilt_views_are_what_they_were(team: Live) -> None:
    unit_id = await team.record("ada", "The cache is cold.")
    before = (await team.client.get(f"/v1/units/{unit_id}")).json()
    views = (await team.client.post("/v1/rebuild")).json()["views"]
    assert (views["unchanged"], views["entries"]) == (True, await team.log_entries())
    assert (await team.client.get(f"/v1/units/{unit_id}")).json() == before


@requirement("akashik:http:export", "akashik:http:import", "akashik:authority:open-mode-operator")
async def test_an_export_can_be_imported_and_what_is_there_already_is_skipped(team: Live, tmp_path: Path) -> None:
    for number in range(20):
        await team.record("ada", f"Number {number}.")
    exported = await team.client.get("/v1/export")
    assert exported.headers["content-type"] == "application/jsonl"
    lines = exported.content.splitlines(keepends=True)
    entries = await team.log_entries()
    assert len(lines) == entries
    assert [json.decode(line)["entry"]["seq"] for line in lines] == list(range(1, entries + 1))
    async with live_server(db=str(tmp_path / "copy.db")) as copy:
        first = await copy.client.post("/v1/import", content=b"".join(lines[:10]))
        assert first.json() == {"imported": 10, "skipped": 0}
        whole = await copy.client.post("/v1/import", content=exported.content)
        assert whole.json() == {"imported": entries - 10, "skipped": 10}
        assert (await copy.client.get("/v1/export")).content == exported.content
        assert (await copy.client.get("/v1/agents")).json() == (await team.client.get("/v1/agents")).json()


async def test_an_empty_field_exports_no_lines(live: Live) -> None:
    exported = await live.client.get("/v1/export")
    assert (exported.status_code, exported.content) == (200, b"")


@requirement("akashik:http:import")
async def test_an_import_of_more_than_ten_megabytes_is_refused(live: Live) -> None:
    answer = await live.client.post("/v1/import", content=b"\n" * (IMPORT_CHUNK_BYTES + 1))
    assert_refused(answer, 413, "INVALID_PAYLOAD")
    answer = await live.client.post("/v1/import", content=b"\n" * IMPORT_CHUNK_BYTES)
    assert answer.json() == {"imported": 0, "skipped": 0}


@pytest.mark.parametrize(
    "line",
    [
        b"x",
        b"{}",
        b"[" * 100_000,
        b'{"entry":' + b"[" * 100_000,
        b"\xff\xfe",
        b'{"entry":{"seq":-99999999999999999999999,"epoch":1,"at_ms":1,"event":{"kind":"clock.raised"}},"hash":"00"}',
        b'{"entry":{"seq":99999999999999999999999,"epoch":1,"at_ms":1,"event":{"kind":"clock.raised"}},"hash":"00"}',
        b'{"entry":{"seq":1,"epoch":1,"at_ms":1,"event":{"kind":"clock.raised"}},"hash":"\\ud800"}',
        b'{"entry":{"seq":1,"epoch":1,"at_ms":1,"event":{"kind":"no.such"}},"hash":"00"}',
    ],
    ids=["text", "empty", "deep", "deep entry", "bytes", "negative", "huge", "surrogate", "kind"],
)
async def test_a_line_that_is_not_of_an_export_is_refused_and_nothing_is_imported(team: Live, line: bytes) -> None:
    before = await team.log_entries()
    assert_refused(await team.client.post("/v1/import", content=line), 400, "INVALID_PAYLOAD")
    assert await team.log_entries() == before


@pytest.mark.parametrize("query", ["guard=keep", "guard=", "limit=0", "limit=1001", "after=-1"])
async def test_a_bad_query_of_the_guards_is_refused(live: Live, query: str) -> None:
    answer = await live.client.get(f"/v1/guards?{query}")
    assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_PAYLOAD")
    assert query.partition("=")[0] in answer.json()["message"]


async def test_guards_and_compactions_are_there_to_be_listed(live: Live) -> None:
    await live.join("ada")
    unit = await live.record("ada", "The gate opens at nine.")
    assert (await live.client.put(f"/v1/units/{unit}/hold")).status_code == 204
    assert (await live.client.get("/v1/guards?guard=hold&limit=5")).json() == {
        "guards": [{"unit_id": unit, "guard": "hold"}],
        "next": None,
    }
    assert (await live.client.get("/v1/guards?guard=pin")).json() == {"guards": [], "next": None}
    assert (await live.client.get("/v1/compactions")).json() == {"compactions": [], "next": None}
