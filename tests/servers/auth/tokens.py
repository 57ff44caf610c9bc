"""Keys that no test may hold as a literal: they are built."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import convert

from fieldstone.servers.auth.bounds import Maker
from fieldstone.servers.auth.keys import Keys, MadeKey, NewKey

OPERATOR: Final = Maker()
OTHER_SECRET: Final = "A" * 43
DAY_MS: Final = 24 * 60 * 60 * 1000


def make(keys: Keys, tenant: str, *, expires_ms: int | None = None, maker: Maker = OPERATOR, **wishes: Any) -> MadeKey:
    expires = None if expires_ms is None else datetime.fromtimestamp(expires_ms / 1_000, UTC)
    return keys.create(convert({"tenant": tenant, "expires": expires, **wishes}, NewKey), maker)


def with_secret(key: str, secret: str = OTHER_SECRET) -> str:
    """The key with another secret part."""
    return f"{key[:21]}{secret}"


def with_id(key: str, number: str = "0" * 16) -> str:
    return f"{key[:4]}{number}{key[20:]}"


def bearer(token: str | bytes, name: bytes = b"authorization") -> list[tuple[bytes, bytes]]:
    return [(b"host", b"localhost"), (name, b"Bearer " + (token.encode() if isinstance(token, str) else token))]


def statuses(keys: Keys, tenant: str | None = None) -> Sequence[str]:
    return [key.status for key in keys.list(tenant)]
