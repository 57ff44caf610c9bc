"""What stands beside a match: the answer to a question, the reason for a decision, often shares no word with a hint."""

from typing import Final

import numpy as np

from fieldstone.projections.columns import NO_ROW, NO_SESSION, Snapshot
from fieldstone.projections.vector_index import Rows
from fieldstone.retrieval.score import Values

NEXT_BUT_ONE: Final = 0.5  # what a match two units away is worth


def surroundings(
    units: Snapshot, rows: Rows, direct: Values, about: Values, *, coherence: float, elsewhere: float
) -> Values:
    """How much the neighbours of each unit match, and the whole of its session.

    `rows`: the units that match by themselves; `direct`: how much; `about`: how much the session of each does. A
    session that is about all of it, in whatever units, says something of each unit in it that matches or stands beside
    one that does. `coherence` says how much neighbours have to do with each other, in this field's sessions and
    elsewhere. Units that are not reached cost nothing.
    """
    around = np.zeros(units.size, np.float32)
    strength = direct * np.where(units.session[rows] == NO_SESSION, elsewhere, coherence).astype(np.float32)
    shared = about * np.float32(coherence)
    session = np.zeros(units.size, np.float32)
    session[rows] = shared
    for neighbours in (units.before, units.after):
        near = neighbours[rows]
        there = (near != NO_ROW) & (near < units.size)  # the writer goes on: a neighbour may be newer than the snapshot
        near, felt, of_session = near[there], strength[there], shared[there]
        np.add.at(around, near, felt)
        session[near] = of_session  # neighbours are of the same one
        far = neighbours[near]
        there = (far != NO_ROW) & (far < units.size)
        far = far[there]
        np.add.at(around, far, felt[there] * np.float32(NEXT_BUT_ONE))
        session[far] = of_session[there]
    around += session
    return np.minimum(around, np.float32(1.0), out=around)
