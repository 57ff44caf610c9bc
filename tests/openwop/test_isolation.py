"""CTI-1: two tenants, two real keys, the same refs and ids. Neither gets a byte of the other, on any route."""

from collections.abc import Iterator
from typing import Final, NamedTuple

import pytest

from tests.openwop.host import CONSOLIDATE, DISTILL, Caller, Host, memory, told
from tests.openwop.routes import ROUTES, Route, asked
from tests.openwop.shapes import assert_error
from tests.requirements import requirement

CANARY: Final = "quokka"  # in every text, ref, id and tag that zeta chooses
LONG_ID_CHARS: Final = 12  # shorter ones (a position, a tenant's name) mean nothing by themselves
AS_TOKEN: Final = {"snapshot", "since"}  # a token of another tenant need not be refused as one that is none
REFS: Final = (f"mem_{CANARY}_longTerm", f"mem://{CANARY}/agents", f"mem_{CANARY}_compacted")


class Foreign(NamedTuple):
    """What zeta has: refs, and ids of entries, outputs, events, runs, snapshots and tags."""

    refs: tuple[str, ...]
    ids: tuple[str, ...]


@pytest.fixture(scope="module")
def foreign(zeta: Caller) -> Foreign:
    ids: list[str] = []
    for ref in REFS:
        ids += [zeta.put(ref, f"The {CANARY} eats {number} leaves.", tags=[CANARY])["id"] for number in range(3)]
        zeta.seed(ref, {f"{CANARY}-seeded": f"The {CANARY} was seeded."}, tags=[f"source:{CANARY}"])
        ids.append(zeta.page(ref)["snapshot"])
    ids.append(zeta.compacted(REFS[2])["payload"]["outputId"])
    ids += [event["id"] for event in zeta.events()]
    for workflow in ("conformance-noop", "conformance-agent-memory-roundtrip"):
        run = zeta.finished(workflow)
        ids.append(run["runId"])
        ids += [event["eventId"] for event in zeta.run_events(run["runId"])]
    return Foreign(REFS, (*dict.fromkeys(ids), CANARY, f"{CANARY}-seeded", "zeta"))


def assert_nothing_of_zeta(text: str, foreign: Foreign, asked_for: str = "") -> None:
    """But what was asked for itself, and the refs that the caller named, may stand there."""
    for own in (*foreign.refs, asked_for):
        text = text.replace(own, "") if own else text
    assert CANARY not in text
    assert [each for each in foreign.ids if len(each) >= LONG_ID_CHARS and each in text] == []


def names(route: Route) -> str:
    return f"{route.method} {route.path} {route.params or route.body or ''}"


def contents(zeta: Caller, foreign: Foreign) -> list[list[str]]:
    return [zeta.contents(ref) for ref in foreign.refs]


@pytest.fixture
def untouched(zeta: Caller, foreign: Foreign) -> Iterator[None]:
    """Whatever the test does as acme, zeta has what it had."""
    before, events = contents(zeta, foreign), len(zeta.events())
    yield
    assert contents(zeta, foreign) == before
    assert len(zeta.events()) == events


@pytest.fixture(scope="module")
def prober(host: Host) -> Iterator[Caller]:
    """An operator of a third tenant: what it writes itself is in nobody's way."""
    with host.caller("prober") as caller:
        yield caller


def takes_id(route: Route) -> bool:
    return "{id}" in f"{route.path} {route.params} {route.body}"


@requirement("openwop:cti-1:indistinguishable", "openwop:cti-1:every-route", "openwop:forget:tenant-scoped")
@pytest.mark.parametrize("route", ROUTES, ids=names)
@pytest.mark.usefixtures("untouched")
def test_a_foreign_ref_and_id_answer_as_unknown_ones_and_tell_nothing(
    prober: Caller, foreign: Foreign, route: Route
) -> None:
    for number, ref in enumerate(foreign.refs):
        unknown = asked(prober, route, ref=f"mem_unknown_{number}", entry_id="unknown")
        for foreign_id in foreign.ids if takes_id(route) else foreign.ids[:1]:
            answer = asked(prober, route, ref=ref, entry_id=foreign_id)
            assert answer.status_code == unknown.status_code or AS_TOKEN & set(route.params or {}), foreign_id
            assert answer.status_code < 500
            assert_nothing_of_zeta(answer.text, foreign, foreign_id)


@requirement("openwop:cti-1:indistinguishable")
@pytest.mark.usefixtures("untouched")
def test_reads_of_a_foreign_ref_are_the_bytes_of_an_unknown_one(acme: Caller, foreign: Foreign) -> None:
    pages = [acme.page(ref) for ref in (*foreign.refs, "mem_nobody_knows")]
    for page in pages:
        assert page.pop("snapshot")
    assert pages == [{"entries": []}] * len(pages)
    gets = [acme.entry(ref, each) for ref in (*foreign.refs, "mem_nobody_knows") for each in foreign.ids]
    assert {(got.status_code, got.content) for got in gets} == {(404, gets[0].content)}


@requirement("openwop:cti-1:snapshot")
@pytest.mark.usefixtures("untouched")
def test_a_snapshot_of_another_tenant_shows_nothing_of_it(acme: Caller, zeta: Caller, foreign: Foreign) -> None:
    for ref in foreign.refs:
        token = zeta.page(ref)["snapshot"]
        answer = acme.get(memory(ref), snapshot=token)
        assert CANARY not in answer.text
        if answer.status_code == 200:
            assert answer.json()["entries"] == []


@requirement("openwop:cti-1:every-route")
def test_the_same_ref_and_the_same_ids_are_two_things_in_two_tenants(acme: Caller, zeta: Caller) -> None:
    ref = "mem_shared_name"
    acme.seed(ref, {"one": "Acme's first.", "two": "Acme's second."})
    zeta.seed(ref, {"one": "Zeta's first.", "two": "Zeta's second."})
    output = acme.compacted(ref)
    assert "Zeta" not in output["outputContent"]
    assert sorted(zeta.contents(ref)) == ["Zeta's first.", "Zeta's second."]
    assert acme.delete(memory(ref, output["payload"]["outputId"])).status_code == 204
    assert told(acme.post(f"{memory(ref)}/forget", {"tag": "any"})) == {"deleted": 0}
    assert sorted(zeta.contents(ref)) == ["Zeta's first.", "Zeta's second."]
    assert_error(zeta.entry(ref, output["payload"]["outputId"]), "not_found")


@requirement("openwop:cti-1:background", "openwop:compaction:one-ref")
@pytest.mark.usefixtures("untouched")
def test_no_background_work_of_one_tenant_reads_another(prober: Caller, foreign: Foreign) -> None:
    for ref in foreign.refs:
        assert prober.post("/v1/test/memory/compact", {"memoryRef": ref}).status_code in (200, 204)
        for path in (DISTILL, CONSOLIDATE):
            assert_nothing_of_zeta(prober.post(path, {"memoryRef": ref}).text, foreign)
        assert not any(CANARY in content for content in prober.contents(ref))


@requirement("openwop:events:tenant-scoped")
def test_the_feed_tells_each_tenant_of_itself_alone(acme: Caller, zeta: Caller, foreign: Foreign) -> None:
    entry = acme.put("mem_of_acme", "Of acme.")
    assert_nothing_of_zeta(acme.get("/v1/events", limit=1_000).text, foreign)
    assert entry["id"] not in zeta.get("/v1/events", limit=1_000).text
    told_ids = [{event.get("memoryId", event.get("outputId")) for event in each.events()} for each in (acme, zeta)]
    assert entry["id"] in told_ids[0]
    assert not told_ids[0] & (told_ids[1] - {"one", "two"})


@requirement("openwop:cti-1:key-decides")
@pytest.mark.parametrize("place", ["query", "header", "body"])
def test_the_tenant_comes_from_the_key_and_from_nowhere_else(acme: Caller, foreign: Foreign, place: str) -> None:
    path, headers, body = memory(foreign.refs[0]), {}, None
    if place == "query":
        path += "?tenant=zeta"
    elif place == "header":
        headers = {"x-tenant": "zeta", "openwop-tenant": "zeta"}
    else:
        body = {"tenantId": "zeta"}
    answer = acme.http.request("GET", path, headers=headers, json=body)
    assert CANARY not in answer.text
    assert answer.status_code in (200, 400)


@requirement("openwop:cti-1:probed")
def test_the_fixture_reads_its_own_entry_and_nothing_of_another_tenant(acme: Caller) -> None:
    seen = acme.variables("conformance-agent-memory-cross-tenant")
    assert isinstance(seen["ownerProbe"], list)
    assert seen["ownerEntryId"] in {entry["id"] for entry in seen["ownerProbe"]}
    assert seen["crossTenantProbe"] in ([], None)


@requirement("openwop:cti-1:probed")
def test_the_probe_of_the_fixture_is_a_real_one(host: Host) -> None:
    """What the other tenant of the probe wrote is nowhere to be found by anybody else."""
    seen = host.acme.variables("conformance-agent-memory-cross-tenant")
    [owned] = [entry for entry in seen["ownerProbe"] if entry["id"] == seen["ownerEntryId"]]
    assert owned["content"]
    assert owned["content"] not in host.zeta.get("/v1/events", limit=1_000).text


@requirement("openwop:cti-1:key-decides")
def test_a_key_that_was_made_for_another_tenant_later_sees_that_tenant_alone(host: Host, foreign: Foreign) -> None:
    with host.caller("quiet") as stranger:
        assert all(stranger.entries(ref) == [] for ref in foreign.refs)
        assert stranger.events() == []
