"""Events for OpenTelemetry: `openwop.memory.compacted` and its kin, as log records with an event name.

Only where the extra is installed and somebody has configured a logger provider. Nothing of it is loaded otherwise.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, Final

import structlog

from fieldstone.core.errors import StorageFull
from fieldstone.field.field import LocalField
from fieldstone.profiles.openwop.feed import Feed, FeedEvent, FeedMark

NAMESPACE: Final = "openwop"
MARK: Final = "telemetry"
PAUSE_S: Final = 60.0  # before the next try, where the field could not be read
# What the API has instead of a provider while there is none.
NO_PROVIDERS: Final = frozenset({"ProxyLoggerProvider", "NoOpLoggerProvider"})

Tell = Callable[[str, FeedEvent], None]  # of a tenant

logger = structlog.get_logger("fieldstone.telemetry")


def otel_tell() -> Tell | None:
    """What hands an event to OpenTelemetry; None where nobody would get it."""
    if find_spec("opentelemetry") is None or find_spec("opentelemetry._logs") is None:
        return None
    logs = import_module("opentelemetry._logs")
    provider = logs.get_logger_provider()
    if type(provider).__name__ in NO_PROVIDERS:
        return None
    emitter = provider.get_logger("fieldstone", version=version("fieldstone"))

    def tell(tenant: str, event: FeedEvent) -> None:
        emitter.emit(
            timestamp=_nanoseconds(event.ts),
            severity_number=logs.SeverityNumber.INFO,
            event_name=f"{NAMESPACE}.{event.type}",
            attributes=attributes(tenant, event),
        )

    return tell


def attributes(tenant: str, event: FeedEvent) -> dict[str, Any]:
    """The payload under the names that the contract has for it."""
    own = {"fieldstone.tenant": tenant, f"{NAMESPACE}.event_id": event.id}
    return own | {f"{NAMESPACE}.{name}": value for name, value in _flattened(event.payload)}


class Telemetry:
    """Follows one open field. What happens while no server runs is told when the next one starts."""

    def __init__(self, field: LocalField, tenant: str, tell: Tell) -> None:
        self._tenant = tenant
        self._tell = tell
        self._feed = Feed(field)
        self._mark = FeedMark(field.audit, MARK)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Before the field is closed."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        while True:
            try:
                await self._follow()
            except Exception as broken:  # why: telemetry breaks nothing; it goes on from its mark
                logger.error("telemetry is held up", error=type(broken).__name__, exc_info=broken)
            await asyncio.sleep(PAUSE_S)

    async def _follow(self) -> None:
        since = await self._mark.cursor()
        while True:
            head = self._feed.head
            page = await self._feed.page(since=since)
            for event in page.events:
                self._tell(self._tenant, event)
            if page.events:
                await self._note(page.next)
            else:
                await self._feed.news(head)
            since = page.next

    async def _note(self, cursor: str) -> None:
        try:
            await self._mark.reached(cursor)
        except StorageFull:  # then it is told once more after a restart
            logger.warning("the mark of telemetry has no room")


def _flattened(payload: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in payload.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{inner}", each) for inner, each in _flattened(value))
        else:
            yield name, value


def _nanoseconds(ts: str) -> int:
    return round(datetime.fromisoformat(ts).timestamp() * 1_000) * 1_000_000
