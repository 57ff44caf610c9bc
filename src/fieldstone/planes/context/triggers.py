"""When a context is compacted: hard cap, threshold, predicted growth, a decider of one's own, in this order."""

from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

from fieldstone.planes.context.budget import Budget

# The last two are never decided here: a model refused for length, or somebody asked for it.
Trigger = Literal["hard_cap", "threshold", "growth", "custom", "emergency", "asked"]
Decider = Callable[[Budget], bool]

HARD_CAP: Final = 0.95  # of the budget: with more, an answer may have no room
THRESHOLD: Final = 0.80
TURNS_REMEMBERED: Final = 4  # the growth of a turn is told by the last few: an early one says nothing of now

# The next call cannot wait for a compaction behind it: it would be refused.
URGENT: Final = frozenset[Trigger]({"hard_cap", "emergency", "asked"})


class Triggers(NamedTuple):
    hard_cap: float = HARD_CAP
    threshold: float = THRESHOLD
    turns_ahead: int = 0  # compact when the hard cap would be met within so many turns; 0: nothing is predicted
    decider: Decider | None = None

    def check(self) -> None:
        if not 0 < self.threshold <= self.hard_cap <= 1:
            raise ValueError("Triggers need 0 < threshold <= hard_cap <= 1.")
        if self.turns_ahead < 0:
            raise ValueError("turns_ahead is 0 or more.")

    def fired(self, budget: Budget, growth: Sequence[int]) -> Trigger | None:
        """The first that holds. `growth` is what the last turns added, in tokens, the newest last."""
        if budget.usage >= self.hard_cap:
            return "hard_cap"
        if budget.usage >= self.threshold:
            return "threshold"
        if self.turns_ahead and self._predicted(budget, growth) >= self.hard_cap * budget.max_tokens:
            return "growth"
        if self.decider is not None and self.decider(budget):
            return "custom"
        return None

    def _predicted(self, budget: Budget, growth: Sequence[int]) -> float:
        last = growth[-TURNS_REMEMBERED:]
        return budget.current + self.turns_ahead * (sum(last) / len(last) if last else 0.0)
