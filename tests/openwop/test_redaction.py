"""SR-1: no secret comes back or is kept, wherever it was planted; a summariser's words take the same road."""

import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import httpx
import pytest

from tests.models.server import Endpoint, Handler
from tests.models.server import serving as model_serving
from tests.openwop.canaries import CANARIES, MARK, assert_no_canary
from tests.openwop.host import COMPACT, DISTILL, SEED, Caller, Host, memory, serving, told
from tests.openwop.routes import ROUTES, asked
from tests.openwop.shapes import assert_error
from tests.requirements import requirement

VALUE: Final = "correct horse battery staple 77"  # a registered secret
SHAPES: Final = tuple(CANARIES)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """It writes down every request."""
    with serving(tmp_path_factory.mktemp("host"), environ={"FIELDSTONE_LOG_LEVEL": "debug"}) as served:
        yield served


@pytest.fixture(scope="module")
def known(acme: Caller) -> str:
    """The id of a registered secret."""
    assert acme.http.put("/v1/secrets/vault-door", json={"value": VALUE}).status_code == 204
    return "vault-door"


# --- where a client may plant one -------------------------------------------------------------------------------------


@requirement("openwop:sr-1:put")
@pytest.mark.parametrize("shape", SHAPES)
def test_a_canary_in_content_and_tags_is_rewritten_before_it_is_kept(acme: Caller, ref: str, shape: str) -> None:
    canary = CANARIES[shape]
    answer = acme.post(memory(ref), {"content": f"Log in with {canary} today.", "tags": [canary, "plain"]})
    assert answer.status_code == 201
    assert_no_canary(answer.text)
    assert "[REDACTED:" in answer.json()["content"]
    assert answer.json()["content"].startswith("Log in with ")
    assert "plain" in answer.json()["tags"]
    assert_no_canary(acme.get(memory(ref)).text)


@requirement("openwop:sr-1:names-refused")
@pytest.mark.parametrize("shape", SHAPES)
def test_a_canary_as_an_id_or_a_ref_is_refused_without_a_word_of_it(acme: Caller, ref: str, shape: str) -> None:
    canary = CANARIES[shape]
    seeded = acme.post(SEED, {"memoryRef": ref, "entries": [{"id": canary, "content": "Fine."}]})
    put = acme.post(memory(f"mem_{canary}"), {"content": "Fine."})
    attributed = [acme.post(memory(ref), {"content": "Fine.", name: canary}) for name in ("nodeId", "agentId")]
    for answer in (seeded, put, *attributed):
        assert_error(answer, "secret_leakage")
        assert_no_canary(answer.text)
    assert acme.entries(ref) == []


@requirement("openwop:sr-1:canaries")
@pytest.mark.parametrize("shape", SHAPES)
def test_no_route_gives_a_canary_back_whatever_it_was_given_as(acme: Caller, shape: str) -> None:
    canary = CANARIES[shape]
    for route in ROUTES:
        answer = asked(acme, route, ref=f"mem_{canary}", entry_id=canary)
        assert answer.status_code < 500
        assert_no_canary(answer.text)
        assert_no_canary(str(answer.headers))


@requirement("openwop:sr-1:canaries")
@pytest.mark.parametrize("shape", SHAPES)
def test_a_canary_as_the_name_of_a_field_or_of_a_parameter_is_not_repeated(acme: Caller, shape: str) -> None:
    canary = CANARIES[shape]
    wrong = acme.post(memory("mem_x"), {"content": "Fine.", canary: 1})
    assert_error(wrong, "validation_error")
    for answer in (wrong, acme.get(memory("mem_x"), **{canary: canary}), acme.get("/v1/events", **{canary: canary})):
        assert_no_canary(answer.text)
    for path in (f"/v1/memory/{canary}/{canary}/{canary}", f"/v1/test/{canary}", f"/v1/host/{canary}", f"/{canary}"):
        for answer in (acme.get(path), acme.post(path, {canary: canary})):
            assert answer.status_code == 404
            assert_no_canary(answer.text)


@requirement("openwop:sr-1:canaries")
@pytest.mark.parametrize("shape", SHAPES)
def test_a_canary_as_the_key_is_refused_without_a_word_of_it(host: Host, shape: str) -> None:
    headers = {"authorization": f"Bearer {CANARIES[shape]}"}
    answer = httpx.post(f"{host.url}/v1/runs", headers=headers, json={"workflowId": "conformance-noop"})
    assert_error(answer, "unauthenticated")
    assert_no_canary(answer.text + str(answer.headers))


@requirement("openwop:sr-1:canaries")
@pytest.mark.parametrize("shape", SHAPES)
def test_a_canary_in_a_runs_inputs_or_workflow_is_in_no_event_and_no_refusal(acme: Caller, shape: str) -> None:
    canary = CANARIES[shape]
    inputs = {"userSuppliedField": canary, "descriptiveText": f"Some description containing {canary} embedded"}
    run = acme.finished("conformance-noop", inputs=inputs, configurable={"ai": {"credentialRef": canary}})
    assert run["status"] == "completed"
    for path in ("", "/events", "/events/poll"):
        answer = acme.get(f"/v1/runs/{run['runId']}{path}")
        assert answer.status_code == 200
        assert_no_canary(answer.text)
    unknown = acme.post("/v1/runs", {"workflowId": f"nonexistent-{canary}", "inputs": {}})
    assert_error(unknown, "not_found")
    assert_no_canary(unknown.text)


@requirement("openwop:sr-1:canaries")
@pytest.mark.parametrize("shape", SHAPES)
def test_a_canary_in_sources_is_in_no_archive(acme: Caller, ref: str, shape: str) -> None:
    sources = [f"The key is {CANARIES[shape]}, take care.", "Nothing secret here."]
    answer = acme.post(DISTILL, {"memoryRef": ref, "tokenBudget": 8_000, "sources": sources, "indexEmitted": True})
    assert answer.status_code == 200
    assert_no_canary(answer.text)
    assert_no_canary(acme.get(memory(ref)).text)


@requirement("openwop:sr-1:canaries")
def test_a_canary_that_was_planted_is_neither_in_the_feed_nor_in_the_log_nor_in_any_file(host: Host) -> None:
    for shape, canary in CANARIES.items():
        host.acme.put(f"mem_files_{shape}", f"Hidden {canary}.", tags=[canary])
        host.acme.post(memory(f"mem_files_{shape}"), {"content": "Fine.", "nodeId": canary})
        host.acme.seed(f"mem_files_{shape}", {"a": f"Seeded {canary}.", "b": "And more."})
        host.acme.compacted(f"mem_files_{shape}")
    assert_no_canary(host.acme.get("/v1/events", limit=1_000).text)
    assert b"/v1/memory/{ref}" in host.log.read_bytes()  # requests are written down, by their route
    assert_no_canary(host.log.read_bytes())
    for kept in host.folder.iterdir():
        if kept.is_file():
            assert MARK.encode() not in kept.read_bytes(), kept.name


# --- known secrets ----------------------------------------------------------------------------------------------------


@requirement("openwop:sr-1:put", "openwop:sr-1:named")
def test_a_known_secret_is_named_where_it_stood(acme: Caller, known: str, ref: str) -> None:
    entry = acme.put(ref, f"Say {VALUE} at the door.", tags=[VALUE])
    assert entry["content"] == f"Say [REDACTED:{known}] at the door."
    assert entry["tags"] == [f"[REDACTED:{known}]"]
    assert acme.entries(ref) == [entry]


@requirement("openwop:sr-1:disguised")
@pytest.mark.parametrize("disguised", [VALUE.encode().hex(), VALUE[::-1], b64encode(VALUE.encode()).decode()])
def test_a_known_secret_in_disguise_is_found_too(acme: Caller, known: str, ref: str, disguised: str) -> None:
    entry = acme.put(ref, f"Say {disguised} at the door.")
    assert disguised not in entry["content"]
    assert f"[REDACTED:{known}]" in entry["content"]


@requirement("openwop:sr-1:registry")
@pytest.mark.usefixtures("known")
def test_a_secret_of_one_tenant_is_none_of_the_others_business(acme: Caller, zeta: Caller, ref: str) -> None:
    assert VALUE in zeta.put(ref, f"Say {VALUE} at the door.")["content"]
    assert VALUE not in acme.put(ref, f"Say {VALUE} at the door.")["content"]


@requirement("openwop:sr-1:foreign-markers")
@pytest.mark.parametrize("foreign", ["<REDACTED:{}>", "[BYOK:{}]"])
def test_marks_of_other_hosts_become_ours_in_whatever_is_written(acme: Caller, ref: str, foreign: str) -> None:
    given, ours = foreign.format("db-prod"), "[REDACTED:db-prod]"
    put = acme.put(ref, f"Resolved {given} outage.", tags=[f"about:{given}"])
    assert (put["content"], put["tags"]) == (f"Resolved {ours} outage.", [f"about:{ours}"])
    acme.seed(ref, {"seeded": f"Seeded {given}."})
    assert told(acme.entry(ref, "seeded"))["content"] == f"Seeded {ours}."
    assert acme.compacted(ref)["outputContent"].count(ours) >= 1


@requirement("openwop:sr-1:markers-kept")
def test_every_mark_in_a_source_stands_in_the_summary(acme: Caller, ref: str) -> None:
    filler = "The fair goes on with pears and plums and no end of them. " * 20
    doors = {f"s{number}": f"{filler}Door {number} opens with [BYOK:door-{number}]. {filler}" for number in range(6)}
    acme.seed(ref, doors)
    content = acme.compacted(ref)["outputContent"]
    assert [number for number in range(6) if f"[REDACTED:door-{number}]" not in content] == []


@requirement("openwop:sr-1:split")
def test_a_secret_in_two_halves_is_not_put_together_by_compaction(acme: Caller, known: str, ref: str) -> None:
    middle = len(VALUE) // 2
    acme.seed(ref, {"first": f"It begins with {VALUE[:middle]}", "second": f"{VALUE[middle:]} is how it ends."})
    content = acme.compacted(ref)["outputContent"]
    assert VALUE not in content
    assert VALUE not in "".join(letter for letter in content if letter not in '"\n'), known


@requirement("openwop:sr-1:as-stored")
def test_what_was_stored_is_what_is_returned(acme: Caller, ref: str) -> None:
    entry = acme.put(ref, f"Log in with {CANARIES['openai']} today.")
    assert told(acme.entry(ref, entry["id"])) == acme.entries(ref)[0] == entry


@requirement("openwop:sr-1:named")
def test_the_fixture_reads_back_a_mark_in_place_of_the_secret(acme: Caller) -> None:
    assert "[REDACTED:" in acme.variables("conformance-agent-memory-redaction")["memoryReadback"]["content"]


# --- a tenant that refuses, and a summariser that invents -------------------------------------------------------------


def inventing(handler: Handler) -> None:
    """A model that says a key that stands in no source."""
    summary = f"All is well, and the key is {CANARIES['openai']}."
    content = json.dumps({"summary": summary})
    handler.send(json.dumps({"choices": [{"message": {"role": "assistant", "content": content}}]}).encode())


@pytest.fixture(scope="module")
def model() -> Iterator[Endpoint]:
    with model_serving(inventing) as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def invented(tmp_path_factory: pytest.TempPathFactory, model: Endpoint) -> Iterator[Host]:
    """zeta refuses what holds a secret; acme has it rewritten. A model writes the summaries."""
    folder: Path = tmp_path_factory.mktemp("invented")
    config = folder / "settings.toml"
    config.write_text(
        f'summarizer_url = "{model.url}"\nsummarizer_model = "wise"\n[tenants.zeta]\nredaction = "refuse"\n'
    )
    with serving(folder, "--config", str(config)) as served:
        yield served


LONG: Final = {
    f"s{number}": f"Stand {number} of the fair sells pears at {number} coins, and was open on day {number}. " * 8
    for number in range(6)
}


@requirement("openwop:sr-1:fresh-put")
def test_a_key_that_a_summariser_invents_is_not_kept(invented: Host, model: Endpoint, ref: str) -> None:
    invented.acme.seed(ref, LONG)
    answer = invented.acme.post(COMPACT, {"memoryRef": ref})
    assert answer.status_code == 200
    assert model.asked.is_set()
    assert_no_canary(answer.text)
    assert_no_canary(invented.acme.get(memory(ref)).text)


@requirement("openwop:sr-1:policy-refuse", "openwop:errors:codes")
def test_a_tenant_that_refuses_has_nothing_written_that_holds_a_secret(invented: Host, ref: str) -> None:
    answer = invented.zeta.post(memory(ref), {"content": f"Log in with {CANARIES['openai']}."})
    assert_error(answer, "secret_leakage")
    assert_no_canary(answer.text)
    assert invented.zeta.entries(ref) == []


@requirement("openwop:sr-1:compaction-refused", "openwop:errors:codes")
def test_a_tenant_that_refuses_keeps_its_entries_when_a_summary_would_leak(invented: Host, ref: str) -> None:
    """A value that became known after it was written stands in the sources until the store is swept."""
    late = "velvet umbrella and forty-two onions"
    zeta = invented.zeta
    zeta.seed(ref, {"door": f"The door opens with {late} each morning.", "fair": "The fair opens at nine."})
    assert zeta.http.put("/v1/secrets/late", json={"value": late}).status_code == 204
    before = zeta.entries(ref)
    answer = zeta.post(COMPACT, {"memoryRef": ref})
    assert_error(answer, "compaction_redaction_failed")
    assert late not in answer.text
    assert zeta.entries(ref) == before
    assert zeta.events_of(ref, "memory.compacted") == []


@requirement("openwop:sr-1:fresh-put")
def test_a_tenant_that_rewrites_has_a_secret_that_became_known_late_taken_out_of_the_summary(
    acme: Caller, ref: str
) -> None:
    late = "a brass lantern and nineteen owls"
    acme.seed(ref, {"door": f"The door opens with {late} each morning.", "fair": "The fair opens at nine."})
    assert acme.http.put("/v1/secrets/late-door", json={"value": late}).status_code == 204
    content = acme.compacted(ref)["outputContent"]
    assert late not in content
    assert "[REDACTED:late-door]" in content
