"""The gate before every route. The server is open for one local operator, so it must not answer foreign web pages.

A page in the operator's browser can send requests to loopback. Its Origin gives it away; and where it has its own name
resolved to 127.0.0.1 (DNS rebinding), the Host header does.
"""

import re
from collections.abc import Iterable
from typing import Final

from fieldstone.core.errors import FieldError, Forbidden, ShuttingDown
from fieldstone.servers.http.answers import Header

LOOPBACK_NAMES: Final = ("localhost", "127.0.0.1", "[::1]")
REMEMBERED_HOSTS: Final = 100  # a caller sends the same Host each time; what is remembered stays small


class Gate:
    def __init__(self, bound_host: str) -> None:
        names = "|".join(map(re.escape, (*LOOPBACK_NAMES, bracketed(bound_host).lower())))
        self._ours = re.compile(rf"({names})(:\d{{1,5}})?")
        self._known: set[bytes] = set()
        self.stopping = False

    def refusal(self, headers: Iterable[Header]) -> FieldError | None:
        if self.stopping:
            return ShuttingDown()
        host = origin = None
        for name, value in headers:
            if name == b"host":
                host = value
            elif name == b"origin":
                origin = value
        if host is None or (host not in self._known and not self._is_ours(host)):
            return Forbidden("The Host header must name this server by a loopback address.")
        if origin is not None and origin.lower() != b"http://" + host.lower():
            return Forbidden("Web pages of another origin may not use this server.")
        return None

    def _is_ours(self, host: bytes) -> bool:
        ours = self._ours.fullmatch(host.decode("latin-1").lower()) is not None
        if ours and len(self._known) < REMEMBERED_HOSTS:
            self._known.add(host)
        return ours


def bracketed(host: str) -> str:
    """A host as it stands in a URL."""
    return f"[{host}]" if ":" in host else host
