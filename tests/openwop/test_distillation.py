"""RFC 0062: compaction within a budget of tokens, the same archive of the same sources, and all of it or nothing."""

from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from typing import Final

import pytest

from tests.openwop.host import DISCOVERY, DISTILL, Body, Caller, told
from tests.openwop.shapes import FEED, assert_compacted, assert_error
from tests.requirements import requirement

BUDGET: Final = 8_000
SOURCES: Final = ["Pears cost two coins.", "The fair opens at nine.", "Stand four has closed for good."]


@requirement("openwop:distillation:budget")
def test_a_distillation_stays_within_its_budget_and_says_what_it_spent(acme: Caller, ref: str) -> None:
    acme.seed(ref, {f"s{number}": text for number, text in enumerate(SOURCES)})
    answer = acme.distilled(ref, BUDGET)
    assert_compacted(answer["event"])
    spent = answer["event"]["distillation"]
    assert spent["tokenBudget"] == BUDGET
    assert 0 < spent["tokensUsed"] <= BUDGET
    assert answer["event"]["sourceCount"] == 3
    assert answer["event"]["trigger"] == "host-managed"


@requirement("openwop:conformance:distill")
def test_a_ref_that_nobody_seeded_brings_what_the_scenario_distils(acme: Caller, ref: str) -> None:
    for _ in range(2):
        spent = acme.distilled(ref, BUDGET)["event"]["distillation"]
        assert 0 < spent["tokensUsed"] <= spent["tokenBudget"]
        assert_error(acme.post(DISTILL, {"memoryRef": ref, "tokenBudget": 1}), "token_budget_exceeded")


@requirement("openwop:distillation:exceeded", "openwop:errors:codes", "openwop:conformance:distill")
def test_a_budget_that_cannot_be_met_is_told_and_leaves_nothing_behind(acme: Caller, ref: str) -> None:
    acme.seed(ref, {"kept": "Kept as it is.", "too": "And this one."})
    entries, events = acme.entries(ref), acme.events()
    for fields in ({}, {"sources": SOURCES}, {"sources": SOURCES, "indexEmitted": True}):
        answer = acme.post(DISTILL, {"memoryRef": ref, "tokenBudget": 1, **fields})
        body = assert_error(answer, "token_budget_exceeded")
        assert set(body) == {"error", "message", "details"}
        assert body["details"]["budget"] == 1
        assert body["details"]["minimumRequired"] > 1
    assert acme.entries(ref) == entries
    assert acme.events() == events


@requirement("openwop:distillation:minimum-is-enough")
def test_the_budget_that_is_said_to_be_needed_is_enough(acme: Caller, ref: str) -> None:
    request = {"memoryRef": ref, "tokenBudget": 1, "sources": SOURCES}
    needed = assert_error(acme.post(DISTILL, request), "token_budget_exceeded")["details"]["minimumRequired"]
    assert_error(acme.post(DISTILL, {**request, "tokenBudget": needed - 1}), "token_budget_exceeded")
    assert acme.distilled(ref, needed, sources=SOURCES)["event"]["distillation"]["tokensUsed"] <= needed


@requirement("openwop:distillation:byte-stable")
def test_the_same_sources_and_budget_give_the_same_archive_byte_for_byte(acme: Caller, ref: str) -> None:
    answers = [acme.distilled(each, BUDGET, sources=SOURCES) for each in (ref, ref, f"{ref}-elsewhere")]
    assert len({answer["archiveChecksum"] for answer in answers}) == 1
    for answer, place in zip(answers, (ref, ref, f"{ref}-elsewhere"), strict=True):
        output = told(acme.entry(place, answer["event"]["outputId"]))
        assert sha256(output["content"].encode()).hexdigest() == answer["archiveChecksum"]


@requirement("openwop:distillation:byte-stable")
def test_other_sources_or_another_tenant_change_what_they_should_and_nothing_else(
    acme: Caller, zeta: Caller, ref: str
) -> None:
    ours = acme.distilled(ref, BUDGET, sources=SOURCES)["archiveChecksum"]
    assert zeta.distilled(ref, BUDGET, sources=SOURCES)["archiveChecksum"] == ours
    assert acme.distilled(ref, BUDGET, sources=SOURCES[:2])["archiveChecksum"] != ours


@requirement("openwop:distillation:concurrent")
def test_many_at_once_in_one_ref_do_not_disturb_each_other(acme: Caller, ref: str) -> None:
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: acme.distilled(ref, BUDGET, sources=SOURCES), range(12)))
    assert len({answer["archiveChecksum"] for answer in answers}) == 1
    assert len({answer["event"]["outputId"] for answer in answers}) == 12


@requirement("openwop:distillation:given-sources")
def test_given_sources_are_distilled_alone_and_what_lay_there_stays(acme: Caller, ref: str) -> None:
    acme.seed(ref, {"stays": "This stays where it is."})
    event = acme.distilled(ref, BUDGET, sources=SOURCES)["event"]
    assert event["sourceCount"] == len(SOURCES)
    assert {entry["id"] for entry in acme.entries(ref)} == {"stays", event["outputId"]}


@requirement("openwop:distillation:given-sources")
def test_a_source_may_be_a_text_or_an_object_with_content(acme: Caller, ref: str) -> None:
    texts = acme.distilled(ref, BUDGET, sources=SOURCES)["archiveChecksum"]
    objects = acme.distilled(ref, BUDGET, sources=[{"content": text} for text in SOURCES])["archiveChecksum"]
    assert texts == objects


@requirement("openwop:distillation:given-sources")
def test_one_source_alone_is_distilled_too_and_no_secret_comes_through(acme: Caller, ref: str) -> None:
    secret = "sk" + "-canary-rfc0062-" + "do-not-leak-abc123"
    sources = [{"content": f"notes with embedded secret {secret}"}]
    answer = acme.post(
        DISTILL, {"memoryRef": ref, "tokenBudget": BUDGET, "includeSecretCanary": True, "sources": sources}
    )
    assert answer.status_code == 200
    assert secret not in answer.text
    assert secret not in acme.get("/v1/events", limit=1_000).text
    assert not any(secret in content for content in acme.contents(ref))


@requirement("openwop:distillation:index", "openwop:conformance:distill")
def test_an_index_is_kept_when_it_is_asked_for(acme: Caller, ref: str) -> None:
    answer = acme.distilled(ref, BUDGET, sources=SOURCES, indexEmitted=True)
    assert answer["event"]["distillation"]["indexUpdated"] is True
    assert answer["indexFile"]
    assert answer["event"]["outputId"] in str(answer["indexFile"])
    index = told(acme.entry(ref, "MEMORY-INDEX.json"))
    assert answer["archiveChecksum"] in index["content"]
    without = acme.distilled(ref, BUDGET, sources=SOURCES)
    assert without["event"]["distillation"].get("indexUpdated", False) is False


@requirement("openwop:distillation:clamped")
def test_a_budget_beyond_the_most_is_clamped_and_none_is_the_most(acme: Caller, ref: str) -> None:
    most: int = told(acme.get(DISCOVERY))["memory"]["distillation"]["maxTokenBudget"]
    clamped = acme.distilled(ref, most + 1_000_000, sources=SOURCES)
    assert clamped["event"]["distillation"]["tokenBudget"] == most
    default = told(acme.post(DISTILL, {"memoryRef": ref, "sources": SOURCES}))
    assert default["event"]["distillation"]["tokenBudget"] == most


@requirement("openwop:distillation:recursive")
def test_an_archive_can_be_distilled_again(acme: Caller, ref: str) -> None:
    first = acme.distilled(ref, BUDGET, sources=[*SOURCES, "The key is [BYOK:till-key]."])
    acme.seed(ref, {"new": "A fifth stand opened."})
    second = acme.distilled(ref, BUDGET)["event"]
    assert set(second["sourceIds"]) == {first["event"]["outputId"], "new"}
    assert "[REDACTED:till-key]" in told(acme.entry(ref, second["outputId"]))["content"]


@requirement("openwop:distillation:budget")
def test_the_event_stands_in_the_feed_with_what_was_spent(acme: Caller, ref: str) -> None:
    answer = acme.distilled(ref, BUDGET, sources=SOURCES)
    [event] = acme.events_of(ref, "memory.compacted")
    assert_compacted(event, *FEED)
    assert event["distillation"] == answer["event"]["distillation"]
    assert event["outputId"] == answer["event"]["outputId"]


@requirement("openwop:conformance:distill")
@pytest.mark.parametrize(
    "wrong",
    [
        {"memoryRef": None},
        {"memoryRef": ""},
        {"tokenBudget": 0},
        {"tokenBudget": -5},
        {"tokenBudget": "many"},
        {"sources": "text"},
        {"sources": [1]},
        {"sources": [{"text": "no content"}]},
        {"indexEmitted": "yes"},
    ],
    ids=str,
)
def test_a_request_that_is_none_is_refused(acme: Caller, ref: str, wrong: Body) -> None:
    request = {"memoryRef": ref, "tokenBudget": BUDGET, "sources": SOURCES, **wrong}
    assert_error(acme.post(DISTILL, request), "validation_error")
    assert acme.entries(ref) == []
