"""How near a unit's meaning is to a request's: their cosine, above what strangers have by chance."""

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from fieldstone.projections.columns import Mask, Snapshot
from fieldstone.projections.meaning import PRIOR_VECTORS, Reach
from fieldstone.projections.vector_index import Floats
from fieldstone.retrieval.score import Values

FILTERED_OUT: Final = 4  # a mask that leaves more than a quarter is no reason to look again
NEAREST: Final = 8_000  # units that are rated; farther ones are no nearer than chance
SURE_SPREADS: Final = 6  # so far above chance is as good as the same
MOST_BY_CHANCE: Final = 0.99


class Chance(NamedTuple):
    """How near the field's units are to a query without having anything to do with it.

    A similarity is worth what it is in this field and with this model: where strangers are spread widely, being near
    says little, and of a model that keeps them together a little more is much. Its weight beside that of words need
    not know the model, then.
    """

    centre: float
    spread: float

    def worth(self, similarities: Floats) -> Values:
        """0 for a unit that is no nearer than strangers are, 1 for one that says the same.

        Squared, since each step away from chance is rarer than the one before it.
        """
        away: Values = np.clip((similarities - self.centre) / (SURE_SPREADS * self.spread), 0, 1)
        return away * away


def by_chance(units: Snapshot, meaning: Reach, query: Floats) -> Chance:
    lie = meaning.lie(units)
    centre = min(MOST_BY_CHANCE, max(0.0, float(lie.mean @ query)))
    widest = (1 - centre) / SURE_SPREADS  # at most this, so that saying the same is always worth 1
    found = meaning.index.similarities(query, lie.sampled)
    found = found[found != 0]  # what was purged since then has no vector any more
    seen = float(found.var()) if found.size else 0.0
    variance = (found.size * seen + PRIOR_VECTORS * widest**2) / (found.size + PRIOR_VECTORS)
    return Chance(centre, min(widest, math.sqrt(variance)))


def nearness(units: Snapshot, meaning: Reach, query: Floats, masks: Sequence[Mask]) -> Values:
    """The nearest of each mask are rated, each mask a part of the one before: a filter that leaves few units leaves
    none of them unrated."""
    shares = np.zeros(units.size, np.float32)
    chance = by_chance(units, meaning, query)
    looked_through = 0
    for mask in masks:
        within = int(np.count_nonzero(mask))
        if looked_through and (looked_through <= NEAREST or within * FILTERED_OUT >= looked_through):
            continue  # enough of them are among the nearest of the mask before
        rows, similarities = meaning.index.search(query, mask, NEAREST)
        shares[rows] = chance.worth(similarities)
        looked_through = within
    return shares
