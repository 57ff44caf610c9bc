"""A session as a whole may be about a hint; one that holds most of what matches says nothing by that."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.projections.columns import Snapshot
from fieldstone.projections.vector_index import Rows
from fieldstone.retrieval.sessions import Sessions
from tests.requirements import requirement
from tests.retrieval.units import row, snapshot

drawn_sessions = st.lists(st.sampled_from([None, 7, 8, 9]), min_size=1, max_size=20)


def units_in(*sessions: int | None) -> Snapshot:
    return snapshot([row(seq, session=session) for seq, session in enumerate(sessions, start=1)])


def about(sessions: list[int | None], *words: list[int]) -> list[float]:
    """What each unit's session has of these words, all units matching something; a word is given by its rows."""
    found = Sessions(units_in(*sessions), np.arange(len(sessions))).by_words([rows(*places) for places in words])
    return [round(float(share), 6) for share in found]


def rows(*places: int) -> Rows:
    return np.asarray(places, np.int64)


@requirement("akashik:attune:session-coverage")
def test_a_session_with_more_of_the_words_has_more_in_whatever_units_they_stand() -> None:
    both, one, neither = about([7, 7, 8, 8, 9, 9], [0, 3], [1])[::2]
    assert both > one > neither == 0


def test_every_unit_of_a_session_has_the_same() -> None:
    assert about([7, 8, 7, 8], [0])[::2] == [about([7, 8, 7, 8], [0])[0]] * 2


def test_a_word_that_stands_in_every_session_tells_less_of_one_than_a_rare_one() -> None:
    everywhere, rare = about([7, 8, 9], [0, 1, 2], []), about([7, 8, 9], [0], [])
    assert rare[0] > everywhere[0] > 0


def test_a_word_that_nobody_has_used_is_missed_in_every_session() -> None:
    assert about([7, 8, 9], [0], [])[0] < about([7, 8, 9], [0])[0]


def test_a_session_that_holds_most_of_what_matches_has_a_word_by_chance() -> None:
    small, *_, large = about([8, *[7] * 20], [0, 1])
    assert small > 10 * large


@requirement("akashik:attune:session-coverage")
def test_the_only_session_says_nothing_of_its_units() -> None:
    assert about([7, 7, 7], [0], [1]) == [0, 0, 0]
    assert Sessions(units_in(7, 7), np.arange(2)).by_meaning(np.ones(2, np.float32)).tolist() == [0, 0]


def test_units_of_no_session_have_none_in_common() -> None:
    assert about([None, None, 7, 8], [0, 1])[:2] == [0, 0]


def test_a_session_is_as_near_as_its_nearest_unit_the_fewer_units_are_that_near() -> None:
    sessions = Sessions(units_in(*[7] * 2, *[8] * 2, *[9] * 16), np.arange(20))
    near = np.full(20, 0.1, np.float32)
    near[[0, 2]] = 0.9, 0.5
    found = sessions.by_meaning(near)
    assert found[0] == found[1] == pytest.approx(0.9 * 0.9), "one is that near, and nine of ten are elsewhere"
    assert found[2] == found[3] == pytest.approx(0.5 * 0.9**2)
    assert found[19] < 0.01, "all are as near as this"


@given(sessions=drawn_sessions, data=st.data())
def test_shares_are_from_0_to_1_and_never_above_the_nearest(sessions: list[int | None], data: st.DataObject) -> None:
    units, places = units_in(*sessions), st.integers(0, len(sessions) - 1)
    words = data.draw(st.lists(st.sets(places), max_size=4))
    near = np.asarray(data.draw(st.lists(st.floats(0, 1, width=32), min_size=units.size, max_size=units.size)))
    matching = Sessions(units, np.arange(units.size))
    by_words = matching.by_words([rows(*sorted(word)) for word in words])
    by_meaning = matching.by_meaning(near.astype(np.float32))
    assert ((by_words >= 0) & (by_words <= 1 + 1e-6)).all()
    assert ((by_meaning >= 0) & (by_meaning <= near.max())).all()


def test_where_nothing_matches_there_is_nothing_to_tell() -> None:
    nothing = Sessions(units_in(7, 8), rows())
    assert nothing.by_words([rows()]).size == nothing.by_meaning(np.zeros(0, np.float32)).size == 0
