"""Archived texts and their words in dictionaries."""

from collections.abc import Sequence

from fieldstone.backends.memory.text_index import MemoryTextIndex
from fieldstone.ports.log import StoredText


class MemoryCold:
    def __init__(self) -> None:
        self._texts: dict[int, StoredText] = {}
        self.index = MemoryTextIndex()

    async def put(self, texts: Sequence[StoredText]) -> None:
        self._texts = dict(sorted((self._texts | {text.seq: text for text in texts}).items()))

    async def get(self, seqs: Sequence[int]) -> dict[int, StoredText]:
        return {seq: self._texts[seq] for seq in seqs if seq in self._texts}

    async def read(self, *, after: int, limit: int) -> Sequence[StoredText]:
        return [text for text in self._texts.values() if text.seq > after][:limit]

    async def erase(self, seqs: Sequence[int]) -> None:
        for seq in seqs:
            self._texts.pop(seq, None)

    async def scour(self) -> bool:
        return True  # nothing is left of what is gone

    async def bytes_used(self) -> int:
        return sum(len(text.salt) + len(text.body) for text in self._texts.values())
