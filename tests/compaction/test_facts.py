"""Figures, names and dates are told by their form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple

from fieldstone.compaction.facts import facts_in


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        ("It took 1,000 ms and 3.5 GB.", ["1,000", "3.5"]),
        ("On 2025-06-15 at 14:00, the 3rd time.", ["2025-06-15", "14:00", "3rd"]),
        ("Two of twelve, one by one.", ["two", "twelve"]),
        ("No figures.", []),
    ],
)
def test_figures_are_found_in_digits_and_in_words(text: str, figures: list[str]) -> None:
    assert list(facts_in(text).figures) == figures


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Then Anna met Bob. They left.", ["anna", "bob"]),
        ("Anna left.", []),  # every word has a capital there
        ("PostgreSQL and web01 and IBM.", ["postgresql", "web01", "ibm"]),
        ("I think I'm in. What I said: The end.", []),
        ("Потом Анна уехала.", ["анна"]),
        ("It happened in May, on a Friday.", []),
    ],
)
def test_a_name_has_a_capital_that_does_not_begin_a_sentence_or_one_inside(text: str, names: list[str]) -> None:
    assert list(facts_in(text).names) == names


@pytest.mark.parametrize(
    ("text", "dates"),
    [
        ("We met last week, on Monday.", ["last", "week", "monday"]),
        ("It may rain in May.", ["may"]),
        ("They march in March and in september.", ["march", "september"]),
        ("Three years ago.", ["years", "ago"]),
    ],
)
def test_dates_are_days_months_and_what_is_seen_from_a_day(text: str, dates: list[str]) -> None:
    assert list(facts_in(text).dates) == dates


@given(text=st.text(max_size=200))
def test_every_fact_is_a_word_that_carries_meaning_and_stands_once(text: str) -> None:
    words, *facts = astuple(facts_in(text))
    assert len(words) == len(set(words))
    for each in facts:
        assert len(each) == len(set(each))
        assert set(each) <= set(words)
    assert "the" not in words
