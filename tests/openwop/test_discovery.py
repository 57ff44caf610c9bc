"""What a host says of itself: to anybody, at two places, and only what is wired and on."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import httpx
import pytest

from tests.openwop.host import COMPACT, DISCOVERY, DISTILL, SEAMS, Body, Host, memory, serving, told
from tests.openwop.shapes import assert_envelope
from tests.requirements import requirement

CLOSED: Final = {
    "compaction": {"supported", "trigger", "maxInputEntries", "maxOutputBytes"},
    "distillation": {
        *("supported", "maxTokenBudget", "scheduled", "indexEmitted", "tokenizerName", "archiveRetention"),
    },
    "attribution": {"supported", "emitsWriteEvents"},
    "search": {"supported", "modes"},
    "retention": {"ttl", "forget"},
    "injectionBudget": {"supported", "tokenCounter"},
}
FIXTURES: Final = {
    "conformance-noop",
    "conformance-agent-memory-roundtrip",
    "conformance-agent-memory-ttl",
    "conformance-agent-memory-redaction",
    "conformance-agent-memory-cross-tenant",
    "conformance-agent-memory-injection-budget",
    "openwop-smoke-byok-roundtrip",
}
NOT_OURS: Final = {"replay", "manifestRuntime", "liveRuntime", "roster", "commitments", "dispatch", "orchestrator"}


@pytest.fixture(scope="module")
def document(host: Host) -> Body:
    return told(host.nobody.get(DISCOVERY))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """A host that was not started for conformance."""
    with serving(tmp_path_factory.mktemp("plain"), conformance=False) as served:
        yield served


@requirement("openwop:discovery:public")
def test_anybody_may_ask_and_may_keep_the_answer_for_a_while(host: Host) -> None:
    answer = host.nobody.get(DISCOVERY)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"]


@requirement("openwop:discovery:public")
def test_an_answer_that_is_still_true_is_not_sent_again(host: Host) -> None:
    first, second = host.nobody.get(DISCOVERY), host.nobody.get(DISCOVERY)
    assert first.headers["etag"] == second.headers["etag"]
    assert first.headers["capabilities-etag"] == second.headers["capabilities-etag"]
    unchanged = host.nobody.http.get(DISCOVERY, headers={"if-none-match": first.headers["etag"]})
    assert (unchanged.status_code, unchanged.content) == (304, b"")


@requirement("openwop:discovery:root")
def test_the_root_says_what_every_host_must_say(document: Body) -> None:
    assert document["protocolVersion"].startswith("1.")
    assert all(isinstance(each, str) and each for each in document["supportedEnvelopes"])
    assert all(type(version) is int and version >= 0 for version in document["schemaVersions"].values())
    for limit in ("clarificationRounds", "schemaRounds", "envelopesPerTurn"):
        assert type(document["limits"][limit]) is int
        assert document["limits"][limit] >= 0


@requirement("openwop:discovery:families-twice")
def test_the_families_stand_at_the_root_and_once_more_under_capabilities(document: Body) -> None:
    families = document["capabilities"]
    assert {"memory", "agents"} <= set(families)
    for family, block in families.items():
        assert document[family] == block


@requirement("openwop:discovery:memory")
def test_memory_says_what_this_host_does(document: Body) -> None:
    memory_block = document["memory"]
    assert memory_block["supported"] is True
    assert memory_block["writable"] is True
    assert memory_block["ttlSupported"] is True
    assert memory_block["maxEntrySizeBytes"] >= 1
    assert memory_block["retention"] == {"ttl": True, "forget": True}
    assert memory_block["attribution"] == {"supported": True, "emitsWriteEvents": True}
    assert memory_block["search"]["supported"] is True
    assert set(memory_block["search"]["modes"]) <= {"semantic", "filter"}
    assert memory_block["injectionBudget"]["supported"] is True
    assert memory_block["injectionBudget"]["tokenCounter"] in ("o200k_base", "cl100k_base", "chars", "host-defined")


@requirement("openwop:discovery:trigger", "openwop:discovery:output-fits")
def test_compaction_is_host_managed_and_its_output_is_an_entry_that_fits(document: Body) -> None:
    compaction = document["memory"]["compaction"]
    assert compaction["supported"] is True
    assert compaction["trigger"] == "host-managed"
    assert compaction["maxInputEntries"] >= 2
    assert 0 < compaction["maxOutputBytes"] <= document["memory"]["maxEntrySizeBytes"]


@requirement("openwop:discovery:memory")
def test_distillation_names_its_budget_its_tokenizer_and_how_long_archives_stay(document: Body) -> None:
    distillation = document["memory"]["distillation"]
    assert distillation["supported"] is True
    assert type(distillation["maxTokenBudget"]) is int
    assert distillation["maxTokenBudget"] >= 8_000  # what OpenWOP's own scenarios ask for
    assert type(distillation["scheduled"]) is bool
    assert type(distillation["indexEmitted"]) is bool
    assert distillation["tokenizerName"]
    assert distillation["archiveRetention"].startswith("P")


@requirement("openwop:discovery:closed")
@pytest.mark.parametrize("block", CLOSED)
def test_a_closed_block_has_no_field_of_its_own_making(document: Body, block: str) -> None:
    assert set(document["memory"][block]) <= CLOSED[block]


@requirement("openwop:discovery:agents")
def test_agents_remember_for_long_and_have_their_memory_consolidated(document: Body) -> None:
    assert "long-term" in document["agents"]["memoryBackends"]
    assert document["agents"]["memoryConsolidation"]["supported"] is True


@requirement("openwop:discovery:no-engine")
def test_what_needs_an_engine_is_not_advertised(document: Body) -> None:
    assert not NOT_OURS & {*document, *document["capabilities"], *document["agents"]}


@requirement("openwop:discovery:fixtures")
def test_the_fixtures_that_are_on_are_named_once_each(document: Body) -> None:
    assert len(document["fixtures"]) == len(set(document["fixtures"]))
    assert set(document["fixtures"]) >= FIXTURES


@requirement("openwop:discovery:described")
def test_the_interface_is_described_to_anybody(host: Host) -> None:
    described = told(host.nobody.get("/v1/openapi.json"))
    assert described["openapi"].startswith("3.1")
    for path in ("/.well-known/openwop", "/v1/memory/{ref}", "/v1/memory/{ref}/{id}", "/v1/events"):
        assert path in described["paths"]


# --- what is off is not there -----------------------------------------------------------------------------------------


def answers(host: Host, path: str) -> list[httpx.Response]:
    return [host.acme.get(path), host.acme.post(path, {}), host.acme.delete(path)]


@requirement("openwop:conformance:off")
@pytest.mark.parametrize("path", [*SEAMS, "/v1/runs", "/v1/runs/some-run", "/v1/runs/some-run/events"])
def test_without_conformance_a_seam_answers_as_a_path_that_never_was(plain: Host, path: str) -> None:
    root = path.split("/")[2]
    for answer, nowhere in zip(answers(plain, path), answers(plain, f"/v1/{root}/nowhere/at/all"), strict=True):
        assert answer.status_code == 404
        assert_envelope(answer)
        assert answer.content == nowhere.content


@requirement("openwop:discovery:fixtures")
def test_without_conformance_no_fixture_is_advertised_and_the_memory_is(plain: Host) -> None:
    document = told(plain.nobody.get(DISCOVERY))
    assert not document.get("fixtures")
    assert document["memory"]["compaction"]["supported"] is True
    entry = plain.acme.put("mem_plain", "It works without the seam.")
    assert told(plain.acme.entry("mem_plain", entry["id"])) == entry


@requirement("openwop:conformance:key")
def test_seams_need_a_key_like_everything_else(host: Host, plain: Host) -> None:
    for served in (host, plain):
        assert served.nobody.post(COMPACT, {}).status_code == 401


@requirement("openwop:discovery:off-is-404")
def test_a_host_that_is_switched_off_says_nothing_and_has_no_memory_routes(tmp_path: Path) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text("[openwop]\nenabled = false\n")
    with serving(tmp_path, "--config", str(settings), conformance=False) as off:
        for path in (DISCOVERY, memory("mem_x"), memory("mem_x", "some-id"), "/v1/events", *SEAMS):
            assert {answer.status_code for answer in answers(off, path)} == {404}


@requirement("openwop:discovery:derived")
def test_without_an_embedder_no_search_by_meaning_is_advertised_and_none_is_done(tmp_path: Path) -> None:
    with serving(tmp_path, environ={"FIELDSTONE_EMBEDDER": "none"}) as wordy:
        document = told(wordy.nobody.get(DISCOVERY))
        assert "semantic" not in document["memory"]["search"].get("modes", [])
        refused = wordy.acme.get(memory("mem_x"), rank="relevance", query="anything")
        assert refused.status_code == 400


@requirement("openwop:discovery:derived", "openwop:discovery:off-is-404")
@pytest.mark.parametrize(("setting", "block"), [("compaction", "compaction"), ("distillation", "distillation")])
def test_what_is_switched_off_by_itself_is_not_advertised(tmp_path: Path, setting: str, block: str) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text(f"[openwop]\n{setting} = false\n")
    with serving(tmp_path, "--config", str(settings)) as less:
        advertised = told(less.nobody.get(DISCOVERY))["memory"].get(block, {"supported": False})
        assert advertised["supported"] is False
        seam = {"compaction": COMPACT, "distillation": DISTILL}[setting]
        assert less.acme.post(seam, {"memoryRef": "mem_x", "tokenBudget": 8_000}).status_code == 404


@requirement("openwop:discovery:derived")
def test_the_limits_that_are_advertised_are_those_of_the_settings(tmp_path: Path) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text("[openwop]\nmax_entry_bytes = 2000\nmax_output_bytes = 1500\nmax_token_budget = 9000\n")
    with serving(tmp_path, "--config", str(settings)) as small:
        block = told(small.nobody.get(DISCOVERY))["memory"]
        assert block["maxEntrySizeBytes"] == 2_000
        assert block["compaction"]["maxOutputBytes"] == 1_500
        assert block["distillation"]["maxTokenBudget"] == 9_000
        assert small.acme.post(memory("mem_x"), {"content": "x" * 2_001}).status_code == 400
        long = {f"s{number}": f"Stand {number} sells pears at {number} coins. " * 20 for number in range(20)}
        small.acme.seed("mem_x", long)
        assert small.acme.compacted("mem_x")["payload"]["byteSize"] <= 1_500
