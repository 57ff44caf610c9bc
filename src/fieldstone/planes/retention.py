"""Which streams a retention run compacts, and how much of each stays. Age alone never takes anything away.

It is asked for, it compacts only behind a verified snapshot, and it leaves alone what is not finished.
"""

from collections.abc import AsyncIterator
from functools import partial
from typing import Final

from msgspec import Struct

from fieldstone.core.errors import InvalidPayload
from fieldstone.core.transcripts import OPEN_STATUSES
from fieldstone.planes.compaction import StreamCompaction
from fieldstone.planes.streams import Streams
from fieldstone.ports.planes import ReadTables, StreamRow
from fieldstone.ports.world import Clock

DAY_MS: Final = 86_400_000
STREAMS_AT_ONCE: Final = 200


class StreamRetention(Struct, frozen=True, gc=False, forbid_unknown_fields=True, rename="camel"):
    """`finished_days`: how long a finished run's events stay for replay after it ended.

    `keep_events`: of each stream at least so many of the newest stay.
    `without_run`: whether streams that belong to no run are compacted too. Of these nobody can say that they are
    finished, so it is only done if asked for, and `finished_days` counts from the last append.
    """

    finished_days: float = 7
    keep_events: int = 0
    without_run: bool = False

    def check(self) -> None:
        if self.finished_days < 0 or self.keep_events < 0:
            raise InvalidPayload("finishedDays and keepEvents are numbers from 0.")


class RetainedStream(Struct, frozen=True, gc=False, rename="camel"):
    """What became of one stream, or would."""

    stream_id: str
    compaction: StreamCompaction


async def apply_retention(
    streams: Streams, settings: StreamRetention, clock: Clock, *, dry_run: bool = False
) -> AsyncIterator[RetainedStream]:
    """Stream by stream; those with nothing to do are not named."""
    settings.check()
    before_ms = clock.now_ms() - int(settings.finished_days * DAY_MS)
    after = ""
    while True:
        due, last = await streams.store.read(partial(_due, settings, before_ms, after))
        for stream in due:
            done = await streams.compact(stream, dry_run=dry_run, keep_events=settings.keep_events)
            if done.eligible:
                yield RetainedStream(stream, done)
        if last is None:
            return
        after = last


def _due(settings: StreamRetention, before_ms: int, after: str, tables: ReadTables) -> tuple[list[str], str | None]:
    """Of the next page of streams those whose time is up, and where the page ends; None: it was the last."""
    page = tables.streams(after=after, limit=STREAMS_AT_ONCE)
    due = [row.stream for row in page if row.head > row.floor and _is_due(tables, row, settings, before_ms)]
    return due, page[-1].stream if len(page) == STREAMS_AT_ONCE else None


def _is_due(tables: ReadTables, row: StreamRow, settings: StreamRetention, before_ms: int) -> bool:
    run = tables.run_of_stream(row.stream)
    if run is None:
        return settings.without_run and row.active_ms <= before_ms
    return run.status not in OPEN_STATUSES and run.finished_ms is not None and run.finished_ms <= before_ms
