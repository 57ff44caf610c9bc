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
    units: Snapshot,
    matches: dict[int, float],
    *,
    about: float = 0.0,
    coherence: float = 1.0,
    elsewhere: float = 0.0,
) -> list[float]:
    """`about`: how much the sessions of the matches have to do with it."""
    rows, direct = np.asarray(list(matches), np.int64), np.asarray(list(matches.values()), np.float32)
    of_sessions = np.full(len(rows), about, np.float32)
    found = surroundings(units, rows, direct, of_sessions, coherence=coherence, elsewhere=elsewhere)
    return [float(value) for value in found]


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
    columns.append([row(1, session=7)])
    units = columns.snapshot(1)
    columns.append([row(2, session=7)])
    columns.append([row(3, session=7)])
    assert units.after.tolist() == [1], "the writer went on"
    assert around(units, {0: 1.0}) == [0]


@given(direct=st.lists(shares, min_size=1, max_size=12), coherence=shares)
def test_surroundings_are_from_0_to_1_and_grow_with_coherence(direct: list[float], coherence: float) -> None:
    units, matches = conversation(*[7] * len(direct)), dict(enumerate(direct))
    felt, most = around(units, matches, coherence=coherence), around(units, matches)
    assert all(0 <= some <= whole <= 1 for some, whole in zip(felt, most, strict=True))


def test_what_a_session_is_about_counts_for_its_matches_and_what_stands_beside_them() -> None:
    assert around(conversation(*[7] * 7), {3: 0.0}, about=0.5) == [0, 0.5, 0.5, 0.5, 0.5, 0.5, 0]
    assert around(conversation(7, 8, 7), {2: 0.0}, about=0.5) == [0.5, 0, 0.5]


def test_neighbours_and_session_together_are_at_most_one() -> None:
    assert around(conversation(7, 7), {0: 0.5}, about=0.25) == [0.25, 0.75]
    assert around(conversation(7, 7), {0: 0.75}, about=0.5) == [0.5, 1.0]


def test_in_a_heap_of_notes_a_session_is_about_nothing() -> None:
    assert around(conversation(7, 7), {0: 1.0}, about=1.0, coherence=0.0) == [0, 0]


@pytest.mark.parametrize("coherence", [0.0, 0.25])
def test_where_neighbours_have_little_in_common_they_get_little(coherence: float) -> None:
    assert around(conversation(7, 7), {0: 1.0}, coherence=coherence) == [0, coherence]
