"""Log and texts of one stream."""

from collections.abc import Iterable, Sequence

import apsw
from msgspec import json

from fieldstone.backends.sqlite.connection import load_queries
from fieldstone.ports.cold import ColdStore, hot_and_cold
from fieldstone.ports.log import Head, StoredEntry, StoredText

SQL = load_queries()
SEQ_BITS = 32  # 4 billion entries a stream, 2 billion streams
MOST_SEQ = (1 << SEQ_BITS) - 1


class Span:
    """The positions of one stream."""

    def __init__(self, stream_no: int) -> None:
        self.stream_no = stream_no
        self.base = stream_no << SEQ_BITS
        self.end = self.base | MOST_SEQ

    def position(self, seq: int) -> int:
        return self.base | min(max(seq, 0), MOST_SEQ)

    def positions(self, seqs: Iterable[int]) -> str:
        """Many of them, as `json_each` takes them. There is nothing at a seq that no entry can have."""
        return json.encode([self.base | seq for seq in seqs if 0 <= seq <= MOST_SEQ]).decode()


class SqliteLog:
    def __init__(self, near: apsw.Connection, span: Span) -> None:
        self._near = near
        self._span = span

    async def head(self) -> Head:
        return Head(*self._near.execute(SQL["read_head"], (self._span.stream_no,)).get)

    async def read(self, *, after: int, limit: int) -> Sequence[StoredEntry]:
        rows = self._near.execute(SQL["read_entries"], (self._span.position(after), self._span.end, limit))
        return [StoredEntry(*row) for row in rows]


class SqliteContent:
    """The one door to texts: the hot ones in this file, and behind them the cold ones."""

    def __init__(self, near: apsw.Connection, span: Span, cold: ColdStore) -> None:
        self._near = near
        self._span = span
        self._cold = cold

    async def get(self, seqs: Sequence[int]) -> dict[int, StoredText]:
        rows = self._near.execute(SQL["get_texts"], (self._span.positions(seqs),))
        found = {row[0]: StoredText(*row) for row in rows}
        missing = [seq for seq in seqs if seq not in found]
        return found | await self._cold.get(missing) if missing else found

    async def read(self, *, after: int, limit: int) -> Sequence[StoredText]:
        rows = self._near.execute(SQL["read_texts"], (self._span.position(after), self._span.end, limit))
        hot = [StoredText(*row) for row in rows]
        cold = await self._cold.read(after=after, limit=limit)
        return hot_and_cold(hot, cold, limit) if cold else hot
