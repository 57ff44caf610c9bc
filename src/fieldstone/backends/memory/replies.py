"""Remembered answers in a dictionary."""

from collections.abc import Sequence

from fieldstone.ports.replies import RememberedReply


class MemoryReplies:
    def __init__(self) -> None:
        self.remembered: dict[bytes, RememberedReply] = {}

    async def find(self, keys: Sequence[bytes]) -> dict[bytes, RememberedReply]:
        return {key: self.remembered[key] for key in keys if key in self.remembered}

    async def forget_before(self, at_ms: int, *, limit: int) -> int:
        old = sorted((reply.at_ms, key) for key, reply in self.remembered.items() if reply.at_ms < at_ms)[:limit]
        for _, key in old:
            del self.remembered[key]
        return len(old)
