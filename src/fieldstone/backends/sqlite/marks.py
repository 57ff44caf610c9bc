"""Marks of one stream."""

from collections.abc import Awaitable, Callable

import apsw

from fieldstone.backends.sqlite.log import SQL, Span

Write = Callable[[Callable[[apsw.Connection], int]], Awaitable[int]]


class SqliteMarks:
    """`write` carries out a write in a transaction of its own."""

    def __init__(self, near: apsw.Connection, span: Span, write: Write) -> None:
        self._near = near
        self._span = span
        self._write = write

    async def get(self, name: str) -> int:
        return self._near.execute(SQL["get_mark"], (self._span.stream_no, name)).get or 0

    async def set(self, name: str, seq: int) -> None:
        def put(connection: apsw.Connection) -> int:
            if seq:
                connection.execute(SQL["set_mark"], (self._span.stream_no, name, seq))
            else:
                connection.execute(SQL["drop_mark"], (self._span.stream_no, name))
            return 1

        await self._write(put)
