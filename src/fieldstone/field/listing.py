"""Lists, page by page: the units that are held or pinned, and the compactions that there were."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from fieldstone.core.access import Caller
from fieldstone.core.authority import LEAST_TO
from fieldstone.core.errors import InvalidPayload
from fieldstone.core.events import CompactionBegun, Entry, decode_entry
from fieldstone.core.replies import CompactionPage, GuardedUnit, GuardPage, ListedCompaction
from fieldstone.core.units import MemoryUnit
from fieldstone.core.vocabulary import Guard
from fieldstone.field.compact import Compactions
from fieldstone.field.reads import Reads
from fieldstone.field.state import FieldState
from fieldstone.ports.views import CompactionRow
from fieldstone.retrieval.reading import timestamp

MOST_LISTED: Final = 1_000  # a page's rows are read and encoded in one go


class Lists:
    """Pages go along the log: `after` and `next` are entries of it."""

    def __init__(self, state: FieldState, reads: Reads, compactions: Compactions) -> None:
        self._state = state
        self._reads = reads
        self._compactions = compactions

    def with_guards(self, unit: MemoryUnit, seq: int, caller: Caller) -> MemoryUnit:
        """For whoever may list them all: why no compaction touches it."""
        guards = tuple(sorted(each.guard for each in self._state.guards if each.unit == seq))
        return replace(unit, guards=guards) if guards and caller.authority >= LEAST_TO["list the guards"] else unit

    async def guards(self, guard: Guard | None, after: int, limit: int, caller: Caller) -> GuardPage:
        """Of the units that the caller sees; not even `next` tells of others."""
        _check(after, limit)
        wanted = sorted(each for each in self._state.guards if each.unit > after and guard in (None, each.guard))
        seen = await self._seen(sorted({each.unit for each in wanted}), limit + 1, caller)
        last = list(seen)[limit - 1] if len(seen) > limit else None
        on_page = [each for each in wanted if each.unit in seen and (last is None or each.unit <= last)]
        return GuardPage(tuple(GuardedUnit(seen[each.unit], each.guard) for each in on_page), last)

    async def compactions(self, after: int, limit: int, caller: Caller) -> CompactionPage:
        """The oldest first. Of one that runs, as far as it is."""
        _check(after, limit)
        rows = [row for row in await self._state.store.views.compactions() if row.seq > after]
        listed = [await self._compaction(row, caller) for row in rows[:limit]]
        return CompactionPage(tuple(listed), rows[limit - 1].seq if len(rows) > limit else None)

    async def _seen(self, units: Sequence[int], enough: int, caller: Caller) -> dict[int, str]:
        """The first of the units that the caller sees, with their ids, and enough of them if there are."""
        sight = self._reads.sight(caller)
        seen: dict[int, str] = {}
        for at in range(0, len(units), MOST_LISTED):
            rows = await self._state.store.views.units(units[at : at + MOST_LISTED])
            seen |= {
                seq: rows[seq].id for seq in sorted(rows) if rows[seq].purged_seq is None and sight.sees(rows[seq])
            }
            if len(seen) >= enough:
                break
        return seen

    async def _compaction(self, row: CompactionRow, caller: Caller) -> ListedCompaction:
        begun = await self._entry(row.seq)
        assert isinstance(begun.event, CompactionBegun)
        ended_at = None if row.ended_seq is None else timestamp((await self._entry(row.ended_seq)).at_ms)
        units_done = row.units
        if row.state == "running":
            units_done = (await self._compactions.told(row.id, caller)).units_done
        return ListedCompaction(
            compaction_id=row.id,
            strategy=row.strategy,
            agent_id=await self._state.names.name(begun.event.by),
            state=row.state,
            units_done=units_done,
            begun_at=timestamp(begun.at_ms),
            ended_at=ended_at,
        )

    async def _entry(self, seq: int) -> Entry:
        [stored] = await self._state.store.log.read(after=seq - 1, limit=1)
        return decode_entry(stored.body)


def _check(after: int, limit: int) -> None:
    if after < 0 or not 1 <= limit <= MOST_LISTED:
        raise InvalidPayload(f"after must be at least 0, and limit from 1 to {MOST_LISTED}.")
