"""A page within its token budget."""

from itertools import product
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.retrieval.budget import (
    LEAST_WORTH,
    LEFT_OUT,
    PRESENCE_SHARE,
    SUMMARY_TOKENS,
    Form,
    Format,
    Forms,
    Packed,
    Piece,
    choose,
    condense,
    pack,
    share,
)
from fieldstone.retrieval.summary import ELLIPSIS, Wanted
from fieldstone.testing.tokens import WordCounter

COUNTER: Final = WordCounter()
WORDS: Final = [
    "deploy",
    "cache",
    "never",
    "agreed",
    "42",
    "Alice",
    "Friday,",
    "on",
    "the",
    "[REDACTED:key]",
    "release",
]

said = st.lists(st.sampled_from(WORDS), min_size=1, max_size=30).map(lambda words: " ".join(words) + ".")
texts = st.lists(said, max_size=12).map(" ".join)
scores = st.sampled_from([0.0, 0.3, 0.5, 0.9]) | st.floats(0, 1)
pages = st.lists(st.builds(Piece, texts, scores), max_size=12).map(
    lambda pieces: sorted(pieces, key=lambda p: -p.score)
)
short_pages = st.lists(st.builds(Piece, said, scores), max_size=8).map(
    lambda pieces: sorted(pieces, key=lambda piece: -piece.score)
)
budgets = st.integers(0, 400)
formats = st.sampled_from(["full", "summary"])
hints = st.sets(st.sampled_from(["deployments", "friday", "alice", "caching"]))


def forms_of(drawn: list[tuple[int, float]]) -> Forms:
    return [LEFT_OUT, *(Form(str(at), "full", *form) for at, form in enumerate(sorted(drawn)))]


units = st.lists(st.lists(st.tuples(st.integers(0, 12), st.floats(0, 1)), max_size=3).map(forms_of), max_size=6)


def worth_of(forms: list[Form]) -> float:
    return sum(form.worth for form in forms)


def tokens_of(forms: list[Form]) -> int:
    return sum(form.tokens for form in forms)


def optimum(units: list[Forms], max_tokens: int) -> float:
    return max(worth_of(list(forms)) for forms in product(*units) if tokens_of(list(forms)) <= max_tokens)


@given(units=units, max_tokens=st.integers(0, 60))
def test_no_choice_of_forms_is_worth_more_than_the_one_that_is_made(units: list[Forms], max_tokens: int) -> None:
    chosen = choose(units, max_tokens)
    assert tokens_of(chosen) <= max_tokens
    assert all(form in forms for form, forms in zip(chosen, units, strict=True))
    assert worth_of(chosen) == pytest.approx(optimum(units, max_tokens))


@given(units=units, max_tokens=st.integers(0, 60))
def test_where_there_are_too_many_to_be_exact_the_budget_is_kept_all_the_same(
    units: list[Forms], max_tokens: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fieldstone.retrieval.budget.MOST_CELLS", 0)
        chosen = choose(units, max_tokens)
    assert tokens_of(chosen) <= max_tokens
    dearest = max((form.worth for forms in units for form in forms), default=0.0)
    assert worth_of(chosen) >= optimum(units, max_tokens) - dearest - 1e-9


@given(page=pages, max_tokens=budgets, wanted=hints, format=formats)
def test_a_page_never_goes_above_its_budget_and_tells_what_it_used(
    page: list[Piece], max_tokens: int, wanted: set[str], format: Format
) -> None:
    packed = pack(page, max_tokens, COUNTER, wanted=wanted, format=format)
    assert packed.tokens_used == sum(COUNTER.count(content.text) for content in packed.contents)
    assert packed.tokens_used <= max_tokens


@given(page=pages, max_tokens=budgets, wanted=hints, format=formats)
def test_every_piece_is_packed_or_left_out_exactly_once_and_in_page_order(
    page: list[Piece], max_tokens: int, wanted: set[str], format: Format
) -> None:
    packed = pack(page, max_tokens, COUNTER, wanted=wanted, format=format)
    shown = [content.piece for content in packed.contents]
    assert shown == sorted(shown)
    assert packed.left_out == sorted(packed.left_out)
    assert sorted(shown + packed.left_out) == list(range(len(page)))


@given(page=pages, max_tokens=budgets, wanted=hints, format=formats)
def test_what_is_shown_stands_in_the_original_but_for_the_ellipsis(
    page: list[Piece], max_tokens: int, wanted: set[str], format: Format
) -> None:
    for content in pack(page, max_tokens, COUNTER, wanted=wanted, format=format).contents:
        original = page[content.piece].content
        assert content.format == format or content.format == "summary"
        if content.format == "full":
            assert content.text == original
        at = 0
        for part in content.text.split(ELLIPSIS):
            at = original.index(part.strip(), at) + len(part.strip())


@given(page=pages, max_tokens=budgets, more=st.integers(0, 100), wanted=hints)
def test_a_larger_budget_never_keeps_less(page: list[Piece], max_tokens: int, more: int, wanted: set[str]) -> None:
    """The best unit counts first: it comes in as soon as there is room for it, even where it pushes others out."""
    small, large = (pack(page, tokens, COUNTER, wanted=wanted) for tokens in (max_tokens, max_tokens + more))
    assert has_best(small) <= has_best(large)
    if has_best(small) == has_best(large):
        assert kept(page, small, wanted) <= kept(page, large, wanted) + 1e-9


@given(page=short_pages, max_tokens=st.integers(0, 120))
def test_of_short_texts_nine_tenths_of_the_best_possible_page_are_there(page: list[Piece], max_tokens: int) -> None:
    worths = [piece.score + LEAST_WORTH for piece in page]
    packed = pack(page, max_tokens, COUNTER)
    full = [
        [LEFT_OUT, Form(piece.content, "full", COUNTER.count(piece.content), worth)]
        for piece, worth in zip(page, worths, strict=True)
    ]
    if page and full[0][1].tokens <= max_tokens:
        del full[0][0]
    assert kept(page, packed, set()) >= 0.9 * optimum(full, max_tokens)


def has_best(packed: Packed) -> bool:
    return 0 not in packed.left_out


def kept(page: list[Piece], packed: Packed, wanted: set[str]) -> float:
    return sum(
        (page[at].score + LEAST_WORTH)
        * (share(page[at].content, text, Wanted(wanted)) if text != page[at].content else 1)
        for at, text, _ in packed.contents
    )


LONG: Final = " ".join(f"Point {number} was seen by Alice in the release of that week." for number in range(60))


@pytest.mark.parametrize("max_tokens", [16, 40, 100, 500])
def test_the_best_piece_is_there_even_where_only_a_short_summary_of_it_fits(max_tokens: int) -> None:
    page = [Piece(LONG, 0.9), *[Piece("The cache was cold.", 0.8)] * 200]
    packed = pack(page, max_tokens, COUNTER)
    assert packed.contents[0].piece == 0
    assert packed.contents[0].format == "summary"


def test_where_everything_fits_everything_is_there_in_full() -> None:
    page = [Piece(LONG, 0.9), Piece("The cache was cold.", 0.0), Piece("", 0.0)]
    whole = sum(COUNTER.count(piece.content) for piece in page)
    packed = pack(page, whole, COUNTER)
    assert [content.text for content in packed.contents] == [piece.content for piece in page]
    assert (packed.tokens_used, packed.left_out) == (whole, [])


def test_a_long_text_gives_way_to_its_summary_where_others_would_have_no_room() -> None:
    page = [Piece(LONG, 0.9), Piece(LONG, 0.8), Piece("The cache was cold.", 0.7)]
    packed = pack(page, COUNTER.count(LONG), COUNTER)
    assert [content.format for content in packed.contents] == ["summary", "summary", "full"]


def test_an_irrelevant_piece_is_shown_where_there_is_room_and_left_out_where_there_is_none() -> None:
    page = [Piece("The cache was cold.", 0.9), Piece("The sky was blue.", 0.0)]
    assert pack(page, 10, COUNTER).left_out == []
    assert pack(page, 9, COUNTER).left_out == [1]


def test_in_format_summary_long_texts_are_summaries_and_short_ones_come_as_they_are() -> None:
    page = [Piece("The cache was cold.", 0.9), Piece(LONG, 0.8)]
    packed = pack(page, 10_000, COUNTER, format="summary")
    assert [content.format for content in packed.contents] == ["summary", "summary"]
    assert packed.contents[0].text == "The cache was cold."
    assert COUNTER.count(packed.contents[1].text) <= SUMMARY_TOKENS
    assert [content.text for content in packed.contents] == [condense(piece.content, COUNTER) for piece in page]


@pytest.mark.parametrize("words", [60, 90, 95, 96, 120])
def test_with_and_without_a_budget_the_same_texts_are_short_enough_for_format_summary(words: int) -> None:
    text = ("one two three four. " * words).strip()[: words * 4]
    packed = pack([Piece("First.", 1.0), Piece(text, 0.5)], 10_000, COUNTER, format="summary")
    assert packed.contents[1].text == condense(text, COUNTER)


def test_a_summary_with_more_of_the_wanted_words_keeps_more_and_never_all() -> None:
    text = "Alice agreed. Bob was there. The cache was cold. Friday came."
    wanted = Wanted(["alice", "friday"])
    none, one, both = (
        share(text, said, wanted) for said in ("Bob was there.", "Alice agreed.", "Alice agreed. … Friday came.")
    )
    assert PRESENCE_SHARE < none < one < both < 1


def test_what_cannot_come_into_the_page_is_never_tokenised() -> None:
    page = [Piece(f"Unit {number} says that the cache was cold on that day.", 0.5) for number in range(1_000)]
    counter = Listening()
    packed = pack(page, 100, counter)
    assert packed.tokens_used > 90
    assert len(counter.heard) < 50


def test_a_short_and_good_piece_at_the_end_of_a_long_page_is_not_overlooked() -> None:
    page = [*[Piece(LONG, 0.5)] * 500, Piece("Use port 8420.", 0.49)]
    assert 500 not in pack(page, 1_000, COUNTER).left_out


class Listening(WordCounter):
    """Remembers what it was asked."""

    def __init__(self) -> None:
        self.heard: set[str] = set()

    def count(self, text: str) -> int:
        self.heard.add(text)
        return super().count(text)
