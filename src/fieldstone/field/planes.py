"""The three planes of a field: its streams, its transcripts, and contexts for the generation that is under way."""

import asyncio
from typing import Any

import structlog

from fieldstone.compaction.extractive import Extractive
from fieldstone.core.errors import FieldError
from fieldstone.field.cleaning import Cleaning
from fieldstone.field.options import Models
from fieldstone.planes.context.execution import ContextManager
from fieldstone.planes.context.tools import Tools
from fieldstone.planes.deletion import resume_deletions
from fieldstone.planes.delivery import Delivery
from fieldstone.planes.reconcile import Reconcile
from fieldstone.planes.runs import Runs
from fieldstone.planes.streams import Streams
from fieldstone.planes.sweeping import PlanesSwept, sweep_planes
from fieldstone.planes.transcript import ThreadRecalls, Transcript
from fieldstone.ports.planes import PlaneStore
from fieldstone.ports.world import Clock, Ids

logger = structlog.get_logger("fieldstone.planes")


class Planes:
    """Nothing is opened before somebody asks for it: most fields have no runs."""

    def __init__(self, store: PlaneStore, cleaning: Cleaning, models: Models, clock: Clock, ids: Ids) -> None:
        self._store = store
        self._resuming: asyncio.Task[None] | None = None
        self.streams = Streams(store, cleaning.harness, clock)
        self.delivery = Delivery(self.streams, clock)
        self.runs = Runs(store, clock, ids)
        self.transcript = Transcript(store, clock)
        self.reconciling = Reconcile(store, clock)
        self.tools = Tools(
            models.counter, models.summarizer or Extractive(models.counter), cleaning.harness, clock, ids
        )

    def context(self, max_tokens: int, *, thread: str | None = None, **options: Any) -> ContextManager:
        """Execution memory: the messages of one generation within a budget of tokens.

        With a `thread`, what a summary stands for is found again in its transcript.
        """
        recalls = None if thread is None else ThreadRecalls(self.transcript, thread)
        return ContextManager(max_tokens, self.tools, recalls=recalls, **options)

    async def start(self) -> None:
        """What was cut off goes on in the background. Where there never was a run, nothing is made for it."""
        if await self._store.bytes_used():
            self.streams.resume()
            self._resuming = asyncio.create_task(self._resume_deletions())

    async def _resume_deletions(self) -> None:
        try:
            await resume_deletions(self._store)
        except FieldError as full:  # it is done when the field opens again
            logger.warning("a deleted thread is not erased yet", code=full.code)

    async def sweep(self) -> PlanesSwept:
        """Clear secrets that became known late from events, snapshots and messages."""
        return await sweep_planes(self.streams) if await self._store.bytes_used() else PlanesSwept(0, 0, 0)

    async def close(self) -> None:
        if self._resuming is not None:
            self._resuming.cancel()
            await asyncio.wait([self._resuming])
        self.delivery.close()
        await self.streams.close()
        await self._store.close()
