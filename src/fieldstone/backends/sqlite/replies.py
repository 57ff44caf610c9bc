"""Remembered answers of one stream."""

from collections.abc import Awaitable, Callable, Sequence

import apsw

from fieldstone.backends.sqlite.log import SQL, Span
from fieldstone.ports.replies import RememberedReply

Write = Callable[[Callable[[apsw.Connection], int]], Awaitable[int]]


class SqliteReplies:
    def __init__(self, near: apsw.Connection, span: Span, write: Write) -> None:
        self._near = near
        self._span = span
        self._write = write

    async def find(self, keys: Sequence[bytes]) -> dict[bytes, RememberedReply]:
        found: dict[bytes, RememberedReply] = {}
        for key in keys:
            for row in self._near.execute(SQL["find_reply"], (lookup(key), self._span.stream_no, key)):
                found[key] = RememberedReply(*row)
        return found

    async def forget_before(self, at_ms: int, *, limit: int) -> int:
        def forget(connection: apsw.Connection) -> int:
            connection.execute(SQL["forget_replies"], (self._span.stream_no, at_ms, limit))
            return connection.changes()

        return await self._write(forget)


def lookup(key: bytes) -> int:
    """The part of a key that is indexed: short, so that the index stays small."""
    return int.from_bytes(key[:8], "big", signed=True)
