"""The words, figures, names and dates of a text: what a memory is asked for later."""

import re
from typing import Final

from msgspec import Struct

from fieldstone.detection.quantities import MONTHS, MONTHS_AND_WORDS, MULTIPLIERS, NUMBER_WORDS, WEEKDAYS
from fieldstone.detection.tables import words
from fieldstone.retrieval.words import STOP_WORDS

# A figure or a word; and what stands before it where it begins a sentence, and a capital says nothing.
TOKEN: Final = re.compile(
    r"""([.!?…:;\n。！？][\s"'“”‘’(\[*_\#>-]{0,8}+)?
        (?:(\d(?:[\d.,:/-]*\d)?[a-zA-Z]{0,4})|([^\W\d_][^\W_]*))""",
    re.VERBOSE,
)
_CASED_INSIDE: Final = re.compile(r"[^\W\d_]*(?:[A-Z]|\d)")

# When something was or will be: by the calendar, or seen from the day on which it was said.
_SEEN_FROM_A_DAY: Final = words("""
    yesterday today tomorrow tonight ago since last next day days week weeks weekend weekends month months year years
    morning afternoon evening night spring summer autumn fall winter
""")
_DATE_WORDS: Final = _SEEN_FROM_A_DAY | frozenset(WEEKDAYS) | frozenset(MONTHS) - MONTHS_AND_WORDS
COUNT_WORDS: Final = frozenset(NUMBER_WORDS) - {"one"} | frozenset(MULTIPLIERS)  # "one" counts nothing most of the time


class Facts(Struct, frozen=True, gc=False):
    """Each once, in the order of the text, in lower case."""

    words: tuple[str, ...]  # all that carry meaning, those of the other lists among them
    figures: tuple[str, ...]
    names: tuple[str, ...]
    dates: tuple[str, ...]


def facts_in(text: str) -> Facts:
    found: dict[str, None] = {}
    figures: dict[str, None] = {}
    names: dict[str, None] = {}
    dates: dict[str, None] = {}
    for begins, figure, word in TOKEN.findall("\n" + text):
        lower = (figure or word).lower()
        if figure or lower in COUNT_WORDS:
            figures[lower] = None
        elif lower in _DATE_WORDS or (lower in MONTHS_AND_WORDS and word[0].isupper() and not begins):
            dates[lower] = None
        elif lower in STOP_WORDS:
            continue
        elif is_name(word, begins):
            names[lower] = None
        found[lower] = None
    return Facts(tuple(found), tuple(figures), tuple(names), tuple(dates))


def is_name(word: str, begins: str) -> bool:
    """By its form: a capital inside a sentence, or one (or a digit) inside the word."""
    if len(word) < 2 or (word.islower() and word.isalpha()):
        return False
    return (not begins and word[0].isupper()) or _CASED_INSIDE.match(word, 1) is not None
