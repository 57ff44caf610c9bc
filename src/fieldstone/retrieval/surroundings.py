"""What stands beside a match: the answer to a question, the reason for a decision, often shares no word with a hint."""

from typing import Final

import numpy as np

from fieldstone.projections.columns import NO_ROW, NO_SESSION, Snapshot
from fieldstone.projections.vector_index import Rows
from fieldstone.retrieval.score import Values

NEXT_BUT_ONE: Final = 0.5  # what a match two units away is worth


def surroundings(
    units: Snapshot, direct: Values, *, coherence: float, elsewhere: float, rows: Rows | None = None
) -> Values:
    """How much the neighbours of each unit match. `coherence` says how much neighbours have to do with each other, in
    this field's sessions and elsewhere; units that do not match directly cost nothing. `rows`: those that do, where the
    caller knows them."""
    around = np.zeros(units.size, np.float32)
    rows = np.flatnonzero(direct > 0) if rows is None else rows
    strength = direct[rows] * np.where(units.session[rows] == NO_SESSION, elsewhere, coherence).astype(np.float32)
    for neighbours in (units.before, units.after):
        near = neighbours[rows]
        there = (near != NO_ROW) & (near < units.size)  # the writer goes on: a neighbour may be newer than the snapshot
        near, felt = near[there], strength[there]
        np.add.at(around, near, felt)
        far = neighbours[near]
        there = (far != NO_ROW) & (far < units.size)
        np.add.at(around, far[there], felt[there] * np.float32(NEXT_BUT_ONE))
    return np.minimum(around, np.float32(1.0), out=around)
