"""What units mean: the vectors of the model that serves, and how they lie in this field.

Properties of the field decide what a similarity is worth. How near any two units are on average, and how far that
spreads: in some models everything is near everything. And how much nearer a unit is to its neighbour in the same
conversation: in a conversation the answer stands beside the question, in a heap of unrelated notes it does not.
"""

from collections.abc import Callable, Collection
from typing import Final, NamedTuple

import numpy as np

from fieldstone.ports.vectors import StoredModel
from fieldstone.projections.columns import LAST_SHOWN_STATUS, NO_ROW, NO_SESSION, Snapshot
from fieldstone.projections.vector_index import BothIndexes, Codes, Floats, Rows, VectorIndex

SAMPLE_UNITS: Final = 4_096  # the newest ones: a field may change its ways
STRANGERS: Final = 512  # of these: enough to tell a spread within 3%, and 0.1 ms to look at
STALE_GROWTH: Final = 1.1  # the sample is taken again once there are this many times as many vectors, or as few
CONVERSATION_EXCESS: Final = 0.08  # of similarity between neighbours; in conversations we measured .10 to .13
PRIOR_VECTORS: Final = 30  # a few units on one subject are not what any unit of the field has in common
PRIOR_PAIRS: Final = 20  # with few pairs to look at, this is believed until there are more
SESSION_PRIOR: Final = 0.5
ELSEWHERE_PRIOR: Final = 0.0


class Lie(NamedTuple):
    """How the vectors lie. Coherence: 0 where neighbours have no more in common than strangers, 1 in conversations."""

    vectors: int
    mean: Floats
    sampled: Rows  # some of them, from all over the sample: they show how near strangers may be to anything
    coherence: float  # among units of a session
    coherence_elsewhere: float


class Reach:
    """Vectors that a request looks at, and how they lie among themselves.

    `closed` tells the sessions that not everybody sees into: what lies in them must not show in anybody's scores.
    """

    def __init__(
        self, index: VectorIndex | BothIndexes, dimension: int, closed: Callable[[], Collection[int]], *, archived: bool
    ) -> None:
        self.index = index
        self._dimension = dimension
        self._closed = closed
        self._archived = archived
        self._lie: Lie | None = None

    def lie(self, units: Snapshot) -> Lie:
        held = self.index.count
        if self._lie is None or not self._lie.vectors / STALE_GROWTH <= held <= self._lie.vectors * STALE_GROWTH:
            self._lie = self._look(units, held)
        return self._lie

    def _look(self, units: Snapshot, held: int) -> Lie:
        counted = units.status <= LAST_SHOWN_STATUS
        if not self._archived:
            counted &= ~units.archived
        if closed := self._closed():
            counted &= ~np.isin(units.session, np.fromiter(closed, np.int64))
        rows = np.flatnonzero(counted)[-SAMPLE_UNITS:]
        vectors = self.index.vectors(rows)
        there = vectors.any(axis=1)
        rows, vectors = rows[there], vectors[there]
        if not len(rows):
            return Lie(held, np.zeros(self._dimension, np.float32), rows, SESSION_PRIOR, ELSEWHERE_PRIOR)
        authors, author = np.unique(units.agent[rows], return_inverse=True)
        means = np.zeros((len(authors), self._dimension), np.float32)
        np.add.at(means, author, vectors)
        means /= np.bincount(author)[:, np.newaxis]
        pairs = _pairs(units, rows)
        excess = _excess(vectors, means[author], *pairs)
        in_session = units.session[rows[pairs[1]]] != NO_SESSION
        return Lie(
            held,
            vectors.sum(axis=0) / np.float32(len(vectors) + PRIOR_VECTORS),
            rows[:: -(-len(rows) // STRANGERS)],
            _coherence(excess[in_session], SESSION_PRIOR),
            _coherence(excess[~in_session], ELSEWHERE_PRIOR),
        )


class Meaning(Reach):
    """Those of the units that are not archived. Others are searched beside them when they are asked for."""

    def __init__(self, model: StoredModel, closed: Callable[[], Collection[int]] = tuple) -> None:
        self.model = model
        self.index: VectorIndex = VectorIndex(model.dimension)
        super().__init__(self.index, model.dimension, closed, archived=False)

    def put(self, rows: Rows, scales: Floats, codes: Codes) -> None:
        self.index.put(rows, scales, codes)

    def with_archived(self, index: VectorIndex) -> Reach:
        return Reach(BothIndexes(self.index, index), self.model.dimension, self._closed, archived=True)


def _pairs(units: Snapshot, rows: Rows) -> tuple[Rows, Rows]:
    """Neighbours among these rows, which ascend: the places of the former and the latter."""
    before = units.before[rows]
    latter = np.flatnonzero(before != NO_ROW)
    # The former may be the newer row, where the latter was a draft for a while: beyond the last one there is none.
    former = np.minimum(np.searchsorted(rows, before[latter]), len(rows) - 1)
    there = rows[former] == before[latter]
    return former[there], latter[there]


def _excess(vectors: Floats, usual: Floats, former: Rows, latter: Rows) -> Floats:
    """How much nearer neighbours are than any two units of their authors. `usual` is the mean vector of each unit's
    author: whoever speaks in turn with others is nearer to himself than to them, whatever it is about."""
    near = np.vecdot(vectors[former], vectors[latter])
    by_chance = np.minimum(np.vecdot(usual[former], usual[latter]), np.float32(0.99))
    excess: Floats = (near - by_chance) / (1 - by_chance)
    return excess


def _coherence(excess: Floats, prior: float) -> float:
    pairs = len(excess)
    seen = min(1.0, max(0.0, float(excess.mean()) / CONVERSATION_EXCESS)) if pairs else prior
    return (pairs * seen + PRIOR_PAIRS * prior) / (pairs + PRIOR_PAIRS)
