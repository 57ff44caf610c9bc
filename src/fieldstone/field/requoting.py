"""A synthesis must not go on saying what was taken back: when a unit that it quotes is retracted or superseded, it is
made anew from the rest, and gives way.

It follows the write that took the unit back. A mark says up to which entry that was seen to: after a crash the rest is
read from the log.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

import structlog

from fieldstone.core.errors import FieldError
from fieldstone.core.events import ReasonText, UnitRetracted, UnitSuperseded, decode_entry
from fieldstone.core.replies import Reply
from fieldstone.core.text import CleanText
from fieldstone.core.vocabulary import FIELD_AGENT_ID
from fieldstone.field.compacting import Compacting
from fieldstone.field.desk import Desk, Draft
from fieldstone.field.state import FieldState
from fieldstone.field.synthesis import Synthesizing, field_agent
from fieldstone.field.work import NO_ANSWER
from fieldstone.field.writer import Writer
from fieldstone.ports.views import Change, SetUnitStatus, UnitRow
from fieldstone.ports.world import Ids
from fieldstone.projections.columns import LAST_SHOWN_STATUS, STATUS_CODES

REQUOTED: Final = "requoted"  # the mark
READ_ENTRIES: Final = 1_000
MARK_EVERY: Final = 1_000  # entries
TAKEN_BACK: Final = ("retracted", "superseded")
WHY: Final = "all that it quoted was taken back"

logger = structlog.get_logger("fieldstone.requoting")


class Requoting:
    def __init__(self, state: FieldState, writer: Writer, compacting: Compacting, ids: Ids) -> None:
        self._state = state
        self._writer = writer
        self._compacting = compacting
        self._ids = ids
        self._waiting: dict[int, None] = {}
        self._marked = 0
        self._task: asyncio.Task[None] | None = None

    def notice(self, changes: Iterable[Change]) -> None:
        """Units were taken back: whatever quotes them is seen to soon."""
        taken = [change for change in changes if isinstance(change, SetUnitStatus) and change.status in TAKEN_BACK]
        if taken:
            self._expect(change.unit for change in taken)

    async def catch_up(self) -> None:
        """What a crash left undone. Where nothing was ever quoted there is nothing to look for."""
        first = self._state.relations.first_quoting
        if first is None:
            return
        at = self._marked = await self._state.store.marks.get(REQUOTED) or first
        while stored := await self._state.store.log.read(after=at, limit=READ_ENTRIES):
            at = stored[-1].seq
            taken = [each for each in stored if b'"unit.retracted"' in each.body or b'"unit.superseded"' in each.body]
            events = [decode_entry(each.body).event for each in taken]
            self._expect(event.unit for event in events if isinstance(event, UnitRetracted | UnitSuperseded))
        await self._mark()

    async def close(self) -> None:
        """What is left is done when the field opens again."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await self._mark()

    def _expect(self, units: Iterable[int]) -> None:
        self._waiting.update((unit, None) for unit in units if self._state.relations.elaborating(unit))
        if self._waiting and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._work())
            self._task.add_done_callback(self._stopped)

    async def _work(self) -> None:
        while self._waiting:
            unit = next(iter(self._waiting))
            await self._requote(unit)
            del self._waiting[unit]
        await self._mark()

    async def _requote(self, unit: int) -> None:
        made: dict[int, int] = {}  # what took the place of which synthesis
        for synthesis in await self._that_quote(unit):
            work = await self._anew(synthesis, made)
            await self._writer.submit(work)
            if work.unit:
                made[synthesis] = work.unit

    async def _that_quote(self, unit: int) -> list[int]:
        """Those that stand and that nobody holds, the ones that quote it themselves before those that quote them."""
        guarded = {guard.unit for guard in self._state.guards}
        rows = await self._state.store.views.units(sorted(self._compacting.quoting([unit]) - guarded))
        return [seq for seq, row in sorted(rows.items()) if _stands(row)]

    async def _anew(self, synthesis: int, made: dict[int, int]) -> "Replacing":
        run = self._ids.compaction()
        originals = [made.get(unit, unit) for unit in self._state.relations.elaborated_by(synthesis)]
        return Replacing(synthesis, await self._compacting.made_from(originals, None, run))

    async def _mark(self) -> None:
        """Now and then: what lies behind the mark is read again when the field opens."""
        head = self._state.head.seq
        if self._waiting or self._state.relations.first_quoting is None or head - self._marked < MARK_EVERY:
            return
        try:
            await self._state.store.marks.set(REQUOTED, head)
            self._marked = head
        except FieldError as full:  # it is looked at once more, that is all
            logger.warning("how far requoting has come is not on disk", code=full.code)

    def _stopped(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("a synthesis still quotes what was taken back", error=type(error).__name__, exc_info=error)


class Replacing:
    """A synthesis gives way to another one of its originals; to nothing, where none of them holds."""

    message = None
    brings_news = True

    def __init__(self, synthesis: int, anew: Synthesizing | None) -> None:
        self._synthesis = synthesis
        self._anew = anew
        self.unit = 0

    def texts(self) -> Sequence[str]:
        return (WHY, FIELD_AGENT_ID, FIELD_AGENT_ID) if self._anew is None else self._anew.texts()

    def names(self) -> Sequence[tuple[str, str]]:
        return ()

    async def decide(self, desk: Desk, clean: Sequence[CleanText]) -> tuple[Draft, Reply]:
        draft = desk.draft(desk.epoch)
        row = await desk.unit_at(self._synthesis)
        if not _stands(row) or desk.is_guarded(row.seq):
            return draft, NO_ANSWER
        if self._anew is None:
            why, name, role = clean
            by, _ = await field_agent(draft, desk, name, role)
            draft.append(UnitRetracted(unit=row.seq, by=by), ReasonText(why))
        else:
            await self._anew.append_to(draft, desk, await self._anew.rows(desk), clean)
            self.unit = self._anew.unit
            draft.append(UnitSuperseded(unit=row.seq, by_unit=self.unit))
        return draft, NO_ANSWER


def _stands(row: UnitRow) -> bool:
    return row.purged_seq is None and STATUS_CODES[row.status] <= LAST_SHOWN_STATUS
