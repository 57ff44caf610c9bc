"""Which model's vectors serve, and which are being made to take their place.

Vectors of two models cannot be compared. When the configured model is another one than the stored vectors', every unit
is embedded again behind the scenes, while the old vectors go on to serve: new units get both. When all of them are
there, the new ones serve and the old ones are dropped.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final

import numpy as np
import structlog
from numpy.typing import NDArray

from fieldstone.core.errors import FieldError
from fieldstone.core.replies import EmbeddingProgress
from fieldstone.field.cooling import Cooling
from fieldstone.field.enrichment import Enriched, Enrichment
from fieldstone.field.state import FieldState
from fieldstone.ports.embedder import Embedder, EmbeddingFailed
from fieldstone.ports.vectors import ModelState, StoredModel
from fieldstone.projections.columns import PURGED
from fieldstone.projections.meaning import Meaning, Reach
from fieldstone.projections.vector_index import Floats
from fieldstone.projections.vector_keeper import VectorKeeper

ASK_AGAIN_MS: Final = 5_000  # an endpoint that has never answered: not even its dimension is known
QUERY_MS: Final = 2_000  # an ATTUNE that has to wait longer than this is better off with words alone
KEPT_QUERIES: Final = 1_000

logger = structlog.get_logger("fieldstone.meanings")
OpenEmbedder = Callable[[str], Awaitable[Embedder | None]]


async def no_former(_name: str) -> Embedder | None:
    return None


class Meanings:
    """`former` opens the embedder of a stored model by its name, or gives None where this machine has it no more."""

    def __init__(
        self,
        state: FieldState,
        embedder: Embedder | None,
        former: OpenEmbedder,
        enriched: Enriched,
    ) -> None:
        self._state = state
        self._embedder = embedder
        self._former = former
        self._enriched = enriched
        self.cooling = Cooling(state, self._loaded)
        self._serving: Enrichment | None = None
        self._preparing: Enrichment | None = None
        self._replaced: Enrichment | None = None
        self._old: Embedder | None = None  # opened here, so closed here; the configured one is its opener's
        self._opening: asyncio.Task[None] | None = None
        self._promoting: asyncio.Task[None] | None = None
        self._queries: dict[str, Floats] = {}
        self._silent_until_s = 0.0
        self._closed = False

    @property
    def configured(self) -> bool:
        return self._embedder is not None

    @property
    def meaning(self) -> Meaning | None:
        """Of the units that are not archived."""
        return self._serving.meaning if self._serving else None

    @property
    def reach(self) -> Reach | None:
        """With those of archived units, if they are in memory."""
        return None if self._serving is None else self._serving.cold.reach or self._serving.meaning

    async def whole(self) -> Reach | None:
        """With those of archived units, which are read if they have to be."""
        return None if self._serving is None else await self._serving.cold.whole()

    async def open(self) -> None:
        """Load what is stored; embed what is not, in the background."""
        if self._embedder is None:
            return
        if not await self._opened(self._embedder):
            self._opening = asyncio.get_running_loop().create_task(self._keep_asking(self._embedder))
            self._opening.add_done_callback(_tell_if_broken)

    async def enrich(self, texts: Mapping[int, str], timeout_ms: float) -> set[int]:
        """Which of these units have no vector in time."""
        if self._embedder is None:
            return set()
        if self._preparing is not None:
            self._preparing.add(texts)
        if self._serving is None:
            return set() if self._preparing else set(texts)
        return await self._serving.enrich(texts, timeout_ms)

    def lacks(self, unit: int) -> bool:
        """Whether this unit has no vector yet among those that serve, and ought to."""
        if self._serving is None:
            return self.configured and self._preparing is None
        return self._serving.lacks(unit)

    async def forget(self, units: Sequence[int]) -> None:
        """No vector of these is under way any more."""
        for each in self._loaded():
            await each.forget(units)

    async def catch_up(self) -> None:
        """Units came in that nobody told of."""
        for each in self._loaded():
            await each.catch_up()

    async def embed_query(self, text: str) -> Floats | None:
        """The vector of what is asked for; None where there are no vectors to compare it with. `EmbeddingFailed` where
        the model does not answer."""
        serving = self._serving
        if serving is None:
            return None
        known = self._queries.get(text)
        if known is None:
            known = await self._embedded_query(serving, text)
            if len(self._queries) >= KEPT_QUERIES:
                self._queries.clear()
            if self._serving is serving:  # else it is another model's, and of no use to the next one
                self._queries[text] = known
        return known

    async def _embedded_query(self, serving: Enrichment, text: str) -> Floats:
        """A model that does not answer is asked once in a while, and not by everyone."""
        now_s = asyncio.get_running_loop().time
        if serving.failing or now_s() < self._silent_until_s:
            raise EmbeddingFailed("The model has not answered lately.")
        try:
            async with asyncio.timeout(QUERY_MS / 1e3):
                vector: Floats = (await serving.embed([text]))[0]
        except (TimeoutError, EmbeddingFailed) as failed:
            self._silent_until_s = now_s() + ASK_AGAIN_MS / 1e3
            raise EmbeddingFailed(str(failed) or f"The model did not answer within {QUERY_MS} ms.") from failed
        return vector

    def progress(self) -> Sequence[EmbeddingProgress]:
        units = self._state.columns.size
        return [
            EmbeddingProgress(each.meaning.model.name, state, units, each.behind)
            for each, state in self._all()
            if each is not None
        ]

    def _all(self) -> Sequence[tuple[Enrichment | None, ModelState]]:
        return ((self._serving, "serving"), (self._preparing, "preparing"))

    def _loaded(self) -> Sequence[Enrichment]:
        return [each for each, _ in self._all() if each is not None]

    async def close(self) -> None:
        self._closed = True
        for task in (self._opening, self._promoting):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])
        await self.cooling.close()
        for each in (self._serving, self._preparing, self._replaced):
            if each is not None:
                await each.close()
        await self._close_old()

    async def _close_old(self) -> None:
        old, self._old = self._old, None
        if old is not None:
            await old.close()

    # --- opening ------------------------------------------------------------------------------------------------------

    async def _opened(self, embedder: Embedder) -> bool:
        try:
            return await self._open(embedder)
        except FieldError as full:  # a store without room is still a field that can be read
            logger.warning("there is no room for vectors", code=full.code, again_in_ms=ASK_AGAIN_MS)
            return False

    async def _open(self, embedder: Embedder) -> bool:
        models = {model.state: model for model in await self._state.store.vectors.models()}
        dimension = await self._dimension(embedder, models.values())
        if not dimension:
            return False
        wanted = (embedder.model.name, dimension)
        serving = models.get("serving")
        if serving is None:
            serving = await self._state.store.vectors.begin(*wanted, state="serving")
        if (serving.name, serving.dimension) == wanted:
            self._serving = await self._load(serving, embedder)
            return True
        await self._prepare(embedder, wanted, serving, models.get("preparing"))
        return True

    async def _prepare(
        self, embedder: Embedder, wanted: tuple[str, int], serving: StoredModel, preparing: StoredModel | None
    ) -> None:
        if self._serving is None:  # first, and once: the old vectors serve also where there is no room for new ones
            await self._serve_old(serving)
        store = self._state.store.vectors
        if preparing is not None and (preparing.name, preparing.dimension) != wanted:
            await store.drop(preparing.number)
            preparing = None
        preparing = preparing or await store.begin(*wanted, state="preparing")
        logger.info("embedding all units anew", old=serving.name, new=preparing.name)
        self._preparing = await self._load(preparing, embedder, self._look_whether_prepared)
        self._look_whether_prepared(())

    async def _serve_old(self, serving: StoredModel) -> None:
        old = self._old = await self._former(serving.name)
        if old is None:
            logger.warning("the old vectors cannot serve: their model is not here", model=serving.name)
        else:
            self._serving = await self._load(serving, old)

    async def _load(self, model: StoredModel, embedder: Embedder, enriched: Enriched | None = None) -> Enrichment:
        meaning = Meaning(model, lambda: () if self._state.cross_session else self._state.sessions.closed)
        seqs = self._state.columns.snapshot(0).seq
        async for batch in self._state.store.vectors.scan(model.number):
            rows = np.searchsorted(seqs, batch.seqs)
            known = rows < len(seqs)
            meaning.put(rows[known], batch.scales[known], batch.codes[known])
            meaning.index.shrink()  # of some segments most may be archived
        keeper = VectorKeeper(self._state.store.vectors, model.number, self._archived)
        enrichment = Enrichment(self._state, embedder, meaning, keeper, enriched or self._enriched)
        await enrichment.catch_up()
        await self._settle(meaning)
        return enrichment

    def _archived(self, units: NDArray[np.int64]) -> NDArray[np.bool_]:
        columns = self._state.columns
        return columns.archived(columns.rows_of(units))

    async def _settle(self, meaning: Meaning) -> None:
        """What lies in the wrong part is moved. Cold vectors of units that are not here are left alone: their file may
        be newer than the store, if that was brought back from a copy."""
        cold = await self._state.store.vectors.cold_seqs(meaning.model.number)
        units = self._state.columns.snapshot(0)
        cold = cold[np.searchsorted(units.seq, cold) < units.size]
        is_hot = np.ones(units.size, np.bool_)
        is_hot[meaning.index.missing(units.size)] = False
        hot = units.seq[is_hot & units.archived & (units.status != PURGED)]
        self.cooling.settle(hot.tolist(), cold[~self._archived(cold)].tolist())

    async def _dimension(self, embedder: Embedder, models: Iterable[StoredModel]) -> int:
        """0 where nobody knows yet."""
        if embedder.model.dimension:
            return embedder.model.dimension
        for model in models:
            if model.name == embedder.model.name:
                return model.dimension
        try:
            return int((await embedder.embed(["How many numbers?"])).shape[1])
        except EmbeddingFailed as failed:
            logger.warning("the embedding model does not answer", why=str(failed), again_in_ms=ASK_AGAIN_MS)
            return 0

    async def _keep_asking(self, embedder: Embedder) -> None:
        is_open = False
        while not is_open:
            await asyncio.sleep(ASK_AGAIN_MS / 1e3)
            is_open = await self._opened(embedder)

    # --- changing over ------------------------------------------------------------------------------------------------

    def _look_whether_prepared(self, _units: Sequence[int]) -> None:
        new = self._preparing
        if new is not None and not new.behind and self._promoting is None and not self._closed:
            self._promoting = asyncio.get_running_loop().create_task(self._promote(new))
            self._promoting.add_done_callback(_tell_if_broken)

    async def _promote(self, new: Enrichment) -> None:
        while True:
            if await self._takes_its_place(new):
                break
            await asyncio.sleep(ASK_AGAIN_MS / 1e3)
        new.report_to(self._enriched)
        self._serving, self._preparing, self._replaced = new, None, self._serving
        self._queries.clear()
        logger.info("the new vectors serve", model=new.meaning.model.name)
        await new.catch_up()  # what was late with the old model, and is not with this one
        if self._replaced is not None:
            await self._replaced.close()
        await self._close_old()

    async def _takes_its_place(self, new: Enrichment) -> bool:
        await new.flush()
        try:
            await self._state.store.vectors.serve(new.meaning.model.number)
        except Exception as broken:  # why: whatever it is, the old vectors serve on, and it is tried again
            logger.warning("the new vectors cannot serve yet", error=type(broken).__name__, again_in_ms=ASK_AGAIN_MS)
            return False
        return True


def _tell_if_broken(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("changing the model broke", error=type(error).__name__, exc_info=error)
