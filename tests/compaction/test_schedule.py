"""The five fields of cron."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.compaction.schedule import MINUTE_MS, BadSchedule, Schedule, parse_schedule

FIELDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
TIMES = st.integers(0, 4_000_000_000_000)


@st.composite
def parts(draw: st.DrawFn, least: int, most: int) -> str:
    first = draw(st.integers(least, most))
    last = draw(st.integers(first, most))
    step = draw(st.integers(1, most))
    return draw(st.sampled_from(["*", f"*/{step}", f"{first}", f"{first}-{last}", f"{first}-{last}/{step}"]))


@st.composite
def texts(draw: st.DrawFn) -> str:
    lists = [draw(st.lists(parts(least, most), min_size=1, max_size=3)) for least, most in FIELDS]
    return " ".join(",".join(each) for each in lists)


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1000


def comes_at(schedule: Schedule, at_ms: int) -> bool:
    """Said once more, minute by minute, to be compared with."""
    moment = datetime.fromtimestamp(at_ms / 1000, UTC)
    return schedule.comes_on(moment.date()) and moment.hour in schedule.hours and moment.minute in schedule.minutes


def parsed(text: str) -> Schedule | None:
    try:
        return parse_schedule(text)
    except BadSchedule:
        return None  # a day that never comes


@given(texts(), TIMES)
def test_the_next_time_matches_and_lies_after_the_one_that_was_given(text: str, now_ms: int) -> None:
    schedule = parsed(text)
    if schedule is not None:
        due_ms = schedule.next_after(now_ms)
        assert due_ms > now_ms
        assert due_ms % MINUTE_MS == 0
        assert comes_at(schedule, due_ms)


@given(texts(), TIMES)
def test_no_minute_before_the_next_time_matches(text: str, now_ms: int) -> None:
    schedule = parsed(text)
    if schedule is not None:
        due_ms = schedule.next_after(now_ms)
        first = now_ms // MINUTE_MS * MINUTE_MS + MINUTE_MS
        for minute_ms in range(first, min(due_ms, first + 2_000 * MINUTE_MS), MINUTE_MS):
            assert not comes_at(schedule, minute_ms)


@given(texts(), TIMES, st.integers(0, 10**10))
def test_a_later_time_has_no_earlier_next_one(text: str, now_ms: int, further_ms: int) -> None:
    schedule = parsed(text)
    if schedule is not None:
        assert schedule.next_after(now_ms) <= schedule.next_after(now_ms + further_ms)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("* * * * *", "2026-03-01 12:31"),
        ("30 12 * * *", "2026-03-02 12:30"),
        ("*/15 * * * *", "2026-03-01 12:45"),
        ("5/20 * * * *", "2026-03-01 12:45"),
        ("0 3 * * sun", "2026-03-08 03:00"),
        ("0 3 * * 7", "2026-03-08 03:00"),
        ("0 0 1 jan *", "2027-01-01 00:00"),
        ("0 0 29 2 *", "2028-02-29 00:00"),
        ("0 0 13 * 5", "2026-03-06 00:00"),
        ("0 9-17/4 * * mon-fri", "2026-03-02 09:00"),
        ("0,10 12,13 1 * *", "2026-03-01 13:00"),
    ],
)
def test_schedules_mean_what_every_cron_means(text: str, expected: str) -> None:
    assert parse_schedule(text).next_after(at("2026-03-01 12:30")) == at(expected)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "five fields"),
        ("* * * *", "five fields"),
        ("60 * * * *", "minute must be from 0 to 59"),
        ("* 24 * * *", "hour must be from 0 to 23"),
        ("* * 0 * *", "day of the month must be from 1 to 31"),
        ("* * * 13 *", "month must be from 1 to 12"),
        ("* * * * 8", "day of the week must be from 0 to 7"),
        ("* * * * someday", "day of the week must be from 0 to 7"),
        ("30-10 * * * *", "must not go backwards"),
        ("*/0 * * * *", "step of the minute"),
        ("*-5 * * * *", "looks like"),
        ("1,,2 * * * *", "looks like"),
        ("-1 * * * *", "looks like"),
        ("0 0 30 2 *", "never comes"),
    ],
)
def test_what_is_no_schedule_is_told_in_a_sentence(text: str, told: str) -> None:
    with pytest.raises(BadSchedule, match=told):
        parse_schedule(text)
