"""How text is read: values, negations, where the subject ends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.detection import prepare
from fieldstone.detection.statements import WORDS_MAX, Statement


def read(text: str) -> Statement:
    (statement,) = prepare(text).statements
    return statement


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("It takes 1,000 ms.", "It takes one second."),
        ("It takes 90 minutes.", "It takes 1.5 hours."),
        ("It costs $5.", "It costs five dollars."),
        ("It has twenty five rows.", "It has 25 rows."),
        ("It has 2 million rows.", "It has 2M rows."),
        ("It is due on May 3rd, 2024.", "It is due on 3 May 2024."),
        ("It starts at 2 pm.", "It starts at 14:00."),
        ("It came second.", "It came 2nd."),
        ("It is in the living room.", "They are in the living rooms."),
        ("It doesn't start.", "It does not start."),
        ("The kid is close to the car.", "The child is near the automobile."),
    ],
)
def test_what_means_the_same_has_the_same_keys(one: str, other: str) -> None:
    assert read(one).keys == read(other).keys


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("It does not work.", 1),
        ("Nobody cannot work.", 2),
        ("It no longer works.", 1),
        ("It is not only slow.", 0),
        ("No, it works.", 0),
        ("It holds no more than 5 files.", 0),
        ("Not all files work.", 0),
    ],
)
def test_negations_are_counted_where_they_deny(text: str, count: int) -> None:
    assert read(text).negations == count


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("The API rate limit is 100.", 3),
        ("Backups start at noon.", 1),
        ("The old parser failed.", 2),
        ("Users can delete files.", 1),
        ("Run the tests.", 0),
        ("Test coverage is low.", 2),
    ],
)
def test_the_subject_ends_before_the_verb(text: str, subject: int) -> None:
    assert read(text).verb_at == subject


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("port 8080", ["word", "label"]),
        ("8080 ports", ["number", "word"]),
        ("host web-01", ["word", "id"]),
        ("see src/app.py and OPS-12", ["word", "id", "id"]),
        ("on 2024-03-01 at 10:00", ["moment", "moment"]),
        ("the third floor", ["ordinal", "word"]),
        ("founded in 1998", ["word", "moment"]),
        ("uses Redis", ["word", "name"]),
    ],
)
def test_values_are_told_apart_by_how_they_are_written(text: str, kinds: list[str]) -> None:
    assert [token.kind for token in read(text).tokens] == kinds


def test_the_month_of_may_is_not_a_possibility() -> None:
    assert not read("The release is on May 3.").possible
    assert read("The release may be late.").possible


@given(st.text(max_size=300))
def test_any_text_can_be_read_and_a_statement_stays_bounded(text: str) -> None:
    for statement in prepare(text).statements:
        assert 0 < len(statement.tokens) <= WORDS_MAX + 1
        assert 0 <= statement.verb_at <= len(statement.tokens)
