"""The sweep of the planes: secrets that became known late are cleared from events, snapshots and messages.

Every text takes the road of a new one; deltas are joined as they were when they came. What comes out different takes
the place of what lay there. A sweep may be cut off and done again: what is clean is left alone.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from msgspec import Struct, json

from fieldstone.core.streams import TEXT_DELTA, StreamEvent
from fieldstone.planes.below_floor import rewrite_below_floor, text_below_floor
from fieldstone.planes.messages import decode_state, go_on_from
from fieldstone.planes.openings import Literals
from fieldstone.planes.snapshots import snapshot_of, state_in
from fieldstone.planes.streams import Streams, drop_snapshots_from
from fieldstone.planes.trails import StreamTrail, clean_values, clean_words, follow, read_back, with_text
from fieldstone.ports.planes import EventRow, MessageRow, PlaneStore, ReadTables, SnapshotRow, StreamRow, Tables
from fieldstone.redact import Harness

EVENTS_AT_ONCE: Final = 500
MESSAGES_AT_ONCE: Final = 200
NAMES_AT_ONCE: Final = 500
TRIES: Final = 3  # of a stream that is written while it is swept

_encoder: Final = json.Encoder()
_events: Final = json.Decoder(StreamEvent)


class PlanesSwept(Struct, frozen=True):
    """How many of each were replaced."""

    events: int
    snapshots: int
    messages: int


async def sweep_planes(streams: Streams) -> PlanesSwept:
    harness, literals = await streams.harness(), await streams.beginnings()
    events = snapshots = messages = 0
    async for row in _all_streams(streams.store):
        snapshots += await streams.store.write(partial(_sweep_snapshots, harness, row.stream))
        events += await _sweep_stream(streams.store, harness, literals, row.stream)
    async for thread in _all_threads(streams.store):
        messages += await _sweep_thread(streams.store, harness, thread)
    streams.forget_texts()
    if events or snapshots or messages:
        await streams.scour()
    return PlanesSwept(events, snapshots, messages)


# --- events ----------------------------------------------------------------------------------------------------------


async def _sweep_stream(store: PlaneStore, harness: Harness, literals: Literals, stream: str) -> int:
    replaced = 0
    for _ in range(TRIES):
        done = await _sweep_events(store, harness, literals, stream)
        replaced += abs(done)
        if done >= 0:
            break
    return replaced


async def _sweep_events(store: PlaneStore, harness: Harness, literals: Literals, stream: str) -> int:
    """How many were replaced; less than 0 where some were not, because somebody else had rewritten them meanwhile."""
    trail = await store.read(partial(_trail_at_floor, stream))
    seen: dict[int, EventRow] = {}
    replaced = 0
    while True:
        after = trail.head
        rows = await store.read(lambda tables: tables.events(stream, after=after, limit=EVENTS_AT_ONCE))  # noqa: B023
        if not rows or rows[0].seq != after + 1:  # the end; or it was compacted meanwhile, and a new look is due
            return -replaced if rows else replaced
        events = [_events.decode(each.body) for each in rows]
        followed = follow(harness, literals, trail, clean_words(harness, events))
        seen = {seq: each for seq, each in seen.items() if seq in _open_seqs(trail)} | {each.seq: each for each in rows}
        changes = [
            (each, each._replace(body=_encoder.encode(now)))
            for each, event, now in zip(rows, events, followed.events, strict=True)
            if event != now
        ]
        below = followed.rewritten.get(trail.floor)
        for seq in followed.rewritten.keys() - {trail.floor}:
            before, text = seen[seq], followed.rewritten[seq]
            changes.append(
                (before, before._replace(body=_encoder.encode(with_text(_events.decode(before.body), text))))
            )
        if changes:
            replaced += len(changes)
            if not await store.write(partial(_replace, stream, trail.floor, below, changes)):
                return -replaced
        trail = followed.trail


def _open_seqs(trail: StreamTrail) -> set[int]:
    return {piece.seq for text in trail.texts.values() for piece in text.pieces}


def _trail_at_floor(stream: str, tables: ReadTables) -> StreamTrail:
    """What the snapshot says of a text that goes on behind it."""
    row = tables.stream(stream) or StreamRow(stream)
    below = text_below_floor(tables, row)
    texts = {TEXT_DELTA: read_back([(row.floor, below)])} if below else {}
    return StreamTrail(row.floor, texts, row.floor)


def _replace(
    stream: str, floor: int, below: str | None, changes: Sequence[tuple[EventRow, EventRow]], tables: Tables
) -> bool:
    """Whether all of them were still as they were read."""
    row = tables.stream(stream)
    if below is not None and row is not None and row.floor == floor:
        rewrite_below_floor(tables, row, below)
    still = [
        now
        for before, now in changes
        if tables.events(stream, after=before.seq - 1, limit=1, until=before.seq) == [before]
    ]
    if still:
        tables.replace_events(stream, still)
        drop_snapshots_from(tables, stream, min(each.seq for each in still))
    return len(still) == len(changes)


# --- snapshots and messages ------------------------------------------------------------------------------------------


def _sweep_snapshots(harness: Harness, stream: str, tables: Tables) -> int:
    row = tables.stream(stream) or StreamRow(stream)
    replaced = 0
    for snapshot in tables.snapshots(stream):
        if state_in(snapshot, head=row.head) is not None and (clean := _clean_snapshot(harness, snapshot)) is not None:
            tables.put_snapshot(clean)
            replaced += 1
    return replaced


def _clean_snapshot(harness: Harness, snapshot: SnapshotRow) -> SnapshotRow | None:
    state = _clean_json(harness, snapshot.state)
    if state is None:
        return None
    messages = go_on_from(decode_state(state), snapshot.last_seq)
    return snapshot_of(snapshot.stream, messages, now_ms=snapshot.created_ms)


async def _sweep_thread(store: PlaneStore, harness: Harness, thread: str) -> int:
    replaced = place = 0
    while True:
        after = place
        page = await store.read(lambda tables: _bodies(tables, thread, after))  # noqa: B023
        if not page:
            return replaced
        place = max(page)
        clean = {each: body for each, text in page.items() if (body := _clean_json(harness, text)) is not None}
        if clean:
            replaced += await store.write(partial(_replace_bodies, thread, page, clean))


def _bodies(tables: ReadTables, thread: str, after: int) -> dict[int, bytes]:
    rows: list[MessageRow] = tables.messages(thread, after_place=after, limit=MESSAGES_AT_ONCE)
    return tables.bodies(thread, [each.place for each in rows])


def _replace_bodies(thread: str, read: Mapping[int, bytes], clean: Mapping[int, bytes], tables: Tables) -> int:
    now = tables.bodies(thread, list(clean))
    still = {place: body for place, body in clean.items() if now.get(place) == read[place]}  # not those deleted since
    tables.put_bodies(thread, still)
    return len(still)


def _clean_json(harness: Harness, text: bytes) -> bytes | None:
    """None where there is nothing to take out."""
    value: Any = json.decode(text)
    clean = clean_values(harness, value)
    return None if clean is value else _encoder.encode(clean)


# --- all of them -----------------------------------------------------------------------------------------------------


async def _all_streams(store: PlaneStore) -> AsyncIterator[StreamRow]:
    after = ""
    while page := await store.read(lambda tables: tables.streams(after=after, limit=NAMES_AT_ONCE)):  # noqa: B023
        for row in page:
            yield row
        after = page[-1].stream


async def _all_threads(store: PlaneStore) -> AsyncIterator[str]:
    after = ""
    while page := await store.read(lambda tables: tables.threads(after=after, limit=NAMES_AT_ONCE)):  # noqa: B023
        for row in page:
            yield row.thread
        after = page[-1].thread
