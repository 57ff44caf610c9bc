"""Keeps fresh vectors until they are in the store: behind the log, in batches.

A vector that a crash takes away is made again when the field opens: whatever unit has none is embedded then.
"""

import asyncio
from typing import Final

import numpy as np
import structlog

from fieldstone.core.errors import FieldError
from fieldstone.ports.vectors import Quantized, UnknownModel, VectorStore

BATCH_VECTORS: Final = 1_024
IDLE_MS: Final = 100  # with fewer waiting, they are written after this long
RETRY_MS: Final = 1_000  # after a disk that would not take them

logger = structlog.get_logger("fieldstone.vectors")


class VectorKeeper:
    def __init__(self, store: VectorStore, model: int) -> None:
        self._store = store
        self._model = model
        self._waiting: list[Quantized] = []
        self._count = 0
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def keep(self, batch: Quantized) -> None:
        self._waiting.append(batch)
        self._count += len(batch.seqs)
        if self._count >= BATCH_VECTORS:
            self._start()
        else:
            self._start_after(IDLE_MS)

    async def flush(self) -> None:
        """Return when all that was given so far is in the store, or the store would not take it."""
        self._start()
        if self._task is not None:
            await asyncio.wait([self._task])

    async def close(self) -> None:
        await self.flush()
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    def _start_after(self, delay_ms: int) -> None:
        if self._timer is None and self._task is None and not self._closed:
            self._timer = asyncio.get_running_loop().call_later(delay_ms / 1e3, self._start)

    def _start(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._task is None and self._waiting and not self._closed:
            self._task = asyncio.get_running_loop().create_task(self._write())
            self._task.add_done_callback(self._stopped)

    def _stopped(self, task: asyncio.Task[None]) -> None:
        self._task = None
        failed = task.cancelled() or task.exception() is not None
        if failed and not self._closed:
            logger.warning("vectors are not kept yet", vectors=self._count, error=repr(task.exception()))
            self._start_after(RETRY_MS)

    async def _write(self) -> None:
        while self._waiting:
            batches, self._waiting, self._count = self._waiting, [], 0
            try:
                await self._store.add(self._model, _joined(batches))
            except UnknownModel:
                return  # dropped meanwhile: nobody needs them
            except FieldError:
                self._waiting[:0] = batches
                self._count = sum(len(batch.seqs) for batch in self._waiting)
                raise


def _joined(batches: list[Quantized]) -> Quantized:
    return Quantized(*(np.concatenate(parts) for parts in zip(*batches, strict=True)))
