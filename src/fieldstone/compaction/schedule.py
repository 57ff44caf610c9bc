"""When a policy is due: the five fields of cron, in UTC. Pure: the time is an argument."""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final

from msgspec import Struct

MINUTE_MS: Final = 60_000
SEARCHED_DAYS: Final = 366 * 9  # 29 February is at most eight years away; a day that is not found by then never comes

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_PART: Final = re.compile(r"(?P<first>\*|[0-9a-z]+)(-(?P<last>[0-9a-z]+))?(/(?P<step>[0-9]+))?")


class BadSchedule(ValueError):
    """Not five fields of cron that ever come true."""


class _Field(Struct, frozen=True):
    name: str
    least: int
    most: int
    names: Sequence[str] = ()  # the first stands for `least`


_FIELDS: Final = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of the month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of the week", 0, 7, _WEEKDAYS),  # 0 and 7 are Sunday
)


class Schedule(Struct, frozen=True):
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]  # 0 is Sunday
    either_day: bool  # days of the month and of the week are both given: as in every cron, one of them is enough

    def comes_on(self, day: date) -> bool:
        in_month, in_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        is_day = in_month or in_week if self.either_day else in_month and in_week
        return day.month in self.months and is_day

    def next_after(self, at_ms: int) -> int:
        """The first minute that matches and begins after this time."""
        following = datetime.fromtimestamp(at_ms // MINUTE_MS * MINUTE_MS / 1000, UTC) + timedelta(minutes=1)
        for further in range(SEARCHED_DAYS):
            day = following.date() + timedelta(days=further)
            if not self.comes_on(day):
                continue
            earliest = (following.hour, following.minute) if further == 0 else (0, 0)
            for hour in self.hours:
                for minute in self.minutes:
                    if (hour, minute) >= earliest:
                        return int(datetime(day.year, day.month, day.day, hour, minute, tzinfo=UTC).timestamp()) * 1000
        raise BadSchedule("The schedule names a day that never comes.")


def parse_schedule(text: str) -> Schedule:
    """`minute hour day month weekday`: numbers, names, `*`, lists, ranges and steps. Raises `BadSchedule`."""
    parts = text.lower().split()
    if len(parts) != len(_FIELDS):
        raise BadSchedule("A schedule has five fields: minute, hour, day of the month, month, day of the week.")
    minutes, hours, days, months, weekdays = (_values(part, field) for part, field in zip(parts, _FIELDS, strict=True))
    schedule = Schedule(
        minutes=minutes,
        hours=hours,
        days=days,
        months=months,
        weekdays=tuple(sorted({day % 7 for day in weekdays})),
        either_day=not parts[2].startswith("*") and not parts[4].startswith("*"),
    )
    schedule.next_after(0)  # a day that never comes is refused now, and not waited for
    return schedule


def _values(text: str, field: _Field) -> tuple[int, ...]:
    found: set[int] = set()
    for part in text.split(","):
        found.update(_range(part, field))
    return tuple(sorted(found))


def _range(text: str, field: _Field) -> range:
    part = _PART.fullmatch(text)
    if part is None or (part["first"] == "*" and part["last"] is not None):
        raise BadSchedule(f"The {field.name} looks like *, 5, 1-5, */10, 1-30/10, or a list of these.")
    step = int(part["step"] or 1)
    if not 1 <= step <= field.most:
        raise BadSchedule(f"The step of the {field.name} must be from 1 to {field.most}.")
    if part["first"] == "*":
        most = field.most - 1 if field.names is _WEEKDAYS else field.most  # Sunday once
        return range(field.least, most + 1, step)
    first = _number(part["first"], field)
    # As in every cron, `5/10` goes on to the end, and `5` alone does not.
    last = field.most if part["last"] is None and part["step"] else first
    if part["last"] is not None:
        last = _number(part["last"], field)
    if last < first:
        raise BadSchedule(f"The range of the {field.name} must not go backwards.")
    return range(first, last + 1, step)


def _number(text: str, field: _Field) -> int:
    number = int(text) if text.isdecimal() else -1
    if text in field.names:
        number = field.least + field.names.index(text)
    if not field.least <= number <= field.most:
        raise BadSchedule(f"The {field.name} must be from {field.least} to {field.most}.")
    return number
