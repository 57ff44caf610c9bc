"""A field behind a server, over HTTP."""

import asyncio
import random
import re
import ssl
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, TypeVar
from urllib.parse import quote

import httpx
from msgspec import DecodeError, Struct, json

from fieldstone.audit.verify import Verification
from fieldstone.client.remote_threads import RemoteRecalls, RemoteThreads
from fieldstone.client.streams import StreamClient
from fieldstone.compaction.retention import Policy
from fieldstone.core.conflicts import Conflict
from fieldstone.core.errors import (
    FieldError,
    Forbidden,
    InternalError,
    ShuttingDown,
    UnitNotFound,
    UnsupportedOperation,
)
from fieldstone.core.replies import (
    AgentProfile,
    AttunementOfIds,
    Compacted,
    CompactionPage,
    CompactionProgress,
    FieldStatus,
    GuardPage,
    Lineage,
    Reply,
)
from fieldstone.core.requests import Attune, Compact, Message
from fieldstone.core.units import MemoryUnit
from fieldstone.core.vocabulary import ConflictStatus, FeedKind, Guard
from fieldstone.field.field import TENANT_SCOPE, LogPage
from fieldstone.field.rebuild import Rebuilt
from fieldstone.field.retention import Outcome, PolicyStatus
from fieldstone.field.secrets import ListedSecret, SecretScope
from fieldstone.field.sweep import Swept
from fieldstone.field.transfer import Imported
from fieldstone.planes.context.execution import ContextManager
from fieldstone.planes.context.tools import Tools
from fieldstone.profiles.openwop.feed import PAGE_EVENTS, FeedPage, event_from
from fieldstone.wire.errors import ErrorBody, error_from
from fieldstone.wire.messages import encode_message
from fieldstone.wire.openwop import OpenWopError, error_from_openwop
from fieldstone.wire.operations import OPERATION_ROUTES

TRIES: Final = 4  # the message id makes sending again safe
FIRST_PAUSE_S: Final = 0.1
TIMEOUT: Final = httpx.Timeout(30.0, connect=5.0)
LONG_TIMEOUT: Final = httpx.Timeout(None, connect=5.0)  # what goes over the whole log takes as long as the log is
IN_BACKGROUND: Final = {"prefer": "respond-async"}

_ROUTES: Final = {route.operation: route for route in OPERATION_ROUTES}
_UNIT_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,256}")
T = TypeVar("T")


class Agents(Struct, frozen=True):
    agents: tuple[AgentProfile, ...]


class Conflicts(Struct, frozen=True):
    conflicts: tuple[Conflict, ...]


class Views(Struct, frozen=True):
    views: Rebuilt


class Secrets(Struct, frozen=True):
    secrets: tuple[ListedSecret, ...]


class Begun(Struct, frozen=True):
    compaction_id: str


class Restored(Struct, frozen=True):
    restored: int


class Policies(Struct, frozen=True):
    policies: tuple[Policy, ...]


class Outcomes(Struct, frozen=True):
    policies: tuple[Outcome, ...]


class PolicyStatuses(Struct, frozen=True):
    policies: tuple[PolicyStatus, ...]


class Told(Struct, frozen=True):
    events: tuple[dict[str, Any], ...]
    next: str


class ServerUnreachable(ConnectionError):
    """No server answers at this address."""


class RemoteField:
    def __init__(
        self,
        url: str,
        client: httpx.AsyncClient,
        live: Callable[[], StreamClient] | None = None,
        tools: Callable[[], Tools] | None = None,
    ) -> None:
        """`live` makes the client that follows streams. `tools`: what contexts are worked on with, on this side."""
        self._url = url
        self._client = client
        self._tools = tools
        self.threads: Final = RemoteThreads(self._ask, live or partial(StreamClient, url))

    async def send(self, message: Message) -> Reply:
        route = _ROUTES[message.operation]
        reply = AttunementOfIds if _wants_ids(message) else route.reply
        timeout = LONG_TIMEOUT if isinstance(message.request, Compact) else TIMEOUT
        return await self._ask("POST", route.path, reply, content=_body(message), timeout=timeout)

    async def status(self) -> FieldStatus:
        return await self._ask("GET", "/v1/field/status", FieldStatus)

    async def agents(self) -> Sequence[AgentProfile]:
        return (await self._ask("GET", "/v1/agents", Agents)).agents

    async def conflicts(self, statuses: Sequence[ConflictStatus] | None = None) -> Sequence[Conflict]:
        params = {} if not statuses else {"status": ",".join(statuses)}
        return (await self._ask("GET", "/v1/conflicts", Conflicts, params=params)).conflicts

    async def unit(self, unit_id: str) -> MemoryUnit:
        return await self._ask("GET", _unit_path(unit_id), MemoryUnit)

    async def log(self, *, after: int = 0, limit: int = 100) -> LogPage:
        return await self._ask("GET", "/v1/log", LogPage, params=_page(after, limit))

    async def verify(self) -> Verification:
        return await self._ask("POST", "/v1/verify", Verification, timeout=LONG_TIMEOUT)

    async def rebuild(self) -> Rebuilt:
        return (await self._ask("POST", "/v1/rebuild", Views, timeout=LONG_TIMEOUT)).views

    async def export(self) -> AsyncIterator[bytes]:
        async with self._streamed("/v1/export") as answer:
            async for chunk in answer.aiter_bytes():
                yield chunk

    async def import_lines(self, lines: Iterable[bytes]) -> Imported:
        body = b"".join(line if line.endswith(b"\n") else line + b"\n" for line in lines)
        return await self._ask("POST", "/v1/import", Imported, content=body, timeout=LONG_TIMEOUT)

    async def begin_compaction(self, message: Message) -> CompactionProgress:
        """A server that had nothing to do answers at once, with the result."""
        how = {"content": _body(message), "headers": IN_BACKGROUND, "timeout": LONG_TIMEOUT}
        answer = await self._answer("POST", _ROUTES[message.operation].path, **how)
        if answer.status_code == httpx.codes.ACCEPTED:
            return await self.compaction(self._decoded(answer, Begun).compaction_id)
        return CompactionProgress("", "done", 0, 0, self._decoded(answer, Compacted))

    async def compaction(self, compaction_id: str) -> CompactionProgress:
        return await self._ask("GET", _compaction_path(compaction_id), CompactionProgress)

    async def compactions(self, *, after: int = 0, limit: int = 100) -> CompactionPage:
        return await self._ask("GET", "/v1/compactions", CompactionPage, params=_page(after, limit))

    async def watch_compaction(self, compaction_id: str) -> AsyncIterator[CompactionProgress]:
        async with self._streamed(f"{_compaction_path(compaction_id)}/events") as answer:
            async for line in answer.aiter_lines():
                if line.startswith("data: "):
                    yield json.decode(line.removeprefix("data: "), type=CompactionProgress)

    async def cancel_compaction(self, compaction_id: str) -> CompactionProgress:
        return await self._ask("DELETE", _compaction_path(compaction_id), CompactionProgress)

    async def restore(self, unit_ids: Sequence[str]) -> int:
        return await self._restore({"unit_ids": unit_ids})

    async def restore_compaction(self, compaction_id: str) -> int:
        return await self._restore({"compaction_id": compaction_id})

    async def guard(self, unit_id: str, guard: Guard) -> None:
        await self._answer("PUT", f"{_unit_path(unit_id)}/{guard}")

    async def unguard(self, unit_id: str, guard: Guard) -> None:
        await self._answer("DELETE", f"{_unit_path(unit_id)}/{guard}")

    async def guards(self, guard: Guard | None = None, *, after: int = 0, limit: int = 100) -> GuardPage:
        params = _page(after, limit) | ({} if guard is None else {"guard": guard})
        return await self._ask("GET", "/v1/guards", GuardPage, params=params)

    async def lineage(self, unit_id: str) -> Lineage:
        return await self._ask("GET", f"{_unit_path(unit_id)}/lineage", Lineage)

    async def retention(self) -> Sequence[Policy]:
        return (await self._ask("GET", "/v1/retention", Policies)).policies

    async def set_retention(self, policies: Sequence[Policy]) -> Sequence[Policy]:
        body = json.encode({"policies": policies})
        return (await self._ask("PUT", "/v1/retention", Policies, content=body)).policies

    async def plan_retention(self) -> Sequence[Outcome]:
        return (await self._ask("POST", "/v1/retention/plan", Outcomes, timeout=LONG_TIMEOUT)).policies

    async def apply_retention(self) -> Sequence[Outcome]:
        return (await self._ask("POST", "/v1/retention/apply", Outcomes, timeout=LONG_TIMEOUT)).policies

    async def retention_status(self) -> Sequence[PolicyStatus]:
        return (await self._ask("GET", "/v1/retention/status", PolicyStatuses)).policies

    async def put_secret(self, secret_id: str, value: str, scope: SecretScope = TENANT_SCOPE) -> bool:
        body = json.encode({"value": value, "scope": scope})
        answer = await self._answer("PUT", f"/v1/secrets/{quote(secret_id, safe='')}", content=body)
        return "warning" in answer.headers

    async def secrets(self) -> Sequence[ListedSecret]:
        return (await self._ask("GET", "/v1/secrets", Secrets)).secrets

    async def drop_secret(self, secret_id: str) -> None:
        await self._answer("DELETE", f"/v1/secrets/{quote(secret_id, safe='')}")

    async def events(
        self, *, kinds: Sequence[FeedKind] | None = None, since: str | None = None, limit: int = PAGE_EVENTS
    ) -> FeedPage:
        params = {"limit": str(limit), **({"type": ",".join(kinds)} if kinds else {})}
        told = await self._ask("GET", "/v1/events", Told, params=params | ({"since": since} if since else {}))
        return FeedPage(tuple(map(event_from, told.events)), told.next)

    async def sweep(self) -> Swept:
        return await self._ask("POST", "/v1/sweep", Swept, timeout=LONG_TIMEOUT)

    def context(self, max_tokens: int, *, thread: str | None = None, **options: Any) -> ContextManager:
        """It is worked on here: a generation's messages go to no server."""
        if self._tools is None:
            raise UnsupportedOperation("This connection was made without what a context is worked on with.")
        recalls = None if thread is None else RemoteRecalls(self.threads, thread)
        return ContextManager(max_tokens, self._tools(), recalls=recalls, **options)

    async def close(self) -> None:
        await self.threads.close()
        await self._client.aclose()

    async def _ask(
        self,
        method: str,
        path: str,
        reply: type[T],
        *,
        content: bytes | None = None,
        params: Mapping[str, str] | None = None,
        timeout: httpx.Timeout = TIMEOUT,
    ) -> T:
        return self._decoded(await self._answer(method, path, content=content, params=params, timeout=timeout), reply)

    async def _restore(self, wanted: Mapping[str, Any]) -> int:
        body = json.encode(wanted)
        return (await self._ask("POST", "/v1/restore", Restored, content=body, timeout=LONG_TIMEOUT)).restored

    @asynccontextmanager
    async def _streamed(self, path: str) -> AsyncIterator[httpx.Response]:
        """An answer that goes on for as long as there is something to tell."""
        try:
            async with self._client.stream("GET", path, timeout=LONG_TIMEOUT) as answer:
                if answer.status_code != httpx.codes.OK:
                    raise _error(answer.status_code, await answer.aread())
                yield answer
        except httpx.TransportError as error:
            raise ServerUnreachable(f"{self._url} broke off: {str(error) or type(error).__name__}.") from error

    def _decoded(self, answer: httpx.Response, reply: type[T]) -> T:
        try:
            return json.decode(answer.content, type=reply)
        except DecodeError as error:
            raise InternalError(f"{self._url} answered with something that is not a Field's.") from error

    async def _answer(self, method: str, path: str, **how: Any) -> httpx.Response:
        answer = await self._try(method, path, **{"timeout": TIMEOUT, **how})
        if answer.status_code >= httpx.codes.BAD_REQUEST:
            raise _error(answer.status_code, answer.content)
        return answer

    async def _try(self, method: str, path: str, **how: Any) -> httpx.Response:
        """Ask again where the server was not reached or is just going away."""
        for attempt in range(TRIES):
            last = attempt == TRIES - 1
            try:
                answer = await self._client.request(method, path, **how)
                if answer.status_code != httpx.codes.SERVICE_UNAVAILABLE or last:
                    return answer
            except httpx.TransportError as error:
                if last:
                    raise ServerUnreachable(
                        f"{self._url} does not answer: {str(error) or type(error).__name__}. "
                        "Is `fieldstone serve` running there?"
                    ) from error
            await asyncio.sleep(FIRST_PAUSE_S * 2**attempt * random.uniform(0.5, 1.0))
        raise ShuttingDown


async def connect(
    url: str, *, key: str | None = None, ca_file: str | None = None, tools: Callable[[], Tools] | None = None
) -> RemoteField:
    """Connect, and see that a field is there."""
    headers = {"content-type": "application/json"}
    if key is not None:
        headers["authorization"] = f"Bearer {key}"
    verify = ssl.create_default_context(cafile=ca_file) if ca_file is not None else True
    client = httpx.AsyncClient(base_url=url.rstrip("/"), headers=headers, verify=verify)
    remote = RemoteField(url, client, partial(StreamClient, url, key=key, ca_file=ca_file), tools)
    try:
        await remote.status()
    except Forbidden:
        return remote  # a key for audits sees no status: that it was told so is sign enough
    except BaseException:  # why: whatever it was, the connection ends
        await client.aclose()
        raise
    return remote


def _body(message: Message) -> bytes:
    return encode_message(message, message.id or f"msg-{uuid.uuid4().hex}")


def _page(after: int, limit: int) -> dict[str, str]:
    return {"after": str(after), "limit": str(limit)}


def _unit_path(unit_id: str) -> str:
    if not _UNIT_ID.fullmatch(unit_id):
        raise UnitNotFound  # no field makes such an id, and no address could carry it
    return f"/v1/units/{unit_id}"


def _compaction_path(compaction_id: str) -> str:
    return f"/v1/compactions/{quote(compaction_id, safe='')}"


def _wants_ids(message: Message) -> bool:
    return isinstance(message.request, Attune) and message.request.format == "ids_only"


def _error(status: int, body: bytes) -> FieldError:
    try:
        return error_from(json.decode(body, type=ErrorBody), status)
    except DecodeError:
        pass
    try:
        return error_from_openwop(json.decode(body, type=OpenWopError), status)
    except DecodeError:
        return InternalError(f"the server answered {status} with a body that is not the Field's.")
