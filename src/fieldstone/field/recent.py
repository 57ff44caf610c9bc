"""What each agent was shown lately: it weighs relations to it, and tells an echo from new evidence.

Kept in memory; when a field opens, it is read back from the end of the log.
"""

from collections import deque
from collections.abc import Sequence
from typing import Final

from fieldstone.core.events import ContextAttuned, decode_entry
from fieldstone.ports.log import EventLog

MOST_SHOWN: Final = 200  # of an agent's last reads
READ_BACK_ENTRIES: Final = 1_000


class RecentReads:
    def __init__(self) -> None:
        self._shown: dict[int, deque[int]] = {}

    @classmethod
    async def read_back(cls, log: EventLog, head: int) -> "RecentReads":
        reads = cls()
        for stored in await log.read(after=max(0, head - READ_BACK_ENTRIES), limit=READ_BACK_ENTRIES):
            event = decode_entry(stored.body).event
            if isinstance(event, ContextAttuned):
                reads.note(event.agent, [seq for seq, _ in event.shown])
        return reads

    @property
    def nobody_read(self) -> bool:
        return not self._shown

    def note(self, agent: int, units: Sequence[int]) -> None:
        shown = self._shown.setdefault(agent, deque(maxlen=MOST_SHOWN))
        shown.extend(reversed(units[:MOST_SHOWN]))  # the best last: it stays longest

    def shown_to(self, agent: int) -> Sequence[int]:
        return self._shown.get(agent, ())
