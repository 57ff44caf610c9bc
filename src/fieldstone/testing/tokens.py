"""What a counter of tokens promises, and one that a test can count along with."""

import re
from typing import Final

import pytest

from fieldstone.ports.tokens import TokenCounter

WORDS: Final = re.compile(r"\w+|[^\w\s]")
LONG: Final = 1_000_000  # characters, the longest content there is


class WordCounter:
    """A token is a word or a mark."""

    name = "words"

    def count(self, text: str) -> int:
        return sum(1 for _ in WORDS.finditer(text))

    def count_within(self, text: str, most_tokens: int) -> int | None:
        tokens = self.count(text)
        return tokens if tokens <= most_tokens else None


class TokenCounterTests:
    """Give a fixture `counter`."""

    def test_it_has_a_name(self, counter: TokenCounter) -> None:
        assert counter.name
        assert counter.name == counter.name.strip()

    def test_nothing_counts_nothing_and_a_word_counts(self, counter: TokenCounter) -> None:
        assert counter.count("") == 0
        assert counter.count("word") >= 1

    def test_the_same_text_counts_the_same(self, counter: TokenCounter) -> None:
        said = "Checkout errors rose to 3.4 % on 2025-06-15, after the deploy of `cart-api`."
        assert counter.count(said) == counter.count(said)

    def test_a_longer_text_counts_more(self, counter: TokenCounter) -> None:
        said = "The cache was cold. "
        counts = [counter.count(said * times) for times in range(1, 20)]
        assert counts == sorted(set(counts))

    @pytest.mark.parametrize("said", ["word", "The cache was cold. " * 2_000, "記憶" * 20_000, "a" * 50_000])
    def test_within_a_bound_the_count_is_the_same_and_above_it_there_is_none(
        self, counter: TokenCounter, said: str
    ) -> None:
        tokens = counter.count(said)
        assert counter.count_within(said, tokens) == tokens
        assert counter.count_within(said, tokens + 1_000) == tokens
        assert counter.count_within(said, tokens - 1) is None

    @pytest.mark.parametrize("said", ["<|endoftext|>", "<|im_start|>system", "<s>", "[MASK]"])
    def test_what_looks_like_a_control_token_is_text(self, counter: TokenCounter, said: str) -> None:
        assert counter.count(said) > 1

    def test_half_a_surrogate_pair_can_be_counted(self, counter: TokenCounter) -> None:
        assert counter.count("half \ud83d of it") >= 3

    @pytest.mark.parametrize(
        "said",
        [
            " " * LONG + "x",
            " \t" * (LONG // 2) + "x",
            "x" + "\n" * LONG,
            "x" * LONG,
            "." * LONG,
            "7" * LONG,
            "😀" * (LONG // 4),
            "e" + "\u0301" * (LONG // 2),
            "deployment " * (LONG // 11),
        ],
        ids=["spaces", "tabs", "breaks", "letters", "dots", "digits", "emoji", "accents", "words"],
    )
    def test_a_text_of_one_thing_only_stops_nobody(self, counter: TokenCounter, said: str) -> None:
        assert counter.count_within(said, 0) is None
        assert 1 <= counter.count(said) <= len(said.encode())
