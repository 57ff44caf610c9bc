"""Retention policies on their schedules, while the field is open."""

import asyncio
from typing import Final

import structlog

from fieldstone.core.errors import FieldError
from fieldstone.field.retention import Outcome, Retention
from fieldstone.ports.world import Clock

# A run that was missed while nobody had the field open is made up for, but not by a command that is over in a moment.
SETTLING_MS: Final = 60_000
LOOK_EVERY_MS: Final = 60_000  # clocks are set, machines sleep: a long sleep would wake at the wrong time

logger = structlog.get_logger("fieldstone.scheduling")


class Scheduling:
    """One task that sleeps until the first policy is due. Without a scheduled policy there is none."""

    def __init__(self, retention: Retention, clock: Clock) -> None:
        self._retention = retention
        self._clock = clock
        self._not_before_ms = 0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Also when the policies have changed."""
        if self._not_before_ms == 0:
            self._not_before_ms = self._clock.now_ms() + SETTLING_MS
        if self._task is None and any(policy.due for policy in self._retention.policies):
            self._task = asyncio.create_task(self._run_for_ever())
            self._task.add_done_callback(_tell_if_broken)

    async def close(self) -> None:
        """A run that is under way is a compaction: it goes on when the field opens again."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def look(self) -> tuple[Outcome, ...]:
        """Run what is due. What cannot run now, because another compaction does, is due again at the next look."""
        if self._clock.now_ms() < self._not_before_ms:
            return ()
        try:
            return await self._retention.run_due()
        except FieldError as refused:
            logger.warning("a retention policy is due and could not run", code=refused.code)
            return ()

    async def pause_ms(self) -> int:
        """How long to sleep before the next look."""
        due_ms, now_ms = await self._retention.next_due_ms(), self._clock.now_ms()
        if due_ms is None:
            return LOOK_EVERY_MS
        wait_ms = max(due_ms, self._not_before_ms) - now_ms
        return min(wait_ms, LOOK_EVERY_MS) if wait_ms > 0 else LOOK_EVERY_MS  # it was due, and could not run

    async def _run_for_ever(self) -> None:
        while True:
            await asyncio.sleep(await self.pause_ms() / 1000)
            await self.look()


def _tell_if_broken(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("retention runs no more until the field opens again", error=type(error).__name__, exc_info=error)
