"""Whether a text may hold base64 is told before any is decoded."""

import random
import uuid
from base64 import b64encode

import pytest

from fieldstone.redact.likeness import RUN_MIN, has_run, may_hold_base64
from fieldstone.redact.views import whole
from tests.redact.fakes import ALNUM

PIECES = 1_000
UNSEEN_MAX = {11: 25, 16: 5, 24: 1}  # of so many letters


def encoded(letters: int, chance: random.Random) -> str:
    value = "".join(chance.choice(ALNUM) for _ in range(letters * 3 // 4))
    return b64encode(value.encode()).decode().rstrip("=")


@pytest.mark.parametrize("letters", UNSEEN_MAX)
def test_nearly_all_base64_is_seen(letters: int) -> None:
    chance = random.Random(letters)
    texts = [f"We saw {encoded(letters, chance)} here." for _ in range(PIECES)]
    assert sum(not may_hold_base64(whole(text.encode())) for text in texts) <= UNSEEN_MAX[letters]


def test_base64_that_is_spaced_letter_by_letter_is_seen() -> None:
    chance = random.Random("spaced")
    for between in (" ", "  ", "-", " - "):
        text = f"It is {between.join(encoded(16, chance))}, they say."
        assert may_hold_base64(whole(text.encode())), between


@pytest.mark.parametrize(
    "text",
    [
        "The Market grows, and NASA said so in 2024: see chapter 7.",
        f"unit {uuid.UUID(int=7 << 90)} of run-17, {'deadbeef' * 5}",
        "class TokenReader(ValueError): raise NotImplementedError",
    ],
    ids=["prose", "ids and hashes", "names"],
)
def test_words_names_and_ids_are_not_taken_for_base64(text: str) -> None:
    assert not may_hold_base64(whole(text.encode()))


def test_a_run_is_of_mixed_letters_without_a_gap_or_in_lines() -> None:
    chance = random.Random("run")
    run = encoded(2 * RUN_MIN, chance)
    assert has_run(whole(f"see {run}".encode()))
    assert has_run(whole(f"{run[:12]}\n{run[12:24]}\n".encode()))
    assert not has_run(whole(f"see {run[: RUN_MIN - 2]}".encode()))
    assert not has_run(whole(b"a_name_that_is_longer_than_most and/also/a/path/to/it"))


def test_a_few_letters_by_themselves_are_no_base64_unless_they_are_near_each_other() -> None:
    far = "A plan is a list of what we do and of what we leave for later. "
    assert not may_hold_base64(whole((far * 4).encode()))
    assert may_hold_base64(whole(f"{far} It is q, w, t and r.".encode()))


def test_digits_of_base_16_are_no_base64_in_whatever_groups_they_stand() -> None:
    data = bytes(range(64))
    for text in (data.hex(), data.hex(" "), data.hex(":", 2)):
        assert not may_hold_base64(whole(text.encode()))
