"""Marks in a dictionary."""

from fieldstone.ports.marks import Mark


class MemoryMarks:
    def __init__(self) -> None:
        self._marks: dict[Mark, int] = {}

    async def get(self, name: Mark) -> int:
        return self._marks.get(name, 0)

    async def set(self, name: Mark, seq: int) -> None:
        self._marks[name] = seq
