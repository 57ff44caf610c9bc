"""How hard a value is to guess, roughly: may it be looked for in disguise, or would ordinary words be taken for it?"""

import math
import re
import string
from enum import Enum
from typing import Final

VALUE_CHARACTERS_MIN: Final = 8
# Below this a value is a word or a number that texts hold for other reasons, once case and punctuation do not count.
DISGUISE_BITS_MIN: Final = 40.0

# A letter of a word that can be spoken. English has fewer bits in long texts and more in short ones.
WORD_LETTER_BITS: Final = 2.3
# What was there before, or follows from the character before it, is told by its place and length.
REPEATED_BITS: Final = 4.0
REPEATED_MIN: Final = 3


class Weakness(Enum):
    """Why a value is not looked for in every form. The value says what to tell the person who registers it."""

    TOO_SHORT = f"A secret of fewer than {VALUE_CHARACTERS_MIN} characters cannot be registered."
    EASY_TO_GUESS = (
        f"The value has less than {DISGUISE_BITS_MIN:.0f} bits of estimated entropy: it is found in plain form only."
    )


def check_value(value: str) -> Weakness | None:
    """What speaks against a value: too short ones are refused, those easy to guess are known in plain form only."""
    if len(value) < VALUE_CHARACTERS_MIN:
        return Weakness.TOO_SHORT
    return None if is_hard_to_guess(value) else Weakness.EASY_TO_GUESS


def is_hard_to_guess(value: str) -> bool:
    return entropy_bits(value, enough=DISGUISE_BITS_MIN) >= DISGUISE_BITS_MIN


def entropy_bits(value: str, *, enough: float = math.inf) -> float:
    """An estimate from below: the value as it is, or with digits and signs read as the letters they resemble. The
    characters are counted until there are `enough`."""
    plain = value.translate(_LEET)
    swapped = sum(one != other for one, other in zip(value, plain, strict=True))
    return min(_bits(value, _WORD, enough), _bits(plain, _LONG_WORD, enough - swapped) + swapped)


def _bits(value: str, words: re.Pattern[str], enough: float) -> float:
    bits = 0.0
    at = 0
    symbol_bits = math.log2(_pool(value))
    while at < len(value) and bits < enough:
        if repeated := _repeated(value, at):
            bits += REPEATED_BITS
            at += repeated
        elif (word := words.match(value, at)) and _is_spoken(word[0]):
            bits += len(word[0]) * WORD_LETTER_BITS
            at = word.end()
        else:
            bits += symbol_bits
            at += 1
    return bits


def _pool(value: str) -> int:
    """How many characters there were to choose from."""
    pools = [pool for pool in _POOLS if not pool.isdisjoint(value)]
    others = set(value).difference(*_POOLS)
    return max(2, sum(map(len, pools)) + (100 if others else 0))


def _repeated(value: str, at: int) -> int:
    """The length of what begins here and was there before, or is in a row that everybody knows: abcabc, 4321."""
    length = 0
    for size in range(REPEATED_MIN, len(value) - at + 1):
        part = value[at : at + size]
        if value.find(part, 0, at + size - 1) < 0 and part.lower() not in _ROWS:
            break
        length = size
    return length


def _is_spoken(word: str) -> bool:
    lower = word.lower()
    vowels = sum(letter in "aeiouy" for letter in lower) / len(word)
    return 0.2 <= vowels <= 0.65 and not _UNSPEAKABLE.search(lower)


_POOLS: Final = tuple(
    map(frozenset, (string.ascii_lowercase, string.ascii_uppercase, string.digits, string.punctuation + " "))
)
_KNOWN: Final = ("abcdefghijklmnopqrstuvwxyz", "01234567890", "qwertyuiop", "qwertzuiop", "asdfghjkl", "!@#$%^&*()_+")
# In one string, since every character of every secret is asked for here; between them is what no secret holds.
_ROWS: Final = "\uffff".join([*_KNOWN, *(row[::-1] for row in _KNOWN)])
_WORD: Final = re.compile(r"[A-Z]?[a-z]{4,}|[A-Z]{5,}")
# Digits are taken for letters only in a word that is long enough to be meant.
_LONG_WORD: Final = re.compile(r"[A-Z]?[a-z]{6,}|[A-Z]{6,}")
# Four consonants in a row, or letters that do not meet in words.
_UNSPEAKABLE: Final = re.compile(r"[^aeiouy]{5}|q[^u]|[jvxz][bcdfghjkmnpqtvwxz]|[bcdfgkmpt][jqvxz]|(.)\1\1")
_LEET: Final = str.maketrans("@4301!5$7", "aaeoilsst")
