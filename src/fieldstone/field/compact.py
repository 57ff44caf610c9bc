"""COMPACT: memory that shrinks without losing its history."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final

import structlog
from msgspec import UNSET, UnsetType, json, structs

from fieldstone.compaction.pace import giving_way
from fieldstone.compaction.plan import BATCH_UNITS, Selection
from fieldstone.core.access import Caller
from fieldstone.core.agents import AgentFacts
from fieldstone.core.authority import COMPACT, PURGE, check_authority
from fieldstone.core.errors import CompactionRunning, FieldError, Forbidden, NotFound, ShuttingDown, UnitNotFound
from fieldstone.core.events import CompactionBegun, Entry, MemoryCompacted, UnitsArchived, UnitsPurged, decode_entry
from fieldstone.core.limits import MAX_AUTHORITY
from fieldstone.core.replies import Compacted, CompactionProgress, Done
from fieldstone.core.requests import Compact, CompactFilter, Message
from fieldstone.field.archiving import Archive
from fieldstone.field.compacting import Asked, Compacting, Plan, Running
from fieldstone.field.compaction_answers import (
    Remembered,
    Remembering,
    Residue,
    is_theirs,
    nothing_done,
    progress_of,
    remember,
    result_of,
    told_to,
)
from fieldstone.field.compaction_record import Beginning, ByField, Ending
from fieldstone.field.cooling import Cooling
from fieldstone.field.distilling import Distilling
from fieldstone.field.idempotency import Fingerprint, used_before
from fieldstone.field.purging import Forget, Purge
from fieldstone.field.reads import Reads
from fieldstone.field.rehearsal import rehearse
from fieldstone.field.requoting import Requoting
from fieldstone.field.scouring import Scouring
from fieldstone.field.sight import Sight
from fieldstone.field.state import FieldState
from fieldstone.field.writer import Writer
from fieldstone.ports.views import ArchiveUnits, Change
from fieldstone.ports.world import Clock, Ids
from fieldstone.projections.cold_follower import ColdFollower
from fieldstone.projections.text_follower import TextFollower

logger = structlog.get_logger("fieldstone.compact")
LEAST_SOURCES: Final = 2  # of a memory's compaction: one entry is as short as it gets
DELETED: Final = "deleted by the memory's host"
IMPORTED: Final = "imported"  # the mark: compactions up to this entry were another field's


class Compactions:
    """The operation, from a message to its answer, and in the background."""

    def __init__(
        self,
        state: FieldState,
        writer: Writer,
        reads: Reads,
        follower: TextFollower,
        distilling: Distilling,
        scouring: Scouring,
        cooling: Cooling,
        forget: Forget,
        clock: Clock,
        ids: Ids,
    ) -> None:
        self._state = state
        self._writer = writer
        self._reads = reads
        self._clock = clock
        self._ids = ids
        self._cold = ColdFollower(state.store, follower)
        self.archive = Archive(state, writer, self._cold, cooling)
        self._purge = Purge(state, writer, self._cold, cooling, forget)
        self._scouring = scouring
        self._compacting = Compacting(
            state, self.archive, self._purge, distilling, lambda: rehearse(state, reads, clock), clock, ids
        )
        self.requoting = Requoting(state, writer, self._compacting, ids)
        self._turns = asyncio.Lock()  # compactions of memories wait for each other
        self._foreseeing = asyncio.Lock()
        self._task: asyncio.Task[Compacted] | None = None

    async def compact(self, message: Message, request: Compact, fingerprint: Fingerprint | None) -> Compacted:
        """One that its caller waits for. A caller who goes away does not stop it."""
        earlier = await self._earlier(fingerprint)
        if earlier is not None:
            return await self._answer_of(earlier)
        started = await self._start(message, request, fingerprint)
        return started if isinstance(started, Compacted) else await asyncio.shield(started)

    async def begin(self, message: Message, request: Compact, fingerprint: Fingerprint | None) -> CompactionProgress:
        """One in the background: where it is."""
        earlier = await self._earlier(fingerprint)
        if earlier is not None and earlier.result is not None:
            return CompactionProgress(earlier.compaction_id, "done", earlier.units, earlier.units, earlier.result)
        if earlier is not None:
            return await self.told(earlier.compaction_id, message.caller)
        started = await self._start(message, request, fingerprint)
        if isinstance(started, Compacted):
            return CompactionProgress(started.compaction_id or "", "done", 0, 0, started)
        started.add_done_callback(_tell_if_broken)  # nobody waits for it
        return self.progress(self._compacting.running.id if self._compacting.running else "")

    def progress(self, compaction_id: str) -> CompactionProgress:
        """Of the one that is under way, or was the last since the field was opened."""
        return progress_of(self._known_as(compaction_id))

    async def told(self, compaction_id: str, caller: Caller) -> CompactionProgress:
        """The same, also of one that ended long ago: what the log says of it."""
        running = self._compacting.running
        if running is not None and running.id == compaction_id:
            return told_to(caller, running)
        for row in await self._state.store.views.compactions():
            if row.id == compaction_id:
                return CompactionProgress(row.id, row.state, row.units, row.units)
        raise NotFound("There is no such compaction.", suggested_action="List the compactions.")

    def _known_as(self, compaction_id: str) -> Running:
        running = self._compacting.running
        if running is None or running.id != compaction_id:
            raise NotFound(
                "There is no such compaction, or it ended before the field was opened.",
                suggested_action="List the compactions.",
            )
        return running

    async def _start(
        self, message: Message, request: Compact, fingerprint: Fingerprint | None
    ) -> "Compacted | asyncio.Task[Compacted]":
        agent = self._reads.speaker(message)
        check_authority(
            agent.authority, PURGE if request.strategy == "purge" else COMPACT, f"COMPACT {request.strategy}"
        )
        asked = await self._asked(agent, request)
        plan = await self._compacting.plan(asked)
        if request.dry_run:
            async with self._foreseeing:  # one at a time: to foresee a summarize is nearly the whole work of it
                return await self._compacting.foresee(asked, plan)
        if not len(plan.rows):
            nothing = nothing_done(request.strategy, plan, self._state.epoch)
            if fingerprint is not None:  # sent again it must not find what came since
                remembered = remember(fingerprint, Remembered("", 0, nothing), self._clock.now_ms())
                await self._writer.submit(Remembering(remembered))
            return nothing
        beginning = Beginning(message, request, self._ids.compaction(), agent, asked, fingerprint)
        return await self._begin(beginning, asked, plan, fingerprint)

    async def foresee(self, asked: Asked) -> Compacted:
        """What it would do, and nothing done."""
        async with self._foreseeing:
            return await self._compacting.foresee(asked, await self._compacting.plan(asked))

    async def apply(self, policy: str, digest: str, asked: Asked) -> Compacted:
        """What a retention policy asks for. A caller who goes away does not stop it."""
        plan = await self._compacting.plan(asked)
        if not len(plan.rows):
            return nothing_done(asked.selection.strategy, plan, self._state.epoch)
        why = f"{asked.selection.strategy} by retention policy {policy}"
        beginning = ByField(why, self._ids.compaction(), asked, policy=digest)
        task = await self._begin(beginning, asked, plan, None)
        task.add_done_callback(_tell_if_broken)  # whoever waits may go away
        return await asyncio.shield(task)

    async def condense(self, asked: Asked, why: str) -> Compacted:
        """What a memory's host asks for. It waits until no other compaction is under way."""
        async with self._turns:
            while True:
                await self._nobody_else()
                plan = await self._compacting.plan(asked)
                if len(plan.rows) < LEAST_SOURCES:
                    return nothing_done("summarize", plan, self._state.epoch)
                beginning = ByField(why, self._ids.compaction(), asked)
                try:
                    task = await self._begin(beginning, asked, plan, None)
                except CompactionRunning:  # somebody was quicker
                    continue
                task.add_done_callback(_tell_if_broken)
                return await asyncio.shield(task)

    async def _nobody_else(self) -> None:
        running = self._compacting.running
        while running is not None and running.state == "running":
            await running.next_step()

    async def erase(self, units: Sequence[int], credential: str | None) -> int:
        """Somebody deletes these: at once, and for good. How many went: what is held stays."""
        erased = await self._compacting.erase(units, DELETED, credential)
        await self._scouring.scour()
        return erased

    async def shelve(self, units: Sequence[int], entry: int) -> None:
        """The texts of units that the log says are archived, out of the hot part."""
        async with self._state.rewriting:  # also between two batches: the mark is about all of them
            for start in range(0, len(units), BATCH_UNITS):
                await self.archive.move(units[start : start + BATCH_UNITS], entry)
                await asyncio.sleep(0)
            await self.archive.mark()

    async def _begin(
        self, beginning: Beginning | ByField, asked: Asked, plan: Plan, fingerprint: Fingerprint | None
    ) -> "asyncio.Task[Compacted]":
        message = beginning.message
        credential = None if message is None else message.caller.credential
        running = self._compacting.start(beginning.id, len(plan.rows), credential)
        try:
            begun = await self._writer.submit(beginning)
        except BaseException:  # why: whatever it was, nothing has begun
            running.state = "failed"
            raise
        running.entry = beginning.entry
        running.warnings = begun.warnings if isinstance(begun, Done) else UNSET
        self._task = asyncio.ensure_future(self._run(running, asked, plan, fingerprint))
        return self._task

    async def _run(self, running: Running, asked: Asked, plan: Plan, fingerprint: Fingerprint | None) -> Compacted:
        try:
            with giving_way(self._writer.is_busy):
                await self._compacting.run(running, asked, plan)
        except BaseException:  # why: whatever it was, what is done is done, and its end goes on record
            await self._end(running, None, None)
            raise
        if running.interrupted:
            raise ShuttingDown  # and no end on record: it goes on when the field opens again
        residue: Residue | UnsetType = UNSET
        if asked.selection.strategy == "purge":
            residue = "none" if await self._scouring.scour() else "pending"
        result = result_of(running, asked, self._state.epoch, residue)
        await self._end(running, fingerprint, result)
        running.result = result  # now, and not before: whoever watches finds its end on record
        running.tell()
        return result

    async def _end(self, running: Running, fingerprint: Fingerprint | None, result: Compacted | None) -> None:
        remembered = None
        if fingerprint is not None and result is not None:
            remembered = remember(fingerprint, Remembered(running.id, running.done, result), self._clock.now_ms())
        try:
            await self._writer.submit(Ending(running, remembered))
        except FieldError as full:  # it is gone on with, and ended, when the field opens again
            logger.warning("the end of a compaction is not on record", code=full.code)

    async def catch_up(self) -> None:
        """What a crash left undone behind the log is done before anybody reads."""
        await self._cold.catch_up(self._state.head.seq, self._purge.clear)

    async def resume(self) -> None:
        """One that was under way when the process ended is planned again, from its event, and goes on by itself."""
        await self.requoting.catch_up()
        imported = await self._state.store.marks.get(IMPORTED)
        for row in await self._state.store.views.compactions():
            if row.state == "running" and row.seq > imported:  # what another field was about to do is not ours to do
                entry = decode_entry((await self._state.store.log.read(after=row.seq - 1, limit=1))[0].body)
                if isinstance(entry.event, CompactionBegun):
                    await self._go_on_or_tell(entry, entry.event)

    async def _go_on_or_tell(self, entry: Entry, begun: CompactionBegun) -> None:
        try:
            await self._go_on(entry, begun)
        except Exception as broken:  # why: whatever is wrong with one compaction, the field opens
            logger.error("a compaction cannot go on", compaction=begun.id, exc_info=broken)

    async def take_in(self, changes: Sequence[Change], purged: Sequence[UnitsPurged], head: int) -> None:
        """An import brought archived and purged units, and maybe compactions that its field was still at."""
        for event in purged:
            await self._purge.clear(event)
        if purged:
            await self._scouring.scour()
        units = sorted({unit for change in changes if isinstance(change, ArchiveUnits) for unit in change.units})
        rows = (await self._state.store.views.units(units)).values()
        archived = [row.seq for row in rows if row.archived_epoch is not None and row.purged_seq is None]
        async with self._state.rewriting:
            await self.archive.move(archived, head)
        await self._state.store.marks.set(IMPORTED, head)

    async def refill(self) -> None:
        """The index of the archived is built again."""
        await self._cold.refill(self._state.head.seq)

    async def _go_on(self, entry: Entry, begun: CompactionBegun) -> None:
        if begun.group_units is not None:  # a memory's: which entries it was about is decided anew when it is due again
            cut_off = Running(begun.id, 0, None)
            cut_off.entry, cut_off.state = entry.seq, "cancelled"
            await self._evict_sources(entry.seq)
            await self._end(cut_off, None, None)
            return
        selection = Selection(
            strategy=begun.strategy,
            epoch=begun.epoch,
            max_age_epochs=begun.max_age_epochs,
            before=begun.before,
            beyond_newest=begun.beyond_newest,
            session=begun.session,
            types=begun.types,
            statuses=begun.statuses,
            derived=None if begun.ancestor is None else self._state.relations.derived_from(begun.ancestor),
        )
        asked = Asked(selection, self._sight_of(begun), begun.verify)
        plan = await self._compacting.plan(asked)
        running = self._compacting.start(begun.id, len(plan.rows))
        running.entry = entry.seq
        await self._count_in_what_was_done(running)
        logger.info("a compaction goes on", compaction=begun.id, units=len(plan.rows))
        self._task = asyncio.ensure_future(self._run(running, asked, plan, None))
        self._task.add_done_callback(_tell_if_broken)

    async def _count_in_what_was_done(self, running: Running) -> None:
        """Before the process ended: what is on record of it counts. How many bytes that were, nobody knows any more."""
        at, made = running.entry, set[int]()
        while stored := await self._state.store.log.read(after=at, limit=1_000):
            at = stored[-1].seq
            steps = [each for each in stored if b'"units.archived"' in each.body or b'"units.purged"' in each.body]
            for event in (decode_entry(each.body).event for each in steps):
                if isinstance(event, UnitsArchived | UnitsPurged) and event.compaction == running.entry:
                    running.done += len(event.units)
                    if isinstance(event, UnitsArchived) and event.into is not None:
                        made.add(event.into)
        running.total += running.done
        rows = await self._state.store.views.units(sorted(made))
        running.syntheses += [rows[seq].id for seq in sorted(made)]

    async def _evict_sources(self, compaction: int) -> None:
        """Of what a memory's compaction made before it was cut off: an output and its sources are not both there."""
        at = compaction
        while stored := await self._state.store.log.read(after=at, limit=1_000):
            at = stored[-1].seq
            events = [decode_entry(each.body).event for each in stored if b'"memory.compacted"' in each.body]
            for event in events:
                if isinstance(event, MemoryCompacted) and event.compaction == compaction:
                    await self.archive.put_all(
                        self._state.relations.elaborated_by(event.output), compaction, event.output
                    )

    def _sight_of(self, begun: CompactionBegun) -> Sight:
        """Of whoever asked for it. A retention policy is about the whole field."""
        if begun.policy is not None:
            return Sight(None)
        agent = next(agent for agent in self._state.agents.values() if agent.number == begun.by)
        sight = self._reads.sight_of(agent)
        if begun.session is not None and agent.authority >= MAX_AUTHORITY:
            return Sight(sight.agents, sight.hidden - {begun.session})
        return sight

    def cancel(self, compaction_id: str, caller: Caller) -> CompactionProgress:
        """It stops after the step it is in; what is done stays done."""
        if not is_theirs(caller, self._known_as(compaction_id)):
            raise Forbidden("Only whoever began a compaction, or authority 10, may cancel it.")
        progress = self.progress(compaction_id)
        if self._compacting.running is not None and progress.state == "running":
            self._compacting.running.cancelled = True
        return progress

    async def watch(self, compaction_id: str, caller: Caller) -> AsyncIterator[CompactionProgress]:
        """Where it is, again with every step, and in the end its result; a broken or interrupted one has none."""
        running = self._known_as(compaction_id)
        is_over = False
        while not is_over:
            is_over = running.is_over
            yield told_to(caller, running)
            if not running.is_over:  # it may have ended while the last step was told
                await running.next_step()

    async def close(self) -> None:
        """It stops after the step it is in, and goes on when the field opens again."""
        if self._task is not None and not self._task.done():
            self._compacting.interrupt()
            await asyncio.wait([self._task])
        await self.requoting.close()

    async def _earlier(self, fingerprint: Fingerprint | None) -> Remembered | None:
        """What became of the same message when it came before."""
        if fingerprint is None:
            return None
        found = (await self._state.store.replies.find([fingerprint.key])).get(fingerprint.key)
        if found is None:
            return None
        if found.request != fingerprint.request:
            raise used_before()
        return json.decode(found.body, type=Remembered)

    async def _answer_of(self, earlier: Remembered) -> Compacted:
        if earlier.result is not None:
            return earlier.result
        running = self._compacting.running
        if running is not None and running.id == earlier.compaction_id and self._task is not None:
            return await asyncio.shield(self._task)
        for row in await self._state.store.views.compactions():  # its process ended before its answer was there
            if row.id == earlier.compaction_id:
                return Compacted(row.units, row.syntheses, row.bytes, self._state.epoch, compaction_id=row.id)
        raise NotFound("There is no such compaction.", suggested_action="List the compactions.")

    async def _asked(self, agent: AgentFacts, request: Compact) -> Asked:
        wanted = request.filter or CompactFilter()
        sight = self._reads.sight_of(agent)
        session = None
        if wanted.session_id is not None:
            session = await self._reads.names.number("session", wanted.session_id) or -1  # -1: no unit is in it
            if agent.authority >= MAX_AUTHORITY:  # an operator may name a session that nobody else sees
                sight = Sight(sight.agents, sight.hidden - {session})
        if request.strategy == "purge":  # which takes authority 10: what was given up must be within its reach
            sight = structs.replace(sight, discarded=True)
        ancestor = None
        if wanted.ancestor_id is not None:
            ancestor = await self._reads.views.unit(wanted.ancestor_id)
            if ancestor is None or not sight.sees(ancestor):
                raise UnitNotFound
        selection = Selection(
            strategy=request.strategy,
            epoch=self._state.epoch,
            max_age_epochs=wanted.max_age_epochs,
            session=session,
            types=wanted.types,
            statuses=wanted.status,
            derived=None if ancestor is None else self._state.relations.derived_from(ancestor.seq),
        )
        return Asked(selection, sight, request.verify)


def _tell_if_broken(task: asyncio.Task[Compacted]) -> None:
    error = None if task.cancelled() else task.exception()
    if error is None or isinstance(error, ShuttingDown):
        return
    if isinstance(error, FieldError):
        logger.warning("a compaction came to an end", code=error.code)
    else:
        logger.error("a compaction broke", error=type(error).__name__, exc_info=error)
