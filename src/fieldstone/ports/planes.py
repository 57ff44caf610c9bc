"""Where the transport log and the durable transcript lie: one place for both, so that a run is committed at once.

The rules compare and set over several tables. So the port has no method for each rule: it runs a function inside one
transaction, and gives it the tables.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from fieldstone.core.streams import MAX_SEQ
from fieldstone.core.transcripts import RunStatus

T = TypeVar("T")


class StreamRow(NamedTuple):
    """Kept for ever, also when the stream is deleted: a seq is never used twice."""

    stream: str
    head: int = 0  # the last seq ever given; `put_events` alone moves it
    floor: int = 0  # up to it events are gone
    held_from: int | None = None  # from here on a text may still begin a secret: readers stop before it
    held_ms: int | None = None  # since when
    active_ms: int = 0


class EventRow(NamedTuple):
    seq: int
    at_ms: int
    body: bytes  # JSON of {"kind", "payload"}, clean


class EventBlock(NamedTuple):
    """Events that follow each other, as few large values: an object for each row costs a replay more than its JSON."""

    seqs: range
    times_ms: bytes  # JSON of a list: the time of each
    bodies: bytes  # JSON of a list: what the `body` of each row has


class SnapshotSeal(NamedTuple):
    """A snapshot without its state, which may be long."""

    last_seq: int
    created_ms: int
    state_version: int
    checksum: bytes


class SnapshotRow(NamedTuple):
    stream: str
    last_seq: int
    created_ms: int
    state_version: int
    checksum: bytes
    state: bytes

    @property
    def seal(self) -> SnapshotSeal:
        return SnapshotSeal(self.last_seq, self.created_ms, self.state_version, self.checksum)


class Appended(NamedTuple):
    """What an idempotency key stands for."""

    digest: bytes  # of the request: the same key with another request is a mistake
    first: int
    last: int


class RunRow(NamedTuple):
    id: str
    thread: str
    stream: str
    fork_from: str | None  # None: forked at the root
    status: RunStatus
    created_ms: int
    finished_ms: int | None
    messages: int
    active_ms: int
    place: int  # in the order of creation within the thread, from 1


class ThreadRow(NamedTuple):
    """Kept for ever, also when the thread is deleted: a place is never used twice."""

    thread: str
    created_ms: int
    active_ms: int
    leaf: str | None = None  # the end of the active path
    messages: int = 0  # ever added: the next one's place is one more
    runs: int = 0  # ever begun: the same
    deleted_ms: int | None = None


class ThreadCounts(NamedTuple):
    """What belongs to a thread beside its messages."""

    runs: int
    streams: int
    snapshots: int  # of these streams


class MessageRow(NamedTuple):
    """A message without what it says, which `bodies` has: most ways through the tree need only this."""

    id: str
    parent: str | None
    run: str
    role: str
    created_ms: int
    place: int  # in the order of creation within the thread, from 1
    depth: int
    jump: str | None  # an ancestor further up, so that the one at any depth is found in O(log n) reads
    stands: bool  # its run is committed and not superseded


class ReadTables(Protocol):
    """One consistent state of one scope. What another scope has is not there."""

    def stream(self, stream: str) -> StreamRow | None: ...

    def streams(self, *, after: str = "", limit: int) -> list[StreamRow]:
        """By id, those above `after`. Deleted ones are among them."""
        ...

    def events(self, stream: str, *, after: int, limit: int, until: int | None = None) -> list[EventRow]:
        """Events with `after` < seq ≤ `until`, ascending, at most `limit`.

        Those up to the floor are out of sight, whether or not their rows are deleted yet.
        """
        ...

    def event_blocks(self, stream: str, *, after: int, limit: int, until: int | None = None) -> list[EventBlock]:
        """The same events, for whoever decodes them all. None of the blocks is empty, or too large for one value."""
        ...

    def truncated(self, *, limit: int) -> list[str]:
        """Streams that still have rows up to their floor, for `delete_events`."""
        ...

    def snapshot(self, stream: str) -> SnapshotRow | None:
        """The newest: the one with the highest `last_seq`."""
        ...

    def snapshots(self, stream: str) -> list[SnapshotRow]:
        """The newest first."""
        ...

    def seals(self, stream: str) -> list[SnapshotSeal]:
        """Of the same."""
        ...

    def appended(self, stream: str, key: str) -> Appended | None: ...

    def readers(self, stream: str) -> dict[str, int]:
        """The cursor of each registered reader."""
        ...

    def streams_with_reader(self, prefix: str) -> list[str]:
        """By id, those with a reader whose name begins so."""
        ...

    def run(self, run_id: str) -> RunRow | None: ...

    def run_of_stream(self, stream: str) -> RunRow | None: ...

    def runs(self, thread: str, *, before_place: int | None = None, limit: int) -> list[RunRow]:
        """The newest first."""
        ...

    def runs_forked_at(self, thread: str, message: str | None) -> list[RunRow]:
        """The oldest first. None: those forked at the root."""
        ...

    def open_runs(self, *, inactive_since_ms: int | None = None) -> list[RunRow]:
        """Created or streaming, of all threads, the longest inactive first: those with `active_ms` ≤ the given one."""
        ...

    def thread(self, thread: str) -> ThreadRow | None: ...

    def thread_counts(self, thread: str) -> ThreadCounts: ...

    def threads(self, *, after: str = "", limit: int) -> list[ThreadRow]:
        """By id, those above `after`. Deleted ones are among them."""
        ...

    def message(self, thread: str, message_id: str) -> MessageRow | None: ...

    def children(self, thread: str, parent: str | None, *, limit: int | None = None) -> list[MessageRow]:
        """Those that stand first, of each kind the newest first. The parent itself need not be there (yet)."""
        ...

    def messages(self, thread: str, *, after_place: int, limit: int) -> list[MessageRow]:
        """In the order of creation."""
        ...

    def messages_of_run(self, run_id: str) -> list[MessageRow]:
        """In the order of creation."""
        ...

    def bodies(self, thread: str, places: Sequence[int]) -> dict[int, bytes]:
        """What the messages at these places say, as JSON of the CanonicalMessage. Those not there are left out."""
        ...


class Tables(ReadTables, Protocol):
    """A transaction under way: it reads what it has written.

    `put_…` inserts a row or replaces the one with its id. What would break a promise is a `ValueError`, and a mistake
    of the caller.
    """

    def put_stream(self, row: StreamRow) -> None:
        """All but the head, which must be the one it has, 0 for a new stream. A floor never falls or passes the head.

        `ValueError` otherwise.
        """
        ...

    def put_events(self, stream: str, rows: Sequence[EventRow]) -> None:
        """Append them and move the head. `ValueError` where they do not continue it: a stream has no gap."""
        ...

    def replace_events(self, stream: str, rows: Sequence[EventRow]) -> None:
        """Other bodies and times for events that are there. `ValueError` for one that is not."""
        ...

    def delete_events(self, stream: str, *, limit: int) -> int:
        """Delete rows up to the floor, the oldest first. How many went: fewer than `limit` when none is left."""
        ...

    def put_snapshot(self, row: SnapshotRow) -> None:
        """Beside the older ones, so that a new one can be verified before they go; instead of the one of its seq."""
        ...

    def grow_snapshot(self, stream: str, last_seq: int, more: bytes, *, at: int) -> bool:
        """Put so much more behind the state of the one of this seq. False: it is gone, or has not `at` bytes by now."""
        ...

    def seal_snapshot(self, stream: str, seal: SnapshotSeal) -> bool:
        """The one of this seq keeps its state and is told to be this. Whether it was there."""
        ...

    def drop_snapshots(self, stream: str, *, but: int | None = None) -> int:
        """All, or all but the one whose `last_seq` is `but`. How many went."""
        ...

    def erode_snapshots(self, stream: str) -> bool:
        """Delete a piece of the oldest one that ends below the floor, or what is left of it. Whether there was one."""
        ...

    def put_appended(self, stream: str, key: str, appended: Appended) -> None: ...

    def drop_appended(self, stream: str, *, limit: int) -> int:
        """Forget the stream's idempotency keys, as many at a time. How many went."""
        ...

    def put_reader(self, stream: str, name: str, seq: int) -> None: ...

    def drop_reader(self, stream: str, name: str) -> bool:
        """Whether there was one."""
        ...

    def rename_stream(self, stream: str, name: str) -> None:
        """It, and all that belongs to it, has this name from now on. `ValueError` where there is none, or another."""
        ...

    def rename_thread(self, thread: str, name: str) -> None:
        """The same for a thread."""
        ...

    def put_run(self, row: RunRow) -> None: ...

    def put_thread(self, row: ThreadRow) -> None: ...

    def put_messages(self, thread: str, rows: Sequence[MessageRow]) -> None: ...

    def put_bodies(self, thread: str, bodies: Mapping[int, bytes]) -> None:
        """By place. `ValueError` where no message has it: put the messages first."""
        ...

    def restand(self, run_id: str, stands: bool) -> None:
        """For all messages of the run."""
        ...

    def drop_thread(self, thread: str, *, limit: int) -> int:
        """Delete its messages with their bodies, then its runs, the oldest first, at most `limit` of them.

        How many went: fewer than `limit` when none is left. The row of the thread itself stays.
        """
        ...


class PlaneStore(Protocol):
    """The planes of one scope: of one field of one tenant. Several processes may write at once.

    `work` is a plain function that runs in a thread of the store, or in the event loop's: quick, and without waiting
    for anything. It may run a second time, after all that it did the first time is undone, so it must change nothing
    but the tables.
    """

    async def write(self, work: Callable[[Tables], T], *, large: bool = False) -> T:
        """One transaction: on disk and visible to every read when this returns, undone whole where `work` raises.

        `large`: it writes megabytes, for which the event loop must not wait on the spot.

        `StorageFull` where there is no room. Writes that wait share one commit, and one that raises undoes only itself.
        Who is cancelled does not know: it was written, or it was not.
        """
        ...

    async def read(self, work: Callable[[ReadTables], T]) -> T:
        """One consistent state, which a writer neither changes meanwhile nor makes wait for."""
        ...

    async def changed(self, seen: int, *, timeout_ms: int) -> int:
        """Wait until anybody, in any process and any scope, has written since the number was `seen`: the number then.

        After `timeout_ms` the number as it is. What was written before a number is given can be read. Numbers of two
        openings have nothing to do with each other; any number that was never given, say -1, returns at once.
        """
        ...

    async def scour(self) -> bool:
        """Overwrite what replaced and deleted rows left. False: a reader of an older state is open, so ask again."""
        ...

    async def bytes_used(self) -> int: ...

    async def close(self) -> None:
        """When all that was asked is written. Twice does no harm."""
        ...


class PlaneFile(Protocol):
    """The planes of all fields of a store, in one place."""

    def open(self, scope: str) -> PlaneStore:
        """`scope` names tenant and field: what lies in another one does not exist here. Opened twice, both see all."""
        ...

    async def close(self) -> None:
        """Close the stores that are open, and the place."""
        ...


def in_range(number: int) -> int:
    """A seq or a place that a store can hold; `ValueError` for another."""
    if not 0 <= number <= MAX_SEQ:
        raise ValueError(f"a seq or place is a number up to {MAX_SEQ}, not {number}")
    return number
