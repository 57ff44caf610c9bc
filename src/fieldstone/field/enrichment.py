"""Embeds units once they are on disk: in batches, for a while as part of the answer, and after that by itself."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
import structlog

from fieldstone.core.events import UnitTexts, decode_texts
from fieldstone.field.state import FieldState
from fieldstone.ports.embedder import Embedder, EmbeddingFailed
from fieldstone.ports.vectors import Quantized
from fieldstone.projections.columns import LAST_EMBEDDED_STATUS
from fieldstone.projections.meaning import Meaning
from fieldstone.projections.vector_index import Floats, quantize
from fieldstone.projections.vector_keeper import VectorKeeper

FIRST_PAUSE_MS: Final = 500
LONGEST_PAUSE_MS: Final = 60_000

logger = structlog.get_logger("fieldstone.enrichment")
Enriched = Callable[[Sequence[int]], None]


class Enrichment:
    """One model's vectors, kept in step with the units. `enriched` is told of units that were late."""

    def __init__(
        self, state: FieldState, embedder: Embedder, meaning: Meaning, keeper: VectorKeeper, enriched: Enriched
    ) -> None:
        self._state = state
        self.embedder = embedder
        self.meaning = meaning
        self._keeper = keeper
        self._enriched = enriched
        self._queue: dict[int, str | None] = {}  # unit → its content; None: to be read from the store
        self._late: set[int] = set()
        self._waiters: list[tuple[set[int], asyncio.Future[None]]] = []
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._pause_ms = 0
        self._warming = asyncio.get_running_loop().create_task(self._warm_up())
        self._closed = False

    @property
    def behind(self) -> int:
        """How many units have no vector yet."""
        return len(self._queue)

    @property
    def ready(self) -> bool:
        """False after a failure, until the model answers again: nobody should wait for it meanwhile."""
        return self._pause_ms == 0

    def catch_up(self) -> None:
        """Every unit without a vector gets one, in the background."""
        units = self._state.columns.snapshot(self._state.epoch)
        rows = self.meaning.index.missing(units.size)
        seqs = units.seq[rows[units.status[rows] <= LAST_EMBEDDED_STATUS]].tolist()
        self._late.update(seqs)
        self._queue.update(dict.fromkeys(seqs))
        self._start()

    async def enrich(self, texts: Mapping[int, str], timeout_ms: float) -> set[int]:
        """Embed these units; which of them have no vector when the time is over. They get one later, by themselves."""
        self._queue.update(texts)
        missing = set(texts)
        await asyncio.wait([self._warming])  # loading is not the model's slowness, and it happens once
        if self.ready:
            self._start()
            waiter = (missing, asyncio.get_running_loop().create_future())
            self._waiters.append(waiter)
            await asyncio.wait([waiter[1]], timeout=timeout_ms / 1e3)
            if waiter in self._waiters:
                self._waiters.remove(waiter)
        self._late |= missing
        return missing

    async def flush(self) -> None:
        """Return when every vector that was made is in the store."""
        await self._keeper.flush()

    def report_to(self, enriched: Enriched) -> None:
        """Somebody else is told of late units from now on."""
        self._enriched = enriched

    async def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        await asyncio.wait([self._warming, *([self._task] if self._task else ())])
        await self._keeper.close()
        await self.embedder.close()

    async def _warm_up(self) -> None:
        try:
            await self.embedder.embed([])
        except EmbeddingFailed as failed:
            logger.warning("the embedding model does not load", why=str(failed))

    def _start(self) -> None:
        self._timer = None
        if self._task is None and self._queue and not self._closed:
            self._task = asyncio.get_running_loop().create_task(self._work())
            self._task.add_done_callback(self._stopped)

    def _stopped(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("embedding broke", error=type(error).__name__, exc_info=error)
            self._back_off()
        if self._queue and self.ready:
            self._start()

    async def _work(self) -> None:
        while self._queue and not self._closed:
            batch = dict(list(self._queue.items())[: self.embedder.most_at_once])
            try:
                texts = await self._texts(batch)
                vectors = await self.embedder.embed(list(texts.values()))
            except EmbeddingFailed as failed:
                logger.warning("embedding failed", units=len(self._queue), why=str(failed), again_in_ms=self._pause_ms)
                self._back_off()
                return
            self._pause_ms = 0
            self._take(list(texts), vectors)
            self._done(batch)

    async def _texts(self, batch: Mapping[int, str | None]) -> dict[int, str]:
        stored = await self._state.store.texts.get([seq for seq, text in batch.items() if text is None])
        read = {seq: decode_texts(each.body, UnitTexts).content for seq, each in stored.items()}
        said = {seq: read[seq] if text is None else text for seq, text in batch.items() if text or seq in read}
        return {seq: await self._embeddable(seq, text) for seq, text in said.items()}

    async def _embeddable(self, unit: int, content: str) -> str:
        """Who says it is part of what it means. Why it was recorded is not: many units have one purpose, and are found
        by its words."""
        columns = self._state.columns
        return f'{await self._state.names.name(columns.agent_at(columns.row_of(unit)))} said "{content}"'

    def _take(self, seqs: Sequence[int], vectors: Floats) -> None:
        if not seqs:
            return
        scales, codes = quantize(vectors)
        rows = np.asarray([self._state.columns.row_of(seq) for seq in seqs], np.int64)
        self.meaning.put(rows, scales, codes)
        self._keeper.keep(Quantized(np.asarray(seqs, np.int64), scales, codes))

    def _done(self, batch: Mapping[int, str | None]) -> None:
        for seq in batch:
            self._queue.pop(seq, None)
        for missing, waiter in self._waiters:
            missing.difference_update(batch)
            if not missing and not waiter.done():
                waiter.set_result(None)
        self._waiters = [each for each in self._waiters if not each[1].done()]
        if late := self._late.intersection(batch):
            self._late -= late
            self._enriched(sorted(late))

    def _back_off(self) -> None:
        """Nobody waits for a model that has just failed: the units are told to be pending, and it is tried again."""
        self._pause_ms = min(LONGEST_PAUSE_MS, self._pause_ms * 2 or FIRST_PAUSE_MS)
        for _, waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters = []
        if self._timer is None and not self._closed:
            self._timer = asyncio.get_running_loop().call_later(self._pause_ms / 1e3, self._start)
