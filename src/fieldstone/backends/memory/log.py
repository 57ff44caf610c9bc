"""Log and texts in lists and dictionaries."""

from collections.abc import Sequence
from itertools import islice

from fieldstone.ports.log import GENESIS_HASH, Head, StoredEntry, StoredText


class MemoryLog:
    def __init__(self) -> None:
        self.entries: list[StoredEntry] = []

    async def head(self) -> Head:
        return Head(self.entries[-1].seq, self.entries[-1].hash) if self.entries else Head(0, GENESIS_HASH)

    async def read(self, *, after: int, limit: int) -> Sequence[StoredEntry]:
        return self.entries[after : after + limit]


class MemoryContent:
    def __init__(self) -> None:
        self.texts: dict[int, StoredText] = {}  # in the order of their seqs: entries are only ever appended

    async def get(self, seqs: Sequence[int]) -> dict[int, StoredText]:
        return {seq: self.texts[seq] for seq in seqs if seq in self.texts}

    async def read(self, *, after: int, limit: int) -> Sequence[StoredText]:
        return list(islice((text for text in self.texts.values() if text.seq > after), limit))
