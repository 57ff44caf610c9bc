"""Streams of the transport log: append, read, follow by server-sent events, compact, delete; readers' cursors."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Annotated, Final

from msgspec import Meta, Struct, json
from starlette.types import Scope

from fieldstone.core.errors import InvalidPayload, NotFound, StreamCompacted
from fieldstone.core.streams import DEFAULT_READ_EVENTS, MAX_READ_EVENTS, MAX_SEQ, StreamEvent
from fieldstone.planes.delivery import BufferOverflow, Delivering, ReplayEnd, Subscription, encode_stored
from fieldstone.servers.http.answers import EVENT_STREAM, Answer, done, reply
from fieldstone.servers.http.body import drain, read_json, read_json_within
from fieldstone.servers.http.entrance import Visit
from fieldstone.servers.http.events import HEARTBEAT, LOOK_S, LOOKS_PER_BEAT, NEVER_STORED, StillKnown
from fieldstone.servers.http.gate import Gate
from fieldstone.servers.http.query import number_in, query_of

SEND_S: Final = 10.0  # to take one piece, as on a WebSocket
CUT_OFF: Final = "fieldstone.cut_off"  # among the extensions of a request's scope
OVERFLOWN: Final = b'event: error\ndata: {"code":"BUFFER_OVERFLOW"}\n\n'
COMPACTED: Final = b'event: error\ndata: {"code":"COMPACTED","floor":%d}\n\n'
APPEND_BYTES: Final = 16_000_000  # four of the largest events
LAST_EVENT_ID: Final = b"last-event-id"
# An event goes out when it happens, whatever stands between.
LIVE_HEADERS: Final = (NEVER_STORED, (b"x-accel-buffering", b"no"))

Seq = Annotated[int, Meta(ge=0, le=MAX_SEQ)]


class Append(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    events: list[StreamEvent]
    expected_seq: Seq | None = None
    idempotency_key: str | None = None


class CompactStream(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    dry_run: bool = False
    keep_events: Annotated[int, Meta(ge=0, le=MAX_SEQ)] = 0


class Cursor(Struct, frozen=True, forbid_unknown_fields=True):
    seq: Seq


async def append_events(visit: Visit) -> Answer:
    wanted = await read_json_within(visit.scope, visit.receive, Append, most_bytes=APPEND_BYTES)
    visit.field.require(visit.caller, "append to a stream")
    appended = await visit.field.planes.streams.append(
        _stream(visit), wanted.events, expected_seq=wanted.expected_seq, idempotency_key=wanted.idempotency_key
    )
    return reply(appended, 201)


async def read_events(visit: Visit) -> Answer:
    visit.field.require(visit.caller, "read a stream")
    query = query_of(visit.scope)
    after, limit = number_in(query, "after", 0), number_in(query, "limit", DEFAULT_READ_EVENTS)
    stream = _stream(visit)
    page = await visit.field.planes.streams.rows(stream, after=after, limit=min(limit, MAX_READ_EVENTS))
    name = json.encode(stream)
    events = b",".join([encode_stored(name, row) for row in page.rows])
    return Answer(200, b'{"events":[%b],"head":%d,"floor":%d}' % (events, page.head, page.floor))


async def stream_status(visit: Visit) -> Answer:
    visit.field.require(visit.caller, "read a stream")
    return reply(await visit.field.planes.streams.info(_stream(visit)))


async def stream_snapshot(visit: Visit) -> Answer:
    visit.field.require(visit.caller, "read a stream")
    snapshot = await visit.field.planes.streams.snapshot(_stream(visit))
    if snapshot is None:
        raise NotFound("The stream has no snapshot.", suggested_action="Read its events after its floor.")
    return reply(snapshot)


async def compact_stream(visit: Visit) -> Answer:
    wanted = await read_json(visit.scope, visit.receive, CompactStream)
    visit.field.require(visit.caller, "compact a stream")
    return reply(
        await visit.field.planes.streams.compact(_stream(visit), dry_run=wanted.dry_run, keep_events=wanted.keep_events)
    )


async def delete_stream(visit: Visit) -> Answer:
    await drain(visit.receive)
    visit.field.require(visit.caller, "delete a stream")
    await visit.field.planes.streams.delete(_stream(visit))
    return done()


async def set_reader(visit: Visit) -> Answer:
    wanted = await read_json(visit.scope, visit.receive, Cursor)
    visit.field.require(visit.caller, "append to a stream")
    await visit.field.planes.streams.set_reader(_stream(visit), _reader(visit), wanted.seq)
    return done()


async def drop_reader(visit: Visit) -> Answer:
    await drain(visit.receive)
    visit.field.require(visit.caller, "append to a stream")
    await visit.field.planes.streams.drop_reader(_stream(visit), _reader(visit))
    return done()


class Following:
    """`still_known`: whether the credential of a request counts to this moment. Following a stream is a long one."""

    def __init__(
        self,
        gate: Gate,
        still_known: StillKnown,
        *,
        look_s: float = LOOK_S,
        looks_per_beat: int = LOOKS_PER_BEAT,
        send_s: float = SEND_S,
    ) -> None:
        self._gate = gate
        self._still_known = still_known
        self._look_s = look_s
        self._looks_per_beat = looks_per_beat
        self._send_s = send_s

    async def follow_stream(self, visit: Visit) -> Answer:
        """The log from `Last-Event-ID` on, then what comes."""
        await drain(visit.receive)  # what comes next on this line is that the caller went away
        visit.field.require(visit.caller, "read a stream")
        subscription = visit.field.planes.delivery.subscribe(_stream(visit), after=_last_event_id(visit))
        first = await subscription.next()  # below the floor it is refused before anything is sent
        pieces = visit.held(self._pieces(visit, subscription))
        return Answer(200, _sse(first), EVENT_STREAM, LIVE_HEADERS, stream=pieces)

    async def _pieces(self, visit: Visit, subscription: Subscription) -> AsyncIterator[bytes]:
        """Who does not take a piece in time is cut off, in the replay too."""
        loop = asyncio.get_running_loop()
        async with aclosing(self._told(visit, subscription)) as told:
            async for piece in told:
                cut_off = loop.call_later(self._send_s, _cut_off, visit.scope)
                try:
                    yield piece
                finally:
                    cut_off.cancel()
                if loop.time() >= cut_off.when():  # it is there again, but the others did not wait for it
                    yield OVERFLOWN
                    return

    async def _told(self, visit: Visit, subscription: Subscription) -> AsyncGenerator[bytes, None]:
        quiet = 0
        try:
            while not self._gate.stopping and await self._still_known(visit.scope):
                found = await subscription.next(timeout_s=self._look_s)
                if found is None:
                    return
                quiet = 0 if found else quiet + 1
                if found:
                    yield _sse(found)
                elif quiet % self._looks_per_beat == 0:
                    yield HEARTBEAT
        except BufferOverflow:
            yield OVERFLOWN
        except StreamCompacted as gone:  # under a slow replay: what it would read next is gone
            yield COMPACTED % int(str(gone.extra["floor"]))
        finally:
            subscription.close()


def _cut_off(scope: Scope) -> None:
    """What the line still holds is dropped with it. Only the server itself has the line, and gives this along."""
    if (cut_off := scope.get("extensions", {}).get(CUT_OFF)) is not None:
        cut_off["abort"]()


def _sse(found: Delivering | None) -> bytes:
    if found is None:
        return b""
    if isinstance(found, ReplayEnd):
        return b": replay-end %d\n\n" % found.last_replay_seq
    return b"".join([b"id: %d\ndata: %b\n\n" % (each.seq, each.data) for each in found])


def _last_event_id(visit: Visit) -> int:
    """A browser that connects again says in a header where it was; the address still says where it began."""
    for name, value in visit.scope["headers"]:
        if name == LAST_EVENT_ID and value:
            if not value.isdigit() or int(value[:20]) > MAX_SEQ:
                raise InvalidPayload("Last-Event-ID is a seq of the stream.")
            return int(value)
    return number_in(query_of(visit.scope), "after", 0)


def _stream(visit: Visit) -> str:
    stream: str = visit.scope["path_params"]["id"]
    return stream


def _reader(visit: Visit) -> str:
    name: str = visit.scope["path_params"]["name"]
    return name
