"""Keys and sealed secrets in a file beside the store, which several processes may have open at once."""

import fcntl
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any, Final

import apsw
from msgspec import json

from fieldstone.backends.sqlite.connection import BUSY_TIMEOUT_MS, full_as_storage_full, named
from fieldstone.ports.access import KeyRecord, SealedSecret
from fieldstone.ports.store import StoreTooNew

SCHEMA_VERSION: Final = 1
OWNER_ONLY: Final = 0o600
WITHOUT: Final = (
    "there are no keys and no known secrets, and a server is open for whoever reaches it: make keys before it serves."
)

_KEY_COLUMNS: Final = KeyRecord.__struct_fields__
_SELECT_KEYS: Final = f"SELECT {', '.join(_KEY_COLUMNS)} FROM keys"
# The database keeps the promise that a revoked key stays revoked: two processes may write the same key at once.
_PUT_KEY: Final = (
    f"INSERT INTO keys ({', '.join(_KEY_COLUMNS)}) VALUES ({', '.join('?' * len(_KEY_COLUMNS))}) "
    "ON CONFLICT (id) DO UPDATE SET revoked_ms = coalesce(revoked_ms, excluded.revoked_ms), "
    + ", ".join(f"{name} = excluded.{name}" for name in _KEY_COLUMNS if name not in ("id", "revoked_ms"))
)


class SqliteAccess:
    """`store` is the memory's file; this one lies beside it and is made where it is not there yet.

    Every write is one statement, and so a transaction: `with connection` would keep all other threads from running
    while it waits for its turn, the one it waits for among them.
    """

    def __init__(self, store: Path) -> None:
        path = access_path(store)
        with _one_opener_at_a_time(path.parent), named(path, without=WITHOUT):
            _make_private(path)
            self._writer = _connect(path)
            try:
                _prepare(self._writer, path)
            except BaseException:  # why: whatever it was, the file is let go
                self._writer.close()
                raise
        # The number that `version` gives does not change by writes of its own connection: hence a second one.
        self._reader = _connect(path)
        self._reader.execute("PRAGMA query_only=ON")

    def version(self) -> int:
        # The pragma looks at the file. apsw's own `data_version()` does not: it would tell what the last read saw.
        number: int = self._reader.execute("PRAGMA data_version").get
        return number

    def keys(self) -> Sequence[KeyRecord]:
        return [_record(row) for row in self._reader.execute(f"{_SELECT_KEYS} ORDER BY created_ms, id")]

    def put_key(self, record: KeyRecord) -> None:
        values = [getattr(record, name) for name in _KEY_COLUMNS]
        if record.agents is not None:
            values[_KEY_COLUMNS.index("agents")] = json.encode(record.agents).decode()
        with full_as_storage_full():
            self._writer.execute(_PUT_KEY, values)

    def secrets(self) -> Sequence[SealedSecret]:
        rows = self._reader.execute("SELECT tenant, id, scope, sealed FROM secrets ORDER BY tenant, id")
        return [
            SealedSecret(tenant=tenant, id=secret_id, scope=scope, sealed=sealed)
            for tenant, secret_id, scope, sealed in rows
        ]

    def put_secret(self, secret: SealedSecret) -> None:
        values = (secret.tenant, secret.id, secret.scope, secret.sealed)
        with full_as_storage_full():
            self._writer.execute(
                "INSERT OR REPLACE INTO secrets (tenant, id, scope, sealed) VALUES (?, ?, ?, ?)", values
            )

    def drop_secret(self, tenant: str, secret_id: str) -> bool:
        with full_as_storage_full():
            self._writer.execute("DELETE FROM secrets WHERE tenant = ? AND id = ?", (tenant, secret_id))
            dropped = self._writer.changes() > 0
        return dropped

    def close(self) -> None:
        self._reader.close()
        self._writer.close()


def access_path(store: Path) -> Path:
    return store.with_name(store.name + "-access")


@contextmanager
def _one_opener_at_a_time(folder: Path) -> Iterator[None]:
    """Where two make the same new file at once, SQLite lets one of them fail while it turns to its write-ahead log."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)  # closing gives the lock back


def _make_private(path: Path) -> None:
    """Before SQLite opens it: its journals get the mode that the file has.

    A file that is there is not opened for this: closing it would take away the locks that SQLite has on it.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, OWNER_ONLY))
    except FileExistsError:
        pass
    if stat.S_IMODE(path.stat().st_mode) != OWNER_ONLY:
        path.chmod(OWNER_ONLY)


def _connect(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    connection.execute("PRAGMA synchronous=FULL")  # a key that was revoked is revoked after a power cut, too
    connection.execute("PRAGMA secure_delete=ON")
    return connection


def _prepare(connection: apsw.Connection, path: Path) -> None:
    version = connection.pragma("user_version")
    if version > SCHEMA_VERSION:
        raise StoreTooNew(f"{path} has schema version {version}; this Fieldstone knows {SCHEMA_VERSION}. Upgrade it.")
    with full_as_storage_full():
        connection.execute("PRAGMA journal_mode=WAL")
        if version == 0:
            with connection:
                connection.execute((resources.files(__package__) / "access.sql").read_text())
                connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")


def _record(row: tuple[Any, ...]) -> KeyRecord:
    values = dict(zip(_KEY_COLUMNS, row, strict=True))
    if values["agents"] is not None:
        values["agents"] = tuple(json.decode(values["agents"], type=list[str]))
    return KeyRecord(**values)
