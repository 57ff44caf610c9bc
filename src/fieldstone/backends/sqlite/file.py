"""One SQLite file, opened once in a process: its writer, its small reads, its checkpoints. The fields in it share it.

SQLite has one writer a file. Two connections that write would meet in the event loop, one waiting for the other; a lock
in front of a single one lets them take turns, whoever's fields they write.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import apsw

from fieldstone.backends.sqlite.connection import (
    empty_journal,
    full_as_storage_full,
    open_reader,
    open_writer,
    transaction,
)
from fieldstone.backends.sqlite.runway import Runway
from fieldstone.backends.sqlite.text_index import SqliteIndexFile, index_path
from fieldstone.ports.threads import CLOSE_BEHIND, background_threads

FAST_COMMIT_MS: Final = 2.0  # a disk this fast is waited for on the spot: two hops to a thread cost as much
LARGE_BYTES: Final = 128 * 1024  # of a commit's entries: what takes longer than a hundred RECORDs is for the thread
NEW_READING_WEIGHT: Final = 0.2  # in the running mean of commit times
CHECKPOINT_PAGES: Final = 1_000  # SQLite's own default; done beside the commits, not inside one
CHECKPOINT_PASSES: Final = 3  # the second and third save the few pages that came during the one before
FEW_PAGES: Final = 32  # what a caller or two who are alone write meanwhile
WAL_LIMIT_PAGES: Final = 16_000  # 64 MiB: past it writers wait for a checkpoint, so the WAL stays bounded

T = TypeVar("T")


class Saved(NamedTuple):
    """The WAL's pages as a checkpoint left them."""

    seen: int
    saved: int  # fewer where somebody still reads an older state


class SqliteFile:
    """Whoever needs it open calls `hold`, and `release` in the end: the last one closes it.

    `near` is for small reads on the spot, in the event loop. There they come one after the other anyway, so one
    connection does for all fields: one page cache for a hundred of them, and not a hundred.
    """

    def __init__(self, path: Path, *, max_bytes: int | None = None) -> None:
        self.path = path
        self._writer = open_writer(path, max_bytes=max_bytes)
        self.near = open_reader(path)
        self.index = SqliteIndexFile(index_path(path))
        self._holders = 0
        self._writing = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="fieldstone-disk")
        self._checkpointer = background_threads(1, "fieldstone-checkpoint", niceness=CLOSE_BEHIND)
        self._mean_commit_ms = 0.0
        self._wal_pages = 0
        self._runway = Runway(self._writer)
        self._checkpoint: asyncio.Future[Saved] | None = None
        self._last = Saved(0, 0)  # by the last checkpoint
        self._nearly_saved = False
        self._writer.set_wal_hook(self._note_wal_pages)

    def hold(self) -> None:
        self._holders += 1

    async def release(self) -> None:
        async with self._writing:  # its turn comes after all that its holder still has to write
            self._holders -= 1
            if self._holders > 0:
                return
            if self._checkpoint is not None:
                await asyncio.wait([self._checkpoint])
            self.close()

    def close(self) -> None:
        """At once, for one that nobody has held yet."""
        self.index.close()
        self._thread.shutdown(wait=True)
        self._checkpointer.shutdown(wait=True)
        self._runway.close()
        self.near.close()
        self._writer.close()  # the last connection: SQLite checkpoints and removes the WAL

    def bytes_used(self) -> int:
        pages: int = self.near.pragma("page_count")
        size: int = self.near.pragma("page_size")
        return pages * size + self.index.bytes_used()

    # --- writing -----------------------------------------------------------------------------------------------------

    async def commit(
        self, insert: Callable[[apsw.Connection], None], then: Callable[[], None], *, size_bytes: int
    ) -> None:
        """`insert` in one transaction. `then` follows when that is on disk, and before anything else is written."""
        async with self._writing:
            if self._wal_pages >= WAL_LIMIT_PAGES:
                await self._keep_wal_bounded()
            if self._mean_commit_ms <= FAST_COMMIT_MS and size_bytes < LARGE_BYTES:
                self._commit(insert, then)
            else:
                await self._in_thread(lambda: self._commit(insert, then))
            if self._nearly_saved:
                await self._let_wal_start_again()
        self._checkpoint_if_due()

    async def write(self, work: Callable[[apsw.Connection], T]) -> T:
        """A longer write, off the event loop, in a transaction of its own."""
        async with self._writing:
            if self._wal_pages >= WAL_LIMIT_PAGES:
                await self._keep_wal_bounded()
            result = await self._in_thread(lambda: self.transact(work))
        self._checkpoint_if_due()
        return result

    def transact(self, work: Callable[[apsw.Connection], T]) -> T:
        """The same at once, for whoever has the writer to itself."""
        with full_as_storage_full(), transaction(self._writer):
            done = work(self._writer)
        return done

    @asynccontextmanager
    async def rewriting(self) -> AsyncIterator[apsw.Connection]:
        """A transaction for work that waits for something in between. All other writes wait until it is over."""
        async with self._writing:
            with full_as_storage_full(), transaction(self._writer):
                yield self._writer
        self._checkpoint_if_due()

    def _commit(self, insert: Callable[[apsw.Connection], None], then: Callable[[], None]) -> None:
        with full_as_storage_full():
            with transaction(self._writer):
                insert(self._writer)
                inserted = time.perf_counter()
            commit_ms = (time.perf_counter() - inserted) * 1e3
        then()
        self._mean_commit_ms += NEW_READING_WEIGHT * (commit_ms - self._mean_commit_ms)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Who is cancelled meanwhile waits for the thread all the same: it has the writer, and the next one to write
        would find itself inside its transaction."""
        running = asyncio.get_running_loop().run_in_executor(self._thread, work)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await _end_of(running)
            raise

    async def scour(self) -> bool:
        """Empty the journal, and with it what deleted and replaced rows left there. False: a reader holds it open.

        Nearly all of it is saved beside the commits. Whoever writes waits only for what came meanwhile.
        """
        await asyncio.wait([self._begin_checkpoint()])
        async with self._writing:
            if self._checkpoint is not None:
                await asyncio.wait([self._checkpoint])
            emptied = await self._in_thread(lambda: empty_journal(self._writer))
            if emptied:
                self._wal_pages = 0
                self._runway.cut()
        return emptied

    # --- checkpoints -------------------------------------------------------------------------------------------------

    def _note_wal_pages(self, _connection: apsw.Connection, _database: str, pages: int) -> int:
        self._wal_pages = pages
        self._runway.reached(pages)
        return apsw.SQLITE_OK

    def _checkpoint_if_due(self) -> None:
        if self._wal_pages < self._last.seen:
            self._last = Saved(0, 0)  # it has started again from its beginning
        if self._wal_pages - self._last.seen >= CHECKPOINT_PAGES and self._checkpoint is None:
            self._begin_checkpoint()

    def _begin_checkpoint(self) -> asyncio.Future[Saved]:
        """Or the one that is under way."""
        if self._checkpoint is None:
            self._checkpoint = asyncio.get_running_loop().run_in_executor(self._checkpointer, self._run_checkpoint)
            self._checkpoint.add_done_callback(self._checkpoint_done)
        return self._checkpoint

    def _checkpoint_done(self, done: asyncio.Future[Saved]) -> None:
        self._checkpoint = None
        # A disk that is full now is told to the next writer, not here.
        self._nearly_saved = not done.cancelled() and done.exception() is None
        if self._nearly_saved:
            self._last = done.result()

    def _run_checkpoint(self) -> Saved:
        """With all pages saved the next commit writes over the WAL from its beginning, and nobody has waited."""
        connection = open_reader(self.path)
        try:
            connection.execute("PRAGMA query_only=OFF")
            now = Saved(0, 0)
            for _ in range(CHECKPOINT_PASSES):
                before, now = now, Saved(*connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE))
                if now == before:
                    break
        finally:
            connection.close()
        return now

    async def _let_wal_start_again(self) -> None:
        """One caller after the other leaves no gap in which a checkpoint could save everything. Then the few pages that
        came meanwhile are saved while nobody else may write, so that the WAL does not only grow. Under load they are
        many, and nobody waits."""
        self._nearly_saved = False
        if not 0 < self._wal_pages - self._last.saved <= FEW_PAGES:
            return
        try:
            await self._in_thread(lambda: self._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE))
        except apsw.Error:
            pass  # the commit before it is on disk all the same; a disk that is full is told to the next writer

    async def _keep_wal_bounded(self) -> None:
        if self._checkpoint is not None:
            await asyncio.wait([self._checkpoint])
        with full_as_storage_full():
            await self._in_thread(lambda: self._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART))
        self._wal_pages = 0


async def _end_of(running: asyncio.Future[T]) -> None:
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError:
            pass  # once was enough, and is passed on by whoever waits here
    if not running.cancelled():
        running.exception()  # nobody is left who would hear of it
