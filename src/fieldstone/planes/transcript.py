"""The durable transcript of threads: reading its branches page by page, choosing the active one, deleting it."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Final, NamedTuple

from msgspec import DecodeError, Meta, Struct, ValidationError, json

from fieldstone.core.errors import InvalidPayload
from fieldstone.core.limits import MAX_EPOCH
from fieldstone.core.transcripts import (
    DEFAULT_PAGE,
    MAX_PAGE,
    MAX_SELECTIONS,
    Branch,
    CanonicalMessage,
    Context,
    MessagePage,
    Node,
    Provenance,
    Thread,
    ThreadPage,
    ThreadReceipt,
    Tree,
    decode_message,
)
from fieldstone.planes.context.recall import ranked
from fieldstone.planes.deletion import erase_deleted, mark_deleted
from fieldstone.planes.tree import active_leaf, leaf_by_selections, leaf_through, path_page, thread_row
from fieldstone.planes.window import Window
from fieldstone.ports.planes import MessageRow, PlaneStore, ReadTables, Tables, ThreadRow
from fieldstone.ports.tokens import TokenCounter
from fieldstone.ports.world import Clock
from fieldstone.retrieval.reading import timestamp

NODES_AT_ONCE: Final = 1_000  # of a tree, in one read
CONTEXT_PAGE: Final = 100  # messages that a context is looked for in at a time


class Transcript:
    """What was committed, and how its branches hang together. Nothing here changes a message."""

    def __init__(self, store: PlaneStore, clock: Clock) -> None:
        self._store: Final = store
        self._clock: Final = clock

    async def threads(self, *, after: str | None = None, limit: int = DEFAULT_PAGE) -> ThreadPage:
        """By id."""
        limit, start = _checked_limit(limit), _Cursor() if after is None else _cursor(after)
        rows = await self._store.read(lambda tables: _threads(tables, start.thread or "", limit + 1))
        page = tuple(map(_shown_thread, rows[:limit]))
        if not limit:
            return ThreadPage(page, after)
        return ThreadPage(page, _opaque(_Cursor(thread=page[-1].thread_id)) if len(rows) > limit else None)

    async def thread(self, thread: str) -> Thread:
        return _shown_thread(await self._store.read(lambda tables: thread_row(tables, thread)))

    async def messages(
        self,
        thread: str,
        *,
        branch: Branch = "active",
        selections: Mapping[str, str] | None = None,
        after: str | None = None,
        limit: int = DEFAULT_PAGE,
    ) -> MessagePage:
        """A page of the active path, of the path that `selections` choose, or of all messages in order of creation.

        `after` is the `next` of the page before: the pages of one path belong together, whatever is switched meanwhile.
        """
        limit, start = _checked_limit(limit), None if after is None else _cursor(after)
        chosen = _checked_selections(selections)
        if branch not in ("active", "all"):
            raise InvalidPayload('branch is "active" or "all".')
        if branch == "all":
            page = await self._store.read(lambda tables: _page_of_all(tables, thread, start, limit))
        else:
            page = await self._store.read(lambda tables: _page_of_path(tables, thread, chosen, start, limit))
        return MessagePage(tuple(map(decode_message, page.bodies)), after if not limit else page.next)

    async def messages_by_id(self, thread: str, ids: Sequence[str]) -> tuple[CanonicalMessage, ...]:
        """Those that the thread has, in the order of the ids, on whatever branch they are."""
        bodies = await self._store.read(lambda tables: _bodies_by_id(tables, thread, ids))
        return tuple(map(decode_message, bodies))

    def recalls(self, thread: str) -> "ThreadRecalls":
        """For a context manager: what its summaries stand for is found here again."""
        return ThreadRecalls(self, thread)

    async def messages_of_run(self, thread: str, run_id: str) -> tuple[CanonicalMessage, ...]:
        """What a run left, in their order, on whatever branch it is."""
        bodies = await self._store.read(lambda tables: _bodies(tables, thread, tables.messages_of_run(run_id)))
        return tuple(map(decode_message, bodies))

    async def tree(self, thread: str) -> Tree:
        """Every message without its parts."""
        leaf = (await self._store.read(lambda tables: thread_row(tables, thread))).leaf
        nodes: list[Node] = []
        place = 0
        while rows := await self._store.read(partial(_rows_after, thread, place)):
            nodes.extend(map(_node, rows))
            place = rows[-1].place
        return Tree(tuple(nodes), leaf)

    async def set_active(self, thread: str, message_id: str) -> str:
        """The active path goes through this message, and on by the default rule. Returns its end."""
        now_ms = self._clock.now_ms()
        return await self._store.write(lambda tables: _switch(tables, thread, message_id, now_ms))

    async def delete(self, thread: str) -> ThreadReceipt:
        """The thread with its messages, runs, their streams and snapshots. Every reader loses it at once."""
        now_ms = self._clock.now_ms()
        receipt = await self._store.write(lambda tables: mark_deleted(tables, thread, now_ms))
        await erase_deleted(self._store, thread)
        return receipt

    async def context(
        self,
        thread: str,
        *,
        last: int | None = None,
        max_tokens: int | None = None,
        counter: TokenCounter | None = None,
        reasoning: bool = True,
        tool_results: bool = True,
        selections: Mapping[str, str] | None = None,
    ) -> Context:
        """The end of a path for the next prompt: at most `last` messages, at most `max_tokens`.

        A tool call is never split from its result: where the limit would, it is left out with all that is older.
        Without `tool_results` the calls are left out with them.
        """
        chosen = _checked_selections(selections)
        window = Window(last, max_tokens, counter, reasoning=reasoning, tool_results=tool_results)
        leaf = await self._store.read(lambda tables: _chosen_leaf(tables, thread, chosen))
        below: MessageRow | None = None
        while leaf and window.wants_more:
            found = await self._store.read(partial(_bodies_above, thread, leaf, below))
            if found is None:
                break
            below, bodies = found
            for body in reversed(bodies):
                window.add_older(decode_message(body))
        messages = window.messages()
        first, end = (messages[0].id, messages[-1].id) if messages else (None, None)
        provenance = Provenance(thread, len(messages), first, end, leaf.id if leaf else None)
        return Context(messages, provenance, window.tokens())


class ThreadRecalls:
    """The `Recalls` of one thread."""

    def __init__(self, transcript: Transcript, thread: str) -> None:
        self._transcript: Final = transcript
        self._thread: Final = thread

    async def messages(self, ids: Sequence[str]) -> Sequence[CanonicalMessage]:
        return await self._transcript.messages_by_id(self._thread, ids)

    async def search(self, hint: str, ids: Sequence[str]) -> Sequence[CanonicalMessage]:
        return ranked(hint, await self.messages(ids))


class _Cursor(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """Where a reader is: at which message of the path to a leaf, in the order of creation, or among the threads.

    It is no depth: a chain gets other depths when it is attached.
    """

    leaf: str | None = None
    message: str | None = None
    place: Annotated[int, Meta(ge=0, le=MAX_EPOCH)] | None = None
    thread: str | None = None


class _Page(NamedTuple):
    bodies: list[bytes]
    next: str | None


def _opaque(cursor: _Cursor) -> str:
    return urlsafe_b64encode(json.encode(cursor)).decode().rstrip("=")


def _cursor(opaque: str) -> _Cursor:
    try:
        return json.decode(urlsafe_b64decode(opaque + "=" * (-len(opaque) % 4)), type=_Cursor)
    except (ValueError, DecodeError, ValidationError) as error:
        raise InvalidPayload("after is the `next` of an earlier answer, and nothing else.") from error


def _checked_limit(limit: int) -> int:
    if limit < 0:
        raise InvalidPayload("limit is 0 or more.")
    return min(limit, MAX_PAGE)


def _checked_selections(selections: Mapping[str, str] | None) -> Mapping[str, str]:
    if selections and len(selections) > MAX_SELECTIONS:
        raise InvalidPayload(f"selections choose at no more than {MAX_SELECTIONS} forks.")
    return selections or {}


def _page_of_all(tables: ReadTables, thread: str, start: _Cursor | None, limit: int) -> _Page:
    thread_row(tables, thread)
    after_place = 0 if start is None else start.place
    if after_place is None:
        raise InvalidPayload("after is the `next` of another kind of read.")
    rows = tables.messages(thread, after_place=after_place, limit=limit + 1)
    more = _opaque(_Cursor(place=rows[limit - 1].place)) if limit and len(rows) > limit else None
    return _Page(_bodies(tables, thread, rows[:limit]), more)


def _page_of_path(
    tables: ReadTables, thread: str, selections: Mapping[str, str], start: _Cursor | None, limit: int
) -> _Page:
    if start is None:
        leaf, depth = _chosen_leaf(tables, thread, selections), 0
    else:
        leaf, depth = _resumed(tables, thread, start)
    if leaf is None or not limit:
        return _Page([], None)
    rows = path_page(tables, thread, leaf, after_depth=depth, limit=limit)
    more = _opaque(_Cursor(leaf=leaf.id, message=rows[-1].id)) if rows and rows[-1].id != leaf.id else None
    return _Page(_bodies(tables, thread, rows), more)


def _resumed(tables: ReadTables, thread: str, start: _Cursor) -> tuple[MessageRow, int]:
    thread_row(tables, thread)
    leaf = None if start.leaf is None else tables.message(thread, start.leaf)
    message = None if start.message is None else tables.message(thread, start.message)
    if leaf is None or message is None:
        raise InvalidPayload("after is the `next` of another kind of read, or of another thread.")
    return leaf, message.depth


def _chosen_leaf(tables: ReadTables, thread: str, selections: Mapping[str, str]) -> MessageRow | None:
    leaf = active_leaf(tables, thread_row(tables, thread))
    return leaf_by_selections(tables, thread, leaf, selections) if selections else leaf


def _bodies_above(
    thread: str, leaf: MessageRow, below: MessageRow | None, tables: ReadTables
) -> tuple[MessageRow, list[bytes]] | None:
    """The next messages up the path, the oldest first, and the first of them. None: there are no more."""
    thread_row(tables, thread)
    end = tables.message(thread, leaf.id)
    reached = None if below is None else tables.message(thread, below.id)
    if end is None or (below and not reached):
        return None  # the thread was deleted and has begun again
    depth = end.depth if reached is None else reached.depth - 1
    above = max(0, depth - CONTEXT_PAGE)
    rows = path_page(tables, thread, end, after_depth=above, limit=depth - above)
    return (rows[0], _bodies(tables, thread, rows)) if rows else None


def _rows_after(thread: str, place: int, tables: ReadTables) -> list[MessageRow]:
    thread_row(tables, thread)
    return tables.messages(thread, after_place=place, limit=NODES_AT_ONCE)


def _bodies(tables: ReadTables, thread: str, rows: Sequence[MessageRow]) -> list[bytes]:
    found = tables.bodies(thread, [row.place for row in rows])
    return [found[row.place] for row in rows]


def _bodies_by_id(tables: ReadTables, thread: str, ids: Sequence[str]) -> list[bytes]:
    thread_row(tables, thread)
    return _bodies(tables, thread, [row for each in ids if (row := tables.message(thread, each))])


def _threads(tables: ReadTables, after: str, limit: int) -> list[ThreadRow]:
    """Deleted ones are passed over, so a page may take several reads."""
    found: list[ThreadRow] = []
    while len(found) < limit and (rows := tables.threads(after=after, limit=limit)):
        found.extend(row for row in rows if row.deleted_ms is None)
        after = rows[-1].thread
    return found[:limit]


def _switch(tables: Tables, thread: str, message_id: str, now_ms: int) -> str:
    row = thread_row(tables, thread)
    message = tables.message(thread, message_id)
    if message is None:
        raise InvalidPayload("messageId names no message of this thread.")
    leaf = leaf_through(tables, thread, message)
    tables.put_thread(row._replace(leaf=leaf.id, active_ms=max(row.active_ms, now_ms)))
    return leaf.id


def _node(row: MessageRow) -> Node:
    return Node(row.id, row.parent, row.role, row.run, timestamp(row.created_ms))


def _shown_thread(row: ThreadRow) -> Thread:
    return Thread(row.thread, timestamp(row.created_ms), timestamp(row.active_ms), row.leaf)
