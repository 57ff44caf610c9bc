"""What `secure_delete` leaves behind, and how it goes.

SQLite overwrites a row that is deleted. But where rows are deleted it also moves their neighbours from page to page,
and does not clear the room that these leave in the middle of a page: a copy stays there and outlives its row. Of texts
that were erased in any order, one in some 1,500 could still be read in the file.

A row that is made as large as all the room on its page, and is put back as it was, leaves zeros there.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import apsw

from fieldstone.backends.sqlite.connection import open_reader

ATTEMPTS: Final = 5  # one is enough, but for pages that change meanwhile
CLEARED_GAPS: Final = 8  # in one transaction of about 1 ms
READ_PAGES: Final = 128  # by the thread at once, about .5 ms: in longer stretches it keeps the event loop from Python
INTERIOR: Final = 5  # the types of a table's pages
LEAF: Final = 13
INTERIOR_HEADER_BYTES: Final = 12
LEAF_HEADER_BYTES: Final = 8
# A row alone on its page can take all room but these first bytes. They never hold more than the beginning of a row: its
# size, its position and a few bytes of its first column, which is no text.
BEGINNING_BYTES: Final = 28
PAGE_BYTES: Final = 4_096  # SQLite's default, and so ours

Write = Callable[[Callable[[apsw.Connection], None]], Awaitable[None]]


class Table(NamedTuple):
    """One with a `position` as its primary key, then columns of bytes, and others that take so many more."""

    name: str
    columns: tuple[str, ...]
    other_bytes: int = 0


class Gap(NamedTuple):
    """The unused middle of a page that is not clear: a row of this page, and how large it would be with all room."""

    table: Table
    row: int
    room: int


async def clear_pages(
    path: Path, tables: Sequence[Table], *, write: Write, empty_journal: Callable[[], Awaitable[bool]]
) -> bool:
    """Leave nothing of what was deleted until now. False where that cannot be: a reader keeps an older state.

    Deleting goes on meanwhile and makes new gaps, which are not waited for: what was deleted before is not in them.
    """
    rows: set[tuple[str, int]] | None = None
    for _ in range(ATTEMPTS):
        if not await empty_journal():
            return False
        found = await _find_gaps(path, tables)
        left = [gap for gap in found if rows is None or (gap.table.name, gap.row) in rows]
        if not left:
            return True
        rows = {(gap.table.name, gap.row) for gap in left}
        for first in range(0, len(left), CLEARED_GAPS):
            await write(partial(_clear, left[first : first + CLEARED_GAPS]))
    return False


async def _find_gaps(path: Path, tables: Sequence[Table]) -> list[Gap]:
    """Those of the file as it is; what only the journal has yet is not seen."""
    found: list[Gap] = []
    for table in tables:
        walk = await asyncio.to_thread(_begin_walk, path, table)
        while walk.waiting:
            found += await asyncio.to_thread(_walk_on, path, table, walk)
    return found


class _Walk(NamedTuple):
    """Through a table: the pages that are still to be read, and those that were."""

    page_bytes: int
    waiting: list[int]
    seen: set[int]


def _begin_walk(path: Path, table: Table) -> _Walk:
    reader = open_reader(path)
    try:
        return _Walk(reader.pragma("page_size"), [_root(reader, table)], {0})
    finally:
        reader.close()


def _walk_on(path: Path, table: Table, walk: _Walk) -> list[Gap]:
    """A stretch of it has the file open for itself: whoever waits for it may go away, and leaves nothing open."""
    # By SQLite's own means: closing a file that is opened otherwise takes away the locks that SQLite has on it. Here it
    # follows no symbolic link: its connections do so before they come here.
    file = apsw.VFSFile("", str(path.resolve()), [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY, 0])
    try:
        return [gap for page in _next_leaves(file, walk) for gap in _gap(table, page)]
    finally:
        file.xClose()


def _clear(gaps: Sequence[Gap], writer: apsw.Connection) -> None:
    """Let a row of the page take all its room, and put it back as it was."""
    for table, row, room in gaps:
        columns, values = ", ".join(table.columns), ", ".join("?" * len(table.columns))
        held: Any = writer.execute(f"SELECT {columns} FROM {table.name} WHERE position = ?", (row,)).fetchone()
        if held is not None:
            blank = (*[b""] * (len(table.columns) - 1), bytes(_last_column_bytes(table, row, room)))
            update = f"UPDATE {table.name} SET ({columns}) = ({values}) WHERE position = ?"
            writer.execute(update, (*blank, row))
            writer.execute(update, (*held, row))


def _root(connection: apsw.Connection, table: Table) -> int:
    page: int = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table.name,)).get
    return page


# --- SQLite's file format --------------------------------------------------------------------------------------------


def _next_leaves(file: apsw.VFSFile, walk: _Walk) -> Iterator[bytes]:
    """A page that is being written over meanwhile may be anything: what is no page of a table is passed over."""
    size, waiting, seen = walk
    for _ in range(READ_PAGES):
        if not waiting:
            return
        number = waiting.pop()
        page = b"" if number in seen else file.xRead(size, (number - 1) * size)
        seen.add(number)
        if len(page) == size and page[0] == LEAF:
            yield page
        elif len(page) == size and page[0] == INTERIOR:
            waiting.append(int.from_bytes(page[8:12]))
            waiting.extend(int.from_bytes(page[at : at + 4]) for at in _cells(page, INTERIOR_HEADER_BYTES))


def _gap(table: Table, page: bytes) -> Iterator[Gap]:
    count, end = int.from_bytes(page[3:5]), int.from_bytes(page[5:7])
    begin = LEAF_HEADER_BYTES + 2 * count
    if count and not _is_clear(page[max(begin, BEGINNING_BYTES) : end], len(page)):
        sizes = [_size_and_row(page, cell) for cell in _cells(page, LEAF_HEADER_BYTES)]
        size, row = min(sizes)
        yield Gap(table, row, len(page) - begin - sum(taken for taken, _ in sizes) + size)


def _is_clear(gap: bytes, page_bytes: int) -> bool:
    """It may begin with pointers to cells that are gone. These are small numbers, as no two letters are."""
    left = gap.rstrip(b"\0")
    return all(int.from_bytes(left[at : at + 2]) <= page_bytes for at in range(0, len(left), 2))


def _last_column_bytes(table: Table, row: int, room: int) -> int:
    """How long it has to be for the row to take all room, with the other columns of bytes empty."""
    before = 2 + len(table.columns) - 1 + table.other_bytes
    size = room
    while size > 0:
        payload = before + _varint_bytes(2 * size + 12) + size
        if payload <= _most_local(PAGE_BYTES) and _varint_bytes(payload) + _varint_bytes(row) + payload <= room:
            break
        size -= 1
    return size


def _cells(page: bytes, header: int) -> list[int]:
    """Where the page's cells begin."""
    count = int.from_bytes(page[3:5])
    pointers = page[header : header + 2 * count]
    return [int.from_bytes(pointers[at : at + 2]) for at in range(0, len(pointers), 2)]


def _size_and_row(page: bytes, cell: int) -> tuple[int, int]:
    """What the cell takes of the page. A large row has most of itself on other pages, and where in four bytes."""
    payload, after = _varint(page, cell)
    row, begin = _varint(page, after)
    local = payload
    if payload > _most_local(len(page)):
        least = (len(page) - 12) * 32 // 255 - 23
        local = least + (payload - least) % (len(page) - 4)
        local = (local if local <= _most_local(len(page)) else least) + 4
    return begin - cell + local, row


def _most_local(page_bytes: int) -> int:
    return page_bytes - 35


def _varint(page: bytes, at: int) -> tuple[int, int]:
    """Seven bits a byte, the last byte without the eighth; our numbers are below 2 to the 56th."""
    value = 0
    for end in range(at, min(at + 9, len(page))):
        value = value << 7 | page[end] & 0x7F
        if page[end] < 0x80:
            return value, end + 1
    return value, len(page)


def _varint_bytes(value: int) -> int:
    return max(1, -(-value.bit_length() // 7))
