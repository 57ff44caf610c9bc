"""How near a unit's meaning is to a request's: the cosine of their vectors, above what any unit of the field has."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from fieldstone.projections.columns import Mask, Snapshot
from fieldstone.projections.meaning import Meaning
from fieldstone.projections.vector_index import Floats
from fieldstone.retrieval.score import Values

FILTERED_OUT: Final = 4  # a mask that leaves more than a quarter is no reason to look again
NEAREST: Final = 8_000  # units that are rated; farther ones are no nearer than chance


def nearness(units: Snapshot, meaning: Meaning, query: Floats, masks: Sequence[Mask]) -> Values:
    """0 for a unit that is no nearer than the field's mean, 1 for one that says the same.

    The nearest of each mask are rated, each mask a part of the one before: a filter that leaves few units leaves none
    of them unrated.
    """
    shares = np.zeros(units.size, np.float32)
    by_chance = min(0.99, max(0.0, float(meaning.lie(units).mean @ query)))
    looked_through = 0
    for mask in masks:
        within = int(np.count_nonzero(mask))
        if looked_through and (looked_through <= NEAREST or within * FILTERED_OUT >= looked_through):
            continue  # enough of them are among the nearest of the mask before
        rows, similarities = meaning.index.search(query, mask, NEAREST)
        shares[rows] = np.clip((similarities - by_chance) / (1 - by_chance), 0, 1)
        looked_through = within
    return shares
