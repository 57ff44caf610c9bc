"""The words by which units about the same subject are looked up."""

import tomllib
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from fieldstone.detection import subject_terms

PAIRS = tomllib.loads((Path(__file__).parent / "pairs.toml").read_text(encoding="utf-8"))


def test_names_and_the_subject_come_before_what_is_said() -> None:
    assert subject_terms("The billing gateway uses PostgreSQL for a slow report.", 3) == [
        "billing",
        "gateway",
        "postgresql",
    ]


def test_numbers_and_times_are_no_terms() -> None:
    assert subject_terms("The limit is 100 requests on Monday at 10:00.") == ["limit", "requests"]


def test_a_question_has_no_subject_to_contradict() -> None:
    assert subject_terms("Who owns the billing service?") == []


@given(st.text(max_size=200), st.integers(1, 10))
def test_there_are_never_more_terms_than_asked_for_and_none_twice(text: str, most: int) -> None:
    terms = subject_terms(text, most)
    assert len(terms) <= most
    assert len(set(terms)) == len(terms)


def test_statements_that_oppose_each_other_share_a_term() -> None:
    opposed = [pair for lists in PAIRS.values() for pair in lists.get("opposed", [])]
    # Six letters stand for the stemmer of a full-text index.
    apart = [
        pair
        for pair in opposed
        if not {t[:6] for t in subject_terms(pair[0])} & {t[:6] for t in subject_terms(pair[1])}
    ]
    assert len(apart) <= 0.05 * len(opposed), apart
