"""Rows of the planes' tables for tests, and works that put them there. A store does not look inside the bodies."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from fieldstone.ports.planes import (
    Appended,
    EventRow,
    MessageRow,
    ReadTables,
    RunRow,
    SnapshotRow,
    StreamRow,
    Tables,
    ThreadRow,
)

NOW_MS: Final = 1_750_000_000_000
PLENTY: Final = 1_000_000


def event_row(seq: int, said: str = "word") -> EventRow:
    return EventRow(seq, NOW_MS + seq, b'{"kind":"text-delta","payload":{"delta":"%s %d"}}' % (said.encode(), seq))


def event_rows(count: int, *, after: int = 0, said: str = "word") -> list[EventRow]:
    return [event_row(seq, said) for seq in range(after + 1, after + count + 1)]


def snapshot_row(last_seq: int, *, stream: str = "s", state: bytes = b'{"messages":[]}') -> SnapshotRow:
    return SnapshotRow(stream, last_seq, NOW_MS, 1, b"checksum of %7d" % last_seq, state)


def run_row(place: int, *, thread: str = "t", **other: Any) -> RunRow:
    name = f"run-{thread}-{place}"
    row = RunRow(name, thread, f"run:{name}", None, "created", NOW_MS, None, 0, NOW_MS + place, place)
    return row._replace(**other)


def message_row(place: int, *, parent: str | None = None, **other: Any) -> MessageRow:
    row = MessageRow(f"msg-{place}", parent, "run-t-1", "assistant", NOW_MS, place, 1, None, stands=True)
    return row._replace(**other)


def append(stream: str, count: int, *, said: str = "word") -> Callable[[Tables], int]:
    """The way that the rules do it: the seqs are taken inside the transaction."""

    def work(tables: Tables) -> int:
        held = tables.stream(stream) or StreamRow(stream)
        tables.put_stream(held._replace(active_ms=NOW_MS))
        tables.put_events(stream, event_rows(count, after=held.head, said=said))
        return held.head + count

    return work


def truncate(stream: str, floor: int) -> Callable[[Tables], None]:
    def work(tables: Tables) -> None:
        tables.put_stream(there(tables.stream(stream))._replace(floor=floor))

    return work


# --- rows of every table ---------------------------------------------------------------------------------------------


def there(row: StreamRow | None) -> StreamRow:
    assert row is not None
    return row


def body(place: int) -> bytes:
    return b'{"id":"msg-%d"}' % place


def put_runs(tables: Tables, rows: Sequence[RunRow]) -> None:
    for thread in sorted({row.thread for row in rows}):
        tables.put_thread(ThreadRow(thread, NOW_MS, NOW_MS))
    for row in rows:
        tables.put_run(row)


def put_messages(tables: Tables, rows: Sequence[MessageRow]) -> None:
    put_runs(tables, [run_row(1), run_row(2)])
    tables.put_messages("t", rows)
    tables.put_bodies("t", {row.place: body(row.place) for row in rows})


def fill(tables: Tables) -> None:
    """A row or two in every table."""
    append("s", 5)(tables)
    truncate("s", 2)(tables)
    tables.put_snapshot(snapshot_row(2))
    tables.put_appended("s", "key", Appended(b"digest", 1, 5))
    tables.put_reader("s", "ada", 3)
    put_messages(tables, [message_row(1), message_row(2, parent="msg-1")])


def change_all(tables: Tables) -> None:
    """Something in every table that `fill` has filled."""
    append("s", 3)(tables)
    append("another", 3)(tables)
    tables.replace_events("s", [event_row(4, "[REDACTED]")])
    truncate("s", 3)(tables)
    tables.delete_events("s", limit=2)
    tables.drop_snapshots("s")
    tables.put_snapshot(snapshot_row(3))
    tables.drop_appended("s", limit=9)
    tables.put_appended("s", "other key", Appended(b"digest", 6, 8))
    tables.put_reader("s", "ada", 4)
    tables.put_reader("s", "ben", 5)
    tables.put_run(run_row(1, status="streaming"))
    tables.put_thread(ThreadRow("t", NOW_MS, NOW_MS + 9, leaf="msg-2"))
    tables.put_messages("t", [message_row(3, parent="msg-2"), message_row(2, parent="msg-1", depth=2)])
    tables.put_bodies("t", {1: b"{}", 3: b"{}"})
    tables.restand("run-t-1", stands=False)


def everything(tables: ReadTables) -> dict[str, object]:
    """What `fill` and `change_all` may have left, by table."""
    return {
        "streams": tables.streams(limit=PLENTY),
        "events": [tables.events(stream, after=0, limit=PLENTY) for stream in ("s", "another")],
        "truncated": tables.truncated(limit=PLENTY),
        "snapshots": (tables.snapshot("s"), tables.snapshots("s")),
        "appended": [tables.appended("s", key) for key in ("key", "other key")],
        "readers": tables.readers("s"),
        "runs": (tables.run("run-t-1"), tables.run_of_stream("run:run-t-2"), tables.runs("t", limit=PLENTY)),
        "forks": tables.runs_forked_at("t", None),
        "open": tables.open_runs(),
        "threads": (tables.thread("t"), tables.threads(limit=PLENTY)),
        "messages": (tables.message("t", "msg-1"), tables.messages("t", after_place=0, limit=PLENTY)),
        "children": [tables.children("t", parent) for parent in (None, "msg-1", "msg-2")],
        "of run": tables.messages_of_run("run-t-1"),
        "bodies": tables.bodies("t", range(9)),
    }


NOTHING: Final[dict[str, object]] = {
    "streams": [],
    "events": [[], []],
    "truncated": [],
    "snapshots": (None, []),
    "appended": [None, None],
    "readers": {},
    "runs": (None, None, []),
    "forks": [],
    "open": [],
    "threads": (None, []),
    "messages": (None, []),
    "children": [[], [], []],
    "of run": [],
    "bodies": {},
}
