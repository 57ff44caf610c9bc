"""RFC 0113: a list that fits into a number of tokens, by age or by what it is about."""

from typing import Any, Final

import pytest

from fieldstone.backends.tokens import Cl100kCounter
from tests.openwop.host import DISCOVERY, Body, Caller, memory, told
from tests.openwop.shapes import assert_entry, assert_error
from tests.requirements import requirement

FIXTURE: Final = "conformance-agent-memory-injection-budget"
COUNTER: Final = Cl100kCounter()


@pytest.fixture(scope="module")
def seen(acme: Caller) -> Body:
    return acme.variables(FIXTURE)


def tokens(contents: list[str]) -> int:
    return sum(COUNTER.count(content) for content in contents)


@requirement("openwop:budget:never-exceeded")
def test_the_host_counts_as_it_advertises(acme: Caller) -> None:
    assert told(acme.get(DISCOVERY))["memory"]["injectionBudget"]["tokenCounter"] == COUNTER.name


@requirement("openwop:budget:never-exceeded")
def test_the_fixtures_list_stays_within_the_budget(seen: Body) -> None:
    for entry in seen["budgetedEntries"]:
        assert_entry(entry)
    spent = tokens([entry["content"] for entry in seen["budgetedEntries"]])
    assert 0 < spent == seen["budgetedTokenTotal"] <= seen["tokenBudget"]


@requirement("openwop:budget:whole")
def test_the_fixtures_entry_that_is_too_large_is_left_out_whole(seen: Body) -> None:
    assert seen["overBudgetEntryOmitted"] is True
    assert seen["overBudgetEntryId"]
    assert seen["overBudgetEntryId"] not in {entry["id"] for entry in seen["budgetedEntries"]}


@requirement("openwop:budget:clean")
def test_the_fixture_lists_no_secret_and_nothing_of_another_tenant(seen: Body) -> None:
    assert "[REDACTED:" in seen["redactedContentSample"]
    assert seen["crossTenantBudgetedProbe"] == []


@requirement("openwop:budget:relevance")
def test_the_fixture_orders_by_what_it_is_about_otherwise_than_by_age(seen: Body) -> None:
    assert sorted(seen["recencyOrder"]) == sorted(seen["relevanceOrder"])
    assert seen["recencyOrder"] != seen["relevanceOrder"]
    assert len(seen["recencyOrder"]) >= 2


@requirement("openwop:budget:never-exceeded")
def test_a_budget_is_never_exceeded_and_takes_the_newest_first(acme: Caller, ref: str) -> None:
    for number in range(20):
        acme.put(ref, f"Note {number}: " + "the fair sells pears. " * (number % 4 + 1))
    whole = acme.contents(ref)
    for budget in (1, 10, 25, 40, 80, 160, 10_000):
        found = acme.contents(ref, tokenBudget=budget)
        assert tokens(found) <= budget
        assert found == [content for content in whole if content in found]
    assert acme.contents(ref, tokenBudget=tokens(whole)) == whole


@requirement("openwop:budget:longest")
def test_what_is_taken_is_the_longest_beginning_that_fits(acme: Caller, ref: str) -> None:
    for number in range(8):
        acme.put(ref, f"Note {number} of the same length.")
    whole = acme.contents(ref)
    each = tokens(whole[:1])
    assert tokens(whole) == 8 * each
    for count in range(1, 9):
        assert acme.contents(ref, tokenBudget=count * each) == whole[:count]
        assert acme.contents(ref, tokenBudget=count * each - 1) == whole[: count - 1]


@requirement("openwop:budget:whole")
def test_an_entry_larger_than_the_whole_budget_hides_none_of_the_others(acme: Caller, ref: str) -> None:
    acme.put(ref, "Old and small.")
    acme.put(ref, "New and large: " + "pears " * 500)
    assert acme.contents(ref, tokenBudget=100) == ["Old and small."]


@requirement("openwop:budget:longest")
def test_a_budget_and_a_limit_both_hold(acme: Caller, ref: str) -> None:
    for number in range(6):
        acme.put(ref, f"Note {number} of the same length.")
    each = tokens(acme.contents(ref, limit=1))
    assert len(acme.contents(ref, tokenBudget=each * 4, limit=2)) == 2
    assert len(acme.contents(ref, tokenBudget=each * 2, limit=4)) == 2


@requirement("openwop:budget:relevance")
def test_relevance_puts_first_what_the_query_is_about(acme: Caller, ref: str) -> None:
    acme.put(ref, "A refund is paid within 14 days of the return.")
    for number in range(5):
        acme.put(ref, f"Lunch on day {number} is soup with bread.")
    about = acme.contents(ref, rank="relevance", query="how long does a refund take")
    assert about[0].startswith("A refund")
    assert sorted(about) == sorted(acme.contents(ref))
    assert acme.contents(ref, rank="recency")[-1].startswith("A refund")
    small = acme.contents(ref, rank="relevance", query="how long does a refund take", tokenBudget=14)
    assert small[0].startswith("A refund")


@requirement("openwop:budget:relevance")
def test_relevance_never_looks_beyond_its_ref(acme: Caller, zeta: Caller, ref: str) -> None:
    zeta.put(ref, "The refund of zeta.")
    acme.put(f"{ref}-beside", "The refund beside.")
    assert acme.contents(ref, rank="relevance", query="refund") == []


@requirement("openwop:budget:options")
@pytest.mark.parametrize(
    "params",
    [
        {"tokenBudget": 0},
        {"tokenBudget": -1},
        {"tokenBudget": "many"},
        {"rank": "best"},
        {"rank": "relevance"},
        {"rank": "relevance", "query": ""},
        {"rank": "relevance", "query": "q" * 4_097},
    ],
    ids=str,
)
def test_options_that_are_none_are_refused(acme: Caller, ref: str, params: dict[str, Any]) -> None:
    assert_error(acme.get(memory(ref), **params), "validation_error")
