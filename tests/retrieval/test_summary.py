"""Extractive summaries: what is kept, and what must never be lost."""

from typing import Final

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fieldstone.retrieval.summary import ELLIPSIS, READ_CHARS, Wanted, summarize
from fieldstone.testing.tokens import WordCounter

COUNT: Final = WordCounter().count
WORDS: Final = [
    "deploy",
    "never",
    "agreed",
    "3.4",
    "Alice",
    "e.g.",
    "and",
    "Friday,",
    "[REDACTED:a. B]",
    "記憶。",
    "x\n",
]

written = st.lists(st.sampled_from([*WORDS, *[f"{word}." for word in WORDS], "- item\n", "```\ncode. More\n```\n"]))
texts = written.map(" ".join) | st.text(max_size=200)
hints = st.sets(st.sampled_from(["deploys", "alice", "記憶", "code"])).map(Wanted)
NOTHING: Final = Wanted()


@given(text=texts, most_tokens=st.integers(0, 60), wanted=hints)
def test_a_summary_is_never_longer_than_it_may_be(text: str, most_tokens: int, wanted: Wanted) -> None:
    summary = summarize(text, most_tokens, COUNT, wanted)
    assert summary is None or COUNT(summary) <= most_tokens


@given(text=texts, most_tokens=st.integers(0, 60), wanted=hints)
def test_a_summary_holds_sentences_of_the_text_in_their_order_and_nothing_else(
    text: str, most_tokens: int, wanted: Wanted
) -> None:
    assume(ELLIPSIS not in text)
    at = 0
    for part in (summarize(text, most_tokens, COUNT, wanted) or "").split(ELLIPSIS):
        at = text.index(part.strip(), at) + len(part.strip())


@given(text=written.map(" ".join), most_tokens=st.integers(0, 60), wanted=hints)
def test_no_marker_is_cut(text: str, most_tokens: int, wanted: Wanted) -> None:
    summary = summarize(text, most_tokens, COUNT, wanted) or ""
    assert summary.count("[REDACTED:") == summary.count("[REDACTED:a. B]")


@given(text=texts, most_tokens=st.integers(0, 60), words=st.sets(st.sampled_from(["deploys", "alice", "code", "記憶"])))
def test_the_same_request_gives_the_same_summary(text: str, most_tokens: int, words: set[str]) -> None:
    one = summarize(text, most_tokens, COUNT, Wanted(sorted(words)))
    assert one == summarize(text, most_tokens, COUNT, Wanted(sorted(words, reverse=True)))


REPORT: Final = (
    "The team met in the morning. Coffee was served and everybody was in a good mood that day. "
    "We decided to move the cart service to Postgres 16 on 2025-06-15. Many things were said about this and that. "
    "Alice owns the migration. The deployments of the cart are not to happen on a Friday. Then everybody went home."
)


@pytest.mark.parametrize(
    ("words", "there"),
    [
        (["deploy"], "The deployments of the cart are not to happen on a Friday."),
        (["migrations"], "Alice owns the migration."),
        (["coffee"], "Coffee was served"),
        ([], "We decided to move the cart service to Postgres 16 on 2025-06-15."),
    ],
)
def test_what_is_wanted_is_kept_and_without_a_wish_what_is_specific(words: list[str], there: str) -> None:
    summary = summarize(REPORT, 22, COUNT, Wanted(words))
    assert summary is not None
    assert there in summary
    assert "Many things were said" not in summary


@pytest.mark.parametrize(
    ("said", "asked", "found"),
    [
        ("Deployments ran", "deploy", True),
        ("we deployed", "deploying", True),
        ("policies", "policy", True),
        ("releases", "release", True),
        ("Zürich", "zurich", True),
        ("長い記憶です", "記憶", True),
        ("running", "run", True),
        ("cart", "care", False),
        ("card", "cart", False),
        ("", "cart", False),
    ],
)
def test_a_word_is_found_in_its_other_forms(said: str, asked: str, found: bool) -> None:
    assert bool(Wanted([asked]).found_in(said)) == found


def test_a_text_that_is_short_enough_comes_as_it_is() -> None:
    assert summarize("  Two  words. \n", 3, COUNT, NOTHING) == "  Two  words. \n"


def test_that_something_was_redacted_is_kept_before_all_else() -> None:
    text = f"{REPORT} Their password was [REDACTED:password] and somebody wrote it down."
    summary = summarize(text, 16, COUNT, Wanted(["deploy", "friday"]))
    assert summary == "Their password was [REDACTED:password] and somebody wrote it down."


def test_where_something_was_left_out_an_ellipsis_says_so_and_neighbours_stay_as_they_stood() -> None:
    text = "Alice owns\nthe index.  Bob owns the cache. It was a long and pleasant day for all of them. Eve is gone."
    summary = summarize(text, 18, COUNT, Wanted(["alice", "bob", "eve"]))
    assert summary == "Alice owns\nthe index.  Bob owns the cache. … Eve is gone."


def test_a_sentence_that_is_too_long_is_cut_after_a_clause() -> None:
    text = "The cart service was moved to the new cluster, and the team looked at the boards for the rest of the day"
    assert summarize(text, 14, COUNT, Wanted(["cart"])) == "The cart service was moved to the new cluster…"


@pytest.mark.parametrize(
    "text",
    [
        "The cart service was moved to the new cluster, but not before the old one had been switched off for good",
        "We deploy the cart service on any day of the week, unless somebody says that the freeze has begun already",
        "All of the tests of the cart service pass now, except those that have anything to do with the payment itself",
        "All of the tests of the cart service pass now, which doesn't say much about how it works with real people",
    ],
)
def test_a_negation_is_never_cut_off(text: str) -> None:
    assert summarize(text, 14, COUNT, NOTHING) is None


@pytest.mark.parametrize(
    "text",
    [
        "word " * 40,
        "a" * 5_000,
        "Yes, " + "word " * 40,
        "```\n" + "x = 1, 2\n" * 40 + "```",
        "The cart moved to the new cluster, and somebody wrote down [REDACTED:key] for the rest of the day",
        " " * 5_000,
    ],
    ids=["no clause", "no word", "too little", "code", "redaction", "blank"],
)
def test_there_is_no_summary_where_no_useful_form_is_short_enough(text: str) -> None:
    assert summarize(text, 10, COUNT, NOTHING) is None


def test_wanted_words_are_found_deep_in_a_long_text() -> None:
    filler = "Nothing of any interest was seen on that day by anybody. " * (READ_CHARS // 10)
    text = f"{filler}The root password of the printer is on the fridge. {filler}"
    summary = summarize(text, 30, COUNT, Wanted(["printing"]))
    assert summary is not None
    assert "The root password of the printer is on the fridge." in summary


def test_of_a_long_text_half_a_sentence_is_never_taken_for_a_whole_one() -> None:
    claims = " and ".join(f"number {number} is red" for number in range(2_000))
    text = f"It is not the case that {claims}. The fridge is not blue. Still {claims}."
    assert summarize(text, 40, COUNT, Wanted(["1500", "fridge"])) == "The fridge is not blue."


@pytest.mark.parametrize(
    "unit",
    ["a", " ", ".", ". ", "\n", "x\n", ", ", "```\n", "[REDACTED:", "[REDACTED:x] ", "記、", '."', "A", "_a", "- "],
)
def test_a_long_text_of_one_thing_only_stops_nobody(unit: str) -> None:
    text = unit * (1_000_000 // len(unit)) + "x"
    summary = summarize(text, 64, COUNT, Wanted(["deploy"]))
    assert summary is None or COUNT(summary) <= 64
