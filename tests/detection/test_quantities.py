"""Numbers and times as values: what can both hold, what cannot."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.detection.quantities import (
    INFINITE,
    Moment,
    Quantity,
    bounded,
    can_be_one,
    can_both_hold,
    clock,
    iso_day,
    same_version,
)

VALUES = st.floats(0.01, 1e9)
BOUNDS = st.sampled_from(("", "least", "most", "about"))


@given(VALUES, BOUNDS, VALUES, BOUNDS)
def test_whether_two_numbers_can_both_hold_does_not_depend_on_their_order(x: float, p: str, y: float, q: str) -> None:
    a, b = bounded(x, "", p), bounded(y, "", q)
    assert can_both_hold(a, b) == can_both_hold(b, a)


@given(VALUES, BOUNDS, BOUNDS)
def test_a_number_can_hold_beside_itself_however_it_is_bounded(value: float, p: str, q: str) -> None:
    assert can_both_hold(bounded(value, "", p), bounded(value, "", q))


def test_bounds_that_leave_nothing_between_them_cannot_both_hold() -> None:
    assert not can_both_hold(Quantity(5, INFINITE, ""), Quantity(-INFINITE, 3, ""))
    assert can_both_hold(Quantity(3, INFINITE, ""), Quantity(-INFINITE, 5, ""))


@pytest.mark.parametrize(("gigabytes", "same"), [(1.0, True), (1.073741824, True), (2.0, False)])
def test_a_gigabyte_may_be_counted_in_tens_or_in_twos(gigabytes: float, same: bool) -> None:
    assert can_both_hold(Quantity(1e9, 1e9, "byte"), bounded(gigabytes * 1e9, "byte", "")) is same


@pytest.mark.parametrize(
    ("a", "b", "one"),
    [
        (Moment(month=5, day=3), Moment(2024, 5, 3), True),
        (Moment(month=5, day=3), Moment(month=5, day=4), False),
        (Moment(2023), Moment(2024, 5), False),
        (Moment(weekday=0), Moment(month=5), True),
        (Moment(minute=600), Moment(minute=660), False),
    ],
)
def test_moments_are_one_when_nothing_that_both_name_differs(a: Moment, b: Moment, one: bool) -> None:
    assert can_be_one(a, b) is can_be_one(b, a) is one


@pytest.mark.parametrize(
    ("a", "b", "same"), [("3.11", "3.11.2", True), ("3.11", "3.1", False), ("14", "14", True), ("2.0", "3.0", False)]
)
def test_a_version_that_says_less_is_the_same_version(a: str, b: str, same: bool) -> None:
    assert same_version(a, b) is same_version(b, a) is same


@pytest.mark.parametrize(
    ("text", "half", "minute"), [("12:30", "am", 30), ("12", "pm", 720), ("2", "pm", 840), ("14:00", "", 840)]
)
def test_a_clock_of_twelve_hours_reads_as_one_of_twenty_four(text: str, half: str, minute: int) -> None:
    assert clock(text, half) == Moment(minute=minute)


def test_a_day_is_read_with_its_time() -> None:
    assert iso_day("2024-03-01T10:30") == Moment(2024, 3, 1, minute=630)
    assert iso_day("2024-03-01") == Moment(2024, 3, 1)
