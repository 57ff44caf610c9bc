"""How much a compaction writes at once.

Copies, words and vectors move in whole batches, behind the log. What is written to the log is what others wait for.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from fieldstone.compaction.plan import BATCH_UNITS

PIECE_UNITS: Final = 64  # in one transaction: about 1 ms in the event loop
ALONE_BATCHES: Final = 4  # about 50 ms


class Stride:
    """How much goes in one transaction. While others write, little: that is what a RECORD waits for. When nobody does,
    as much as there is: then the disk is what takes the time.

    `others`: how many requests of others were written so far."""

    def __init__(self, others: Callable[[], int]) -> None:
        self._count_others = others
        self._others = others()
        self._batches = 0  # since somebody else has written

    @property
    def is_alone(self) -> bool:
        return self._batches >= ALONE_BATCHES

    @property
    def units(self) -> int:
        return BATCH_UNITS if self.is_alone else PIECE_UNITS

    def note(self) -> None:
        """A batch is written."""
        others = self._count_others()
        self._batches = self._batches + 1 if others == self._others else 0
        self._others = others


def parts(units: Sequence[int], most: int) -> Iterator[Sequence[int]]:
    return (units[at : at + most] for at in range(0, len(units), most))
