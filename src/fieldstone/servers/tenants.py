"""The open fields of a server: one for each tenant, opened when its first caller comes."""

import asyncio
from collections.abc import Awaitable, Callable
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

    def visit(self, tenant: str) -> "Stay":
        """`async with tenants.visit(tenant) as field`"""
        return Stay(self, tenant)

    def enter(self, tenant: str) -> _Opened:
        opened = self._find(tenant)
        opened.visitors += 1
        return opened

    def leave(self, tenant: str, opened: _Opened) -> None:
        opened.visitors -= 1
        failed = opened.opening.done() and (opened.opening.cancelled() or opened.opening.exception() is not None)
        if failed and self._opened.get(tenant) is opened:
            del self._opened[tenant]  # a field that could not be opened is not kept: the next one tries again

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


class Stay:
    """Somebody is in a field. Every request makes one: a generator's context would cost five times as much."""

    def __init__(self, tenants: Tenants, tenant: str) -> None:
        self._tenants = tenants
        self._tenant = tenant
        self._opened: _Opened | None = None

    async def __aenter__(self) -> LocalField:
        opened = self._opened = self._tenants.enter(self._tenant)
        if opened.opening.done():
            return self._or_leave(opened)
        try:
            return await asyncio.shield(opened.opening)
        except BaseException:  # why: whatever it was, nobody is in there
            self._tenants.leave(self._tenant, opened)
            raise

    async def __aexit__(self, *_: object) -> None:
        if self._opened is not None:
            self._tenants.leave(self._tenant, self._opened)

    def _or_leave(self, opened: _Opened) -> LocalField:
        try:
            return opened.opening.result()
        except BaseException:  # why: as above
            self._tenants.leave(self._tenant, opened)
            raise


async def _close(opened: _Opened) -> None:
    try:
        field = await opened.opening
    except Exception:  # why: whoever wanted it was told; there is nothing to close
        return
    await field.close()
