"""Archived texts of the streams of one file, packed in blocks in a file beside it, with an index of their words."""

import asyncio
import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import Any, Final, TypeVar

import apsw
from msgspec import msgpack

from fieldstone.backends.analysis import Analyzer
from fieldstone.backends.sqlite.connection import (
    BUSY_TIMEOUT_MS,
    JOURNAL_LIMIT_BYTES,
    empty_journal,
    full_as_storage_full,
    named,
    open_reader,
    transaction,
)
from fieldstone.backends.sqlite.gaps import Table, clear_pages
from fieldstone.backends.sqlite.log import Span
from fieldstone.backends.sqlite.text_index import HashAt, SqliteIndexFile, SqliteTextIndex, index_path
from fieldstone.ports.cold import ForeignColdStore
from fieldstone.ports.log import StoredText
from fieldstone.ports.store import StoreTooNew
from fieldstone.ports.text_index import Document, Postings
from fieldstone.ports.threads import BEHIND, background_threads

# Each brings a file from one version to the next.
SCHEMA: Final = ("cold.sql", "cold_units.sql", "cold_vectors.sql", "cold_anchors.sql")
SCHEMA_VERSION: Final = len(SCHEMA)
BLOCK_BITS: Final = 6  # 64 seqs: 7 kB packed, unpacked in 80 µs for the sake of one of them
READ_BLOCKS: Final = 32
PACKING_LEVEL: Final = 1  # of 9: twice as fast as zlib's default, and 7% larger
OWNER_BYTES: Final = 16
BLOCKS: Final = Table("blocks", ("salts", "bodies"))
VECTORS: Final = Table("vectors", ("members", "scales", "codes"))
WITHOUT: Final = "the field opens, too, but texts of archived units are missing: `fieldstone verify` names the first."

T = TypeVar("T")


class SqliteColdFile:
    """Open late: a store that never archived has no such file. The streams share one writer, in a thread of its own."""

    def __init__(self, store: Path) -> None:
        self.path = cold_path(store)
        self.analyzer = Analyzer()
        self._writer: apsw.Connection | None = None
        self._near: apsw.Connection | None = None
        self._beside: apsw.Connection | None = None
        self._index: SqliteIndexFile | None = None
        self._holders = 0
        self._thread = background_threads(1, "fieldstone-cold")

    def hold(self) -> None:
        self._holders += 1

    def release(self) -> None:
        """The last of its holders closes it, when all that was to be written is."""
        self._holders -= 1
        if self._holders == 0:
            self.close()

    def near(self) -> apsw.Connection | None:
        """For small reads on the spot; None where nothing was ever archived."""
        if self._near is None and self.path.exists():
            self._open()
        return self._near

    def beside(self) -> apsw.Connection:
        """For small reads of whoever has the store's writer, in whatever thread that is."""
        if self._beside is None:
            self._beside = open_reader(self.path)
        return self._beside

    def named(self) -> AbstractContextManager[None]:
        return named(self.path, without=WITHOUT)

    async def write(self, work: Callable[[apsw.Connection], T]) -> T:
        """`work` in one transaction, which is on disk when this returns."""
        writer = self._writer or self._open()

        def transact() -> T:
            with self.named(), full_as_storage_full(), transaction(writer):
                done = work(writer)
            return done

        return await asyncio.get_running_loop().run_in_executor(self._thread, transact)

    async def scour(self) -> bool:
        if self.near() is None:
            return True
        return await clear_pages(self.path, [BLOCKS, VECTORS], write=self.write, empty_journal=self._empty_journal)

    def index_there(self) -> SqliteIndexFile | None:
        there = self._index is not None or index_path(self.path).exists()
        return self.index_made() if there else None

    def index_made(self) -> SqliteIndexFile:
        if self._index is None:
            self._index = SqliteIndexFile(index_path(self.path), niceness=BEHIND)
        return self._index

    def bytes_used(self) -> int:
        index = self.index_there()
        here = self.path.stat().st_size if self.path.exists() else 0
        return here + (index.bytes_used() if index is not None else 0)

    def close(self) -> None:
        self._thread.shutdown(wait=True)
        for part in (self._index, self._near, self._beside, self._writer):
            if part is not None:
                part.close()

    async def _empty_journal(self) -> bool:
        writer = self._writer or self._open()
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: empty_journal(writer))

    def _open(self) -> apsw.Connection:
        with self.named(), full_as_storage_full():
            writer = _open_writer(self.path)
        self._writer, self._near = writer, open_reader(self.path)
        return writer


class SqliteCold:
    """One stream's archived texts. Which blocks there are is known, so that a text that is not cold costs nothing."""

    def __init__(self, file: SqliteColdFile, span: Span, digest_key: bytes, hash_at: HashAt) -> None:
        self._file = file
        self._span = span
        self.owner = hashlib.sha256(b"cold " + digest_key).digest()[:OWNER_BYTES]
        self._blocks = set(self._blocks_there())
        self.index = LateTextIndex(file, span.stream_no, hash_at)

    async def put(self, texts: Sequence[StoredText]) -> None:
        if not texts:
            return
        new = _by_block(texts)

        def merge(writer: apsw.Connection) -> None:
            sign(writer, self._span, self.owner)
            for block, part in new.items():
                _put(writer, self._span.position(block), _get(writer, self._span.position(block)) | part)

        self._blocks.update(new)  # before they are there: one too many costs a look, one too few hides a text
        await self._file.write(merge)

    async def get(self, seqs: Sequence[int]) -> dict[int, StoredText]:
        near = self._file.near() if self._blocks else None
        if near is None:
            return {}
        wanted = sorted(seq for seq in set(seqs) if seq >> BLOCK_BITS in self._blocks)
        found: dict[int, StoredText] = {}
        for block, part in groupby(wanted, lambda seq: seq >> BLOCK_BITS):
            with self._file.named():
                held = _get(near, self._span.position(block))
            found |= {seq: held[seq] for seq in part if seq in held}
        return found

    async def read(self, *, after: int, limit: int) -> Sequence[StoredText]:
        texts: list[StoredText] = []
        for block in self._blocks_after(after):
            texts += (text for text in block if text.seq > after)
            if len(texts) >= limit:
                break
        return texts[: max(limit, 0)]

    async def erase(self, seqs: Sequence[int]) -> None:
        gone = {seq for seq in seqs if seq >> BLOCK_BITS in self._blocks}
        if not gone:
            return

        def remove(writer: apsw.Connection) -> list[int]:
            return [block for block in {seq >> BLOCK_BITS for seq in gone} if self._remove(writer, block, gone)]

        self._blocks.difference_update(await self._file.write(remove))

    async def scour(self) -> bool:
        parts = (await self.index.scour(), await self._file.scour())
        return all(parts)

    async def bytes_used(self) -> int:
        return self._file.bytes_used()

    def _remove(self, writer: apsw.Connection, block: int, gone: set[int]) -> bool:
        """Whether nothing is left of the block."""
        position = self._span.position(block)
        held = _get(writer, position)
        stays = {seq: text for seq, text in held.items() if seq not in gone}
        if not stays:
            writer.execute("DELETE FROM blocks WHERE position = ?", (position,))
        elif len(stays) < len(held):
            _put(writer, position, stays)
        return not stays

    def _blocks_there(self) -> Iterator[int]:
        near = self._file.near()
        if near is None:
            return
        with self._file.named():
            owner = near.execute("SELECT owner FROM streams WHERE stream_no = ?", (self._span.stream_no,)).get
            query = "SELECT position & 0xffffffff FROM blocks WHERE position BETWEEN ? AND ?"
            rows: list[Any] = near.execute(query, (self._span.base, self._span.end)).fetchall()
        if owner not in (None, self.owner):
            raise ForeignColdStore(f"{self._file.path} was archived from another store. Move it away.")
        yield from (block for (block,) in rows)

    def _blocks_after(self, seq: int) -> Iterator[Iterable[StoredText]]:
        """A few at a time, each time all of them: a statement that waits for its end would keep an old state alive."""
        near = self._file.near() if self._blocks else None
        if near is None:
            return
        query = "SELECT position, salts, bodies FROM blocks WHERE position BETWEEN ? AND ? ORDER BY position LIMIT ?"
        first = self._span.position(max(seq, 0) >> BLOCK_BITS)
        while first <= self._span.end:
            with self._file.named():
                rows: list[Any] = near.execute(query, (first, self._span.end, READ_BLOCKS)).fetchall()
            for _, salts, bodies in rows:
                with self._file.named():
                    block = _unpacked(salts, bodies)
                yield block.values()
            first = rows[-1][0] + 1 if rows else self._span.end + 1


class LateTextIndex:
    """The index of archived words: an empty one, until the first of them comes."""

    def __init__(self, file: SqliteColdFile, stream_no: int, hash_at: HashAt) -> None:
        self._file = file
        self._stream_no = stream_no
        self._hash_at = hash_at
        self._opened: SqliteTextIndex | None = None

    def analyze(self, text: str) -> list[str]:
        return self._file.analyzer.terms(text)

    async def position(self) -> int:
        there = self._there()
        return 0 if there is None else await there.position()

    async def add(self, documents: Sequence[Document], *, position: int) -> None:
        await self._made(self._file.index_made()).add(documents, position=position)

    async def remove(self, seqs: Sequence[int]) -> None:
        if there := self._there():
            await there.remove(seqs)

    async def search(self, queries: Sequence[Sequence[str]], *, most_postings: int) -> Sequence[Postings]:
        if there := self._there():
            return await there.search(queries, most_postings=most_postings)
        return [Postings(0, 0, dict.fromkeys(words, 0), {}) for words in queries]

    async def scour(self) -> bool:
        there = self._there()
        return there is None or await there.scour()

    async def clear(self) -> None:
        if there := self._there():
            await there.clear()

    def _there(self) -> SqliteTextIndex | None:
        file = self._file.index_there()
        return None if file is None else self._made(file)

    def _made(self, file: SqliteIndexFile) -> SqliteTextIndex:
        if self._opened is None:
            self._opened = SqliteTextIndex(file, self._stream_no, self._hash_at)
        return self._opened


def cold_path(store: Path) -> Path:
    return store.with_name(store.name + "-cold")


# --- the file --------------------------------------------------------------------------------------------------------


def _open_writer(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    try:
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")  # the hot text is erased once this one is said to be safe
        connection.execute("PRAGMA secure_delete=ON")
        connection.execute(f"PRAGMA journal_size_limit={JOURNAL_LIMIT_BYTES}")
        _prepare(connection, path)
    except BaseException:  # why: whatever it was, the file is let go
        connection.close()
        raise
    return connection


def _prepare(connection: apsw.Connection, path: Path) -> None:
    version = connection.pragma("user_version")
    if version > SCHEMA_VERSION:
        raise StoreTooNew(f"{path} has schema version {version}; this Fieldstone knows {SCHEMA_VERSION}. Upgrade it.")
    if version < SCHEMA_VERSION:
        with transaction(connection):
            for script in SCHEMA[version:]:
                connection.execute((resources.files(__package__) / script).read_text())
            connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")


def sign(writer: apsw.Connection, span: Span, owner: bytes) -> None:
    writer.execute("INSERT OR IGNORE INTO streams (stream_no, owner) VALUES (?, ?)", (span.stream_no, owner))


# --- blocks ----------------------------------------------------------------------------------------------------------

Block = dict[int, StoredText]  # by seq, ascending


def _by_block(texts: Iterable[StoredText]) -> dict[int, Block]:
    blocks: dict[int, Block] = {}
    for text in texts:
        blocks.setdefault(text.seq >> BLOCK_BITS, {})[text.seq] = text
    return blocks


def _get(connection: apsw.Connection, position: int) -> Block:
    row: tuple[bytes, bytes] | None = connection.execute(
        "SELECT salts, bodies FROM blocks WHERE position = ?", (position,)
    ).get
    return {} if row is None else _unpacked(*row)


def _put(writer: apsw.Connection, position: int, block: Block) -> None:
    query = "INSERT OR REPLACE INTO blocks (position, salts, bodies) VALUES (?, ?, ?)"
    writer.execute(query, (position, *_packed(block)))


def _packed(block: Block) -> tuple[bytes, bytes]:
    texts = [block[seq] for seq in sorted(block)]
    salts = msgpack.encode([(text.seq, text.salt) for text in texts])
    return salts, zlib.compress(msgpack.encode([text.body for text in texts]), PACKING_LEVEL)


def _unpacked(salts: bytes, bodies: bytes) -> Block:
    try:
        said = _BODIES.decode(zlib.decompress(bodies))
        return {seq: StoredText(seq, salt, body) for (seq, salt), body in zip(_SALTS.decode(salts), said, strict=True)}
    except (zlib.error, ValueError) as error:  # msgspec's errors are ValueErrors, too
        raise apsw.CorruptError("a block of archived texts is damaged") from error


_SALTS: Final = msgpack.Decoder(list[tuple[int, bytes]])
_BODIES: Final = msgpack.Decoder(list[bytes])
