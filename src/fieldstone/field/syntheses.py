"""What a Field's own compactions made, newest first: for those who read it as a memory."""

from collections.abc import AsyncIterator, Sequence
from typing import Final

import numpy as np

from fieldstone.core.events import MemoryCompacted, UnitTexts, decode_entry, decode_texts
from fieldstone.core.vocabulary import FIELD_AGENT_ID
from fieldstone.field.entries import KeptEntry, Moment
from fieldstone.field.sight import Sight
from fieldstone.field.state import FieldState
from fieldstone.field.synthesis import PROVENANCE_TAG
from fieldstone.ports.views import EntryRow, UnitRow
from fieldstone.projections.columns import LAST_SHOWN_STATUS, STATUS_CODES

PAGE_UNITS: Final = 100


class Syntheses:
    """Entries of memories are not among them: those have refs of their own. Nor are those that gave way because what
    they quote was taken back, also not for a run that began before: it is not said again."""

    def __init__(self, state: FieldState) -> None:
        self._state = state

    async def pages(
        self, session: str | None, sight: Sight, moment: Moment | None = None
    ) -> AsyncIterator[Sequence[KeptEntry]]:
        """Of one session, or of all that the sight sees into. For a run that began at a moment: as it was then."""
        number = None if session is None else await self._state.names.number("session", session) or -1
        epoch = None if moment is None else await self._epoch_at(moment.seq)
        seqs = self._seqs(number, sight, moment)
        for start in range(0, len(seqs), PAGE_UNITS):
            rows = await self._state.store.views.units(seqs[start : start + PAGE_UNITS])
            page = [rows[seq] for seq in seqs[start : start + PAGE_UNITS]]
            yield await self._told([row for row in page if epoch is None or _was_there(row, epoch)])

    async def get(
        self, unit_id: str, session: str | None, sight: Sight, moment: Moment | None = None
    ) -> KeptEntry | None:
        """Also after it was compacted itself."""
        row = await self._state.store.views.unit(unit_id)
        if row is None or not (self._is_ours(row) and _stands(row) and sight.sees(row)):
            return None
        if moment is not None and row.seq > moment.seq:
            return None
        if session is not None and row.session != await self._state.names.number("session", session):
            return None
        found = await self._told([row])
        return found[0] if found else None

    async def _epoch_at(self, seq: int) -> int:
        stored = await self._state.store.log.read(after=seq - 1, limit=1) if seq else ()
        return decode_entry(stored[0].body).epoch if stored else 0

    def _seqs(self, session: int | None, sight: Sight, moment: Moment | None) -> list[int]:
        field_agent = self._state.agents.get(FIELD_AGENT_ID)
        units = self._state.columns.snapshot(self._state.epoch)
        if field_agent is None or "synthesis" not in units.types:
            return []
        mask = sight.units(units) & (units.agent == units.agent_code(field_agent.number))
        mask &= ~units.archived if moment is None else units.seq <= moment.seq
        mask &= (units.type == units.types.index("synthesis")) & (units.status <= LAST_SHOWN_STATUS)
        mask &= ~np.isin(units.session, list(self._state.memories))
        if session is not None:
            mask &= units.session == session
        newest_first: list[int] = units.seq[mask][::-1].tolist()
        return newest_first

    def _is_ours(self, row: UnitRow) -> bool:
        field_agent = self._state.agents.get(FIELD_AGENT_ID)
        made_here = field_agent is not None and row.agent == field_agent.number
        return made_here and row.type == "synthesis" and row.session not in self._state.memories

    async def _told(self, rows: Sequence[UnitRow]) -> Sequence[KeptEntry]:
        texts = await self._state.store.texts.get([row.seq for row in rows])
        runs = {row.seq: row.id for row in await self._state.store.views.compactions()}
        found: list[KeptEntry] = []
        for row in rows:
            if row.seq in texts:
                content = decode_texts(texts[row.seq].body, UnitTexts).content
                tags = await self._tags(row, runs)
                entry = EntryRow(row.seq, row.session or 0, row.seq)
                found.append(KeptEntry(entry, row.id, row.id, row.type, content, tags, row.at_ms))
        return found

    async def _tags(self, row: UnitRow, runs: dict[int, str]) -> tuple[str, ...]:
        told = await self._state.store.views.feed_of(row.seq, "memory.compacted")
        if told is None:
            return ()
        [stored] = await self._state.store.log.read(after=told.seq - 1, limit=1)
        event = decode_entry(stored.body).event
        run = runs.get(event.compaction or 0) if isinstance(event, MemoryCompacted) else None
        return () if run is None else (f"{PROVENANCE_TAG}{run}",)


def _stands(row: UnitRow) -> bool:
    return row.purged_seq is None and STATUS_CODES[row.status] <= LAST_SHOWN_STATUS


def _was_there(row: UnitRow, epoch: int) -> bool:
    """A compaction begins with a step of the clock: what it archives goes at a later epoch than all before it."""
    return row.archived_epoch is None or row.archived_epoch > epoch
