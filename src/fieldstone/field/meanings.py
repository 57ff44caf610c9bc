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

from fieldstone.core.replies import EmbeddingProgress
from fieldstone.field.enrichment import Enriched, Enrichment
from fieldstone.field.state import FieldState
from fieldstone.ports.embedder import Embedder, EmbeddingFailed
from fieldstone.ports.vectors import ModelState, StoredModel
from fieldstone.projections.meaning import Meaning
from fieldstone.projections.vector_index import Floats
from fieldstone.projections.vector_keeper import VectorKeeper

ASK_AGAIN_MS: Final = 5_000  # an endpoint that has never answered: not even its dimension is known
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
        self._serving: Enrichment | None = None
        self._preparing: Enrichment | None = None
        self._opening: asyncio.Task[None] | None = None
        self._promoting: asyncio.Task[None] | None = None
        self._queries: dict[str, Floats] = {}
        self._closed = False

    @property
    def configured(self) -> bool:
        return self._embedder is not None

    @property
    def meaning(self) -> Meaning | None:
        return self._serving.meaning if self._serving else None

    async def open(self) -> None:
        """Load what is stored; embed what is not, in the background."""
        if self._embedder is None:
            return
        if not await self._open(self._embedder):
            self._opening = asyncio.get_running_loop().create_task(self._keep_asking(self._embedder))

    async def enrich(self, texts: Mapping[int, str], timeout_ms: float) -> set[int]:
        """Which of these units have no vector in time."""
        if self._embedder is None:
            return set()
        if self._preparing is not None:
            await self._preparing.enrich(texts, 0)
        if self._serving is None:
            return set() if self._preparing else set(texts)
        return await self._serving.enrich(texts, timeout_ms)

    async def embed_query(self, text: str) -> Floats | None:
        """The vector of what is asked for; None where there are no vectors to compare it with. `EmbeddingFailed` where
        the model does not answer."""
        if self._serving is None:
            return None
        known = self._queries.get(text)
        if known is None:
            known = (await self._serving.embedder.embed([text]))[0]
            if len(self._queries) >= KEPT_QUERIES:
                self._queries.clear()
            self._queries[text] = known
        return known

    def progress(self) -> Sequence[EmbeddingProgress]:
        units = self._state.columns.size
        return [
            EmbeddingProgress(each.meaning.model.name, state, units, each.behind)
            for each, state in self._all()
            if each is not None
        ]

    def _all(self) -> Sequence[tuple[Enrichment | None, ModelState]]:
        return ((self._serving, "serving"), (self._preparing, "preparing"))

    async def close(self) -> None:
        self._closed = True
        for task in (self._opening, self._promoting):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])
        for each in (self._serving, self._preparing):
            if each is not None:
                await each.close()
        if self._embedder is not None:
            await self._embedder.close()

    # --- opening ------------------------------------------------------------------------------------------------------

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
        store = self._state.store.vectors
        if preparing is not None and (preparing.name, preparing.dimension) != wanted:
            await store.drop(preparing.number)
            preparing = None
        preparing = preparing or await store.begin(*wanted, state="preparing")
        old = await self._former(serving.name)
        if old is not None:
            self._serving = await self._load(serving, old)
        else:
            logger.warning("the old vectors cannot serve: their model is not here", model=serving.name)
        logger.info("embedding all units anew", old=serving.name, new=preparing.name)
        self._preparing = await self._load(preparing, embedder, self._look_whether_prepared)
        self._look_whether_prepared(())

    async def _load(self, model: StoredModel, embedder: Embedder, enriched: Enriched | None = None) -> Enrichment:
        meaning = Meaning(model)
        seqs = self._state.columns.snapshot(0).seq
        async for batch in self._state.store.vectors.scan(model.number):
            rows = np.searchsorted(seqs, batch.seqs)
            known = rows < len(seqs)
            meaning.put(rows[known], batch.scales[known], batch.codes[known])
        keeper = VectorKeeper(self._state.store.vectors, model.number)
        enrichment = Enrichment(self._state, embedder, meaning, keeper, enriched or self._enriched)
        enrichment.catch_up()
        return enrichment

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
        while not self._closed:
            await asyncio.sleep(ASK_AGAIN_MS / 1e3)
            if await self._open(embedder):
                return

    # --- changing over ------------------------------------------------------------------------------------------------

    def _look_whether_prepared(self, _units: Sequence[int]) -> None:
        prepared = self._preparing is not None and not self._preparing.behind
        if prepared and self._promoting is None and not self._closed:
            self._promoting = asyncio.get_running_loop().create_task(self._promote())

    async def _promote(self) -> None:
        new, old = self._preparing, self._serving
        if new is None:
            return
        await new.flush()
        await self._state.store.vectors.serve(new.meaning.model.number)
        new.report_to(self._enriched)
        self._serving, self._preparing, self._promoting = new, None, None
        self._queries.clear()
        logger.info("the new vectors serve", model=new.meaning.model.name)
        if old is not None:
            await old.close()
