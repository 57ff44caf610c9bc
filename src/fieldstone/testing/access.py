"""What a store of keys and sealed secrets promises. What a crash does to it is tested with a process that is killed."""

from collections.abc import Iterator
from typing import Any, Final, Protocol

import pytest
from msgspec.structs import replace

from fieldstone.ports.access import AccessStore, KeyRecord, SealedSecret

CREATED_MS: Final = 1_750_000_000_000


class OpenAccess(Protocol):
    """Within one test all openings are of one store. One that keeps nothing gives the same object each time."""

    def __call__(self) -> AccessStore: ...


def key_record(number: int = 1, **other: Any) -> KeyRecord:
    given: dict[str, Any] = {
        "id": f"key-{number:016x}",
        "tenant": "acme",
        "authority": 4,
        "salt": bytes([number]) * 16,
        "digest": bytes([number, 0]) * 16,
        "created_ms": CREATED_MS + number,
    }
    return KeyRecord(**given | other)


def sealed_secret(secret_id: str = "db-password", **other: Any) -> SealedSecret:
    given: dict[str, Any] = {"id": secret_id, "tenant": "acme", "scope": "tenant", "sealed": b"\x00sealed\xff"}
    return SealedSecret(**given | other)


class AccessStoreTests:
    """Give a fixture `open_access`; the tests get an open `access`."""

    @pytest.fixture
    def access(self, open_access: OpenAccess) -> Iterator[AccessStore]:
        store = open_access()
        yield store
        store.close()

    def test_a_new_store_holds_nothing(self, access: AccessStore) -> None:
        assert list(access.keys()) == []
        assert list(access.secrets()) == []

    def test_a_key_is_read_as_it_was_put(self, access: AccessStore) -> None:
        bare = key_record(1)
        full = key_record(
            2,
            tenant="Zürich",
            authority=10,
            agents=("ada", 'ben "b" 東京'),
            expires_ms=CREATED_MS + 10,
            revoked_ms=CREATED_MS + 5,
            rate_per_second=0.25,
            quota_units=2**53 - 1,
        )
        for record in (bare, full, key_record(3, agents=())):
            access.put_key(record)
        assert list(access.keys()) == [bare, full, key_record(3, agents=())]

    def test_keys_of_all_tenants_are_listed_oldest_first(self, access: AccessStore) -> None:
        for number in (3, 1, 2):
            access.put_key(key_record(number, tenant=f"tenant-{number}"))
        records = access.keys()
        assert [record.tenant for record in records] == ["tenant-1", "tenant-2", "tenant-3"]

    def test_a_key_is_replaced_by_the_one_with_its_id(self, access: AccessStore) -> None:
        access.put_key(key_record())
        changed = key_record(authority=6, digest=b"another", revoked_ms=CREATED_MS + 1)
        access.put_key(changed)
        assert list(access.keys()) == [changed]

    def test_a_revoked_key_stays_revoked_whatever_is_put(self, access: AccessStore) -> None:
        revoked = key_record(revoked_ms=CREATED_MS + 1)
        access.put_key(revoked)
        access.put_key(replace(revoked, digest=b"rotated meanwhile", revoked_ms=None))
        access.put_key(replace(revoked, digest=b"and once more", revoked_ms=CREATED_MS + 9))
        assert list(access.keys()) == [replace(revoked, digest=b"and once more")]

    def test_secrets_are_kept_apart_by_tenant_and_listed_in_order(self, access: AccessStore) -> None:
        ours = [sealed_secret("a"), sealed_secret("b", scope="run:7"), sealed_secret("b", tenant="zeta", sealed=b"")]
        for secret in reversed(ours):
            access.put_secret(secret)
        assert list(access.secrets()) == ours

    def test_a_secret_is_replaced_by_the_tenants_one_with_its_id(self, access: AccessStore) -> None:
        other = sealed_secret(tenant="other")
        changed = sealed_secret(scope="user:ada", sealed=b"new")
        for secret in (sealed_secret(), other, changed):
            access.put_secret(secret)
        assert list(access.secrets()) == [changed, other]

    def test_a_dropped_secret_is_gone_and_only_that_one(self, access: AccessStore) -> None:
        other = sealed_secret(tenant="other")
        access.put_secret(sealed_secret())
        access.put_secret(other)
        assert access.drop_secret("acme", "db-password") is True
        assert access.drop_secret("acme", "db-password") is False
        assert access.drop_secret("nobody", "db-password") is False
        assert list(access.secrets()) == [other]

    def test_the_version_changes_with_every_change_and_only_then(self, access: AccessStore) -> None:
        seen = [access.version()]
        for change in (
            lambda: access.put_key(key_record()),
            lambda: access.put_key(key_record(revoked_ms=CREATED_MS + 1)),
            lambda: access.put_secret(sealed_secret()),
            lambda: access.drop_secret("acme", "db-password"),
        ):
            change()
            seen.append(access.version())
            list(access.keys()), list(access.secrets())
            assert access.version() == seen[-1]
        assert len(set(seen)) == len(seen)

    def test_what_one_opening_writes_every_other_sees_at_once(
        self, access: AccessStore, open_access: OpenAccess
    ) -> None:
        other = open_access()
        before = other.version()
        access.put_key(key_record())
        assert other.version() != before
        assert list(other.keys()) == [key_record()]
        before = access.version()
        other.put_key(key_record(revoked_ms=CREATED_MS + 1))
        assert access.version() != before
        assert list(access.keys()) == [key_record(revoked_ms=CREATED_MS + 1)]
        other.close()
