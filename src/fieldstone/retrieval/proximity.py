"""How near a unit is, by relations, to what an agent has recorded or just read."""

from collections.abc import Collection, Iterable
from typing import Final

import numpy as np

from fieldstone.projections.columns import Mask, Snapshot
from fieldstone.projections.relations import Relations
from fieldstone.projections.vector_index import Rows
from fieldstone.retrieval.score import Values

TWO_STEPS: Final = 0.5
MOST_SEEDS: Final = 500  # the newest: what an agent recorded long ago says little of what it does now
MOST_NEIGHBOURS: Final = 5_000  # of a unit that everything points to, not everything matters


def proximity(units: Snapshot, relations: Relations, seeds: Iterable[int], visible: Mask) -> Values:
    """1 for a unit that is related to one of the seeds (unit numbers), less for one that is two relations away.

    The way leads through visible units alone: nobody may tell from a score that somebody's draft is there.
    """
    nearness = np.zeros(units.size, np.float32)
    near = _rows(units, relations.around(seeds, MOST_NEIGHBOURS))
    passed = units.seq[near[visible[near]]].tolist()
    nearness[_rows(units, relations.around(passed, MOST_NEIGHBOURS))] = TWO_STEPS
    nearness[near] = 1.0
    return nearness


def _rows(units: Snapshot, seqs: Collection[int]) -> Rows:
    rows = np.searchsorted(units.seq, np.fromiter(seqs, np.int64, len(seqs)))
    return rows[rows < units.size]  # the writer goes on: a relation may be newer than the snapshot
