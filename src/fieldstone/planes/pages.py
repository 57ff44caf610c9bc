"""A stream as readers see it, page by page: not below its floor, and not what may still begin a secret."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from msgspec import Struct, json

from fieldstone.core.errors import StreamCompacted
from fieldstone.core.streams import StoredEvent, StreamEvent
from fieldstone.ports.planes import EventBlock, EventRow, ReadTables, StreamRow
from fieldstone.retrieval.reading import timestamp

HELD_MS: Final = 250  # how long readers wait for the delta that tells whether a secret goes on

_events: Final = json.Decoder(list[StreamEvent])
_times: Final = json.Decoder(list[int])


class EventPage(Struct, frozen=True, gc=False):
    events: list[StoredEvent]
    head: int
    floor: int


class RowPage(NamedTuple):
    """Events as they are stored. `shown_to` is the last seq that readers may see; `held_ms` how long the rest waits."""

    rows: Sequence[EventRow]
    head: int
    floor: int
    shown_to: int
    held_ms: int | None


def page_after(stream: str, after: int, limit: int, now_ms: int, tables: ReadTables) -> EventPage:
    row, shown_to, _ = _visible(tables, stream, after, now_ms)
    blocks = tables.event_blocks(stream, after=after, limit=limit, until=shown_to)
    return EventPage(shown_events(stream, blocks), row.head, row.floor)


def rows_after(stream: str, after: int, limit: int, now_ms: int, tables: ReadTables) -> RowPage:
    row, shown_to, held_ms = _visible(tables, stream, after, now_ms)
    rows = tables.events(stream, after=after, limit=limit, until=shown_to) if limit and after < shown_to else []
    return RowPage(rows, row.head, row.floor, shown_to, held_ms)


def shown_events(stream: str, blocks: Sequence[EventBlock]) -> list[StoredEvent]:
    """The events of one append have one time: it is written out once."""
    shown: list[StoredEvent] = []
    written_ms, written = -1, ""
    for seqs, times_ms, bodies in blocks:
        for seq, at_ms, event in zip(seqs, _times.decode(times_ms), _events.decode(bodies), strict=True):
            if at_ms != written_ms:
                written_ms, written = at_ms, timestamp(at_ms)
            shown.append(StoredEvent(stream, seq, written, event))
    return shown


def _visible(tables: ReadTables, stream: str, after: int, now_ms: int) -> tuple[StreamRow, int, int | None]:
    """The stream, the last seq of it that readers may see, and how long the rest waits."""
    row = tables.stream(stream) or StreamRow(stream)
    if after < row.floor:
        raise StreamCompacted(
            f"Events up to {row.floor} are gone: a snapshot stands for them.", extra={"floor": row.floor}
        )
    if row.held_from is not None and row.held_ms is not None and 0 <= now_ms - row.held_ms < HELD_MS:
        return row, row.held_from - 1, min(HELD_MS, row.held_ms + HELD_MS - now_ms)
    return row, row.head, None
