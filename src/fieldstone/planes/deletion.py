"""Deleting a thread: from one transaction on nobody finds it; then its streams are emptied, and its rows go for good.

A thread may have thousands of runs, and other writers wait for a transaction. So the first one only marks the thread,
and the others take some streams at a time. Until its turn comes a stream can be read, and takes no more events.
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Final

from fieldstone.core.errors import InvalidTransition
from fieldstone.core.transcripts import ThreadReceipt
from fieldstone.planes.compaction import HOLD_PREFIX, SCOUR_PAUSE_S, SCOUR_TRIES
from fieldstone.planes.tree import thread_row
from fieldstone.ports.planes import PlaneStore, ReadTables, RunRow, Tables
from fieldstone.retrieval.reading import timestamp

ERASED_AT_ONCE: Final = 1_000  # rows in one transaction, for which other writers wait
STREAM_TAKES: Final = 10  # of these: a stream without rows takes as long as so many
DROPPED_AT_ONCE: Final = 250  # messages and runs: each stands in three or four indexes
RUNS_AT_ONCE: Final = 1_000
THREADS_AT_ONCE: Final = 500


def mark_deleted(tables: Tables, thread: str, now_ms: int) -> ThreadReceipt:
    """The thread is not found any more. What it had is counted, and erased by `erase_deleted`."""
    row = thread_row(tables, thread)
    if _is_on_hold(tables, thread):
        raise InvalidTransition("A stream of the thread is on hold: it is deleted when the hold is lifted.")
    runs, streams, snapshots = tables.thread_counts(thread)
    oldest = tables.messages(thread, after_place=0, limit=1)
    messages = row.messages - oldest[0].place + 1 if oldest else 0  # places go on where an earlier deletion was
    tables.put_thread(row._replace(deleted_ms=now_ms, leaf=None))
    return ThreadReceipt(thread, messages, runs, streams, snapshots, timestamp(now_ms))


async def erase_deleted(store: PlaneStore, thread: str) -> None:
    """What a deletion left, some rows at a time. It can be done again: the runs, which name the streams, go last."""
    if await store.read(lambda tables: not _is_deleted(tables, thread) or is_erased(tables, thread)):
        return
    left = await store.read(lambda tables: _streams_to_erase(tables, thread))
    while left:
        left = await store.write(lambda tables: _erase_streams(tables, left))  # noqa: B023 (called at once)
    while await store.write(lambda tables: _erase_rows(tables, thread)):
        pass
    await _scour(store)


async def resume_deletions(store: PlaneStore) -> None:
    """When the store is opened: threads that were deleted, and of which a crash left something."""
    after = ""
    while page := await store.read(lambda tables: tables.threads(after=after, limit=THREADS_AT_ONCE)):  # noqa: B023
        for row in page:
            if row.deleted_ms is not None:
                await erase_deleted(store, row.thread)
        after = page[-1].thread


def is_erased(tables: ReadTables, thread: str) -> bool:
    return not tables.messages(thread, after_place=0, limit=1) and not tables.runs(thread, limit=1)


def runs_of(tables: ReadTables, thread: str) -> Iterator[RunRow]:
    """All of them, the newest first."""
    before: int | None = None
    while rows := tables.runs(thread, before_place=before, limit=RUNS_AT_ONCE):
        yield from rows
        before = rows[-1].place


async def _scour(store: PlaneStore) -> None:
    """A reader of an older state goes away soon; where one stays, the next deletion or compaction overwrites it."""
    for _ in range(SCOUR_TRIES):
        if await store.scour():
            return
        await asyncio.sleep(SCOUR_PAUSE_S)


def _empty(tables: Tables, stream: str) -> None:
    """Whoever still reads it is told so. The head stays: no seq is used twice."""
    row = tables.stream(stream)
    if row is None:
        return
    tables.put_stream(row._replace(floor=row.head, held_from=None, held_ms=None))
    tables.drop_snapshots(stream)
    for reader in tables.readers(stream):
        tables.drop_reader(stream, reader)


def _is_on_hold(tables: ReadTables, thread: str) -> bool:
    held = (tables.run_of_stream(stream) for stream in tables.streams_with_reader(HOLD_PREFIX))
    return any(run is not None and run.thread == thread for run in held)


def _is_deleted(tables: ReadTables, thread: str) -> bool:
    row = tables.thread(thread)
    return row is not None and row.deleted_ms is not None


def _streams_to_erase(tables: ReadTables, thread: str) -> Sequence[str]:
    return [run.stream for run in runs_of(tables, thread)] if _is_deleted(tables, thread) else []


def _erase_streams(tables: Tables, streams: Sequence[str]) -> Sequence[str]:
    """Those that are left."""
    room = ERASED_AT_ONCE
    for at, stream in enumerate(streams):
        _empty(tables, stream)
        room -= tables.delete_events(stream, limit=room)
        room -= tables.drop_appended(stream, limit=room) if room else 0
        if not room:
            return streams[at:]
        room -= STREAM_TAKES
        if room <= 0:
            return streams[at + 1 :]
    return []


def _erase_rows(tables: Tables, thread: str) -> bool:
    """Whether there may be more."""
    return _is_deleted(tables, thread) and tables.drop_thread(thread, limit=DROPPED_AT_ONCE) == DROPPED_AT_ONCE
