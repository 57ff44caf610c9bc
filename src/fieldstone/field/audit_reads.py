"""What others may read of a field's log: the feed of its events, and what belongs to them."""

from collections.abc import Sequence

from fieldstone.core.events import Entry, decode_entry
from fieldstone.core.vocabulary import FeedKind
from fieldstone.field.state import FieldState
from fieldstone.ports.log import StoredText
from fieldstone.ports.marks import Marks
from fieldstone.ports.views import EntryRow, FeedRow, UnitRow


class AuditReads:
    def __init__(self, state: FieldState) -> None:
        self._state = state

    @property
    def field(self) -> str:
        """The field's name."""
        return self._state.store.key.field

    @property
    def head(self) -> int:
        return self._state.head.seq

    @property
    def marks(self) -> Marks:
        """How far somebody who follows the feed has come, durably."""
        return self._state.store.marks

    async def feed(
        self, *, after: int, limit: int, kinds: Sequence[FeedKind] | None = None, since_ms: int | None = None
    ) -> Sequence[FeedRow]:
        return await self._state.store.views.feed(after=after, limit=limit, kinds=kinds, since_ms=since_ms)

    async def entries(self, seqs: Sequence[int]) -> dict[int, Entry]:
        """Entries of the log."""
        found: dict[int, Entry] = {}
        for seq in seqs:
            for stored in await self._state.store.log.read(after=seq - 1, limit=1):
                found[seq] = decode_entry(stored.body)
        return found

    async def texts(self, seqs: Sequence[int]) -> dict[int, StoredText]:
        return await self._state.store.texts.get(seqs)

    async def units(self, seqs: Sequence[int]) -> dict[int, UnitRow]:
        return await self._state.store.views.units(seqs)

    async def units_of_task(self, task: str) -> list[UnitRow]:
        """All that were ever recorded under it, purged ones, too, by seq."""
        number = await self._state.names.number("task", task)
        if number is None:
            return []
        units = self._state.columns.snapshot(self._state.epoch)
        found = await self.units([int(seq) for seq in units.seq[units.task == number]])
        return [found[seq] for seq in sorted(found)]

    async def entries_of(self, units: Sequence[int]) -> dict[int, EntryRow]:
        """Those of the units that are entries of a memory."""
        return await self._state.store.views.entries_of(units)

    async def name(self, number: int) -> str:
        """Of a session, an agent or a task."""
        return await self._state.names.name(number)

    async def passed(self, seq: int) -> None:
        """Return when the log has come further than this entry."""
        await self._state.passed(seq)
