"""What a summary says that none of its sources does. A model's summary is not believed before this finds nothing.

It reads forms, not meaning: a figure, a name or a date that stands nowhere in the sources is found, a false sentence
made of true words is not. In doubt it finds too much: then the group is quoted instead, and nothing wrong is kept.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from fieldstone.compaction.facts import TOKEN, is_name
from fieldstone.detection.quantities import MONTHS, MONTHS_AND_WORDS, NUMBER_WORDS, ORDINAL_WORDS, WEEKDAYS
from fieldstone.detection.tables import words
from fieldstone.retrieval.words import STOP_WORDS

_THOUSANDS: Final = re.compile(r"(?<![\d,])\d{1,3}(?:,\d{3})+(?![\d,])")
_SPELLED: Final = re.compile(
    r"\b(twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)[\s-](one|two|three|four|five|six|seven|eight|nine)\b",
    re.IGNORECASE,
)
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")
_MONTH: Final = "|".join(sorted(MONTHS, key=len, reverse=True))
_DAY: Final = re.compile(
    rf"\b({_MONTH})\.?\s+(\d{{1,2}})(?:st|nd|rd|th)?\b|\b(\d{{1,2}})(?:st|nd|rd|th)?\.?\s+(?:of\s+)?({_MONTH})\b",
    re.IGNORECASE,
)
_ISO_DAY: Final = re.compile(r"\b\d{4}-(\d\d)-(\d\d)")
_SHORT_DAY: Final = re.compile(r"\b(\d{1,2})[/.](\d{1,2})[/.]\d{2,4}\b")
_CLOCK: Final = re.compile(r"\b(\d{1,2}):\d\d")
# One name, though marks stand in it: `retry_after_ms`, `ops@example.com`, `config.yaml`.
_IDENTIFIER: Final = re.compile(r"(?<!\w)[^\W_]++(?:[_@]++[^\W_]++|\.(?=[^\W\d_]{2})[^\W_]++)++")

_DAY_WORDS: Final = words("yesterday today tomorrow tonight")
# They begin sentences and are no names, beside the function words and those that their ending gives away.
_OPENERS: Final = words("""
    additional another both despite earlier every everybody everyone further however instead key later many meanwhile
    moreover nobody none nothing notes now one others overall people several since somebody someone something summary
    team thus together work yes
""")
_OPENERS_END: Final = ("ly", "ing", "ed", "ion", "ions", "ment", "ments", "ness", "ity", "ants", "ers", "ors", "ies")


def invented(summary: str, sources: Iterable[str]) -> list[str]:
    """The figures, names and dates of a summary that no source has, each once.

    To the sources belongs all that a summary may name: the texts, and who said them.
    """
    said, told = _Said.of("\n".join(sources)), _plain(summary)
    tokens = (
        figure or word for begins, figure, word in TOKEN.findall("\n" + told) if _is_new(begins, figure, word, said)
    )
    days = (found.group() for found in _DAY.finditer(told) if not said.days.intersection(_days(found.group())))
    identifiers = (name for name in _IDENTIFIER.findall(told) if name.lower() not in said.text)
    return list(dict.fromkeys([*tokens, *days, *identifiers]))


class _Said(NamedTuple):
    """What the sources say, generously read: "14:00" is 2 o'clock as well, 5/6 may be a day of May or of June."""

    text: str
    words: frozenset[str]
    numbers: frozenset[str]
    months: frozenset[int]
    days: frozenset[tuple[int, int]]

    @classmethod
    def of(cls, text: str) -> "_Said":
        plain = _plain(text)
        found = frozenset((figure or word).lower() for _, figure, word in TOKEN.findall("\n" + plain))
        days = frozenset(_days(plain))
        months = {MONTHS[word] for word in found if word in MONTHS} | {month for month, _ in days}
        return cls(plain.lower(), found, frozenset(_numbers(plain, found)), frozenset(months), days)


def _is_new(begins: str, figure: str, word: str, said: _Said) -> bool:
    if figure:
        return not said.numbers.issuperset(map(_normal, _NUMBER.findall(figure)))
    lower = word.lower()
    # "may" and "march" are months only with a capital that does not begin the sentence.
    if lower in MONTHS and (lower not in MONTHS_AND_WORDS or (word[0].isupper() and not begins)):
        return MONTHS[lower] not in said.months
    if lower in NUMBER_WORDS and lower != "one":
        return str(NUMBER_WORDS[lower]) not in said.numbers
    if lower in WEEKDAYS or lower in _DAY_WORDS or is_name(word, begins) or (begins and _may_be_name(word)):
        return said.words.isdisjoint({lower, f"{lower}s", lower.removesuffix("s")})
    return False


def _may_be_name(word: str) -> bool:
    """Where every word has a capital."""
    lower = word.lower()
    is_common = lower in STOP_WORDS or lower in _OPENERS or lower in ORDINAL_WORDS or lower.endswith(_OPENERS_END)
    return len(word) > 1 and word[0].isupper() and not is_common


def _plain(text: str) -> str:
    """With numbers in one form: 1,000 is 1000, and twenty-five is 25."""
    without_commas = _THOUSANDS.sub(lambda found: found.group().replace(",", ""), text)
    return _SPELLED.sub(lambda found: str(sum(NUMBER_WORDS[part.lower()] for part in found.groups())), without_commas)


def _numbers(text: str, found: Iterable[str]) -> Iterator[str]:
    for number in map(_normal, _NUMBER.findall(text)):
        yield number
        for zeros in ("000", "000000", "000000000"):  # 10,000 is 10k
            if number.endswith(zeros) and number != zeros:
                yield number.removesuffix(zeros)
    for clock in _CLOCK.findall(text):
        yield str(int(clock) % 12)
    for word in found:
        value = NUMBER_WORDS.get(word, ORDINAL_WORDS.get(word))
        if value is not None:
            yield str(value)


def _normal(number: str) -> str:
    whole, _, fraction = number.partition(".")
    fraction = fraction.rstrip("0")
    return (whole.lstrip("0") or "0") + (f".{fraction}" if fraction else "")


def _days(text: str) -> Iterator[tuple[int, int]]:
    """Months and their days."""
    for month, day, day_before, month_after in _DAY.findall(text):
        yield MONTHS[(month or month_after).lower()], int(day or day_before)
    for month, day in _ISO_DAY.findall(text):
        yield int(month), int(day)
    for one, other in _SHORT_DAY.findall(text):
        yield int(one), int(other)
        yield int(other), int(one)
