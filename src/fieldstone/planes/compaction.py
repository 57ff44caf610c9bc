"""Compaction of a stream: a snapshot stands for its first events, and only then do these go.

Project, write the snapshot, read it back and verify it, raise the floor, delete the rows in chunks. Whatever step is
the last one before a crash, the store is correct: a snapshot that nobody needed, or rows below the floor that nobody
sees and that go when the store is opened again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Final, Literal, NamedTuple

import structlog
from msgspec import Struct

from fieldstone.core.errors import FieldError, InternalError
from fieldstone.core.transcripts import OPEN_STATUSES
from fieldstone.planes.messages import Messages, decode_events, message_id
from fieldstone.planes.projector import SequenceGap
from fieldstone.planes.snapshots import replayed, snapshot_of, state_in
from fieldstone.ports.planes import PlaneStore, ReadTables, SnapshotRow, StreamRow, Tables
from fieldstone.ports.world import Clock

CHUNK_EVENTS: Final = 1_000  # deleted in one transaction: writers wait for its end, see benchmarks/streams
# A millisecond, and then a pause: an append takes its turn with the interpreter some ten times, see benchmarks/threads.
PROJECTED_AT_ONCE: Final = 200
PAUSE_S: Final = 0.002
SLICE_BYTES: Final = 500_000  # of a snapshot, written in one transaction; 9 MB at once took 40 ms and more
STREAMS_AT_ONCE: Final = 1_000
HOLD_PREFIX: Final = "hold:"  # a hold lies among the readers, under a name that no reader may have
KEPT_PLACE_VERSION: Final = 0  # no reader knows it: to all of them there is no snapshot yet
PROJECTIONS_MAX: Final = 10
SCOUR_PAUSE_S: Final = 0.05
SCOUR_TRIES: Final = 20

Reason = Literal["uncommitted_run", "reader", "fork_base", "hold", "undecided_text", "kept_events"]

logger = structlog.get_logger("fieldstone.streams")


class Held(Struct, frozen=True, gc=False):
    """Events behind `seq` stay, and why."""

    reason: Reason
    seq: int


class SnapshotSeq(Struct, frozen=True, gc=False, rename="camel"):
    last_seq: int


class StreamCompaction(Struct, frozen=True, gc=False):
    """`eligible` events go, or would go in a dry run; with none there is no snapshot."""

    snapshot: SnapshotSeq | None
    eligible: int
    held: list[Held]


class _Plan(NamedTuple):
    row: StreamRow
    last_seq: int
    held: list[Held]

    @property
    def eligible(self) -> int:
        return self.last_seq - self.row.floor


class Compactor:
    def __init__(self, store: PlaneStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._clearing: dict[str, asyncio.Task[None]] = {}
        self._others: set[asyncio.Task[None]] = set()
        self._turns = asyncio.Lock()

    async def compact(self, stream: str, *, dry_run: bool, keep_events: int) -> StreamCompaction:
        async with self._turns:  # two of one stream would take each other's snapshot away
            return await self._compact(stream, dry_run=dry_run, keep_events=keep_events)

    async def _compact(self, stream: str, *, dry_run: bool, keep_events: int) -> StreamCompaction:
        plan = await self._store.read(partial(plan_compaction, stream, keep_events))
        if not plan.eligible:
            return StreamCompaction(None, 0, plan.held)
        if dry_run:
            return StreamCompaction(SnapshotSeq(plan.last_seq), plan.eligible, plan.held)
        taken = await self._take_snapshot(stream, plan.last_seq)
        if taken is None:
            return StreamCompaction(None, 0, plan.held)
        plan = await self._store.write(partial(_raise_floor, taken, keep_events))
        if not plan.eligible:
            return StreamCompaction(None, 0, plan.held)
        self.clear_soon(stream)
        return StreamCompaction(SnapshotSeq(plan.last_seq), plan.eligible, plan.held)

    async def _take_snapshot(self, stream: str, last_seq: int) -> SnapshotRow | None:
        """On disk, read back, and good. None: the events went meanwhile, by a deletion or another process.

        A place is kept for it while it is projected. Whoever rewrites events drops what was made of them, so where the
        place is gone a secret was completed meanwhile, and the projection may hold its first part.
        """
        kept = SnapshotRow(stream, last_seq, self._clock.now_ms(), KEPT_PLACE_VERSION, b"", b"")
        for _ in range(PROJECTIONS_MAX):
            await self._store.write(lambda tables: tables.put_snapshot(kept))
            taken = await self._project(stream, last_seq)
            if await self._put_in_place(kept, taken):
                if not await self._store.read(partial(_is_as_written, taken)):
                    row = await self._store.read(lambda tables: tables.stream(stream))
                    if row is None or row.floor >= last_seq:
                        return None
                    raise InternalError("The snapshot could not be read back as it was written; no event was touched.")
                return taken
        raise InternalError("The stream's texts changed while a snapshot of them was taken; no event was touched.")

    async def _put_in_place(self, kept: SnapshotRow, taken: SnapshotRow) -> bool:
        """In slices: all other writers would wait for one of megabytes. False: its place is gone."""
        for at in range(0, len(taken.state), SLICE_BYTES):
            grow = partial(_grow, kept, taken.state[at : at + SLICE_BYTES], at)
            if not await self._store.write(grow, large=True):
                return False
        return await self._store.write(partial(_seal, kept, taken))

    async def _project(self, stream: str, last_seq: int) -> SnapshotRow:
        """In steps, in the threads that read: others want their turn."""
        messages = await self._store.read(partial(_begun, stream, last_seq))
        while messages.last_seq < last_seq:
            await self._store.read(partial(_go_on, stream, messages, last_seq))
            await asyncio.sleep(PAUSE_S)
        now_ms = self._clock.now_ms()
        return await self._store.read(lambda _: snapshot_of(stream, messages, now_ms=now_ms))

    # --- in the background -------------------------------------------------------------------------------------------

    def clear_soon(self, stream: str) -> None:
        task = self._clearing.get(stream)
        if task is None or task.done():
            self._clearing[stream] = task = asyncio.create_task(self._logged(partial(self._clear, stream)))
            task.add_done_callback(lambda done: self._cleared(stream, done))

    def resume(self) -> None:
        task = asyncio.create_task(self._logged(self._go_on))
        self._others.add(task)
        task.add_done_callback(self._others.discard)

    async def settled(self) -> None:
        while tasks := {*self._clearing.values(), *self._others}:
            await asyncio.wait(tasks)

    async def close(self) -> None:
        tasks = {*self._clearing.values(), *self._others}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _go_on(self) -> None:
        while streams := await self._store.read(lambda tables: tables.truncated(limit=STREAMS_AT_ONCE)):
            for stream in streams:
                await self._delete_rows(stream)
        await self.scour()

    async def _clear(self, stream: str) -> None:
        await self._delete_rows(stream)
        await self.scour()

    async def _delete_rows(self, stream: str) -> None:
        """What is below the floor. Older snapshots first: the events tell whoever resumes that there is more to do."""
        while await self._store.write(lambda tables: tables.erode_snapshots(stream)):
            pass
        gone = CHUNK_EVENTS
        while gone == CHUNK_EVENTS:
            gone = await self._store.write(lambda tables: tables.delete_events(stream, limit=CHUNK_EVENTS))
            await asyncio.sleep(0)  # a store in memory never waits, and others want their turn

    async def scour(self) -> None:
        """A reader of an older state goes away soon."""
        for _ in range(SCOUR_TRIES):
            if await self._store.scour():
                return
            await asyncio.sleep(SCOUR_PAUSE_S)

    async def _logged(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except FieldError as error:  # nobody waits for it; it goes on when the store is opened again
            logger.warning("a stream could not be cleared", code=error.code)

    def _cleared(self, stream: str, task: asyncio.Task[None]) -> None:
        if self._clearing.get(stream) is task:
            del self._clearing[stream]


def plan_compaction(stream: str, keep_events: int, tables: ReadTables) -> _Plan:
    """Up to where events may go, and what keeps those behind."""
    row = tables.stream(stream) or StreamRow(stream)
    held = sorted(_held(tables, row, keep_events), key=lambda each: each.seq)
    last_seq = min((each.seq for each in held), default=row.head)
    return _Plan(row, max(row.floor, min(row.head, last_seq)), held)


def _held(tables: ReadTables, row: StreamRow, keep_events: int) -> Iterator[Held]:
    run = tables.run_of_stream(row.stream)
    if run is not None and run.status in OPEN_STATUSES:
        yield Held("uncommitted_run", row.floor)
    elif row.held_from is not None:  # the end of a run has decided
        yield Held("undecided_text", row.held_from - 1)
    for name, seq in tables.readers(row.stream).items():
        is_hold = name.startswith(HOLD_PREFIX)
        if is_hold or seq < row.head:
            yield Held("hold", row.floor) if is_hold else Held("reader", max(seq, row.floor))
    if run is not None:
        yield from _fork_bases(tables, row, run.id, run.thread)
    if keep_events and row.head > row.floor:
        yield Held("kept_events", max(row.floor, row.head - keep_events))


def _fork_bases(tables: ReadTables, row: StreamRow, run_id: str, thread: str) -> Iterator[Held]:
    """Messages of this stream that uncommitted runs fork from: what they were made of stays."""
    forks = {each.fork_from for each in tables.open_runs() if each.thread == thread and each.fork_from is not None}
    of_this = {fork for fork in forks if (found := tables.message(thread, fork)) is not None and found.run == run_id}
    if not of_this:
        return
    for seq in range(row.floor + 1, row.head + 1):
        if message_id(row.stream, seq) in of_this:
            yield Held("fork_base", seq - 1)
            return


def _raise_floor(taken: SnapshotRow, keep_events: int, tables: Tables) -> _Plan:
    """What came meanwhile counts: a reader that registered, a run that began. Then a smaller part goes, or none."""
    plan = plan_compaction(taken.stream, keep_events, tables)
    if plan.last_seq < taken.last_seq or taken.seal not in tables.seals(taken.stream):
        return plan._replace(last_seq=plan.row.floor)
    plan = plan._replace(last_seq=taken.last_seq)
    if taken.last_seq > plan.row.floor:
        tables.put_stream(plan.row._replace(floor=taken.last_seq))
    return plan


def _grow(kept: SnapshotRow, more: bytes, at: int, tables: Tables) -> bool:
    return kept.seal in tables.seals(kept.stream) and tables.grow_snapshot(kept.stream, kept.last_seq, more, at=at)


def _seal(kept: SnapshotRow, taken: SnapshotRow, tables: Tables) -> bool:
    return kept.seal in tables.seals(kept.stream) and tables.seal_snapshot(kept.stream, taken.seal)


def _begun(stream: str, last_seq: int, tables: ReadTables) -> Messages:
    """What the newest snapshot has; the rest is projected step by step."""
    floor = (tables.stream(stream) or StreamRow(stream)).floor
    taken = [each.last_seq for each in tables.seals(stream) if each.state_version != KEPT_PLACE_VERSION]
    return replayed(tables, stream, until=max((seq for seq in taken if floor < seq <= last_seq), default=floor))


def _go_on(stream: str, messages: Messages, last_seq: int, tables: ReadTables) -> None:
    blocks = tables.event_blocks(stream, after=messages.last_seq, limit=PROJECTED_AT_ONCE, until=last_seq)
    if not messages.apply(decode_events(blocks)):
        raise SequenceGap(messages.last_seq + 1, last_seq)


def _is_as_written(taken: SnapshotRow, tables: ReadTables) -> bool:
    row = tables.stream(taken.stream) or StreamRow(taken.stream)
    found = next((each for each in tables.snapshots(taken.stream) if each.last_seq == taken.last_seq), None)
    return found == taken and state_in(found, head=row.head) is not None
