"""How full a context is: counted, or as the model reported it."""

from math import ceil
from typing import Literal, NamedTuple

from msgspec import Struct

BudgetSource = Literal["counted", "reported"]


class Budget(Struct, frozen=True):
    """What the context may take, and what it takes now."""

    max_tokens: int
    current: int
    source: BudgetSource = "counted"

    @property
    def usage(self) -> float:
        """1.0 is full. It may be more: what was said is kept, whether or not it fits."""
        return self.current / self.max_tokens

    @property
    def remaining(self) -> int:
        return max(0, self.max_tokens - self.current)


class Report(NamedTuple):
    """What a model said that a prompt took, and what was counted for the same prompt."""

    reported: int
    counted: int


class Meter:
    """Turns a count into a budget, and learns from what the model reports."""

    def __init__(self, max_tokens: int) -> None:
        if max_tokens < 1:
            raise ValueError(f"max_tokens is {max_tokens}: a context holds at least one token.")
        self._max_tokens = max_tokens
        self._report: Report | None = None

    def learn(self, report: Report) -> None:
        if report.reported < 0:
            raise ValueError(f"A model cannot have read {report.reported} tokens.")
        self._report = report

    def lower(self, max_tokens: int) -> None:
        """The model told what it takes, and that is less."""
        self._max_tokens = max(1, min(self._max_tokens, max_tokens))

    def read(self, counted: int) -> Budget:
        if self._report is None:
            return Budget(self._max_tokens, counted)
        return Budget(self._max_tokens, _corrected(counted, self._report), "reported")


def _corrected(counted: int, report: Report) -> int:
    """A model takes more or less than we count for two reasons: tool schemas, which add, and other tokens, which scale.

    Which of them it was cannot be told, so the larger reading holds.
    """
    added = counted + report.reported - report.counted
    scaled = ceil(counted * report.reported / report.counted) if report.counted else report.reported
    return max(added, scaled, 0)
