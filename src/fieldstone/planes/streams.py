"""The transport log: events are appended to streams, clean and in order, and read page by page.

Appends to one stream that come while one is under way share the next transaction, and each is cleaned after the one
before it. What of a text may still begin a secret is stored and counted, but readers stop before it for a moment.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from typing import Final, NamedTuple

from msgspec import Struct, json

from fieldstone.core.errors import (
    FieldError,
    InvalidPayload,
    InvalidTransition,
    PayloadTooLarge,
    SecretLeakage,
    SeqConflict,
    StreamCompacted,
)
from fieldstone.core.streams import (
    DEFAULT_READ_EVENTS,
    MAX_APPEND_EVENTS,
    MAX_EVENT_BYTES,
    MAX_KIND_CHARS,
    MAX_READ_EVENTS,
    MAX_STREAM_ID_CHARS,
    TEXT_DELTA,
    TEXT_FIELDS,
    USER_MESSAGE,
    EventKind,
    StoredEvent,
    StreamEvent,
)
from fieldstone.planes.below_floor import rewrite_below_floor, text_below_floor
from fieldstone.planes.compaction import HOLD_PREFIX, Compactor, StreamCompaction
from fieldstone.planes.pages import EventPage, RowPage, page_after, rows_after, shown_events
from fieldstone.planes.runs import refuse_deleted, touch_run
from fieldstone.planes.snapshots import Snapshot, shown, state_in
from fieldstone.planes.trails import (
    DELTAS,
    Followed,
    StreamTrail,
    clean_words,
    ends_texts,
    follow,
    reaches_below,
    read_back,
    text_of,
    window,
    with_text,
)
from fieldstone.ports.planes import (
    Appended,
    EventRow,
    PlaneStore,
    ReadTables,
    SnapshotRow,
    StreamRow,
    Tables,
)
from fieldstone.ports.world import Clock
from fieldstone.redact import Harness
from fieldstone.redact.openings import Literals, literal_beginnings
from fieldstone.retrieval.reading import timestamp

TRAILS_MAX: Final = 1_000  # streams whose last text is in memory; others are read back from the store
NAMES_MAX: Final = 10_000  # ids that were found clean
CLEANED_IN_THREAD_BYTES: Final = 64_000  # larger texts would hold up everybody else
READ_BACK_EVENTS: Final = 256
FORGOTTEN_AT_ONCE: Final = 1_000
DIGEST_BYTES: Final = 16
KINDS: Final[frozenset[str]] = frozenset(EventKind.__args__)  # type: ignore[attr-defined]  # a Literal has them

_encoder: Final = json.Encoder()
_events: Final = json.Decoder(StreamEvent)


class AppendedEvents(Struct, frozen=True, gc=False):
    events: list[StoredEvent]
    head: int


class SnapshotMark(Struct, frozen=True, gc=False, rename="camel"):
    last_seq: int
    created_at: str


class StreamStatus(Struct, frozen=True, gc=False):
    head: int
    floor: int
    snapshot: SnapshotMark | None


class _Wish(NamedTuple):
    """An append that waits for its turn."""

    events: Sequence[StreamEvent]
    expected_seq: int | None
    key: str | None
    digest: bytes
    reply: "asyncio.Future[AppendedEvents]"


class _Lane:
    """The appends of one stream, one group after the other."""

    def __init__(self) -> None:
        self.wishes: list[_Wish] = []
        self.trail: StreamTrail | None = None
        self.task: asyncio.Task[None] | None = None


class _Done(NamedTuple):
    outcomes: Sequence[AppendedEvents | FieldError]
    trail: StreamTrail


class Streams:
    """`cleaning` gives the harness with the secrets that are known now."""

    def __init__(self, store: PlaneStore, cleaning: Callable[[], Awaitable[Harness]], clock: Clock) -> None:
        self.store: Final = store
        self.harness: Final = cleaning
        self._clock = clock
        self._lanes: dict[str, _Lane] = {}
        self._literals: Literals | None = None
        self._names_harness: Harness | None = None
        self._clean_names: set[str] = set()
        self._compactor = Compactor(store, clock)

    # --- append ------------------------------------------------------------------------------------------------------

    async def append(
        self,
        stream: str,
        events: Sequence[StreamEvent],
        *,
        expected_seq: int | None = None,
        idempotency_key: str | None = None,
    ) -> AppendedEvents:
        """All of them or none. The same request with the same key is stored once, and gets the same answer."""
        harness = await self.harness()
        literals = await self.beginnings()
        self._check(harness, stream, events, idempotency_key)
        if not events:
            row = await self.store.read(lambda tables: tables.stream(stream))
            return AppendedEvents([], row.head if row else 0)
        if _size(events) > CLEANED_IN_THREAD_BYTES:
            events = await asyncio.to_thread(clean_words, harness, events)
        else:
            events = clean_words(harness, events)
        digest = b"" if idempotency_key is None else _digest(harness, literals, events)
        reply: asyncio.Future[AppendedEvents] = asyncio.get_running_loop().create_future()
        lane = self._lane(stream)
        lane.wishes.append(_Wish(events, expected_seq, idempotency_key, digest, reply))
        if lane.task is None or lane.task.done():
            lane.task = asyncio.create_task(self._drain(stream, lane))
        return await reply

    async def _drain(self, stream: str, lane: _Lane) -> None:
        while lane.wishes:
            wishes = _group(lane.wishes)
            del lane.wishes[: len(wishes)]
            try:
                harness = await self.harness()
                writing = _Writing(stream, harness, await self.beginnings(), self._clock.now_ms())
                done = await self.store.write(partial(writing.append_all, wishes, lane.trail))
            except Exception as failed:  # why: whatever it was, each who waits is told
                lane.trail = None
                for wish in wishes:
                    if not wish.reply.done():
                        wish.reply.set_exception(failed)
                continue
            lane.trail = done.trail
            for wish, outcome in zip(wishes, done.outcomes, strict=True):
                if wish.reply.done():
                    continue  # whoever asked has gone
                if isinstance(outcome, FieldError):
                    wish.reply.set_exception(outcome)
                else:
                    wish.reply.set_result(outcome)

    def _lane(self, stream: str) -> _Lane:
        lane = self._lanes.pop(stream, None) or _Lane()
        if len(self._lanes) >= TRAILS_MAX:
            idle = (name for name, each in self._lanes.items() if each.task is None or each.task.done())
            if (oldest := next(idle, None)) is not None:
                del self._lanes[oldest]
        self._lanes[stream] = lane
        return lane

    async def beginnings(self) -> Literals:
        """How secrets begin that are known by their shape."""
        if self._literals is None:
            self._literals = await asyncio.to_thread(literal_beginnings)
        return self._literals

    def _check(self, harness: Harness, stream: str, events: Sequence[StreamEvent], key: str | None) -> None:
        if len(events) > MAX_APPEND_EVENTS:
            raise PayloadTooLarge(f"An append has at most {MAX_APPEND_EVENTS} events.")
        check_name("The stream's id", stream)
        names = [stream]
        if key is not None:
            check_name("idempotencyKey", key)
            names.append(key)
        for kind in {event.kind for event in events} - KINDS:
            if not 1 <= len(kind) <= MAX_KIND_CHARS:
                raise InvalidPayload(f"An event's kind has 1 to {MAX_KIND_CHARS} characters.")
            names.append(kind)
        _check_payloads(events)
        self._refuse_secrets(harness, names)

    def _refuse_secrets(self, harness: Harness, names: Sequence[str]) -> None:
        """Names that a client chose are refused where they hold a secret, never rewritten."""
        if harness is not self._names_harness or len(self._clean_names) > NAMES_MAX:
            self._names_harness = harness
            self._clean_names.clear()
        if new := [name for name in names if name not in self._clean_names]:
            if any(harness.holds_secret(new)):
                raise SecretLeakage
            self._clean_names.update(new)

    # --- read --------------------------------------------------------------------------------------------------------

    async def read(self, stream: str, *, after: int = 0, limit: int = DEFAULT_READ_EVENTS) -> EventPage:
        """Events behind `after`. Raises `StreamCompacted` where some of them are gone."""
        _check_page(stream, after, limit)
        return await self.store.read(partial(page_after, stream, after, limit, self._clock.now_ms()))

    async def rows(self, stream: str, *, after: int, limit: int) -> RowPage:
        """The same, as they are stored."""
        _check_page(stream, after, limit)
        return await self.store.read(partial(rows_after, stream, after, limit, self._clock.now_ms()))

    async def info(self, stream: str) -> StreamStatus:
        check_name("The stream's id", stream)
        return await self.store.read(partial(_status, stream))

    async def snapshot(self, stream: str) -> Snapshot | None:
        """The newest that is good."""
        check_name("The stream's id", stream)
        found = await self.store.read(partial(_good_snapshot, stream))
        return None if found is None else shown(found)

    # --- delete, readers, holds --------------------------------------------------------------------------------------

    async def delete(self, stream: str) -> None:
        """Its events are gone, its numbers are not: what is appended next continues them."""
        check_name("The stream's id", stream)
        await self.store.write(partial(delete_stream, stream))
        self._compactor.clear_soon(stream)

    async def set_reader(self, stream: str, name: str, seq: int) -> None:
        """Nothing behind this cursor is compacted. Raises `StreamCompacted` where it comes too late."""
        self._check_reader(await self.harness(), stream, name)
        await self.store.write(partial(_put_reader, stream, name, seq))

    async def drop_reader(self, stream: str, name: str) -> None:
        """Also one whose name became known as a secret: so it is got rid of."""
        self._check_reader_name(stream, name)
        await self.store.write(lambda tables: tables.drop_reader(stream, name))

    async def readers(self, stream: str) -> dict[str, int]:
        check_name("The stream's id", stream)
        found = await self.store.read(lambda tables: tables.readers(stream))
        return {name: seq for name, seq in found.items() if not name.startswith(HOLD_PREFIX)}

    async def hold(self, stream: str, name: str) -> None:
        """Nothing of the stream is compacted or deleted from now on, until the hold is lifted."""
        self._check_reader(await self.harness(), stream, name)
        await self.store.write(partial(_hold, stream, f"{HOLD_PREFIX}{name}"))

    async def lift(self, stream: str, name: str) -> None:
        check_name("A hold's name", name)
        await self.store.write(lambda tables: tables.drop_reader(stream, f"{HOLD_PREFIX}{name}"))

    def _check_reader(self, harness: Harness, stream: str, name: str) -> None:
        self._check_reader_name(stream, name)
        self._refuse_secrets(harness, [stream, name])

    def _check_reader_name(self, stream: str, name: str) -> None:
        check_name("The stream's id", stream)
        check_name("A reader's name", name)
        if name.startswith(HOLD_PREFIX):
            raise InvalidPayload(f"A reader's name does not begin with {HOLD_PREFIX!r}.")

    # --- compaction --------------------------------------------------------------------------------------------------

    async def compact(self, stream: str, *, dry_run: bool = False, keep_events: int = 0) -> StreamCompaction:
        """A verified snapshot first; then what it stands for goes, in the background."""
        check_name("The stream's id", stream)
        if keep_events < 0:
            raise InvalidPayload("keepEvents is a number from 0.")
        return await self._compactor.compact(stream, dry_run=dry_run, keep_events=keep_events)

    def forget_texts(self) -> None:
        """What the process remembers of the streams' last texts is read back from the store."""
        for lane in self._lanes.values():
            lane.trail = None

    async def scour(self) -> None:
        """Overwrite what replaced events left."""
        await self._compactor.scour()

    def resume(self) -> None:
        """When the store is opened: what a compaction or a deletion left half done is finished in the background."""
        self._compactor.resume()

    async def settled(self) -> None:
        """When all that goes on in the background is done."""
        await self._compactor.settled()

    async def close(self) -> None:
        """What was accepted is written. Deletions under way go on when the store is opened again."""
        tasks = [lane.task for lane in self._lanes.values() if lane.task is not None]
        if tasks:
            await asyncio.wait(tasks)
        await self._compactor.close()


class _Writing(NamedTuple):
    """One transaction's appends to one stream."""

    stream: str
    harness: Harness
    literals: Literals
    now_ms: int

    def append_all(self, wishes: Sequence[_Wish], known: StreamTrail | None, tables: Tables) -> _Done:
        row = tables.stream(self.stream) or StreamRow(self.stream)
        trail = known
        # Another process has appended, or what it goes on from was compacted or deleted.
        if trail is None or trail.head != row.head or reaches_below(trail, row.floor):
            trail = read_back_trail(self.harness, tables, row)
        outcomes: list[AppendedEvents | FieldError] = []
        for together in _together(wishes):
            try:
                appended, trail = self._append(tables, together, trail)
                outcomes += appended
            except FieldError as refused:  # all refusals come before the first write
                outcomes += [refused] * len(together)
        return _Done(outcomes, trail)

    def _append(
        self, tables: Tables, wishes: Sequence[_Wish], trail: StreamTrail
    ) -> tuple[list[AppendedEvents], StreamTrail]:
        """One wish, or several that ask for nothing special."""
        row = tables.stream(self.stream) or StreamRow(self.stream)
        wish = wishes[0]
        if wish.key is not None and (before := tables.appended(self.stream, wish.key)) is not None:
            return [self._again(tables, row, before, wish)], trail
        if wish.expected_seq is not None and wish.expected_seq != row.head:
            raise SeqConflict(
                f"The stream's head is {row.head}, and not {wish.expected_seq}.", extra={"head": row.head}
            )
        followed = follow(self.harness, self.literals, trail, [event for each in wishes for event in each.events])
        touch_run(tables, self.stream, self.now_ms)
        self._put(tables, row, followed)
        if wish.key is not None:
            head = row.head + len(followed.events)
            tables.put_appended(self.stream, wish.key, Appended(wish.digest, row.head + 1, head))
        return list(self._answers(wishes, row.head, followed.events)), followed.trail

    def _again(self, tables: ReadTables, row: StreamRow, before: Appended, wish: _Wish) -> AppendedEvents:
        """What was answered the first time, without what is compacted since.

        Where a secret became known since, the same request is another clean text. So what is stored is cleaned, too,
        before it is told that the two differ.
        """
        count = before.last - before.first + 1
        blocks = tables.event_blocks(row.stream, after=before.first - 1, limit=count, until=before.last)
        stored = shown_events(row.stream, blocks)
        if before.digest != wish.digest and self._digest([each.event for each in stored]) != wish.digest:
            raise InvalidPayload(
                "idempotencyKey was used before, for other events.",
                suggested_action="Send these under a key of their own.",
            )
        return AppendedEvents(stored, before.last)

    def _digest(self, events: Sequence[StreamEvent]) -> bytes:
        return _digest(self.harness, self.literals, clean_words(self.harness, events))

    def _put(self, tables: Tables, row: StreamRow, followed: Followed) -> None:
        held = followed.held_from
        held_ms = None if held is None else self.now_ms
        tables.put_stream(row._replace(held_from=held, held_ms=held_ms, active_ms=self.now_ms))
        bodies = enumerate(map(_encoder.encode, followed.events), start=row.head + 1)
        tables.put_events(self.stream, [EventRow(seq, self.now_ms, body) for seq, body in bodies])
        _rewrite(tables, row, followed.rewritten)

    def _answers(self, wishes: Sequence[_Wish], head: int, events: Sequence[StreamEvent]) -> Iterator[AppendedEvents]:
        at = timestamp(self.now_ms)
        stored = [StoredEvent(self.stream, seq, at, event) for seq, event in enumerate(events, start=head + 1)]
        done = 0
        for wish in wishes:
            answer = stored[done : done + len(wish.events)]
            done += len(answer)
            yield AppendedEvents(answer, head + done)


def delete_stream(stream: str, tables: Tables) -> bool:
    """Whether there was something. The rows go later, in chunks; nobody sees them any more."""
    row = tables.stream(stream)
    if row is None:
        return False
    readers = tables.readers(stream)
    if any(name.startswith(HOLD_PREFIX) for name in readers):
        raise InvalidTransition("The stream is on hold: it is deleted when the hold is lifted.")
    tables.put_stream(row._replace(floor=row.head, held_from=None, held_ms=None))
    tables.drop_snapshots(stream)
    for name in readers:
        tables.drop_reader(stream, name)
    while tables.drop_appended(stream, limit=FORGOTTEN_AT_ONCE) == FORGOTTEN_AT_ONCE:
        pass
    return True


def check_name(what: str, name: str) -> None:
    if not 1 <= len(name) <= MAX_STREAM_ID_CHARS:
        raise InvalidPayload(f"{what} has 1 to {MAX_STREAM_ID_CHARS} characters.")
    if any("\ud800" <= character <= "\udfff" for character in name):
        raise InvalidPayload(f"{what} holds half a character, which no text has.")


def _check_payloads(events: Sequence[StreamEvent]) -> None:
    for at, event in enumerate(events):
        for field in TEXT_FIELDS.get(event.kind, ()):
            if not isinstance(event.payload.get(field), str):
                raise InvalidPayload(f"events[{at}].payload.{field} must be a string: a {event.kind} has one.")
        if event.kind == USER_MESSAGE and "content" not in event.payload:
            raise InvalidPayload(f"events[{at}].payload.content is missing: a {USER_MESSAGE} has one.")


def _check_page(stream: str, after: int, limit: int) -> None:
    check_name("The stream's id", stream)
    if after < 0 or not 0 <= limit <= MAX_READ_EVENTS:
        raise InvalidPayload(f"`after` is a seq from 0, `limit` a number from 0 to {MAX_READ_EVENTS}.")


def _group(wishes: Sequence[_Wish]) -> list[_Wish]:
    """As many as fit into one transaction, for which all other writers of the store wait."""
    group: list[_Wish] = []
    size = 0
    for wish in wishes:
        size += len(wish.events)
        if group and size > MAX_APPEND_EVENTS:
            break
        group.append(wish)
    return group


def _together(wishes: Sequence[_Wish]) -> Iterator[list[_Wish]]:
    """Those that ask for nothing special are cleaned as one text; each of the others sees what was before it."""
    plain: list[_Wish] = []
    for wish in wishes:
        if wish.key is None and wish.expected_seq is None:
            plain.append(wish)
            continue
        if plain:
            yield plain
            plain = []
        yield [wish]
    if plain:
        yield plain


def _size(events: Sequence[StreamEvent]) -> int:
    """Of what is to be stored, in bytes. It is seen here, outside of any transaction, whether JSON has it at all."""
    try:
        size = len(_encoder.encode(events))
        largest = size if size <= MAX_EVENT_BYTES else max(len(_encoder.encode(event)) for event in events)
    except (TypeError, UnicodeEncodeError, RecursionError) as error:
        raise InvalidPayload("An event's payload holds what JSON does not have.") from error
    if largest > MAX_EVENT_BYTES:
        raise PayloadTooLarge(f"An event has at most {MAX_EVENT_BYTES} bytes.")
    return size


def _digest(harness: Harness, literals: Literals, events: Sequence[StreamEvent]) -> bytes:
    """Of the clean events: the digest of a secret would let whoever has the file guess it."""
    clean = follow(harness, literals, StreamTrail(), events).events
    return blake2b(_encoder.encode(clean), digest_size=DIGEST_BYTES).digest()


def drop_snapshots_from(tables: Tables, stream: str, seq: int) -> None:
    """Those that were taken of an event that has another text now."""
    taken = [each.last_seq for each in tables.seals(stream)]
    if any(last_seq >= seq for last_seq in taken):
        tables.drop_snapshots(stream, but=max((each for each in taken if each < seq), default=None))


def _rewrite(tables: Tables, row: StreamRow, texts: Mapping[int, str]) -> None:
    """Snapshots that were taken of the old texts go with them; the log alone is correct."""
    rewritten = [
        each._replace(body=_encoder.encode(with_text(_events.decode(each.body), text)))
        for seq, text in texts.items()
        for each in tables.events(row.stream, after=seq - 1, limit=1, until=seq)
    ]
    if rewritten:
        tables.replace_events(row.stream, rewritten)
        drop_snapshots_from(tables, row.stream, min(each.seq for each in rewritten))
    if row.floor in texts:
        rewrite_below_floor(tables, row, texts[row.floor])


def read_back_trail(harness: Harness, tables: ReadTables, row: StreamRow) -> StreamTrail:
    """The running texts at the stream's end, as they are stored."""
    texts: dict[str, list[tuple[int, str]]] = {}
    size = 0
    end = row.head
    while end > row.floor and size < window(harness) * len(DELTAS):
        start = max(row.floor, end - READ_BACK_EVENTS)
        rows = tables.events(row.stream, after=start, limit=READ_BACK_EVENTS, until=end)
        for each in reversed(rows):
            event = _events.decode(each.body)
            text = text_of(event)
            if ends_texts(event):
                return _trail(harness, row, texts)
            if text is None:
                continue
            texts.setdefault(event.kind, []).append((each.seq, text))
            size += len(text)
        end = start
    if end == row.floor and (below := text_below_floor(tables, row)):
        texts.setdefault(TEXT_DELTA, []).append((row.floor, below))
    return _trail(harness, row, texts)


def _trail(harness: Harness, row: StreamRow, texts: dict[str, list[tuple[int, str]]]) -> StreamTrail:
    return StreamTrail(row.head, {kind: read_back(harness, each[::-1]) for kind, each in texts.items()}, row.floor)


def _good_snapshot(stream: str, tables: ReadTables) -> SnapshotRow | None:
    row = tables.stream(stream) or StreamRow(stream)
    good = (each for each in tables.snapshots(stream) if state_in(each, head=row.head) is not None)
    return next((each for each in good if each.last_seq >= row.floor), None)


def _status(stream: str, tables: ReadTables) -> StreamStatus:
    row = tables.stream(stream) or StreamRow(stream)
    found = _good_snapshot(stream, tables)
    mark = None if found is None else SnapshotMark(found.last_seq, timestamp(found.created_ms))
    return StreamStatus(row.head, row.floor, mark)


def _put_reader(stream: str, name: str, seq: int, tables: Tables) -> None:
    row = _made(tables, stream)
    if not 0 <= seq <= row.head:
        raise InvalidPayload(f"seq is a number from 0 to the stream's head, {row.head}.")
    if seq < row.floor:
        raise StreamCompacted(f"Events up to {row.floor} are gone already.", extra={"floor": row.floor})
    tables.put_reader(stream, name, seq)


def _hold(stream: str, name: str, tables: Tables) -> None:
    tables.put_reader(stream, name, _made(tables, stream).floor)


def _made(tables: Tables, stream: str) -> StreamRow:
    """The stream, if need be a new one. Of a thread that is deleted none can be read or held any more."""
    if (run := tables.run_of_stream(stream)) is not None:
        refuse_deleted(tables, run)
    row = tables.stream(stream)
    if row is None:
        tables.put_stream(row := StreamRow(stream))
    return row
