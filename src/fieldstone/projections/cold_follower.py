"""Keeps hot and cold apart: words and rows of archived units are in the cold part, and only there.

A crash between a step and its index leaves work: it is found in the log when the field opens, after the mark that says
up to which entry the indexes are right.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

import structlog

from fieldstone.core.errors import StorageFull
from fieldstone.core.events import UnitsArchived, UnitsPurged, UnitsRestored, UnitTexts, decode_entry, decode_texts
from fieldstone.ports.store import Store
from fieldstone.ports.text_index import Document
from fieldstone.projections.text_follower import TextFollower, searchable

COOLED: Final = "cooled"
BATCH_ENTRIES: Final = 1_000
MOVED_AT_ONCE: Final = 1_024  # rows: they share the way to the disk

logger = structlog.get_logger("fieldstone.cold")


class ColdFollower:
    def __init__(self, store: Store, follower: TextFollower) -> None:
        self._store = store
        self._follower = follower
        self._waiting = 0  # rows that are still hot
        self._owed: int | None = None  # the first entry that could not be followed: the mark must not pass it

    async def cool(self, texts: Mapping[int, UnitTexts], entry: int) -> None:
        """First they are found among the archived, then no longer among the others."""
        documents = [Document(seq, searchable(each)) for seq, each in sorted(texts.items())]
        await self._store.cold.index.add(documents, position=entry)
        await self._follower.drop(list(texts))
        self._waiting += len(texts)
        if self._waiting >= MOVED_AT_ONCE:
            self._waiting = 0
            await self._store.move_units(limit=MOVED_AT_ONCE, at_once=False)  # with those that are archived next

    async def move_rows(self) -> None:
        """Whatever is archived by now. What is cut off is found again by the mark in the row itself."""
        self._waiting = 0
        while await self._store.move_units(limit=MOVED_AT_ONCE):
            pass

    async def warm(self, texts: Mapping[int, UnitTexts]) -> None:
        """Restored units are found among the others again."""
        await self._follower.take_back(texts)
        await self._store.cold.index.remove(list(texts))
        await self._store.cold.erase(list(texts))

    async def forget(self, units: Sequence[int], texts: Sequence[int]) -> None:
        """Purged units are found nowhere, and nothing of their texts is anywhere."""
        await self._follower.drop(units)
        await self._store.cold.index.remove(units)
        await self._store.cold.erase(texts)

    async def mark(self, entry: int) -> None:
        """All that the log says up to this entry is done, as far as nothing is owed."""
        await self.move_rows()
        await self._store.marks.set(COOLED, entry if self._owed is None else min(entry, self._owed - 1))

    @contextmanager
    def following(self, entry: int) -> Iterator[None]:
        """What fails in here is owed until the field opens again."""
        try:
            yield
        except BaseException:  # why: whatever it was, it is not done
            self._owed = entry if self._owed is None else min(entry, self._owed)
            raise

    async def catch_up(self, head: int, purged: Callable[[UnitsPurged], Awaitable[None]]) -> None:
        """`purged` does all that is left to do of a purge.

        Rows that have no room beside the store stay in it, and count there: whoever frees room needs the field open.
        """
        await self._follow_log(head, purged)
        try:
            await self.move_rows()
        except StorageFull:
            logger.warning("there is no room to move rows of archived units to: they stay where they are")

    async def _follow_log(self, head: int, purged: Callable[[UnitsPurged], Awaitable[None]]) -> None:
        if not await self._store.views.compactions():
            return
        if not await self._store.cold.index.position():
            await self._fill(head)
        at = await self._store.marks.get(COOLED)
        while at < head and (stored := await self._store.log.read(after=at, limit=BATCH_ENTRIES)):
            for each in stored:
                event = decode_entry(each.body).event
                if isinstance(event, UnitsArchived):
                    await self.cool(await self._texts(event.units), each.seq)
                elif isinstance(event, UnitsRestored):
                    await self.warm(await self._texts(event.units))
                elif isinstance(event, UnitsPurged):
                    await purged(event)
            at = stored[-1].seq

    async def refill(self, head: int) -> None:
        await self.move_rows()
        if await self._store.cold.index.position():
            await self._store.cold.index.clear()
            await self._fill(head)

    async def _fill(self, head: int) -> None:
        """The cold index is new, or was lost: every archived unit goes in."""
        after = 0
        while rows := await self._store.views.scan_units(after=after, limit=BATCH_ENTRIES):
            after = rows[-1].seq
            archived = [row.seq for row in rows if row.archived_epoch is not None and row.purged_seq is None]
            texts = await self._texts(archived)
            documents = [Document(seq, searchable(each)) for seq, each in sorted(texts.items())]
            if documents:
                await self._store.cold.index.add(documents, position=head)

    async def _texts(self, units: Sequence[int]) -> dict[int, UnitTexts]:
        stored = await self._store.texts.get(units)
        return {seq: decode_texts(each.body, UnitTexts) for seq, each in stored.items()}
