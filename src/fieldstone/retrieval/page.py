"""Which of the scored units fill the page: the best ones, but not one author's alone, and not one thing twice."""

import heapq
from collections import defaultdict
from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fieldstone.projections.columns import Mask, Snapshot
from fieldstone.retrieval.score import Values

# Each further unit of the same author must be this much better than somebody else's to be chosen before it.
AUTHOR_DECAY: Final = 0.99
DUPLICATE_WORTH: Final = 0.5  # of a unit that restates another one
POOL_FACTOR: Final = 8  # how many of the best are looked at for a page
LEAST_POOL: Final = 256
SAMPLED: Final = 16_384
LEAST_SAMPLED_BEST: Final = 8  # fewer would guess too high by chance
NOT_THERE: Final = -1.0  # below every score

Rows = NDArray[np.int64]
NO_DUPLICATES: Final[Mapping[int, int]] = {}


def pool_of(units: Snapshot, mask: Mask, scores: Values, most: int) -> Rows:
    """The rows that a page is chosen from, best score first; of equal scores the newer one first."""
    size = max(LEAST_POOL, most * POOL_FACTOR)
    few = np.count_nonzero(mask) <= max(most, size)
    rows = np.flatnonzero(mask) if few else _pool(units, mask, scores, size)
    return rows[np.lexsort((-units.unit_epoch[rows], -scores[rows]))]


def by_relevance(
    units: Snapshot, pool: Rows, scores: Values, most: int, duplicates: Mapping[int, int] = NO_DUPLICATES
) -> Rows:
    """The page's rows in the pool's order. `duplicates`: rows that restate another one."""
    if pool.size <= most:
        return pool
    chosen = _choose(units, pool, _worths(pool, scores, duplicates), most)
    return pool[np.isin(pool, chosen)]


def by_epoch(units: Snapshot, mask: Mask, most: int) -> tuple[Rows, int | None]:
    """Oldest first, for lossless polling; and the epoch to go on from where the answer was cut."""
    rows = np.flatnonzero(mask)
    rows = rows[np.argsort(units.unit_epoch[rows], kind="stable")]
    if rows.size <= most:
        return rows, None
    return rows[:most], int(units.unit_epoch[rows[most]])


def _pool(units: Snapshot, mask: Mask, scores: Values, size: int) -> Rows:
    """The best rows; and if they are all of one author, the best of the others: it cannot push them out of sight."""
    values = np.where(mask, scores, np.float32(NOT_THERE))
    best = _at_least_kth(values, size)
    author = units.agent[best[0]]
    if np.any(units.agent[best] != author):
        return best
    others = np.where(units.agent != author, values, np.float32(NOT_THERE))
    at = int(np.argmax(others))
    return best if others[at] == NOT_THERE else np.append(best, at)


def _at_least_kth(values: Values, k: int) -> Rows:
    """Where the k best values are, ties included. A guess from a sample spares sorting all of them."""
    step = max(1, values.size // SAMPLED)
    sample = values[::step]
    guess = min(sample.size, 2 * k // step + LEAST_SAMPLED_BEST)
    places = np.flatnonzero(values >= np.partition(sample, -guess)[-guess])
    if places.size < k:
        places = np.arange(values.size)
    kth = np.partition(values[places], -k)[-k]
    best: Rows = places[values[places] >= kth]
    return best


def _worths(pool: Rows, scores: Values, duplicates: Mapping[int, int]) -> dict[int, float]:
    return {
        row: score * DUPLICATE_WORTH if row in duplicates else score
        for row, score in zip(pool.tolist(), scores[pool].tolist(), strict=True)
    }


def _choose(units: Snapshot, pool: Rows, worths: Mapping[int, float], most: int) -> Rows:
    """Greedy: always the unit that is worth most, less for each unit of its author that is on the page already."""
    ordered = sorted(pool.tolist(), key=lambda row: -worths[row])
    authors = dict(zip(pool.tolist(), units.agent[pool].tolist(), strict=True))
    queues: defaultdict[int, list[int]] = defaultdict(list)
    for row in ordered:
        queues[authors[row]].append(row)
    # (worth, order in the pool) decides; an author's queue is walked best first.
    place = {row: at for at, row in enumerate(ordered)}
    heap = [(-worths[queue[0]], place[queue[0]], author, 0) for author, queue in queues.items()]
    heapq.heapify(heap)
    chosen: list[int] = []
    while heap and len(chosen) < most:
        _, _, author, at = heapq.heappop(heap)
        chosen.append(queues[author][at])
        if at + 1 < len(queues[author]):
            row = queues[author][at + 1]
            worth = worths[row] * AUTHOR_DECAY ** (at + 1)
            heapq.heappush(heap, (-worth, place[row], author, at + 1))
    others = [queue[0] for author, queue in queues.items() if author != units.agent[chosen[0]]]
    if most > 1 and others and len({int(units.agent[row]) for row in chosen}) == 1:
        chosen[-1] = min(others, key=place.__getitem__)  # no author has the page alone while others have something
    return np.asarray(chosen, np.int64)
