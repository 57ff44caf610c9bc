"""The open fields of a server: one for each tenant, opened when its first caller comes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import structlog

from fieldstone.core.errors import ShuttingDown
from fieldstone.field.field import LocalField

MOST_OPEN: Final = 256  # a field that is open holds its columns in memory; those that nobody uses make room

logger = structlog.get_logger("fieldstone.tenants")

OpenField = Callable[[str], Awaitable[LocalField]]


class _Opened:
    def __init__(self, opening: "asyncio.Future[LocalField]") -> None:
        self.opening = opening
        self.visitors = 0


class Tenants:
    """A field stays open while somebody is in it. Fields are kept in the order of their last visit."""

    def __init__(self, open_field: OpenField, *, most_open: int = MOST_OPEN) -> None:
        self._open_field = open_field
        self._most_open = most_open
        self._opened: dict[str, _Opened] = {}
        self._closing: dict[str, asyncio.Task[None]] = {}
        self._closed = False

    @property
    def writable(self) -> bool:
        return not self._closed

    @asynccontextmanager
    async def visit(self, tenant: str) -> AsyncIterator[LocalField]:
        opened = self._find(tenant)
        opened.visitors += 1
        try:
            yield await asyncio.shield(opened.opening)
        except BaseException:  # why: whatever it was, a field that could not be opened is not kept as if it were
            failed = opened.opening.done() and opened.opening.exception() is not None
            if failed and self._opened.get(tenant) is opened:
                del self._opened[tenant]  # the next one tries again
            raise
        finally:
            opened.visitors -= 1

    def open_fields(self) -> list[LocalField]:
        done = (each.opening for each in self._opened.values())
        return [opening.result() for opening in done if opening.done() and opening.exception() is None]

    async def close(self) -> None:
        """What was accepted is finished in every field, whatever becomes of the others."""
        self._closed = True
        opened, self._opened = self._opened, {}
        results = await asyncio.gather(*(_close(each) for each in opened.values()), return_exceptions=True)
        await asyncio.gather(*self._closing.values())
        for result in results:
            if isinstance(result, BaseException):
                raise result

    def _find(self, tenant: str) -> _Opened:
        if self._closed:
            raise ShuttingDown
        opened = self._opened.pop(tenant, None)
        if opened is None:
            self._make_room()
            opened = _Opened(asyncio.ensure_future(self._open(tenant)))
        self._opened[tenant] = opened  # at the end: it is the one that was used last
        return opened

    async def _open(self, tenant: str) -> LocalField:
        """A field that is still being closed to make room is let go of first: there is one writer."""
        if tenant in self._closing:
            await asyncio.wait([self._closing[tenant]])
        return await self._open_field(tenant)

    def _make_room(self) -> None:
        idle = [tenant for tenant, each in self._opened.items() if not each.visitors and each.opening.done()]
        for tenant in idle[: max(0, len(self._opened) - self._most_open + 1)]:
            task = asyncio.ensure_future(_close(self._opened.pop(tenant)))
            self._closing[tenant] = task
            task.add_done_callback(partial(self._left, tenant))

    def _left(self, tenant: str, task: asyncio.Task[None]) -> None:
        del self._closing[tenant]
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("a field could not be closed", error=type(error).__name__, exc_info=error)


async def _close(opened: _Opened) -> None:
    try:
        field = await opened.opening
    except Exception:  # why: whoever wanted it was told; there is nothing to close
        return
    await field.close()
