"""Marks in a dictionary."""


class MemoryMarks:
    def __init__(self) -> None:
        self._marks: dict[str, int] = {}

    async def get(self, name: str) -> int:
        return self._marks.get(name, 0)

    async def set(self, name: str, seq: int) -> None:
        self._marks[name] = seq
        if not seq:
            del self._marks[name]
