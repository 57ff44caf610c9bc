"""Keys open what they were made for, and nothing opens anything else."""

import hmac
import math
import re
import string
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json

from fieldstone.backends.memory.access import MemoryAccess
from fieldstone.backends.sqlite.access import SqliteAccess
from fieldstone.core.access import Caller
from fieldstone.core.errors import FieldError, InvalidPayload, InvalidTransition, NotFound, Unauthenticated
from fieldstone.ports.access import AccessStore
from fieldstone.servers.auth import keys as keys_module
from fieldstone.servers.auth.keys import Keys
from fieldstone.testing import ManualClock
from tests.requirements import requirement
from tests.servers.auth.tokens import DAY_MS, make, statuses, with_id, with_secret


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store() -> AccessStore:
    return MemoryAccess()


@pytest.fixture
def keys(store: AccessStore, clock: ManualClock) -> Keys:
    return Keys(store, clock)


def test_a_key_tells_whose_memory_it_opens_and_what_it_grants(keys: Keys, clock: ManualClock) -> None:
    key_id, key = make(
        keys,
        "acme",
        authority=6,
        agents=["ada", "ben"],
        expires_ms=clock.now_ms() + DAY_MS,
        rate_per_second=5.5,
        quota_units=1_000,
    )
    assert keys.caller(key) == ("acme", Caller(key_id, 6, frozenset(("ada", "ben")), 5.5, 1_000))


def test_a_key_that_was_given_nothing_has_authority_4_and_any_agent(keys: Keys) -> None:
    key_id, key = make(keys, "acme")
    assert keys.caller(key) == ("acme", Caller(key_id, 4, None, None, None))


def test_keys_look_like_keys_and_are_never_made_twice(keys: Keys) -> None:
    made = [make(keys, "acme") for _ in range(100)]
    for key_id, key in made:
        assert re.fullmatch(r"key-[0-9a-f]{16}", key_id)
        assert re.fullmatch(rf"fsk_{key_id[4:]}_[A-Za-z0-9_-]{{43}}", key)
    assert len({key for _, key in made}) == len({key[21:] for _, key in made}) == 100


@requirement("akashik:access:keys-hashed")
def test_nothing_that_is_stored_or_listed_holds_the_key(keys: Keys, store: AccessStore) -> None:
    _, key = make(keys, "acme")
    secret = key[21:].encode()
    [record] = store.keys()
    assert secret not in json.encode(record)
    assert record.digest != blake2b(secret, digest_size=32).digest(), "it is not salted"
    shown = json.encode(keys.list())
    assert secret not in shown
    assert b"digest" not in shown
    assert b"salt" not in shown


def test_the_same_secret_has_another_digest_under_another_salt() -> None:
    assert keys_module._digest("s", b"1" * 16) != keys_module._digest("s", b"2" * 16)


def refused_tokens(keys: Keys, clock: ManualClock) -> dict[str, str]:
    """One token of each kind that is refused."""
    good = make(keys, "acme").key
    revoked = make(keys, "acme")
    keys.revoke(revoked.id)
    expired = make(keys, "acme", expires_ms=clock.now_ms() + 1)
    rotated = make(keys, "acme")
    keys.rotate(rotated.id)
    clock.advance(1)
    return {
        "another secret": with_secret(good),
        "an unknown id": with_id(good),
        "revoked": revoked.key,
        "expired": expired.key,
        "rotated": rotated.key,
    }


def test_every_refusal_says_the_same(keys: Keys, clock: ManualClock) -> None:
    tokens = [*refused_tokens(keys, clock).values(), "", "fsk_", "not a key"]
    errors = [refusal(partial(keys.caller, token)) for token in tokens]
    assert {(type(error), error.message, error.suggested_action) for error in errors} == {
        (Unauthenticated, Unauthenticated().message, Unauthenticated.suggested_action)
    }
    assert all(error.__cause__ is None for error in errors)


def test_every_refusal_of_a_well_formed_key_takes_the_same_steps(
    keys: Keys, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = refused_tokens(keys, clock)
    keys.any()  # what has changed is read before the steps are counted
    steps: list[str] = []
    counted(monkeypatch, keys_module, "_digest", steps)
    counted(monkeypatch, hmac, "compare_digest", steps)
    counted(monkeypatch, keys_module, "_status", steps)
    taken = {}
    for kind, token in tokens.items():
        steps.clear()
        with pytest.raises(Unauthenticated):
            keys.caller(token)
        taken[kind] = tuple(steps)
    assert set(taken.values()) == {("_digest", "compare_digest", "_status")}


def test_digests_of_known_and_unknown_keys_are_of_the_same_length(keys: Keys, store: AccessStore) -> None:
    make(keys, "acme")
    [record] = store.keys()
    nobody = keys._nobody.record
    assert (len(nobody.salt), len(nobody.digest)) == (len(record.salt), len(record.digest))


@given(st.text(alphabet=string.ascii_letters + string.digits + "_-=+/. \n\x00é", max_size=80) | st.text())
def test_any_text_but_a_key_is_refused_and_nothing_else_happens(text: str) -> None:
    keys = Keys(MemoryAccess(), ManualClock())
    key = make(keys, "acme").key
    for token in (text, f"fsk_{text}", key + text, text + key, key[:20] + text):
        if token != key:
            with pytest.raises(Unauthenticated):
                keys.caller(token)
    assert keys.caller(key).tenant == "acme"


@given(st.integers(0, 63), st.characters(codec="ascii"))
def test_a_key_with_one_other_character_opens_nothing(place: int, character: str) -> None:
    keys = Keys(MemoryAccess(), ManualClock())
    key = make(keys, "acme").key
    changed = key[:place] + character + key[place + 1 :]
    if changed != key:
        with pytest.raises(Unauthenticated):
            keys.caller(changed)


@requirement("akashik:access:keys-at-once")
def test_a_key_opens_until_it_expires_and_not_a_millisecond_longer(keys: Keys, clock: ManualClock) -> None:
    _, key = make(keys, "acme", expires_ms=clock.now_ms() + DAY_MS)
    clock.advance(DAY_MS - 1)
    assert keys.caller(key).tenant == "acme"
    clock.advance(1)
    with pytest.raises(Unauthenticated):
        keys.caller(key)
    assert statuses(keys) == ["expired"]


def test_a_rotated_key_keeps_its_id_and_grants_and_the_old_secret_stops_at_once(keys: Keys) -> None:
    key_id, old = make(keys, "acme", authority=8, agents=["ada"])
    before = keys.caller(old)
    same_id, new = keys.rotate(key_id)
    assert same_id == key_id
    assert keys.caller(new) == before
    with pytest.raises(Unauthenticated):
        keys.caller(old)


def test_what_is_revoked_or_expired_is_not_rotated_back_to_life(keys: Keys, clock: ManualClock) -> None:
    revoked = make(keys, "acme").id
    keys.revoke(revoked)
    expired = make(keys, "acme", expires_ms=clock.now_ms() + 1).id
    clock.advance(1)
    for key_id, why in ((revoked, "revoked"), (expired, "expired")):
        with pytest.raises(InvalidTransition, match=why):
            keys.rotate(key_id)
    assert sorted(statuses(keys)) == ["expired", "revoked"]


def test_with_a_new_end_an_expired_key_opens_again_and_a_revoked_one_does_not(keys: Keys, clock: ManualClock) -> None:
    expired = make(keys, "acme", agents=["ada"], expires_ms=clock.now_ms() + 1)
    before = keys.caller(expired.key)
    revoked = make(keys, "acme").id
    keys.revoke(revoked)
    clock.advance(1)
    end = datetime.fromtimestamp((clock.now_ms() + DAY_MS) / 1e3, UTC)
    renewed = keys.rotate(expired.id, expires=end)
    assert renewed.id == expired.id
    assert keys.caller(renewed.key) == before
    with pytest.raises(InvalidTransition, match="revoked"):
        keys.rotate(revoked, expires=end)
    clock.advance(DAY_MS)
    with pytest.raises(Unauthenticated):
        keys.caller(renewed.key)


def test_a_new_end_in_the_past_renews_nothing(keys: Keys, clock: ManualClock) -> None:
    key_id, key = make(keys, "acme")
    end = datetime.fromtimestamp((clock.now_ms() + 1_000) / 1e3, UTC)
    clock.advance(DAY_MS)
    with pytest.raises(InvalidPayload, match="expires must be in the future"):
        keys.rotate(key_id, expires=end)
    assert keys.caller(key).tenant == "acme"


def test_revoking_twice_is_no_error_and_keeps_the_first_time(
    keys: Keys, store: AccessStore, clock: ManualClock
) -> None:
    key_id = make(keys, "acme").id
    keys.revoke(key_id)
    first = store.keys()[0].revoked_ms
    clock.advance(5)
    keys.revoke(key_id)
    assert store.keys()[0].revoked_ms == first


def test_a_key_of_another_tenant_is_as_unknown_as_one_that_never_was(keys: Keys) -> None:
    made = make(keys, "acme")
    for attempt in (
        lambda: keys.revoke(made.id, "other"),
        lambda: keys.rotate(made.id, "other"),
        lambda: keys.revoke("key-0", "acme"),
        lambda: keys.rotate("key-0", None),
    ):
        error = refusal(attempt)
        assert (type(error), error.message) == (NotFound, "There is no such key.")
    assert keys.caller(made.key).tenant == "acme"
    keys.rotate(made.id, "acme")


def test_a_list_tells_of_a_tenants_keys_or_of_all_and_which_are_of_no_use(keys: Keys, clock: ManualClock) -> None:
    first = make(keys, "acme", agents=["ada"], expires_ms=clock.now_ms() + 2_000, rate_per_second=1, quota_units=7)
    clock.advance(1)
    second = make(keys, "other", authority=10)
    keys.revoke(second.id)
    assert [key.id for key in keys.list()] == [first.id, second.id]
    [ours] = keys.list("acme")
    assert json.decode(json.encode(ours)) == {
        "id": first.id,
        "tenant": "acme",
        "authority": 4,
        "status": "active",
        "created_at": "2025-06-15T15:06:40.000Z",
        "agents": ["ada"],
        "expires_at": "2025-06-15T15:06:42.000Z",
        "rate_per_second": 1,
        "quota_units": 7,
    }
    assert statuses(keys, "other") == ["revoked"]
    assert keys.list("nobody") == []


@requirement("akashik:access:keys-for-good")
def test_once_there_was_a_key_there_always_is_one(keys: Keys) -> None:
    assert keys.any() is False
    key_id = make(keys, "acme").id
    assert keys.any() is True
    keys.revoke(key_id)
    assert keys.any() is True


@pytest.mark.parametrize(
    "wrong",
    [
        {"tenant": ""},
        {"tenant": " "},
        {"tenant": "a\nb"},
        {"tenant": "a" * 257},
        {"authority": -1},
        {"authority": 11},
        {"agents": []},
        {"agents": ["ada", ""]},
        {"agents": ["ada"] * 1_001},
        {"expires_ms": ManualClock().now_ms()},
        {"expires": datetime.max.replace(tzinfo=timezone(timedelta(hours=-12)))},
        {"rate_per_second": 0},
        {"rate_per_second": math.nan},
        {"rate_per_second": math.inf},
        {"quota_units": -1},
        {"quota_units": 2**53},
    ],
    ids=str,
)
def test_a_wrong_wish_is_refused_by_name_and_makes_no_key(keys: Keys, wrong: dict[str, Any]) -> None:
    name = next(iter(wrong)).removesuffix("_ms")
    with pytest.raises(InvalidPayload, match=name):
        make(keys, **{"tenant": "acme"} | wrong)
    assert keys.any() is False


@requirement("akashik:access:keys-at-once")
def test_what_another_process_does_to_a_key_counts_at_the_next_request(tmp_path: Path, clock: ManualClock) -> None:
    """A server and the command line: each has the file open for itself."""
    server, command = (Keys(SqliteAccess(tmp_path / "field.db"), clock) for _ in range(2))
    assert server.any() is False
    key_id, first = make(command, "acme")
    assert server.any() is True
    assert server.caller(first).caller.credential == key_id
    second = command.rotate(key_id).key
    with pytest.raises(Unauthenticated):
        server.caller(first)
    assert server.caller(second).tenant == "acme"
    command.revoke(key_id)
    with pytest.raises(Unauthenticated):
        server.caller(second)


def test_a_key_that_is_revoked_while_another_process_rotates_it_stays_revoked(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, command = (Keys(SqliteAccess(tmp_path / "field.db"), clock) for _ in range(2))
    key_id = make(server, "acme").id
    new_secret = keys_module._new_secret

    def meanwhile(number: str) -> tuple[bytes, bytes, str]:
        command.revoke(key_id)
        return new_secret(number)

    monkeypatch.setattr(keys_module, "_new_secret", meanwhile)
    rotated = server.rotate(key_id).key
    with pytest.raises(Unauthenticated):
        server.caller(rotated)
    assert statuses(server) == ["revoked"]


def test_keys_are_read_again_only_when_something_changed(store: AccessStore, clock: ManualClock) -> None:
    reads = 0

    class Counting(MemoryAccess):
        def keys(self) -> Any:
            nonlocal reads
            reads += 1
            return super().keys()

    keys = Keys(Counting(), clock)
    key = make(keys, "acme").key
    for _ in range(10):
        keys.caller(key)
        keys.any()
    assert reads == 1
    make(keys, "acme")
    keys.caller(key)
    assert reads == 2


def test_keys_that_could_not_be_read_are_not_taken_for_the_ones_before(clock: ManualClock) -> None:
    class Failing(MemoryAccess):
        broken = False

        def keys(self) -> Any:
            if self.broken:
                raise OSError("the disk")
            return super().keys()

    store = Failing()
    keys = Keys(store, clock)
    key_id, key = make(keys, "acme")
    assert keys.caller(key)
    Keys(store, clock).revoke(key_id)
    store.broken = True
    for _ in range(2):
        with pytest.raises(OSError, match="the disk"):
            keys.caller(key)
    store.broken = False
    with pytest.raises(Unauthenticated):
        keys.caller(key)


def refusal(attempt: Callable[[], object]) -> FieldError:
    with pytest.raises(FieldError) as refused:
        attempt()
    return refused.value


def counted(monkeypatch: pytest.MonkeyPatch, where: Any, name: str, steps: list[str]) -> None:
    original = getattr(where, name)

    def step(*args: Any) -> Any:
        steps.append(name)
        return original(*args)

    monkeypatch.setattr(where, name, step)
