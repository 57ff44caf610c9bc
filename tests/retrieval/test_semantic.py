"""How near a unit's meaning is to a request's: comparable between requests, and rated for every unit that counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.ports.vectors import StoredModel
from fieldstone.projections.columns import Mask
from fieldstone.projections.meaning import Meaning
from fieldstone.projections.vector_index import Floats, quantize
from fieldstone.retrieval import semantic
from fieldstone.retrieval.semantic import nearness
from tests.requirements import requirement
from tests.retrieval.units import row, snapshot

DIMENSION = 32
ROUNDING = 2e-2

seeds = st.integers(0, 2**32 - 1)


def directions(count: int, seed: int = 0, *, leaning: float = 0.0) -> Floats:
    """Of length one. Leaning: in some models everything is near everything."""
    chance = np.random.default_rng(seed)
    vectors = chance.normal(size=(count, DIMENSION)) + leaning * np.ones(DIMENSION)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


def near(vectors: Floats, query: Floats, *masks: Mask) -> list[float]:
    units = snapshot([row(seq) for seq in range(1, len(vectors) + 1)])
    meaning = Meaning(StoredModel(1, "test", DIMENSION, "serving"))
    meaning.put(np.arange(len(vectors)), *quantize(vectors))
    found: list[float] = nearness(units, meaning, query, masks or [np.ones(len(vectors), np.bool_)]).tolist()
    return found


@given(seed=seeds, leaning=st.sampled_from([0.0, 1.0, 5.0]))
def test_the_same_meaning_is_worth_1_and_nothing_is_worth_more_or_less_than_0(seed: int, leaning: float) -> None:
    vectors = directions(20, seed, leaning=leaning)
    found = near(vectors, vectors[3])
    assert found[3] == max(found) == pytest.approx(1, abs=20 * ROUNDING if leaning == 5.0 else ROUNDING * 4)
    assert min(found) >= 0


@given(seed=seeds)
def test_nearer_vectors_are_worth_more(seed: int) -> None:
    vectors, query = directions(20, seed), directions(1, seed + 1)[0]
    worth, cosines = np.asarray(near(vectors, query)), vectors @ query
    order = np.argsort(cosines)
    assert (np.diff(worth[order]) >= -ROUNDING).all()


def test_the_first_units_of_a_field_are_near_although_they_are_all_that_its_mean_is_made_of() -> None:
    [said] = directions(1, 3)
    assert min(near(np.stack([said, said]), said)) > 0.9


def test_where_everything_is_near_everything_being_near_is_worth_little() -> None:
    query = directions(1, 9, leaning=3.0)[0]
    leaning = directions(2_000, leaning=3.0)
    assert np.mean(leaning @ query) > 0.8
    assert np.mean(near(leaning, query)) < 0.2


@requirement("akashik:attune:semantic-spread")
@pytest.mark.parametrize("spread", [0.1, 0.15])
def test_strangers_are_worth_as_little_in_a_model_that_spreads_them_as_in_one_that_keeps_them_together(
    spread: float,
) -> None:
    [query], strangers = directions(1), directions(2_000, 1)
    strangers -= (strangers @ query)[:, np.newaxis] * query
    strangers += np.random.default_rng(2).normal(0, spread, size=(2_000, 1)).astype(np.float32) * query
    worth = near(strangers, query)
    two_spreads_away = np.quantile(worth, 0.977)
    assert two_spreads_away == pytest.approx((2 / semantic.SURE_SPREADS) ** 2, rel=0.25)


def test_a_purged_vector_spreads_nothing() -> None:
    vectors, query = directions(600), directions(1, 1)[0]
    units, meaning = (
        snapshot([row(seq) for seq in range(1, 601)]),
        Meaning(StoredModel(1, "test", DIMENSION, "serving")),
    )
    meaning.put(np.arange(600), *quantize(vectors))
    before = semantic.by_chance(units, meaning, query)
    meaning.index.remove(np.arange(300))
    after = semantic.by_chance(units, meaning, query)
    assert after.centre == before.centre, "the field is looked at again when it has grown"
    assert after.spread == pytest.approx(before.spread, rel=0.15)


@given(seed=seeds, masked=st.lists(st.booleans(), min_size=20, max_size=20))
def test_what_a_filter_leaves_is_worth_the_same_as_without_it(seed: int, masked: list[bool]) -> None:
    vectors, query, mask = directions(20, seed), directions(1, seed + 1)[0], np.asarray(masked)
    whole, some = np.asarray(near(vectors, query)), np.asarray(near(vectors, query, mask))
    np.testing.assert_allclose(some[mask], whole[mask], atol=1e-6)
    assert not some[~mask].any()


def test_a_filter_that_leaves_few_leaves_none_of_them_unrated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(semantic, "NEAREST", 5)
    vectors, query = directions(100), directions(1, 1)[0]
    everything = np.ones(100, np.bool_)
    worth = near(vectors, query, everything)
    assert np.count_nonzero(worth) <= 5
    # Of all units these are the last that would be rated, but they are above the mean.
    above = np.argsort(-(vectors @ query))[10:13]
    few = np.zeros(100, np.bool_)
    few[above] = True
    both = np.asarray(near(vectors, query, everything, few))
    assert (both[above] > 0).all()
    assert np.count_nonzero(both) <= 8
