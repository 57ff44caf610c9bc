"""How near units are by relations: to what an agent recorded or read, and through what it may see."""

from collections.abc import Collection
from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.ports.views import RelationRow
from fieldstone.projections.relations import Relations
from fieldstone.retrieval.proximity import TWO_STEPS, proximity
from tests.retrieval.units import row, snapshot

UNITS = 8
Pairs = list[tuple[int, int]]

some_units = st.sets(st.integers(1, UNITS))
some_pairs = st.lists(st.tuples(st.integers(1, UNITS), st.integers(1, UNITS)), max_size=12)


def near(pairs: Pairs, seeds: set[int], hidden: Collection[int] = ()) -> dict[int, float]:
    units = snapshot([row(seq) for seq in range(1, UNITS + 1)])
    visible = np.asarray([seq not in hidden for seq in range(1, UNITS + 1)])
    relations = Relations(RelationRow(source, at, "supports", target) for at, (source, target) in enumerate(pairs))
    return dict(enumerate(proximity(units, relations, seeds, visible).tolist(), start=1))


def test_a_unit_related_to_a_seed_is_near_in_either_direction_and_one_two_steps_away_is_half_as_near() -> None:
    found = near([(2, 1), (3, 2), (4, 3), (1, 5)], {1})
    assert (found[2], found[5], found[3], found[4], found[6]) == (1.0, 1.0, TWO_STEPS, 0.0, 0.0)


def test_without_seeds_or_relations_nothing_is_near() -> None:
    assert set(near([(2, 1)], set()).values()) == {0.0}
    assert set(near([], {1}).values()) == {0.0}


def test_no_way_leads_through_a_unit_that_is_hidden() -> None:
    assert near([(2, 1), (2, 3)], {1})[3] == TWO_STEPS
    assert near([(2, 1), (2, 3)], {1}, hidden={2})[3] == 0.0


def test_what_is_newer_than_the_snapshot_is_passed_over() -> None:
    found = near([(UNITS + 1, 1), (UNITS + 1, 2)], {1})
    assert found[2] == 0.0


@given(pairs=some_pairs, seeds=some_units, hidden=some_units)
def test_proximity_is_the_length_of_the_shortest_way(pairs: Pairs, seeds: set[int], hidden: set[int]) -> None:
    both_ways = {*pairs, *((target, source) for source, target in pairs)}
    one_step = {target for source, target in both_ways if source in seeds}
    two_steps = {end for middle, end in product(one_step - hidden, range(1, UNITS + 1)) if (middle, end) in both_ways}
    expected = {seq: 1.0 if seq in one_step else TWO_STEPS if seq in two_steps else 0.0 for seq in range(1, UNITS + 1)}
    assert near(pairs, seeds, hidden) == expected
