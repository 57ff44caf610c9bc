"""OpenWOP's memory over HTTP: discovery, and the entries of a memoryRef.

A ref or an id may hold whatever its engine likes, slashes included. So the path is cut before it is decoded.
"""

from hashlib import sha256
from typing import Any, Final, get_args
from urllib.parse import unquote_to_bytes

from msgspec import Struct, json
from starlette.types import Receive, Scope

from fieldstone.core.errors import InvalidPayload, NotFound
from fieldstone.profiles.openwop.adapter import MemoryAdapter, Rank
from fieldstone.profiles.openwop.discovery import HostFeatures, discovery
from fieldstone.servers.http.answers import JSON, Answer, Header, done, reply
from fieldstone.servers.http.body import drain, read_json_within
from fieldstone.servers.http.entrance import Visit
from fieldstone.servers.http.query import number_in, optional_number, query_of

MEMORY_PATH: Final = "/v1/memory/"
DISCOVERY_PATH: Final = "/.well-known/openwop"
CACHED: Final[Header] = (b"cache-control", b"public, max-age=300")
MALFORMED: Final = "\0"  # what cannot be decoded names nothing
BESIDE_CONTENT_BYTES: Final = 1_000_000  # tags, ids, and what JSON's escapes add

_RANKS: Final[tuple[Rank, ...]] = get_args(Rank)


class NewMemory(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What is put. The host makes id and createdAt."""

    content: str
    tags: tuple[str, ...] = ()
    expires_at: str | None = None
    node_id: str | None = None
    agent_id: str | None = None


class Forget(Struct, frozen=True, forbid_unknown_fields=True):
    tag: str | None = None
    source: str | None = None


class Forgotten(Struct, frozen=True):
    deleted: int


class Discovery:
    """The document is the same for everybody, and until the server ends."""

    def __init__(self, host: HostFeatures) -> None:
        self._body = json.encode(discovery(host))
        tag = f'"{sha256(self._body).hexdigest()[:32]}"'.encode()
        self._headers = (CACHED, (b"etag", tag), (b"capabilities-etag", tag))
        self._tag = tag

    async def answer(self, scope: Scope, receive: Receive) -> Answer:
        asked = [value for name, value in scope["headers"] if name == b"if-none-match"]
        if any(self._tag in value or value.strip() == b"*" for value in asked):
            return Answer(304, b"", JSON, self._headers)
        return Answer(200, self._body, JSON, self._headers)


class MemoryRoutes:
    def __init__(self, host: HostFeatures) -> None:
        self._limits = host.limits
        self._semantic = host.semantic

    async def list(self, visit: Visit) -> Answer:
        query = query_of(visit.scope)
        rank = _rank(query.get("rank", "recency"))
        if rank == "relevance" and not self._semantic:
            raise InvalidPayload("rank=relevance needs semantic search, which this host does not have.")
        return reply(
            await self._adapter(visit).list(
                _ref(visit),
                limit=number_in(query, "limit", 0),
                tag=query.get("tag"),
                token_budget=optional_number(query, "tokenBudget"),
                rank=rank,
                query=query.get("query"),
                snapshot=query.get("snapshot"),
            )
        )

    async def put(self, visit: Visit) -> Answer:
        most = self._limits.max_entry_bytes * 6 + BESIDE_CONTENT_BYTES
        new = await read_json_within(visit.scope, visit.receive, NewMemory, most_bytes=most, tells=False)
        entry = await self._adapter(visit).put(
            _ref(visit),
            content=new.content,
            tags=new.tags,
            expires_at=new.expires_at,
            node_id=new.node_id,
            agent_id=new.agent_id,
            snapshot=query_of(visit.scope).get("snapshot"),
        )
        return reply(entry, 201)

    async def get(self, visit: Visit) -> Answer:
        snapshot = query_of(visit.scope).get("snapshot")
        entry = await self._adapter(visit).get(_ref(visit), _id(visit), snapshot=snapshot)
        if entry is None:
            raise NotFound("There is no such entry.", suggested_action="List the memory's entries.")
        return reply(entry)

    async def delete(self, visit: Visit) -> Answer:
        await drain(visit.receive)
        if not await self._adapter(visit).delete(_ref(visit), _id(visit)):
            raise NotFound("There is no such entry.", suggested_action="List the memory's entries.")
        return done()

    async def forget(self, visit: Visit) -> Answer:
        most = BESIDE_CONTENT_BYTES
        wanted = await read_json_within(visit.scope, visit.receive, Forget, most_bytes=most, tells=False)
        deleted = await self._adapter(visit).forget(_ref(visit), tag=wanted.tag, source=wanted.source)
        return reply(Forgotten(deleted))

    def _adapter(self, visit: Visit) -> MemoryAdapter:
        return MemoryAdapter(visit.field, visit.caller, self._limits)


def memory_parts(scope: Scope) -> list[str]:
    """The parts of the path behind MEMORY_PATH, each decoded by itself."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return [_decoded(part) for part in raw.partition(b"?")[0].split(b"/")[3:]]


def _decoded(part: bytes) -> str:
    try:
        return unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        return MALFORMED


def _rank(text: str) -> Rank:
    for rank in _RANKS:
        if rank == text:
            return rank
    raise InvalidPayload(f"rank must be one of {', '.join(_RANKS)}.")


def _ref(visit: Visit) -> str:
    ref: str = visit.scope["path_params"]["ref"]
    return ref


def _id(visit: Visit) -> str:
    entry_id: str = visit.scope["path_params"]["id"]
    return entry_id


def memory_params(parts: list[str]) -> dict[str, Any]:
    return dict(zip(("ref", "id"), parts, strict=False))
