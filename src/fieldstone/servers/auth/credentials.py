"""From a request's headers to who calls. A token that is refused is neither repeated nor logged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from fieldstone.core.access import LOCAL
from fieldstone.core.errors import Unauthenticated
from fieldstone.servers.auth.keys import TOKEN_PREFIX, Granted, Keys

if TYPE_CHECKING:  # it needs an extra, which a server with keys alone does without
    from fieldstone.servers.auth.jwt import JwtTokens

MAX_TOKEN_BYTES: Final = 8_192  # as long as a header can be nearly everywhere
_SCHEME: Final = b"bearer "


class Credentials:
    """`Authorization: Bearer <key or JWT>`. While neither exists the field is open, for one local operator."""

    def __init__(self, keys: Keys, *, local_tenant: str, tokens: JwtTokens | None = None) -> None:
        self._keys = keys
        self._tokens = tokens
        self._open = Granted(local_tenant, LOCAL)

    def is_open(self) -> bool:
        """Asked anew each time: the first key that anybody makes closes the field, here and at once."""
        return self._tokens is None and not self._keys.any()

    async def caller(self, headers: Iterable[tuple[bytes, bytes]]) -> Granted:
        """Whose memory, and who. Raises `Unauthenticated`, in the same words whatever is wrong."""
        if self.is_open():
            return self._open
        token = _bearer(headers)
        if token.startswith(TOKEN_PREFIX):
            return self._keys.caller(token)
        if self._tokens is None:
            raise Unauthenticated
        return await self._tokens.caller(token)


def _bearer(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """Header names are lower case, as ASGI has them. Two such headers are none: who would say which one counts?"""
    given = [value for name, value in headers if name == b"authorization"]
    if len(given) != 1 or not given[0].lower().startswith(_SCHEME):
        raise Unauthenticated
    token = given[0][len(_SCHEME) :].strip(b" ")
    if not token or len(token) > MAX_TOKEN_BYTES or not token.isascii():
        raise Unauthenticated
    return token.decode("ascii")
