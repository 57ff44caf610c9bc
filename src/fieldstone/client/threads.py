"""`field.threads`: runs that are streamed in, and the branching transcript that they leave."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Any, Final, Protocol

from msgspec import UNSET, ValidationError, convert

from fieldstone.core.errors import InvalidPayload
from fieldstone.core.streams import StoredEvent, StreamEvent
from fieldstone.core.transcripts import (
    DEFAULT_PAGE,
    Branch,
    CanonicalMessage,
    Context,
    MessagePage,
    RecoveryAction,
    Run,
    Thread,
    ThreadPage,
    ThreadReceipt,
    Tree,
)
from fieldstone.core.vocabulary import Mode
from fieldstone.field.remembering import RememberedUnit
from fieldstone.planes.compaction import StreamCompaction
from fieldstone.planes.findings import FINDING_TYPES, FindingType
from fieldstone.planes.reconcile import STALE_MS, Reconciliation
from fieldstone.planes.retention import RetainedStream, StreamRetention
from fieldstone.planes.runs import ForkPoint
from fieldstone.planes.streams import AppendedEvents

RETENTION: Final = StreamRetention()


class ThreadsDoor(Protocol):
    """What `Threads` needs, whether the field is in this process or behind a server."""

    async def begin_run(self, thread: str, fork_from: ForkPoint = UNSET) -> Run: ...

    async def append(
        self,
        thread: str,
        run_id: str,
        events: Sequence[StreamEvent],
        *,
        expected_seq: int | None = None,
        idempotency_key: str | None = None,
    ) -> AppendedEvents: ...

    async def commit(self, thread: str, run_id: str) -> Run: ...

    async def fail(self, thread: str, run_id: str) -> Run: ...

    async def cancel(self, thread: str, run_id: str) -> Run: ...

    async def recover(self, thread: str, run_id: str, action: RecoveryAction) -> Run: ...

    async def remember(
        self,
        thread: str,
        run_id: str,
        agent_id: str,
        *,
        types: Collection[FindingType] = FINDING_TYPES,
        mode: Mode = "committed",
        session_id: str | None = None,
    ) -> Sequence[RememberedUnit]: ...

    async def run(self, thread: str, run_id: str) -> Run: ...

    async def runs(self, thread: str, *, before: str | None = None, limit: int = DEFAULT_PAGE) -> Sequence[Run]: ...

    async def threads(self, *, after: str | None = None, limit: int = DEFAULT_PAGE) -> ThreadPage: ...

    async def messages(
        self,
        thread: str,
        *,
        branch: Branch = "active",
        selections: Mapping[str, str] | None = None,
        after: str | None = None,
        limit: int = DEFAULT_PAGE,
    ) -> MessagePage: ...

    async def tree(self, thread: str) -> Tree: ...

    async def set_active(self, thread: str, message_id: str) -> str: ...

    async def context(
        self,
        thread: str,
        *,
        last: int | None = None,
        max_tokens: int | None = None,
        reasoning: bool = True,
        tool_results: bool = True,
        selections: Mapping[str, str] | None = None,
    ) -> Context: ...

    async def delete(self, thread: str) -> ThreadReceipt: ...

    async def reconcile(
        self,
        *,
        thread: str | None = None,
        dry_run: bool = True,
        stale_ms: int = STALE_MS,
        recover: RecoveryAction | None = None,
    ) -> Reconciliation: ...

    async def compact(self, stream: str, *, dry_run: bool = False, keep_events: int = 0) -> StreamCompaction: ...

    async def compact_all(self, retention: StreamRetention, *, dry_run: bool = False) -> Sequence[RetainedStream]: ...

    def follow(self, stream: str, *, after: int = 0) -> AsyncIterator[StoredEvent]: ...


class Threads:
    """Begin a run, append its events as they come, and commit it: then its messages are in the thread's transcript."""

    def __init__(self, door: ThreadsDoor) -> None:
        self._door: Final = door

    async def begin_run(self, thread: str, *, fork_from: ForkPoint = UNSET) -> Run:
        """A run at the end of the active path, behind the message `fork_from`, or (None) at the root.

        The first run of a thread makes it.
        """
        return await self._door.begin_run(thread, fork_from)

    async def fork(self, thread: str, message_id: str | None) -> Run:
        """A run that goes on behind this message, beside what goes on there already. None: a new beginning."""
        return await self._door.begin_run(thread, message_id)

    async def append(
        self,
        run: Run,
        events: Sequence[StreamEvent | Mapping[str, Any]],
        *,
        expected_seq: int | None = None,
        idempotency_key: str | None = None,
    ) -> AppendedEvents:
        """All of these `{kind, payload}` or none, durable when it returns; and as they were stored, without secrets.

        `expected_seq` is the stream's head as the writer knows it: where it is another, nothing is appended.
        """
        return await self._door.append(
            run.thread_id,
            run.run_id,
            [_event(each) for each in events],
            expected_seq=expected_seq,
            idempotency_key=idempotency_key,
        )

    async def commit(self, run: Run) -> Run:
        """Its messages are in the transcript; another committed run that began at the same message is superseded."""
        return await self._door.commit(run.thread_id, run.run_id)

    async def fail(self, run: Run) -> Run:
        """It ends without its messages. Its events stay in the log."""
        return await self._door.fail(run.thread_id, run.run_id)

    async def cancel(self, run: Run) -> Run:
        """It ends without its messages. Its events stay in the log."""
        return await self._door.cancel(run.thread_id, run.run_id)

    async def recover(self, run: Run, action: RecoveryAction) -> Run:
        """End a run whose writer is gone: `fail`, `cancel`, or `commit` what is there.

        A tool call that nobody has answered is closed with an error.
        """
        return await self._door.recover(run.thread_id, run.run_id, action)

    async def remember(
        self,
        run: Run,
        *,
        agent: str,
        types: Collection[FindingType] = FINDING_TYPES,
        mode: Mode = "committed",
        session_id: str | None = None,
    ) -> Sequence[RememberedUnit]:
        """Record what a committed run decided and found, as units of this agent. All that it then has of the run.

        It is found by rules for English. Asked again, nothing is recorded twice.
        """
        return await self._door.remember(
            run.thread_id, run.run_id, agent, types=types, mode=mode, session_id=session_id
        )

    async def run(self, thread: str, run_id: str) -> Run:
        """One run, as it stands."""
        return await self._door.run(thread, run_id)

    async def runs(self, thread: str, *, before: Run | None = None, limit: int = DEFAULT_PAGE) -> Sequence[Run]:
        """The newest first; those that began before the run `before`."""
        return await self._door.runs(thread, before=None if before is None else before.run_id, limit=limit)

    async def threads(self) -> AsyncIterator[Thread]:
        """All of them, by id."""
        after: str | None = None
        while True:
            page = await self._door.threads(after=after)
            for thread in page.threads:
                yield thread
            if page.next is None:
                return
            after = page.next

    async def transcript(
        self, thread: str, *, branch: Branch = "active", selections: Mapping[str, str] | None = None
    ) -> AsyncIterator[CanonicalMessage]:
        """The messages of the active path, of the path that `selections` choose, or (`all`) of every branch.

        `selections` is {parent: child}, with "" for the root. Pages are read as they are needed.
        """
        after: str | None = None
        while True:
            page = await self._door.messages(thread, branch=branch, selections=selections, after=after)
            for message in page.messages:
                yield message
            if page.next is None:
                return
            after = page.next

    async def messages(
        self,
        thread: str,
        *,
        branch: Branch = "active",
        selections: Mapping[str, str] | None = None,
        after: str | None = None,
        limit: int = DEFAULT_PAGE,
    ) -> MessagePage:
        """The same, one page: `after` is the `next` of the page before."""
        return await self._door.messages(thread, branch=branch, selections=selections, after=after, limit=limit)

    async def tree(self, thread: str) -> Tree:
        """How all messages hang together, without their parts."""
        return await self._door.tree(thread)

    async def set_active(self, thread: str, message_id: str) -> str:
        """Lead the active path through this message, and on by the default rule. Gives the path's last message."""
        return await self._door.set_active(thread, message_id)

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
        """The end of a path for the next prompt, and where it comes from. A tool call stays with its result."""
        return await self._door.context(
            thread,
            last=last,
            max_tokens=max_tokens,
            reasoning=reasoning,
            tool_results=tool_results,
            selections=selections,
        )

    async def delete(self, thread: str) -> ThreadReceipt:
        """The thread with its messages, runs, streams and snapshots, for good. Every reader loses it at once."""
        return await self._door.delete(thread)

    async def reconcile(
        self,
        *,
        thread: str | None = None,
        dry_run: bool = True,
        stale_ms: int = STALE_MS,
        recover: RecoveryAction | None = None,
    ) -> Reconciliation:
        """Find every disagreement of logs and transcripts; with `dry_run=False`, mend it.

        `recover` says what becomes of runs that told nothing for `stale_ms`; without it they are only named.
        """
        return await self._door.reconcile(thread=thread, dry_run=dry_run, stale_ms=stale_ms, recover=recover)

    async def compact(self, stream: str, *, dry_run: bool = False, keep_events: int = 0) -> StreamCompaction:
        """Let a verified snapshot stand for a stream's events. What still needs them keeps them, and is named."""
        return await self._door.compact(stream, dry_run=dry_run, keep_events=keep_events)

    async def compact_all(
        self, retention: StreamRetention = RETENTION, *, dry_run: bool = False
    ) -> Sequence[RetainedStream]:
        """The same for the streams of all runs that ended some time ago."""
        return await self._door.compact_all(retention, dry_run=dry_run)

    def follow(self, stream: str, *, after: int = 0) -> AsyncIterator[StoredEvent]:
        """A stream's events behind `after`, and then what comes, until the field is closed. None is missed."""
        return self._door.follow(stream, after=after)


def _event(given: StreamEvent | Mapping[str, Any]) -> StreamEvent:
    if isinstance(given, StreamEvent):
        return given
    try:
        return convert(dict(given), StreamEvent)
    except ValidationError as error:
        raise InvalidPayload("An event is {kind, payload}, and its payload has names for its fields.") from error
