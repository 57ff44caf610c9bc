"""The real clock and real chance."""

import ctypes
import os
import time
from typing import Final

import uuid_utils

SALT_BYTES: Final = 16
SALTS_AT_ONCE: Final = 256  # one system call for many salts: it would cost as much as hashing the text


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        return time.monotonic() * 1e3


class SystemIds:
    """UUIDs of version 7: they sort by time, so their index grows at one end."""

    def __init__(self) -> None:
        self._salts = b""
        self._used = 0

    def unit(self) -> str:
        return f"mem-{uuid_utils.uuid7().hex}"

    def conflict(self) -> str:
        return f"conf-{uuid_utils.uuid7().hex}"

    def compaction(self) -> str:
        return f"comp-{uuid_utils.uuid7().hex}"

    def run(self) -> str:
        return f"run-{uuid_utils.uuid7().hex}"

    def salt(self) -> bytes:
        if self._used >= len(self._salts):
            self._salts = os.urandom(SALT_BYTES * SALTS_AT_ONCE)
            self._used = 0
        salt = self._salts[self._used : self._used + SALT_BYTES]
        self._used += SALT_BYTES
        return salt


def give_back_memory() -> None:
    """What loading took and nobody needs any more goes back to the system; glibc would keep it: 176 MB at 1M units."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # other C libraries have no such thing, and no need of it
    if trim is not None:
        trim(0)
