"""How near a unit is, by relations, to what an agent has recorded or just read."""

from collections.abc import Iterable
from typing import Final

import numpy as np

from fieldstone.projections.columns import Snapshot
from fieldstone.projections.relations import Relations
from fieldstone.retrieval.score import Values

TWO_STEPS: Final = 0.5
MOST_SEEDS: Final = 500  # the newest: what an agent recorded long ago says little of what it does now
MOST_NEIGHBOURS: Final = 5_000  # of a unit that everything points to, not everything matters


def proximity(units: Snapshot, relations: Relations, seeds: Iterable[int]) -> Values:
    """1 for a unit that is related to one of the seeds (unit numbers), less for one that is two relations away."""
    nearness = np.zeros(units.size, np.float32)
    near = relations.around(seeds, MOST_NEIGHBOURS)
    for seqs, worth in ((relations.around(near, MOST_NEIGHBOURS), TWO_STEPS), (near, 1.0)):
        rows = np.searchsorted(units.seq, np.fromiter(seqs, np.int64, len(seqs)))
        nearness[rows[rows < units.size]] = worth
    return nearness
