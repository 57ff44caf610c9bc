"""Reads the values of a sentence where they stand: quantities, labels, ordinals, days, times, identifiers."""

import re
from collections.abc import Sequence
from typing import Final

from fieldstone.detection.grammar import ARTICLES, COPULAS, DROPPED, NUMBERED, PREPOSITIONS, VERBS
from fieldstone.detection.lexicon import meaning
from fieldstone.detection.quantities import (
    BOUND_WORDS_MAX,
    BOUNDS,
    FRACTIONS,
    MONTHS,
    MONTHS_AND_WORDS,
    MULTIPLIERS,
    NUMBER_WORDS,
    ORDINAL_WORDS,
    SUFFIXES,
    TIMES_OF_DAY,
    UNITS,
    WEEKDAYS,
    YEAR,
    Moment,
    bounded,
    clock,
    iso_day,
    number_of,
)
from fieldstone.detection.stems import stem
from fieldstone.detection.tables import words
from fieldstone.detection.tokens import Raw, Token

Found = tuple[Token, int]  # the token, and where reading goes on

_NUMBER: Final = re.compile(r"([$€£]?)(\d[\d,]*(?:\.\d+)*)(\D*)")
_ORDINAL_TAILS: Final = frozenset({"st", "nd", "rd", "th"})
_BEFORE_A_YEAR: Final = words("in since by until till of from during year before after")
_BEFORE_A_UNIT: Final = words("per a each every /")
_BEFORE_MAY: Final = words("in on by since until of for last next this")
_BOUNDS_BEGIN: Final = frozenset(words[0] for words in BOUNDS)
_VALUE_WORDS: Final = (
    frozenset(NUMBER_WORDS)
    | frozenset(MULTIPLIERS)
    | frozenset(FRACTIONS)
    | frozenset(ORDINAL_WORDS)
    | frozenset(MONTHS)
    | frozenset(WEEKDAYS)
    | frozenset(TIMES_OF_DAY)
)


class Values:
    def __init__(self, words: Sequence[Raw]) -> None:
        self._words: Final = words

    def at(self, at: int, tokens: Sequence[Token], verb_at: int) -> Found | None:
        """The value that begins at a word, if one does. `tokens` are those before it."""
        word = self._words[at]
        if word.group == "word":
            return self._of_words(at) if word.lower in _VALUE_WORDS else None
        match word.group:
            case "id":
                return Token(word.lower, word.text, "id"), at + 1
            case "moment":
                return self._written_moment(at)
            case "number":
                return self._month_after(at) or self._number(at, tokens, verb_at)
            case "mixed":
                return self._mixed(word), at + 1
            case _:
                return None

    def _lower(self, at: int) -> str:
        return self._words[at].lower if 0 <= at < len(self._words) else ""

    def _mixed(self, word: Raw) -> Token:
        """ "web-01" is one of many; "sha-256" and "C++" are names."""
        numbered = re.fullmatch(r"[a-z_.-]+[-_.]?\d+", word.lower) and word.lower[-2:].isdigit()
        return Token(meaning(word.lower), word.text, "id" if numbered else "name", word.lower)

    def _written_moment(self, at: int) -> Found:
        text = self._words[at].lower
        half = self._lower(at + 1) if self._lower(at + 1) in {"am", "pm"} else ""
        moment = iso_day(text) or clock(text, half)
        if moment is None:
            return Token(text, text, "id"), at + 1
        return _moment(moment, text), at + (2 if half else 1)

    def _of_words(self, at: int) -> Found | None:
        lower = self._lower(at)
        if lower in WEEKDAYS:
            return _moment(Moment(weekday=WEEKDAYS[lower]), self._words[at].text), at + 1
        if lower in TIMES_OF_DAY:
            return _moment(Moment(minute=TIMES_OF_DAY[lower]), lower), at + 1
        if lower in MONTHS and self._is_month(at):
            return self._month(at)
        if lower in FRACTIONS and self._lower(at + 1) in {"of", "the"}:
            return self._finished(at, at + 1, FRACTIONS[lower], unit="%")
        if lower in ORDINAL_WORDS and self._lower(at - 1) not in _BEFORE_A_UNIT:
            return _ordinal(ORDINAL_WORDS[lower], lower), at + 1
        if lower in NUMBER_WORDS or (lower in MULTIPLIERS and self._lower(at - 1) == "a"):
            return self._spelled(at)
        return None

    def _is_month(self, at: int) -> bool:
        word = self._words[at]
        if not word.text[0].isupper():
            return word.lower not in MONTHS_AND_WORDS and len(word.lower) > 3
        beside_digits = self._lower(at + 1)[:1].isdigit() or self._lower(at - 1)[:1].isdigit()
        return word.lower not in MONTHS_AND_WORDS or beside_digits or self._lower(at - 1) in _BEFORE_MAY

    def _month(self, at: int) -> Found:
        """ "May", "May 3rd", "May 2024", "May 3, 2024"."""
        month, end, day = MONTHS[self._lower(at)], at + 1, None
        digits = self._lower(end).rstrip("stndrh")
        if digits.isdigit() and 1 <= int(digits) <= 31:
            day, end = int(digits), end + 1
        return self._with_year(at, end, month, day)

    def _month_after(self, at: int) -> Found | None:
        """ "3 May", "3rd of May 2024"."""
        digits = self._lower(at).rstrip("stndrh")
        end = at + 2 if self._lower(at + 1) == "of" else at + 1
        if not digits.isdigit() or self._lower(end) not in MONTHS or not self._words[end].text[0].isupper():
            return None
        return self._with_year(at, end + 1, MONTHS[self._lower(end)], int(digits))

    def _with_year(self, at: int, end: int, month: int, day: int | None) -> Found:
        year_at = end + 1 if self._lower(end) == "," else end
        year = None
        if YEAR.fullmatch(self._lower(year_at)):
            year, end = int(self._lower(year_at)), year_at + 1
        return _moment(Moment(year, month, day), _text(self._words[at:end])), end

    def _number(self, at: int, tokens: Sequence[Token], verb_at: int) -> Found:
        match = _NUMBER.fullmatch(self._lower(at))
        if match is None:
            return Token(self._lower(at), self._words[at].text, "id"), at + 1
        currency, digits, tail = match.groups()
        if tail in _ORDINAL_TAILS:
            return _ordinal(int(number_of(digits)), self._words[at].text), at + 1
        half = tail or self._lower(at + 1)
        if half in {"am", "pm"} and (moment := clock(digits, half)):
            return _moment(moment, f"{digits} {half}"), at + (1 if tail else 2)
        if not tail and not currency and self._is_year(at, digits):
            return _moment(Moment(year=int(digits)), digits), at + 1
        if not tail and not currency and self._is_label(at, digits, tokens, verb_at):
            return _label(digits, tokens[-1].key if tokens else ""), at + 1
        if digits.count(".") > 1:
            return _label(digits, ""), at + 1
        return self._quantity(at, currency, number_of(digits), tail)

    def _is_year(self, at: int, digits: str) -> bool:
        """ "in 2023", "the 2023 audit"; not "2023 requests"."""
        before, after = self._lower(at - 1), self._lower(at + 1)
        stands_before_one = before in ARTICLES and after.isalpha() and not after.endswith("s")
        return bool(YEAR.fullmatch(digits)) and (before in _BEFORE_A_YEAR or stands_before_one)

    def _is_label(self, at: int, digits: str, tokens: Sequence[Token], verb_at: int) -> bool:
        """Whether it belongs to the word before ("port 80", "Run 12 finished") and counts nothing after it."""
        before, after = self._lower(at - 1), self._lower(at + 1)
        is_verb_before = (
            verb_at == len(tokens) - 1 and bool(tokens) and tokens[-1].stem in VERBS and tokens[-1].kind == "word"
        )
        if not tokens or before in DROPPED or before in PREPOSITIONS or not before.isalpha():
            return False
        if tokens[-1].stem in NUMBERED and not before.endswith("s") and after not in UNITS and not is_verb_before:
            return True
        if is_verb_before:
            return False
        if digits.count(".") > 1 or not after or not after.isalpha():
            return after not in UNITS and after not in MULTIPLIERS
        said_of_it = after in DROPPED or after in PREPOSITIONS or (stem(after) in VERBS and after.endswith(("s", "ed")))
        return said_of_it and after not in UNITS

    def _quantity(self, at: int, currency: str, value: float, tail: str) -> Found:
        end = at + 1
        unit, factor = UNITS.get(currency, ("", 1.0))
        if tail in UNITS:
            unit, factor = UNITS[tail]
        elif tail in SUFFIXES:
            value *= SUFFIXES[tail]
        elif tail:
            return Token(self._lower(at), self._words[at].text, "name", self._lower(at)), end
        if self._lower(end) in MULTIPLIERS:
            value, end = value * MULTIPLIERS[self._lower(end)], end + 1
        return self._finished(at, end, value, unit, factor)

    def _spelled(self, at: int) -> Found | None:
        lower = self._lower(at)
        if lower == "one" and not self._counts(at + 1):
            return None
        value, end = float(NUMBER_WORDS.get(lower, 1)), at + (lower in NUMBER_WORDS)
        if value >= 20 and 0 < NUMBER_WORDS.get(self._lower(end), 0) < 10:
            value, end = value + NUMBER_WORDS[self._lower(end)], end + 1
        while self._lower(end) in MULTIPLIERS:
            value, end = value * MULTIPLIERS[self._lower(end)], end + 1
        return self._finished(at, end, value)

    def _bound_before(self, at: int) -> str:
        before = tuple(self._lower(place) for place in range(max(at - BOUND_WORDS_MAX, 0), at))
        return next((BOUNDS[before[start:]] for start in range(len(before)) if before[start:] in BOUNDS), "")

    def bound_words(self, at: int) -> int:
        """How many words from here on only say how a number is meant: "at least" before "100"."""
        if self._words[at].lower not in _BOUNDS_BEGIN:
            return 0
        for count in range(BOUND_WORDS_MAX, 0, -1):
            words = tuple(self._lower(place) for place in range(at, at + count))
            if words in BOUNDS:
                following = self._lower(at + count)
                return count if following[:1].isdigit() or following[:1] in "$€£" or following in NUMBER_WORDS else 0
        return 0

    def _counts(self, at: int) -> bool:
        following = self._lower(at)
        plain = {"day", "time", "thing", "night", "more"}
        return following.isalpha() and following not in DROPPED | PREPOSITIONS | COPULAS | plain

    def _finished(self, at: int, end: int, value: float, unit: str = "", factor: float = 1.0) -> Found:
        """With the unit behind the number, and the bound before it."""
        if not unit and self._lower(end) in UNITS and self._lower(end) not in {"us", "in", "m", "b"}:
            unit, factor = UNITS[self._lower(end)]
            end += 1
        quantity = bounded(value * factor, unit, self._bound_before(at))
        key = f"#{quantity.low:g}:{quantity.high:g}:{unit}"
        return Token(key, _text(self._words[at:end]), "number", quantity=quantity), end


def _moment(moment: Moment, text: str) -> Token:
    return Token("@" + ":".join(map(str, moment)), text, "moment", moment=moment)


def _ordinal(number: int, text: str) -> Token:
    return Token(f"{number}.", text, "ordinal")


def _label(digits: str, label: str) -> Token:
    return Token(f"{label}~{digits}", digits, "label", label=label)


def _text(words: Sequence[Raw]) -> str:
    return " ".join(word.text for word in words)
