"""A projector takes each event once and in order, and keeps its state to itself."""

from typing import NamedTuple

import pytest

from fieldstone.planes.projector import Projector, SequenceGap
from tests.requirements import requirement


class Word(NamedTuple):
    seq: int
    text: str


class Refused(Exception):
    """The reducer's own."""


def append(words: list[str], word: Word) -> list[str]:
    """It changes what it is given and may raise after that, as reducers of others will."""
    words.append(word.text)
    if word.text == "bad":
        raise Refused
    return words


def projector() -> Projector[list[str], Word]:
    return Projector([], append)


@requirement("planes:projector:reduces")
def test_the_reducer_takes_the_initial_state_over_each_event() -> None:
    words = Projector(["zero"], append)
    assert words.apply([Word(1, "one"), Word(2, "two")]) == 2
    assert (words.state, words.last_seq) == (["zero", "one", "two"], 2)


@requirement("planes:projector:skips")
def test_an_event_that_was_applied_is_skipped() -> None:
    words = projector()
    words.apply([Word(1, "one"), Word(2, "two")])
    assert words.apply([Word(1, "again"), Word(2, "again"), Word(3, "three")]) == 1
    assert words.state == ["one", "two", "three"]


@requirement("planes:projector:gap")
def test_a_gap_is_an_error_and_what_came_before_it_is_applied() -> None:
    words = projector()
    with pytest.raises(SequenceGap) as gap:
        words.apply([Word(1, "one"), Word(3, "three")])
    assert (gap.value.expected, gap.value.found) == (2, 3)
    assert (words.state, words.last_seq) == (["one"], 1)
    words.apply([Word(2, "two"), Word(3, "three")])
    assert words.state == ["one", "two", "three"]


@requirement("planes:projector:raises")
def test_a_reducer_that_raises_leaves_the_projector_at_the_last_good_event() -> None:
    words = projector()
    with pytest.raises(Refused):
        words.apply([Word(1, "one"), Word(2, "bad"), Word(3, "three")])
    assert (words.state, words.last_seq) == (["one"], 1)
    words.apply([Word(2, "two")])
    assert (words.state, words.last_seq) == (["one", "two"], 2)


@requirement("planes:projector:sealed")
def test_state_that_is_handed_out_cannot_change_the_inside() -> None:
    initial = ["zero"]
    words = Projector(initial, append)
    initial.append("from outside")
    words.state.append("from outside")
    words.apply([Word(1, "one")])
    words.state.clear()
    assert words.state == ["zero", "one"]


@requirement("planes:projector:reduces")
def test_a_projector_goes_on_where_a_state_was_taken() -> None:
    words = Projector(["one", "two"], append, last_seq=2)
    assert words.apply([Word(2, "two"), Word(3, "three")]) == 1
    assert words.state == ["one", "two", "three"]
