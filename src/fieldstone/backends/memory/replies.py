"""Remembered answers in a dictionary."""

import asyncio
from collections.abc import Callable, Sequence

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

    async def forget_where(self, holds: Callable[[Sequence[bytes]], Sequence[bool]]) -> int:
        replies = list(self.remembered.values())
        told = await asyncio.to_thread(holds, [reply.body for reply in replies])
        found = [reply.key for reply, is_so in zip(replies, told, strict=True) if is_so]
        for key in found:
            self.remembered.pop(key, None)
        return len(found)
