"""The sweep of the planes: secrets that became known late are cleared from events, snapshots and messages.

Every text takes the road of a new one; deltas are joined as they were when they came. What comes out different takes
the place of what lay there. A sweep may be cut off and done again: what is clean is left alone.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, Final, NamedTuple

from msgspec import Struct, json

from fieldstone.core.errors import InternalError
from fieldstone.core.streams import MAX_STREAM_ID_CHARS, REASONING, TEXT_DELTA, StreamEvent
from fieldstone.planes.below_floor import rewrite_below_floor, text_below_floor
from fieldstone.planes.compaction import KEPT_PLACE_VERSION
from fieldstone.planes.messages import decode_state, go_on_from
from fieldstone.planes.snapshots import snapshot_of, state_in
from fieldstone.planes.streams import KINDS, Streams, drop_snapshots_from
from fieldstone.planes.trails import (
    DELTAS,
    StreamTrail,
    clean_values,
    clean_words,
    follow,
    read_back,
    text_of,
    with_text,
)
from fieldstone.ports.planes import EventRow, MessageRow, PlaneStore, ReadTables, SnapshotRow, StreamRow, Tables
from fieldstone.redact import Harness
from fieldstone.redact.harness import UNSETTLED
from fieldstone.redact.markers import marker
from fieldstone.redact.openings import Literals

EVENTS_AT_ONCE: Final = 500
MESSAGES_AT_ONCE: Final = 200
NAMES_AT_ONCE: Final = 500
NAME_CHARACTERS_MAX: Final = MAX_STREAM_ID_CHARS - 12
TRIES: Final = 10  # of a stream that is rewritten or compacted while it is swept
PARTS: Final = {"text": TEXT_DELTA, "reasoning": REASONING}  # what deltas of a kind become in a message
DEEPER: Final = 8  # levels that a message and a state put around an event's payload

_encoder: Final = json.Encoder()
_events: Final = json.Decoder(StreamEvent)


class PlanesSwept(Struct, frozen=True):
    """How many of each were replaced. `names`: ids of streams and threads, and readers' names. They have a new one with
    a marker in place of the secret: under the old one nobody could do anything any more, it is refused."""

    events: int
    snapshots: int
    messages: int
    names: int = 0


class _Tools(NamedTuple):
    store: PlaneStore
    harness: Harness
    literals: Literals


class _Page(NamedTuple):
    """A page of events, followed: each change is a row as it was read, and as it is to be."""

    trail: StreamTrail
    changes: Sequence[tuple[EventRow, EventRow]]
    below: str | None  # what a text that began below the floor has now


class _Attempt(NamedTuple):
    replaced: int
    is_whole: bool  # False: somebody else rewrote or compacted it meanwhile


async def sweep_planes(streams: Streams) -> PlanesSwept:
    tools = _Tools(streams.store, await streams.harness(), await streams.beginnings())
    events = snapshots = messages = names = 0
    async for row in _all_streams(tools.store):
        stream = await _sweep_name(tools, row.stream, _rename_stream)
        names += (stream != row.stream) + await _sweep_readers(tools, stream)
        snapshots += await _sweep_snapshots(tools, stream)
        events += await _sweep_stream(tools, stream)
        snapshots += await _sweep_snapshots(tools, stream)  # one that was taken meanwhile
    async for told in _all_threads(tools.store):
        thread = await _sweep_name(tools, told, _rename_thread)
        names += thread != told
        messages += await _sweep_thread(tools, thread)
    streams.forget_texts()
    await streams.scour()  # always: a sweep that was cut off before it has nothing left to replace
    return PlanesSwept(events, snapshots, messages, names)


# --- names -----------------------------------------------------------------------------------------------------------


async def _sweep_name(tools: _Tools, name: str, rename: Callable[[Tables, str, str], str]) -> str:
    """The name that it has now: without a secret the same one."""
    if not any(tools.harness.holds_secret([name])):
        return name
    clean = _clean_name(tools.harness, name)
    return await tools.store.write(lambda tables: rename(tables, name, clean))


async def _sweep_readers(tools: _Tools, stream: str) -> int:
    """Those of readers and holds. How many."""
    readers = await tools.store.read(lambda tables: tables.readers(stream))
    offences = zip(readers, tools.harness.holds_secret(list(readers)), strict=True)
    dirty = {name: _clean_name(tools.harness, name) for name, offence in offences if offence is not None}
    if dirty:
        await tools.store.write(lambda tables: _rename_readers(tables, stream, dirty))
    return len(dirty)


def _clean_name(harness: Harness, name: str) -> str:
    """So short that a number fits behind it: two names must not become the same one."""
    clean = harness.clean_one(name).text
    return clean if len(clean) <= NAME_CHARACTERS_MAX else marker(UNSETTLED).decode()


def _numbered(clean: str, is_taken: Callable[[str], bool]) -> str:
    return next(name for number in count(1) if not is_taken(name := f"{clean}#{number}"))


def _rename_stream(tables: Tables, stream: str, clean: str) -> str:
    name = _numbered(clean, lambda name: tables.stream(name) is not None)
    tables.rename_stream(stream, name)
    return name


def _rename_thread(tables: Tables, thread: str, clean: str) -> str:
    name = _numbered(clean, lambda name: tables.thread(name) is not None)
    tables.rename_thread(thread, name)
    return name


def _rename_readers(tables: Tables, stream: str, clean: Mapping[str, str]) -> None:
    for name, seq in tables.readers(stream).items():
        if name in clean:
            tables.put_reader(stream, _numbered(clean[name], tables.readers(stream).__contains__), seq)
            tables.drop_reader(stream, name)


# --- events ----------------------------------------------------------------------------------------------------------


async def _sweep_stream(tools: _Tools, stream: str) -> int:
    replaced = 0
    for _ in range(TRIES):
        attempt = await _sweep_events(tools, stream)
        replaced += attempt.replaced
        if attempt.is_whole:
            return replaced
    raise InternalError("A stream was rewritten over and over while it was swept. Sweep again when it is quieter.")


async def _sweep_events(tools: _Tools, stream: str) -> _Attempt:
    trail = await tools.store.read(partial(_trail_at_floor, tools.harness, stream))
    seen: dict[int, EventRow] = {}
    replaced = 0
    while rows := await tools.store.read(partial(_events_after, stream, trail.head)):
        if rows[0].seq != trail.head + 1:
            return _Attempt(replaced, is_whole=False)
        still_open = _open_seqs(trail)
        seen = {seq: each for seq, each in seen.items() if seq in still_open} | {each.seq: each for each in rows}
        page = await asyncio.to_thread(_followed, tools, trail, rows, seen)
        if page.changes:
            replaced += len(page.changes)
            if not await tools.store.write(partial(_replace, stream, trail.floor, page.below, page.changes)):
                return _Attempt(replaced, is_whole=False)
            seen |= {now.seq: now for _, now in page.changes}
        trail = page.trail
    return _Attempt(replaced, is_whole=True)


def _followed(tools: _Tools, trail: StreamTrail, rows: Sequence[EventRow], seen: Mapping[int, EventRow]) -> _Page:
    events = [_events.decode(each.body) for each in rows]
    clean = [_with_clean_kind(tools.harness, each) for each in clean_words(tools.harness, events)]
    followed = follow(tools.harness, tools.literals, trail, clean)
    changes = [
        (each, each._replace(body=_encoder.encode(now)))
        for each, event, now in zip(rows, events, followed.events, strict=True)
        if event != now
    ]
    for seq in followed.rewritten.keys() - {trail.floor}:
        before = seen[seq]
        now = with_text(_events.decode(before.body), followed.rewritten[seq])
        changes.append((before, before._replace(body=_encoder.encode(now))))
    return _Page(followed.trail, changes, followed.rewritten.get(trail.floor))


def _with_clean_kind(harness: Harness, event: StreamEvent) -> StreamEvent:
    """A kind of its own is a word that a client chose."""
    if event.kind in KINDS:
        return event
    clean = harness.clean_one(event.kind).text
    return event if clean == event.kind else StreamEvent(clean, event.payload)


def _events_after(stream: str, after: int, tables: ReadTables) -> list[EventRow]:
    return tables.events(stream, after=after, limit=EVENTS_AT_ONCE)


def _open_seqs(trail: StreamTrail) -> set[int]:
    return {piece.seq for text in trail.texts.values() for piece in text.pieces}


def _trail_at_floor(harness: Harness, stream: str, tables: ReadTables) -> StreamTrail:
    """What the snapshot says of a text that goes on behind it."""
    row = tables.stream(stream) or StreamRow(stream)
    below = text_below_floor(tables, row)
    texts = {TEXT_DELTA: read_back(harness, [(row.floor, below)])} if below else {}
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


async def _sweep_snapshots(tools: _Tools, stream: str) -> int:
    row, taken = await tools.store.read(lambda tables: (tables.stream(stream), tables.snapshots(stream)))
    replaced = 0
    for snapshot in taken:
        clean = await asyncio.to_thread(_clean_snapshot, tools, row or StreamRow(stream), snapshot)
        if clean is not None:
            replaced += await tools.store.write(partial(_replace_snapshot, snapshot, clean))
    return replaced


def _clean_snapshot(tools: _Tools, row: StreamRow, snapshot: SnapshotRow) -> SnapshotRow | None:
    """None where there is nothing to take out. Of one that nobody can read only its place is left."""
    if state_in(snapshot, head=row.head) is None:
        holds = any(tools.harness.holds_secret([snapshot.state.decode(errors="replace")]))
        return snapshot._replace(state_version=KEPT_PLACE_VERSION, checksum=b"", state=b"") if holds else None
    state: dict[str, Any] = json.decode(snapshot.state)
    draft = [] if state["draft"] is None else [state["draft"]]
    messages, calls = _clean_told(
        tools, [_clean_message(tools, each) for each in (*state["messages"], *draft)], state["openCalls"]
    )
    clean = {
        **state,
        "messages": messages[: len(state["messages"])],
        "draft": messages[-1] if draft else None,
        "openCalls": calls,
    }
    if clean == state:
        return None
    going_on = go_on_from(decode_state(_encoder.encode(clean)), snapshot.last_seq)
    return snapshot_of(snapshot.stream, going_on, now_ms=snapshot.created_ms)


def _replace_snapshot(before: SnapshotRow, now: SnapshotRow, tables: Tables) -> bool:
    """Not where it was dropped or taken anew since."""
    is_there = before in tables.snapshots(before.stream)
    if is_there:
        tables.put_snapshot(now)
    return is_there


async def _sweep_thread(tools: _Tools, thread: str) -> int:
    replaced = place = 0
    while page := await tools.store.read(partial(_bodies, thread, place)):
        place = max(page)
        clean = await asyncio.to_thread(_clean_bodies, tools, page)
        if clean:
            replaced += await tools.store.write(partial(_replace_bodies, thread, page, clean))
    return replaced


def _clean_bodies(tools: _Tools, page: Mapping[int, bytes]) -> dict[int, bytes]:
    """Those that have to change."""
    changed: dict[int, bytes] = {}
    for place, body in page.items():
        message: dict[str, Any] = json.decode(body)
        [clean], _ = _clean_told(tools, [_clean_message(tools, message)])
        if clean != message:
            changed[place] = _encoder.encode(clean)
    return changed


def _clean_told(
    tools: _Tools, messages: Sequence[dict[str, Any]], calls: Mapping[str, str] = {}
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The messages and open calls with all clean that their run told. Names of fields, ids, times, roles and types are
    the Field's own: where one of them is somebody's secret, too, the message could not be read any more without it."""
    told = [
        [[[part[name] for name in _told_in(part)] for part in each["parts"]], list(each["metadata"].values())]
        for each in messages
    ]
    clean, names, tools_called = clean_values(tools.harness, [told, list(calls), list(calls.values())], depth=-DEEPER)
    return [_retold(each, *now) for each, now in zip(messages, clean, strict=True)], dict(
        zip(names, tools_called, strict=True)
    )


def _retold(message: dict[str, Any], parts: Sequence[Sequence[Any]], metadata: Sequence[Any]) -> dict[str, Any]:
    return {
        **message,
        "parts": [
            {**part, **dict(zip(_told_in(part), now, strict=True))}
            for part, now in zip(message["parts"], parts, strict=True)
        ],
        "metadata": dict(zip(message["metadata"], metadata, strict=True)),
    }


def _told_in(part: Mapping[str, Any]) -> list[str]:
    return [name for name in part if name != "type"]


def _clean_message(tools: _Tools, message: dict[str, Any]) -> dict[str, Any]:
    """Whatever stands between them, its texts are one text, and so is its reasoning, as they were in the log."""
    streamed = [at for at, part in enumerate(message["parts"]) if part["type"] in PARTS]
    if len(streamed) < 2:
        return message
    parts: list[dict[str, Any]] = list(message["parts"])
    kinds = [PARTS[parts[at]["type"]] for at in streamed]
    told = [StreamEvent(kind, {DELTAS[kind]: parts[at]["text"]}) for at, kind in zip(streamed, kinds, strict=True)]
    clean = follow(tools.harness, tools.literals, StreamTrail(), told).events
    for at, before, now in zip(streamed, told, clean, strict=True):
        if before != now:
            parts[at] = {**parts[at], "text": text_of(now)}
    return {
        **message,
        "parts": [each for each, was in zip(parts, message["parts"], strict=True) if _is_left(each, was)],
    }


def _is_left(part: dict[str, Any], was: dict[str, Any]) -> bool:
    """Not where all that it said was a piece of a secret."""
    return part is was or bool(part["text"])


def _bodies(thread: str, after: int, tables: ReadTables) -> dict[int, bytes]:
    rows: list[MessageRow] = tables.messages(thread, after_place=after, limit=MESSAGES_AT_ONCE)
    return tables.bodies(thread, [each.place for each in rows])


def _replace_bodies(thread: str, read: Mapping[int, bytes], clean: Mapping[int, bytes], tables: Tables) -> int:
    now = tables.bodies(thread, list(clean))
    still = {place: body for place, body in clean.items() if now.get(place) == read[place]}  # not those deleted since
    tables.put_bodies(thread, still)
    return len(still)


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
