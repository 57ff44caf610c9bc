"""Full text of one stream: an FTS5 table beside the log, filled behind it in large batches."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import apsw

from fieldstone.backends.analysis import Analyzer
from fieldstone.backends.sqlite.connection import open_reader
from fieldstone.backends.sqlite.log import SQL, Span
from fieldstone.ports.text_index import Document, Postings, prune

READERS: Final = 2  # as many searches at once as there are cores to run them
KNOWN_FREQUENCIES: Final = 100_000  # cached terms; a lookup walks the term's whole posting list
STALE_GROWTH: Final = 1.1  # frequencies are looked up again once the index has grown by this much

Write = Callable[[Callable[[apsw.Connection], int]], Awaitable[int]]


def create_text_index(connection: apsw.Connection, stream_no: int) -> None:
    # The terms come analyzed; the tokenizer here only splits at the spaces between them. The table is contentless:
    # texts lie beside the log and nowhere else. It keeps which units hold a term, not where: that is all we ask.
    connection.execute(
        f"CREATE VIRTUAL TABLE text_{stream_no} USING fts5("
        "terms, content='', contentless_delete=1, detail=none, tokenize='unicode61 remove_diacritics 0')"
    )
    connection.execute(f"CREATE VIRTUAL TABLE text_{stream_no}_vocabulary USING fts5vocab(text_{stream_no}, 'row')")
    connection.execute(SQL["create_text_index"], (stream_no,))


class SqliteTextIndex:
    def __init__(self, path: Path, near: apsw.Connection, span: Span, write: Write) -> None:
        self._path = path
        self._near = near
        self._span = span
        self._write = write
        self._table = f"text_{span.stream_no}"
        self._analyzer = Analyzer()
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="fieldstone-search")
        self._reader = threading.local()
        self._frequencies: dict[str, int] = {}
        self._frequencies_at = 0

    def analyze(self, text: str) -> list[str]:
        return self._analyzer.terms(text)

    async def position(self) -> int:
        position: int = self._near.execute(SQL["text_index_state"], (self._span.stream_no,)).get[0]
        return position

    async def add(self, documents: Sequence[Document], *, position: int) -> None:
        def insert(connection: apsw.Connection) -> int:
            connection.executemany(
                f"INSERT INTO {self._table} (rowid, terms) VALUES (?, ?)",
                [(document.seq, " ".join(self._analyzer.terms(document.text))) for document in documents],
            )
            connection.execute(SQL["move_text_index"], (position, len(documents), self._span.stream_no))
            return 0

        await self._write(insert)

    async def search(self, queries: Sequence[Sequence[str]], *, most_postings: int) -> Sequence[Postings]:
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._search, queries, most_postings)

    async def clear(self) -> None:
        def empty(connection: apsw.Connection) -> int:
            connection.execute(f"INSERT INTO {self._table} ({self._table}) VALUES ('delete-all')")
            connection.execute(SQL["reset_text_index"], (self._span.stream_no,))
            return 0

        await self._write(empty)

    def close(self) -> None:
        self._readers.shutdown(wait=True)

    def _search(self, queries: Sequence[Sequence[str]], most_postings: int) -> Sequence[Postings]:
        connection: apsw.Connection = getattr(self._reader, "connection", None) or self._open_reader()
        with connection:  # one read transaction: every query sees the same state
            documents: int = connection.execute(SQL["text_index_state"], (self._span.stream_no,)).get[1]
            results = []
            for terms in queries:
                frequencies = self._frequencies_of(connection, terms, documents)
                kept = prune(frequencies, most_postings)
                results.append(Postings(documents, frequencies, {term: self._visit(connection, term) for term in kept}))
        return results

    def _visit(self, connection: apsw.Connection, term: str) -> Sequence[int]:
        query = f"SELECT rowid FROM {self._table} WHERE {self._table} MATCH ?"
        return [row[0] for row in connection.execute(query, (f'"{term}"',))]

    def _frequencies_of(self, connection: apsw.Connection, terms: Sequence[str], documents: int) -> dict[str, int]:
        if documents > self._frequencies_at * STALE_GROWTH or len(self._frequencies) > KNOWN_FREQUENCIES:
            self._frequencies = {}
            self._frequencies_at = documents
        known = self._frequencies
        for term in terms:
            if term not in known:
                found = connection.execute(f"SELECT doc FROM {self._table}_vocabulary WHERE term = ?", (term,)).get
                known[term] = found or 0
        return {term: known[term] for term in terms}

    def _open_reader(self) -> apsw.Connection:
        self._reader.connection = open_reader(self._path)
        connection: apsw.Connection = self._reader.connection
        return connection
