"""Who comes in, and to which field: every request is identified, counted, and led to its tenant's field."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, NamedTuple

import structlog
from msgspec.structs import replace
from starlette.types import Receive, Scope

from fieldstone.core.access import Caller
from fieldstone.core.errors import Unauthenticated
from fieldstone.field.field import LocalField
from fieldstone.ports.world import Clock
from fieldstone.servers.auth.credentials import Credentials
from fieldstone.servers.auth.keys import Granted
from fieldstone.servers.auth.limits import Limits
from fieldstone.servers.http.body import ClientGone
from fieldstone.servers.tenants import Tenants

LOOK_S: Final = 0.5  # how soon a long answer sees that its credential counts no more; to look at each piece is too dear
KNOCKS_TOLD_MS: Final = 60_000  # requests without a valid credential are counted, and told at most this often

logger = structlog.get_logger("fieldstone.entrance")


class CredentialGone(ClientGone):
    """Revoked while the answer was on its way: it is cut off, so that nobody takes it for whole."""


class Visit(NamedTuple):
    """A request, who sends it, and the field that it is about."""

    scope: Scope
    receive: Receive
    field: LocalField
    caller: Caller
    tenant: str
    tenants: Tenants
    charge: Callable[[Caller, int], None]
    still_known: Callable[[Scope], Awaitable[bool]] | None = None  # None: for as long as it takes

    def holds(self, requests: int) -> None:
        """It turned out to be so many requests in one: they count as such."""
        if requests > 1:
            self.charge(self.caller, requests - 1)

    async def held(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """A stream that outlives the handler. The field stays open until its end, or that of the credential."""
        loop = asyncio.get_running_loop()
        look_at = loop.time() + LOOK_S
        async with self.tenants.visit(self.tenant):
            async for piece in pieces:
                if self.still_known is not None and loop.time() >= look_at:
                    if not await self.still_known(self.scope):
                        raise CredentialGone
                    look_at = loop.time() + LOOK_S
                yield piece


class Entrance:
    """`default_rate` is for credentials that have no rate of their own."""

    def __init__(
        self, tenants: Tenants, credentials: Credentials, clock: Clock, *, default_rate: float | None = None
    ) -> None:
        self.tenants = tenants
        self._credentials = credentials
        self._clock = clock
        self._limits = Limits()
        self.default_rate: Final = default_rate
        self._knocks = 0
        self._told_ms: float | None = None

    @property
    def is_open(self) -> bool:
        return self._credentials.is_open()

    async def identify(self, scope: Scope) -> Granted:
        """Who sends the request. Raises `Unauthenticated` and `RateLimited`."""
        try:
            granted = await self._credentials.caller(scope["headers"])
        except Unauthenticated:
            self._note_knock()
            raise
        self._count(granted.caller)
        return granted

    async def still_knows(self, scope: Scope) -> bool:
        """Whether the credential counts to this moment. Not a request of its own: a stream asks now and then."""
        try:
            await self._credentials.caller(scope["headers"])
        except Unauthenticated:
            return False
        return True

    def visit(self, granted: Granted, scope: Scope, receive: Receive, field: LocalField) -> Visit:
        return Visit(scope, receive, field, granted.caller, granted.tenant, self.tenants, self._count, self.still_knows)

    def scrub(self, text: str) -> str:
        """A text for the server's own log, without what any tenant calls a secret."""
        for field in self.tenants.open_fields():
            text = field.scrub(text)
        return text

    def _count(self, caller: Caller, times: int = 1) -> None:
        if caller.rate_per_second is None:
            if self.default_rate is None:
                return
            caller = replace(caller, rate_per_second=self.default_rate)
        self._limits.take(caller, now_ms=self._clock.monotonic_ms(), times=times)

    def _note_knock(self) -> None:
        """For the operator: no tenant's business, so it is in no tenant's log. It says nothing of the token."""
        self._knocks += 1
        now = self._clock.monotonic_ms()
        if self._told_ms is None or now - self._told_ms >= KNOCKS_TOLD_MS:
            logger.warning("requests without a valid credential", times=self._knocks)
            self._knocks, self._told_ms = 0, now
