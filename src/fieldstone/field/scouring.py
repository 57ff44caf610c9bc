"""Journals and free pages keep what was erased until they are written over: that is seen to, also after a restart."""

import asyncio
from typing import Final

import structlog

from fieldstone.field.state import FieldState

DUE: Final = "scour-due"  # the mark: something was erased, and a reader of an older state may still hold it
PAUSE_S: Final = 0.5

logger = structlog.get_logger("fieldstone.scouring")


class Scouring:
    def __init__(self, state: FieldState) -> None:
        self._state = state
        self._task: asyncio.Task[None] | None = None

    async def scour(self) -> bool:
        """Whether nothing is left. What a reader still holds is cleared once it has gone, by itself."""
        await self._state.store.marks.set(DUE, 1)
        if await self._try():
            return True
        self._start()
        return False

    async def catch_up(self) -> None:
        if await self._state.store.marks.get(DUE):
            self._start()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _start(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._until_done())
            self._task.add_done_callback(self._stopped)

    async def _until_done(self) -> None:
        is_done = False
        while not is_done:
            await asyncio.sleep(PAUSE_S)
            is_done = await self._try()

    async def _try(self) -> bool:
        store = self._state.store
        is_done = await store.scour()
        if is_done:
            await store.marks.set(DUE, 0)  # itself leaves a page in the journal, with nothing in it
        return is_done

    def _stopped(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("what was erased could not be written over", error=type(error).__name__, exc_info=error)
