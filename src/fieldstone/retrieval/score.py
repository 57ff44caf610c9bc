"""What a unit is worth to a request: a weighted mean of factors in 0..1, each a property of unit and request alone."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fieldstone.projections.columns import NO_CONFIDENCE, Snapshot
from fieldstone.retrieval.words import Analyze

Values = NDArray[np.float32]

# The one table of weights; a field may override it. Factors that a request cannot have (no hint, no task) drop out for
# that request. What the hint says decides; the rest breaks ties, and ranks where there is no hint. Words and meaning
# weigh the same: how much a model is to be trusted shows in what its similarities are worth (semantic.py).
WEIGHTS: Final[Mapping[str, float]] = {
    "lexical": 0.45,
    "semantic": 0.45,
    "surroundings": 0.35,
    "author": 0.08,
    "interests": 0.12,
    "task": 0.12,
    "proximity": 0.10,
    "recency": 0.05,
    "type": 0.05,
    "role": 0.035,
    "confidence": 0.03,
}

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
UNKNOWN_CONFIDENCE: Final = 0.5
RECENCY_HALF_LIFE_EPOCHS: Final = 500.0  # a unit this many epochs old has half of its recency left


class Scores:
    """The factors of every unit, and their weighted mean."""

    def __init__(
        self, factors: Mapping[str, Values], weights: Mapping[str, float] = WEIGHTS, kept: "Kept | None" = None
    ) -> None:
        self.factors = factors
        self.weights = {name: weights[name] for name in factors}
        whole = sum(self.weights.values()) or 1.0
        total: Values | None = None if kept is None else kept.weighted * np.float32(1 / whole)
        for name, values in factors.items():
            if kept is not None and name in kept.factors:
                continue
            if total is not None and not values.any():
                continue  # a factor that nobody has costs nothing
            part = values * np.float32(self.weights[name] / whole)
            total = part if total is None else np.add(total, part, out=total)
        self.total: Values = np.zeros(0, np.float32) if total is None else total

    def of(self, row: int) -> dict[str, float]:
        return {name: round(float(values[row]), 4) for name, values in self.factors.items()}


class Kept(NamedTuple):
    """Factors that are the same for many requests, and their weighted sum."""

    factors: Mapping[str, Values]
    weighted: Values

    @classmethod
    def of(cls, factors: Mapping[str, Values], weights: Mapping[str, float]) -> "Kept":
        weighted = sum((values * np.float32(weights[name]) for name, values in factors.items()), np.float32(0))
        return cls(factors, np.asarray(weighted, np.float32))


def with_recency_weight(weights: Mapping[str, float], names: Collection[str], share: float) -> dict[str, float]:
    """Weights under which recency makes up this share of the score, and the other factors keep their proportions."""
    others = {name: weights[name] * (1 - share) for name in names if name != "recency"}
    return {**others, "recency": share * sum(weights[name] for name in others)} if others else {"recency": 1.0}


def recency(units: Snapshot) -> Values:
    """Falls with age and never reaches 0, so that of two units the newer one always has more."""
    age = (units.epoch - units.unit_epoch).astype(np.float32)
    np.maximum(age, 0, out=age)
    return np.float32(RECENCY_HALF_LIFE_EPOCHS) / (np.float32(RECENCY_HALF_LIFE_EPOCHS) + age)


def type_importance(units: Snapshot) -> Values:
    table = np.asarray([TYPE_IMPORTANCE.get(kind, OTHER_TYPE_IMPORTANCE) for kind in units.types] or [0.0], np.float32)
    return table.take(units.type, mode="clip")  # a quarter of the time of table[…] at a million units


def confidence(units: Snapshot) -> Values:
    """What its author said; for a unit without a word on it, the middle."""
    return np.where(units.confidence == NO_CONFIDENCE, np.float32(UNKNOWN_CONFIDENCE), units.confidence)


def authorship(units: Snapshot, agents: Collection[int]) -> Values:
    """1 for units by one of these agents (numbers): a hint that names somebody asks for what they said."""
    table = np.zeros(len(units.agent_codes) + 1, np.float32)
    table[[units.agent_codes[agent] for agent in agents if agent in units.agent_codes]] = 1.0
    return table[units.agent]


def belongs(units: Snapshot, task: int | None) -> Values:
    """1 for units of this task; of a task that nobody has named before there are none."""
    return (units.task == task).astype(np.float32) if task else np.zeros(units.size, np.float32)


def role_alignment(units: Snapshot, role: str, roles: Sequence[str], analyze: Analyze) -> Values:
    """`roles` says the author's role for each role code."""
    own = set(analyze(role))
    worth = {other: _overlap(own, set(analyze(other))) for other in set(roles)}  # many registrations, few roles
    table = np.asarray([worth[other] for other in roles] or [0.0], np.float32)
    return table.take(units.role, mode="clip")


def _overlap(own: set[str], other: set[str]) -> float:
    """1 for the same role, less for roles that share words ("researcher", "market_researcher")."""
    both = own | other
    return len(own & other) / len(both) if both else 0.0
