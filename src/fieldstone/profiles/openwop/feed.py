"""The feed of a memory host: what was written, compacted and consolidated, without a word of content.

An event is told from the log each time it is asked for. So one whose entry was purged stays, without what was erased.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from msgspec import Struct, json

from fieldstone.core.access import LOCAL, Caller
from fieldstone.core.errors import InvalidPayload
from fieldstone.core.events import AnyEvent, EntryTexts, EntryWritten, MemoryCompacted, MemoryConsolidated, decode_texts
from fieldstone.core.limits import MAX_EPOCH
from fieldstone.core.vocabulary import RESERVED_SESSION_PREFIX, FeedKind
from fieldstone.field.audit_reads import AuditReads
from fieldstone.field.field import LocalField
from fieldstone.field.sight import Sight
from fieldstone.ports.views import EntryRow, FeedRow, UnitRow
from fieldstone.profiles.openwop.refs import FIELD_PREFIX
from fieldstone.retrieval.reading import timestamp

BEGINNING: Final = "0"  # the cursor before the first event
TRIGGER: Final = "host-managed"  # as discovery advertises it; who asked for it is in the audit event
PAGE_EVENTS: Final = 100
MOST_EVENTS: Final = 1_000
PAGE_BYTES: Final = 1_000_000  # an entry may have a thousand tags: a page ends soon after it is as long as this
TOLD_AT_ONCE: Final = 10  # and so many units are read at once: others have questions, too
NAMED_AT_ONCE: Final = 50
GATHER_S: Final = 0.05  # a log that grows all the time is looked at so often, and not with every entry

_CURSOR: Final = re.compile(r"[0-9]{1,16}")
_RFC_3339: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NO_LABELS: Final = EntryTexts()


class FeedEvent(Struct, frozen=True):
    """`id` is a cursor, too: what comes after it comes with `since` = id."""

    id: str
    type: FeedKind
    ts: str
    payload: dict[str, Any]

    def flat(self) -> dict[str, Any]:
        return {"id": self.id, "type": self.type, "ts": self.ts, **self.payload}


class FeedPage(Struct, frozen=True):
    """Oldest first. `next` goes on from here, also when there was nothing."""

    events: tuple[FeedEvent, ...]
    next: str


class Feed:
    """A tenant's events, as far as the caller may see them."""

    def __init__(self, field: LocalField, caller: Caller = LOCAL) -> None:
        self._field = field
        self._caller = caller
        self._audit = field.audit

    @property
    def head(self) -> int:
        """Where the log stands. Whoever waits for news asks before they look: then none is missed."""
        return self._audit.head

    async def news(self, head: int) -> None:
        """Return when the log has come further than this."""
        await self._audit.passed(head)
        await asyncio.sleep(GATHER_S)

    async def grown(self, head: int, *, timeout_s: float) -> bool:
        """Whether it does so in time."""
        try:
            await asyncio.wait_for(self._audit.passed(head), timeout_s)
        except TimeoutError:
            return False
        await asyncio.sleep(GATHER_S)
        return True

    async def page(
        self, *, kinds: Sequence[FeedKind] | None = None, since: str | None = None, limit: int = PAGE_EVENTS
    ) -> FeedPage:
        """What came after a cursor, or from a time on (RFC 3339), at most `limit` of it.

        It is empty only where there is nothing more.
        """
        self._field.require(self._caller, "read the events")
        if not 1 <= limit <= MOST_EVENTS:
            raise InvalidPayload(f"limit must be from 1 to {MOST_EVENTS}.")
        after, since_ms = _start(since)
        then = since or BEGINNING
        while rows := await self._audit.feed(after=after, limit=limit, kinds=kinds, since_ms=since_ms):
            events, after = await self._fill(rows)
            then = str(after)
            if events:
                return FeedPage(tuple(events), then)
        return FeedPage((), then)

    async def follow(
        self, *, kinds: Sequence[FeedKind] | None = None, since: str | None = None
    ) -> AsyncIterator[FeedEvent]:
        """The same, and then what happens, as it happens. It has no end of its own."""
        while True:
            head = self.head
            page = await self.page(kinds=kinds, since=since)
            for event in page.events:
                yield event
            if not page.events:
                await self.news(head)
            since = page.next

    async def first(self, *, kinds: Sequence[FeedKind] | None = None, since: str | None = None) -> FeedEvent:
        """The first one after it, as soon as there is one."""
        while True:
            head = self.head
            page = await self.page(kinds=kinds, since=since, limit=1)
            if page.events:
                return page.events[0]
            await self.news(head)
            since = page.next

    async def tell(self, rows: Sequence[FeedRow]) -> list[FeedEvent]:
        """Those that the caller may see."""
        return [event for some in _slices(rows) for event in await self._tell(some)]

    async def _fill(self, rows: Sequence[FeedRow]) -> tuple[list[FeedEvent], int]:
        """As many of them as a page has room for, and how far that is."""
        told: list[FeedEvent] = []
        size, last = 0, rows[0].seq
        for some in _slices(rows):
            if size >= PAGE_BYTES:
                break
            events, last = await self._tell(some), some[-1].seq
            told += events
            size += sum(len(json.encode(event.payload)) for event in events)
        return told, last

    async def _tell(self, rows: Sequence[FeedRow]) -> list[FeedEvent]:
        logged = await self._audit.entries([row.seq for row in rows])
        events = {row: logged[row.seq].event for row in rows}
        named = await _Named.read(self._audit, sorted({unit for event in events.values() for unit in _units(event)}))
        sight = self._field.sight(self._caller)
        told: list[FeedEvent] = []
        for row, event in events.items():
            payload = await self._payload(event, named, sight)
            if payload is not None:
                told.append(FeedEvent(str(row.seq), row.kind, timestamp(row.at_ms), payload))
        return told

    async def _payload(self, event: AnyEvent, named: "_Named", sight: Sight) -> dict[str, Any] | None:
        match event:
            case EntryWritten(unit=unit, session=session):
                return {"memoryRef": await self._memory(session), **named.written(unit)}
            case MemoryCompacted(output=output):
                ref = await self._compacted(output, named, sight)
                return None if ref is None else {"memoryRef": ref, **_compaction(event, named)}
            case MemoryConsolidated(session=session):
                return {"memoryRef": await self._memory(session), **_consolidation(event, named)}
            case _:
                raise TypeError(f"{type(event).__name__} is no event of the feed")

    async def _compacted(self, output: int, named: "_Named", sight: Sight) -> str | None:
        """Which memory it is of, or which part of the Field. None: that is not for the caller to know."""
        if (entry := named.entries.get(output)) is not None:
            return await self._memory(entry.session)
        unit = named.units[output]
        if not sight.sees(unit):
            return None
        whole = f"{FIELD_PREFIX}{self._audit.field}"
        return whole if unit.session is None else f"{whole}:{await self._audit.name(unit.session)}"

    async def _memory(self, session: int) -> str:
        return (await self._audit.name(session)).removeprefix(RESERVED_SESSION_PREFIX)


class FeedMark:
    """How far somebody has come who follows the feed, on disk. Whoever comes for the first time begins now."""

    def __init__(self, audit: AuditReads, name: str) -> None:
        self._audit = audit
        self._name = name

    async def cursor(self) -> str:
        stored, head = await self._audit.marks.get(self._name), self._audit.head
        if stored == 0:
            await self.reached(str(head))
            return str(head)
        return str(min(stored - 1, head))  # a store that was put back from a copy is behind its followers

    async def reached(self, cursor: str) -> None:
        """`StorageFull` where there is no room."""
        # One more than the seq: 0 stands for somebody who never came, and a feed may be empty when they come.
        await self._audit.marks.set(self._name, int(cursor) + 1)


class _Named(Struct, frozen=True):
    """Units that events name, and what is said of those that are entries."""

    units: dict[int, UnitRow]
    entries: dict[int, EntryRow]
    labels: dict[int, EntryTexts]  # of what was purged there are none

    @classmethod
    async def read(cls, audit: AuditReads, seqs: Sequence[int]) -> "_Named":
        named = cls({}, {}, {})
        for start in range(0, len(seqs), NAMED_AT_ONCE):
            await named._add(audit, seqs[start : start + NAMED_AT_ONCE])
            await asyncio.sleep(0)
        return named

    async def _add(self, audit: AuditReads, seqs: Sequence[int]) -> None:
        self.units.update(await audit.units(seqs))
        entries = await audit.entries_of(seqs)
        self.entries.update(entries)
        texts = await audit.texts([row.written for row in entries.values()])
        for unit, row in entries.items():
            if row.written in texts:
                self.labels[unit] = decode_texts(texts[row.written].body, EntryTexts)

    def id_of(self, unit: int) -> str:
        """An entry's own id where it has one."""
        return self.labels.get(unit, _NO_LABELS).id or self.units[unit].id

    def written(self, unit: int) -> dict[str, Any]:
        labels = self.labels.get(unit, _NO_LABELS)
        told = {
            "memoryId": self.id_of(unit),
            "nodeId": labels.node_id,
            "agentId": labels.agent_id,
            "tags": list(labels.tags) or None,
        }
        return {name: value for name, value in told.items() if value is not None}


def event_from(flat: dict[str, Any]) -> FeedEvent:
    """An event as a server tells it."""
    payload = {name: value for name, value in flat.items() if name not in ("id", "type", "ts")}
    return FeedEvent(flat["id"], flat["type"], flat["ts"], payload)


def _compaction(event: MemoryCompacted, named: _Named) -> dict[str, Any]:
    told: dict[str, Any] = {
        "outputId": named.id_of(event.output),
        "sourceCount": event.sources,
        "trigger": TRIGGER,
        "byteSize": event.bytes,
    }
    if event.units:
        told["sourceIds"] = [named.id_of(unit) for unit in event.units]
    if event.token_budget is not None:
        told["distillation"] = {
            "tokenBudget": event.token_budget,
            "tokensUsed": event.tokens_used or 0,
            "indexUpdated": event.index_updated,
        }
    return told


def _consolidation(event: MemoryConsolidated, named: _Named) -> dict[str, Any]:
    told: dict[str, Any] = {"inputCount": event.inputs, "outputCount": event.outputs, "trigger": TRIGGER}
    if event.units:
        told["mergedIds"] = [named.id_of(unit) for unit in event.units]
    return told


def _units(event: AnyEvent) -> tuple[int, ...]:
    match event:
        case EntryWritten(unit=unit):
            return (unit,)
        case MemoryCompacted(output=output, units=units):
            return (output, *units)
        case MemoryConsolidated(units=units):
            return units
        case _:
            return ()


def _slices(rows: Sequence[FeedRow]) -> Iterator[Sequence[FeedRow]]:
    return (rows[start : start + TOLD_AT_ONCE] for start in range(0, len(rows), TOLD_AT_ONCE))


def _start(since: str | None) -> tuple[int, int | None]:
    """The entry to begin after, and the time to begin at."""
    if since is None:
        return 0, None
    if _CURSOR.fullmatch(since) and int(since) <= MAX_EPOCH:
        return int(since), None
    return 0, _milliseconds(since)


def _milliseconds(since: str) -> int:
    try:
        if _RFC_3339.fullmatch(since):
            return (datetime.fromisoformat(since.upper()) - _EPOCH) // timedelta(milliseconds=1)
    except ValueError:  # a day that no month has, or an hour that no day has
        pass
    raise InvalidPayload(
        "since must be a cursor, or a time as in 2026-01-31T08:00:00Z.",
        suggested_action="Use the id of an event, the `next` of a page, or a time; in a query + is written %2B.",
    )
