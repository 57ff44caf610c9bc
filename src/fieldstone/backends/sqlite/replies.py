"""Remembered answers of one stream.

Rows are appended in the order of time and dropped from the old end. Messages come in no order, so an index over them
would touch another page for nearly every one: it cost as much as all other rows of a RECORD. Which message has which
row is therefore kept in memory, 16 bytes each, and read back when the store is opened.
"""

import asyncio
import functools
import itertools
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import apsw
import numpy as np
from numpy.typing import NDArray

from fieldstone.backends.sqlite.log import SQL, Span
from fieldstone.ports.replies import RememberedReply

READ_AT_ONCE: Final = 256  # about .4 ms in the event loop, and as long in the thread: more keeps others from Python
RECENT_MOST: Final = 50_000  # a dictionary's entry costs 100 bytes: from here on they are folded into the arrays

Write = Callable[[Callable[[apsw.Connection], int]], Awaitable[int]]


class SqliteReplies:
    def __init__(self, near: apsw.Connection, span: Span, write: Write) -> None:
        self._near = near
        self._span = span
        self._write = write
        self._places = _Places([(row[0], row[1]) for row in near.execute(SQL["all_replies"], (span.base, span.end))])
        self._last: int = near.execute(SQL["last_reply"], (span.base, span.end)).get

    async def find(self, keys: Sequence[bytes]) -> dict[bytes, RememberedReply]:
        found: dict[bytes, RememberedReply] = {}
        for key, numbers in self._places.of(keys).items():
            for number in numbers:
                for row in self._near.execute(SQL["get_reply"], (self._span.position(number), key)):
                    found[key] = RememberedReply(*row)
        return found

    async def forget_before(self, at_ms: int, *, limit: int) -> int:
        def forget(connection: apsw.Connection) -> int:
            connection.execute(SQL["forget_replies"], (self._span.base, self._span.end, at_ms, limit))
            return connection.changes()

        return await self._write(forget)

    async def forget_where(self, holds: Callable[[Sequence[bytes]], Sequence[bool]]) -> int:
        forgotten, after = 0, self._span.base
        while rows := self._read_after(after):
            after = rows[-1][0]
            told = await asyncio.to_thread(holds, [body for _, body in rows])
            found = [(position,) for (position, _), is_so in zip(rows, told, strict=True) if is_so]
            if found:
                forgotten += await self._write(functools.partial(_drop, found))
        return forgotten

    def _read_after(self, position: int) -> list[tuple[int, bytes]]:
        bounds = (position, self._span.end, READ_AT_ONCE)
        return [(position, body) for position, body in self._near.execute(SQL["read_replies"], bounds)]

    def insert(self, writer: apsw.Connection, replies: Sequence[RememberedReply]) -> None:
        """Inside the store's transaction; `inserted` follows when it is on disk."""
        positions = range(self._span.position(self._last + 1), self._span.end)
        rows = [
            (position, reply.key, reply.request, reply.at_ms, reply.body)
            for position, reply in zip(positions, replies, strict=False)
        ]
        writer.executemany(SQL["insert_reply"], rows)

    def inserted(self, replies: Sequence[RememberedReply]) -> None:
        self._places.add([reply.key for reply in replies], first=self._last + 1)
        self._last += len(replies)


def _drop(positions: Sequence[tuple[int]], connection: apsw.Connection) -> int:
    connection.executemany(SQL["drop_reply"], positions)
    return len(positions)


class _Places:
    """Message → row. Those that were read back or are older lie in sorted arrays, the latest ones in a dictionary."""

    def __init__(self, stored: Sequence[tuple[int, bytes]]) -> None:
        self._recent: dict[bytes, int] = {}
        numbers = np.asarray([number for number, _ in stored], np.int64)
        shorts = np.asarray([_short(key) for _, key in stored], np.int64)
        self._shorts, self._numbers = _sorted(shorts, numbers)

    def add(self, keys: Sequence[bytes], *, first: int) -> None:
        self._recent.update(zip(keys, itertools.count(first), strict=False))
        if len(self._recent) >= RECENT_MOST:
            shorts = np.fromiter(map(_short, self._recent), np.int64, len(self._recent))
            numbers = np.fromiter(self._recent.values(), np.int64, len(self._recent))
            self._shorts, self._numbers = _sorted(
                np.concatenate([self._shorts, shorts]), np.concatenate([self._numbers, numbers])
            )
            self._recent = {}

    def of(self, keys: Sequence[bytes]) -> dict[bytes, list[int]]:
        """The rows that may hold a key, oldest first; the row's own key decides. Nearly all messages are new."""
        found: dict[bytes, list[int]] = {}
        if len(self._shorts):
            shorts = np.fromiter(map(_short, keys), np.int64, len(keys))
            firsts, ends = np.searchsorted(self._shorts, shorts), np.searchsorted(self._shorts, shorts, side="right")
            for at in np.flatnonzero(ends > firsts).tolist():
                found[keys[at]] = self._numbers[firsts[at] : ends[at]].tolist()
        for key in self._recent.keys() & set(keys):
            found.setdefault(key, []).append(self._recent[key])
        return found


def _sorted(shorts: NDArray[np.int64], numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    order = np.argsort(shorts, kind="stable")  # stable: of the same message the later row stays the later one
    return shorts[order], numbers[order]


def _short(key: bytes) -> int:
    return int.from_bytes(key[:8], "big", signed=True)
