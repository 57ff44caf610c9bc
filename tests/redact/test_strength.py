"""Which values may be looked for in disguise."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.redact import Weakness, check_value
from fieldstone.redact.strength import DISGUISE_BITS_MIN, entropy_bits
from tests.redact.fakes import ALNUM, HEX, TOKENS, noise


@pytest.mark.parametrize("value", ["", "a", "a1b2c3d", "日本語の鍵です"])
def test_fewer_than_eight_characters_are_too_short(value: str) -> None:
    assert check_value(value) is Weakness.TOO_SHORT


@pytest.mark.parametrize(
    "value",
    [
        *("password", "Password123!", "p@ssw0rd", "P4ssword!", "administrator", "changeme!changeme!", "letmein2024"),
        *("12345678", "87654321", "aaaaaaaaaaaaaaaa", "abcabcabcabc", "qwertyuiop", "20241115", "hunter2hunter2"),
    ],
)
def test_words_dates_and_rows_are_easy_to_guess(value: str) -> None:
    assert check_value(value) is Weakness.EASY_TO_GUESS


@pytest.mark.parametrize(
    "value",
    [
        *TOKENS.values(),
        *(noise(length, alphabet) for length in (16, 20, 32) for alphabet in (ALNUM, HEX) for _ in range(20)),
        *("correct horse battery staple", "zuveko-tamiri-pasolu-nedami", "8e07ada6-359e-3493-8986-5b27c094c46c"),
    ],
)
def test_tokens_and_long_passphrases_are_hard_to_guess(value: str) -> None:
    assert check_value(value) is None


@given(value=st.text(min_size=8, max_size=40))
def test_a_value_is_easy_to_guess_exactly_below_the_bits_that_disguise_needs(value: str) -> None:
    assert entropy_bits(value) > 0
    assert (check_value(value) is None) == (entropy_bits(value) >= DISGUISE_BITS_MIN)
