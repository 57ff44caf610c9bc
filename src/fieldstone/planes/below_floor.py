"""The running text that a compaction has cut in two: its first part is in the snapshot, and may have to change.

A secret that begins there and is completed behind the floor must not be left half in the one and half in the other.
"""

from fieldstone.planes.messages import Chain, MessagesState, go_on_from
from fieldstone.planes.snapshots import snapshot_of, state_in
from fieldstone.ports.planes import ReadTables, SnapshotRow, StreamRow, Tables


def text_below_floor(tables: ReadTables, row: StreamRow) -> str:
    """What the snapshot at the floor has of a text that is not ended; empty where there is none."""
    found = _at_floor(tables, row)
    return "" if found is None else _running_text(found[1])


def rewrite_below_floor(tables: Tables, row: StreamRow, text: str) -> None:
    """The snapshot at the floor, with another running text."""
    found = _at_floor(tables, row)
    if found is None:
        return
    snapshot, state = found
    messages = go_on_from(state._replace(text=Chain(None, text)), snapshot.last_seq)
    tables.put_snapshot(snapshot_of(row.stream, messages, now_ms=snapshot.created_ms))


def _at_floor(tables: ReadTables, row: StreamRow) -> tuple[SnapshotRow, MessagesState] | None:
    if not row.floor:
        return None
    for snapshot in tables.snapshots(row.stream):
        if snapshot.last_seq == row.floor and (state := state_in(snapshot, head=row.head)) is not None:
            return snapshot, state
    return None


def _running_text(state: MessagesState) -> str:
    pieces: list[str] = []
    chain = state.text
    while chain is not None:
        pieces.append(chain.item)
        chain = chain.before
    return "".join(reversed(pieces))
