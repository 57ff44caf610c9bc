"""Into cold storage, and back: texts and words move, the log says so, and nothing is lost on the way.

The copy is on disk before the original goes, in both directions; so a crash leaves at worst one copy too many, which
the next step writes over.
"""

import asyncio
from collections.abc import Sequence

from fieldstone.compaction.plan import BATCH_UNITS
from fieldstone.core.errors import SecretLeakage
from fieldstone.core.events import UnitsArchived, UnitsRestored, UnitTexts, decode_texts
from fieldstone.core.replies import Reply
from fieldstone.core.text import CleanText
from fieldstone.field.cooling import Cooling
from fieldstone.field.desk import Desk, Draft
from fieldstone.field.state import FieldState
from fieldstone.field.steps import PIECE_UNITS, Stride, parts
from fieldstone.field.synthesis import HOLDS_A_SECRET, Synthesizing
from fieldstone.field.work import NO_ANSWER, Wordless
from fieldstone.field.writer import Writer
from fieldstone.ports.log import StoredText
from fieldstone.ports.store import Commit
from fieldstone.projections.cold_follower import ColdFollower


class Archive:
    def __init__(self, state: FieldState, writer: Writer, cold: ColdFollower, cooling: Cooling) -> None:
        self._state = state
        self._writer = writer
        self._cold = cold
        self._cooling = cooling
        self._stride = Stride(lambda: writer.others)

    async def put(self, units: Sequence[int], compaction: int, *, into: int | None = None) -> tuple[int, int]:
        """How many units went, and how many bytes of text left the hot store. `into`: the synthesis that stands for
        them."""
        async with self._state.rewriting:
            stored = await self.copy(units)
            went: list[Archiving] = []
            with self._cold.following(self._state.head.seq + 1):
                try:
                    for part in parts(units, self._stride.units):
                        step = Archiving(compaction, part, into)
                        await self._writer.submit_patiently(step)
                        went.append(step)
                finally:  # those that went are followed, whatever became of the others
                    gone = [unit for step in went for unit in step.archived if unit in stored]
                    await self._follow(stored, gone, max((step.entry for step in went), default=0))
            self._stride.note()
        return sum(len(step.archived) for step in went), sum(len(stored[unit].body) for unit in gone)

    async def put_all(self, units: Sequence[int], compaction: int, into: int) -> None:
        """Those that are still to go."""
        for batch in parts(units, BATCH_UNITS):
            await self.put(batch, compaction, into=into)
            await asyncio.sleep(0)

    async def put_as(self, works: Sequence[Synthesizing]) -> list[int]:
        """Groups go, each with the synthesis that stands for it in the same step. The bytes that left with each."""
        async with self._state.rewriting:
            stored = await self.copy([unit for work in works for unit in work.units])
            broken = await self._synthesize_all(works)
            went = [work for work, error in zip(works, broken, strict=True) if error is None and work.unit]
            gone = [unit for work in went for unit in work.units]
            await self._follow(stored, gone, max((work.entry for work in went), default=0))
            for error in broken:  # now: those that went are followed, whatever became of the others
                if error is not None:
                    raise error
            self._stride.note()
        return [sum(len(stored[unit].body) for unit in work.units if unit in stored) for work in works]

    async def _synthesize_all(self, works: Sequence[Synthesizing]) -> list[BaseException | None]:
        """What went wrong with each. Alone they share the way to the disk; beside others each of them goes by itself:
        eight keep a RECORD waiting for 15 ms, and one for 2."""
        if self._stride.is_alone:
            return await asyncio.gather(*map(self._synthesize, works), return_exceptions=True)
        return [
            broken for work in works for broken in await asyncio.gather(self._synthesize(work), return_exceptions=True)
        ]

    async def _synthesize(self, work: Synthesizing) -> None:
        try:
            await self._writer.submit_patiently(work)
        except SecretLeakage:
            work.stays = HOLDS_A_SECRET

    async def mark(self) -> None:
        """Whatever the log says is done."""
        await self._cooling.flush()
        await self._cold.mark(self._state.head.seq)

    async def move(self, units: Sequence[int], entry: int) -> None:
        """Texts of units that are archived already, and lie in the hot part."""
        for batch in parts(units, BATCH_UNITS):
            stored = await self.copy(batch)
            if stored:
                await self._state.store.commit(Commit(erased_texts=sorted(stored), makes_room=True))
                await self._follow(stored, sorted(stored), entry)

    async def copy(self, units: Sequence[int]) -> dict[int, StoredText]:
        """On disk in the cold part when it returns. The originals are still there."""
        stored: dict[int, StoredText] = {}
        for part in parts(units, PIECE_UNITS):
            stored |= await self._state.store.texts.get(part)
            await asyncio.sleep(0)
        await self._state.store.cold.put([stored[seq] for seq in sorted(stored)])
        return stored

    async def _follow(self, stored: dict[int, StoredText], archived: Sequence[int], entry: int) -> None:
        texts: dict[int, UnitTexts] = {}
        for part in parts([seq for seq in archived if seq in stored], PIECE_UNITS):
            texts |= {seq: decode_texts(stored[seq].body, UnitTexts) for seq in part}
            await asyncio.sleep(0)
        if texts:
            with self._cold.following(entry):
                await self._cold.cool(texts, entry)
                await self._cooling.cool(list(texts))

    async def restore(self, units: Sequence[int], credential: str | None) -> int:
        restored = 0
        distinct = sorted(set(units))
        for batch in parts(distinct, BATCH_UNITS):
            restored += await self._restore(batch, credential)
        return restored

    async def _restore(self, units: Sequence[int], credential: str | None) -> int:
        async with self._state.rewriting:
            stored = await self._state.store.texts.get(units)
            restoring = Restoring(units, list(stored.values()), credential)
            await self._writer.submit(restoring)
            restored = {seq: stored[seq] for seq in restoring.restored if seq in stored}
            await self._cold.warm({seq: decode_texts(each.body, UnitTexts) for seq, each in restored.items()})
            await self._cooling.warm(list(restored))
            await self._cold.mark(self._state.head.seq)
        return len(restoring.restored)


class Archiving(Wordless):
    """Units whose copies lie in cold storage leave the hot one, as far as they are still to go."""

    def __init__(self, compaction: int, units: Sequence[int], into: int | None = None) -> None:
        self._compaction = compaction
        self._units = units
        self._into = into
        self.archived: list[int] = []
        self.entry = 0

    async def decide(self, desk: Desk, clean: Sequence[CleanText]) -> tuple[Draft, Reply]:
        draft = desk.quiet_draft(desk.epoch)
        draft.makes_room = True
        self.archived = [row.seq for row in await desk.units_at(self._units) if desk.is_to_go(row)]
        if self.archived:
            units = tuple(self.archived)
            self.entry = draft.append(UnitsArchived(compaction=self._compaction, units=units, into=self._into))
            draft.erased += self.archived
        return draft, NO_ANSWER


class Restoring(Wordless):
    def __init__(self, units: Sequence[int], stored: Sequence[StoredText], credential: str | None) -> None:
        self._units = units
        self._stored = {each.seq: each for each in stored}
        self._credential = credential
        self.restored: list[int] = []

    async def decide(self, desk: Desk, clean: Sequence[CleanText]) -> tuple[Draft, Reply]:
        draft = desk.draft(desk.epoch)
        rows = await desk.units_at(self._units)
        archived = [row.seq for row in rows if row.archived_epoch is not None and row.purged_seq is None]
        self.restored = [seq for seq in archived if seq in self._stored]  # without its text it is not back
        if self.restored:
            draft.append(UnitsRestored(units=tuple(self.restored), credential=self._credential))
            draft.replaced += [self._stored[seq] for seq in self.restored]
        return draft, NO_ANSWER
