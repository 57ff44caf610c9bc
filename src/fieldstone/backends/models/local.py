"""A model in this process: loaded at its first call, in a thread of its own. A server does not wait for it."""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fieldstone.backends.models.worker import Worker
from fieldstone.ports.embedder import EmbeddingModel


class Loaded(Protocol):
    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row of unit length for each text."""
        ...


class LocalEmbedder:
    def __init__(self, model: EmbeddingModel, most_at_once: int, load: Callable[[], Loaded]) -> None:
        self.model = model
        self.most_at_once = most_at_once
        self._load = load
        self._loaded: Loaded | None = None
        self._worker = Worker()

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return await self._worker.run(lambda: self._embed(texts))

    async def close(self) -> None:
        await self._worker.close()

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self._loaded is None:
            self._loaded = self._load()
        return self._loaded.vectors(texts)
