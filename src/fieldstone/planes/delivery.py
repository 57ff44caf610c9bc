"""Live delivery: what is in a stream, then what comes, each event once and in order, to any number of subscribers.

One tail follows each stream, however many listen: it reads what is new once, and each event is encoded once. A
subscriber first reads the log by itself, page by page, and joins the tail when it has caught up. So the log, and not a
queue, holds what a replay has not reached yet. Its queue behind the tail is bounded: who lets it run full is cut off.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

import structlog
from msgspec import json

from fieldstone.core.errors import FieldError, StreamCompacted
from fieldstone.planes.pages import RowPage, rows_after
from fieldstone.planes.streams import Streams, check_name
from fieldstone.ports.planes import EventRow, ReadTables
from fieldstone.ports.world import Clock
from fieldstone.retrieval.reading import timestamp

PAGE_EVENTS: Final = 500  # of a replay, and of one look at what is new
QUEUE_EVENTS: Final = 4_096  # events are shared between subscribers: a full queue costs 32 kB
QUEUE_BYTES: Final = 8_000_000
LOOK_MS: Final = 1_000  # how long a tail waits for a change before it looks by itself
RETRY_S: Final = 0.5

logger = structlog.get_logger("fieldstone.delivery")


class BufferOverflow(Exception):
    """The subscriber did not take its events in time: its queue ran full."""


class Delivered:
    """An event on its way to subscribers: encoded once, for all of them."""

    __slots__ = ("_frame", "data", "seq", "stream")

    def __init__(self, stream: bytes, row: EventRow) -> None:
        """`stream` is the id as JSON."""
        self.seq: Final = row.seq
        self.stream: Final = stream
        self.data: Final = encode_stored(stream, row)
        self._frame: str | None = None

    @property
    def frame(self) -> str:
        """For a WebSocket."""
        if self._frame is None:
            self._frame = (b'{"type":"event","streamId":%b,"event":%b}' % (self.stream, self.data)).decode()
        return self._frame


class ReplayEnd(NamedTuple):
    last_replay_seq: int


Delivering = Sequence[Delivered] | ReplayEnd


def encode_stored(stream: bytes, row: EventRow) -> bytes:
    """A StoredEvent's JSON. The event lies in the store as JSON already."""
    at = timestamp(row.at_ms).encode()
    return b'{"streamId":%b,"seq":%d,"timestamp":"%b","event":%b}' % (stream, row.seq, at, row.body)


class Delivery:
    """The tails of one scope's streams in this process. Only its event loop uses it."""

    def __init__(
        self, streams: Streams, clock: Clock, *, queue_events: int = QUEUE_EVENTS, queue_bytes: int = QUEUE_BYTES
    ) -> None:
        self.streams: Final = streams
        self.queue_events: Final = queue_events
        self.queue_bytes: Final = queue_bytes
        self.closed: Final = asyncio.Event()
        self._clock = clock
        self._tails: dict[str, _Tail] = {}
        self._watching: asyncio.Task[None] | None = None
        self._looks: set[asyncio.Task[bool]] = set()
        self._looking = asyncio.Lock()
        self._held_ms: int | None = None

    def subscribe(
        self, stream: str, *, after: int = 0, on_overflow: Callable[[], None] | None = None
    ) -> "Subscription":
        """Nothing is read before the first `next`. `on_overflow` is called at once, while `next` may not be asked."""
        check_name("The stream's id", stream)
        return Subscription(self, stream, after, on_overflow)

    def close(self) -> None:
        """Every subscription ends."""
        self.closed.set()
        for tail in self._tails.values():
            for each in tail.subscriptions:
                each.wake()
        self._tails.clear()
        for task in (self._watching, *self._looks):
            if task is not None:
                task.cancel()

    def join(self, subscription: "Subscription", at: int) -> None:
        """It goes on with the tail from here. A tail that is further goes back for it: others drop what they had."""
        tail = self._tails.get(subscription.stream)
        if tail is None:
            tail = self._tails[subscription.stream] = _Tail(subscription.stream, at)
        tail.at = min(tail.at, at)
        self._look_soon()  # for what came since the subscriber read
        tail.subscriptions[subscription] = None
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch())

    def leave(self, subscription: "Subscription") -> None:
        tail = self._tails.get(subscription.stream)
        if tail is not None:
            tail.subscriptions.pop(subscription, None)
            if not tail.subscriptions:
                del self._tails[tail.stream]

    # --- the tails ---------------------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        seen = -1
        while self._tails:
            try:
                timeout_ms = LOOK_MS if self._held_ms is None else max(1, min(LOOK_MS, self._held_ms))
                seen = await self.streams.store.changed(seen, timeout_ms=timeout_ms)
                while await self._look():
                    pass
            except FieldError as error:  # the store is closed, or full: whoever listens is told
                self._fail(error)
            except Exception as error:  # why: listeners must not wait for a tail that is no more
                logger.error("a tail failed", error=type(error).__name__, exc_info=error)
                self._fail(error)
                await asyncio.sleep(RETRY_S)

    def _look_soon(self) -> None:
        look = asyncio.create_task(self._look())
        self._looks.add(look)
        look.add_done_callback(self._looked)

    def _looked(self, look: asyncio.Task[bool]) -> None:
        self._looks.discard(look)
        if not look.cancelled() and (error := look.exception()) is not None:
            self._fail(error)

    async def _look(self) -> bool:
        """Read what is new in all streams that somebody listens to. Whether there may be more."""
        async with self._looking:
            tails = list(self._tails.values())
            wanted = [(tail.stream, tail.at) for tail in tails]
            pages = await self.streams.store.read(partial(_pages, wanted, self._clock.now_ms()))
            waits = [page.held_ms for page in pages if isinstance(page, RowPage) and page.held_ms is not None]
            self._held_ms = min(waits, default=None)
            for tail, page in zip(tails, pages, strict=True):
                if isinstance(page, RowPage):
                    tail.publish(page.rows)
                else:
                    self._end(tail, page)
            return any(isinstance(page, RowPage) and len(page.rows) == PAGE_EVENTS for page in pages)

    def _end(self, tail: "_Tail", error: BaseException) -> None:
        self._tails.pop(tail.stream, None)
        for each in list(tail.subscriptions):
            each.fail(error)

    def _fail(self, error: BaseException) -> None:
        for tail in list(self._tails.values()):
            self._end(tail, error)


class Subscription:
    """`next` gives pages of events, then a ReplayEnd, then pages as they come. It may be cancelled and asked again."""

    def __init__(self, hub: Delivery, stream: str, after: int, on_overflow: Callable[[], None] | None) -> None:
        self.stream: Final = stream
        self._hub = hub
        self._name = json.encode(stream)
        self._at = after
        self._target: int | None = None
        self._rest: Sequence[Delivered] = ()
        self._replay_ended = False
        self._is_live = False
        self._queue: list[Delivered] = []
        self._queued_bytes = 0
        self._error: BaseException | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._on_overflow = on_overflow

    def __aiter__(self) -> "Subscription":
        return self

    async def __anext__(self) -> Delivering:
        found = await self.next()
        if found is None:
            raise StopAsyncIteration
        return found

    async def next(self, *, timeout_s: float | None = None) -> Delivering | None:
        """None: the subscription has ended. An empty page: nothing came within `timeout_s`.

        Raises `StreamCompacted` where events that were asked for are gone, and `BufferOverflow`.
        """
        while not self._hub.closed.is_set():
            if self._error is not None:
                raise self._error
            if self._is_live:
                return await self._from_queue(timeout_s)
            found = await self._from_log()
            if found is not None:
                return found
        return None

    def close(self) -> None:
        self._hub.leave(self)

    # --- the replay --------------------------------------------------------------------------------------------------

    async def _from_log(self) -> Delivering | None:
        if self._rest:
            rest, self._rest = self._rest, ()
            return self._handed(rest)
        page = await self._hub.streams.rows(self.stream, after=self._at, limit=PAGE_EVENTS)
        if self._target is None:
            self._target = page.shown_to
        events = [Delivered(self._name, row) for row in page.rows]
        if self._replay_ended:
            if not events:
                self._is_live = True
                self._hub.join(self, min(self._at, page.head))
                return None
            return self._handed(events)
        replayed = [each for each in events if each.seq <= self._target]
        if replayed:
            return self._handed(replayed)  # what lies behind is read again: it is live
        self._replay_ended = True
        self._rest = events
        return ReplayEnd(min(self._at, page.head))

    def _handed(self, events: Sequence[Delivered]) -> Sequence[Delivered]:
        self._at = events[-1].seq
        return events

    # --- live --------------------------------------------------------------------------------------------------------

    def put(self, events: Sequence[Delivered], size: int) -> None:
        had = self._queue[-1].seq if self._queue else self._at
        if events[0].seq <= had:
            events = [each for each in events if each.seq > had]
        if not events:
            return
        self._queue += events
        self._queued_bytes += size
        if len(self._queue) > self._hub.queue_events or self._queued_bytes > self._hub.queue_bytes:
            self._queue = []
            self.fail(BufferOverflow())
            if self._on_overflow is not None:
                self._on_overflow()
        else:
            self.wake()

    def fail(self, error: BaseException) -> None:
        self._error = error
        self._hub.leave(self)
        self.wake()

    def wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _from_queue(self, timeout_s: float | None) -> Delivering | None:
        if not self._queue:
            self._waiter = asyncio.get_running_loop().create_future()
            if timeout_s is None:
                await self._waiter
            else:
                await asyncio.wait([self._waiter], timeout=timeout_s)
            self._waiter = None
            if self._error is not None:
                raise self._error
            if self._hub.closed.is_set():
                return None
        if not self._queue:
            return ()
        events, self._queue, self._queued_bytes = self._queue, [], 0
        return self._handed(events)


class _Tail:
    """What is new in one stream. `at` is the last event that was published."""

    def __init__(self, stream: str, at: int) -> None:
        self.stream: Final = stream
        self.at = at
        self.subscriptions: dict[Subscription, None] = {}
        self._name = json.encode(stream)

    def publish(self, rows: Sequence[EventRow]) -> None:
        if not rows:
            return
        events = [Delivered(self._name, row) for row in rows]
        self.at = rows[-1].seq
        size = sum(len(each.data) for each in events)
        for each in list(self.subscriptions):
            each.put(events, size)


def _pages(wanted: Sequence[tuple[str, int]], now_ms: int, tables: ReadTables) -> list[RowPage | StreamCompacted]:
    pages: list[RowPage | StreamCompacted] = []
    for stream, after in wanted:
        try:
            pages.append(rows_after(stream, after, PAGE_EVENTS, now_ms, tables))
        except StreamCompacted as gone:
            pages.append(gone)
    return pages
