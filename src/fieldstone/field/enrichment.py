"""Embeds units once they are on disk: in batches, for a while as part of the answer, and after that by itself."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, islice
from typing import Final, NamedTuple

import numpy as np
import structlog

from fieldstone.core.events import UnitTexts, decode_texts
from fieldstone.field.state import FieldState
from fieldstone.ports.embedder import Embedder, EmbeddingFailed
from fieldstone.ports.vectors import Quantized
from fieldstone.projections.cold_meaning import ColdMeaning
from fieldstone.projections.columns import LAST_EMBEDDED_STATUS, STATUS_CODES
from fieldstone.projections.meaning import Meaning
from fieldstone.projections.vector_index import Floats, Rows, quantize
from fieldstone.projections.vector_keeper import VectorKeeper

FIRST_PAUSE_MS: Final = 500
LONGEST_PAUSE_MS: Final = 60_000
LOADING_MS: Final = 5_000  # an answer waits for a model that is being loaded, which happens once, but not for ever
STUCK_MS: Final = 1_000  # nobody waits for a model that has been at one batch for so long
CLOSING_MS: Final = 2_000  # for the batch under way: what is not embedded by then is embedded at the next opening

logger = structlog.get_logger("fieldstone.enrichment")
Enriched = Callable[[Sequence[int]], None]


class _Waiter(NamedTuple):
    missing: set[int]
    over: asyncio.Future[None]

    def let_go(self) -> None:
        if not self.over.done():
            self.over.set_result(None)


class Enrichment:
    """One model's vectors, kept in step with the units. `enriched` is told of units that were late."""

    def __init__(
        self, state: FieldState, embedder: Embedder, meaning: Meaning, keeper: VectorKeeper, enriched: Enriched
    ) -> None:
        self._state = state
        self.embedder = embedder
        self.meaning = meaning
        self.cold = ColdMeaning(state.store.vectors, meaning, lambda: state.columns.snapshot(0).seq, keeper.flush)
        self._keeper = keeper
        self._enriched = enriched
        self._fresh: dict[int, str] = {}  # units whose answers wait, and what they say: they go first
        self._backlog: dict[int, None] = {}  # units that are late, in their order: what they say is in the store
        self._under_way: Mapping[int, str | None] = {}
        self._since_s = 0.0  # when this batch began
        self._most_at_once = embedder.most_at_once
        self._waiters: list[_Waiter] = []
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._pause_ms = 0
        self._closed = False
        self._warming = asyncio.get_running_loop().create_task(self._warm_up())

    @property
    def behind(self) -> int:
        """How many units have no vector yet."""
        return len(self._fresh) + len(self._backlog)

    @property
    def failing(self) -> bool:
        """True after a failure, until the model answers again."""
        return self._pause_ms > 0

    def lacks(self, unit: int) -> bool:
        """Whether this unit is still without its vector."""
        return unit in self._fresh or unit in self._backlog

    async def catch_up(self) -> None:
        """Every unit without a vector gets one, archived or not, in the background. Those that are pending and have one
        are told."""
        cold = await self._state.store.vectors.cold_seqs(self.meaning.model.number)
        units = self._state.columns.snapshot(self._state.epoch)
        lacking = np.zeros(units.size, np.bool_)
        lacking[self.meaning.index.missing(units.size)] = True
        at = np.searchsorted(units.seq, cold)
        lacking[at[at < units.size]] = False
        missing = units.seq[lacking & (units.status <= LAST_EMBEDDED_STATUS)].tolist()
        self.add(seq for seq in missing if seq not in self._fresh)
        # The vector was kept and the status was not: whoever was to write it was cut off.
        if arrived := units.seq[~lacking & (units.status == STATUS_CODES["pending_enrichment"])].tolist():
            self._enriched(arrived)

    def add(self, units: Iterable[int]) -> None:
        """These get their vectors in their turn; nobody waits for them."""
        self._backlog.update(dict.fromkeys(units))
        self._start()

    async def enrich(self, texts: Mapping[int, str], timeout_ms: float) -> set[int]:
        """Embed these units; which of them have no vector when the time is over. They get one later, by themselves."""
        self._fresh.update(texts)
        if not self._warming.done():  # loading is not the model's slowness
            await asyncio.wait([self._warming], timeout=LOADING_MS / 1e3)
        if not (self.failing or self._stuck):
            self._start()
            await self._embedded(texts.keys() & self._fresh.keys(), timeout_ms)
        late = texts.keys() & self._fresh.keys()
        for unit in late:
            del self._fresh[unit]  # a model that is away for long must not fill the memory with texts
        self.add(sorted(late))
        return late

    async def forget(self, units: Sequence[int]) -> None:
        """Those that wait are dropped, and what was made of them is in the store, from where it can be erased."""
        for unit in units:
            self._fresh.pop(unit, None)
            self._backlog.pop(unit, None)
        await self._keeper.flush()

    async def written(self, units: Sequence[int]) -> None:
        """What was made of these is in the store, from where it can be moved."""
        if self._keeper.holds_any(units):
            await self._keeper.flush()

    def cool(self, rows: Rows) -> None:
        """These are archived: they are not among the others any more, but beside them if anybody asks for such."""
        moved, scales, codes = self.meaning.index.quantized(rows)
        self.cold.put(moved, scales, codes)
        self.meaning.index.remove(moved)

    def warm(self, rows: Rows, batch: Quantized) -> None:
        """These are back among the others."""
        self.meaning.put(rows, batch.scales, batch.codes)

    def make_up_for(self, units: Sequence[int]) -> None:
        """These are restored. A vector that was made while its unit was archived, and written after that, has never
        been in cold storage, and did not come back from there: it is made again."""
        columns = self._state.columns
        rows = columns.rows_of(units)
        here = np.isin(rows, self.meaning.index.quantized(rows)[0])
        lacking = ~here & (columns.snapshot(0).status[rows] <= LAST_EMBEDDED_STATUS)
        self.add(unit for unit in np.asarray(units, np.int64)[lacking].tolist() if not self.lacks(unit))

    def erase(self, rows: Rows) -> None:
        """Nothing of these is in memory any more."""
        self.meaning.index.remove(rows)
        self.cold.remove(rows)

    async def embed(self, texts: Sequence[str]) -> Floats:
        """One row for each text, or `EmbeddingFailed`: what a model answers is looked at before it is believed."""
        vectors = await self.embedder.embed(texts)
        expected = (len(texts), self.meaning.model.dimension)
        if vectors.shape != expected or not np.isfinite(vectors).all():
            raise EmbeddingFailed(f"The model answered with {vectors.shape}, and not with {expected} finite numbers.")
        return vectors

    async def flush(self) -> None:
        """Return when every vector that was made is in the store."""
        await self._keeper.flush()

    def report_to(self, enriched: Enriched) -> None:
        """Somebody else is told of late units from now on."""
        self._enriched = enriched

    async def close(self) -> None:
        """A model that hangs is left alone: what it owes is asked for again at the next opening."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._let_go()
        await _stop([self._warming, *([self._task] if self._task else ())])
        await self.cold.close()
        await self._keeper.close()

    async def _warm_up(self) -> None:
        try:
            await self.embedder.embed([])
        except EmbeddingFailed as failed:
            logger.warning("the embedding model does not load", why=str(failed))
        except Exception as broken:  # why: whatever is wrong with a model, the field works without it
            logger.error("the embedding model does not load", error=type(broken).__name__, exc_info=broken)

    # --- in the background --------------------------------------------------------------------------------------------

    def _start(self) -> None:
        idle = self._task is None and self._timer is None
        if idle and self.behind and not self._closed:
            self._since_s = asyncio.get_running_loop().time()
            self._task = asyncio.get_running_loop().create_task(self._work())
            self._task.add_done_callback(self._stopped)

    def _stopped(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if task.cancelled():
            return
        if (error := task.exception()) is not None:
            self._back_off()
            expected = isinstance(error, EmbeddingFailed)
            log = logger.warning if expected else logger.error
            why = {"why": str(error)} if expected else {"error": type(error).__name__, "exc_info": error}
            log("embedding failed", units=self.behind, again_in_ms=self._pause_ms, **why)
        self._start()

    async def _work(self) -> None:
        while self.behind and not self._closed:
            queued: Iterable[tuple[int, str | None]] = chain(self._fresh.items(), self._backlog.items())
            self._under_way = dict(islice(queued, self._most_at_once))
            self._since_s = asyncio.get_running_loop().time()
            said = await self._said(self._under_way)
            if said:
                self._take(list(said), await self.embed(await self._embeddable(said)))
            self._pause_ms = 0
            self._most_at_once = min(self._most_at_once * 2, self.embedder.most_at_once)
            self._done(self._under_way)
            if self.behind:
                await asyncio.sleep(0)  # a quick model answers on the spot, and others are to have their turn

    @property
    def _stuck(self) -> bool:
        return self._task is not None and asyncio.get_running_loop().time() - self._since_s > STUCK_MS / 1e3

    async def _said(self, batch: Mapping[int, str | None]) -> Mapping[int, str]:
        said = {seq: text for seq, text in batch.items() if text is not None}
        if len(said) < len(batch):
            stored = await self._state.store.texts.get([seq for seq in batch if seq not in said])
            said |= {seq: decode_texts(each.body, UnitTexts).content for seq, each in stored.items()}
        return said

    async def _embeddable(self, said: Mapping[int, str]) -> list[str]:
        """Who says it is part of what it means. Why it was recorded is not: many units have one purpose, and are found
        by its words."""
        columns, names = self._state.columns, self._state.names
        agents = columns.agents_at(columns.rows_of(list(said)))
        speakers = {agent: await names.name(agent) for agent in set(agents)}
        return [f'{speakers[agent]} said "{text}"' for agent, text in zip(agents, said.values(), strict=True)]

    def _take(self, units: Sequence[int], vectors: Floats) -> None:
        seqs, columns = np.asarray(units, np.int64), self._state.columns
        rows = columns.rows_of(seqs)
        purged, is_cold = columns.purged(rows), columns.archived(rows)
        if purged.any():  # meanwhile
            seqs, rows, is_cold, vectors = seqs[~purged], rows[~purged], is_cold[~purged], vectors[~purged]
        scales, codes = quantize(vectors)
        if is_cold.any():
            self.cold.put(rows[is_cold], scales[is_cold], codes[is_cold])
            self.meaning.put(rows[~is_cold], scales[~is_cold], codes[~is_cold])
        else:
            self.meaning.put(rows, scales, codes)
        self._keeper.keep(Quantized(seqs, scales, codes))

    def _done(self, batch: Mapping[int, str | None]) -> None:
        late = [seq for seq in batch if seq in self._backlog] if self._backlog else []
        for seq in late:
            del self._backlog[seq]
        if self._fresh.keys() <= batch.keys():
            self._fresh.clear()  # nearly always
        else:
            for seq in batch:
                self._fresh.pop(seq, None)
        for waiter in self._waiters:
            waiter.missing.difference_update(batch)
            if not waiter.missing:
                waiter.let_go()
        if late:
            self._enriched(late)

    async def _embedded(self, units: set[int], timeout_ms: float) -> None:
        """Return when these have their vectors, or the time is over, or the model failed."""
        if not units:
            return
        loop = asyncio.get_running_loop()
        waiter = _Waiter(units, loop.create_future())
        self._waiters.append(waiter)
        timer = loop.call_later(timeout_ms / 1e3, waiter.let_go)
        try:
            await waiter.over
        finally:
            timer.cancel()
            self._waiters.remove(waiter)

    def _let_go(self) -> None:
        """Nobody waits for a model that has just failed."""
        for waiter in self._waiters:
            waiter.let_go()

    def _back_off(self) -> None:
        """It is tried again after a while: with fewer units, and with others first, in case it was one of these."""
        self._pause_ms = min(LONGEST_PAUSE_MS, self._pause_ms * 2 or FIRST_PAUSE_MS)
        self._most_at_once = max(1, len(self._under_way) // 2)
        for seq in self._under_way:
            if seq in self._backlog:
                self._backlog[seq] = self._backlog.pop(seq)
        self._let_go()
        if not self._closed:
            self._timer = asyncio.get_running_loop().call_later(self._pause_ms / 1e3, self._try_again)

    def _try_again(self) -> None:
        self._timer = None
        self._start()


async def _stop(tasks: Sequence[asyncio.Task[None]]) -> None:
    _, left = await asyncio.wait(tasks, timeout=CLOSING_MS / 1e3)
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left)
