"""Full text of one stream: an FTS5 table in a file beside the store, filled behind the log in large batches."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path
from typing import Final

import apsw
from msgspec import json

from fieldstone.backends.analysis import TOKENIZER, Analyzer
from fieldstone.backends.sqlite.connection import BUSY_TIMEOUT_MS, full_as_storage_full, open_reader
from fieldstone.ports.text_index import Document, Postings, prune

READERS: Final = 2  # as many searches at once as there are cores to run them
KNOWN_FREQUENCIES: Final = 100_000  # cached terms; a lookup walks the term's whole posting list
STALE_GROWTH: Final = 1.1  # frequencies are looked up again once the index has grown by this much

HashAt = Callable[[int], bytes | None]  # the log's hash at a seq


class SqliteTextIndex:
    """`hash_at` ties the index to the log that it was made from."""

    def __init__(self, store: Path, stream_no: int, hash_at: HashAt) -> None:
        self._path = index_path(store)
        self._stream_no = stream_no
        self._hash_at = hash_at
        self._table = f"text_{stream_no}"
        self._analyzer = Analyzer()
        self._writer_thread = ThreadPoolExecutor(1, thread_name_prefix="fieldstone-index")
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="fieldstone-search")
        self._reader = threading.local()
        self._reader_connections: list[apsw.Connection] = []
        self._frequencies: dict[str, int] = {}
        self._frequencies_at = 0
        self._writer = self._open()
        self._position = self._usable_position()

    def analyze(self, text: str) -> list[str]:
        return self._analyzer.terms(text)

    async def position(self) -> int:
        return self._position

    async def add(self, documents: Sequence[Document], *, position: int) -> None:
        batch = json.encode(documents).decode()  # (seq, text) each
        anchor = self._hash_at(position)

        def insert() -> None:
            # Single statements for the whole batch: SQLite works without Python, and the event loop goes on.
            in_batch = "SELECT value ->> 0 FROM json_each(?)"
            count = f"SELECT count(*) FROM {self._table}_docsize WHERE id IN ({in_batch})"
            known: int = self._writer.execute(count, (batch,)).get
            rows = "SELECT value ->> 0, value ->> 1 FROM json_each(?)"
            self._writer.execute(f"INSERT OR REPLACE INTO {self._table} (rowid, text) {rows}", (batch,))
            self._writer.execute(
                "UPDATE text_indexes SET position = ?, anchor = ?, documents = documents + ? WHERE stream_no = ?",
                (position, anchor, len(documents) - known, self._stream_no),
            )

        await self._write(insert)
        self._position = position

    async def search(self, queries: Sequence[Sequence[str]], *, most_postings: int) -> Sequence[Postings]:
        if not any(queries):
            return [Postings(self._position, 0, {}, {})] * len(queries)
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._search, queries, most_postings)

    async def clear(self) -> None:
        await self._write(self._empty)
        self._position = 0
        self._frequencies = {}

    async def bytes_used(self) -> int:
        return sum(file.stat().st_size for file in (self._path,) if file.exists())

    def close(self) -> None:
        self._writer_thread.shutdown(wait=True)
        self._readers.shutdown(wait=True)
        for connection in self._reader_connections:
            connection.close()
        self._writer.close()

    # --- writing -----------------------------------------------------------------------------------------------------

    def _open(self) -> apsw.Connection:
        """An index file that cannot be read is of no use to anyone: it is made again."""
        try:
            return self._connect()
        except (apsw.CorruptError, apsw.NotADBError):
            for suffix in ("", "-wal", "-shm"):
                self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
            return self._connect()

    def _connect(self) -> apsw.Connection:
        connection = apsw.Connection(str(self._path))
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")  # what a power cut takes away is indexed again
        connection.execute("PRAGMA secure_delete=ON")
        with full_as_storage_full(), connection:
            connection.execute((resources.files(__package__) / "text_index.sql").read_text())
            # The tokenizer is the analyzer's. The table is contentless and keeps which units hold a term, not where:
            # that is all we ask of it.
            connection.execute(
                f"CREATE VIRTUAL TABLE IF NOT EXISTS {self._table} USING fts5(text, content='', "
                f"contentless_delete=1, detail=none, tokenize='{TOKENIZER}')"
            )
            vocabulary = f"CREATE VIRTUAL TABLE IF NOT EXISTS {self._table}_vocabulary USING fts5vocab"
            connection.execute(f"{vocabulary}({self._table}, 'row')")
            connection.execute(
                "INSERT OR IGNORE INTO text_indexes (stream_no, position, anchor, documents) VALUES (?, 0, x'', 0)",
                (self._stream_no,),
            )
        return connection

    def _usable_position(self) -> int:
        position, anchor = self._writer.execute(
            "SELECT position, anchor FROM text_indexes WHERE stream_no = ?", (self._stream_no,)
        ).get
        if position and self._hash_at(position) != anchor:
            with full_as_storage_full(), self._writer:
                self._empty()
            return 0
        return int(position)

    def _empty(self) -> None:
        self._writer.execute(f"INSERT INTO {self._table} ({self._table}) VALUES ('delete-all')")
        self._writer.execute(
            "UPDATE text_indexes SET position = 0, anchor = x'', documents = 0 WHERE stream_no = ?", (self._stream_no,)
        )

    async def _write(self, work: Callable[[], None]) -> None:
        def transact() -> None:
            with full_as_storage_full(), self._writer:
                work()

        await asyncio.get_running_loop().run_in_executor(self._writer_thread, transact)

    # --- searching ---------------------------------------------------------------------------------------------------

    def _search(self, queries: Sequence[Sequence[str]], most_postings: int) -> Sequence[Postings]:
        connection: apsw.Connection = getattr(self._reader, "connection", None) or self._open_reader()
        with connection:  # one read transaction: every query sees the same state
            position, documents = connection.execute(
                "SELECT position, documents FROM text_indexes WHERE stream_no = ?", (self._stream_no,)
            ).get
            results = []
            for words in queries:
                frequencies = self._frequencies_of(connection, words, documents)
                kept = prune(frequencies, most_postings)
                seqs = {word: self._visit(connection, word) for word in kept}
                results.append(Postings(position, documents, frequencies, seqs))
        return results

    def _visit(self, connection: apsw.Connection, word: str) -> Sequence[int]:
        # The word and not its term: FTS5 would stem the stem.
        query = f"SELECT rowid FROM {self._table} WHERE {self._table} MATCH ?"
        return [row[0] for row in connection.execute(query, (f'"{word}"',))]

    def _frequencies_of(self, connection: apsw.Connection, words: Sequence[str], documents: int) -> dict[str, int]:
        if documents > self._frequencies_at * STALE_GROWTH or len(self._frequencies) > KNOWN_FREQUENCIES:
            self._frequencies = {}
            self._frequencies_at = documents
        known = self._frequencies
        for word in words:
            if word not in known:
                found = self._frequency(connection, word)
                if found:  # what is not there yet may come with the next batch
                    known[word] = found
        return {word: known.get(word, 0) for word in words}

    def _frequency(self, connection: apsw.Connection, word: str) -> int:
        terms = self.analyze(word)
        if len(terms) != 1:
            return 0
        query = f"SELECT doc FROM {self._table}_vocabulary WHERE term = ?"
        return connection.execute(query, (terms[0],)).get or 0

    def _open_reader(self) -> apsw.Connection:
        connection = open_reader(self._path)
        self._reader.connection = connection
        self._reader_connections.append(connection)
        return connection


def index_path(store: Path) -> Path:
    return store.with_name(store.name + "-index")
