"""Log and texts in lists and dictionaries."""

from collections.abc import Sequence
from itertools import islice

from fieldstone.ports.cold import ColdStore, hot_and_cold
from fieldstone.ports.log import GENESIS_HASH, Head, StoredEntry, StoredText


class MemoryLog:
    def __init__(self) -> None:
        self.entries: list[StoredEntry] = []

    async def head(self) -> Head:
        return Head(self.entries[-1].seq, self.entries[-1].hash) if self.entries else Head(0, GENESIS_HASH)

    async def read(self, *, after: int, limit: int) -> Sequence[StoredEntry]:
        return self.entries[after : after + limit]


class MemoryContent:
    """The one door to texts: the hot ones, which lie here, and behind them the cold ones."""

    def __init__(self, cold: ColdStore) -> None:
        self._cold = cold
        self.texts: dict[int, StoredText] = {}  # in the order of their seqs

    def replace(self, text: StoredText) -> None:
        is_new = text.seq not in self.texts
        self.texts[text.seq] = text
        if is_new:  # in an import the text of an early entry may come late
            self.texts = dict(sorted(self.texts.items()))

    async def get(self, seqs: Sequence[int]) -> dict[int, StoredText]:
        return await self._cold.get(seqs) | {seq: self.texts[seq] for seq in seqs if seq in self.texts}

    async def read(self, *, after: int, limit: int) -> Sequence[StoredText]:
        hot = islice((text for text in self.texts.values() if text.seq > after), limit)
        return hot_and_cold(list(hot), await self._cold.read(after=after, limit=limit), limit)
