"""Snapshots of a stream's messages: a cache that is believed only as far as it can be checked.

A snapshot and the tail after it give what the whole log gives, byte for byte. One that cannot be read is discarded, and
the log alone is correct.
"""

from hashlib import blake2b
from typing import Final

from msgspec import DecodeError, Raw, Struct, ValidationError

from fieldstone.planes.messages import (
    STATE_VERSION,
    Messages,
    MessagesState,
    decode_events,
    decode_state,
    encode_state,
    go_on_from,
    project_messages,
)
from fieldstone.planes.projector import SequenceGap
from fieldstone.ports.planes import ReadTables, SnapshotRow, StreamRow, Tables
from fieldstone.retrieval.reading import timestamp

CHECKSUM_BYTES: Final = 32
REPLAYED_AT_ONCE: Final = 1_000  # events in memory at a time


class Snapshot(Struct, frozen=True, gc=False, rename="camel"):
    """As readers get it."""

    stream_id: str
    state: Raw
    last_seq: int
    created_at: str
    state_version: int
    checksum: str


def replayed(tables: ReadTables, stream: str, *, until: int | None = None) -> Messages:
    """The messages up to the stream's head, or `until`: from its newest good snapshot, else from the log alone."""
    row = tables.stream(stream) or StreamRow(stream)
    end = row.head if until is None else min(until, row.head)
    messages = _warm(tables, row, end) or _cold(tables, row)
    _advance(tables, stream, messages, end)
    return messages


def replayed_from_log(tables: ReadTables, stream: str, *, until: int | None = None) -> Messages:
    """Without any snapshot: what the log still holds."""
    row = tables.stream(stream) or StreamRow(stream)
    messages = _cold(tables, row)
    _advance(tables, stream, messages, row.head if until is None else min(until, row.head))
    return messages


def uncovered(tables: ReadTables, stream: str) -> tuple[int, int]:
    """The events that no snapshot stands for: after the first seq, up to the second."""
    row = tables.stream(stream) or StreamRow(stream)
    newest = next((seal.last_seq for seal in tables.seals(stream)), 0)
    return max(row.floor, newest), row.head


def take_snapshot(tables: Tables, stream: str, *, now_ms: int, until: int | None = None) -> SnapshotRow | None:
    """None where there is nothing to take. Older ones stay: this one may still turn out to be bad."""
    messages = replayed(tables, stream, until=until)
    if not messages.last_seq:
        return None
    taken = snapshot_of(stream, messages, now_ms=now_ms)
    tables.put_snapshot(taken)
    return taken


def snapshot_of(stream: str, messages: Messages, *, now_ms: int) -> SnapshotRow:
    state = encode_state(messages.state)
    return SnapshotRow(
        stream,
        messages.last_seq,
        now_ms,
        STATE_VERSION,
        _checksum(stream, messages.last_seq, STATE_VERSION, state),
        state,
    )


def state_in(row: SnapshotRow, *, head: int) -> MessagesState | None:
    """None for a snapshot of an unknown version, with a bad checksum, or of events that the stream never had."""
    if row.state_version != STATE_VERSION or row.last_seq > head:
        return None
    if row.checksum != _checksum(row.stream, row.last_seq, row.state_version, row.state):
        return None
    try:
        return decode_state(row.state)
    except (DecodeError, ValidationError):
        return None


def shown(row: SnapshotRow) -> Snapshot:
    created_at = timestamp(row.created_ms)
    return Snapshot(row.stream, Raw(row.state), row.last_seq, created_at, row.state_version, row.checksum.hex())


def _advance(tables: ReadTables, stream: str, messages: Messages, end: int) -> None:
    while messages.last_seq < end:
        blocks = tables.event_blocks(stream, after=messages.last_seq, limit=REPLAYED_AT_ONCE, until=end)
        if not messages.apply(decode_events(blocks)):
            raise SequenceGap(messages.last_seq + 1, end)


def _warm(tables: ReadTables, row: StreamRow, end: int) -> Messages | None:
    """A snapshot that ends before the floor does not help: what lies between is gone."""
    for snapshot in tables.snapshots(row.stream):
        if row.floor <= snapshot.last_seq <= end and (state := state_in(snapshot, head=row.head)) is not None:
            return go_on_from(state, snapshot.last_seq)
    return None


def _cold(tables: ReadTables, row: StreamRow) -> Messages:
    run = tables.run_of_stream(row.stream)
    return project_messages(row.stream, run.fork_from if run else None, last_seq=row.floor)


def _checksum(stream: str, last_seq: int, version: int, state: bytes) -> bytes:
    checksum = blake2b(f"{stream}\n{last_seq}\n{version}\n".encode(), digest_size=CHECKSUM_BYTES)
    checksum.update(state)
    return checksum.digest()
