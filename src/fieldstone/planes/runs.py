"""Runs: begun at a message, streamed, and then committed, failed or cancelled, once.

Each step compares and sets within one transaction. So two commits of one run give one transcript, a commit that races a
cancel has one winner, and an append that races a commit is in the transcript, or refused.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final, assert_never, get_args

from msgspec import UNSET, UnsetType, json

from fieldstone.core.errors import InvalidPayload, InvalidTransition, RunNotFound, ThreadNotFound
from fieldstone.core.streams import MAX_STREAM_ID_CHARS, TOOL_RESULT, StreamEvent
from fieldstone.core.transcripts import (
    DEFAULT_PAGE,
    MAX_PAGE,
    OPEN_STATUSES,
    RUN_STEPS,
    CanonicalMessage,
    RecoveryAction,
    Run,
    RunStatus,
    encode_message,
)
from fieldstone.planes.deletion import erase_deleted, is_erased
from fieldstone.planes.messages import created_ms, messages_of, open_calls
from fieldstone.planes.snapshots import replayed, take_snapshot, uncovered
from fieldstone.planes.tree import (
    Remembering,
    active_leaf,
    attach,
    is_on_path,
    leaf_through,
    place_under,
    thread_row,
)
from fieldstone.ports.planes import EventRow, MessageRow, PlaneStore, ReadTables, RunRow, Tables, ThreadRow
from fieldstone.ports.world import Clock, Ids
from fieldstone.retrieval.reading import timestamp

RUN_STREAM: Final = "run:"

_OF_A_RUN: Final = re.compile(r"run:run-[0-9a-f]{32}")  # as `Ids` makes them
NEVER_ANSWERED: Final = "The run ended before the tool answered."
# All other writers wait for a commit. So of a longer run a snapshot is taken first, in steps of this many events.
COMMITTED_EVENTS: Final = 5_000

ForkPoint = str | None | UnsetType


class Runs:
    def __init__(self, store: PlaneStore, clock: Clock, ids: Ids) -> None:
        self._store: Final = store
        self._clock: Final = clock
        self._ids: Final = ids

    async def begin_run(self, thread: str, fork_from: ForkPoint = UNSET) -> Run:
        """The first run of a thread makes it. UNSET: go on at the active leaf; None: fork at the root.

        A fork point that is not there (yet) is taken: the run's messages are a chain of their own until it comes.
        """
        _check_id("threadId", thread)
        if isinstance(fork_from, str):
            _check_id("forkFromMessageId", fork_from)
        run_id, now_ms = self._ids.run(), self._clock.now_ms()
        await erase_deleted(self._store, thread)
        return _shown(await self._store.write(lambda tables: _begin(tables, thread, run_id, fork_from, now_ms)))

    async def run(self, thread: str, run_id: str) -> Run:
        return _shown(await self._store.read(lambda tables: run_row(tables, thread, run_id)))

    async def runs(self, thread: str, *, before: str | None = None, limit: int = DEFAULT_PAGE) -> tuple[Run, ...]:
        """The newest first; those begun before the run `before`."""
        if limit < 0:
            raise InvalidPayload("limit is 0 or more.")
        rows = await self._store.read(lambda tables: _page(tables, thread, before, min(limit, MAX_PAGE)))
        return tuple(map(_shown, rows))

    async def open_runs(self, *, inactive_ms: int = 0) -> tuple[Run, ...]:
        """Of all threads: those that told nothing for so long. A run is stale by its last activity, not its age."""
        since_ms = self._clock.now_ms() - inactive_ms
        return tuple(map(_shown, await self._store.read(lambda tables: tables.open_runs(inactive_since_ms=since_ms))))

    async def commit(self, thread: str, run_id: str) -> Run:
        """Its messages become part of the transcript; other committed runs with the same fork point are superseded."""
        await self._shorten(run_id)
        now_ms = self._clock.now_ms()
        return _shown(await self._store.write(lambda tables: commit_run(tables, thread, run_id, now_ms)))

    async def fail(self, thread: str, run_id: str) -> Run:
        return await self._end(thread, run_id, "failed")

    async def cancel(self, thread: str, run_id: str) -> Run:
        return await self._end(thread, run_id, "cancelled")

    async def recover(self, thread: str, run_id: str, action: RecoveryAction) -> Run:
        """End a run whose writer is gone. `commit` takes what is there, and answers open tool calls with an error."""
        if action not in get_args(RecoveryAction):
            raise InvalidPayload(f"action is one of {', '.join(get_args(RecoveryAction))}.")
        match action:
            case "fail":
                return await self.fail(thread, run_id)
            case "cancel":
                return await self.cancel(thread, run_id)
            case "commit":
                await self._shorten(run_id)
                now_ms = self._clock.now_ms()
                return _shown(await self._store.write(lambda tables: recover_run(tables, thread, run_id, now_ms)))
            case _:
                assert_never(action)

    async def _end(self, thread: str, run_id: str, status: RunStatus) -> Run:
        now_ms = self._clock.now_ms()
        return _shown(await self._store.write(lambda tables: end_run(tables, thread, run_id, status, now_ms)))

    async def _shorten(self, run_id: str) -> None:
        """Most runs are short, and for those nothing is written."""
        now_ms = self._clock.now_ms()
        is_long = await self._store.read(lambda tables: _is_long(tables, RUN_STREAM + run_id))
        while is_long:
            is_long = await self._store.write(lambda tables: _take_step(tables, run_id, now_ms))


def touch_run(tables: Tables, stream: str, now_ms: int) -> None:
    """In the transaction that appends to the stream: its run is streaming now, or takes no more events."""
    run = tables.run_of_stream(stream)
    if run is None:
        if _OF_A_RUN.fullmatch(stream):  # which was deleted with its thread: nobody would ever delete this
            raise RunNotFound
        return
    if run.status not in OPEN_STATUSES:
        raise InvalidTransition(f"The run is {run.status}: it takes no more events.")
    refuse_deleted(tables, run)
    tables.put_run(run._replace(status="streaming", active_ms=max(run.active_ms, now_ms)))


def refuse_deleted(tables: ReadTables, run: RunRow) -> None:
    """Where its thread is deleted, and what it had is on its way out."""
    thread = tables.thread(run.thread)
    if thread is None or thread.deleted_ms is not None:
        raise RunNotFound


def run_row(tables: ReadTables, thread: str, run_id: str) -> RunRow:
    thread_row(tables, thread)
    run = tables.run(run_id)
    if run is None or run.thread != thread:
        raise RunNotFound
    return run


def commit_run(tables: Tables, thread: str, run_id: str, now_ms: int) -> RunRow:
    run = run_row(tables, thread, run_id)
    if run.status in ("committed", "superseded"):  # superseded: it was committed before
        return run
    _check_step(run, "committed")
    messages = messages_of(replayed(tables, run.stream).state)
    run = run._replace(status="committed", messages=len(messages))
    _supersede_others(tables, run)
    _add(tables, run, messages)
    return _put_ended(tables, run, now_ms)


def end_run(tables: Tables, thread: str, run_id: str, status: RunStatus, now_ms: int) -> RunRow:
    """Without its messages: its events stay in the log."""
    run = run_row(tables, thread, run_id)
    if run.status == status:
        return run
    _check_step(run, status)
    return _put_ended(tables, run._replace(status=status), now_ms)


def recover_run(tables: Tables, thread: str, run_id: str, now_ms: int) -> RunRow:
    run = run_row(tables, thread, run_id)
    if run.status == "streaming":
        _answer(tables, run, open_calls(replayed(tables, run.stream).state), now_ms)
    return commit_run(tables, thread, run_id, now_ms)


def add_messages(tables: Tables, run: RunRow, messages: Sequence[CanonicalMessage]) -> list[MessageRow]:
    """At the thread's next places, under their parents. What waited for them is hung under them."""
    thread = thread_row(tables, run.thread)
    known, rows = Remembering(tables), list[MessageRow]()
    for place, message in enumerate(messages, start=thread.messages + 1):
        parent = message.parent_message_id
        depth, jump = place_under(known, run.thread, None if parent is None else known.message(run.thread, parent))
        stands = run.status == "committed"
        row = MessageRow(
            message.id, parent, run.id, message.role, created_ms(message), place, depth=depth, jump=jump, stands=stands
        )
        known.remember(row)
        rows.append(row)
    tables.put_thread(thread._replace(messages=thread.messages + len(rows)))
    tables.put_messages(run.thread, rows)
    tables.put_bodies(run.thread, {row.place: encode_message(each) for row, each in zip(rows, messages, strict=True)})
    for row in rows:
        attach(tables, run.thread, row)
    return rows


def _check_id(name: str, value: str) -> None:
    if not 1 <= len(value) <= MAX_STREAM_ID_CHARS:
        raise InvalidPayload(f"{name} has 1 to {MAX_STREAM_ID_CHARS} characters.")


def _begin(tables: Tables, thread: str, run_id: str, fork_from: ForkPoint, now_ms: int) -> RunRow:
    row = tables.thread(thread)
    if row is not None and row.deleted_ms is not None:
        if not is_erased(tables, thread):  # it was deleted a moment ago
            raise ThreadNotFound
        row = row._replace(deleted_ms=None, created_ms=now_ms)
    row = row or ThreadRow(thread, now_ms, now_ms)
    row = row._replace(runs=row.runs + 1, active_ms=max(row.active_ms, now_ms))
    tables.put_thread(row)
    fork = row.leaf if isinstance(fork_from, UnsetType) else fork_from
    run = RunRow(run_id, thread, RUN_STREAM + run_id, fork, "created", now_ms, None, 0, now_ms, row.runs)
    tables.put_run(run)
    return run


def _page(tables: ReadTables, thread: str, before: str | None, limit: int) -> list[RunRow]:
    thread_row(tables, thread)
    before_place = None if before is None else run_row(tables, thread, before).place
    return tables.runs(thread, before_place=before_place, limit=limit)


def _check_step(run: RunRow, status: RunStatus) -> None:
    if status not in RUN_STEPS[run.status]:
        raise InvalidTransition(f"The run is {run.status}: it cannot become {status}.")


def _supersede_others(tables: Tables, run: RunRow) -> None:
    """Nothing of them is deleted: their branches stay readable."""
    for other in tables.runs_forked_at(run.thread, run.fork_from):
        if other.id != run.id and other.status == "committed":
            tables.put_run(other._replace(status="superseded"))
            tables.restand(other.id, False)


def _add(tables: Tables, run: RunRow, messages: Sequence[CanonicalMessage]) -> None:
    """And on where the reader was: the active path follows a commit at its end or on it, and every fork at the root."""
    thread = thread_row(tables, run.thread)
    leaf = active_leaf(tables, thread)
    fork = None if run.fork_from is None else tables.message(run.thread, run.fork_from)
    follows = leaf is None or run.fork_from is None or (fork and is_on_path(tables, run.thread, fork, leaf))
    rows = add_messages(tables, run, messages)
    if rows and follows:
        last = leaf_through(tables, run.thread, rows[-1])
        tables.put_thread(thread_row(tables, run.thread)._replace(leaf=last.id))


def _put_ended(tables: Tables, run: RunRow, now_ms: int) -> RunRow:
    """Nothing more comes: what might have begun a secret at the end of its text did not."""
    run = run._replace(finished_ms=now_ms, active_ms=max(run.active_ms, now_ms))
    tables.put_run(run)
    stream = tables.stream(run.stream)
    if stream is not None and stream.held_from is not None:
        tables.put_stream(stream._replace(held_from=None, held_ms=None))
    thread = thread_row(tables, run.thread)
    tables.put_thread(thread._replace(active_ms=max(thread.active_ms, now_ms)))
    return run


def _answer(tables: Tables, run: RunRow, calls: Mapping[str, str], now_ms: int) -> None:
    """In the log, so that whoever projects it again finds the same."""
    stream = tables.stream(run.stream)
    assert stream is not None
    tables.put_stream(stream._replace(active_ms=now_ms))
    rows = [
        EventRow(seq, now_ms, json.encode(StreamEvent(TOOL_RESULT, _no_result(call, tool))))
        for seq, (call, tool) in enumerate(calls.items(), start=stream.head + 1)
    ]
    tables.put_events(run.stream, rows)


def _no_result(call: str, tool: str) -> dict[str, object]:
    return {"toolCallId": call, "toolName": tool, "output": NEVER_ANSWERED, "isError": True}


def _take_step(tables: Tables, run_id: str, now_ms: int) -> bool:
    """Whether more than one commit's worth of events was left."""
    run = tables.run(run_id)
    if run is None or run.status not in OPEN_STATUSES or not _is_long(tables, run.stream):
        return False
    covered, _ = uncovered(tables, run.stream)
    taken = take_snapshot(tables, run.stream, now_ms=now_ms, until=covered + COMMITTED_EVENTS)
    stream = tables.stream(run.stream)
    if taken and stream and not stream.floor:  # the log has it all: the older ones are only a cache
        tables.drop_snapshots(run.stream, but=taken.last_seq)
    return _is_long(tables, run.stream)


def _is_long(tables: ReadTables, stream: str) -> bool:
    covered, head = uncovered(tables, stream)
    return head - covered > COMMITTED_EVENTS


def _shown(run: RunRow) -> Run:
    return Run(
        run.id,
        run.thread,
        run.stream,
        run.fork_from,
        run.status,
        timestamp(run.created_ms),
        None if run.finished_ms is None else timestamp(run.finished_ms),
        run.messages,
        timestamp(run.active_ms),
    )
