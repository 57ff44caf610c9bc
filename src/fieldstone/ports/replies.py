"""Answers remembered for idempotency: the same message sent again gets the first answer and changes nothing."""

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct


class RememberedReply(Struct, frozen=True, gc=False):
    key: bytes  # keyed digest of agent_id and message id
    request: bytes  # keyed digest of operation, session and payload
    at_ms: int
    body: bytes


class Replies(Protocol):
    """Not a view: what is remembered here is in no log, so that it can be erased."""

    async def find(self, keys: Sequence[bytes]) -> dict[bytes, RememberedReply]: ...

    async def forget_before(self, at_ms: int, *, limit: int) -> int:
        """Drop at most `limit` answers older than `at_ms`; how many were dropped."""
        ...

    async def forget_where(self, holds: Callable[[Sequence[bytes]], Sequence[bool]]) -> int:
        """Drop the answers of whose bodies this is true; how many were dropped. It is asked off the event loop."""
        ...
