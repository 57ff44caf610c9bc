"""Factors, their weights, and the sentence that tells them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.core.vocabulary import MEMORY_TYPES
from fieldstone.retrieval.reason import explain
from fieldstone.retrieval.score import (
    TYPE_IMPORTANCE,
    WEIGHTS,
    Scores,
    recency,
    role_alignment,
    type_importance,
)
from tests.requirements import requirement
from tests.retrieval.units import row, snapshot


def analyze(text: str) -> list[str]:
    return text.lower().replace("_", " ").split()


@requirement("akashik:attune:recency")
@given(epochs=st.lists(st.integers(0, 5_000), min_size=2, max_size=20, unique=True))
def test_the_newer_unit_is_always_the_more_recent_one(epochs: list[int]) -> None:
    units = snapshot([row(seq, epoch=epoch) for seq, epoch in enumerate(epochs, start=1)])
    found = recency(units)
    order = np.argsort(units.unit_epoch)
    assert bool(np.all(np.diff(found[order]) > 0))
    assert bool(np.all((found > 0) & (found <= 1)))
    assert float(found[order][-1]) == 1.0


@requirement("akashik:attune:type-importance")
def test_decisions_and_contradictions_weigh_more_than_observations_and_every_type_has_its_weight() -> None:
    assert set(TYPE_IMPORTANCE) == set(MEMORY_TYPES)
    assert TYPE_IMPORTANCE["decision"] > TYPE_IMPORTANCE["observation"]
    assert TYPE_IMPORTANCE["contradiction"] > TYPE_IMPORTANCE["observation"]
    units = snapshot([row(1, type="decision"), row(2, type="observation"), row(3, type="hypothesis")])
    decision, observation, other = type_importance(units).tolist()
    assert decision > other > observation


@requirement("akashik:attune:role-alignment")
@pytest.mark.parametrize(
    ("own", "other", "expected"),
    [
        ("researcher", "researcher", 1.0),
        ("Researcher", "researcher", 1.0),
        ("market_researcher", "researcher", 0.5),
        ("market researcher", "market analyst", 1 / 3),
        ("researcher", "engineer", 0.0),
        ("?", "!", 0.0),
    ],
)
def test_roles_are_as_near_as_the_words_they_share(own: str, other: str, expected: float) -> None:
    units = snapshot([row(1, registration=7)])
    if own == "?":
        assert role_alignment(units, own, [other], lambda _: []).tolist() == [0.0]
        return
    assert role_alignment(units, own, [other], analyze).tolist() == pytest.approx([expected])


factor = st.floats(0, 1, width=32)


@requirement("akashik:attune:score-range", "akashik:attune:reason-from-factors")
@given(names=st.sets(st.sampled_from(sorted(WEIGHTS)), min_size=1), data=st.data())
def test_a_score_is_the_weighted_mean_of_its_factors(names: set[str], data: st.DataObject) -> None:
    drawn = {name: np.asarray(data.draw(st.lists(factor, min_size=3, max_size=3)), np.float32) for name in names}
    scores = Scores(drawn)
    whole = sum(WEIGHTS[name] for name in names)
    for at in range(3):
        expected = sum(WEIGHTS[name] * float(drawn[name][at]) for name in names) / whole
        assert float(scores.total[at]) == pytest.approx(expected, abs=1e-5)
        assert -1e-6 <= float(scores.total[at]) <= 1 + 1e-6
        assert scores.of(at) == {name: round(float(drawn[name][at]), 4) for name in names}


def test_no_units_have_no_scores() -> None:
    empty = snapshot([])
    scores = Scores({"recency": recency(empty), "type": type_importance(empty)})
    assert scores.total.tolist() == []


def sentence(**factors: float) -> str:
    return explain(
        unit_type="human_directive",
        agent_id="ada",
        role="operator",
        age_epochs=3,
        factors=factors,
        weights={name: WEIGHTS[name] for name in factors},
        hint_words=["pricing", "regions", "growth", "churn", "margin"],
        interest_words=["energy"],
    )


@requirement("akashik:attune:reason", "akashik:attune:reason-from-factors")
def test_the_reason_tells_the_strongest_factor_first_and_leaves_out_what_did_not_count() -> None:
    told = sentence(lexical=0.9, interests=0.5, recency=0.9, type=1.0, role=0.0)
    assert told.startswith("Human directive by ada (operator): matches your hint on “pricing”, “regions”")
    assert "and 1 more" in told
    assert "energy" in told
    assert "3 epochs ago" in told
    assert "role" not in told.partition(":")[2]
    assert told.endswith(".")


@requirement("akashik:attune:reason")
def test_a_unit_for_which_nothing_speaks_has_a_reason_too() -> None:
    assert "little else" in sentence(lexical=0.0, recency=0.0, type=0.0, role=0.0)


@pytest.mark.parametrize(("role", "said"), [(1.0, "has your role"), (0.5, "close to yours")])
def test_a_shared_role_is_told_apart_from_a_similar_one(role: float, said: str) -> None:
    assert said in sentence(role=role)


@pytest.mark.parametrize(
    ("age", "said"), [(0, "newest"), (1, "1 epoch ago"), (2, "2 epochs ago"), (1_500, "1,500 epochs old")]
)
def test_an_age_is_told_in_words(age: int, said: str) -> None:
    told = explain(
        unit_type="synthesis",
        agent_id="ada",
        role="r",
        age_epochs=age,
        factors={"recency": 1.0, "type": 1.0},
        weights={"recency": 0.15, "type": 0.15},
        hint_words=[],
        interest_words=[],
    )
    assert said in told
    assert "syntheses carry weight" in told
