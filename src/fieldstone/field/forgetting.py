"""Answers are remembered for as long as the setting says, and then forgotten: also by a server that runs for months."""

import asyncio
from typing import Final

from fieldstone.core.errors import StorageFull
from fieldstone.ports.replies import Replies
from fieldstone.ports.world import Clock

AT_ONCE: Final = 10_000  # answers dropped in one transaction
EVERY_S: Final = 600.0  # they count for nothing once they are old; this only gives their room back


class Forgetting:
    def __init__(self, replies: Replies, clock: Clock, *, after_ms: int) -> None:
        self._replies = replies
        self._clock = clock
        self._after_ms = after_ms
        self._task: asyncio.Task[None] | None = None

    @property
    def horizon_ms(self) -> int:
        """What was answered before this is forgotten, whether or not it is gone yet."""
        return self._clock.now_ms() - self._after_ms

    async def start(self) -> None:
        await self._forget()
        self._task = asyncio.create_task(self._forget_now_and_then())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _forget_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            await self._forget()

    async def _forget(self) -> None:
        try:
            while await self._replies.forget_before(self.horizon_ms, limit=AT_ONCE) == AT_ONCE:
                pass
        except StorageFull:
            pass  # a store on a full disk can still be read; they are forgotten when there is room
