"""A compaction at work: planned from its event, carried out step by step, each step whole or not at all.

One runs at a time. What is done is in the log, so one that was cut off is planned again from its event and goes on:
units that went already match no more.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Final

import numpy as np
import structlog
from msgspec import UNSET, Struct, structs

from fieldstone.compaction.plan import BATCH_UNITS, MOST_GROUP_UNITS, Selection, batches, groups, matching
from fieldstone.core.errors import CompactionRunning
from fieldstone.core.replies import Compacted, PlannedGroup, Skipped, Tested, Warnings
from fieldstone.core.vocabulary import FIELD_AGENT_ID, CompactionState, Guard
from fieldstone.field.archiving import Archive
from fieldstone.field.distilling import Distilled, Distilling
from fieldstone.field.purging import Erasing, Purge, Purging, reasons_in
from fieldstone.field.rehearsal import MOST_LOST_SHARE, Rehearsal
from fieldstone.field.sight import Sight
from fieldstone.field.state import FieldState
from fieldstone.field.synthesis import Synthesizing, Whole, said_status, standing_of
from fieldstone.ports.views import UnitRow
from fieldstone.ports.world import Clock, Ids
from fieldstone.projections.columns import PURGED, STATUS_CODES, Snapshot
from fieldstone.projections.vector_index import Rows

NAMED_IN_PLAN: Final = 100
MOST_EXPIRED: Final = 100_000  # that are told apart from the others: beyond, the next sweep has taken some
GROUPS_A_STEP: Final = 8  # several syntheses share the way to the disk
COSTS_TOO_MUCH: Final = "recent requests would no longer find what they found"

Rehearse = Callable[[], Awaitable[Rehearsal]]
ACTIVE: Final = STATUS_CODES["active"]
_TOLD: Final[dict[Guard, str]] = {"hold": "held", "pin": "pinned"}

logger = structlog.get_logger("fieldstone.compacting")


class Asked(Struct, frozen=True):
    """What a compaction is about, and for whose eyes."""

    selection: Selection
    sight: Sight
    verify: bool = True
    group_units: int = MOST_GROUP_UNITS
    output_bytes: int | None = None
    deletes: bool = False  # the originals are purged once their synthesis is there


class Plan(Struct, frozen=True):
    units: Snapshot
    rows: Rows
    skipped: tuple[Skipped, ...]


class Running:
    """How far a compaction is."""

    def __init__(self, compaction_id: str, total: int, credential: str | None) -> None:
        self.id = compaction_id
        self.credential = credential  # of whom asked for it: what it did is theirs to know
        self.entry = 0
        self.total = total
        self.done = 0
        self.syntheses: list[str] = []
        self.bytes = 0
        self.skipped: list[Skipped] = []
        self.fell_back: list[str] = []
        self.state: CompactionState = "running"
        self.cancelled = False
        self.interrupted = False  # by the field's closing: it goes on when it opens again
        self.tested: Tested | None = None
        self.warnings: Warnings = UNSET  # of the request itself
        self.result: Compacted | None = None
        self._changed = asyncio.Event()

    @property
    def stops(self) -> bool:
        return self.cancelled or self.interrupted

    @property
    def is_over(self) -> bool:
        """There is no more to tell: the result is known, or there will be none while the field is open."""
        return self.result is not None or self.state == "failed" or self.interrupted

    def step(self, units: int, size: int = 0) -> None:
        self.done += units
        self.bytes += size
        self.tell()

    def tell(self) -> None:
        """Wake those who watch."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def next_step(self) -> None:
        await self._changed.wait()


class Compacting:
    def __init__(
        self,
        state: FieldState,
        archive: Archive,
        purge: Purge,
        distilling: Distilling,
        rehearse: Rehearse,
        clock: Clock,
        ids: Ids,
    ) -> None:
        self._state = state
        self._archive = archive
        self._purge = purge
        self._distilling = distilling
        self._rehearse = rehearse
        self._clock = clock
        self._ids = ids
        self.running: Running | None = None

    async def plan(self, asked: Asked) -> Plan:
        units = self._state.columns.snapshot(self._state.epoch)
        mask = matching(units, asked.selection) & asked.sight.units(units)
        if asked.selection.strategy == "summarize":  # what is past its time is not said again
            expired = await self._state.store.views.expired_entries(self._clock.now_ms(), limit=MOST_EXPIRED)
            mask &= ~np.isin(units.seq, np.fromiter((row.unit for row in expired), np.int64, len(expired)))
        guarded = {guard.unit: guard.guard for guard in sorted(self._state.guards, reverse=True)}  # a hold goes first
        stay = mask & np.isin(units.seq, np.fromiter(guarded, np.int64, len(guarded)))
        seqs: list[int] = units.seq[stay].tolist()
        ids = await self._state.store.views.units(seqs)
        skipped = tuple(Skipped(ids[seq].id, _TOLD[guarded[seq]]) for seq in seqs)
        return Plan(units, np.flatnonzero(mask & ~stay), skipped)

    async def foresee(self, asked: Asked, plan: Plan) -> Compacted:
        """What it would do, and nothing done."""
        found: list[PlannedGroup] = []
        skipped, rehearsal = list(plan.skipped), None
        if asked.selection.strategy == "summarize":
            rehearsal = await self._rehearse() if asked.verify else None
            async for distilled in self._distilled(asked, plan):
                if reason := await _refused(distilled, rehearsal, asked.output_bytes):
                    skipped += [Skipped(row.id, reason) for row in distilled.rows]
                else:
                    found.append(await self._planned(distilled))
        else:
            for seqs in batches(plan.units, plan.rows):
                found.append(await self._planned(await self._distilling.looked_at(seqs)))
        syntheses = sum(group.tokens_after is not None for group in found)
        return Compacted(
            units_affected=sum(group.units for group in found),
            synthesis_units_created=syntheses,
            storage_reclaimed_bytes=sum(group.bytes for group in found),
            epoch=self._state.epoch,
            skipped=tuple(skipped),
            groups=tuple(found),
            tested=tested(asked, rehearsal) if asked.selection.strategy == "summarize" else UNSET,
        )

    def start(self, compaction_id: str, total: int, credential: str | None = None) -> Running:
        """Nobody else's is under way, or `CompactionRunning`."""
        if self.running is not None and self.running.state == "running":
            raise CompactionRunning(extra={"compaction_id": self.running.id})
        self.running = Running(compaction_id, total, credential)
        return self.running

    async def run(self, running: Running, asked: Asked, plan: Plan) -> None:
        """Carry it out. What is done stays done, whatever comes after."""
        running.skipped += plan.skipped
        try:
            match asked.selection.strategy:
                case "archive":
                    await self._archive_all(running, plan)
                case "summarize":
                    await self._summarize_all(running, asked, plan)
                case "purge":
                    await self._purge_all(running, plan)
                    await self._purge.finish()
            await self._archive.mark()
            if not running.interrupted:
                running.state = "cancelled" if running.cancelled else "done"
        except BaseException:  # why: whatever it was, whoever watches is told
            running.state = "failed"
            running.tell()
            raise

    def interrupt(self) -> None:
        if self.running is not None:
            self.running.interrupted = True
            self.running.tell()

    async def _archive_all(self, running: Running, plan: Plan) -> None:
        for seqs in batches(plan.units, plan.rows):
            if running.stops:
                return
            running.step(*await self._archive.put(seqs, running.entry))
            await asyncio.sleep(0)

    async def _summarize_all(self, running: Running, asked: Asked, plan: Plan) -> None:
        rehearsal = await self._rehearse() if asked.verify else None
        waiting: list[Distilled] = []
        async for distilled in self._distilled(asked, plan):
            if running.stops:
                break
            if distilled.distillate is None:  # all of it was taken back: it goes, and nothing says it again
                running.step(*await self._archive.put([row.seq for row in distilled.rows], running.entry))
            elif reason := await _refused(distilled, rehearsal, asked.output_bytes):
                running.skipped += [Skipped(row.id, reason) for row in distilled.rows]
            else:
                waiting.append(distilled)
            if len(waiting) == GROUPS_A_STEP:
                await self._summarize(running, waiting, deletes=asked.deletes)
                waiting = []
            running.tested = tested(asked, rehearsal)
        if waiting:
            await self._summarize(running, waiting, deletes=asked.deletes)

    def _distilled(self, asked: Asked, plan: Plan) -> AsyncIterator[Distilled]:
        found = groups(plan.units, plan.rows, asked.group_units)
        return self._distilling.each(found, most_bytes=asked.output_bytes)

    async def _summarize(self, running: Running, waiting: Sequence[Distilled], *, deletes: bool) -> None:
        works = [await self._synthesizing(running, distilled) for distilled in waiting]
        sizes = await self._archive.put_as(works)
        if gone := [unit for work in works if deletes and work.unit for unit in work.units]:
            await self._purge.put(Purging(running.entry, gone))  # what stands for them stays, although it quotes them
        for distilled, work, size in zip(waiting, works, sizes, strict=True):
            if not work.unit:
                running.skipped += [Skipped(row.id, work.stays) for row in distilled.rows]
                continue
            running.syntheses.append(work.unit_id)
            if distilled.distillate is not None and distilled.distillate.fell_back:
                running.fell_back.append(distilled.distillate.fell_back)
            running.step(len(work.units), size)
            await self._archive_rest(running, distilled, work, deletes=deletes)

    async def _synthesizing(self, running: Running, distilled: Distilled) -> Synthesizing:
        group = distilled.group()
        if len(group.units) <= BATCH_UNITS:
            return Synthesizing(running.entry, group, self._ids, run=running.id)
        first = structs.replace(group, units=group.units[:BATCH_UNITS], statuses=group.statuses[:BATCH_UNITS])
        said = set(group.said)
        score, trust = standing_of([row for row in distilled.rows if row.seq in said])
        expires: list[int] = []
        for at in range(0, len(group.units), BATCH_UNITS):
            entries = await self._state.store.views.entries_of(group.units[at : at + BATCH_UNITS])
            expires += [row.expires_ms for row in entries.values() if row.expires_ms is not None]
            await asyncio.sleep(0)
        rest = distilled.rows[BATCH_UNITS:]
        whole = Whole(
            rest=group.units[BATCH_UNITS:],
            stands=self._standing_of(rest),
            sources=len(group.said),
            score=score,
            trust=trust,
            expires_ms=min(expires, default=None),
        )
        return Synthesizing(running.entry, first, self._ids, run=running.id, whole=whole)

    def _standing_of(self, rows: Sequence[UnitRow]) -> Callable[[], bool]:
        """Later: whether all of them are still to go, and are what was read of them. The columns answer for thousands
        in a millisecond, and they are up to date: nobody purges or archives while a synthesis is written."""
        units = np.fromiter((row.seq for row in rows), np.int64, len(rows))
        read = np.fromiter((STATUS_CODES[said_status(row.status)] for row in rows), np.uint8, len(rows))

        def stands() -> bool:
            now = self._state.columns.snapshot(self._state.epoch)
            at = np.searchsorted(now.seq, units)
            status = np.where(now.status[at] == STATUS_CODES["pending_enrichment"], ACTIVE, now.status[at])
            guarded = {guard.unit for guard in self._state.guards}
            return bool((status == read).all()) and not now.archived[at].any() and guarded.isdisjoint(units.tolist())

        return stands

    async def _archive_rest(self, running: Running, distilled: Distilled, work: Synthesizing, *, deletes: bool) -> None:
        """What did not go in the synthesis' own step: nobody waits for thousands of rows at once."""
        units = [row.seq for row in distilled.rows]
        for at in range(BATCH_UNITS, len(units), BATCH_UNITS):
            batch = units[at : at + BATCH_UNITS]
            running.step(*await self._archive.put(batch, running.entry, into=work.unit))
            if deletes:
                await self._purge.put(Purging(running.entry, batch))
            await asyncio.sleep(0)

    async def _purge_all(self, running: Running, plan: Plan) -> None:
        going = set(plan.units.seq[plan.rows].tolist())
        taken_back = plan.rows[plan.units.status[plan.rows] == STATUS_CODES["retracted"]]
        reasons = await reasons_in(self._state.store.log, set(plan.units.seq[taken_back].tolist()))
        for seqs in batches(plan.units, plan.rows):
            if running.stops:
                return
            stored = await self._state.store.texts.get(seqs)
            quoting = await self._unguarded(running, self.quoting(seqs) - going)
            remade = [await self._remade(running.entry, running.id, unit, going | quoting) for unit in sorted(quoting)]
            work = Purging(running.entry, [*seqs, *sorted(quoting)], [one for one in remade if one], reasons)
            # A synthesis goes together with what it quotes: after a crash between the two nobody would look for it.
            await self._purge.put(work, in_pieces=not quoting)
            going |= quoting
            running.syntheses += [one.unit_id for one in remade if one and one.unit_id]
            running.step(len(seqs), sum(len(each.body) for each in stored.values()))
            await asyncio.sleep(0)
        await self._erase_late_reasons(running, plan, going, reasons)

    async def erase(self, units: Sequence[int], why: str, credential: str | None) -> int:
        """These go now, whatever compaction is under way, and with them what quotes them; how many went."""
        going = set(units)
        guarded = {guard.unit for guard in self._state.guards}
        quoting = self.quoting(units) - going - guarded
        run = self._ids.compaction()
        remade = [await self._remade(None, run, unit, going | quoting) for unit in sorted(quoting)]
        reasons = await reasons_in(self._state.store.log, self._taken_back(units))
        work = Purging(
            None, sorted(going | quoting), [one for one in remade if one], reasons, why=why, credential=credential
        )
        await self._purge.put(work)
        await self._purge.finish()
        return 0 if work.event is None else len(going & set(work.event.units))

    def _taken_back(self, units: Sequence[int]) -> set[int]:
        rows = self._state.columns.rows_of(units)
        statuses = self._state.columns.snapshot(self._state.epoch).status[rows]
        return {unit for unit, status in zip(units, statuses, strict=True) if status == STATUS_CODES["retracted"]}

    async def _erase_late_reasons(
        self, running: Running, plan: Plan, going: set[int], known: Mapping[int, Sequence[int]]
    ) -> None:
        """A unit may have been retracted while others went: its reason goes, too."""
        newest = int(plan.units.seq[-1]) if plan.units.size else 0
        late = await reasons_in(self._state.store.log, going, after=newest)
        texts = sorted(
            {seq for seqs in late.values() for seq in seqs} - {seq for seqs in known.values() for seq in seqs}
        )
        if texts:
            await self._purge.erase(Erasing(running.entry, texts))

    async def _unguarded(self, running: Running, syntheses: set[int]) -> set[int]:
        """Those that may go. The others stay, quote and all, and that is told."""
        guarded = {guard.unit: guard.guard for guard in sorted(self._state.guards, reverse=True)}
        stay = sorted(syntheses & guarded.keys())
        rows = await self._state.store.views.units(stay)
        told = {each.unit_id for each in running.skipped}
        running.skipped += [
            Skipped(rows[seq].id, f"{_TOLD[guarded[seq]]}, and still quotes what was purged")
            for seq in stay
            if rows[seq].id not in told
        ]
        return syntheses - guarded.keys()

    def quoting(self, units: Sequence[int]) -> set[int]:
        """Syntheses of the Field's own that quote one of these, and those that quote them."""
        field_agent = self._state.agents.get(FIELD_AGENT_ID)
        if field_agent is None:
            return set()
        relations, columns = self._state.relations, self._state.columns
        found: set[int] = set()
        waiting = units
        while new := sorted({unit for each in waiting for unit in relations.elaborating(each)} - found):
            rows = columns.rows_of(new)
            is_gone = (columns.snapshot(0).status[rows] == PURGED).tolist()
            waiting = [
                unit
                for unit, agent, gone in zip(new, columns.agents_at(rows), is_gone, strict=True)
                if agent == field_agent.number and not gone
            ]
            found.update(waiting)
        return found

    async def _remade(self, compaction: int | None, run: str, synthesis: int, going: set[int]) -> Synthesizing | None:
        """The same synthesis from what is left of its originals; None where nothing is."""
        originals = [unit for unit in self._state.relations.elaborated_by(synthesis) if unit not in going]
        return await self.made_from(originals, compaction, run)

    async def made_from(self, originals: Sequence[int], compaction: int | None, run: str) -> Synthesizing | None:
        """A synthesis of units that are archived already; None where nothing of them is to be said."""
        rows = await self._state.store.views.units(originals)
        left = [seq for seq in originals if rows[seq].purged_seq is None]
        if not left:
            return None
        distilled = await self._distilling.one(left)
        if distilled.distillate is None or not distilled.distillate.text:
            return None
        return Synthesizing(compaction, distilled.group(), self._ids, run=run, archives=False)

    async def _planned(self, distilled: Distilled) -> PlannedGroup:
        sessions = {row.session for row in distilled.rows}
        session = sessions.pop() if len(sessions) == 1 else None
        return PlannedGroup(
            units=len(distilled.rows),
            tokens_before=distilled.tokens,
            tokens_after=distilled.distillate.tokens if distilled.distillate and distilled.distillate.text else None,
            bytes=distilled.bytes,
            session_id=None if session is None else await self._state.names.name(session),
            unit_ids=tuple(each.id for each in distilled.rows[:NAMED_IN_PLAN]),
        )


async def _refused(distilled: Distilled, rehearsal: Rehearsal | None, most_bytes: int | None) -> str | None:
    """Why a group is left as it is; None: it goes."""
    if distilled.distillate is None:
        return None
    if not distilled.distillate.text:
        return "nothing in its group is short enough"
    if most_bytes is not None and len(distilled.distillate.text.encode()) > most_bytes:
        return "what must be kept of its group is longer than an entry may be"
    if rehearsal is None or not rehearsal.mass:
        return None
    cost = await rehearsal.costs(distilled)
    if cost > MOST_LOST_SHARE:
        return COSTS_TOO_MUCH
    rehearsal.accept(cost)
    return None


def tested(asked: Asked, rehearsal: Rehearsal | None) -> Tested:
    if not asked.verify:
        return Tested("skipped")
    if rehearsal is None or not rehearsal.requests:
        return Tested("untested")
    return Tested("tested", rehearsal.requests, rehearsal.kept_share)
