"""The gate before every route: a server must not answer foreign web pages.

A page in the operator's browser can send requests to loopback. Its Origin gives it away; and where it has its own name
resolved to 127.0.0.1 (DNS rebinding), the Host header does. A page whose origin the settings name may come in.
"""

import re
from collections.abc import Iterable
from typing import Final

from fieldstone.core.errors import FieldError, Forbidden, ShuttingDown
from fieldstone.servers.http.answers import Header

LOOPBACK_NAMES: Final = ("localhost", "127.0.0.1", "[::1]")
REMEMBERED_HOSTS: Final = 100  # a caller sends the same Host each time; what is remembered stays small


class Gate:
    """`any_host` is for a server on all addresses that wants a key from everybody: nobody knows its names but DNS."""

    def __init__(
        self,
        bound_host: str,
        *,
        hosts: Iterable[str] = (),
        origins: Iterable[str] = (),
        scheme: str = "http",
        any_host: bool = False,
    ) -> None:
        known = (*LOOPBACK_NAMES, bracketed(bound_host).lower(), *(bracketed(host).lower() for host in hosts))
        names = r"[a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\]" if any_host else "|".join(map(re.escape, known))
        self._ours = re.compile(rf"({names})(:\d{{1,5}})?")
        self._scheme = f"{scheme}://".encode()
        self._origins = frozenset(origin.rstrip("/").lower().encode() for origin in origins)
        self._known: set[bytes] = set()
        self.stopping = False

    def refusal(self, headers: Iterable[Header]) -> FieldError | None:
        if self.stopping:
            return ShuttingDown()
        named = dict(headers)  # of two with the same name the last one: as cheap as it gets, for every request
        host, origin = named.get(b"host"), named.get(b"origin")
        if host is None or (host not in self._known and not self._is_ours(host)):
            return Forbidden(
                "The Host header does not name this server.",
                suggested_action="Use the address it serves on, or add this name to the server's setting `hosts`.",
            )
        if origin is not None and not self._is_welcome(origin.lower(), host.lower()):
            return Forbidden(
                "Web pages of another origin may not use this server.",
                suggested_action="Add the page's origin to the server's setting `origins`.",
            )
        return None

    def _is_welcome(self, origin: bytes, host: bytes) -> bool:
        return origin == self._scheme + host or origin in self._origins

    def _is_ours(self, host: bytes) -> bool:
        ours = self._ours.fullmatch(host.decode("latin-1").lower()) is not None
        if ours and len(self._known) < REMEMBERED_HOSTS:
            self._known.add(host)
        return ours


def bracketed(host: str) -> str:
    """A host as it stands in a URL."""
    return f"[{host}]" if ":" in host else host
