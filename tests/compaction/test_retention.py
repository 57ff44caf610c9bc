"""Policies are checked before they hold."""

from typing import Any

import pytest

from fieldstone.compaction.retention import Match, Policy, check_policies, duration_ms
from fieldstone.core.errors import InvalidPayload
from fieldstone.core.vocabulary import MEMORY_TYPES

TYPES = frozenset(MEMORY_TYPES)


def policy(**fields: Any) -> Policy:
    return Policy(**{"name": "aged", "strategy": "archive", "max_age": "30d"} | fields)


def test_a_policy_may_say_all_that_there_is_to_say() -> None:
    match = Match("s-1", ("finding",), ("active", "superseded"))
    check_policies([policy(match=match, max_units=10, schedule="0 3 * * *", enabled=False)], TYPES)
    check_policies([policy(max_age=None, max_age_epochs=0), policy(name="b", max_age=None, max_units=0)], TYPES)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"name": "Aged"}, r"policies\[0\].name must be"),
        ({"name": ""}, "name must be"),
        ({"name": "a" * 65}, "name must be"),
        ({"max_age": None}, "everything would go"),
        ({"max_age_epochs": 3}, "in epochs or in time"),
        ({"max_age": None, "max_age_epochs": -1}, "max_age_epochs must be"),
        ({"max_units": -1}, "max_units must be"),
        ({"max_age": "0d"}, r"policies\[0\].max_age looks like"),
        ({"max_age": "a while"}, "max_age looks like"),
        ({"match": Match(types=())}, "types must not be empty"),
        ({"match": Match(types=("rumour",))}, "types takes"),
        ({"match": Match(status=("archived",))}, "status takes"),
        ({"match": Match(session="")}, "session must have"),
        ({"schedule": "daily"}, "five fields"),
    ],
)
def test_what_is_wrong_with_a_policy_is_told_in_a_sentence(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidPayload, match=told):
        check_policies([policy(**fields)], TYPES)


def test_names_are_taken_once_and_there_is_a_bound() -> None:
    with pytest.raises(InvalidPayload, match=r"policies\[1\].name is the name of another"):
        check_policies([policy(), policy()], TYPES)
    with pytest.raises(InvalidPayload, match="more than 100"):
        check_policies([policy(name=f"p-{n}") for n in range(101)], TYPES)


@pytest.mark.parametrize(
    ("text", "ms"), [("1m", 60_000), ("12h", 43_200_000), ("30d", 2_592_000_000), ("8w", 4_838_400_000)]
)
def test_ages_are_in_minutes_hours_days_and_weeks(text: str, ms: int) -> None:
    assert duration_ms(text) == ms


def test_only_an_enabled_policy_with_a_schedule_is_ever_due() -> None:
    assert policy().due is None
    assert policy(schedule="0 3 * * *", enabled=False).due is None
    assert policy(schedule="0 3 * * *").due is not None
