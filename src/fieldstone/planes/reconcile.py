"""Where the transport log and the durable transcript disagree, and how they are brought together again.

The log is the authority on what was told and in which order, the transcript on message ids and parents. On conflict the
messages are projected from the log again; for what lies below a stream's floor the transcript wins, since the log had
confirmed it before it was truncated. A run that was never committed is left alone until recovery is asked for.

Each check yields what it has found, and mends it when it is asked for more. So whoever takes only the first finding has
changed nothing; and a dry run is the same transaction, undone.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from typing import Final, Literal, NamedTuple, cast

from msgspec import Struct
from msgspec.structs import replace

from fieldstone.core.errors import RunNotFound, ThreadNotFound
from fieldstone.core.transcripts import (
    OPEN_STATUSES,
    CanonicalMessage,
    RecoveryAction,
    decode_message,
    encode_message,
)
from fieldstone.planes.deletion import erase_deleted, is_erased, runs_of
from fieldstone.planes.messages import encode_state, message_id, messages_of
from fieldstone.planes.runs import add_messages, end_run, recover_run
from fieldstone.planes.snapshots import replayed, replayed_from_log, state_in
from fieldstone.planes.tree import active_leaf, first_leaf, hang, is_hung, leaf_through, thread_row
from fieldstone.ports.planes import PlaneStore, ReadTables, RunRow, SnapshotRow, StreamRow, Tables, ThreadRow
from fieldstone.ports.world import Clock
from fieldstone.retrieval.reading import timestamp

STALE_MS: Final = 15 * 60 * 1_000  # a model or a tool may be silent for minutes
THREADS_AT_ONCE: Final = 1_000

Kind = Literal[
    "stale-run",
    "run-status",
    "superseded-run",
    "message-missing",
    "message-differs",
    "message-extra",
    "message-count",
    "message-standing",
    "message-place",
    "snapshot",
    "held-text",
    "active-leaf",
    "thread-count",
    "deletion",
]


class Disagreement(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    kind: Kind
    thread_id: str
    found: str
    action: str  # what is done about it, or would be
    run_id: str | None = None
    message_id: str | None = None


class Reconciliation(Struct, frozen=True, gc=False, rename="camel"):
    dry_run: bool
    threads: int
    runs: int
    disagreements: tuple[Disagreement, ...]


class _Recovery(NamedTuple):
    action: RecoveryAction | None
    inactive_since_ms: int
    now_ms: int


class _Rehearsed(Exception):
    """Undoes a dry run's transaction."""

    def __init__(self, findings: Sequence[Disagreement]) -> None:
        super().__init__()
        self.findings: Final = findings


Findings = Iterator[Disagreement]
Check = Callable[[Tables], Findings]


class Reconcile:
    def __init__(self, store: PlaneStore, clock: Clock) -> None:
        self._store: Final = store
        self._clock: Final = clock

    async def reconcile(
        self,
        *,
        thread: str | None = None,
        dry_run: bool = True,
        stale_ms: int = STALE_MS,
        recover: RecoveryAction | None = None,
    ) -> Reconciliation:
        """Of one thread, or of all. `recover` says what becomes of stale runs; without it they are only named."""
        now_ms = self._clock.now_ms()
        recovery = _Recovery(recover, now_ms - stale_ms, now_ms)
        found: list[Disagreement] = []
        threads = runs = 0
        async for row in self._threads(thread):
            threads += 1
            if row.deleted_ms is not None:
                found.extend(await self._finish_deletion(row.thread, dry_run=dry_run))
                continue
            run_ids = await self._store.read(partial(_oldest_first, row.thread))
            checks: list[Check] = [
                partial(_check_counts, row.thread),
                *(partial(_check_run, run_id, recovery) for run_id in run_ids),
                partial(_check_leaf, row.thread),
            ]
            try:
                found.extend(await self._bring_together(checks, dry_run=dry_run))
            except (RunNotFound, ThreadNotFound):
                continue  # it was deleted meanwhile
            runs += len(run_ids)
        return Reconciliation(dry_run, threads, runs, tuple(found))

    async def _threads(self, thread: str | None) -> AsyncIterator[ThreadRow]:
        if thread is not None:
            yield await self._store.read(lambda tables: thread_row(tables, thread))
            return
        after = ""
        while rows := await self._store.read(partial(_threads_after, after)):
            for row in rows:
                yield row
            after = rows[-1].thread

    async def _bring_together(self, checks: Sequence[Check], *, dry_run: bool) -> Sequence[Disagreement]:
        """Only those that find something are done again in a transaction, with the last one: it is about the whole."""
        *others, last = checks
        unsettled = [check for check in others if await self._finds(check)]
        if not unsettled and not await self._finds(last):
            return []
        try:
            return await self._store.write(partial(_mend, [*unsettled, last], dry_run))
        except _Rehearsed as rehearsed:
            return rehearsed.findings

    async def _finds(self, check: Check) -> bool:
        """To read is enough: a check writes only when it is asked for a second finding."""
        return await self._store.read(lambda tables: next(check(cast(Tables, tables)), None) is not None)

    async def _finish_deletion(self, thread: str, *, dry_run: bool) -> Sequence[Disagreement]:
        if await self._store.read(lambda tables: is_erased(tables, thread)):
            return []
        if not dry_run:
            await erase_deleted(self._store, thread)
        return [
            Disagreement("deletion", thread, "The thread was deleted, but not all of it is gone.", "erase the rest")
        ]


def _mend(checks: Sequence[Check], dry_run: bool, tables: Tables) -> Sequence[Disagreement]:
    findings = [finding for check in checks for finding in check(tables)]
    if dry_run:
        raise _Rehearsed(findings)
    return findings


def _threads_after(after: str, tables: ReadTables) -> list[ThreadRow]:
    return tables.threads(after=after, limit=THREADS_AT_ONCE)


def _oldest_first(thread: str, tables: ReadTables) -> list[str]:
    """A message's parent is most often of an older run."""
    return [run.id for run in runs_of(tables, thread)][::-1]


def _check_run(run_id: str, recovery: _Recovery, tables: Tables) -> Findings:
    for check in (_check_status, partial(_check_stale, recovery), _check_superseded, _check_stream):
        yield from check(tables, _run(tables, run_id))
    run = _run(tables, run_id)
    if run.status in ("committed", "superseded"):
        yield from _check_messages(tables, run)
    else:
        yield from _check_standing(tables, run, set())
    yield from _check_places(tables, run)


def _check_status(tables: Tables, run: RunRow) -> Findings:
    stream = tables.stream(run.stream)
    if run.status == "created" and stream is not None and stream.head:
        yield _about(run, "run-status", "The run has events, but counts as created.", "it is streaming")
        tables.put_run(run._replace(status="streaming"))


def _check_stale(recovery: _Recovery, tables: Tables, run: RunRow) -> Findings:
    if run.status not in OPEN_STATUSES or run.active_ms > recovery.inactive_since_ms:
        return
    since = f"The run is {run.status} and has told nothing since {timestamp(run.active_ms)}."
    match recovery.action:
        case None:
            yield _about(run, "stale-run", since, "none until recovery is asked for")
        case "commit" if run.status == "created":
            yield _about(run, "stale-run", since, "none: there is nothing to commit, so fail or cancel it")
        case "commit":
            yield _about(run, "stale-run", since, "commit what is there")
            recover_run(tables, run.thread, run.id, recovery.now_ms)
        case "fail":
            yield _about(run, "stale-run", since, "fail it")
            end_run(tables, run.thread, run.id, "failed", recovery.now_ms)
        case "cancel":
            yield _about(run, "stale-run", since, "cancel it")
            end_run(tables, run.thread, run.id, "cancelled", recovery.now_ms)


def _check_superseded(tables: Tables, run: RunRow) -> Findings:
    if run.status != "committed":
        return
    beside = [each for each in tables.runs_forked_at(run.thread, run.fork_from) if each.status == "committed"]
    if max(beside, key=_finished) != run:
        found = "A run that was committed later has the same fork point."
        yield _about(run, "superseded-run", found, "it is superseded")
        tables.put_run(run._replace(status="superseded"))
        tables.restand(run.id, False)


def _check_stream(tables: Tables, run: RunRow) -> Findings:
    stream = tables.stream(run.stream)
    if stream is None:
        return
    if stream.held_from is not None and run.status not in OPEN_STATUSES:
        yield _about(run, "held-text", "Readers still wait for more of the run's text.", "show it: the run has ended")
        tables.put_stream(stream._replace(held_from=None, held_ms=None))
    snapshots = tables.snapshots(run.stream)
    good = [each.last_seq for each in snapshots if _is_good(tables, stream, each)]
    if len(good) < len(snapshots):
        found = "A snapshot cannot be believed: its version, its checksum, or what the log says is another."
        yield _about(run, "snapshot", found, "discard it")
        tables.drop_snapshots(run.stream, but=good[0] if good else None)


def _check_messages(tables: Tables, run: RunRow) -> Findings:
    told = _told(tables, run)
    if told is None:
        rows = tables.messages_of_run(run.id)
        yield from _check_count(tables, run, len(rows))
        yield from _check_standing(tables, run, {row.id for row in rows})
        return
    kept, from_log = told
    for message in from_log:
        yield from _check_message(tables, run, message)
    ids = kept | {message.id for message in from_log}
    yield from _check_count(tables, run, len(ids))
    yield from _check_standing(tables, run, ids)


def _told(tables: ReadTables, run: RunRow) -> tuple[set[str], Sequence[CanonicalMessage]] | None:
    """Ids for which the transcript wins, and what the log says of the others. None: the log says nothing."""
    stream = tables.stream(run.stream)
    if stream is None or stream.head == stream.floor:
        return None
    if not stream.floor:
        return set(), messages_of(replayed_from_log(tables, run.stream).state)
    if not any(_is_good(tables, stream, each) for each in tables.snapshots(run.stream)):
        return None  # where a message began that the floor cuts, nobody knows
    opened = {message_id(run.stream, seq) for seq in range(stream.floor + 1, stream.head + 1)}
    stored = {row.id for row in tables.messages_of_run(run.id)}
    return stored - opened, [m for m in messages_of(replayed(tables, run.stream).state) if m.id in opened]


def _check_message(tables: Tables, run: RunRow, message: CanonicalMessage) -> Findings:
    row = tables.message(run.thread, message.id)
    if row is None:
        found = "The log has a message that the transcript has not."
        yield _about(run, "message-missing", found, "add it", message.id)
        add_messages(tables, run, [message])
        return
    wanted = replace(message, parent_message_id=row.parent)  # the transcript knows the parents
    body = tables.bodies(run.thread, [row.place]).get(row.place)
    if body is None or decode_message(body) != wanted or row.role != message.role:
        found = "The log tells the message otherwise than the transcript."
        yield _about(run, "message-differs", found, "write it as the log tells it", message.id)
        tables.put_messages(run.thread, [row._replace(role=message.role)])
        tables.put_bodies(run.thread, {row.place: encode_message(wanted)})


def _check_count(tables: Tables, run: RunRow, count: int) -> Findings:
    if run.messages != count:
        found = f"The run counts {run.messages} messages and has {count}."
        yield _about(run, "message-count", found, "count them anew")
        tables.put_run(run._replace(messages=count))


def _check_standing(tables: Tables, run: RunRow, told: set[str]) -> Findings:
    """Messages stand while their run is committed; what the log does not tell never does."""
    for row in tables.messages_of_run(run.id):
        if row.stands == (run.status == "committed" and row.id in told):
            continue
        if row.stands and run.status == "committed":
            found = "The transcript has a message of this run that the log has not."
            yield _about(run, "message-extra", found, "keep it, but no path goes through it by itself", row.id)
        else:
            found = f"The run is {run.status}, and its message counts as if it were not."
            yield _about(run, "message-standing", found, "set right", row.id)
        tables.put_messages(run.thread, [row._replace(stands=not row.stands)])


def _check_places(tables: Tables, run: RunRow) -> Findings:
    for row in tables.messages_of_run(run.id):
        if not is_hung(tables, run.thread, row):
            found = "The message is not found from where it hangs in the tree."
            yield _about(run, "message-place", found, "hang it and all below it anew", row.id)
            hang(tables, run.thread, row)


def _check_counts(thread: str, tables: Tables) -> Findings:
    """First of all: what is added takes the next place."""
    row = thread_row(tables, thread)
    messages = _last_place(tables, row)
    runs = max((run.place for run in tables.runs(thread, limit=1)), default=0)
    if messages > row.messages or runs > row.runs:
        found = "The thread has more messages or runs than it has counted."
        yield Disagreement("thread-count", thread, found, "count them anew")
        tables.put_thread(row._replace(messages=messages, runs=max(runs, row.runs)))


def _check_leaf(thread: str, tables: Tables) -> Findings:
    row = thread_row(tables, thread)
    leaf = active_leaf(tables, row)
    wanted = leaf_through(tables, thread, leaf) if leaf else first_leaf(tables, thread)
    end = wanted.id if wanted else None
    if end != row.leaf:
        found = "The active path does not end where a path ends."
        yield Disagreement("active-leaf", thread, found, "on by the default rule", message_id=end)
        tables.put_thread(row._replace(leaf=end))


def _last_place(tables: ReadTables, row: ThreadRow) -> int:
    place = row.messages
    while rows := tables.messages(row.thread, after_place=place, limit=THREADS_AT_ONCE):
        place = rows[-1].place
    return place


def _is_good(tables: ReadTables, stream: StreamRow, snapshot: SnapshotRow) -> bool:
    """Where the log is whole it must say the same."""
    if snapshot.last_seq < stream.floor or state_in(snapshot, head=stream.head) is None:
        return False
    if stream.floor:
        return True
    from_log = replayed_from_log(tables, stream.stream, until=snapshot.last_seq)
    return encode_state(from_log.state) == snapshot.state


def _finished(run: RunRow) -> tuple[int, int]:
    return run.finished_ms or 0, run.place


def _run(tables: ReadTables, run_id: str) -> RunRow:
    run = tables.run(run_id)
    if run is None:
        raise RunNotFound
    return run


def _about(run: RunRow, kind: Kind, found: str, action: str, message: str | None = None) -> Disagreement:
    return Disagreement(kind, run.thread, found, action, run.id, message)
