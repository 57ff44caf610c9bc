"""RFC 0004's MemoryAdapter: a memoryRef as a view on a Field.

Every entry is a unit, and every write takes the road of RECORD, redaction included. Refs that are unknown, malformed or
another tenant's read as empty.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Sequence
from datetime import UTC, datetime
from typing import Final, Literal, Protocol

from msgspec import UNSET, Struct, UnsetType

from fieldstone.core.access import LOCAL, Caller
from fieldstone.core.errors import Forbidden, InvalidPayload
from fieldstone.core.validate import is_blank
from fieldstone.field.entries import KeptEntry, Moment
from fieldstone.field.field import LocalField
from fieldstone.field.putting import NewEntry, host_agent
from fieldstone.profiles.openwop.archives import INDEX_FILE, encoded, index_of
from fieldstone.profiles.openwop.budget import within
from fieldstone.profiles.openwop.feed import Feed, FeedEvent
from fieldstone.profiles.openwop.limits import HostLimits
from fieldstone.profiles.openwop.refs import FieldRef, field_ref, is_well_formed
from fieldstone.profiles.openwop.snapshots import moment_of, token
from fieldstone.retrieval.reading import timestamp

Rank = Literal["recency", "relevance"]

MOST_ID_CHARS: Final = 1_500
MOST_NAME_CHARS: Final = 256  # of a node or an agent
MOST_TAG_CHARS: Final = 256
MOST_TAGS: Final = 1_000
MOST_QUERY_CHARS: Final = 4_096
MOST_LIMIT: Final = 2**53 - 1

_RFC_3339: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


class MemoryEntry(Struct, frozen=True, rename="camel"):
    """OpenWOP's own shape, and nothing else."""

    id: str
    content: str
    tags: tuple[str, ...]
    created_at: str
    expires_at: str | UnsetType = UNSET


class MemoryList(Struct, frozen=True):
    """`snapshot`: shown again, it brings what was there at this moment, and what was written under it."""

    entries: tuple[MemoryEntry, ...]
    snapshot: str


class SeedEntry(Struct, frozen=True, kw_only=True):
    """An internal write: it may choose the id, and be past its time already."""

    id: str
    content: str
    tags: tuple[str, ...] = ()
    expires_ms: int | None = None


class Distilled(Struct, frozen=True):
    event: FeedEvent
    checksum: str
    index_file: dict[str, object] | None


class OpenField(Protocol):
    """A field as its users hold it."""

    @property
    def door(self) -> object: ...


class MemoryAdapter:
    """The memories of one tenant, for whoever the caller is."""

    def __init__(
        self, field: LocalField | OpenField, caller: Caller = LOCAL, limits: HostLimits = HostLimits()
    ) -> None:
        """`field`: one that `open_field` opened in this process; a server has routes of its own for it."""
        self._field = field if isinstance(field, LocalField) else _in_this_process(field)
        self._caller = caller
        self._limits = limits
        self._memories = self._field.memories
        self._entries = self._field.memories.entries

    async def list(
        self,
        ref: str,
        *,
        limit: int = 0,
        tag: str | None = None,
        token_budget: int | None = None,
        rank: Rank = "recency",
        query: str | None = None,
        snapshot: str | None = None,
    ) -> MemoryList:
        """Newest first, or what matters most to the query; 0 is no limit. An entry that the budget has no room for is
        left out whole."""
        self._field.require(self._caller, "read a memory")
        _check_list(limit, tag, token_budget, rank, query)
        moment = self._moment(snapshot)
        candidates = self._candidates(ref, limit, tag, rank, query, moment if snapshot is not None else None)
        found = await within(candidates, self._memories.count_tokens, limit or None, token_budget)
        return MemoryList(tuple(_shown(entry) for entry in found), snapshot or token(moment, self._entries.seal_key))

    async def get(self, ref: str, entry_id: str, *, snapshot: str | None = None) -> MemoryEntry | None:
        self._field.require(self._caller, "read a memory")
        moment = None if snapshot is None else self._moment(snapshot)
        if not (is_well_formed(ref) and 0 < len(entry_id) <= MOST_ID_CHARS):
            return None
        if entry_id == INDEX_FILE:
            return await self._index(ref)
        if (of_field := field_ref(ref)) is not None:
            found = await self._of_field(of_field, entry_id, moment)
        else:
            found = await self._entries.get(ref, entry_id, moment)
        return None if found is None else _shown(found)

    async def put(
        self,
        ref: str,
        *,
        content: str,
        tags: Sequence[str] = (),
        expires_at: datetime | str | None = None,
        node_id: str | None = None,
        agent_id: str | None = None,
        snapshot: str | None = None,
    ) -> MemoryEntry:
        """Under a `snapshot` it belongs to that run, which sees it; others see it at once, too."""
        self._check_write(ref, "write to a memory")
        self._check_content(content)
        expires_ms = None if expires_at is None else self._expiry(expires_at)
        run = None if snapshot is None else self._moment(snapshot).run
        _check_name(node_id, "nodeId")
        _check_name(agent_id, "agentId")
        new = NewEntry(
            content=content,
            tags=_checked_tags(tags),
            expires_ms=expires_ms,
            node_id=node_id,
            agent_id=agent_id,
            run=run,
        )
        [kept] = await self._entries.put(self._caller, ref, [new])
        return _shown(kept)

    async def seed(self, ref: str, entries: Sequence[SeedEntry]) -> None:
        """One whose id is there already takes its place."""
        self._check_write(ref, "write to a memory")
        for entry in entries:
            _check_entry_id(entry.id)
            self._check_content(entry.content)
            _checked_tags(entry.tags)
        distinct = {entry.id: entry for entry in entries}.values()  # of two with the same id the last one counts
        new = [
            NewEntry(content=entry.content, tags=entry.tags, expires_ms=entry.expires_ms, id=entry.id)
            for entry in distinct
        ]
        if new:
            await self._entries.put(self._caller, ref, new)

    async def delete(self, ref: str, entry_id: str) -> bool:
        """Its text is gone for good. False: there is no such entry."""
        self._check_write(ref, "delete from a memory", creates=False)
        if not (is_well_formed(ref) and 0 < len(entry_id) <= MOST_ID_CHARS):
            return False
        return await self._entries.delete(self._caller, ref, entry_id)

    async def forget(self, ref: str, *, tag: str | None = None, source: str | None = None) -> int:
        """Everything under a tag, or written by one agent or node, for good; how many went."""
        self._check_write(ref, "forget in a memory", creates=False)
        if (tag is None) == (source is None):
            raise InvalidPayload("Give either tag or source.")
        if not 0 < len(tag or source or "") <= MOST_TAG_CHARS:
            raise InvalidPayload(f"tag and source must have 1 to {MOST_TAG_CHARS} characters.")
        if not is_well_formed(ref):
            return 0
        return await self._entries.forget(self._caller, ref, tag=tag, source=source)

    async def compact(
        self, ref: str, *, why: str, whole: bool = False, deletes: bool | None = None
    ) -> Sequence[FeedEvent]:
        """Entries become fewer: one event for each that came out of it, none where there are not two to begin with.

        `whole`: all of the memory becomes one, earlier outputs included. Else those that never expire are taken.
        """
        self._check_write(ref, "compact a memory", creates=False)
        if not is_well_formed(ref):
            return ()
        units = await self._sources(ref, whole=whole)
        if len(units) < 2:
            return ()
        rows = await self._memories.condensing.compact(
            ref,
            units,
            why=f"{why}, asked for by {host_agent(self._caller)}",
            group_entries=len(units) if whole else self._limits.group_entries,
            output_bytes=self._limits.max_output_bytes,
            deletes=self._limits.deletes if deletes is None else deletes,
        )
        return await Feed(self._field, self._caller).tell(rows)

    async def distil(
        self, ref: str, token_budget: int | None = None, *, sources: Sequence[str] | None = None, index: bool = False
    ) -> Distilled | None:
        """A compaction within a budget of tokens, input and output together. Raises `TokenBudgetExceeded`."""
        self._check_write(ref, "compact a memory", creates=sources is not None)
        if token_budget is not None and token_budget < 1:
            raise InvalidPayload("tokenBudget must be at least 1.")
        if not is_well_formed(ref):
            return None
        for content in sources or ():
            self._check_content(content)
        budget = min(token_budget or self._limits.max_token_budget, self._limits.max_token_budget)
        new = None if sources is None else [NewEntry(content=content) for content in sources]
        archived = await self._memories.condensing.distil(self._caller, ref, budget, sources=new, index=index)
        if archived is None:
            return None
        [event] = await Feed(self._field, self._caller).tell([archived.told])
        index_file = await index_of(self._field, ref) if index else None
        return Distilled(event, archived.checksum, index_file)

    async def consolidate(self, ref: str) -> FeedEvent | None:
        """What says the same, or is out of date, gives way. None: there is no such memory."""
        self._check_write(ref, "compact a memory", creates=False)
        if not is_well_formed(ref):
            return None
        told = await self._memories.consolidating.consolidate(ref)
        if told is None:
            return None
        events = await Feed(self._field, self._caller).tell([told])
        return events[0]

    async def _sources(self, ref: str, *, whole: bool) -> Sequence[int]:
        """Of a compaction: their numbers alone, since thousands of rows would be kept for as long as it takes."""
        listed = await self._entries.listed(ref)
        return [row.unit for row, is_output in listed if whole or (row.expires_ms is None and not is_output)]

    async def _index(self, ref: str) -> MemoryEntry | None:
        index = await index_of(self._field, ref)
        if index is None:
            return None
        return MemoryEntry(INDEX_FILE, encoded(index), (), str(index["updatedAt"]))

    async def _of_field(self, ref: FieldRef, unit_id: str, moment: Moment | None) -> KeptEntry | None:
        if ref.field != self._field.audit.field:
            return None
        return await self._memories.syntheses.get(unit_id, ref.session, self._field.sight(self._caller), moment)

    def _candidates(
        self, ref: str, limit: int, tag: str | None, rank: Rank, query: str | None, moment: Moment | None
    ) -> AsyncIterator[Sequence[KeptEntry]]:
        if not is_well_formed(ref):
            return _none()
        if (of_field := field_ref(ref)) is not None:
            if of_field.field != self._field.audit.field:
                return _none()
            sight = self._field.sight(self._caller)
            return _tagged(self._memories.syntheses.pages(of_field.session, sight, moment), tag)
        if rank == "relevance" and query is not None:
            return _at_once(self._entries.ranked(self._caller, ref, query, tag=tag, moment=moment))
        return self._entries.pages(ref, limit or None, tag=tag, moment=moment)

    def _moment(self, snapshot: str | None) -> Moment:
        return self._entries.begin() if snapshot is None else moment_of(snapshot, self._entries.seal_key)

    def _check_write(self, ref: str, what: str, *, creates: bool = True) -> None:
        self._field.require(self._caller, what)
        if field_ref(ref) is not None:
            refused = Forbidden(
                "Refs that begin with field: are views on the Field, and only read.",
                suggested_action="Write to a ref of your own.",
            )
            self._field.refuse(self._caller, what, refused)
        if creates and not is_well_formed(ref):
            raise InvalidPayload("The memoryRef is malformed.")

    def _check_content(self, content: str) -> None:
        if is_blank(content):
            raise InvalidPayload("content must not be blank.")
        if len(content.encode()) > self._limits.max_entry_bytes:
            raise InvalidPayload(f"content is larger than {self._limits.max_entry_bytes} bytes.")

    def _expiry(self, expires_at: datetime | str) -> int:
        at_ms = _milliseconds(expires_at)
        if at_ms <= self._memories.now_ms():
            raise InvalidPayload("expiresAt is in the past.")
        return at_ms


def _in_this_process(field: OpenField) -> LocalField:
    if not isinstance(field.door, LocalField):
        raise TypeError(
            "It takes a field that `async with open_field(…)` opened in this process. A server has routes for it: "
            "/v1/memory/{ref}."
        )
    return field.door


def _shown(entry: KeptEntry) -> MemoryEntry:
    expires = UNSET if entry.row.expires_ms is None else timestamp(entry.row.expires_ms)
    return MemoryEntry(entry.id, entry.content, entry.tags, timestamp(entry.at_ms), expires)


def _milliseconds(moment: datetime | str) -> int:
    try:
        if isinstance(moment, str):
            moment = datetime.fromisoformat(moment if _RFC_3339.fullmatch(moment) else "")
        if moment.tzinfo is None:
            raise InvalidPayload("expiresAt must say its time zone.")
        return int(moment.astimezone(UTC).timestamp() * 1_000)
    except (ValueError, OverflowError):
        raise InvalidPayload("expiresAt must be a time as RFC 3339 has it.") from None


def _check_list(limit: int, tag: str | None, token_budget: int | None, rank: Rank, query: str | None) -> None:
    if not 0 <= limit <= MOST_LIMIT:
        raise InvalidPayload("limit must be at least 0; 0 is no limit.")
    if tag is not None and not 0 < len(tag) <= MOST_TAG_CHARS:
        raise InvalidPayload(f"tag must have 1 to {MOST_TAG_CHARS} characters.")
    if token_budget is not None and not 1 <= token_budget <= MOST_LIMIT:
        raise InvalidPayload("tokenBudget must be at least 1.")
    if query is not None and not 0 < len(query) <= MOST_QUERY_CHARS:
        raise InvalidPayload(f"query must have 1 to {MOST_QUERY_CHARS} characters.")
    if rank == "relevance" and query is None:
        raise InvalidPayload("rank=relevance needs a query.")


def _checked_tags(tags: Sequence[str]) -> tuple[str, ...]:
    if len(tags) > MOST_TAGS:
        raise InvalidPayload(f"tags has more than {MOST_TAGS} of them.")
    if not all(0 < len(tag) <= MOST_TAG_CHARS for tag in tags):
        raise InvalidPayload(f"Each tag must have 1 to {MOST_TAG_CHARS} characters.")
    return tuple(tags)


def _check_name(name: str | None, what: str) -> None:
    if name is not None and not 0 < len(name) <= MOST_NAME_CHARS:
        raise InvalidPayload(f"{what} must have 1 to {MOST_NAME_CHARS} characters.")


def _check_entry_id(entry_id: str) -> None:
    if not 0 < len(entry_id) <= MOST_ID_CHARS:
        raise InvalidPayload(f"id must have 1 to {MOST_ID_CHARS} characters.")
    if entry_id == INDEX_FILE:
        raise InvalidPayload(f"{INDEX_FILE} is the index of a memory's archives, and nobody's entry.")


async def _at_once(ranked: Awaitable[Sequence[KeptEntry]]) -> AsyncIterator[Sequence[KeptEntry]]:
    yield await ranked


async def _tagged(pages: AsyncIterator[Sequence[KeptEntry]], tag: str | None) -> AsyncIterator[Sequence[KeptEntry]]:
    async for page in pages:
        yield page if tag is None else [entry for entry in page if tag in entry.tags]


async def _none() -> AsyncIterator[Sequence[KeptEntry]]:
    for page in _NO_PAGES:
        yield page


_NO_PAGES: Final[tuple[Sequence[KeptEntry], ...]] = ()
