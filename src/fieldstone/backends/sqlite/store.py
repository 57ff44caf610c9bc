"""Fields in one SQLite file: log, texts and views of each in one transaction, by the file's one writer."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple, Self, TypeVar

import apsw

from fieldstone.backends.sqlite.cold import SqliteCold, SqliteColdFile
from fieldstone.backends.sqlite.cold_units import ColdUnits, packed_row
from fieldstone.backends.sqlite.cold_vectors import SqliteColdVectors
from fieldstone.backends.sqlite.connection import open_reader
from fieldstone.backends.sqlite.file import SqliteFile
from fieldstone.backends.sqlite.gaps import Table, clear_pages
from fieldstone.backends.sqlite.log import SQL, Span, SqliteContent, SqliteLog
from fieldstone.backends.sqlite.marks import SqliteMarks
from fieldstone.backends.sqlite.replies import SqliteReplies
from fieldstone.backends.sqlite.room import Room
from fieldstone.backends.sqlite.text_index import SqliteTextIndex
from fieldstone.backends.sqlite.vectors import SqliteVectors
from fieldstone.backends.sqlite.views import SqliteViews, changed_units, erase_views, write_changes
from fieldstone.ports.lease import Holder, Lease
from fieldstone.ports.log import FIELD_STREAM, GENESIS_HASH, FieldKey
from fieldstone.ports.store import Commit, FieldOpen, UnknownField
from fieldstone.ports.views import ArchiveUnits, Change

WITH_TEXT: Final = (  # the tables that hold what was said, or what was made of it
    Table("texts", ("salt", "body")),
    Table("vectors", ("seqs", "scales", "codes")),
    Table("replies", ("key", "request", "body"), other_bytes=7),
)
LEAVING_UNITS: Final = 128  # in one transaction: about .5 ms in the event loop, and the disk's time
READ_UNITS: Final = 128  # in one turn of the loop: about .4 ms

T = TypeVar("T")


def tenants_in(path: Path) -> Sequence[str]:
    """Whose fields lie in a file, also while another process holds it."""
    connection = open_reader(path)
    try:
        if not connection.table_exists(None, "streams"):  # an empty file: it becomes a store when it is first used
            return ()
        query = "SELECT DISTINCT tenant FROM streams WHERE name = ? ORDER BY tenant"
        return [tenant for (tenant,) in connection.execute(query, (FIELD_STREAM,))]
    finally:
        connection.close()


class SqliteStores:
    """The fields of a file that is open for as long as this is, whether or not any field is."""

    def __init__(self, file: SqliteFile, lease: Lease) -> None:
        self._file = file
        self._cold = SqliteColdFile(file.path)
        self._lease = lease
        self._opened: dict[FieldKey, SqliteStore] = {}
        self._opening = asyncio.Lock()
        file.hold()
        self._cold.hold()

    async def fields(self) -> Sequence[FieldKey]:
        query = "SELECT tenant, field FROM streams WHERE name = ? ORDER BY tenant, field"
        return [FieldKey(*row) for row in self._file.near.execute(query, (FIELD_STREAM,))]

    async def tenants(self) -> Sequence[str]:
        return sorted({key.tenant for key in await self.fields()})

    async def open(self, key: FieldKey, *, create: bool = True) -> "SqliteStore":
        async with self._opening:
            self._opened = {each: store for each, store in self._opened.items() if not store.closed}
            if key in self._opened:
                raise FieldOpen(f"{key.field!r} of {key.tenant!r} is open already.")
            if create and _find_stream(self._file, key) is None:
                await self._file.write(lambda writer: _create_stream(writer, key))
            self._opened[key] = SqliteStore(self._file, key, self._cold)
            return self._opened[key]

    def announce(self, holder: Holder) -> None:
        self._lease.announce(holder)

    async def close(self) -> None:
        async with self._opening:
            try:
                for store in self._opened.values():
                    await store.close()
                self._cold.release()
                await self._file.release()
            finally:
                self._lease.release()


class SqliteStore:
    """One field of a file and the cold one beside it, which it holds until it is closed.

    A field that is not there is `UnknownField`.
    """

    durable = True

    def __init__(self, file: SqliteFile, key: FieldKey, cold: SqliteColdFile) -> None:
        self.key = key
        self.closed = False
        self._file = file
        self._cold_file = cold
        self._near = file.near
        stream = _find_stream(file, key)
        if stream is None:
            raise UnknownField(_not_there(file, key))
        self.digest_key, self._head_seq = stream.digest_key, stream.head_seq
        self._span = Span(stream.number)
        self.log = SqliteLog(self._near, self._span)
        self.cold = SqliteCold(cold, self._span, self.digest_key, self._hash_at)
        self.texts = SqliteContent(self._near, self._span, self.cold)
        self.cold_units = ColdUnits(cold, self._near, self._span, self.cold.owner, self._hash_at)
        self._moving = asyncio.Lock()
        self._leaving: dict[int, bytes] = {}  # rows whose copies are on disk, and which are still in the table
        self._left: Sequence[int] = ()  # of these, with the transaction under way
        self.views = SqliteViews(self._near, self._span, self.cold_units)
        self.replies = SqliteReplies(self._near, self._span, file.write)
        self.text_index = SqliteTextIndex(file.index, stream.number, self._hash_at)
        self.marks = SqliteMarks(self._near, self._span, file.write)
        cold_vectors = SqliteColdVectors(cold, self.cold.owner)
        self.vectors = SqliteVectors(file.path, self._near, self._span, self._write_everyday, cold_vectors)
        self._room = Room()
        file.hold()
        cold.hold()
        self._holding = True

    @classmethod
    def open(cls, path: Path, key: FieldKey, *, max_bytes: int | None = None, create: bool = True) -> Self:
        """One field, and a file for it alone, which is closed with it. With `create` False no field is made."""
        file, cold = SqliteFile(path, max_bytes=max_bytes), SqliteColdFile(path)
        try:
            if create and _find_stream(file, key) is None:
                file.transact(lambda writer: _create_stream(writer, key))
            return cls(file, key, cold)
        except BaseException:  # why: whatever it was, nobody else has the files
            cold.close()
            file.close()
            raise

    @property
    def description(self) -> str:
        return f"sqlite:{self._file.path}"

    async def commit(self, commit: Commit) -> None:
        size_bytes = sum([len(entry.body) for entry in commit.entries])
        await self._file.commit(
            lambda writer: self._insert(writer, commit), lambda: self._inserted(commit), size_bytes=size_bytes
        )

    async def replace_views(self, changes: AsyncIterator[Sequence[Change]]) -> None:
        async with self._moving:
            async with self._file.rewriting() as writer:
                erase_views(writer, self._span)
                async for batch in changes:
                    write_changes(writer, self._span, batch)
            self._leaving.clear()
            self.cold_units.start_over()

    async def has_every_view(self) -> bool:
        return self.cold_units.is_whole

    async def move_units(self, *, limit: int, at_once: bool = True) -> int:
        async with self._moving:
            await self._leave_all()
            rows, head = await self._archived(limit)
            if not rows:
                await self.cold_units.tidy()
                return 0
            await self.cold_units.copy(rows, head)
            self.cold_units.expect(rows)
            self._leaving |= rows
            if at_once:
                await self._leave_all()
        return len(rows)

    async def scour(self) -> bool:
        parts = (await self.text_index.scour(), await self.cold.scour(), await self._scour_file())
        return all(parts)

    async def bytes_used(self) -> int:
        return self._file.bytes_used() + await self.cold.bytes_used()

    async def close(self) -> None:
        if self._holding:
            self._holding = False
            self._cold_file.release()
            await self._file.release()
            self.closed = True

    async def _scour_file(self) -> bool:
        file = self._file
        return await clear_pages(file.path, WITH_TEXT, write=file.write, empty_journal=file.scour)

    async def _write_everyday(self, work: Callable[[apsw.Connection], T]) -> T:
        def within_room(writer: apsw.Connection) -> T:
            with self._room.for_everyday(writer):
                done = work(writer)
            return done

        return await self._file.write(within_room)

    def _insert(self, writer: apsw.Connection, commit: Commit) -> None:
        entries, head, self._left = commit.entries, self._head_seq, ()
        # No seq comes twice: with the first and the last one right, so are those between.
        if entries and (entries[0].seq != head + 1 or entries[-1].seq != head + len(entries)):
            raise ValueError(f"entry {entries[0].seq} does not continue the log, whose head is {head}")
        if commit.makes_room or not self._room.is_bounded(writer):
            self._insert_rows(writer, commit)
            return
        with self._room.for_everyday(writer):
            self._insert_rows(writer, commit)

    async def _archived(self, limit: int) -> tuple[dict[int, bytes], int]:
        """Rows that are still to be moved, and the log's end when the last of them were read: a few in each turn. One
        that changes in between is not what was copied, and does not leave."""
        rows: dict[int, bytes] = {}
        head = last = 0
        while (wanted := min(limit - len(rows), READ_UNITS)) > 0:
            part, head = self._read_archived(last, wanted)
            rows |= part
            if len(part) < wanted:
                break
            last = max(part)
            await asyncio.sleep(0)
        return rows, head

    def _read_archived(self, after: int, limit: int) -> tuple[dict[int, bytes], int]:
        """Of one state, though another thread may be committing."""
        self._near.execute("BEGIN")
        try:
            found = self._near.execute(SQL["archived_units"], (self._span.position(after), self._span.end, limit))
            rows = {row[0]: packed_row(row) for row in found}
            head, _ = self._near.execute(SQL["read_head"], (self._span.stream_no,)).get
        finally:
            self._near.execute("END")
        return rows, head

    async def _leave_all(self) -> None:
        while self._leaving:
            await self._file.commit(
                lambda writer: self._leave(writer, LEAVING_UNITS), lambda: self._inserted(Commit()), size_bytes=0
            )
            await asyncio.sleep(0)

    def _leave(self, writer: apsw.Connection, most: int) -> None:
        part = dict(islice(self._leaving.items(), most))
        if part:
            self.cold_units.leave(writer, part)
            self._left = tuple(part)

    def _insert_rows(self, writer: apsw.Connection, commit: Commit) -> None:
        entries, base = commit.entries, self._span.base
        gone = set(commit.erased_texts)
        erased = (
            self._span.positions(gone) if gone else ""
        )  # one statement for all of them: Python's lock is let go with each
        if gone:  # first: on a full store the rest is written where they were
            writer.execute(SQL["erase_texts"], (erased,))
        if entries:
            writer.executemany(SQL["insert_entry"], [(base | each.seq, each.body, each.hash) for each in entries])
            head = entries[-1]
            writer.execute(SQL["move_head"], (head.seq, head.hash, self._span.stream_no))
        if commit.texts:
            kept = [each for each in commit.texts if each.seq not in gone] if gone else commit.texts
            writer.executemany(SQL["insert_text"], [(base | each.seq, each.salt, each.body) for each in kept])
        for text in commit.replaced_texts:
            if text.seq not in gone:
                writer.execute(SQL["replace_text"], (base | text.seq, text.salt, text.body))
        if self.cold_units.moved:
            self.cold_units.bring_back(writer, changed_units(commit.changes))
        write_changes(writer, self._span, commit.changes)
        if self._leaving:  # for each that is archived one leaves
            self._leave(writer, sum(len(each.units) for each in commit.changes if type(each) is ArchiveUnits))
        if commit.replies:
            self.replies.insert(writer, commit.replies)
        if gone:
            writer.execute(SQL["drop_hints"], (erased,))

    def _inserted(self, commit: Commit) -> None:
        if commit.entries:
            self._head_seq = commit.entries[-1].seq
        for seq in self._left:
            del self._leaving[seq]
        self._left = ()
        if commit.replies:
            self.replies.inserted(commit.replies)

    def _hash_at(self, seq: int) -> bytes | None:
        position = self._span.position(seq)
        found: bytes | None = self._near.execute("SELECT hash FROM log WHERE position = ?", (position,)).get
        return found


class _Stream(NamedTuple):
    number: int
    digest_key: bytes
    head_seq: int


def _find_stream(file: SqliteFile, key: FieldKey) -> _Stream | None:
    found: tuple[int, bytes, int, bytes] | None = file.near.execute(SQL["find_stream"], (*key, FIELD_STREAM)).get
    return None if found is None else _Stream(*found[:3])


def _create_stream(writer: apsw.Connection, key: FieldKey) -> int:
    digest_key = secrets.token_bytes(32)
    number: int = writer.execute(SQL["create_stream"], (*key, FIELD_STREAM, digest_key, GENESIS_HASH)).get
    return number


def _not_there(file: SqliteFile, key: FieldKey) -> str:
    known = [name for (name,) in file.near.execute("SELECT field FROM streams WHERE tenant = ?", (key.tenant,))]
    if not known:
        return f"{file.path} holds no tenant {key.tenant!r}."
    return f"{file.path} holds no field {key.field!r}, but: {', '.join(known)}."
