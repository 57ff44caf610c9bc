"""What stands beside a match gets a part of it, within a conversation and not across."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.projections.columns import Snapshot, UnitColumns
from fieldstone.retrieval.surroundings import NEXT_BUT_ONE, surroundings
from tests.retrieval.units import row, snapshot

shares = st.floats(0, 1, width=32)


def around(
    units: Snapshot, matches: dict[int, float], *, coherence: float = 1.0, elsewhere: float = 0.0
) -> list[float]:
    direct = np.zeros(units.size, np.float32)
    for at, share in matches.items():
        direct[at] = share
    found: list[float] = surroundings(units, direct, coherence=coherence, elsewhere=elsewhere).tolist()
    return found


def conversation(*sessions: int | None, **fields: Any) -> Snapshot:
    return snapshot([row(seq, session=session, **fields) for seq, session in enumerate(sessions, start=1)])


def test_both_neighbours_of_a_match_get_its_strength_and_the_next_but_one_half_of_it() -> None:
    assert around(conversation(*[7] * 7), {3: 0.5}) == [0, 0.5 * NEXT_BUT_ONE, 0.5, 0, 0.5, 0.5 * NEXT_BUT_ONE, 0]


def test_a_match_says_nothing_about_other_sessions_recorded_in_between() -> None:
    assert around(conversation(7, 8, 7, 8, 7), {2: 1.0}) == [1, 0, 0, 0, 1]


def test_tasks_are_conversations_of_units_that_have_no_session() -> None:
    units = snapshot([row(seq, task=task) for seq, task in enumerate((3, 4, 3, 4), start=1)])
    assert around(units, {0: 1.0}, coherence=0.0, elsewhere=1.0) == [0, 0, 1, 0]
    assert around(units, {0: 1.0}, coherence=1.0, elsewhere=0.0) == [0, 0, 0, 0]


def test_what_several_matches_add_up_to_is_at_most_one() -> None:
    assert around(conversation(*[7] * 5), {0: 1.0, 1: 1.0, 3: 1.0, 4: 1.0})[2] == 1.0


def test_a_neighbour_that_is_newer_than_the_snapshot_is_passed_over() -> None:
    columns = UnitColumns()
    columns.append(row(1, session=7))
    units = columns.snapshot(1)
    columns.append(row(2, session=7))
    columns.append(row(3, session=7))
    assert units.after.tolist() == [1], "the writer went on"
    assert around(units, {0: 1.0}) == [0]


@given(direct=st.lists(shares, min_size=1, max_size=12), coherence=shares)
def test_surroundings_are_from_0_to_1_and_grow_with_coherence(direct: list[float], coherence: float) -> None:
    units, matches = conversation(*[7] * len(direct)), dict(enumerate(direct))
    felt, most = around(units, matches, coherence=coherence), around(units, matches)
    assert all(0 <= some <= whole <= 1 for some, whole in zip(felt, most, strict=True))


@pytest.mark.parametrize("coherence", [0.0, 0.25])
def test_where_neighbours_have_little_in_common_they_get_little(coherence: float) -> None:
    assert around(conversation(7, 7), {0: 1.0}, coherence=coherence) == [0, coherence]
