"""A disk under SQLite that fails when it is told to, or is too small: an apsw VFS in front of the real one."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import apsw

Operation = Literal["write", "sync"]
Failure = Literal["full", "write error", "torn write", "sync error"]

_BASE: Final = "unix"


class Blow(NamedTuple):
    """What the `at`-th operation that it is meant for meets, and with `lasting` all that follow, until it is healed."""

    at: int
    failure: Failure
    lasting: bool = False


class FaultyDisk(apsw.VFS):
    """It counts writes and syncs of the files that `watched` names; the others are let through."""

    def __init__(self, name: str, watched: Callable[[str], bool]) -> None:
        self._watched = watched
        self._blow: Blow | None = None
        self._capacity_bytes: int | None = None
        self._sizes: dict[str, int] = {}
        self.operations: list[Operation] = []
        self.struck: Operation | None = None
        super().__init__(name, _BASE, makedefault=True)

    def arm(self, blow: Blow) -> None:
        self._blow = blow
        self.operations.clear()
        self.struck = None

    def heal(self) -> None:
        self._blow = None
        self._capacity_bytes = None

    def shrink_to(self, capacity_bytes: int) -> None:
        """What the watched files may take together."""
        self._capacity_bytes = capacity_bytes

    def taken_bytes(self) -> int:
        return sum(self._sizes.values())

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 (SQLite's name)
        return _FaultyFile(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        super().xDelete(filename, syncdir)
        self._sizes.pop(filename, None)

    def meets(self, path: str, operation: Operation) -> Failure | None:
        """The failure that this operation meets, if any."""
        if not self._watched(path):
            return None
        self.operations.append(operation)
        blow = self._blow
        if blow is None or len(self.operations) < blow.at or (len(self.operations) > blow.at and not blow.lasting):
            return None
        self.struck = self.struck or operation
        return blow.failure

    def has_room(self, path: str, size: int) -> bool:
        if not self._watched(path):
            return True
        grown = max(size, self._sizes.get(path, 0))
        others = self.taken_bytes() - self._sizes.get(path, 0)
        if self._capacity_bytes is not None and others + grown > max(self._capacity_bytes, self.taken_bytes()):
            return False
        self._sizes[path] = grown
        return True

    def truncated(self, path: str, size: int) -> None:
        if self._watched(path):
            self._sizes[path] = size


class _FaultyFile(apsw.VFSFile):
    def __init__(self, disk: FaultyDisk, name: Any, flags: list[int]) -> None:
        self._disk = disk
        self._path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        super().__init__(_BASE, name, flags)
        if Path(self._path).exists():
            disk.truncated(self._path, Path(self._path).stat().st_size)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        failure = self._disk.meets(self._path, "write")
        if failure == "torn write":
            super().xWrite(data[: len(data) // 2], offset)
        if failure is not None:
            raise _error(failure)
        if not self._disk.has_room(self._path, offset + len(data)):
            raise _error("full")
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        failure = self._disk.meets(self._path, "sync")
        if failure is not None:
            raise _error("sync error")
        super().xSync(flags)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        super().xTruncate(newsize)
        self._disk.truncated(self._path, newsize)


@contextmanager
def faulty_disk(watched: Callable[[str], bool]) -> Iterator[FaultyDisk]:
    """Every file that SQLite opens meanwhile is on this disk."""
    disk = FaultyDisk("faulty", watched)
    try:
        yield disk
    finally:
        disk.heal()
        gc.collect()  # connections that a failed opening left behind are closed while the disk is there
        disk.unregister()


def of_store(path: Path) -> Callable[[str], bool]:
    """The store's own files, without the index beside it."""
    names = {str(path) + suffix for suffix in ("", "-wal", "-journal")}
    return lambda name: name in names


def of_index(path: Path) -> Callable[[str], bool]:
    return lambda name: name.startswith(f"{path}-index")


def of_folder(folder: Path) -> Callable[[str], bool]:
    return lambda name: name.startswith(str(folder))


def _error(failure: Failure) -> Exception:
    if failure == "full":
        return apsw.FullError("database or disk is full")
    error = apsw.IOError("disk I/O error")
    result = apsw.SQLITE_IOERR_FSYNC if failure == "sync error" else apsw.SQLITE_IOERR_WRITE
    setattr(error, "extendedresult", result)  # noqa: B010 (the stubs do not know it)
    return error
