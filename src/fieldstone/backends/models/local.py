"""A model in this process: loaded at its first call, in a thread of its own. A server does not wait for it."""

from collections.abc import Callable
from typing import Generic, TypeVar

from fieldstone.backends.models.worker import Worker
from fieldstone.ports.embedder import EmbeddingModel

L = TypeVar("L")


class LocalEmbedder(Generic[L]):
    """What all of them have; how they embed is their own."""

    def __init__(self, model: EmbeddingModel, most_at_once: int, load: Callable[[], L]) -> None:
        self.model = model
        self.most_at_once = most_at_once
        self._worker = Worker()
        self._load = load
        self._loaded: L | None = None

    async def close(self) -> None:
        await self._worker.close()

    async def _ready(self) -> L:
        """The loaded model. What failed to load is tried again."""
        self._worker.check_open()
        return await self._worker.run(self._load_once) if self._loaded is None else self._loaded

    def _load_once(self) -> L:
        """In the thread, which does one thing at a time: what several wait for is loaded once."""
        if self._loaded is None:
            self._loaded = self._load()
        return self._loaded
