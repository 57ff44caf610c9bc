"""Threads of a field behind a server, over HTTP; its streams are followed over WebSocket."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar
from urllib.parse import quote

import httpx
from msgspec import UNSET, Struct, json, to_builtins

from fieldstone.client.streams import StreamClient
from fieldstone.core.streams import StoredEvent, StreamEvent
from fieldstone.core.transcripts import (
    DEFAULT_PAGE,
    Branch,
    CanonicalMessage,
    Context,
    MessagePage,
    RecoveryAction,
    Run,
    ThreadPage,
    ThreadReceipt,
    Tree,
)
from fieldstone.core.vocabulary import Mode
from fieldstone.field.remembering import RememberedUnit
from fieldstone.planes.compaction import StreamCompaction
from fieldstone.planes.context.recall import ranked
from fieldstone.planes.findings import FINDING_TYPES, FindingType
from fieldstone.planes.reconcile import STALE_MS, Reconciliation
from fieldstone.planes.retention import RetainedStream, StreamRetention
from fieldstone.planes.runs import ForkPoint
from fieldstone.planes.streams import AppendedEvents

IDS_AT_ONCE: Final = 100  # an address has room for them
LONG_TIMEOUT: Final = httpx.Timeout(None, connect=5.0)  # what goes over a whole thread takes as long as it is

T = TypeVar("T")


class Asks(Protocol):
    """A question to the server, and its answer decoded."""

    async def __call__(
        self,
        method: str,
        path: str,
        reply: type[T],
        *,
        content: bytes | None = None,
        params: Mapping[str, str] | None = None,
        timeout: httpx.Timeout = ...,
    ) -> T: ...


class Runs(Struct, frozen=True):
    runs: tuple[Run, ...]


class ActiveLeaf(Struct, frozen=True, rename="camel"):
    active_leaf: str


class Remembered(Struct, frozen=True):
    units: tuple[RememberedUnit, ...]


class Retained(Struct, frozen=True):
    streams: tuple[RetainedStream, ...]


class RemoteThreads:
    def __init__(self, ask: Asks, connect: Callable[[], StreamClient]) -> None:
        """`connect` makes the client that follows streams; it is made when the first one is followed."""
        self._ask: Final = ask
        self._connect: Final = connect
        self._live: StreamClient | None = None

    # --- runs ---------------------------------------------------------------------------------------------------------

    async def begin_run(self, thread: str, fork_from: ForkPoint = UNSET) -> Run:
        """A server that was asked twice, because its answer was lost, has a run more: one that nobody uses."""
        body = {} if fork_from is UNSET else {"forkFromMessageId": fork_from}
        return await self._ask("POST", f"{_path(thread)}/runs", Run, content=json.encode(body))

    async def append(
        self,
        thread: str,
        run_id: str,
        events: Sequence[StreamEvent],
        *,
        expected_seq: int | None = None,
        idempotency_key: str | None = None,
    ) -> AppendedEvents:
        """The key makes sending again safe, so there is always one."""
        key = idempotency_key if idempotency_key is not None else f"append-{uuid.uuid4().hex}"
        body = {"events": events, "expectedSeq": expected_seq, "idempotencyKey": key}
        return await self._ask("POST", f"{_run_path(thread, run_id)}/events", AppendedEvents, content=json.encode(body))

    async def commit(self, thread: str, run_id: str) -> Run:
        return await self._ask("POST", f"{_run_path(thread, run_id)}/commit", Run, timeout=LONG_TIMEOUT)

    async def fail(self, thread: str, run_id: str) -> Run:
        return await self._ask("POST", f"{_run_path(thread, run_id)}/fail", Run)

    async def cancel(self, thread: str, run_id: str) -> Run:
        return await self._ask("POST", f"{_run_path(thread, run_id)}/cancel", Run)

    async def recover(self, thread: str, run_id: str, action: RecoveryAction) -> Run:
        body = json.encode({"action": action})
        path = f"{_run_path(thread, run_id)}/recover"
        return await self._ask("POST", path, Run, content=body, timeout=LONG_TIMEOUT)

    async def run(self, thread: str, run_id: str) -> Run:
        return await self._ask("GET", _run_path(thread, run_id), Run)

    async def runs(self, thread: str, *, before: str | None = None, limit: int = DEFAULT_PAGE) -> Sequence[Run]:
        params = _said({"before": before, "limit": limit})
        return (await self._ask("GET", f"{_path(thread)}/runs", Runs, params=params)).runs

    async def remember(
        self,
        thread: str,
        run_id: str,
        agent_id: str,
        *,
        types: Collection[FindingType] = FINDING_TYPES,
        mode: Mode = "committed",
        session_id: str | None = None,
    ) -> Sequence[RememberedUnit]:
        body = json.encode({"agentId": agent_id, "types": list(types), "mode": mode, "sessionId": session_id})
        path = f"{_run_path(thread, run_id)}/remember"
        return (await self._ask("POST", path, Remembered, content=body, timeout=LONG_TIMEOUT)).units

    # --- the transcript -----------------------------------------------------------------------------------------------

    async def threads(self, *, after: str | None = None, limit: int = DEFAULT_PAGE) -> ThreadPage:
        return await self._ask("GET", "/v1/threads", ThreadPage, params=_said({"after": after, "limit": limit}))

    async def messages(
        self,
        thread: str,
        *,
        branch: Branch = "active",
        selections: Mapping[str, str] | None = None,
        after: str | None = None,
        limit: int = DEFAULT_PAGE,
    ) -> MessagePage:
        params = _said({"branch": branch, "selections": selections, "after": after, "limit": limit})
        return await self._ask("GET", f"{_path(thread)}/messages", MessagePage, params=params)

    async def messages_by_id(self, thread: str, ids: Sequence[str]) -> Sequence[CanonicalMessage]:
        found: list[CanonicalMessage] = []
        for start in range(0, len(ids), IDS_AT_ONCE):
            params = _said({"ids": ids[start : start + IDS_AT_ONCE]})
            found += (await self._ask("GET", f"{_path(thread)}/messages", MessagePage, params=params)).messages
        return found

    async def tree(self, thread: str) -> Tree:
        return await self._ask("GET", f"{_path(thread)}/tree", Tree, timeout=LONG_TIMEOUT)

    async def set_active(self, thread: str, message_id: str) -> str:
        body = json.encode({"messageId": message_id})
        return (await self._ask("PUT", f"{_path(thread)}/active", ActiveLeaf, content=body)).active_leaf

    async def context(
        self,
        thread: str,
        *,
        last: int | None = None,
        max_tokens: int | None = None,
        reasoning: bool = True,
        tool_results: bool = True,
        selections: Mapping[str, str] | None = None,
    ) -> Context:
        wanted = {"last": last, "maxTokens": max_tokens, "selections": selections}
        params = _said({**wanted, "reasoning": reasoning, "toolResults": tool_results})
        return await self._ask("GET", f"{_path(thread)}/context", Context, params=params)

    async def delete(self, thread: str) -> ThreadReceipt:
        return await self._ask("DELETE", _path(thread), ThreadReceipt, timeout=LONG_TIMEOUT)

    # --- keeping it in order ------------------------------------------------------------------------------------------

    async def reconcile(
        self,
        *,
        thread: str | None = None,
        dry_run: bool = True,
        stale_ms: int = STALE_MS,
        recover: RecoveryAction | None = None,
    ) -> Reconciliation:
        body = json.encode({"threadId": thread, "dryRun": dry_run, "staleMs": stale_ms, "recover": recover})
        return await self._ask("POST", "/v1/reconcile", Reconciliation, content=body, timeout=LONG_TIMEOUT)

    async def compact(self, stream: str, *, dry_run: bool = False, keep_events: int = 0) -> StreamCompaction:
        body = json.encode({"dryRun": dry_run, "keepEvents": keep_events})
        path = f"/v1/streams/{_segment(stream)}/compact"
        return await self._ask("POST", path, StreamCompaction, content=body, timeout=LONG_TIMEOUT)

    async def compact_all(self, retention: StreamRetention, *, dry_run: bool = False) -> Sequence[RetainedStream]:
        body = json.encode({**to_builtins(retention), "dryRun": dry_run})
        return (await self._ask("POST", "/v1/retention/streams", Retained, content=body, timeout=LONG_TIMEOUT)).streams

    # --- live ---------------------------------------------------------------------------------------------------------

    def follow(self, stream: str, *, after: int = 0) -> AsyncIterator[StoredEvent]:
        if self._live is None:
            self._live = self._connect()
        return self._live.follow(stream, after=after)

    async def close(self) -> None:
        """Every iterator of `follow` ends."""
        if self._live is not None:
            await self._live.close()


class RemoteRecalls:
    """The `Recalls` of one thread behind a server."""

    def __init__(self, threads: RemoteThreads, thread: str) -> None:
        self._threads: Final = threads
        self._thread: Final = thread

    async def messages(self, ids: Sequence[str]) -> Sequence[CanonicalMessage]:
        return await self._threads.messages_by_id(self._thread, ids)

    async def search(self, hint: str, ids: Sequence[str]) -> Sequence[CanonicalMessage]:
        return await asyncio.to_thread(ranked, hint, await self.messages(ids))


def _path(thread: str) -> str:
    return f"/v1/threads/{_segment(thread)}"


def _run_path(thread: str, run_id: str) -> str:
    return f"{_path(thread)}/runs/{_segment(run_id)}"


def _segment(name: str) -> str:
    """Any name as one part of a path. Dots are written out: two of them would lead up."""
    return quote(name, safe="").replace(".", "%2E")


def _said(query: Mapping[str, Any]) -> dict[str, str]:
    """Texts as they are, all else as JSON; what is not said is not sent."""
    said = {name: value for name, value in query.items() if value is not None}
    return {name: value if isinstance(value, str) else json.encode(value).decode() for name, value in said.items()}
