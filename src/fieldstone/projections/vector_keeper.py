"""Keeps fresh vectors until they are in the store: behind the log, in batches.

A vector that a crash takes away is made again when the field opens: whatever unit has none is embedded then.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import structlog
from numpy.typing import NDArray

from fieldstone.ports.vectors import Quantized, UnknownModel, VectorStore

BATCH_VECTORS: Final = 1_024
IDLE_MS: Final = 100  # with fewer waiting, they are written after this long
RETRY_MS: Final = 1_000  # after a disk that would not take them
MOST_WAITING: Final = 131_072  # beyond it the oldest are dropped: they are made again when the field opens

logger = structlog.get_logger("fieldstone.vectors")


class VectorKeeper:
    """`archived` tells which of some units are: their vectors go into cold storage."""

    def __init__(
        self, store: VectorStore, model: int, archived: Callable[[NDArray[np.int64]], NDArray[np.bool_]]
    ) -> None:
        self._store = store
        self._model = model
        self._archived = archived
        self._waiting: list[Quantized] = []
        self._count = 0
        self._refused = False  # by the last write: the next one waits for its time, however many there are
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def keep(self, batch: Quantized) -> None:
        self._waiting.append(batch)
        self._count += len(batch.seqs)
        self._drop_excess()
        if self._count >= BATCH_VECTORS and not self._refused:
            self._start()
        else:
            self._start_after(IDLE_MS)

    def holds_any(self, units: Sequence[int]) -> bool:
        """Whether a vector of one of these is not in the store yet."""
        asked_for = set(units)
        return any(not asked_for.isdisjoint(batch.seqs.tolist()) for batch in self._waiting)

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
        error = None if task.cancelled() else task.exception()
        self._refused = error is not None
        if error is not None:
            logger.warning("vectors are not kept yet", vectors=self._count, error=type(error).__name__)
        if self._waiting:  # refused, or come while it was about to stop
            self._start_after(RETRY_MS if self._refused else IDLE_MS)

    async def _write(self) -> None:
        while self._waiting:
            batches = list(self._waiting)
            try:
                await self._add(_joined(batches))
            except UnknownModel:  # dropped meanwhile: nobody needs them
                self._waiting.clear()
                self._count = 0
                return
            self._forget(batches)

    async def _add(self, batch: Quantized) -> None:
        is_cold = self._archived(batch.seqs)
        for which, cold in ((~is_cold, False), (is_cold, True)):
            if which.any():
                part = Quantized(batch.seqs[which], batch.scales[which], batch.codes[which])
                await self._store.add(self._model, part, cold=cold)

    def _forget(self, batches: list[Quantized]) -> None:
        """Only now: whatever goes wrong before, they are still here."""
        written = {id(batch) for batch in batches}
        self._waiting = [batch for batch in self._waiting if id(batch) not in written]
        self._count = sum(len(batch.seqs) for batch in self._waiting)

    def _drop_excess(self) -> None:
        while self._count > MOST_WAITING and len(self._waiting) > 1:
            self._count -= len(self._waiting.pop(0).seqs)


def _joined(batches: list[Quantized]) -> Quantized:
    return Quantized(*(np.concatenate(parts) for parts in zip(*batches, strict=True)))
