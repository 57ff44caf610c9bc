"""Compaction and distillation of an OpenWOP memory: many entries become few, on the road that every synthesis takes."""

import asyncio
from collections.abc import Collection, Sequence
from hashlib import sha256
from typing import Final

from msgspec import Struct

from fieldstone.compaction.extractive import Extractive
from fieldstone.compaction.pace import in_thread, unhurried
from fieldstone.compaction.plan import Selection
from fieldstone.core.access import Caller
from fieldstone.core.errors import CompactionRedactionFailed, SecretLeakage, TokenBudgetExceeded
from fieldstone.core.events import MemoryCompacted, decode_entry
from fieldstone.core.replies import Compacted
from fieldstone.field.cleaning import Cleaning
from fieldstone.field.compact import LEAST_SOURCES, Compactions
from fieldstone.field.compacting import Asked
from fieldstone.field.distillation import Distillation, Spent
from fieldstone.field.distilling import LEAST_TOKENS
from fieldstone.field.entries import Entries, KeptEntry
from fieldstone.field.putting import NewEntry
from fieldstone.field.sight import Sight
from fieldstone.field.state import FieldState
from fieldstone.field.synthesis import CHANGED_MEANWHILE, HOLDS_A_SECRET
from fieldstone.field.writer import Writer
from fieldstone.ports.summarizer import Distillate, Original
from fieldstone.ports.tokens import TokenCounter
from fieldstone.ports.views import FeedRow
from fieldstone.ports.world import Ids

# A memory whose compaction names all of its sources keeps its audit whole: above, OpenWOP lets them be counted only.
GROUP_ENTRIES: Final = 100
MOST_TRIES: Final = 3  # where an entry was deleted, replaced or disputed while the others were read


class Archived(Struct, frozen=True):
    """What a distillation left behind."""

    told: FeedRow
    checksum: str  # of the output's content, which holds no id and no time


class Condensing:
    """`ratio`: how much shorter a distillation is than what it is made from."""

    def __init__(
        self,
        state: FieldState,
        writer: Writer,
        entries: Entries,
        compactions: Compactions,
        cleaning: Cleaning,
        counter: TokenCounter,
        ids: Ids,
        *,
        ratio: float,
    ) -> None:
        self._state = state
        self._writer = writer
        self._entries = entries
        self._compactions = compactions
        self._cleaning = cleaning
        self._counter = counter
        self._ids = ids
        self._ratio = ratio
        # The same sources within the same budget give the same bytes: a model would not.
        self._summarizer = Extractive(counter)

    async def compact(
        self,
        memory: str,
        units: Sequence[int],
        *,
        why: str,
        group_entries: int = GROUP_ENTRIES,
        output_bytes: int | None = None,
        deletes: bool = False,
    ) -> list[FeedRow]:
        """These entries become fewer; an event for each that came out of it. Fewer than two: none."""
        session = await self._entries.session(memory)
        if session is None:
            return []
        selection = Selection("summarize", self._state.epoch, session=session, derived=frozenset(units))
        asked = Asked(
            selection,
            Sight(None),
            verify=False,
            group_units=group_entries,
            output_bytes=output_bytes,
            deletes=deletes,
        )
        made: Sequence[str] = ()
        for _ in range(MOST_TRIES):
            compacted = await self._compactions.condense(asked, why)
            _raise_if_a_secret_stayed(compacted)
            made = compacted.synthesis_units or ()
            if made or not any(each.reason == CHANGED_MEANWHILE for each in compacted.skipped):
                break
        return await self._told(made)

    async def distil(
        self,
        caller: Caller,
        memory: str,
        token_budget: int,
        *,
        sources: Sequence[NewEntry] | None = None,
        units: Collection[int] | None = None,
        index: bool = False,
    ) -> Archived | None:
        """All entries of the memory, some of them (`units`), or these new ones alone (`sources`); nothing is written
        where the budget is too small.

        None: there is nothing to distil.
        """
        work: Distillation | None = None
        while work is None or not work.output:  # another may have taken some of the same entries meanwhile
            work = await self._distilled(caller, memory, token_budget, sources, units, index=index)
            if work is None:
                return None
        await self._compactions.shelve(work.units, work.entry)
        [told] = await self._told([work.output_id])
        [output] = await self._entries.told(list((await self._state.store.views.entries_of([work.output])).values()))
        return Archived(told, sha256(output.content.encode()).hexdigest())

    async def _distilled(
        self,
        caller: Caller,
        memory: str,
        budget: int,
        sources: Sequence[NewEntry] | None,
        units: Collection[int] | None,
        *,
        index: bool,
    ) -> Distillation | None:
        kept = [] if sources is not None else await self._free(memory, units)
        originals = await self._given(sources) if sources is not None else _originals(kept)
        if not originals or (sources is None and len(kept) < LEAST_SOURCES):
            return None
        distillate, spent = await self._within(originals, budget, index=index)
        work = Distillation(caller, memory, sources, kept, distillate, spent, self._ids, shared=self._entries.shared)
        try:
            await self._writer.submit(work)
        except SecretLeakage as refused:
            raise refused if sources is not None else CompactionRedactionFailed from refused
        return work

    async def _free(self, memory: str, units: Collection[int] | None) -> list[KeptEntry]:
        """The memory's entries that nobody holds or pinned, among these."""
        guarded = {guard.unit for guard in self._state.guards}
        kept = await self._entries.list(memory, limit=None)
        wanted = kept if units is None else [each for each in kept if each.row.unit in units]
        return [each for each in wanted if each.row.unit not in guarded]

    async def archives(self, memory: str) -> list[tuple[KeptEntry, FeedRow, MemoryCompacted]]:
        """What distillations of the memory left behind, newest first."""
        found: list[tuple[KeptEntry, FeedRow, MemoryCompacted]] = []
        for entry in await self._entries.list(memory, limit=None):
            told = await self._state.store.views.feed_of(entry.row.unit, "memory.compacted")
            event = None if told is None else await self._event(told)
            if told is not None and isinstance(event, MemoryCompacted) and event.token_budget is not None:
                found.append((entry, told, event))
        return found

    async def _event(self, told: FeedRow) -> object:
        [stored] = await self._state.store.log.read(after=told.seq - 1, limit=1)
        return decode_entry(stored.body).event

    async def _told(self, unit_ids: Sequence[str]) -> list[FeedRow]:
        views = self._state.store.views
        rows = [await views.unit(unit_id) for unit_id in unit_ids]
        found = [await views.feed_of(row.seq, "memory.compacted") for row in rows if row is not None]
        return [told for told in found if told is not None]

    async def _given(self, sources: Sequence[NewEntry]) -> list[Original]:
        """Clean before anything is made from them, as they will be stored."""
        harness = await self._cleaning.harness()
        cleaned = await asyncio.to_thread(harness.clean_groups, [[source.content] for source in sources])
        return [Original(f"{number:08}", 0, "observation", "", clean.texts[0]) for number, clean in enumerate(cleaned)]

    def _counted(self, originals: Sequence[Original]) -> dict[str, int]:
        """Tokens by type."""
        sizes = dict.fromkeys((original.type for original in originals), 0)
        for original in unhurried(originals):
            sizes[original.type] += self._counter.count(original.text)
        return sizes

    async def _within(self, originals: Sequence[Original], budget: int, *, index: bool) -> tuple[Distillate, Spent]:
        sizes = await in_thread(self._counted, originals)
        read = sum(sizes.values())
        shortest = await self._summarizer.distil(originals, LEAST_TOKENS)
        least = read + max(1, shortest.tokens)
        if budget < least:
            raise TokenBudgetExceeded(extra={"details": {"budget": budget, "minimumRequired": least}})
        # What was distilled before is short already: to shorten it each time would lose it.
        before = sizes.get("synthesis", 0)
        room = min(budget - read, max(LEAST_TOKENS, before + int((read - before) / self._ratio)))
        distillate = await self._summarizer.distil(originals, room)
        if not distillate.text or distillate.tokens > budget - read:
            distillate = shortest
        return distillate, Spent(budget, read + distillate.tokens, index)


def _originals(kept: Sequence[KeptEntry]) -> list[Original]:
    oldest_first = reversed(kept)
    return [Original(f"{number:08}", 0, each.type, "", each.content) for number, each in enumerate(oldest_first)]


def _raise_if_a_secret_stayed(compacted: Compacted) -> None:
    if any(skipped.reason == HOLDS_A_SECRET for skipped in compacted.skipped):
        raise CompactionRedactionFailed
