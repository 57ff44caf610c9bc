"""PURGE: a unit's text is gone for good, wherever it was; the log keeps a tombstone.

First the tombstone is on disk and the text is out of the hot store, in one transaction. Then whatever else held it is
cleared: cold copies, words, vectors, remembered answers, hints, journals. A crash in between is made up for when the
field opens: until the mark has passed the tombstone, the clearing is done again.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from fieldstone.core.errors import SecretLeakage
from fieldstone.core.events import ReasonText, UnitDiscarded, UnitRetracted, UnitsPurged, decode_entry
from fieldstone.core.replies import Reply
from fieldstone.core.text import CleanText
from fieldstone.field.cooling import Cooling
from fieldstone.field.desk import Desk, Draft
from fieldstone.field.relate import settle
from fieldstone.field.state import FieldState
from fieldstone.field.steps import Stride, parts
from fieldstone.field.synthesis import Synthesizing
from fieldstone.field.work import NO_ANSWER, Wordless
from fieldstone.field.writer import Writer
from fieldstone.ports.log import EventLog
from fieldstone.ports.views import UnitRow
from fieldstone.projections.cold_follower import ColdFollower

_UNIT_ID: Final = re.compile(rb"mem-[0-9a-f]{32}")
READ_ENTRIES: Final = 256  # in one turn of the loop

Forget = Callable[[Sequence[int]], Awaitable[None]]


class Purge:
    """`forget` clears what the process itself holds of units: vectors under way, texts that were read."""

    def __init__(self, state: FieldState, writer: Writer, cold: ColdFollower, cooling: Cooling, forget: Forget) -> None:
        self._state = state
        self._writer = writer
        self._cold = cold
        self._cooling = cooling
        self._forget = forget
        self._stride = Stride(lambda: writer.others)
        self._answered: set[bytes] = set()  # ids of purged units that remembered answers may still hold

    async def put(self, work: "Purging", *, in_pieces: bool = False) -> None:
        """A batch goes, all of it or piece by piece. `finish` follows the last one."""
        async with self._state.rewriting:
            went: list[Purging] = []
            with self._cold.following(self._state.head.seq + 1):
                try:
                    for each in work.pieces(self._stride.units) if in_pieces else [work]:
                        await self._submit(each)
                        went.append(each)
                finally:  # those that went are cleared, whatever became of the others
                    events = [each.event for each in went if each.event is not None]
                    await self._clear(events, [unit_id for each in went for unit_id in each.ids])
            self._stride.note()

    async def _submit(self, work: "Purging") -> None:
        try:
            await self._writer.submit_patiently(work)
        except SecretLeakage:  # what goes, goes: a summariser that says a secret cannot keep it
            work.remade = ()
            await self._writer.submit_patiently(work)

    async def erase(self, work: "Erasing") -> None:
        async with self._state.rewriting:
            await self._writer.submit(work)
            if work.event is not None:
                with self._cold.following(work.entry):
                    await self._clear([work.event], ())

    async def clear(self, event: UnitsPurged) -> None:
        """All that is left of these units, after a crash. Done twice it does no harm."""
        rows = await self._state.store.views.units(event.units)
        await self._clear([event], [row.id for row in rows.values()])
        await self.finish()

    async def finish(self) -> None:
        """Answers that name a purged unit are forgotten, and the digests of their messages with them."""
        ids, self._answered = self._answered, set()
        if ids:
            await self._state.store.replies.forget_where(
                lambda bodies: [not ids.isdisjoint(_UNIT_ID.findall(body)) for body in bodies]
            )

    async def _clear(self, events: Sequence[UnitsPurged], ids: Sequence[str]) -> None:
        if not events:
            return
        units = [unit for event in events for unit in event.units]
        await self._cold.forget(units, [text for event in events for text in event.texts])
        await self._forget(units)
        await self._cooling.erase(units)
        self._answered.update(unit_id.encode() for unit_id in ids)


class Purging:
    """A batch of units goes. A synthesis that quotes one of them goes with it, and is made anew from what is left."""

    message = None
    brings_news = True  # syntheses that are made anew

    def __init__(
        self,
        compaction: int | None,
        units: Sequence[int],
        remade: Sequence[Synthesizing] = (),
        reasons: Mapping[int, Sequence[int]] = MappingProxyType({}),
        *,
        why: str | None = None,
        credential: str | None = None,
    ) -> None:
        """`reasons`: for each unit the entries that took it back, whose texts may repeat what it said. `why` and who
        where it is no compaction that purges."""
        self._compaction = compaction
        self._units = units
        self._reasons = reasons
        self._why = why
        self._credential = credential
        self.remade = remade
        self.event: UnitsPurged | None = None
        self.ids: list[str] = []  # of the units that went
        self.entry = 0

    def pieces(self, most: int) -> list["Purging"]:
        """The same in several transactions: for units that no synthesis goes with."""
        same = {"why": self._why, "credential": self._credential}
        return [Purging(self._compaction, part, (), self._reasons, **same) for part in parts(self._units, most)]

    def texts(self) -> Sequence[str]:
        said = [] if self._why is None else [self._why]
        return [*said, *(text for each in self.remade for text in each.texts())]

    def names(self) -> Sequence[tuple[str, str]]:
        return ()

    async def decide(self, desk: Desk, clean: Sequence[CleanText]) -> tuple[Draft, Reply]:
        rows = [row for row in await desk.units_at(self._units) if row.purged_seq is None]
        draft = desk.draft(desk.epoch) if self.remade else desk.quiet_draft(desk.epoch)
        rows = [row for row in rows if not desk.is_guarded(row.seq)]
        if not rows:
            return draft, NO_ANSWER
        self.ids = [row.id for row in rows]
        texts = [*await texts_of(desk, rows), *(seq for row in rows for seq in self._reasons.get(row.seq, ()))]
        self.event = UnitsPurged(
            compaction=self._compaction,
            units=tuple(row.seq for row in rows),
            texts=tuple(sorted(texts)),
            credential=self._credential,
        )
        rest = iter(clean)
        self.entry = draft.append(self.event, None if self._why is None else ReasonText(next(rest)))
        draft.erased += texts
        await settle(draft, desk, [row.seq for row in rows if desk.had_a_dispute(row.seq)], "purged")
        for each in self.remade:
            mine = [next(rest) for _ in each.texts()]
            await each.append_to(draft, desk, await each.rows(desk), mine)
        return draft, NO_ANSWER


class Erasing(Wordless):
    """Texts of a purge that came to light late."""

    def __init__(self, compaction: int, texts: Sequence[int]) -> None:
        self._compaction = compaction
        self._texts = texts
        self.event: UnitsPurged | None = None
        self.entry = 0

    async def decide(self, desk: Desk, clean: Sequence[CleanText]) -> tuple[Draft, Reply]:
        draft = desk.quiet_draft(desk.epoch)
        draft.makes_room = True
        self.event = UnitsPurged(compaction=self._compaction, units=(), texts=tuple(self._texts))
        self.entry = draft.append(self.event)
        draft.erased += self._texts
        return draft, NO_ANSWER


async def texts_of(desk: Desk, rows: Sequence[UnitRow]) -> list[int]:
    """The entries beside which texts of these units lie, or texts that repeat them."""
    seqs = {row.seq for row in rows}
    found = [*seqs, *(row.committed_seq for row in rows if row.committed_seq is not None)]
    found += [entry.written for entry in (await desk.entries_of(list(seqs))).values()]
    for conflict in await desk.conflicts():
        if seqs & {conflict.unit_a, conflict.unit_b}:
            found.append(conflict.seq)
    return [*found, *await _hints_that_showed(desk, seqs)]


async def _hints_that_showed(desk: Desk, units: set[int]) -> list[int]:
    """Reads that returned one of them, as far as their hints are kept: what was asked for may name what was found."""
    return [seq for seq in desk.hints() if units & await desk.shown_by(seq)]


async def reasons_in(log: EventLog, units: Collection[int], *, after: int = 0) -> dict[int, list[int]]:
    """The entries by which these units were retracted or discarded. Nothing else says where they are than the log."""
    found: dict[int, list[int]] = {}
    after = max(after, min(units, default=0))
    end = (await log.head()).seq  # of a log that others write to in every turn there is no end to be met
    while units and after < end and (stored := await log.read(after=after, limit=READ_ENTRIES)):
        after = stored[-1].seq
        for each in stored:
            if b'"unit.retracted"' in each.body or b'"unit.discarded"' in each.body:
                event = decode_entry(each.body).event
                if isinstance(event, UnitRetracted | UnitDiscarded) and event.unit in units:
                    found.setdefault(event.unit, []).append(each.seq)
        await asyncio.sleep(0)
    return found
