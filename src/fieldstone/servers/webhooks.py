"""Webhooks: events are posted to where the settings say, each to each hook once it was taken, and in their order.

Every hook has a task and a durable mark of its own: one that is down delays nobody else, and goes on from where it was.
"""

import asyncio
import hmac
from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Final, get_args
from urllib.parse import urlsplit

import httpx
import structlog
from msgspec import Struct, json

from fieldstone.core.errors import StorageFull
from fieldstone.core.vocabulary import FeedKind
from fieldstone.ports.world import Clock
from fieldstone.profiles.openwop.feed import Feed, FeedEvent, FeedMark
from fieldstone.servers.tenants import Tenants
from fieldstone.settings import BadSettings, Secret, Settings, WebhookSettings, split_url

SIGNATURE_HEADER: Final = "Fieldstone-Signature"
TIMEOUT_S: Final = 10
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 300.0

_KINDS: Final[tuple[FeedKind, ...]] = get_args(FeedKind)

logger = structlog.get_logger("fieldstone.webhooks")


class Hook(Struct, frozen=True):
    url: str
    kinds: tuple[FeedKind, ...] | None  # None: all of them
    tenant: str
    secret: Secret

    @property
    def host(self) -> str:
        """What may be told of the address: the rest of it may be a secret."""
        return urlsplit(self.url).hostname or ""

    @property
    def mark(self) -> str:
        """By the address alone: a hook that wants other types, or signs with another key, is still the same."""
        return f"webhook:{sha256(self.url.encode()).hexdigest()[:32]}"


def hooks_from(settings: Settings, environ: Mapping[str, str]) -> tuple[Hook, ...]:
    """Raises `BadSettings`."""
    hooks = tuple(_hook(each, at, settings.tenant, environ) for at, each in enumerate(settings.webhooks, start=1))
    known: set[tuple[str, str]] = set()
    for at, hook in enumerate(hooks, start=1):
        if (hook.tenant, hook.url) in known:
            raise BadSettings(f"webhooks: the url of table {at} stands in an earlier one. Give that one all the types.")
        known.add((hook.tenant, hook.url))
    return hooks


def signature(secret: Secret, body: bytes, at_s: int) -> str:
    """The header's value. Whoever checks it refuses an old `t`, too: else what was sent once could be sent again."""
    signed = hmac.new(secret.reveal().encode(), b"%d.%b" % (at_s, body), sha256)
    return f"t={at_s},v1={signed.hexdigest()}"


class Webhooks:
    """`first_pause_s`: after a failure; each further one doubles it, up to LONGEST_PAUSE_S."""

    def __init__(
        self, hooks: Sequence[Hook], tenants: Tenants, clock: Clock, *, first_pause_s: float = FIRST_PAUSE_S
    ) -> None:
        self._hooks = hooks
        self._tenants = tenants
        self._clock = clock
        self._first_pause_s = first_pause_s
        self._client: httpx.AsyncClient | None = None
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        if not self._hooks:
            return  # a client alone takes a moment to make
        # Redirects are not followed: what is signed for one address is for no other. No hook waits for another's line.
        client = self._client = httpx.AsyncClient(timeout=TIMEOUT_S, limits=httpx.Limits(max_connections=None))
        for hook in self._hooks:
            delivery = Delivery(hook, self._tenants, self._clock, client, first_pause_s=self._first_pause_s)
            task = asyncio.create_task(delivery.run())
            task.add_done_callback(partial(_tell_if_broken, hook.host))
            self._tasks.append(task)

    async def close(self) -> None:
        """What was not taken by now is sent when the next one starts. Before the fields are closed."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._client is not None:
            await self._client.aclose()


class Delivery:
    """One hook: one event at a time, again and again until it is taken."""

    def __init__(
        self, hook: Hook, tenants: Tenants, clock: Clock, client: httpx.AsyncClient, *, first_pause_s: float
    ) -> None:
        self._hook = hook
        self._tenants = tenants
        self._clock = clock
        self._client = client
        self._first_pause_s = first_pause_s
        self._failures = 0

    async def run(self) -> None:
        while True:
            try:
                async with self._tenants.visit(self._hook.tenant) as field:
                    await self._follow(Feed(field), FeedMark(field.audit, self._hook.mark))
            except Exception as broken:  # why: a store that cannot be read now is asked again; no event is skipped
                logger.error("a webhook is held up", host=self._hook.host, exc_info=broken)
                await self._pause()

    async def _follow(self, feed: Feed, mark: FeedMark) -> None:
        since = await mark.cursor()
        while True:
            # Told anew for each try: what was purged meanwhile is not sent.
            event = await feed.first(kinds=self._hook.kinds, since=since)
            reason = await self._post(event)
            if reason is not None:
                self._tell(reason)
                await self._pause()
                continue
            self._tell_of_recovery()
            since = event.id
            await self._note(mark, since)

    async def _post(self, event: FeedEvent) -> str | None:
        """Why it was not taken. Nothing of what was answered is told: it may repeat the address."""
        body = json.encode(event.flat())
        signed = signature(self._hook.secret, body, self._clock.now_ms() // 1000)
        headers = {"content-type": "application/json", SIGNATURE_HEADER: signed}
        try:
            # httpx counts the time between two bytes: a hook that trickles would never be late.
            async with asyncio.timeout(TIMEOUT_S):
                async with self._client.stream("POST", self._hook.url, content=body, headers=headers) as answer:
                    return None if answer.is_success else f"status {answer.status_code}"
        except (TimeoutError, httpx.TimeoutException):
            return f"no answer within {TIMEOUT_S} s"
        except httpx.HTTPError as error:
            return type(error).__name__

    async def _note(self, mark: FeedMark, cursor: str) -> None:
        try:
            await mark.reached(cursor)
        except StorageFull:  # then it is sent once more after a restart, with the same id
            logger.warning("a webhook's mark has no room", host=self._hook.host)

    async def _pause(self) -> None:
        pause_s = min(self._first_pause_s * 2 ** min(self._failures, 16), LONGEST_PAUSE_S)
        self._failures += 1
        await asyncio.sleep(pause_s)

    def _tell(self, reason: str) -> None:
        """The first failure of a row of them: the log is no place for the others."""
        if self._failures == 0:
            logger.warning("a webhook does not take events; they are kept for it", host=self._hook.host, reason=reason)

    def _tell_of_recovery(self) -> None:
        if self._failures:
            logger.warning("a webhook takes events again", host=self._hook.host, after_tries=self._failures)
        self._failures = 0


def _hook(given: WebhookSettings, at: int, tenant: str, environ: Mapping[str, str]) -> Hook:
    where = f"webhooks, table {at}"
    address = split_url(given.url)
    if address is None or address.scheme not in ("http", "https") or not address.hostname:
        raise BadSettings(f"{where}: url is not a URL of http or https.")
    if "@" in address.netloc or address.fragment:
        raise BadSettings(f"{where}: url holds a password or a fragment. Deliveries are signed: see secret_env.")
    unknown = sorted(set(given.types) - set(_KINDS))
    if unknown:
        raise BadSettings(f"{where}: types has {', '.join(unknown)}. There are {', '.join(_KINDS)}.")
    secret = environ.get(given.secret_env, "")
    if not secret:
        raise BadSettings(f"{where}: the variable {given.secret_env}, which secret_env names, is not set.")
    kinds = tuple(kind for kind in _KINDS if kind in given.types) or None
    return Hook(given.url, kinds, given.tenant or tenant, Secret(secret))


def _tell_if_broken(host: str, task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("a webhook gets nothing more until the next start", host=host, exc_info=error)
