"""Time, ids and chance are arguments, so that a failing test replays from its seed."""

from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Milliseconds since 1970, UTC."""
        ...

    def monotonic_ms(self) -> float:
        """For measuring spans only."""
        ...


class Ids(Protocol):
    """New ids sort after all that were made before on this machine, so that their index grows at one end."""

    def unit(self) -> str: ...

    def conflict(self) -> str: ...

    def compaction(self) -> str: ...

    def run(self) -> str: ...

    def salt(self) -> bytes:
        """16 bytes that nobody can guess: without its salt, a hash tells nothing of a short text."""
        ...
