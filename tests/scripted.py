"""Models that do what a test tells them: answer, fail, wait or lie."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha256
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fieldstone.ports.embedder import EmbeddingFailed, EmbeddingModel

DIMENSION: Final = 64
WAIT_S: Final = 20.0  # for something that comes within milliseconds; a bound, not a pause

Rows = NDArray[np.float32]


class ScriptedEmbedder:
    """Texts that share words lie close together. It answers while `opened` is set, unless it `fails` or has a `lie`."""

    def __init__(
        self, name: str = "scripted/words", *, dimension: int = DIMENSION, told: bool = True, most_at_once: int = 64
    ) -> None:
        self.model = EmbeddingModel(name, dimension if told else 0)
        self.most_at_once = most_at_once
        self.opened = asyncio.Event()
        self.opened.set()
        self.asked = asyncio.Event()
        self.fails = False
        self.poison: str | None = None  # fails where this is among the words
        self.lie: Callable[[Rows], Rows] | None = None
        self.calls: list[list[str]] = []
        self.closed = False
        self._dimension = dimension

    async def embed(self, texts: Sequence[str]) -> Rows:
        if not texts:
            return np.zeros((0, self._dimension), np.float32)
        self.calls.append(list(texts))
        self.asked.set()
        await self.opened.wait()
        if self.closed or self.fails or any(self.poison is not None and self.poison in text for text in texts):
            raise EmbeddingFailed("It was told to fail.")
        rows = np.stack([_bag_of_words(text, self._dimension) for text in texts])
        return rows if self.lie is None else self.lie(rows)

    async def close(self) -> None:
        self.closed = True


class ScriptedJudge:
    """Its `word` on every pair, or on the pairs that `words` names by their newer text. It waits until `opened`."""

    def __init__(self, word: bool | None = None) -> None:
        self.word = word
        self.asked: list[tuple[str, str]] = []
        self.opened = asyncio.Event()
        self.opened.set()
        self.closed = False

    async def contradicts(self, newer: str, older: str) -> bool | None:
        self.asked.append((newer, older))
        await self.opened.wait()
        return self.word

    async def close(self) -> None:
        self.closed = True


async def eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    """Let the others go on until it holds."""
    async with asyncio.timeout(WAIT_S):
        while True:
            if await holds():
                return
            await asyncio.sleep(0)


def _bag_of_words(text: str, dimension: int) -> Rows:
    vector = np.zeros(dimension, np.float32)
    for word in re.findall(r"\w+", text.lower()):
        vector[int.from_bytes(sha256(word.encode()).digest()[:4]) % dimension] += 1
    length = np.linalg.norm(vector)
    unit: Rows = (vector / length if length else vector).astype(np.float32)
    return unit
