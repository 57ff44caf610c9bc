"""The lease on a file: an advisory lock on a sidecar, which the operating system gives back when its holder dies."""

import fcntl
import os
from pathlib import Path

from msgspec import MsgspecError, json

from fieldstone.ports.lease import Holder, StoreHeld


class FileLease:
    def __init__(self, path: Path) -> None:
        self._store = path
        self._path = path.with_name(path.name + ".lock")
        self._fd: int | None = None

    def acquire(self, holder: Holder) -> None:
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            found = _read(fd)
            os.close(fd)
            raise StoreHeld(str(self._store), found) from None
        self._fd = fd
        self.announce(holder)

    def announce(self, holder: Holder) -> None:
        if self._fd is None:
            raise RuntimeError("the lease must be acquired before it can be announced")
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, json.encode(holder), 0)

    def release(self) -> None:
        if self._fd is not None:
            os.ftruncate(self._fd, 0)
            os.close(self._fd)  # closing gives the lock back; the file stays, since removing it would race the next one
            self._fd = None


def _read(fd: int) -> Holder | None:
    try:
        return json.decode(os.pread(fd, 65_536, 0), type=Holder)
    except MsgspecError:  # the holder is just writing it
        return None
