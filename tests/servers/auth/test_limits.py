"""A credential with a rate may call that often, and a little more after a pause."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.core.access import LOCAL, Caller
from fieldstone.core.errors import RateLimited
from fieldstone.servers.auth.limits import Limits


def caller(rate: float | None, credential: str = "key-1") -> Caller:
    return Caller(credential, 4, rate_per_second=rate)


def allowed(limits: Limits, who: Caller, now_ms: float) -> bool:
    try:
        limits.take(who, now_ms=now_ms)
    except RateLimited:
        return False
    return True


def test_two_seconds_worth_may_be_used_at_once_and_then_the_rate_counts() -> None:
    limits = Limits()
    who = caller(5)
    assert [allowed(limits, who, 0) for _ in range(12)] == [True] * 10 + [False] * 2
    assert [allowed(limits, who, 199), allowed(limits, who, 200), allowed(limits, who, 200)] == [False, True, False]
    assert [allowed(limits, who, 60_000) for _ in range(11)] == [True] * 10 + [False]


def test_a_rate_below_one_in_two_seconds_lets_one_request_through() -> None:
    limits = Limits()
    assert [allowed(limits, caller(0.1), now_ms) for now_ms in (0, 9_999, 10_000)] == [True, False, True]


def test_who_is_refused_is_told_how_long_to_wait_and_that_is_enough() -> None:
    limits = Limits()
    limits.take(caller(0.5), now_ms=0)
    with pytest.raises(RateLimited, match=r"0\.5 requests a second") as refused:
        limits.take(caller(0.5), now_ms=500)
    assert refused.value.retry_after_s == pytest.approx(1.5)
    assert not allowed(limits, caller(0.5), 1_900)
    assert allowed(limits, caller(0.5), 2_000)


def test_asking_too_early_does_not_put_off_the_next_answer() -> None:
    limits = Limits()
    answers = [allowed(limits, caller(1), now_ms) for now_ms in range(0, 10_000, 10)]
    assert sum(answers) == 2 + 9


def test_credentials_do_not_use_up_each_others_rate() -> None:
    limits = Limits()
    assert [allowed(limits, caller(0.5, f"key-{number}"), 0) for number in (1, 2, 1)] == [True, True, False]


def test_without_a_rate_there_is_no_limit_and_nothing_is_remembered() -> None:
    limits = Limits()
    assert all(allowed(limits, who, 0) for who in (LOCAL, caller(None)) for _ in range(1_000))
    assert limits._buckets == {}


def test_the_table_is_bounded_and_forgets_who_called_longest_ago() -> None:
    limits = Limits(most=2)
    for credential in ("a", "b", "a", "c"):
        allowed(limits, caller(0.5, credential), 0)
    assert list(limits._buckets) == ["a", "c"]
    assert not allowed(limits, caller(0.5, "a"), 0)


@given(
    st.floats(0.01, 1_000),
    st.lists(st.floats(0, 5_000), min_size=1, max_size=300),
)
def test_in_no_span_of_time_are_there_more_than_the_burst_and_the_rate(rate: float, pauses_ms: list[float]) -> None:
    limits = Limits()
    now_ms, taken = 0.0, 0
    for pause_ms in pauses_ms:
        now_ms += pause_ms
        taken += allowed(limits, caller(rate), now_ms)
    assert 1 <= taken <= max(1.0, 2 * rate) + now_ms * rate / 1_000 + 1e-6
