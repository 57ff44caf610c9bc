"""From groups of units to what a summariser makes of them, several groups within one budget."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from itertools import islice
from typing import Final

from msgspec import Struct, structs

from fieldstone.compaction.pace import in_thread, unhurried
from fieldstone.compaction.plan import GONE
from fieldstone.compaction.shares import share_out
from fieldstone.core.events import EntryTexts, UnitTexts, decode_texts
from fieldstone.field.state import FieldState
from fieldstone.field.synthesis import MOST_TAGS, PROVENANCE_TAG, Group
from fieldstone.ports.summarizer import Distillate, Original, Summarizer
from fieldstone.ports.tokens import TokenCounter
from fieldstone.ports.views import UnitRow
from fieldstone.projections.columns import STATUS_CODES

WINDOW_GROUPS: Final = 32  # share one budget: a group that says much gets more of it
READ_AT_ONCE: Final = 256
LEAST_TOKENS: Final = 24  # of a group: less says nothing


class Distilled(Struct, frozen=True):
    """A group, what it says, and how long that was. `distillate` None: nothing in it is to be said again."""

    rows: Sequence[UnitRow]
    originals: Sequence[Original]
    tokens: int
    bytes: int
    distillate: Distillate | None = None
    tags: Sequence[str] = ()

    def group(self) -> Group:
        said = {original.unit_id for original in self.originals}
        return Group(
            units=[row.seq for row in self.rows],
            ids=[row.id for row in self.rows],
            statuses=[row.status for row in self.rows],
            said=[row.seq for row in self.rows if row.id in said],
            quoted=len({quote.unit_id for quote in self.distillate.quotes}) if self.distillate else 0,
            text=self.distillate.text if self.distillate else "",
            agents=sorted({original.author for original in self.originals}),
            tags=self.tags,
        )


class Distilling:
    """`ratio`: how much shorter a synthesis is to be."""

    def __init__(self, state: FieldState, summarizer: Summarizer, counter: TokenCounter, *, ratio: float) -> None:
        self._state = state
        self._summarizer = summarizer
        self._counter = counter
        self._ratio = ratio

    async def each(self, groups: Iterable[Sequence[int]], *, most_bytes: int | None = None) -> AsyncIterator[Distilled]:
        """`most_bytes`: how long a synthesis may be."""
        rest = iter(groups)
        while window := list(islice(rest, WINDOW_GROUPS)):
            read = [await self.looked_at(units) for units in window]
            shares = await in_thread(self._shares, read)
            for each, share in zip(read, shares, strict=True):
                distillate = await self.distil(each.originals, share, most_bytes) if each.originals else None
                yield structs.replace(each, distillate=distillate)

    async def distil(self, originals: Sequence[Original], tokens: int, most_bytes: int | None = None) -> Distillate:
        """What is essential may be longer than it should: whoever keeps it has to look."""
        distillate = await self._summarizer.distil(originals, tokens)
        if most_bytes is None:
            return distillate
        whole = await in_thread(self._count, originals)
        while not distillate.text and tokens < whole:  # of a memory something always comes out
            tokens = min(whole, 2 * tokens)
            distillate = await self._summarizer.distil(originals, tokens)
        while len(distillate.text.encode()) > most_bytes and tokens > LEAST_TOKENS:
            tokens = max(LEAST_TOKENS, tokens // 2)
            distillate = await self._summarizer.distil(originals, tokens)
        return distillate

    async def one(self, units: Sequence[int]) -> Distilled:
        async for distilled in self.each([units]):
            return distilled
        raise ValueError("a group has units")

    async def looked_at(self, units: Sequence[int]) -> Distilled:
        """What they say, and how long it is."""
        parts = [await self._read(units[at : at + READ_AT_ONCE]) for at in range(0, len(units), READ_AT_ONCE)]
        rows = sorted(row for part, _, _ in parts for row in part)
        originals = [original for _, part, _ in parts for original in part]
        tokens = await in_thread(self._count, originals)
        tags = await self._tags(units) if rows and rows[0].session in self._state.memories else ()
        return Distilled(rows, originals, tokens, sum(size for _, _, size in parts), tags=tags)

    async def _tags(self, units: Sequence[int]) -> tuple[str, ...]:
        """Those of the entries, each once; where one came from is told by its own tag alone."""
        found: dict[str, None] = {}
        for at in range(0, len(units), READ_AT_ONCE):
            entries = await self._state.store.views.entries_of(units[at : at + READ_AT_ONCE])
            texts = await self._state.store.texts.get([row.written for row in entries.values()])
            for stored in texts.values():
                found.update(dict.fromkeys(decode_texts(stored.body, EntryTexts).tags))
            await asyncio.sleep(0)
            if len(found) >= MOST_TAGS:
                break
        return tuple(tag for tag in found if not tag.startswith(PROVENANCE_TAG))[:MOST_TAGS]

    async def _read(self, units: Sequence[int]) -> tuple[list[UnitRow], list[Original], int]:
        """Some of a group: who reads thousands lets others go on in between."""
        rows = sorted((await self._state.store.views.units(units)).values())
        texts = await self._state.store.texts.get(units)
        said = [row for row in rows if row.seq in texts and STATUS_CODES[row.status] not in GONE]
        originals = [await self._original(row, decode_texts(texts[row.seq].body, UnitTexts)) for row in said]
        await asyncio.sleep(0)
        return rows, originals, sum(len(each.body) for each in texts.values())

    def _count(self, originals: Sequence[Original]) -> int:
        return sum(self._counter.count(original.text) for original in unhurried(originals))

    def _shares(self, groups: Sequence[Distilled]) -> list[int]:
        """Groups of which nothing is to be said again get nothing."""
        budget = int(sum(group.tokens for group in groups) / self._ratio)
        shares = iter(share_out([group.originals for group in groups if group.originals], budget, self._counter))
        return [max(LEAST_TOKENS, next(shares)) if group.originals else 0 for group in groups]

    async def _original(self, row: UnitRow, texts: UnitTexts) -> Original:
        # A memory's host speaks for others, and a key's id tells nothing.
        author = "" if row.session in self._state.memories else await self._state.names.name(row.agent)
        return Original(row.id, row.epoch, row.type, author, texts.content, row.status == "contested")
