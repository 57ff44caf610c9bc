"""Numbers with their units, versions, days and times of day: read from words, and compared as values.

"1,000 ms" and "1 s" are the same, "at least 100" and "250" can both hold, "May 3" and "3 May 2024" can be one day.
"""

import re
from typing import Final, NamedTuple

from fieldstone.detection.tables import listed

ABOUT_SHARE = 0.15  # "about 60" and "62"
# How far two figures may lie apart and mean the same: a GB has 10^9 or 2^30 bytes, 5 miles are 8 km. Counts are exact.
SAME_SHARES: Final = {"byte": 0.11, "metre": 0.02, "gram": 0.02, "litre": 0.02, "second": 0.01}
EXACT_SHARE = 1e-6

INFINITE: Final = float("inf")


class Quantity(NamedTuple):
    """What a number may be. `unit` is the unit's dimension, "" for a plain count."""

    low: float
    high: float
    unit: str


class Moment(NamedTuple):
    """A day or a time of it, as far as it was named. None: not said."""

    year: int | None = None
    month: int | None = None
    day: int | None = None
    weekday: int | None = None
    minute: int | None = None


def can_both_hold(a: Quantity, b: Quantity) -> bool:
    share = SAME_SHARES.get(a.unit, EXACT_SHARE)
    highest_low, lowest_high = max(a.low, b.low), min(a.high, b.high)
    return highest_low <= lowest_high or highest_low - lowest_high <= share * abs(highest_low)


def can_be_one(a: Moment, b: Moment) -> bool:
    return all(one is None or other is None or one == other for one, other in zip(a, b, strict=True))


def share_a_field(a: Moment, b: Moment) -> bool:
    return any(one is not None and other is not None for one, other in zip(a, b, strict=True))


def same_version(a: str, b: str) -> bool:
    """3.11 says less than 3.11.2, and nothing else."""
    short, long = sorted((a.split("."), b.split(".")), key=len)
    return long[: len(short)] == short


def number_of(digits: str) -> float:
    return float(digits.replace(",", ""))


def bounded(value: float, unit: str, bound: str) -> Quantity:
    match bound:
        case "least":
            return Quantity(value, INFINITE, unit)
        case "most":
            return Quantity(-INFINITE, value, unit)
        case "about":
            return Quantity(value * (1 - ABOUT_SHARE), value * (1 + ABOUT_SHARE), unit)
        case _:
            return Quantity(value, value, unit)


NUMBER_WORDS: Final = {
    word: number
    for number, word in enumerate(
        listed("""zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
            sixteen seventeen eighteen nineteen twenty""")
    )
} | {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90, "dozen": 12}
MULTIPLIERS: Final = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
SUFFIXES: Final = {"k": 1_000, "m": 1_000_000, "b": 1_000_000_000, "bn": 1_000_000_000, "mn": 1_000_000}
FRACTIONS: Final = {"half": 50.0, "quarter": 25.0, "third": 100 / 3}
ORDINAL_WORDS: Final = (
    {
        word: number
        for number, word in enumerate(
            listed("""first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth
                fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"""),
            start=1,
        )
    }
    | {"thirtieth": 30, "fortieth": 40, "fiftieth": 50, "sixtieth": 60, "seventieth": 70, "eightieth": 80}
    | {"ninetieth": 90, "hundredth": 100, "thousandth": 1_000}
)

# The words before a number that make it a bound; the longest are read first.
BOUNDS: Final[dict[tuple[str, ...], str]] = {
    ("no", "less", "than"): "least",
    ("no", "fewer", "than"): "least",
    ("not", "less", "than"): "least",
    ("no", "more", "than"): "most",
    ("not", "more", "than"): "most",
    ("as", "many", "as"): "most",
    ("at", "least"): "least",
    ("more", "than"): "least",
    ("greater", "than"): "least",
    ("at", "most"): "most",
    ("up", "to"): "most",
    ("less", "than"): "most",
    ("fewer", "than"): "most",
    ("over",): "least",
    ("above",): "least",
    ("exceeding",): "least",
    ("minimum",): "least",
    ("under",): "most",
    ("below",): "most",
    ("maximum",): "most",
    ("about",): "about",
    ("around",): "about",
    ("approximately",): "about",
    ("roughly",): "about",
    ("nearly",): "about",
    ("almost",): "about",
    ("circa",): "about",
    ("some",): "about",
}


BOUND_WORDS_MAX: Final = 3


def _units() -> dict[str, tuple[str, float]]:
    table: dict[str, dict[float, str]] = {
        "second": {1e-9: "ns nanosecond", 1e-6: "us µs microsecond", 1e-3: "ms msec millisecond", 1: "s sec second"}
        | {60: "min minute", 3_600: "h hr hour", 86_400: "day", 604_800: "week"},
        # A month is no fixed number of days: it compares with years only.
        "month": {1: "month", 12: "year yr"},
        "byte": {1: "byte", 1e3: "kb kilobyte kib", 1e6: "mb megabyte mib", 1e9: "gb gigabyte gib"}
        | {1e12: "tb terabyte tib", 1e15: "pb petabyte"},
        "metre": {1e-3: "mm millimeter millimetre", 1e-2: "cm centimeter centimetre", 1: "meter metre"}
        | {1e3: "km kilometer kilometre", 1609.344: "mile", 0.3048: "foot feet ft", 0.0254: "inch"},
        "gram": {
            1e-3: "mg milligram",
            1: "g gram",
            1e3: "kg kilogram",
            1e6: "tonne",
            453.6: "lb pound",
            28.35: "oz ounce",
        },
        "litre": {1e-3: "ml milliliter millilitre", 1: "l liter litre", 3.785: "gallon"},
        "hertz": {1: "hz hertz", 1e3: "khz", 1e6: "mhz", 1e9: "ghz"},
        "watt": {1: "w watt", 1e3: "kw kilowatt", 1e6: "mw megawatt"},
        "%": {1: "% percent pct"},
        "$": {1: "$ usd dollar", 0.01: "cent"},
        "€": {1: "€ eur euro"},
        "£": {1: "£ gbp"},
        "degree": {1: "degree °"},
    }
    found: dict[str, tuple[str, float]] = {}
    for dimension, factors in table.items():
        for factor, names in factors.items():
            for name in names.split():
                found[name] = found[name + "s"] = (dimension, factor)
    found["feet"] = found["foot"]
    found["inches"] = found["inch"]
    return found


UNITS: Final = _units()

MONTHS: Final = {
    name: number
    for number, names in enumerate(
        (
            *("january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul", "august aug"),
            *("september sep sept", "october oct", "november nov", "december dec"),
        ),
        start=1,
    )
    for name in names.split()
}
# As common words they name a month only with a capital.
MONTHS_AND_WORDS: Final = frozenset({"may", "march", "mar", "jan", "jun", "sep", "dec"})
WEEKDAYS: Final = {
    name: number
    for number, names in enumerate(listed("monday tuesday wednesday thursday friday saturday sunday"))
    for name in (names, names + "s")
}
TIMES_OF_DAY: Final = {"noon": 720, "midday": 720, "midnight": 0}

YEAR: Final = re.compile(r"(?:19|20)\d\d")
_ISO_DAY: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d))?")
_CLOCK: Final = re.compile(r"(\d{1,2}):(\d\d)")


def iso_day(text: str) -> Moment | None:
    if not (match := _ISO_DAY.match(text)):
        return None
    year, month, day, hour, minute = match.groups()
    return Moment(int(year), int(month), int(day), minute=None if hour is None else int(hour) * 60 + int(minute))


def clock(text: str, half: str) -> Moment | None:
    """A time of day: "14:00", or "2" and "pm"."""
    match = _CLOCK.match(text)
    if match:
        hour, minute = int(match[1]), int(match[2])
    elif text.isdigit() and half:
        hour, minute = int(text), 0
    else:
        return None
    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    return Moment(minute=hour * 60 + minute)
