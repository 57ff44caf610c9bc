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


class Room:
    """A tenant's field, open or being opened, and how many are in it: `with tenants.enter(tenant) as room`."""

    def __init__(self, opening: "asyncio.Future[LocalField]") -> None:
        self.opening = opening
        self.field: LocalField | None = None  # once it is open
        self.visitors = 0

    def __enter__(self) -> "Room":
        self.visitors += 1
        return self

    def __exit__(self, *_: object) -> None:
        self.visitors -= 1

    async def opened(self) -> LocalField:
        """Whoever goes away before it is open leaves it to the others."""
        return await asyncio.shield(self.opening)


class Tenants:
    """A field stays open while somebody is in it. Fields are kept in the order of their last visit."""

    def __init__(self, open_field: OpenField, *, most_open: int = MOST_OPEN) -> None:
        self._open_field = open_field
        self._most_open = most_open
        self._rooms: dict[str, Room] = {}
        self._closing: dict[str, asyncio.Task[None]] = {}
        self._closed = False

    @property
    def writable(self) -> bool:
        return not self._closed

    @asynccontextmanager
    async def visit(self, tenant: str) -> AsyncIterator[LocalField]:
        with self.enter(tenant) as room:
            yield await room.opened()

    def enter(self, tenant: str) -> Room:
        """What every request does, without a generator and its turns: where the field is open, it is `room.field`."""
        if self._closed:
            raise ShuttingDown
        room = self._rooms.pop(tenant, None)
        if room is None:
            self._make_room()
            room = Room(asyncio.ensure_future(self._open(tenant)))
            room.opening.add_done_callback(partial(self._opened, tenant, room))
        self._rooms[tenant] = room  # at the end: it is the one that was used last
        return room

    def open_fields(self) -> list[LocalField]:
        done = (each.opening for each in self._rooms.values())
        return [opening.result() for opening in done if opening.done() and opening.exception() is None]

    async def close(self) -> None:
        """What was accepted is finished in every field, whatever becomes of the others."""
        self._closed = True
        rooms, self._rooms = self._rooms, {}
        results = await asyncio.gather(*(_close(each) for each in rooms.values()), return_exceptions=True)
        await asyncio.gather(*self._closing.values())
        for result in results:
            if isinstance(result, BaseException):
                raise result

    def _opened(self, tenant: str, room: Room, opening: "asyncio.Future[LocalField]") -> None:
        """Known before anybody who waited for it goes on."""
        if not opening.cancelled() and opening.exception() is None:
            room.field = opening.result()
        elif self._rooms.get(tenant) is room:
            del self._rooms[tenant]  # a field that could not be opened is not kept: the next one tries again

    async def _open(self, tenant: str) -> LocalField:
        """A field that is still being closed to make room is let go of first: there is one writer."""
        if tenant in self._closing:
            await asyncio.wait([self._closing[tenant]])
        return await self._open_field(tenant)

    def _make_room(self) -> None:
        idle = [tenant for tenant, each in self._rooms.items() if not each.visitors and each.opening.done()]
        for tenant in idle[: max(0, len(self._rooms) - self._most_open + 1)]:
            task = asyncio.ensure_future(_close(self._rooms.pop(tenant)))
            self._closing[tenant] = task
            task.add_done_callback(partial(self._left, tenant))

    def _left(self, tenant: str, task: asyncio.Task[None]) -> None:
        del self._closing[tenant]
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("a field could not be closed", error=type(error).__name__, exc_info=error)


async def _close(room: Room) -> None:
    try:
        field = await room.opening
    except Exception:  # why: whoever wanted it was told; there is nothing to close
        return
    await field.close()
