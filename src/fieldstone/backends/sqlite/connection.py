"""Connections to the file: pragmas, schema, and SQLite's errors in the Field's words."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Final

import apsw

from fieldstone.core.errors import StorageFull
from fieldstone.ports.store import StoreTooNew

BUSY_TIMEOUT_MS: Final = 5_000  # others only read, so a wait is short; longer means that something is wrong
JOURNAL_BUSY_MS: Final = 50
READ_CACHE_KIB: Final = 64 * 1024
JOURNAL_LIMIT_BYTES: Final = 64 * 1024 * 1024  # a WAL that once grew gives its room back
WHEN_DAMAGED: Final = (
    "Stop what uses the store, move {0} away (with its -wal and -shm), and put a backup of it in its place. "
    "Without one {1}"
)


def open_writer(path: Path, *, max_bytes: int | None = None) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    connection.execute("PRAGMA journal_mode=WAL")
    # FULL: an acknowledged write survives a power cut. NORMAL lost 3.6% of them when we tried.
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA secure_delete=ON")
    connection.execute(f"PRAGMA journal_size_limit={JOURNAL_LIMIT_BYTES}")
    connection.execute("PRAGMA wal_autocheckpoint=0")  # a checkpoint inside a commit would make that one caller wait
    migrate(connection)
    set_max_bytes(connection, max_bytes)
    return connection


def open_reader(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    connection.execute("PRAGMA query_only=ON")
    connection.execute(f"PRAGMA cache_size=-{READ_CACHE_KIB}")
    connection.execute("PRAGMA wal_autocheckpoint=0")
    return connection


@contextmanager
def named(path: Path, *, without: str) -> Iterator[None]:
    """SQLite says what is wrong with a file, and not with which: beside a store there are several.

    Where it is damaged, a note on the error says what to do; `without` is what becomes of a store that has no backup.
    """
    try:
        yield
    except apsw.Error as error:
        telling = type(error)(f"{path}: {error}")
        if isinstance(error, apsw.NotADBError | apsw.CorruptError):
            telling.add_note(WHEN_DAMAGED.format(path, without))
        raise telling from error


def transaction(connection: apsw.Connection) -> "_Transaction":
    """Not `with connection`: that keeps all other threads from running while it commits, and so waits for the disk."""
    return _Transaction(connection)


class _Transaction:
    """Every commit passes through this and `_FullAsStorageFull`: classes are entered and left in a fifth of the time
    that generators take."""

    __slots__ = ("_connection",)

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:  # without room SQLite may have undone it by itself
                self._connection.execute("ROLLBACK")


def empty_journal(connection: apsw.Connection) -> bool:
    """Save the WAL and cut it to nothing. False where somebody still reads from it: others must not wait for long."""
    connection.set_busy_timeout(JOURNAL_BUSY_MS)
    try:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        return True
    except apsw.BusyError:
        return False
    finally:
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)


def set_max_bytes(connection: apsw.Connection, max_bytes: int | None) -> None:
    page_size = connection.pragma("page_size")
    pages = 0xFFFFFFFE if max_bytes is None else max(1, max_bytes // page_size)
    connection.execute(f"PRAGMA max_page_count={pages}")


def migrate(connection: apsw.Connection) -> None:
    """Bring the schema up to date, step by step, each in its own transaction. `user_version` says how far it is."""
    steps = migration_steps()
    version = connection.pragma("user_version")
    if version > len(steps):
        raise StoreTooNew(f"The store has schema version {version}; this Fieldstone knows {len(steps)}. Upgrade it.")
    for number, script in enumerate(steps[version:], start=version + 1):
        with connection:
            connection.execute(script)
            connection.execute(f"PRAGMA user_version={number}")


def migration_steps() -> list[str]:
    folder = resources.files(__package__) / "migrations"
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    return [file.read_text() for file in files]


def load_queries() -> dict[str, str]:
    """The named statements of queries.sql. The comment lines after a name say why it is written as it is."""
    text = (resources.files(__package__) / "queries.sql").read_text()
    queries: dict[str, str] = {}
    for block in text.split("-- name: ")[1:]:
        name, _, body = block.partition("\n")
        queries[name.strip()] = "\n".join(line for line in body.splitlines() if not line.startswith("--")).strip()
    return queries


def full_as_storage_full() -> "_FullAsStorageFull":
    """SQLite says FULL for the size cap and for most full disks, and IOERR where only the sync or the WAL noticed."""
    return _FULL_AS_STORAGE_FULL


class _FullAsStorageFull:
    __slots__ = ()

    def __enter__(self) -> None: ...

    def __exit__(self, _kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        if not isinstance(error, apsw.Error):
            return
        cause = _first_error(error)
        if isinstance(cause, apsw.FullError):
            raise StorageFull from error
        if isinstance(cause, apsw.IOError) and getattr(cause, "extendedresult", None) in _WRITE_ERRORS:
            raise StorageFull("The disk did not take the write: nothing of this request was written.") from error


_FULL_AS_STORAGE_FULL: Final = _FullAsStorageFull()


def _first_error(error: apsw.Error) -> apsw.Error:
    """Without room SQLite rolls back by itself; the ROLLBACK that apsw sends after it then fails and hides why."""
    while isinstance(error, apsw.SQLError) and isinstance(error.__context__, apsw.Error):
        error = error.__context__
    return error


_WRITE_ERRORS: Final = frozenset(
    (
        apsw.SQLITE_IOERR_WRITE,
        apsw.SQLITE_IOERR_FSYNC,
        apsw.SQLITE_IOERR_TRUNCATE,
        apsw.SQLITE_IOERR_SHMSIZE,
        apsw.SQLITE_IOERR_SHMMAP,
    )
)
