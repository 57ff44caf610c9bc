"""The planes' tables within one transaction: rows to statements, and back."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, starmap
from typing import Any, Final, NamedTuple

import apsw
from msgspec import Struct, json, msgpack
from msgspec.structs import replace

from fieldstone.backends.sqlite.gaps import Table
from fieldstone.core.streams import MAX_SEQ
from fieldstone.ports.planes import (
    Appended,
    EventBlock,
    EventRow,
    MessageRow,
    RunRow,
    SnapshotRow,
    SnapshotSeal,
    StreamRow,
    ThreadCounts,
    ThreadRow,
    in_range,
)

PLACE_BITS: Final = MAX_SEQ.bit_length()
# One statement for many rows: each step of a statement lets other threads run, and may then have to wait for its turn.
INSERTED_TOGETHER: Final = (100, 10, 1)
BLOCK_EVENTS: Final = 100  # a hundred of the largest events are less than half of what SQLite lets a value have
KEY_BYTES: Final = 16
ALL: Final = -1  # SQLite's word for no limit
AT_MS_BYTES: Final = 7  # of a time after 1970's first weeks, with its type

WITH_TEXT: Final = (  # the tables that hold what was said
    Table("events", ("body",), other_bytes=AT_MS_BYTES),
    Table("snapshots", ("about", "state")),
    Table("pieces", ("body",)),
    Table("bodies", ("body",)),
)

_STREAM: Final = ", ".join(StreamRow._fields)
_THREAD: Final = ", ".join(ThreadRow._fields)
_MESSAGE: Final = ", ".join(MessageRow._fields)
_RUN: Final = ", ".join(f"runs.{name}" if name != "thread" else "threads.thread" for name in RunRow._fields)
_RUNS: Final = f"SELECT {_RUN} FROM runs JOIN threads USING (thread_no)"

_THREAD_COUNTS: Final = (
    "SELECT count(*), count(stream_no), coalesce(sum("
    f"(SELECT count(*) FROM snapshots WHERE position BETWEEN stream_no << {PLACE_BITS} "
    f"AND stream_no << {PLACE_BITS} | {MAX_SEQ})), 0) "
    "FROM runs LEFT JOIN streams USING (scope_no, stream) WHERE thread_no = ?"
)
_BLOCK: Final = (
    "SELECT CAST(json_group_array(at_ms) AS BLOB), CAST('[' || group_concat(body) || ']' AS BLOB) "
    "FROM (SELECT at_ms, body FROM events WHERE position BETWEEN ? AND ? ORDER BY position)"
)

_PUT_THREAD: Final = (
    f"INSERT INTO threads (scope_no, {_THREAD}) VALUES (?, {', '.join('?' * len(ThreadRow._fields))}) "
    "ON CONFLICT (scope_no, thread) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in ThreadRow._fields[1:])
)
_RUN_COLUMNS: Final = tuple(name for name in RunRow._fields if name != "thread")
# A run keeps its thread, its place and its stream: where they differ nothing is changed, and the caller is told.
_PUT_RUN: Final = (
    f"INSERT INTO runs (scope_no, thread_no, {', '.join(_RUN_COLUMNS)}) "
    f"VALUES (?, ?, {', '.join('?' * len(_RUN_COLUMNS))}) ON CONFLICT (scope_no, id) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in _RUN_COLUMNS if name not in ("id", "stream", "place"))
    + " WHERE thread_no = excluded.thread_no AND place = excluded.place AND stream = excluded.stream"
)
_PUT_MESSAGE: Final = (
    f"INSERT INTO messages (thread_no, {_MESSAGE}) VALUES (?, {', '.join('?' * len(MessageRow._fields))}) "
    "ON CONFLICT (thread_no, id) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in MessageRow._fields if name not in ("id", "place"))
    + " WHERE place = excluded.place"
)


class Cleared(NamedTuple):
    """How far a stream's rows are deleted, beside what the port knows of it."""

    stream_no: int
    head: int
    floor: int
    cleared: int


class _About(Struct, array_like=True, frozen=True, gc=False):
    """What lies beside a snapshot's state. `pieces` are the positions of what follows it; `size` is that of all."""

    created_ms: int
    state_version: int
    checksum: bytes
    size: int = 0
    pieces: tuple[int, ...] = ()

    def seal(self, last_seq: int) -> SnapshotSeal:
        return SnapshotSeal(last_seq, self.created_ms, self.state_version, self.checksum)


_ABOUTS: Final = msgpack.Decoder(_About)


class SqliteReadTables:
    """`scope_no` None: a scope in which nothing was ever written."""

    def __init__(self, connection: apsw.Connection, scope_no: int | None) -> None:
        self._connection = connection
        self._scope_no = scope_no

    # --- streams -----------------------------------------------------------------------------------------------------

    def stream(self, stream: str) -> StreamRow | None:
        query = f"SELECT {_STREAM} FROM streams WHERE scope_no = ? AND stream = ?"
        row: Any = self._one(query, self._scope_no, stream)
        return None if row is None else StreamRow(*row)

    def streams(self, *, after: str = "", limit: int) -> list[StreamRow]:
        query = f"SELECT {_STREAM} FROM streams WHERE scope_no = ? AND stream > ? ORDER BY stream LIMIT ?"
        return list(starmap(StreamRow, self._all(query, self._scope_no, after, limit)))

    def events(self, stream: str, *, after: int, limit: int, until: int | None = None) -> list[EventRow]:
        held = self._stream(stream)
        seqs = _in_sight(held, after, limit, until)
        if held is None or not seqs:
            return []
        query = f"SELECT position & {MAX_SEQ}, at_ms, body FROM events WHERE position BETWEEN ? AND ? ORDER BY position"
        base = held.stream_no << PLACE_BITS
        return list(starmap(EventRow, self._all(query, base | seqs[0], base | seqs[-1])))

    def event_blocks(self, stream: str, *, after: int, limit: int, until: int | None = None) -> list[EventBlock]:
        held = self._stream(stream)
        seqs = _in_sight(held, after, limit, until)
        base = 0 if held is None else held.stream_no << PLACE_BITS
        blocks = (seqs[at : at + BLOCK_EVENTS] for at in range(0, len(seqs), BLOCK_EVENTS))
        return [EventBlock(each, *self._one(_BLOCK, base | each[0], base | each[-1])) for each in blocks]

    def truncated(self, *, limit: int) -> list[str]:
        query = "SELECT stream FROM streams WHERE scope_no = ? AND cleared < floor ORDER BY stream LIMIT ?"
        return [stream for (stream,) in self._all(query, self._scope_no, limit)]

    def snapshot(self, stream: str) -> SnapshotRow | None:
        return next(self._snapshots(stream, limit=1), None)

    def snapshots(self, stream: str) -> list[SnapshotRow]:
        return list(self._snapshots(stream, limit=ALL))

    def seals(self, stream: str) -> list[SnapshotSeal]:
        held = self._stream(stream)
        base = 0 if held is None else held.stream_no << PLACE_BITS
        query = (
            f"SELECT position & {MAX_SEQ}, about FROM snapshots WHERE position BETWEEN ? AND ? ORDER BY position DESC"
        )
        rows = self._all(query, base, base | MAX_SEQ) if base else []
        return [_ABOUTS.decode(about).seal(last_seq) for last_seq, about in rows]

    def appended(self, stream: str, key: str) -> Appended | None:
        query = (
            "SELECT digest, first, last FROM appends JOIN streams USING (stream_no) "
            "WHERE scope_no = ? AND stream = ? AND key = ?"
        )
        row: Any = self._one(query, self._scope_no, stream, _digest(key))
        return None if row is None else Appended(*row)

    def readers(self, stream: str) -> dict[str, int]:
        query = (
            "SELECT name, seq FROM readers JOIN streams USING (stream_no) "
            "WHERE scope_no = ? AND stream = ? ORDER BY name"
        )
        return dict(self._all(query, self._scope_no, stream))

    def streams_with_reader(self, prefix: str) -> list[str]:
        query = (
            "SELECT DISTINCT stream FROM readers JOIN streams USING (stream_no) "
            "WHERE scope_no = ? AND substr(name, 1, length(?2)) = ?2 ORDER BY stream"
        )
        return [stream for (stream,) in self._all(query, self._scope_no, prefix)]

    # --- runs --------------------------------------------------------------------------------------------------------

    def run(self, run_id: str) -> RunRow | None:
        row: Any = self._one(f"{_RUNS} WHERE runs.scope_no = ? AND id = ?", self._scope_no, run_id)
        return None if row is None else RunRow(*row)

    def run_of_stream(self, stream: str) -> RunRow | None:
        row: Any = self._one(f"{_RUNS} WHERE runs.scope_no = ? AND stream = ?", self._scope_no, stream)
        return None if row is None else RunRow(*row)

    def runs(self, thread: str, *, before_place: int | None = None, limit: int) -> list[RunRow]:
        query = f"{_RUNS} WHERE thread_no = ? AND place < ? ORDER BY place DESC LIMIT ?"
        before = MAX_SEQ + 1 if before_place is None else before_place
        return list(starmap(RunRow, self._all(query, self._thread_no(thread), before, limit)))

    def runs_forked_at(self, thread: str, message: str | None) -> list[RunRow]:
        query = f"{_RUNS} WHERE thread_no = ? AND fork_from IS ? ORDER BY place"
        return list(starmap(RunRow, self._all(query, self._thread_no(thread), message)))

    def open_runs(self, *, inactive_since_ms: int | None = None) -> list[RunRow]:
        query = (
            f"{_RUNS} WHERE runs.scope_no = ? AND status IN ('created', 'streaming') AND runs.active_ms <= ? "
            "ORDER BY runs.active_ms, id"
        )
        since = 2**62 if inactive_since_ms is None else inactive_since_ms
        return list(starmap(RunRow, self._all(query, self._scope_no, since)))

    # --- threads and messages ----------------------------------------------------------------------------------------

    def thread(self, thread: str) -> ThreadRow | None:
        row: Any = self._one(f"SELECT {_THREAD} FROM threads WHERE scope_no = ? AND thread = ?", self._scope_no, thread)
        return None if row is None else ThreadRow(*row)

    def thread_counts(self, thread: str) -> ThreadCounts:
        row: Any = self._one(_THREAD_COUNTS, self._thread_no(thread))
        return ThreadCounts(*row)

    def threads(self, *, after: str = "", limit: int) -> list[ThreadRow]:
        query = f"SELECT {_THREAD} FROM threads WHERE scope_no = ? AND thread > ? ORDER BY thread LIMIT ?"
        return list(starmap(ThreadRow, self._all(query, self._scope_no, after, limit)))

    def message(self, thread: str, message_id: str) -> MessageRow | None:
        found = self._messages("id = ?", thread, message_id)
        return found[0] if found else None

    def children(self, thread: str, parent: str | None, *, limit: int | None = None) -> list[MessageRow]:
        most = ALL if limit is None else limit
        return self._messages("parent IS ? ORDER BY stands DESC, place DESC LIMIT ?", thread, parent, most)

    def messages(self, thread: str, *, after_place: int, limit: int) -> list[MessageRow]:
        return self._messages("place > ? ORDER BY place LIMIT ?", thread, after_place, limit)

    def messages_of_run(self, run_id: str) -> list[MessageRow]:
        run = self.run(run_id)
        return [] if run is None else self._messages("run = ? ORDER BY place", run.thread, run_id)

    def bodies(self, thread: str, places: Sequence[int]) -> dict[int, bytes]:
        thread_no = self._thread_no(thread)
        within = [place for place in places if 0 < place <= MAX_SEQ]  # others would be the places of another thread
        if thread_no is None or not within:
            return {}
        base = thread_no << PLACE_BITS
        query = (
            f"SELECT position & {MAX_SEQ}, body FROM bodies "
            "WHERE position IN (SELECT ? | value FROM json_each(?)) ORDER BY position"
        )
        return dict(self._all(query, base, json.encode(within).decode()))

    # --- how they are read -------------------------------------------------------------------------------------------

    def _one(self, query: str, *values: object) -> Any:
        return self._connection.execute(query, values).fetchone()

    def _all(self, query: str, *values: object) -> list[Any]:
        """All at once: a statement that waits for its end would keep the state alive."""
        return self._connection.execute(query, values).fetchall()

    def _stream(self, stream: str) -> Cleared | None:
        query = "SELECT stream_no, head, floor, cleared FROM streams WHERE scope_no = ? AND stream = ?"
        row: Any = self._one(query, self._scope_no, stream)
        return None if row is None else Cleared(*row)

    def _thread_no(self, thread: str) -> int | None:
        query = "SELECT thread_no FROM threads WHERE scope_no = ? AND thread = ?"
        row: tuple[int] | None = self._one(query, self._scope_no, thread)
        return None if row is None else row[0]

    def _snapshots(self, stream: str, *, limit: int) -> Iterator[SnapshotRow]:
        held = self._stream(stream)
        if held is not None:
            base = held.stream_no << PLACE_BITS
            query = (
                f"SELECT position & {MAX_SEQ}, about, state FROM snapshots WHERE position BETWEEN ? AND ? "
                "ORDER BY position DESC LIMIT ?"
            )
            for last_seq, encoded, state in self._all(query, base, base | MAX_SEQ, limit):
                about = _ABOUTS.decode(encoded)
                pieces = [self._one("SELECT body FROM pieces WHERE position = ?", each)[0] for each in about.pieces]
                yield SnapshotRow(stream, *about.seal(last_seq), b"".join([state, *pieces]))

    def _messages(self, which: str, thread: str, *values: object) -> list[MessageRow]:
        query = f"SELECT {_MESSAGE} FROM messages WHERE thread_no = ? AND {which}"
        rows = self._all(query, self._thread_no(thread), *values)
        return [MessageRow(*row)._replace(stands=bool(row[-1])) for row in rows]


class SqliteTables(SqliteReadTables):
    # --- streams -----------------------------------------------------------------------------------------------------

    def put_stream(self, row: StreamRow) -> None:
        held = self._stream(row.stream)
        head, floor = (0, 0) if held is None else (held.head, held.floor)
        if row.head != head:
            raise ValueError(f"the head of {row.stream!r} is {head} and moves with its events, not to {row.head}")
        if not floor <= row.floor <= head:
            raise ValueError(f"the floor of {row.stream!r} goes from {floor} up to {head}, not to {row.floor}")
        told = (row.floor, row.held_from, row.held_ms, row.active_ms)
        if held is None:
            insert = (
                "INSERT INTO streams (floor, held_from, held_ms, active_ms, scope_no, stream) VALUES (?, ?, ?, ?, ?, ?)"
            )
            self._do(insert, *told, self._scope_no, row.stream)
        else:
            update = "UPDATE streams SET floor = ?, held_from = ?, held_ms = ?, active_ms = ? WHERE stream_no = ?"
            self._do(update, *told, held.stream_no)

    def put_events(self, stream: str, rows: Sequence[EventRow]) -> None:
        held = self._stream(stream)
        if held is None or any(row.seq != seq for seq, row in enumerate(rows, held.head + 1)):
            raise ValueError(f"the events do not continue {stream!r}: {held}")
        head = held.head + len(rows)
        if head > MAX_SEQ:
            raise ValueError(f"{stream!r} has all the events that a stream can have")
        base, done = held.stream_no << PLACE_BITS, 0
        for size in INSERTED_TOGETHER:
            while len(rows) - done >= size:
                values = chain.from_iterable((base | seq, *rest) for seq, *rest in rows[done : done + size])
                self._do(_insert_events(size), *values)
                done += size
        self._do("UPDATE streams SET head = ? WHERE stream_no = ?", head, held.stream_no)

    def replace_events(self, stream: str, rows: Sequence[EventRow]) -> None:
        held = self._stream(stream)
        for row in rows:
            if held is None or not held.floor < row.seq <= held.head:
                raise ValueError(f"{stream!r} has no event {row.seq}")
            position = held.stream_no << PLACE_BITS | row.seq
            self._do("UPDATE events SET at_ms = ?, body = ? WHERE position = ?", row.at_ms, row.body, position)

    def delete_events(self, stream: str, *, limit: int) -> int:
        held = self._stream(stream)
        if held is None or held.cleared == held.floor:
            return 0
        base, last = held.stream_no << PLACE_BITS, min(held.floor, held.cleared + limit)
        delete = "DELETE FROM events WHERE position BETWEEN ? AND ?"
        gone = self._do(delete, base | held.cleared + 1, base | last)
        self._do("UPDATE streams SET cleared = ? WHERE stream_no = ?", last, held.stream_no)
        return gone

    def put_snapshot(self, row: SnapshotRow) -> None:
        position = self._known(row.stream) << PLACE_BITS | in_range(row.last_seq)
        self._drop_pieces("position = ?", position)
        about = msgpack.encode(_About(row.created_ms, row.state_version, row.checksum, len(row.state)))
        insert = "INSERT OR REPLACE INTO snapshots (position, about, state) VALUES (?, ?, ?)"
        self._do(insert, position, about, row.state)

    def grow_snapshot(self, stream: str, last_seq: int, more: bytes, *, at: int) -> bool:
        position = self._known(stream) << PLACE_BITS | in_range(last_seq)
        about = self._about(position)
        if about is None or about.size != at:
            return False
        self._do("INSERT INTO pieces (position, body) SELECT coalesce(max(position), 0) + 1, ? FROM pieces", more)
        pieces = (*about.pieces, self._connection.last_insert_rowid())
        self._put_about(position, replace(about, size=at + len(more), pieces=pieces))
        return True

    def seal_snapshot(self, stream: str, seal: SnapshotSeal) -> bool:
        position = self._known(stream) << PLACE_BITS | in_range(seal.last_seq)
        about = self._about(position)
        if about is not None:
            self._put_about(position, _About(*seal[1:], about.size, about.pieces))
        return about is not None

    def drop_snapshots(self, stream: str, *, but: int | None = None) -> int:
        held = self._stream(stream)
        if held is None:
            return 0
        base = held.stream_no << PLACE_BITS
        which = "position BETWEEN ? AND ? AND position IS NOT ?"
        values = (base, base | MAX_SEQ, None if but is None else base | but)
        self._drop_pieces(which, *values)
        return self._do(f"DELETE FROM snapshots WHERE {which}", *values)

    def erode_snapshots(self, stream: str) -> bool:
        held = self._stream(stream)
        if held is None:
            return False
        base = held.stream_no << PLACE_BITS
        query = "SELECT position, about FROM snapshots WHERE position >= ? AND position < ? ORDER BY position LIMIT 1"
        oldest: Any = self._one(query, base, base | held.floor)
        if oldest is None:
            return False
        position, about = oldest[0], _ABOUTS.decode(oldest[1])
        if about.pieces:
            self._do("DELETE FROM pieces WHERE position = ?", about.pieces[-1])
            self._put_about(position, replace(about, pieces=about.pieces[:-1]))
        else:
            self._do("DELETE FROM snapshots WHERE position = ?", position)
        return True

    def put_appended(self, stream: str, key: str, appended: Appended) -> None:
        insert = "INSERT OR REPLACE INTO appends (stream_no, key, digest, first, last) VALUES (?, ?, ?, ?, ?)"
        self._do(insert, self._known(stream), _digest(key), *appended)

    def drop_appended(self, stream: str, *, limit: int) -> int:
        held = self._stream(stream)
        if held is None:
            return 0
        delete = (
            "DELETE FROM appends WHERE stream_no = ?1 "
            "AND key IN (SELECT key FROM appends WHERE stream_no = ?1 ORDER BY key LIMIT ?2)"
        )
        return self._do(delete, held.stream_no, limit)

    def put_reader(self, stream: str, name: str, seq: int) -> None:
        insert = "INSERT OR REPLACE INTO readers (stream_no, name, seq) VALUES (?, ?, ?)"
        self._do(insert, self._known(stream), name, seq)

    def drop_reader(self, stream: str, name: str) -> bool:
        held = self._stream(stream)
        delete = "DELETE FROM readers WHERE stream_no = ? AND name = ?"
        return held is not None and self._do(delete, held.stream_no, name) > 0

    def rename_stream(self, stream: str, name: str) -> None:
        self._do("UPDATE streams SET stream = ? WHERE stream_no = ?", name, self._known(stream))
        self._do("UPDATE runs SET stream = ? WHERE scope_no = ? AND stream = ?", name, self._scope_no, stream)

    # --- threads -----------------------------------------------------------------------------------------------------

    def rename_thread(self, thread: str, name: str) -> None:
        self._do("UPDATE threads SET thread = ? WHERE thread_no = ?", name, self._known_thread(thread))

    def put_run(self, row: RunRow) -> None:
        values = [getattr(row, name) for name in _RUN_COLUMNS]
        if self._do(_PUT_RUN, self._scope_no, self._known_thread(row.thread), *values) == 0:
            raise ValueError(f"{row.id!r} keeps its thread, its place and its stream")

    def put_thread(self, row: ThreadRow) -> None:
        self._do(_PUT_THREAD, self._scope_no, *row)

    def put_messages(self, thread: str, rows: Sequence[MessageRow]) -> None:
        thread_no = self._known_thread(thread)
        for row in rows:
            in_range(row.place)
            if self._do(_PUT_MESSAGE, thread_no, *row) == 0:
                raise ValueError(f"a place has one message, for ever: {row.id!r} cannot have {row.place}")

    def put_bodies(self, thread: str, bodies: Mapping[int, bytes]) -> None:
        thread_no = self._known_thread(thread)
        base = thread_no << PLACE_BITS
        for place, body in bodies.items():
            if self._one("SELECT 1 FROM messages WHERE thread_no = ? AND place = ?", thread_no, place) is None:
                raise ValueError(f"{thread!r} has no message at place {place}")
            self._do("INSERT OR REPLACE INTO bodies (position, body) VALUES (?, ?)", base | place, body)

    def restand(self, run_id: str, stands: bool) -> None:
        run = self.run(run_id)
        if run is not None:
            update = "UPDATE messages SET stands = ? WHERE thread_no = ? AND run = ? AND stands != ?1"
            self._do(update, stands, self._thread_no(run.thread), run_id)

    def drop_thread(self, thread: str, *, limit: int) -> int:
        thread_no = self._thread_no(thread)
        if thread_no is None:
            return 0
        base = thread_no << PLACE_BITS
        places = self._places("messages", thread_no, limit)
        if places:
            self._do("DELETE FROM bodies WHERE position BETWEEN ? AND ?", base, base | places[-1])
            self._do("DELETE FROM messages WHERE thread_no = ? AND place <= ?", thread_no, places[-1])
        runs = self._places("runs", thread_no, limit - len(places))
        if runs:
            self._do("DELETE FROM runs WHERE thread_no = ? AND place <= ?", thread_no, runs[-1])
        return len(places) + len(runs)

    # --- how they are written ----------------------------------------------------------------------------------------

    def _do(self, statement: str, *values: object) -> int:
        """How many rows it changed."""
        try:
            self._connection.execute(statement, values)
        except apsw.ConstraintError as error:
            raise ValueError(f"this would break a promise of the planes: {error}") from error
        return self._connection.changes()

    def _about(self, position: int) -> _About | None:
        row: Any = self._one("SELECT about FROM snapshots WHERE position = ?", position)
        return None if row is None else _ABOUTS.decode(row[0])

    def _put_about(self, position: int, about: _About) -> None:
        self._do("UPDATE snapshots SET about = ? WHERE position = ?", msgpack.encode(about), position)

    def _drop_pieces(self, which: str, *values: object) -> None:
        """Of these snapshots."""
        for (about,) in self._all(f"SELECT about FROM snapshots WHERE {which}", *values):
            for piece in _ABOUTS.decode(about).pieces:
                self._do("DELETE FROM pieces WHERE position = ?", piece)

    def _known(self, stream: str) -> int:
        held = self._stream(stream)
        if held is None:
            raise ValueError(f"there is no stream {stream!r} that this could belong to")
        return held.stream_no

    def _known_thread(self, thread: str) -> int:
        thread_no = self._thread_no(thread)
        if thread_no is None:
            raise ValueError(f"there is no thread {thread!r} that this could belong to")
        return thread_no

    def _places(self, table: str, thread_no: int, limit: int) -> list[int]:
        query = f"SELECT place FROM {table} WHERE thread_no = ? ORDER BY place LIMIT ?"
        return [place for (place,) in self._all(query, thread_no, limit)]


def _in_sight(held: Cleared | None, after: int, limit: int, until: int | None) -> range:
    """The seqs that are asked for: those up to the floor are out of sight, and a stream has no gap."""
    if held is None:
        return range(0)
    first = max(after, held.floor) + 1
    last = held.head if until is None else min(held.head, until)
    return range(first, min(last, first + limit - 1) + 1)


def find_scope(connection: apsw.Connection, scope: str) -> int | None:
    number: int | None = connection.execute("SELECT scope_no FROM scopes WHERE scope = ?", (scope,)).get
    return number


def make_scope(connection: apsw.Connection, scope: str) -> int:
    number = find_scope(connection, scope)
    if number is None:
        connection.execute("INSERT INTO scopes (scope) VALUES (?)", (scope,))
        number = connection.last_insert_rowid()
    return number


@cache
def _insert_events(rows: int) -> str:
    return f"INSERT INTO events (position, at_ms, body) VALUES {', '.join(['(?, ?, ?)'] * rows)}"


def _digest(key: str) -> bytes:
    return hashlib.blake2b(key.encode(), digest_size=KEY_BYTES).digest()
