"""Which units fill a page."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fieldstone.projections.columns import Mask, Snapshot
from fieldstone.retrieval.page import AUTHOR_DECAY, Rows, by_epoch, pool_of
from fieldstone.retrieval.page import by_relevance as choose
from fieldstone.retrieval.score import Values
from tests.requirements import requirement
from tests.retrieval.units import row, snapshot

# author, score, may it be seen
drawn = st.lists(
    st.tuples(
        st.integers(1, 4),
        st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.500001, 0.8, 1.0]) | st.floats(0, 1, width=32),
        st.booleans(),
    ),
    max_size=60,
)
Drawn = list[tuple[int, float, bool]]


def by_relevance(units: Snapshot, mask: Mask, scores: Values, most: int) -> Rows:
    return choose(units, pool_of(units, mask, scores, most), scores, most)


def field_of(units: Drawn) -> tuple[Snapshot, Mask, Values]:
    made = snapshot([row(seq, agent=author) for seq, (author, _, _) in enumerate(units, start=1)])
    mask = np.asarray([seen for _, _, seen in units], np.bool_)
    scores = np.asarray([score for _, score, _ in units], np.float32)
    return made, mask, scores


@requirement("akashik:attune:sorted", "akashik:attune:max-units")
@given(units=drawn, most=st.integers(1, 70))
def test_a_page_is_sorted_by_score_newer_first_among_equals_and_not_too_long(units: Drawn, most: int) -> None:
    made, mask, scores = field_of(units)
    rows = by_relevance(made, mask, scores, most).tolist()
    assert len(rows) == min(most, int(mask.sum()))
    assert len(set(rows)) == len(rows)
    assert all(mask[at] for at in rows)
    keys = [(scores[at], made.unit_epoch[at]) for at in rows]
    assert keys == sorted(keys, reverse=True)


@requirement("akashik:attune:everything-else")
@given(units=drawn)
def test_a_page_that_is_large_enough_holds_every_candidate(units: Drawn) -> None:
    made, mask, scores = field_of(units)
    assert set(by_relevance(made, mask, scores, 1_000_000).tolist()) == set(np.flatnonzero(mask).tolist())


@requirement("akashik:attune:source-diversity")
@example(units=[*[(1, 1.0, True)] * 5, (2, 0.1, True)], most=2)
@given(units=drawn, most=st.integers(2, 20))
def test_a_page_of_two_or_more_holds_several_authors_where_there_are_several(units: Drawn, most: int) -> None:
    made, mask, scores = field_of(units)
    there = set(made.agent[np.flatnonzero(mask)].tolist())
    on_page = set(made.agent[by_relevance(made, mask, scores, most)].tolist())
    assert len(on_page) >= min(2, len(there))


@given(units=drawn, most=st.integers(1, 20))
def test_the_best_unit_of_all_is_always_on_the_page(units: Drawn, most: int) -> None:
    made, mask, scores = field_of(units)
    rows = by_relevance(made, mask, scores, most)
    if rows.size:
        assert scores[rows[0]] == scores[mask].max()


@given(units=drawn, most=st.integers(1, 20))
def test_of_one_author_the_page_holds_the_best(units: Drawn, most: int) -> None:
    made, mask, scores = field_of(units)
    rows = by_relevance(made, mask, scores, most)
    for author in set(made.agent[rows].tolist()):
        chosen = [at for at in rows.tolist() if made.agent[at] == author]
        left = [at for at in np.flatnonzero(mask).tolist() if made.agent[at] == author and at not in chosen]
        assert all(scores[at] >= scores[other] for at in chosen for other in left)


@requirement("akashik:attune:source-diversity")
def test_among_equals_authors_take_turns() -> None:
    made, mask, scores = field_of([(author, 0.5, True) for author in (1, 1, 1, 1, 2, 2, 3)])
    assert sorted(made.agent[by_relevance(made, mask, scores, 3)].tolist()) == [0, 1, 2]


def test_a_unit_that_is_worth_more_than_the_decay_takes_is_chosen_before_anothers() -> None:
    barely = 0.5 * AUTHOR_DECAY
    others = [(2, 0.4, True), (3, barely - 0.01, True)]
    made, mask, scores = field_of([(1, 0.5, True), (1, 0.5, True), *others])
    assert by_relevance(made, mask, scores, 3).tolist() == [1, 0, 3]
    made, mask, scores = field_of([(1, 0.5, True), (1, 0.5, True), (2, 0.4999, True), (3, barely + 0.001, True)])
    assert by_relevance(made, mask, scores, 3).tolist() == [1, 2, 3]


@pytest.mark.parametrize("quiet_score", [0.2, 0.9])
def test_in_a_large_field_the_page_is_right_although_not_every_unit_is_looked_at(quiet_score: float) -> None:
    """20,000 units: most are left out by the pool, the best and every author's best are not."""
    chance = np.random.default_rng(7)
    size = 20_000
    scores = chance.random(size, np.float32) * np.float32(0.5)
    scores[17] = quiet_score  # an old unit of an author with nothing else
    scores[100] = 0.99
    made = snapshot([row(seq, agent=2 if seq == 18 else 1) for seq in range(1, size + 1)])
    mask = np.ones(size, np.bool_)
    rows = by_relevance(made, mask, scores, 40).tolist()
    assert rows[0] == 100
    assert 17 in rows
    others = [at for at in rows if at not in (17, 100)]
    best = [at for at in np.argsort(-scores, kind="stable").tolist() if at not in (17, 100)][: len(others)]
    assert sorted(others) == sorted(best)


@requirement("akashik:scope:order-epoch")
@given(units=drawn, most=st.integers(1, 20))
def test_by_epoch_is_oldest_first_and_says_the_next_ones_epoch(units: Drawn, most: int) -> None:
    made, mask, _ = field_of(units)
    everything = np.flatnonzero(mask).tolist()
    rows, following = by_epoch(made, mask, most)
    assert rows.tolist() == everything[:most]
    assert following == (int(made.unit_epoch[everything[most]]) if len(everything) > most else None)


def test_by_epoch_goes_by_the_commit_and_not_by_the_record() -> None:
    made = snapshot([row(1, epoch=9), row(2, epoch=2), row(3, epoch=3)])
    rows, following = by_epoch(made, np.ones(3, np.bool_), 2)
    assert rows.tolist() == [1, 2]
    assert following == 9
