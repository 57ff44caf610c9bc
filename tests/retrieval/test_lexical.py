"""What share of a query stands in a unit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.ports.text_index import Postings, prune
from fieldstone.projections.text_follower import TailUnit
from fieldstone.retrieval.lexical import LexicalMatch, information
from fieldstone.retrieval.words import STOP_WORDS, Query
from tests.retrieval.units import row, snapshot

WORDS = ("pricing", "region", "growth", "churn", "margin")
documents = st.lists(st.sets(st.sampled_from(WORDS)), min_size=1, max_size=12)
queries = st.sets(st.sampled_from((*WORDS, "unheard")), min_size=1)


def analyze(text: str) -> list[str]:
    return text.split()


def indexed(units: dict[int, set[str]], terms: list[str]) -> Postings:
    seqs = {term: [seq for seq, words in units.items() if term in words] for term in terms}
    frequencies = {term: len(found) for term, found in seqs.items()}
    return Postings(
        max(units, default=0), len(units), frequencies, {term: found for term, found in seqs.items() if found}
    )


def match(units: dict[int, set[str]], query: set[str], in_index: set[int], in_tail: set[int]) -> LexicalMatch:
    asked = Query([" ".join(sorted(query))], analyze)
    postings = indexed({seq: units[seq] for seq in in_index}, list(asked.words))
    return LexicalMatch(asked, postings, [TailUnit(seq, seq, frozenset(units[seq])) for seq in in_tail], {})


def shares(units: dict[int, set[str]], query: set[str], in_index: set[int], in_tail: set[int]) -> list[float]:
    found = match(units, query, in_index, in_tail).shares(snapshot([row(seq) for seq in units]))
    return [float(share) for share in found]


@given(drawn=documents, query=queries)
def test_shares_are_from_0_to_1_and_0_exactly_where_no_word_stands(drawn: list[set[str]], query: set[str]) -> None:
    units = dict(enumerate(drawn, start=1))
    for (_, words), share in zip(units.items(), shares(units, query, set(units), set()), strict=True):
        assert 0.0 <= share <= 1.0
        assert (share > 0) == bool(words & query)
    known = query & set().union(*drawn)
    for words, share in zip(drawn, shares(units, query, set(units), set()), strict=True):
        if known == query and words >= known:
            assert share == pytest.approx(1.0)


@given(drawn=documents, query=queries, split=st.integers(0, 12))
def test_shares_do_not_depend_on_how_far_the_index_is(drawn: list[set[str]], query: set[str], split: int) -> None:
    units = dict(enumerate(drawn, start=1))
    all_indexed = shares(units, query, set(units), set())
    in_index = {seq for seq in units if seq <= split}
    assert shares(units, query, in_index, set(units) - in_index) == pytest.approx(all_indexed)


@given(drawn=documents, query=queries, split=st.integers(0, 12))
def test_a_unit_that_is_in_index_and_tail_while_the_index_moves_on_counts_once(
    drawn: list[set[str]], query: set[str], split: int
) -> None:
    units = dict(enumerate(drawn, start=1))
    late = {seq for seq in units if seq > split}
    assert shares(units, query, set(units), late) == pytest.approx(shares(units, query, set(units), set()))


@given(drawn=documents, query=queries)
def test_a_unit_with_more_of_the_words_has_no_smaller_share(drawn: list[set[str]], query: set[str]) -> None:
    units = dict(enumerate(drawn, start=1))
    found = shares(units, query, set(units), set())
    for one, more in ((a, b) for a in units for b in units if units[a] & query <= units[b] & query):
        assert found[one - 1] <= found[more - 1] + 1e-6


def test_a_rare_word_tells_more_than_a_frequent_one() -> None:
    units = {1: {"churn"}, **{seq: {"growth"} for seq in range(2, 12)}}
    found = shares(units, {"churn", "growth"}, set(units), set())
    assert found[0] > found[1] > 0
    assert match(units, {"churn", "growth"}, set(units), set()).words_in([1, 2]) == [["churn"], ["growth"]]


def test_words_are_told_as_they_were_written_rarest_first() -> None:
    asked = Query(["Pricing REGIONS"], lambda text: [text.rstrip("s")])
    postings = Postings(10, 10, {"pricing": 5, "regions": 1}, {"pricing": [1, 2, 3, 4, 5], "regions": [3]})
    found = LexicalMatch(asked, postings, (), {})
    assert found.words_in([3, 1, 9]) == [["regions", "pricing"], ["pricing"], []]


def test_a_pruned_word_counts_nowhere_not_even_in_the_tail() -> None:
    asked = Query(["growth churn"], analyze)
    postings = Postings(100, 100, {"growth": 90, "churn": 2}, {"churn": [1, 2]})
    found = LexicalMatch(asked, postings, [TailUnit(101, 101, frozenset({"growth"}))], {})
    units = snapshot([row(1), row(2), row(101)])
    assert [float(share) for share in found.shares(units)] == [1.0, 1.0, 0.0]


def test_a_draft_matches_and_weighs_in_no_frequency() -> None:
    asked = Query(["growth churn"], analyze)
    postings = indexed({1: {"growth"}, 2: {"churn"}, 3: {"growth", "churn"}}, list(asked.words))
    units = snapshot([row(seq) for seq in (1, 2, 3, 4)])
    without = LexicalMatch(asked, postings, (), {}).shares(units)
    with_draft = LexicalMatch(asked, postings, (), {4: frozenset({"growth", "churn"})}).shares(units)
    assert with_draft[:3].tolist() == without[:3].tolist()
    assert float(without[3]) == 0.0
    assert float(with_draft[3]) == pytest.approx(1.0)


@given(size=st.integers(1, 10**6), frequency=st.integers(1, 10**6))
def test_information_is_always_above_0_and_falls_with_frequency(size: int, frequency: int) -> None:
    assert information(size, frequency) > 0
    assert information(size, frequency) >= information(size, frequency + 1)


@given(frequencies=st.dictionaries(st.sampled_from(WORDS), st.integers(0, 100)), most=st.integers(0, 200))
def test_pruning_keeps_the_rarest_words_that_fit_and_at_least_one(frequencies: dict[str, int], most: int) -> None:
    kept = prune(frequencies, most)
    there = [term for term, frequency in frequencies.items() if frequency]
    assert set(kept) <= set(there)
    assert bool(kept) == bool(there)
    assert len(kept) <= 1 or sum(frequencies[term] for term in kept) <= most
    left = set(there) - set(kept)
    assert all(frequencies[term] <= frequencies[other] for term in kept for other in left)


def test_function_words_are_left_out_unless_there_is_nothing_else() -> None:
    assert set(Query(["the growth of it"], analyze).words) == {"growth"}
    assert set(Query(["what is it"], analyze).words) == {"what", "is", "it"}
    assert Query(["", "?!"], analyze).words == {}
    assert "the" in STOP_WORDS
