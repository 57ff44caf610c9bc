"""Which units somebody sees: not others' drafts, and not what is in a closed session of which they are no member."""

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct

from fieldstone.ports.views import ConflictRow, UnitRow, Views
from fieldstone.projections.columns import PURGED, STATUS_CODES, Mask, Snapshot


class Sight(Struct, frozen=True):
    """`agents` None: an operator's, who sees everything."""

    agents: frozenset[int] | None
    hidden: frozenset[int] = frozenset()  # closed sessions
    discarded: bool = False  # also drafts that their authors gave up: for whoever purges

    def sees(self, unit: UnitRow) -> bool:
        if self.agents is None:
            return True
        if unit.mode == "draft" and unit.agent not in self.agents:
            return False
        return unit.session not in self.hidden

    async def conflicts(self, rows: Sequence[ConflictRow], views: Views) -> list[ConflictRow]:
        """Those of which it sees both sides: one alone would tell of the other."""
        if self.agents is None or not rows:
            return list(rows)
        sides = await views.units(sorted({seq for row in rows for seq in (row.unit_a, row.unit_b)}))
        return [row for row in rows if self._sees_all(sides[seq] for seq in (row.unit_a, row.unit_b))]

    def units(self, units: Snapshot) -> Mask:
        if self.agents is None:
            there: Mask = units.status != PURGED
            return there
        own = [units.agent_code(agent) for agent in self.agents]
        shown = units.committed | np.isin(units.agent, own)
        if self.discarded:
            shown |= units.status == STATUS_CODES["retracted"]
        mask: Mask = (units.status != PURGED) & shown
        if self.hidden:
            mask &= ~np.isin(units.session, list(self.hidden))
        return mask

    def _sees_all(self, units: Iterable[UnitRow]) -> bool:
        return all(self.sees(unit) for unit in units)
