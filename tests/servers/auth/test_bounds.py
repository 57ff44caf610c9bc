"""A key makes, and rotates, no key that may more than itself."""

from collections.abc import Mapping
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.backends.memory.access import MemoryAccess
from fieldstone.core.access import Caller
from fieldstone.core.errors import Forbidden
from fieldstone.servers.auth.bounds import Maker
from fieldstone.servers.auth.keys import Keys
from fieldstone.testing import ManualClock
from tests.servers.auth.tokens import DAY_MS, make

NOW_MS: Final = ManualClock().now_ms()

Wishes = Mapping[str, Any]

# Few values each, so that makers and wishes meet: within, the same, beyond, without any limit.
WISHES: Final[st.SearchStrategy[Wishes]] = st.fixed_dictionaries(
    {
        "authority": st.sampled_from((4, 8, 10)),
        "agents": st.sampled_from((None, ["ada"], ["ada", "ben"], ["eve"])),
        "expires_ms": st.sampled_from((None, NOW_MS + DAY_MS, NOW_MS + 2 * DAY_MS)),
        "rate_per_second": st.sampled_from((None, 5.0, 50.0)),
        "quota_units": st.sampled_from((None, 0, 100, 1_000)),
    }
)
DEFAULT_RATES: Final = st.sampled_from((None, 20.0))


def maker_of(keys: Keys, wishes: Wishes, default_rate: float | None = None) -> Maker:
    return Maker(keys.caller(make(keys, "acme", **wishes).key).caller, default_rate)


def is_within(wanted: Wishes, own: Wishes, default_rate: float | None) -> bool:
    """Written once more, from the words of the rule."""
    fewer_agents = own["agents"] is None or set(wanted["agents"] or ["anybody"]) <= set(own["agents"])
    if own["rate_per_second"] is None and wanted["rate_per_second"] is None:
        slower = True
    else:
        slower = is_less(wanted["rate_per_second"], own["rate_per_second"] or default_rate)
    return (
        wanted["authority"] <= own["authority"]
        and fewer_agents
        and slower
        and is_less(wanted["quota_units"], own["quota_units"])
        and is_less(wanted["expires_ms"], own["expires_ms"])
    )


def is_less(wanted: float | None, own: float | None) -> bool:
    return own is None or (wanted is not None and wanted <= own)


@given(WISHES, WISHES, DEFAULT_RATES)
def test_a_key_makes_another_exactly_when_that_may_nothing_that_it_may_not_itself(
    own: Wishes, wanted: Wishes, default_rate: float | None
) -> None:
    keys = Keys(MemoryAccess(), ManualClock())
    maker = maker_of(keys, own, default_rate)
    if is_within(wanted, own, default_rate):
        assert make(keys, "acme", maker=maker, **wanted).id in {key.id for key in keys.list()}
    else:
        with pytest.raises(Forbidden, match="makes no key that may more than itself"):
            make(keys, "acme", maker=maker, **wanted)
        assert len(keys.list()) == 1, "it was made all the same"


@given(WISHES, WISHES, DEFAULT_RATES)
def test_a_key_rotates_another_exactly_when_that_may_nothing_that_it_may_not_itself(
    own: Wishes, other: Wishes, default_rate: float | None
) -> None:
    keys = Keys(MemoryAccess(), ManualClock())
    maker = maker_of(keys, own, default_rate)
    key_id, key = make(keys, "acme", **other)
    if is_within(other, own, default_rate):
        assert keys.rotate(key_id, "acme", maker).id == key_id
    else:
        with pytest.raises(Forbidden, match="rotates no key that may more than itself"):
            keys.rotate(key_id, "acme", maker)
        assert keys.caller(key).caller.credential == key_id, "its secret stopped all the same"


@given(WISHES, DEFAULT_RATES)
def test_every_key_may_make_its_equal_and_rotate_itself(own: Wishes, default_rate: float | None) -> None:
    keys = Keys(MemoryAccess(), ManualClock())
    maker = maker_of(keys, own, default_rate)
    make(keys, "acme", maker=maker, **own)
    assert maker.caller.credential is not None
    assert keys.rotate(maker.caller.credential, "acme", maker).id == maker.caller.credential


@given(WISHES)
def test_whoever_has_the_store_itself_is_not_bound(wanted: Wishes) -> None:
    keys = Keys(MemoryAccess(), ManualClock())
    key_id = make(keys, "acme", **wanted).id
    assert keys.rotate(key_id).id == key_id


@pytest.mark.parametrize(
    ("own", "wanted", "what"),
    [
        ({"agents": ["ada"]}, {}, "agents"),
        ({"agents": ["ada"]}, {"agents": ["ada", "eve"]}, "agents"),
        ({"rate_per_second": 5}, {"rate_per_second": 6}, "rate_per_second: at most 5"),
        ({"quota_units": 100}, {}, "quota_units: at most 100"),
        ({"expires_ms": NOW_MS + 1_000}, {}, "expires: at the latest 2025-06-15T15:06:41.000Z"),
    ],
    ids=str,
)
def test_a_refusal_names_the_field_and_what_to_do(own: Wishes, wanted: Wishes, what: str) -> None:
    keys = Keys(MemoryAccess(), ManualClock())
    with pytest.raises(Forbidden) as refused:
        make(keys, "acme", maker=maker_of(keys, {"authority": 10, **own}), **wanted)
    assert what in refused.value.suggested_action
    assert what.partition(":")[0] in refused.value.message


def test_a_token_is_bound_by_what_it_grants_and_its_end_is_that_of_a_login() -> None:
    keys = Keys(MemoryAccess(), ManualClock())
    operator = Maker(Caller("jwt-0198c3f1", 10, agents=frozenset(("ada",))))
    with pytest.raises(Forbidden):
        make(keys, "acme", maker=operator)
    made = make(keys, "acme", agents=["ada"], maker=operator)
    assert [(key.id, key.expires_at) for key in keys.list()] == [(made.id, None)]
