"""The planes in dictionaries."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from msgspec import json

from fieldstone.core.errors import ShuttingDown, StorageFull
from fieldstone.core.streams import MAX_SEQ
from fieldstone.core.transcripts import OPEN_STATUSES
from fieldstone.ports.planes import (
    Appended,
    EventBlock,
    EventRow,
    MessageRow,
    ReadTables,
    RunRow,
    SnapshotRow,
    SnapshotSeal,
    StreamRow,
    Tables,
    ThreadCounts,
    ThreadRow,
    in_range,
)

T = TypeVar("T")


class MemoryPlanes:
    """A scope that is closed stays here, so that it can be opened again."""

    def __init__(self, *, max_bytes: int | None = None) -> None:
        self._max_bytes = max_bytes
        self._scopes: dict[str, MemoryTables] = {}
        self._version = 0
        self._waiting: set[asyncio.Future[None]] = set()
        self._closed = False

    def open(self, scope: str) -> "MemoryPlaneStore":
        return MemoryPlaneStore(self, self._scopes.setdefault(scope, MemoryTables()))

    async def close(self) -> None:
        self._closed = True
        self._wake()

    def write(self, tables: "MemoryTables", work: Callable[[Tables], T]) -> T:
        with tables.undone_if_it_raises():
            done = work(tables)
            if self._max_bytes is not None and tables.grew() and self.bytes_used() > self._max_bytes:
                raise StorageFull
        self._version += 1
        self._wake()
        return done

    async def changed(self, seen: int, timeout_ms: int) -> int:
        if self._version == seen:
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.add(waiter)
            try:
                await asyncio.wait([waiter], timeout=timeout_ms / 1e3)
            finally:
                self._waiting.discard(waiter)
        return self._version

    def bytes_used(self) -> int:
        return sum(tables.bytes for tables in self._scopes.values())

    @property
    def closed(self) -> bool:
        return self._closed

    def _wake(self) -> None:
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)


class MemoryPlaneStore:
    def __init__(self, planes: MemoryPlanes, tables: "MemoryTables") -> None:
        self._planes = planes
        self._tables = tables
        self._closed = False

    async def write(self, work: Callable[[Tables], T], *, large: bool = False) -> T:
        return self._planes.write(self._open_tables(), work)

    async def read(self, work: Callable[[ReadTables], T]) -> T:
        return work(self._open_tables())

    async def changed(self, seen: int, *, timeout_ms: int) -> int:
        self._open_tables()
        return await self._planes.changed(seen, timeout_ms)

    async def scour(self) -> bool:
        self._open_tables()
        return True  # nothing is left of what is gone

    async def bytes_used(self) -> int:
        self._open_tables()
        return self._planes.bytes_used()

    async def close(self) -> None:
        self._closed = True

    def _open_tables(self) -> "MemoryTables":
        if self._closed or self._planes.closed:
            raise ShuttingDown
        return self._tables


class MemoryReadTables:
    """Rows by their keys. What is asked for in an order is sorted when it is asked for."""

    def __init__(self) -> None:
        self._streams: dict[str, StreamRow] = {}
        self._events: defaultdict[str, dict[int, EventRow]] = defaultdict(dict)
        self._cleared: dict[str, int] = {}  # by stream: up to here the rows are deleted
        self._snapshots: dict[tuple[str, int], SnapshotRow] = {}
        self._appended: dict[tuple[str, str], Appended] = {}
        self._readers: dict[tuple[str, str], int] = {}
        self._runs: dict[str, RunRow] = {}
        self._run_of_stream: dict[str, str] = {}
        self._threads: dict[str, ThreadRow] = {}
        self._messages: defaultdict[str, dict[str, MessageRow]] = defaultdict(dict)
        self._places: dict[tuple[str, int], str] = {}
        self._bodies: dict[tuple[str, int], bytes] = {}

    def stream(self, stream: str) -> StreamRow | None:
        return self._streams.get(stream)

    def streams(self, *, after: str = "", limit: int) -> list[StreamRow]:
        return [self._streams[each] for each in sorted(self._streams) if each > after][:limit]

    def events(self, stream: str, *, after: int, limit: int, until: int | None = None) -> list[EventRow]:
        row = self._streams.get(stream)
        if row is None:
            return []
        first = max(after, row.floor) + 1
        last = row.head if until is None else min(row.head, until)
        return [self._events[stream][seq] for seq in range(first, min(last, first + limit - 1) + 1)]

    def event_blocks(self, stream: str, *, after: int, limit: int, until: int | None = None) -> list[EventBlock]:
        rows = self.events(stream, after=after, limit=limit, until=until)
        if not rows:
            return []
        seqs = range(rows[0].seq, rows[-1].seq + 1)
        times_ms = json.encode([row.at_ms for row in rows])
        return [EventBlock(seqs, times_ms, b"[%b]" % b",".join([row.body for row in rows]))]

    def truncated(self, *, limit: int) -> list[str]:
        return [each for each, row in sorted(self._streams.items()) if self._cleared.get(each, 0) < row.floor][:limit]

    def snapshot(self, stream: str) -> SnapshotRow | None:
        return next(iter(self.snapshots(stream)), None)

    def snapshots(self, stream: str) -> list[SnapshotRow]:
        of_stream = [row for row in self._snapshots.values() if row.stream == stream]
        return sorted(of_stream, key=lambda row: -row.last_seq)

    def seals(self, stream: str) -> list[SnapshotSeal]:
        return [row.seal for row in self.snapshots(stream)]

    def appended(self, stream: str, key: str) -> Appended | None:
        return self._appended.get((stream, key))

    def readers(self, stream: str) -> dict[str, int]:
        return {name: seq for (each, name), seq in sorted(self._readers.items()) if each == stream}

    def streams_with_reader(self, prefix: str) -> list[str]:
        return sorted({stream for stream, name in self._readers if name.startswith(prefix)})

    def run(self, run_id: str) -> RunRow | None:
        return self._runs.get(run_id)

    def run_of_stream(self, stream: str) -> RunRow | None:
        return self._runs.get(self._run_of_stream.get(stream, ""))

    def runs(self, thread: str, *, before_place: int | None = None, limit: int) -> list[RunRow]:
        before = [row for row in self._runs_of(thread) if before_place is None or row.place < before_place]
        return before[::-1][:limit]

    def runs_forked_at(self, thread: str, message: str | None) -> list[RunRow]:
        return [row for row in self._runs_of(thread) if row.fork_from == message]

    def open_runs(self, *, inactive_since_ms: int | None = None) -> list[RunRow]:
        rows = [row for row in self._runs.values() if row.status in OPEN_STATUSES]
        inactive = [row for row in rows if inactive_since_ms is None or row.active_ms <= inactive_since_ms]
        return sorted(inactive, key=lambda row: (row.active_ms, row.id))

    def thread(self, thread: str) -> ThreadRow | None:
        return self._threads.get(thread)

    def thread_counts(self, thread: str) -> ThreadCounts:
        runs = self._runs_of(thread)
        streams = {run.stream for run in runs if run.stream in self._streams}
        return ThreadCounts(len(runs), len(streams), sum(stream in streams for stream, _ in self._snapshots))

    def threads(self, *, after: str = "", limit: int) -> list[ThreadRow]:
        return [self._threads[each] for each in sorted(self._threads) if each > after][:limit]

    def message(self, thread: str, message_id: str) -> MessageRow | None:
        return self._messages[thread].get(message_id)

    def children(self, thread: str, parent: str | None, *, limit: int | None = None) -> list[MessageRow]:
        rows = [row for row in self._messages[thread].values() if row.parent == parent]
        return sorted(rows, key=lambda row: (not row.stands, -row.place))[:limit]

    def messages(self, thread: str, *, after_place: int, limit: int) -> list[MessageRow]:
        return [row for row in self._in_order(thread) if row.place > after_place][:limit]

    def messages_of_run(self, run_id: str) -> list[MessageRow]:
        run = self._runs.get(run_id)
        return [] if run is None else [row for row in self._in_order(run.thread) if row.run == run_id]

    def bodies(self, thread: str, places: Sequence[int]) -> dict[int, bytes]:
        return {place: self._bodies[thread, place] for place in places if (thread, place) in self._bodies}

    def _runs_of(self, thread: str) -> list[RunRow]:
        return sorted((row for row in self._runs.values() if row.thread == thread), key=lambda row: row.place)

    def _in_order(self, thread: str) -> list[MessageRow]:
        return sorted(self._messages[thread].values(), key=lambda row: row.place)


class MemoryTables(MemoryReadTables):
    """Every change notes what was there before, so that it can be undone."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0
        self._bytes_before = 0
        self._undo: list[tuple[dict[Any, Any], Any, Any]] = []

    @contextmanager
    def undone_if_it_raises(self) -> Iterator[None]:
        self._undo, self._bytes_before = [], self.bytes
        try:
            yield
        except BaseException:  # why: whatever it was, nothing of it stays
            for table, key, before in reversed(self._undo):
                if before is _GONE:
                    table.pop(key, None)
                else:
                    table[key] = before
            self.bytes = self._bytes_before
            raise

    def grew(self) -> bool:
        return self.bytes > self._bytes_before

    def put_stream(self, row: StreamRow) -> None:
        held = self._streams.get(row.stream, StreamRow(row.stream))
        if row.head != held.head:
            raise ValueError(f"the head of {row.stream!r} is {held.head} and moves with its events, not to {row.head}")
        if not held.floor <= row.floor <= row.head:
            raise ValueError(f"the floor of {row.stream!r} goes from {held.floor} up to {row.head}, not to {row.floor}")
        self._set(self._streams, row.stream, row)

    def put_events(self, stream: str, rows: Sequence[EventRow]) -> None:
        held = self._streams.get(stream)
        if held is None or any(row.seq != seq for seq, row in enumerate(rows, held.head + 1)):
            raise ValueError(f"the events do not continue {stream!r}: {held}")
        if held.head + len(rows) > MAX_SEQ:
            raise ValueError(f"{stream!r} has all the events that a stream can have")
        for row in rows:
            self._set(self._events[stream], row.seq, row, size=len(row.body))
        self._set(self._streams, stream, held._replace(head=held.head + len(rows)))

    def replace_events(self, stream: str, rows: Sequence[EventRow]) -> None:
        held = self._streams.get(stream, StreamRow(stream))
        for row in rows:
            if not held.floor < row.seq <= held.head:
                raise ValueError(f"{stream!r} has no event {row.seq}")
            before = self._events[stream][row.seq]
            self._set(self._events[stream], row.seq, row, size=len(row.body) - len(before.body))

    def delete_events(self, stream: str, *, limit: int) -> int:
        floor, cleared = self._streams.get(stream, StreamRow(stream)).floor, self._cleared.get(stream, 0)
        gone = range(cleared + 1, min(floor, cleared + limit) + 1)
        for seq in gone:
            self._set(self._events[stream], seq, _GONE, size=-len(self._events[stream][seq].body))
        self._set(self._cleared, stream, cleared + len(gone))
        return len(gone)

    def put_snapshot(self, row: SnapshotRow) -> None:
        self._known(self._streams, row.stream)
        in_range(row.last_seq)
        before = self._snapshots.get((row.stream, row.last_seq))
        size = len(row.state) - (0 if before is None else len(before.state))
        self._set(self._snapshots, (row.stream, row.last_seq), row, size=size)

    def grow_snapshot(self, stream: str, last_seq: int, more: bytes, *, at: int) -> bool:
        row = self._snapshots.get((stream, last_seq))
        if row is None or len(row.state) != at:
            return False
        self.put_snapshot(row._replace(state=row.state + more))
        return True

    def seal_snapshot(self, stream: str, seal: SnapshotSeal) -> bool:
        row = self._snapshots.get((stream, seal.last_seq))
        if row is None:
            return False
        self.put_snapshot(SnapshotRow(stream, *seal, row.state))
        return True

    def drop_snapshots(self, stream: str, *, but: int | None = None) -> int:
        gone = [row for row in self.snapshots(stream) if row.last_seq != but]
        for row in gone:
            self._set(self._snapshots, (stream, row.last_seq), _GONE, size=-len(row.state))
        return len(gone)

    def erode_snapshots(self, stream: str) -> bool:
        row = self._streams.get(stream)
        below = [each for each in self.snapshots(stream) if row is not None and each.last_seq < row.floor]
        if below:
            self._set(self._snapshots, (stream, below[-1].last_seq), _GONE, size=-len(below[-1].state))
        return bool(below)

    def put_appended(self, stream: str, key: str, appended: Appended) -> None:
        self._known(self._streams, stream)
        self._set(self._appended, (stream, key), appended)

    def drop_appended(self, stream: str, *, limit: int) -> int:
        gone = [key for key in self._appended if key[0] == stream][:limit]
        for key in gone:
            self._set(self._appended, key, _GONE)
        return len(gone)

    def put_reader(self, stream: str, name: str, seq: int) -> None:
        self._known(self._streams, stream)
        self._set(self._readers, (stream, name), seq)

    def drop_reader(self, stream: str, name: str) -> bool:
        there = (stream, name) in self._readers
        self._set(self._readers, (stream, name), _GONE)
        return there

    def rename_stream(self, stream: str, name: str) -> None:
        self._known(self._streams, stream)
        self._free(self._streams, name)
        if (run_id := self._run_of_stream.get(stream)) is not None:
            self._set(self._runs, run_id, self._runs[run_id]._replace(stream=name))
        self._set(self._streams, stream, self._streams[stream]._replace(stream=name))
        for snapshot in [row for row in self._snapshots.values() if row.stream == stream]:
            self._set(self._snapshots, (stream, snapshot.last_seq), snapshot._replace(stream=name))
        for by_name in (self._streams, self._events, self._cleared, self._run_of_stream):
            self._move(by_name, stream, name)
        for table in (self._snapshots, self._appended, self._readers):
            for key in [key for key in table if key[0] == stream]:
                self._move(table, key, (name, key[1]))

    def rename_thread(self, thread: str, name: str) -> None:
        self._known(self._threads, thread)
        self._free(self._threads, name)
        for run in self._runs_of(thread):
            self._set(self._runs, run.id, run._replace(thread=name))
        self._set(self._threads, thread, self._threads[thread]._replace(thread=name))
        for by_name in (self._threads, self._messages):
            self._move(by_name, thread, name)
        for table in (self._places, self._bodies):
            for key in [key for key in table if key[0] == thread]:
                self._move(table, key, (name, key[1]))

    def put_run(self, row: RunRow) -> None:
        self._known(self._threads, row.thread)
        before = self._runs.get(row.id)
        if before is None:
            if row.stream in self._run_of_stream or any(row.place == each.place for each in self._runs_of(row.thread)):
                raise ValueError(f"another run has the stream or the place of {row.id!r}")
        elif (before.thread, before.place, before.stream) != (row.thread, row.place, row.stream):
            raise ValueError(f"{row.id!r} keeps its thread, its place and its stream")
        self._set(self._runs, row.id, row)
        self._set(self._run_of_stream, row.stream, row.id)

    def put_thread(self, row: ThreadRow) -> None:
        self._set(self._threads, row.thread, row)

    def put_messages(self, thread: str, rows: Sequence[MessageRow]) -> None:
        self._known(self._threads, thread)
        for row in rows:
            in_range(row.place)
            before = self._messages[thread].get(row.id)
            if self._places.get((thread, row.place), row.id) != row.id or (before and before.place != row.place):
                raise ValueError(f"a place has one message, for ever: {row.id!r} cannot have {row.place}")
            self._set(self._messages[thread], row.id, row)
            self._set(self._places, (thread, row.place), row.id)

    def put_bodies(self, thread: str, bodies: Mapping[int, bytes]) -> None:
        self._known(self._threads, thread)
        for place, body in bodies.items():
            if (thread, place) not in self._places:
                raise ValueError(f"{thread!r} has no message at place {place}")
            size = len(body) - len(self._bodies.get((thread, place), b""))
            self._set(self._bodies, (thread, place), body, size=size)

    def restand(self, run_id: str, stands: bool) -> None:
        for row in self.messages_of_run(run_id):
            self._set(self._messages[self._runs[run_id].thread], row.id, row._replace(stands=stands))

    def drop_thread(self, thread: str, *, limit: int) -> int:
        messages = self._in_order(thread)[:limit]
        for row in messages:
            place = (thread, row.place)
            self._set(self._messages[thread], row.id, _GONE)
            self._set(self._places, place, _GONE)
            self._set(self._bodies, place, _GONE, size=-len(self._bodies.get(place, b"")))
        runs = self._runs_of(thread)[: limit - len(messages)]
        for run in runs:
            self._set(self._runs, run.id, _GONE)
            self._set(self._run_of_stream, run.stream, _GONE)
        return len(messages) + len(runs)

    def _set(self, table: dict[Any, Any], key: object, value: object, *, size: int = 0) -> None:
        self._undo.append((table, key, table.get(key, _GONE)))
        self.bytes += size
        if value is _GONE:
            table.pop(key, None)
        else:
            table[key] = value

    def _move(self, table: dict[Any, Any], key: object, to: object) -> None:
        if key in table:
            self._set(table, to, table[key])
            self._set(table, key, _GONE)

    def _free(self, table: Mapping[str, object], name: str) -> None:
        if name in table:
            raise ValueError(f"there is a {name!r} already")

    def _known(self, table: Mapping[str, object], name: str) -> None:
        if name not in table:
            raise ValueError(f"there is no {name!r} that this could belong to")


_GONE: Final = object()
