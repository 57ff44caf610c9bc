"""One field in one SQLite file: log, texts and views in one transaction, by one writer."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

import apsw

from fieldstone.backends.sqlite.connection import full_as_storage_full, open_reader, open_writer
from fieldstone.backends.sqlite.log import SQL, Span, SqliteContent, SqliteLog
from fieldstone.backends.sqlite.marks import SqliteMarks
from fieldstone.backends.sqlite.replies import SqliteReplies
from fieldstone.backends.sqlite.text_index import SqliteTextIndex
from fieldstone.backends.sqlite.vectors import SqliteVectors
from fieldstone.backends.sqlite.views import SqliteViews, erase_views, write_changes
from fieldstone.ports.log import FIELD_STREAM, GENESIS_HASH, FieldKey
from fieldstone.ports.store import Commit, UnknownField
from fieldstone.ports.views import Change

FAST_COMMIT_MS: Final = 2.0  # a disk this fast is waited for on the spot: two hops to a thread cost as much
NEW_READING_WEIGHT: Final = 0.2  # in the running mean of commit times
CHECKPOINT_PAGES: Final = 1_000  # SQLite's own default; done beside the commits, not inside one
FEW_PAGES: Final = 150  # saved in less time than a few commits take
WAL_LIMIT_PAGES: Final = 16_000  # 64 MiB: past it writers wait for a checkpoint, so the WAL stays bounded

T = TypeVar("T")


class SqliteStore:
    durable = True

    """With `create` False, a field that is not there is not made: it is `UnknownField`."""

    def __init__(self, path: Path, key: FieldKey, *, max_bytes: int | None = None, create: bool = True) -> None:
        self.key = key
        self._path = path
        self._writer = open_writer(path, max_bytes=max_bytes)
        self._near = open_reader(path)  # for small reads on the spot; searches have readers of their own
        stream_no, self.digest_key, self._head_seq = self._find_or_create_stream(key, create=create)
        self._span = Span(stream_no)
        self.log = SqliteLog(self._near, self._span)
        self.texts = SqliteContent(self._near, self._span)
        self.views = SqliteViews(self._near, self._span)
        self.replies = SqliteReplies(self._near, self._span, self._write)
        self.text_index = SqliteTextIndex(path, stream_no, self._hash_at)
        self.marks = SqliteMarks(self._near, self._span, self._write)
        self.vectors = SqliteVectors(path, self._near, self._span, self._write)
        self._writing = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="fieldstone-disk")
        self._checkpointer = ThreadPoolExecutor(1, thread_name_prefix="fieldstone-checkpoint")
        self._mean_commit_ms = 0.0
        self._wal_pages = 0
        self._checkpoint: asyncio.Future[None] | None = None
        self._pages_at_checkpoint = 0
        self._nearly_saved = False
        self._writer.set_wal_hook(self._note_wal_pages)

    @property
    def description(self) -> str:
        return f"sqlite:{self._path}"

    async def commit(self, commit: Commit) -> None:
        async with self._writing:
            await self._keep_wal_bounded()
            if self._mean_commit_ms <= FAST_COMMIT_MS:
                self._commit(commit)
            else:
                await self._in_thread(lambda: self._commit(commit))
            await self._let_wal_start_again()
        self._checkpoint_if_due()

    async def replace_views(self, changes: AsyncIterator[Sequence[Change]]) -> None:
        async with self._writing:
            with full_as_storage_full(), self._writer:
                erase_views(self._writer, self._span)
                async for batch in changes:
                    write_changes(self._writer, self._span, batch)
        self._checkpoint_if_due()

    async def bytes_used(self) -> int:
        pages: int = self._near.pragma("page_count")
        size: int = self._near.pragma("page_size")
        return pages * size + await self.text_index.bytes_used()

    async def close(self) -> None:
        async with self._writing:
            if self._checkpoint is not None:
                await asyncio.wait([self._checkpoint])
            self.text_index.close()
            self._thread.shutdown(wait=True)
            self._checkpointer.shutdown(wait=True)
            self._near.close()
            self._writer.close()  # the last connection: SQLite checkpoints and removes the WAL

    def _find_or_create_stream(self, key: FieldKey, *, create: bool) -> tuple[int, bytes, int]:
        for row in self._writer.execute(SQL["find_stream"], (*key, FIELD_STREAM)):
            return row[0], row[1], row[2]
        if not create:
            known = [
                name for (name,) in self._writer.execute("SELECT field FROM streams WHERE tenant = ?", (key.tenant,))
            ]
            self._near.close()
            self._writer.close()
            raise UnknownField(f"{self._path} holds no field {key.field!r}, but: {', '.join(known) or 'none'}.")
        digest_key = secrets.token_bytes(32)
        with full_as_storage_full(), self._writer:
            stream_no = self._writer.execute(SQL["create_stream"], (*key, FIELD_STREAM, digest_key, GENESIS_HASH)).get
        return stream_no, digest_key, 0

    def _hash_at(self, seq: int) -> bytes | None:
        position = self._span.position(seq)
        found: bytes | None = self._near.execute("SELECT hash FROM log WHERE position = ?", (position,)).get
        return found

    def _commit(self, commit: Commit) -> None:
        entries = commit.entries
        if any(entry.seq != seq for seq, entry in enumerate(entries, self._head_seq + 1)):
            raise ValueError(f"entry {entries[0].seq} does not continue the log, whose head is {self._head_seq}")
        with full_as_storage_full():
            with self._writer:
                self._insert(commit)
                inserted = time.perf_counter()
            commit_ms = (time.perf_counter() - inserted) * 1e3
        if entries:
            self._head_seq = entries[-1].seq
        self.replies.inserted(commit.replies)
        self._mean_commit_ms += NEW_READING_WEIGHT * (commit_ms - self._mean_commit_ms)

    def _insert(self, commit: Commit) -> None:
        writer, base = self._writer, self._span.base
        if commit.entries:
            writer.executemany(SQL["insert_entry"], [(base | seq, body, link) for seq, body, link in commit.entries])
            head = commit.entries[-1]
            writer.execute(SQL["move_head"], (head.seq, head.hash, self._span.stream_no))
        if commit.texts:
            writer.executemany(SQL["insert_text"], [(base | seq, salt, body) for seq, salt, body in commit.texts])
        write_changes(writer, self._span, commit.changes)
        if commit.replies:
            self.replies.insert(writer, commit.replies)
        for seq in commit.erased_texts:
            writer.execute(SQL["erase_text"], (base | seq,))
            writer.execute(SQL["drop_hint"], (base | seq,))

    async def _write(self, work: Callable[[apsw.Connection], int]) -> int:
        """A longer write of this store's parts, off the event loop, in a transaction of its own."""

        def transact() -> int:
            with full_as_storage_full(), self._writer:
                done = work(self._writer)
            return done

        async with self._writing:
            await self._keep_wal_bounded()
            result = await self._in_thread(transact)
        self._checkpoint_if_due()
        return result

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    # --- checkpoints -------------------------------------------------------------------------------------------------

    def _note_wal_pages(self, _connection: apsw.Connection, _database: str, pages: int) -> int:
        self._wal_pages = pages
        return apsw.SQLITE_OK

    def _checkpoint_if_due(self) -> None:
        if self._wal_pages >= CHECKPOINT_PAGES and self._checkpoint is None:
            loop = asyncio.get_running_loop()
            self._pages_at_checkpoint = self._wal_pages
            self._checkpoint = loop.run_in_executor(self._checkpointer, self._run_checkpoint)
            self._checkpoint.add_done_callback(self._checkpoint_done)

    def _checkpoint_done(self, done: asyncio.Future[None]) -> None:
        self._checkpoint = None
        # A disk that is full now is told to the next writer, not here.
        self._nearly_saved = not done.cancelled() and done.exception() is None

    def _run_checkpoint(self) -> None:
        connection = open_reader(self._path)
        try:
            connection.execute("PRAGMA query_only=OFF")
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        finally:
            connection.close()

    async def _let_wal_start_again(self) -> None:
        """After a checkpoint in quiet times only a few pages are left, which came meanwhile. With these saved, too, the
        next commit writes over the WAL from its beginning; a WAL that only grows makes each commit half as slow again,
        since the file system has to write down the file's new size. Under load they are many, and nobody waits."""
        if self._nearly_saved:
            self._nearly_saved = False
            if self._wal_pages - self._pages_at_checkpoint > FEW_PAGES:
                return
            try:
                await self._in_thread(lambda: self._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE))
            except apsw.Error:
                pass  # the commit before it is on disk all the same; a disk that is full is told to the next writer

    async def _keep_wal_bounded(self) -> None:
        if self._wal_pages < WAL_LIMIT_PAGES:
            return
        if self._checkpoint is not None:
            await asyncio.wait([self._checkpoint])
        with full_as_storage_full():
            await self._in_thread(lambda: self._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART))
        self._wal_pages = 0
