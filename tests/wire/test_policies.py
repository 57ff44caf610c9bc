"""Retention policies that are refused."""

import pytest

from fieldstone.core.errors import InvalidPayload
from fieldstone.wire.policies import policies_from, policies_from_toml


def test_a_wrong_strategy_is_refused_with_those_that_are_right() -> None:
    with pytest.raises(InvalidPayload) as refused:
        policies_from([{"name": "old", "strategy": "shrink"}])
    assert "not one of archive, purge, summarize - at `$.strategy`." in refused.value.message
    with pytest.raises(InvalidPayload) as refused:
        policies_from_toml('[[policies]]\nname = "old"\nstrategy = "shrink"\n')
    assert "not one of archive, purge, summarize - at `$.policies[0].strategy`." in refused.value.message
