"""What a unit is worth to a request: a weighted mean of factors in 0..1, each a property of unit and request alone."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fieldstone.projections.columns import Snapshot
from fieldstone.retrieval.words import Analyze

Values = NDArray[np.float32]

# The one table of weights. Factors that a request cannot have (no hint, no interests) drop out for that request.
WEIGHTS: Final[Mapping[str, float]] = {"match": 0.45, "interests": 0.15, "recency": 0.15, "type": 0.15, "role": 0.10}

# Decisions and contradictions above observations, as the protocol recommends; what binds others goes first.
TYPE_IMPORTANCE: Final[Mapping[str, float]] = {
    "human_directive": 1.0,
    "decision": 0.9,
    "contradiction": 0.9,
    "constraint": 0.85,
    "correction": 0.85,
    "synthesis": 0.7,
    "finding": 0.6,
    "question": 0.5,
    "intention": 0.5,
    "assumption": 0.4,
    "observation": 0.3,
}
OTHER_TYPE_IMPORTANCE: Final = 0.5
RECENCY_HALF_LIFE_EPOCHS: Final = 500.0  # a unit this many epochs old has half of its recency left


class Scores:
    """The factors of every unit, and their weighted mean."""

    def __init__(self, factors: Mapping[str, Values]) -> None:
        self.factors = factors
        self.weights = {name: WEIGHTS[name] for name in factors}
        whole = sum(self.weights.values())
        total: Values | None = None
        for name, values in factors.items():
            part = values * np.float32(self.weights[name] / whole)
            total = part if total is None else np.add(total, part, out=total)
        self.total: Values = np.zeros(0, np.float32) if total is None else total

    def of(self, row: int) -> dict[str, float]:
        return {name: round(float(values[row]), 4) for name, values in self.factors.items()}


def recency(units: Snapshot) -> Values:
    """Falls with age and never reaches 0, so that of two units the newer one always has more."""
    age = (units.epoch - units.unit_epoch).astype(np.float32)
    np.maximum(age, 0, out=age)
    return np.float32(RECENCY_HALF_LIFE_EPOCHS) / (np.float32(RECENCY_HALF_LIFE_EPOCHS) + age)


def type_importance(units: Snapshot) -> Values:
    table = np.asarray([TYPE_IMPORTANCE.get(kind, OTHER_TYPE_IMPORTANCE) for kind in units.types] or [0.0], np.float32)
    return table[units.type]


def role_alignment(units: Snapshot, role: str, roles: Sequence[str], analyze: Analyze) -> Values:
    """`roles` says the author's role for each role code."""
    own = set(analyze(role))
    worth = {other: _overlap(own, set(analyze(other))) for other in set(roles)}  # many registrations, few roles
    table = np.asarray([worth[other] for other in roles] or [0.0], np.float32)
    return table[units.role]


def _overlap(own: set[str], other: set[str]) -> float:
    """1 for the same role, less for roles that share words ("researcher", "market_researcher")."""
    both = own | other
    return len(own & other) / len(both) if both else 0.0
