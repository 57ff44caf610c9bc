"""Threads of a field in this process: what a caller may do with runs, transcripts and their streams."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from functools import partial
from typing import Final

from msgspec import UNSET, json

from fieldstone.core.access import LOCAL, Caller
from fieldstone.core.errors import InvalidPayload, SecretLeakage
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
from fieldstone.field.field import LocalField
from fieldstone.field.remembering import RememberedUnit, Remembering
from fieldstone.planes.compaction import StreamCompaction
from fieldstone.planes.delivery import BufferOverflow, ReplayEnd
from fieldstone.planes.findings import FINDING_TYPES, FindingType
from fieldstone.planes.reconcile import STALE_MS, Reconciliation
from fieldstone.planes.retention import RetainedStream, StreamRetention, apply_retention
from fieldstone.planes.runs import ForkPoint
from fieldstone.planes.streams import AppendedEvents

MOST_IDS: Final = 1_000  # messages that are asked for by their ids at once


class LocalThreads:
    """Asks for the caller's authority first, and hands on to the planes."""

    def __init__(self, field: LocalField, caller: Caller = LOCAL) -> None:
        self._planes: Final = field.planes
        self._require: Final = partial(field.require, caller)
        self._remembering: Final = Remembering(field, caller)

    # --- runs ---------------------------------------------------------------------------------------------------------

    async def begin_run(self, thread: str, fork_from: ForkPoint = UNSET) -> Run:
        """Ids that hold a secret are refused: they are stored as they are."""
        self._require("write to a thread")
        harness = await self._planes.tools.cleaning()
        if any(harness.holds_secret([thread, fork_from] if isinstance(fork_from, str) else [thread])):
            raise SecretLeakage
        return await self._planes.runs.begin_run(thread, fork_from)

    async def append(
        self,
        thread: str,
        run_id: str,
        events: Sequence[StreamEvent],
        *,
        expected_seq: int | None = None,
        idempotency_key: str | None = None,
    ) -> AppendedEvents:
        """To the run's stream, which is that of no other thread."""
        self._require("write to a thread")
        run = await self._planes.runs.run(thread, run_id)
        return await self._planes.streams.append(
            run.stream_id, events, expected_seq=expected_seq, idempotency_key=idempotency_key
        )

    async def commit(self, thread: str, run_id: str) -> Run:
        self._require("write to a thread")
        return await self._planes.runs.commit(thread, run_id)

    async def fail(self, thread: str, run_id: str) -> Run:
        self._require("write to a thread")
        return await self._planes.runs.fail(thread, run_id)

    async def cancel(self, thread: str, run_id: str) -> Run:
        self._require("write to a thread")
        return await self._planes.runs.cancel(thread, run_id)

    async def recover(self, thread: str, run_id: str, action: RecoveryAction) -> Run:
        self._require("write to a thread")
        return await self._planes.runs.recover(thread, run_id, action)

    async def run(self, thread: str, run_id: str) -> Run:
        self._require("read a thread")
        return await self._planes.runs.run(thread, run_id)

    async def runs(self, thread: str, *, before: str | None = None, limit: int = DEFAULT_PAGE) -> Sequence[Run]:
        self._require("read a thread")
        return await self._planes.runs.runs(thread, before=before, limit=limit)

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
        return await self._remembering.remember(thread, run_id, agent_id, types=types, mode=mode, session_id=session_id)

    # --- the transcript -----------------------------------------------------------------------------------------------

    async def threads(self, *, after: str | None = None, limit: int = DEFAULT_PAGE) -> ThreadPage:
        self._require("read a thread")
        return await self._planes.transcript.threads(after=after, limit=limit)

    async def messages(
        self,
        thread: str,
        *,
        branch: Branch = "active",
        selections: Mapping[str, str] | None = None,
        after: str | None = None,
        limit: int = DEFAULT_PAGE,
    ) -> MessagePage:
        self._require("read a thread")
        return await self._planes.transcript.messages(
            thread, branch=branch, selections=selections, after=after, limit=limit
        )

    async def messages_by_id(self, thread: str, ids: Sequence[str]) -> Sequence[CanonicalMessage]:
        self._require("read a thread")
        if len(ids) > MOST_IDS:
            raise InvalidPayload(f"ids names at most {MOST_IDS} messages.")
        return await self._planes.transcript.messages_by_id(thread, ids)

    async def tree(self, thread: str) -> Tree:
        self._require("read a thread")
        return await self._planes.transcript.tree(thread)

    async def set_active(self, thread: str, message_id: str) -> str:
        self._require("write to a thread")
        return await self._planes.transcript.set_active(thread, message_id)

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
        self._require("read a thread")
        return await self._planes.transcript.context(
            thread,
            last=last,
            max_tokens=max_tokens,
            counter=self._planes.tools.counter,
            reasoning=reasoning,
            tool_results=tool_results,
            selections=selections,
        )

    async def delete(self, thread: str) -> ThreadReceipt:
        self._require("delete a thread")
        return await self._planes.transcript.delete(thread)

    # --- keeping it in order ------------------------------------------------------------------------------------------

    async def reconcile(
        self,
        *,
        thread: str | None = None,
        dry_run: bool = True,
        stale_ms: int = STALE_MS,
        recover: RecoveryAction | None = None,
    ) -> Reconciliation:
        self._require("reconcile threads")
        return await self._planes.reconciling.reconcile(
            thread=thread, dry_run=dry_run, stale_ms=stale_ms, recover=recover
        )

    async def compact(self, stream: str, *, dry_run: bool = False, keep_events: int = 0) -> StreamCompaction:
        self._require("compact a stream")
        return await self._planes.streams.compact(stream, dry_run=dry_run, keep_events=keep_events)

    async def compact_all(self, retention: StreamRetention, *, dry_run: bool = False) -> Sequence[RetainedStream]:
        self._require("plan retention" if dry_run else "apply retention")
        compacted = apply_retention(self._planes.streams, retention, self._planes.tools.clock, dry_run=dry_run)
        return [each async for each in compacted]

    # --- live ---------------------------------------------------------------------------------------------------------

    async def follow(self, stream: str, *, after: int = 0) -> AsyncIterator[StoredEvent]:
        """Who takes the events too slowly is not cut off, as a server would: they are read from the log again."""
        self._require("read a stream")
        ended = False
        while not ended:
            subscription = self._planes.delivery.subscribe(stream, after=after)
            try:
                while (found := await subscription.next()) is not None:
                    for each in () if isinstance(found, ReplayEnd) else found:
                        after = each.seq
                        yield json.decode(each.data, type=StoredEvent)
                ended = True
            except BufferOverflow:
                pass
            finally:
                subscription.close()
