"""How much a compaction writes at once.

Copies, words and vectors move in whole batches, behind the log. What is written to the log is what others wait for.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from fieldstone.compaction.plan import BATCH_UNITS
from fieldstone.field.state import FieldState

PIECE_UNITS: Final = 64  # in one transaction: about 1 ms in the event loop
ALONE_BATCHES: Final = 4  # about 50 ms


class Stride:
    """How many units go in one transaction. While others write, few: that is what a RECORD waits for. When nobody does,
    as many as there are: then the disk is what takes the time."""

    def __init__(self, state: FieldState) -> None:
        self._state = state
        self._head_seq = state.head.seq
        self._alone = 0  # for so many batches

    @property
    def units(self) -> int:
        return BATCH_UNITS if self._alone >= ALONE_BATCHES else PIECE_UNITS

    def note(self, *, own_entries: int) -> None:
        """A batch is written, and so many of the log's new entries are its own."""
        head_seq = self._state.head.seq
        self._alone = self._alone + 1 if head_seq - self._head_seq == own_entries else 0
        self._head_seq = head_seq


def parts(units: Sequence[int], most: int) -> Iterator[Sequence[int]]:
    return (units[at : at + most] for at in range(0, len(units), most))
