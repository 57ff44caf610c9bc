"""Who may come in, and the secrets to be found in texts: kept apart from the memory, so that no copy of it has them."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct


class KeyRecord(Struct, frozen=True, kw_only=True):
    """A key as it is kept. The key itself is nowhere: `digest` is a salted digest of its secret part."""

    id: str
    tenant: str
    authority: int
    agents: tuple[str, ...] | None = None  # None: any agent that it registers
    salt: bytes
    digest: bytes
    created_ms: int
    expires_ms: int | None = None
    revoked_ms: int | None = None
    rate_per_second: float | None = None
    quota_units: int | None = None


class SealedSecret(Struct, frozen=True, kw_only=True):
    """A registered secret. `scope` is "tenant", "user:<id>" or "run:<id>": it says when the value is dropped."""

    id: str
    tenant: str
    scope: str
    sealed: bytes


class WrongSealingKey(Exception):
    """The sealed secrets cannot be opened with this key. The message says what to do; nothing was changed."""


class AccessStore(Protocol):
    """What a write has returned from is on disk, and seen by every process that has the same store open.

    Writes raise `StorageFull` where there is no room; reads go on. Keys are never deleted, only revoked: a store that
    once had a key never falls open again.
    """

    def version(self) -> int:
        """Another number than before whenever anybody, in any process, has changed anything. Cheap: asked per request.

        Numbers of two openings have nothing to do with each other.
        """
        ...

    def keys(self) -> Sequence[KeyRecord]:
        """All keys of all tenants, revoked ones too, the oldest first."""
        ...

    def put_key(self, record: KeyRecord) -> None:
        """Insert it, or replace the one with this id. A revoked key stays revoked, whatever the record says.

        Whoever rotates a key that another process is just revoking must not bring it back to life.
        """
        ...

    def secrets(self) -> Sequence[SealedSecret]:
        """Those of all tenants, by tenant and id."""
        ...

    def put_secret(self, secret: SealedSecret) -> None:
        """Insert it, or replace the tenant's one with this id."""
        ...

    def drop_secret(self, tenant: str, secret_id: str) -> bool:
        """Whether there was one."""
        ...

    def close(self) -> None: ...


class Sealing(Protocol):
    """`context` says what a sealed text is of: sealed for one place, it opens in no other."""

    def seal(self, plain: bytes, context: bytes) -> bytes: ...

    def open(self, sealed: bytes, context: bytes) -> bytes:
        """Raises `WrongSealingKey` where key or context are not the ones it was sealed with, or it was changed."""
        ...
