"""The one thread of a model in this process: the event loop goes on, and a second core is left to others."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from fieldstone.ports.embedder import EmbeddingFailed

T = TypeVar("T")


class Worker:
    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="fieldstone-embed")
        self._closed = False

    def check_open(self) -> None:
        if self._closed:
            raise EmbeddingFailed("The embedder is closed.")

    async def run(self, job: Callable[[], T]) -> T:
        self.check_open()
        return await asyncio.get_running_loop().run_in_executor(self._thread, job)

    async def close(self) -> None:
        self._closed = True
        await asyncio.to_thread(self._thread.shutdown)
