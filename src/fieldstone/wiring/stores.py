"""Stores, and who holds them."""

from __future__ import annotations

import errno
import os
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fieldstone.settings import Settings
from fieldstone.wiring.addresses import UnknownStore, store_path

if TYPE_CHECKING:
    from fieldstone.ports.lease import Holder, Lease
    from fieldstone.ports.planes import PlaneFile
    from fieldstone.ports.store import Store, Stores
    from fieldstone.ports.world import Clock


SQLITE_MAGIC: Final = b"SQLite format 3\0"


def holder(clock: Clock, program: str = "", url: str | None = None) -> Holder:
    from fieldstone.ports.lease import Holder
    from fieldstone.retrieval.reading import timestamp

    name = program or Path(sys.argv[0] or "python").name or "python"
    return Holder(os.getpid(), socket.gethostname(), name, timestamp(clock.now_ms()), url)


def open_store(settings: Settings, *, program: str = "", create: bool = True) -> tuple[Store, Lease | None]:
    """The bare store, and the lease on it. With `create` False nothing is made that is not there."""
    from fieldstone.ports.log import FieldKey

    key = FieldKey(settings.tenant, settings.field)
    path = store_path(settings.db)
    if path is None:
        from fieldstone.backends.memory.store import MemoryStore, Room

        return MemoryStore(key, room=Room(settings.max_bytes)), None
    from fieldstone.backends.sqlite.store import SqliteStore

    lease = _take_lease(path, program, create=create)
    try:
        return SqliteStore.open(path, key, max_bytes=settings.max_bytes, create=create), lease
    except BaseException:  # why: whatever it was, the store is not ours
        lease.release()
        raise


def open_stores(settings: Settings, *, program: str = "") -> Stores:
    """Every field of the store that the settings name: one file, one lease, and both are given back by its `close`."""
    path = store_path(settings.db)
    if path is None:
        from fieldstone.backends.memory.store import MemoryStores

        return MemoryStores(max_bytes=settings.max_bytes)
    from fieldstone.backends.sqlite.file import SqliteFile
    from fieldstone.backends.sqlite.store import SqliteStores

    lease = _take_lease(path, program, create=True)
    try:
        return SqliteStores(SqliteFile(path, max_bytes=settings.max_bytes), lease)
    except BaseException:  # why: whatever it was, the store is not ours
        lease.release()
        raise


def open_planes(settings: Settings) -> PlaneFile:
    """The planes beside the store that the settings name. Other processes may have them open, too."""
    path = store_path(settings.db)
    if path is None:
        from fieldstone.backends.memory.planes import MemoryPlanes

        return MemoryPlanes()
    from fieldstone.backends.sqlite.planes import SqlitePlanes

    return SqlitePlanes(path, max_bytes=settings.max_bytes)


def _check_place(path: Path, *, create: bool) -> None:
    """A mistyped path gets a sentence, and leaves nothing behind."""
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "There is no such directory", str(path.parent))
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "It is a directory, not a store", str(path))
    if create and path.is_file():  # one that is only looked into may be damaged: its reader says how
        with path.open("rb") as file:
            if file.read(len(SQLITE_MAGIC)) not in (b"", SQLITE_MAGIC):
                raise UnknownStore(
                    f"{path} is not a Fieldstone store, or its beginning is damaged: then bring it back from a backup."
                )


def _take_lease(path: Path, program: str, *, create: bool) -> Lease:
    from fieldstone.backends.sqlite.lease import FileLease
    from fieldstone.backends.system import SystemClock

    _check_place(path, create=create)
    lease = FileLease(path)
    lease.acquire(holder(SystemClock(), program))
    return lease
