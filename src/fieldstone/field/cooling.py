"""Vectors of archived units leave the others, on disk and in memory, and come back when the units do.

It happens behind the log, in larger steps than units are archived in: nobody waits for it, and a block of the store is
moved once. What a crash leaves undone is seen when the vectors are read, by where they lie.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import structlog

from fieldstone.field.enrichment import Enrichment
from fieldstone.field.state import FieldState
from fieldstone.field.steps import parts

MOVED_UNITS: Final = 2_048  # half a megabyte at 256 dimensions, written in two steps to either file

logger = structlog.get_logger("fieldstone.cooling")


class Cooling:
    """The one way in which vectors change their place, or go. `loaded`: the models whose vectors are in memory."""

    def __init__(self, state: FieldState, loaded: Callable[[], Sequence[Enrichment]]) -> None:
        self._state = state
        self._loaded = loaded
        self._due: set[int] = set()  # archived, and not moved yet
        self._back: set[int] = set()  # not archived, and left in cold storage by a crash
        self._moving = asyncio.Lock()  # what is being copied must not be erased meanwhile
        self._task: asyncio.Task[None] | None = None

    async def cool(self, units: Sequence[int]) -> None:
        """These are archived. They are moved when there are enough of them; `flush` follows the last."""
        self._due.update(units)
        if len(self._due) >= MOVED_UNITS:
            await self.flush()

    async def flush(self) -> None:
        async with self._moving:
            for part in parts(sorted(self._due), MOVED_UNITS):
                await self._cool(part)
                self._shrink()
                await asyncio.sleep(0)

    async def warm(self, units: Sequence[int]) -> None:
        """These are restored."""
        async with self._moving:
            self._due.difference_update(units)
            self._back.difference_update(units)
            await self._written(units)
            for number, batch in (await self._state.store.vectors.warm(units)).items():
                for each in self._loaded():
                    if each.meaning.model.number == number:
                        each.warm(self._state.columns.rows_of(batch.seqs.tolist()), batch)
            for each in self._loaded():
                each.make_up_for(units)

    async def erase(self, units: Sequence[int]) -> None:
        """Nothing of these is left, neither on disk nor in memory."""
        async with self._moving:
            self._due.difference_update(units)
            await self._state.store.vectors.erase(units)
            for each in self._loaded():
                each.erase(self._state.columns.rows_of(units))
            self._shrink()

    def settle(self, hot: Sequence[int], cold: Sequence[int]) -> None:
        """These lie in the one part and belong to the other: an older version left them there, or a crash. They are
        moved in the background."""
        self._due.update(hot)
        self._back.update(cold)
        if self._task is None and (self._due or self._back):
            self._task = asyncio.get_running_loop().create_task(self._settle())
            self._task.add_done_callback(self._settled)

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _settle(self) -> None:
        while self._due or self._back:
            for part in parts(sorted(self._back), MOVED_UNITS):
                await self.warm(part)
            await self.flush()

    def _settled(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if not task.cancelled() and (error := task.exception()) is not None:
            # They are found where they are, and looked for again when the field opens.
            logger.warning("vectors do not lie where they belong", error=type(error).__name__, exc_info=error)

    async def _cool(self, units: Sequence[int]) -> None:
        await self._written(units)
        await self._state.store.vectors.cool(units)
        rows = self._state.columns.rows_of(units)
        for each in self._loaded():
            each.cool(rows)
        self._due.difference_update(units)

    async def _written(self, units: Sequence[int]) -> None:
        for each in self._loaded():
            await each.written(units)

    def _shrink(self) -> None:
        for each in self._loaded():
            each.meaning.index.shrink()
