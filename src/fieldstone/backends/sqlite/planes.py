"""The planes of a store in one SQLite file beside it, which several processes may write at once.

There is no lease: every write is one `BEGIN IMMEDIATE`, which waits for its turn, and takes its seqs inside it.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import resources
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, NamedTuple, TypeVar

import apsw

from fieldstone.backends.sqlite.connection import (
    JOURNAL_BUSY_MS,
    JOURNAL_LIMIT_BYTES,
    empty_journal,
    full_as_storage_full,
    named,
    open_reader,
    set_max_bytes,
)
from fieldstone.backends.sqlite.gaps import clear_pages
from fieldstone.backends.sqlite.plane_rows import WITH_TEXT, SqliteReadTables, SqliteTables, find_scope, make_scope
from fieldstone.backends.sqlite.runway import Runway
from fieldstone.core.errors import ShuttingDown, StorageFull
from fieldstone.ports.planes import ReadTables, Tables
from fieldstone.ports.store import StoreTooNew

SCHEMA: Final = ("planes.sql", "plane_pieces.sql")  # each brings a file from one version to the next
SCHEMA_VERSION: Final = len(SCHEMA)
READERS: Final = 2  # a long replay leaves a reader for the small reads
FAST_MS: Final = 2.0  # transactions this fast are waited for on the spot: two hops to a thread cost half as much again
NEW_READING_WEIGHT: Final = 0.2  # in the running mean of their times
GROUP_MS: Final = 10.0  # so long a transaction takes in further work: other processes wait for its end
TURN_WAIT_S: Final = 0.001  # between two looks whether another process has done; a commit takes about as long
MOST_WAITS: Final = 60_000  # a minute: whoever has the file for longer has been stopped, or hangs
POLL_S: Final = 0.02  # how soon another process's commit is noticed, while somebody waits for one
CHECKPOINT_PAGES: Final = 1_000  # SQLite's own default; done beside the commits, not inside one
FEW_PAGES: Final = 150  # saved in less time than a few commits take
WITHOUT: Final = "runs and transcripts are gone, and the field itself opens."
WAL_LIMIT_PAGES: Final = 16_000  # 64 MiB: past it writers wait for a checkpoint, so the WAL stays bounded

T = TypeVar("T")
Work = Callable[[apsw.Connection], T]


class SqlitePlanes:
    """`store` is the memory's file; this one lies beside it, and is made when it is first needed."""

    def __init__(self, store: Path, *, max_bytes: int | None = None) -> None:
        self.path = planes_path(store)
        self._max_bytes = max_bytes
        self._opened: _File | None = None
        self.closed = False

    def open(self, scope: str) -> "SqlitePlaneStore":
        return SqlitePlaneStore(self, scope)

    def file(self) -> "_File":
        if self._opened is None:
            with named(self.path, without=WITHOUT):
                self._opened = _File(self.path, self._max_bytes)
        return self._opened

    def there(self) -> bool:
        return self._opened is not None or self.path.exists()

    async def settled(self) -> None:
        """When all that was asked for is written."""
        if self._opened is not None:
            await self._opened.settled()

    async def close(self) -> None:
        self.closed = True
        if self._opened is not None:
            opened, self._opened = self._opened, None
            await opened.close()


class SqlitePlaneStore:
    def __init__(self, planes: SqlitePlanes, scope: str) -> None:
        self._planes = planes
        self._scope = scope
        self._closed = False

    async def write(self, work: Callable[[Tables], T], *, large: bool = False) -> T:
        def within_scope(writer: apsw.Connection) -> T:
            return work(SqliteTables(writer, make_scope(writer, self._scope)))

        return await self._file().write(within_scope, large=large)

    async def read(self, work: Callable[[ReadTables], T]) -> T:
        def within_scope(reader: apsw.Connection) -> T:
            return work(SqliteReadTables(reader, find_scope(reader, self._scope)))

        return await self._file().read(within_scope)

    async def changed(self, seen: int, *, timeout_ms: int) -> int:
        return await self._file().watch.changed(seen, timeout_ms)

    async def scour(self) -> bool:
        self._refuse_if_closed()
        if not self._planes.there():
            return True
        file = self._file()
        return await clear_pages(self._planes.path, WITH_TEXT, write=file.write, empty_journal=file.empty_journal)

    async def bytes_used(self) -> int:
        self._refuse_if_closed()
        return self._file().watch.bytes_used() if self._planes.there() else 0

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            await self._planes.settled()

    def _file(self) -> "_File":
        self._refuse_if_closed()
        return self._planes.file()

    def _refuse_if_closed(self) -> None:
        if self._closed or self._planes.closed:
            raise ShuttingDown


def planes_path(store: Path) -> Path:
    return store.with_name(store.name + "-planes")


# --- the file --------------------------------------------------------------------------------------------------------


class _Outcome(NamedTuple):
    value: Any = None
    error: BaseException | None = None


class _Waiting(NamedTuple):
    work: Work[Any]
    is_large: bool
    answer: asyncio.Future[_Outcome]


def _tell(group: Sequence[_Waiting], outcomes: Sequence[_Outcome]) -> None:
    for waiting, outcome in zip(group, outcomes, strict=False):
        if not waiting.answer.done():
            waiting.answer.set_result(outcome)


class _File:
    """One writer, with a thread for what takes longer; a few readers in their threads; and one that saves the WAL."""

    def __init__(self, path: Path, max_bytes: int | None) -> None:
        self._path = path
        self._writer = _Writer(path, max_bytes)
        self._readers = SimpleQueue[apsw.Connection]()
        for _ in range(READERS):
            self._readers.put(open_reader(path))
        self.watch = _Watch(open_reader(path))
        self._waiting: deque[_Waiting] = deque()
        self._flushing: asyncio.Task[None] | None = None
        self._in_thread = 0  # jobs that the writer's thread has, or will have
        self._checkpoint: asyncio.Future[None] | None = None
        self._write_thread = ThreadPoolExecutor(1, thread_name_prefix="fieldstone-planes")
        self._read_threads = ThreadPoolExecutor(READERS, thread_name_prefix="fieldstone-planes-read")
        self._checkpointer = ThreadPoolExecutor(1, thread_name_prefix="fieldstone-planes-save")

    async def read(self, work: Work[T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._read_threads, self._read, work)

    async def write(self, work: Work[T], *, large: bool = False) -> T:
        """Those that come while a commit is under way share the next one."""
        answer: asyncio.Future[_Outcome] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(work, large, answer))
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.create_task(self._flush())
        value, error = await answer
        if error is not None:
            raise error
        done: T = value
        return done

    async def settled(self) -> None:
        if self._flushing is not None:
            await asyncio.wait([self._flushing])

    async def empty_journal(self) -> bool:
        """Most of it is saved beside the commits, so that writers wait only for the rest."""
        await self._checkpoint_done()
        if self._checkpoint is None:
            self._start_checkpoint()
        await self._checkpoint_done()
        return await self._in_writer(self._writer.empty_journal)

    async def close(self) -> None:
        await self.settled()
        await self._checkpoint_done()
        for pool in (self._write_thread, self._read_threads, self._checkpointer):
            pool.shutdown(wait=True)
        for _ in range(READERS):
            self._readers.get().close()
        self.watch.close()
        self._writer.close()  # the last connection of all: SQLite checkpoints and removes the WAL

    def _read(self, work: Work[T]) -> T:
        reader = self._readers.get()
        try:
            reader.execute("BEGIN")
            return work(reader)
        finally:
            if reader.in_transaction:
                reader.execute("ROLLBACK")
            self._readers.put(reader)

    async def _flush(self) -> None:
        while self._waiting:
            group = [waiting for waiting in self._waiting if not waiting.answer.cancelled()]
            self._waiting.clear()
            try:
                outcomes = await self._commit(group) if group else []
            except BaseException as error:  # why: whatever it was, nobody is left waiting
                _tell(group, [_Outcome(error=error)] * len(group))
                raise
            self._waiting.extendleft(reversed(group[len(outcomes) :]))  # whoever had no time in it is the next
            self.watch.look(ours=True)
            _tell(group, outcomes)
            self._checkpoint_if_due()
            if self._writer.nearly_saved:
                await self._in_writer(self._writer.let_wal_start_again)
            await asyncio.sleep(0)  # others have their turn, too, however many write

    async def _commit(self, group: Sequence[_Waiting]) -> list[_Outcome]:
        """On the spot, where that is quick and neither the thread nor another process has the file just now."""
        writer, outcomes = self._writer, list[_Outcome]()
        works = [waiting.work for waiting in group]
        is_quick = writer.mean_ms <= FAST_MS and not any(waiting.is_large for waiting in group)
        if writer.wal_pages >= WAL_LIMIT_PAGES:
            await self._checkpoint_done()
        elif self._in_thread == 0 and is_quick:
            outcomes = writer.commit(works, wait=False)
        return outcomes or await self._in_writer(partial(writer.commit, works))

    async def _in_writer(self, work: Callable[[], T]) -> T:
        """Who is cancelled meanwhile goes; the thread does not."""
        running = asyncio.get_running_loop().run_in_executor(self._write_thread, work)
        self._in_thread += 1
        running.add_done_callback(self._out_of_thread)
        return await asyncio.shield(running)

    def _out_of_thread(self, _done: asyncio.Future[Any]) -> None:
        self._in_thread -= 1

    # --- checkpoints -------------------------------------------------------------------------------------------------

    def _checkpoint_if_due(self) -> None:
        if self._writer.wal_pages >= CHECKPOINT_PAGES and self._checkpoint is None:
            self._start_checkpoint()

    def _start_checkpoint(self) -> None:
        self._writer.pages_at_checkpoint = self._writer.wal_pages
        self._checkpoint = asyncio.get_running_loop().run_in_executor(self._checkpointer, _save, self._path)
        self._checkpoint.add_done_callback(self._saved)

    def _saved(self, done: asyncio.Future[None]) -> None:
        self._checkpoint = None
        # A disk that is full now is told to the next writer, not here.
        self._writer.nearly_saved = not done.cancelled() and done.exception() is None

    async def _checkpoint_done(self) -> None:
        if self._checkpoint is not None:
            await asyncio.wait([self._checkpoint])


class _Writer:
    """Used by the event loop or by the writer's thread, never by both at once."""

    def __init__(self, path: Path, max_bytes: int | None) -> None:
        self._connection = _open_writer(path, max_bytes)
        self.wal_pages = 0
        self._runway = Runway(self._connection)
        self.pages_at_checkpoint = 0
        self.nearly_saved = False
        self.mean_ms = 0.0
        self._connection.set_wal_hook(self._note_wal_pages)

    def commit(self, works: Sequence[Work[Any]], *, wait: bool = True) -> list[_Outcome]:
        """What became of the first of them, at least of one: the others had no time in this transaction.

        Of none where another process has the file, and this does not `wait`.
        """
        if self.wal_pages >= WAL_LIMIT_PAGES:  # more is written than is saved: a writer waits
            self._checkpoint(apsw.SQLITE_CHECKPOINT_RESTART)
        try:
            return self._transact(works) if self._begin(wait=wait) else []
        except BaseException as error:  # why: whatever it was, those who wait are told
            if len(works) == 1 or not isinstance(error, apsw.Error | StorageFull):
                return [_Outcome(error=error)] * len(works)
        # Together they had no room, or one of them took the others with it.
        return self._one_by_one(works, wait=wait)

    def let_wal_start_again(self) -> None:
        """After a checkpoint in quiet times only a few pages are left, which came meanwhile. With these saved, too, the
        next commit writes over the WAL from its beginning, which is faster than to let it grow."""
        self.nearly_saved = False
        if self.wal_pages - self.pages_at_checkpoint <= FEW_PAGES:
            self._checkpoint(apsw.SQLITE_CHECKPOINT_PASSIVE)

    def empty_journal(self) -> bool:
        """False where somebody reads from it for longer than a moment: writers wait meanwhile."""
        emptied = empty_journal(self._connection)
        if emptied:
            self.wal_pages = 0
            self._runway.cut()
        return emptied

    def close(self) -> None:
        self._runway.close()
        self._connection.close()

    def _one_by_one(self, works: Sequence[Work[Any]], *, wait: bool) -> list[_Outcome]:
        outcomes: list[_Outcome] = []
        for work in works:
            outcome = self.commit([work], wait=wait)
            if not outcome:
                break
            outcomes += outcome
        return outcomes

    def _begin(self, *, wait: bool) -> bool:
        # Not `with connection`: that keeps all other threads from running while it waits for its turn.
        self._connection.set_busy_handler(_wait_for_turn if wait else None)
        try:
            with full_as_storage_full():
                self._connection.execute("BEGIN IMMEDIATE")
        except apsw.BusyError as error:
            if not wait:
                return False
            raise TimeoutError(_KEPT_TOO_LONG) from error
        return True

    def _transact(self, works: Sequence[Work[Any]]) -> list[_Outcome]:
        started = time.perf_counter()
        with full_as_storage_full():
            try:
                outcomes = self._in_time(works)
                self._connection.execute("COMMIT")
            except BaseException:  # why: whatever it was, the transaction is over
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
        took_ms = (time.perf_counter() - started) * 1e3
        self.mean_ms += NEW_READING_WEIGHT * (took_ms - self.mean_ms)
        return outcomes

    def _in_time(self, works: Sequence[Work[Any]]) -> list[_Outcome]:
        outcomes = []
        end = time.perf_counter() + GROUP_MS / 1e3
        for work in works:
            outcomes.append(self._attempt(work))
            if time.perf_counter() > end:
                break
        return outcomes

    def _attempt(self, work: Work[Any]) -> _Outcome:
        self._connection.execute("SAVEPOINT work")
        try:
            with full_as_storage_full():
                outcome = _Outcome(work(self._connection))
        except BaseException as error:  # why: it is told to whoever gave the work, and hinders no other
            if not self._connection.in_transaction:
                raise  # without room SQLite may undo the whole transaction by itself
            self._connection.execute("ROLLBACK TO work")
            outcome = _Outcome(error=error)
        self._connection.execute("RELEASE work")
        return outcome

    def _note_wal_pages(self, _connection: apsw.Connection, _database: str, pages: int) -> int:
        self.wal_pages = pages
        self._runway.reached(pages)
        return apsw.SQLITE_OK

    def _checkpoint(self, mode: int) -> None:
        self._connection.set_busy_timeout(JOURNAL_BUSY_MS)  # until the next transaction begins
        try:
            self._connection.wal_checkpoint(mode=mode)
        except apsw.Error:
            pass  # another process reads, or the disk is full: what is committed is safe, and a writer will be told


class _Watch:
    """A number that moves with every commit of any process. Only the event loop's thread uses it."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._version = 0
        self._seen: int = self._data_version()
        self._waiting: set[asyncio.Future[None]] = set()
        self._polling: asyncio.Task[None] | None = None

    async def changed(self, seen: int, timeout_ms: int) -> int:
        self.look()
        if self._version == seen:
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.add(waiter)
            if self._polling is None or self._polling.done():
                self._polling = asyncio.create_task(self._poll())
            try:
                await asyncio.wait([waiter], timeout=timeout_ms / 1e3)
            finally:
                self._waiting.discard(waiter)
        return self._version

    def look(self, *, ours: bool = False) -> None:
        """Whether there was a commit. One of ours is known to have been, and is not taken for another one later."""
        try:
            now = self._data_version()
        except apsw.Error:
            now, ours = self._seen, True  # whoever is woken reads, and is told there what is wrong with the file
        if ours or now != self._seen:
            self._seen = now
            self._version += 1
            self._wake()

    def bytes_used(self) -> int:
        pages: int = self._connection.execute("PRAGMA page_count").get
        size: int = self._connection.execute("PRAGMA page_size").get
        return pages * size

    def close(self) -> None:
        if self._polling is not None:
            self._polling.cancel()
        self._wake()
        self._connection.close()

    async def _poll(self) -> None:
        while self._waiting:
            await asyncio.sleep(POLL_S)
            self.look()

    def _data_version(self) -> int:
        # The pragma looks at the file. apsw's own `data_version()` does not: it would tell what the last read saw.
        number: int = self._connection.execute("PRAGMA data_version").get
        return number

    def _wake(self) -> None:
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)


# --- connections -----------------------------------------------------------------------------------------------------


def _open_writer(path: Path, max_bytes: int | None) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    try:
        connection.set_busy_handler(_wait_for_turn)
        with full_as_storage_full():
            _use_wal(connection)
            connection.execute("PRAGMA synchronous=FULL")  # an acknowledged append survives a power cut
            connection.execute("PRAGMA secure_delete=ON")
            connection.execute(f"PRAGMA journal_size_limit={JOURNAL_LIMIT_BYTES}")
            connection.execute("PRAGMA wal_autocheckpoint=0")  # inside a commit it would make that one caller wait
            _prepare(connection, path)
            set_max_bytes(connection, max_bytes)
    except BaseException as error:  # why: whatever it was, the file is let go
        connection.close()
        if isinstance(error, apsw.BusyError):
            raise TimeoutError(_KEPT_TOO_LONG) from error
        raise
    return connection


def _use_wal(connection: apsw.Connection) -> None:
    """Where two open a new file at once, one of them is told that it is busy, without its busy handler being asked."""
    for waits in count():
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except apsw.BusyError:
            if not _wait_for_turn(waits):
                raise


def _prepare(connection: apsw.Connection, path: Path) -> None:
    """A file that is ready is opened while another process writes."""
    if _version(connection, path) == SCHEMA_VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for script in SCHEMA[_version(connection, path) :]:  # none, where somebody else was first
            connection.execute((resources.files(__package__) / script).read_text())
        connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except BaseException:  # why: whatever it was, the transaction is over
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _version(connection: apsw.Connection, path: Path) -> int:
    version: int = connection.pragma("user_version")
    if version > SCHEMA_VERSION:
        raise StoreTooNew(f"{path} has schema version {version}; this Fieldstone knows {SCHEMA_VERSION}. Upgrade it.")
    return version


def _save(path: Path) -> None:
    connection = open_reader(path)
    try:
        connection.execute("PRAGMA query_only=OFF")
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
    finally:
        connection.close()


def _wait_for_turn(waits: int) -> bool:
    """SQLite's own waiting grows to 100 ms a look, with which a process can starve beside busy others."""
    time.sleep(TURN_WAIT_S)
    return waits < MOST_WAITS


_KEPT_TOO_LONG: Final = "Another process has kept the planes' file to itself for a minute. Has it been stopped?"
