"""Full text: a file beside the store with an FTS5 table for each stream, filled behind the log in large batches."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Final, TypeVar

import apsw
from msgspec import json

from fieldstone.backends.analysis import TOKENIZER, Analyzer
from fieldstone.backends.sqlite.connection import (
    BUSY_TIMEOUT_MS,
    empty_journal,
    full_as_storage_full,
    open_reader,
    transaction,
)
from fieldstone.ports.text_index import Document, Postings, prune
from fieldstone.ports.threads import CLOSE_BEHIND, background_threads

READERS: Final = 2  # as many searches at once as there are cores to run them
KNOWN_FREQUENCIES: Final = 100_000  # cached terms; a lookup walks the term's whole posting list
STALE_GROWTH: Final = 1.1  # frequencies are looked up again once the index has grown by this much
EVERYDAY: Final = "NORMAL"  # how far writes are synchronised: what a power cut takes away is indexed again
MERGE_PAGES: Final = 64  # written in one step of rewriting: about 20 ms, and other writes come in between
GONE_MOST_PERCENT: Final = 50  # of a piece of the index; then it is written anew without them
NEVER_PERCENT: Final = 101

HashAt = Callable[[int], bytes | None]  # the log's hash at a seq
T = TypeVar("T")


class SqliteIndexFile:
    """The file's connections and threads. The streams share them: a single writer has nobody to wait for, and there are
    as many threads for a hundred streams as for one. `near` is for what is read when a stream is opened."""

    def __init__(self, path: Path, *, niceness: int = CLOSE_BEHIND) -> None:
        self.analyzer = Analyzer()
        self._path = path
        self._writer = self._open()
        self.near = open_reader(path)
        self._writer_thread = background_threads(1, "fieldstone-index", niceness=niceness)
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="fieldstone-search")
        self._reader = threading.local()
        self._reader_connections: list[apsw.Connection] = []

    async def write(
        self, work: Callable[[apsw.Connection], T], then: Callable[[], None], *, durable: bool = False
    ) -> T:
        """`work` in one transaction. `then` follows, and before anything else is written."""

        def transact() -> T:
            with (
                full_as_storage_full(),
                self._synchronous("FULL" if durable else EVERYDAY),
                transaction(self._writer),
            ):
                done = work(self._writer)
            then()
            return done

        return await asyncio.get_running_loop().run_in_executor(self._writer_thread, transact)

    async def empty_journal(self) -> bool:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._writer_thread, lambda: empty_journal(self._writer))

    async def read(self, work: Callable[[apsw.Connection], T]) -> T:
        """`work` in one read transaction: all that it sees is of the same state."""

        def transact() -> T:
            connection: apsw.Connection = getattr(self._reader, "connection", None) or self._open_reader()
            with transaction(connection):
                found = work(connection)
            return found

        return await asyncio.get_running_loop().run_in_executor(self._readers, transact)

    def bytes_used(self) -> int:
        return self._path.stat().st_size if self._path.exists() else 0

    def close(self) -> None:
        self._writer_thread.shutdown(wait=True)
        self._readers.shutdown(wait=True)
        for connection in self._reader_connections:
            connection.close()
        self.near.close()
        self._writer.close()

    @contextmanager
    def _synchronous(self, mode: str) -> Iterator[None]:
        self._writer.execute(f"PRAGMA synchronous={mode}")
        try:
            yield
        finally:
            self._writer.execute(f"PRAGMA synchronous={EVERYDAY}")

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
        connection.execute(f"PRAGMA synchronous={EVERYDAY}")
        connection.execute("PRAGMA secure_delete=ON")
        with full_as_storage_full(), transaction(connection):
            connection.execute((resources.files(__package__) / "text_index.sql").read_text())
            connection.execute("SELECT * FROM text_indexes").fetchall()  # what is damaged is noticed here
        return connection

    def _open_reader(self) -> apsw.Connection:
        connection = open_reader(self._path)
        self._reader.connection = connection
        self._reader_connections.append(connection)
        return connection


class SqliteTextIndex:
    """One stream's table. It is made, or emptied, with the first batch, so that opening a stream writes nothing: at
    position 0 nothing counts that may lie there. `hash_at` ties the index to the log that it was made from."""

    def __init__(self, file: SqliteIndexFile, stream_no: int, hash_at: HashAt) -> None:
        self._file = file
        self._stream_no = stream_no
        self._hash_at = hash_at
        self._table = f"text_{stream_no}"
        self._frequencies: dict[str, int] = {}
        self._frequencies_at = 0
        self._position = self._usable_position()

    def analyze(self, text: str) -> list[str]:
        return self._file.analyzer.terms(text)

    async def position(self) -> int:
        return self._position

    async def add(self, documents: Sequence[Document], *, position: int) -> None:
        batch = json.encode(documents).decode()  # (seq, text) each
        anchor = self._hash_at(position)

        def insert(writer: apsw.Connection) -> None:
            if self._position == 0:
                self._begin(writer)
            # Single statements for the whole batch: SQLite works without Python, and the event loop goes on.
            known = self._count(writer, "SELECT value ->> 0 FROM json_each(?)", batch)
            rows = "SELECT value ->> 0, value ->> 1 FROM json_each(?)"
            writer.execute(f"INSERT OR REPLACE INTO {self._table} (rowid, text) {rows}", (batch,))
            writer.execute(
                "UPDATE text_indexes SET position = ?, anchor = ?, documents = documents + ? WHERE stream_no = ?",
                (position, anchor, len(documents) - known, self._stream_no),
            )

        await self._file.write(insert, lambda: self._move_to(position))

    async def remove(self, seqs: Sequence[int]) -> None:
        gone = json.encode(list(seqs)).decode()
        in_batch = "SELECT value FROM json_each(?)"

        def delete(writer: apsw.Connection) -> None:
            if self._position == 0:
                return
            known = self._count(writer, in_batch, gone)
            self._set_gone_most(writer, NEVER_PERCENT)
            writer.execute(f"DELETE FROM {self._table} WHERE rowid IN ({in_batch})", (gone,))
            writer.execute(
                "UPDATE text_indexes SET documents = documents - ? WHERE stream_no = ?", (known, self._stream_no)
            )

        await self._file.write(delete, self._forget_frequencies, durable=True)
        while self._position and await self._file.write(self._merge_gone, lambda: None):
            pass

    async def search(self, queries: Sequence[Sequence[str]], *, most_postings: int) -> Sequence[Postings]:
        if self._position == 0 or not any(queries):
            return [Postings(self._position, 0, dict.fromkeys(words, 0), {}) for words in queries]
        return await self._file.read(lambda reader: self._search(reader, queries, most_postings))

    async def scour(self) -> bool:
        """Write the index anew without what was deleted from it: a table like this one only marks a row as gone.

        In steps, so that nobody waits long. With the first one the whole index is to become one piece, which is what a
        negative number means; the others go on with it.
        """
        if self._position:
            pages = -MERGE_PAGES
            while await self._file.write(partial(self._merge, pages), lambda: None):
                pages = MERGE_PAGES
        else:
            await self._file.write(self._begin, lambda: None)  # what an index of another history has left there goes
        self._forget_frequencies()
        return await self._file.empty_journal()

    async def clear(self) -> None:
        await self._file.write(self._begin, lambda: self._move_to(0))
        self._forget_frequencies()

    # --- writing -----------------------------------------------------------------------------------------------------

    def _usable_position(self) -> int:
        query = "SELECT position, anchor FROM text_indexes WHERE stream_no = ?"
        found: tuple[int, bytes] | None = self._file.near.execute(query, (self._stream_no,)).get
        if found is None or self._hash_at(found[0]) != found[1]:
            return 0
        return found[0]

    def _begin(self, writer: apsw.Connection) -> None:
        # The tokenizer is the analyzer's. The table is contentless and keeps which units hold a term, not where:
        # that is all we ask of it.
        writer.execute(
            f"CREATE VIRTUAL TABLE IF NOT EXISTS {self._table} USING fts5(text, content='', "
            f"contentless_delete=1, detail=none, tokenize='{TOKENIZER}')"
        )
        vocabulary = f"CREATE VIRTUAL TABLE IF NOT EXISTS {self._table}_vocabulary USING fts5vocab"
        writer.execute(f"{vocabulary}({self._table}, 'row')")
        writer.execute(f"INSERT INTO {self._table} ({self._table}) VALUES ('delete-all')")
        writer.execute(
            "INSERT OR REPLACE INTO text_indexes (stream_no, position, anchor, documents) VALUES (?, 0, x'', 0)",
            (self._stream_no,),
        )

    def _merge(self, pages: int, writer: apsw.Connection) -> bool:
        """Whether there was anything to do. FTS5's own bookkeeping is one change."""
        before = writer.total_changes()
        writer.execute(f"INSERT INTO {self._table} ({self._table}, rank) VALUES ('merge', ?)", (pages,))
        return writer.total_changes() - before > 1

    def _merge_gone(self, writer: apsw.Connection) -> bool:
        """A step of rewriting pieces of which much is gone. By itself FTS5 does it when a tenth is, and within the
        commit that deletes: for 256 units that took up to 280 ms, and half of the time of archiving."""
        self._set_gone_most(writer, GONE_MOST_PERCENT)
        merged = self._merge(MERGE_PAGES, writer)
        self._set_gone_most(writer, NEVER_PERCENT)
        return merged

    def _set_gone_most(self, writer: apsw.Connection, percent: int) -> None:
        writer.execute(f"INSERT INTO {self._table} ({self._table}, rank) VALUES ('deletemerge', ?)", (percent,))

    def _count(self, writer: apsw.Connection, seqs: str, batch: str) -> int:
        """How many of these are in the index."""
        known: int = writer.execute(f"SELECT count(*) FROM {self._table}_docsize WHERE id IN ({seqs})", (batch,)).get
        return known

    def _move_to(self, position: int) -> None:
        self._position = position

    def _forget_frequencies(self) -> None:
        self._frequencies, self._frequencies_at = {}, 0

    # --- searching ---------------------------------------------------------------------------------------------------

    def _search(
        self, connection: apsw.Connection, queries: Sequence[Sequence[str]], most_postings: int
    ) -> Sequence[Postings]:
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


def index_path(store: Path) -> Path:
    return store.with_name(store.name + "-index")
