"""Recall, reciprocal rank and nDCG, as anyone would work them out by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.retrieval.measures import Answer, ndcg, quality, recall, reciprocal_rank

NAMES = tuple("abcdefghij")
ANSWERS = st.builds(Answer, st.permutations(NAMES), st.sets(st.sampled_from(NAMES), min_size=1))


def test_recall_is_the_share_of_what_was_wanted() -> None:
    answer = Answer("abcd", {"a", "d", "x", "y"})
    assert [recall(answer, cut) for cut in (1, 3, 4)] == [0.25, 0.25, 0.5]


def test_the_reciprocal_rank_is_that_of_the_first_wanted_one() -> None:
    assert reciprocal_rank(Answer("abcd", {"c", "d"})) == 1 / 3
    assert reciprocal_rank(Answer("abcd", {"x"})) == 0


def test_ndcg_is_the_gain_as_a_share_of_the_best_order() -> None:
    gained, best = 1 / math.log2(3) + 1 / math.log2(5), 1 + 1 / math.log2(3)
    assert ndcg(Answer("abcd", {"b", "d"}), 10) == pytest.approx(gained / best)
    assert ndcg(Answer("abcd", {"b", "d"}), 1) == 0


def test_where_more_is_wanted_than_can_be_shown_a_full_page_is_the_best_there_is() -> None:
    assert ndcg(Answer("abcd", {"a", "b", "c"}), 2) == 1


def test_means_are_over_questions() -> None:
    found = quality([Answer("ab", {"a"}), Answer("ab", {"b", "x"})], cuts=(1, 2), ndcg_cut=2)
    assert (found.questions, found.recall, found.mrr) == (2, {1: 0.5, 2: 0.75}, 0.75)


def test_without_questions_nothing_was_found() -> None:
    assert quality([], cuts=(5,), ndcg_cut=5).recall == {5: 0.0}


@pytest.mark.parametrize("measure", [lambda answer: recall(answer, 5), reciprocal_rank, lambda answer: ndcg(answer, 5)])
def test_a_question_for_which_nothing_is_wanted_is_refused(measure: object) -> None:
    assert callable(measure)
    with pytest.raises(ValueError, match="measures nothing"):
        measure(Answer("ab", ()))


@given(ANSWERS, st.integers(1, len(NAMES)))
def test_every_measure_is_from_0_to_1(answer: Answer, cut: int) -> None:
    for value in (recall(answer, cut), reciprocal_rank(answer), ndcg(answer, cut)):
        assert 0 <= value <= 1 + 1e-9


@given(ANSWERS, st.integers(1, len(NAMES) - 1))
def test_a_longer_page_never_lowers_recall(answer: Answer, cut: int) -> None:
    assert recall(answer, cut) <= recall(answer, cut + 1)
    assert recall(answer, len(NAMES)) == 1


@given(ANSWERS, st.integers(1, len(NAMES)))
def test_what_is_wanted_first_is_the_best_order(answer: Answer, cut: int) -> None:
    best = Answer(sorted(answer.found, key=lambda name: name not in answer.wanted), answer.wanted)
    assert reciprocal_rank(best) == 1
    assert ndcg(best, cut) == pytest.approx(1)
    assert recall(best, cut) >= recall(answer, cut)
    assert ndcg(answer, cut) <= 1 + 1e-9


@given(ANSWERS, st.integers(0, len(NAMES) - 2))
def test_moving_a_wanted_one_up_never_lowers_ndcg(answer: Answer, place: int) -> None:
    upper, lower = answer.found[place : place + 2]
    if upper not in answer.wanted and lower in answer.wanted:
        swapped = [*answer.found[:place], lower, upper, *answer.found[place + 2 :]]
        assert ndcg(Answer(swapped, answer.wanted), len(NAMES)) > ndcg(answer, len(NAMES))
