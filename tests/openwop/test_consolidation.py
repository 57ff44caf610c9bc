"""RFC 0068: what stands twice is merged, what is stale gives way, and a second pass finds nothing to do."""

from typing import Final

import pytest

from tests.openwop.canaries import assert_no_canary
from tests.openwop.host import CONSOLIDATE, Body, Caller
from tests.openwop.shapes import FEED, assert_consolidated, assert_entry, assert_error
from tests.requirements import requirement

TYPE: Final = "agent.memory.consolidated"
SCENARIO_REF: Final = "mem://conformance/consolidation"


@requirement("openwop:consolidation:idempotent")
def test_a_pass_holds_or_reduces_and_a_second_one_does_nothing(acme: Caller) -> None:
    first = acme.consolidated(SCENARIO_REF, includeSecretCanary=True)
    assert first["event"]["outputCount"] < first["event"]["inputCount"]
    assert first["secretLeaked"] is False
    after = acme.entries(SCENARIO_REF)
    assert len(after) == first["event"]["outputCount"]
    for _ in range(2):
        again = acme.consolidated(SCENARIO_REF)
        assert again["event"]["inputCount"] == again["event"]["outputCount"] == len(after)
    assert acme.entries(SCENARIO_REF) == after
    assert_no_canary(str(after))


@requirement("openwop:consolidation:merges")
def test_what_is_said_twice_stands_once_afterwards(acme: Caller, ref: str) -> None:
    acme.seed(
        ref,
        {
            "a": "The customer prefers e-mail over the phone.",
            "b": "The customer prefers e-mail over the phone.",
            "c": "the customer prefers e-mail over the phone",
            "d": "Invoices are sent on the first of the month.",
        },
    )
    event = acme.consolidated(ref)["event"]
    assert (event["inputCount"], event["outputCount"]) == (4, 2)
    left = acme.entries(ref)
    for entry in left:
        assert_entry(entry)
    assert sum("e-mail" in entry["content"] for entry in left) == 1
    assert sum("Invoices" in entry["content"] for entry in left) == 1


@requirement("openwop:consolidation:supersedes")
def test_a_newer_value_takes_the_place_of_the_one_that_it_contradicts(acme: Caller, ref: str) -> None:
    acme.put(ref, "The request timeout of the gateway is 30 seconds.")
    acme.put(ref, "The gateway is owned by the platform team.")
    acme.put(ref, "The request timeout of the gateway is 45 seconds.")
    event = acme.consolidated(ref)["event"]
    assert (event["inputCount"], event["outputCount"]) == (3, 2)
    said = " ".join(acme.contents(ref))
    assert "45 seconds" in said
    assert "30 seconds" not in said
    assert "platform team" in said


@requirement("openwop:consolidation:keeps")
def test_different_things_are_left_alone(acme: Caller, ref: str) -> None:
    acme.seed(ref, {"a": "Pears cost two coins.", "b": "The fair opens at nine.", "c": "Ada repairs the bridge."})
    before = acme.entries(ref)
    event = acme.consolidated(ref)["event"]
    assert event["inputCount"] == event["outputCount"] == 3
    assert acme.entries(ref) == before


@requirement("openwop:sr-1:foreign-markers")
def test_the_marks_of_secrets_stay_and_foreign_ones_are_made_ours(acme: Caller, ref: str) -> None:
    acme.seed(ref, dict.fromkeys(("a", "b"), "The till opens with [BYOK:till-key] each morning."))
    acme.consolidated(ref)
    assert acme.contents(ref) == ["The till opens with [REDACTED:till-key] each morning."]


@requirement("openwop:consolidation:one-ref")
def test_a_pass_stays_in_its_ref_and_in_its_tenant(acme: Caller, zeta: Caller, ref: str) -> None:
    twice = {"a": "The bridge is closed.", "b": "The bridge is closed."}
    acme.seed(ref, twice)
    acme.seed(f"{ref}-beside", twice)
    zeta.seed(ref, twice)
    acme.consolidated(ref)
    assert len(acme.entries(ref)) == 1
    assert len(acme.entries(f"{ref}-beside")) == 2
    assert len(zeta.entries(ref)) == 2


@requirement("openwop:consolidation:event")
def test_the_feed_tells_of_the_pass_without_a_word_of_what_was_remembered(acme: Caller, ref: str) -> None:
    word = "marmalade"
    acme.seed(ref, dict.fromkeys(("a", "b", "c"), f"Toast with {word} at eight."))
    answer = acme.consolidated(ref)
    assert_consolidated(answer["event"])
    [event] = acme.events_of(ref, TYPE)
    assert_consolidated(event, *FEED)
    assert (event["inputCount"], event["outputCount"]) == (3, 1)
    assert set(event.get("mergedIds", [])) <= {"a", "b", "c"}
    assert word not in acme.get("/v1/events", limit=1_000).text


@requirement("openwop:consolidation:event", "openwop:conformance:consolidate")
def test_an_empty_ref_is_consolidated_to_an_empty_one(acme: Caller, ref: str) -> None:
    event = acme.consolidated(ref)["event"]
    assert event["inputCount"] == event["outputCount"] == 0
    assert acme.entries(ref) == []


@requirement("openwop:conformance:consolidate")
@pytest.mark.parametrize("body", [{}, {"memoryRef": ""}, {"memoryRef": 5}, []], ids=str)
def test_a_request_that_is_none_is_refused(acme: Caller, body: Body) -> None:
    assert_error(acme.post(CONSOLIDATE, body), "validation_error")
