"""How far work behind the log has come."""

from typing import Final, Protocol

DETECTED: Final = "detected"  # every unit up to it has been compared with the ones before


class Marks(Protocol):
    """Not a view: nothing in the log says it. A mark that is lost only means that work is done once more."""

    async def get(self, name: str) -> int:
        """A seq; 0 where the work has not begun."""
        ...

    async def set(self, name: str, seq: int) -> None:
        """On disk when it returns; 0 forgets it. `StorageFull` where there is no room."""
        ...
