"""Room in the write-ahead log's file, laid out ahead of what is written to it.

A commit that makes a file longer waits until the file system has written down the new length, too: 250 to 300 µs here,
against 150 to 170 where it writes over bytes that are there. So the file is kept longer than what is in it, by zeros.
SQLite reads a WAL up to the first frame without the WAL's own salt, and that is where the zeros begin.
"""

import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import apsw

FIRST_PAGES: Final = 160  # whoever makes a store, which takes 60, writes a few units and goes again needs no runway
NEAR_PAGES: Final = 500  # of the end: what 64 busy agents write while it is made longer
PAGES_AT_ONCE: Final = 1_000
PIECE: Final = bytes(256 * 1024)  # synced one by one: a commit beside it waits for one of them at most, .5 ms
FRAME_HEADER_BYTES: Final = 24
SPARE_BYTES: Final = 64 * 1024 * 1024  # a disk with less is left to what has to be written
NEVER: Final = sys.maxsize


class Runway:
    """Told of the WAL's pages after every commit, by whichever thread made it."""

    def __init__(self, writer: apsw.Connection) -> None:
        self._file = writer.filename_wal
        self._frame_bytes: int = writer.pragma("page_size") + FRAME_HEADER_BYTES
        self._lengthen_at = FIRST_PAGES
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="fieldstone-runway")

    def reached(self, pages: int) -> None:
        if pages >= self._lengthen_at:
            self._lengthen_at = NEVER  # until this time is over
            try:
                self._thread.submit(self._lengthen, pages)
            except RuntimeError:  # no thread to be had: an error here would be told of a commit that is on disk
                self._lengthen_at = pages + PAGES_AT_ONCE

    def cut(self) -> None:
        """The file has been emptied."""
        self._lengthen_at = FIRST_PAGES

    def close(self) -> None:
        self._thread.shutdown(wait=True)

    def _lengthen(self, reached: int) -> None:
        """Beside the commits, of any process: what is appended goes behind the end that the file has at that moment, so
        no frame is written over. It only saves time; a disk that does not take it tells whoever has something to say.
        """
        pages = reached
        try:
            file = os.open(self._file, os.O_WRONLY | os.O_APPEND)
            try:
                # Another process may have made it longer, or one before us that was killed.
                is_near = self._pages_of(file) - reached <= NEAR_PAGES
                if is_near and shutil.disk_usage(self._file).free >= SPARE_BYTES:
                    _append_zeros(file, PAGES_AT_ONCE * self._frame_bytes)
            finally:
                pages = self._pages_of(file)
                os.close(file)
        except OSError:
            pass
        if self._lengthen_at == NEVER:  # else it was cut meanwhile
            self._lengthen_at = pages - NEAR_PAGES if pages - reached > NEAR_PAGES else reached + PAGES_AT_ONCE

    def _pages_of(self, file: int) -> int:
        return os.fstat(file).st_size // self._frame_bytes


def _append_zeros(file: int, size_bytes: int) -> None:
    for _ in range(0, size_bytes, len(PIECE)):
        os.write(file, PIECE)
        os.fdatasync(file)
