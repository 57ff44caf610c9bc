"""The ways into a field, for tests: each takes the bytes of an envelope and gives HTTP status and body.

A new transport is a class with the members of `Way`, and its line in `WAYS`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import httpx
from msgspec import json, to_builtins

from fieldstone.backends.memory.store import MemoryStore, Room
from fieldstone.backends.memory.vault import MemoryVault
from fieldstone.backends.models.static import StaticEmbedder
from fieldstone.backends.sqlite.store import SqliteStore
from fieldstone.backends.tokens import Cl100kCounter
from fieldstone.client.door import Door
from fieldstone.client.remote import RemoteField
from fieldstone.core.errors import FieldError, InternalError
from fieldstone.field.field import LocalField
from fieldstone.field.opening import open_local
from fieldstone.field.options import Models, Options
from fieldstone.field.secrets import Secrets
from fieldstone.ports.log import FieldKey
from fieldstone.ports.store import Store
from fieldstone.redact import shared_harness
from fieldstone.servers.http.app import HttpApp
from fieldstone.servers.http.gate import Gate
from fieldstone.servers.http.serve import Serving, start
from fieldstone.settings import Settings
from fieldstone.testing import WordCounter
from fieldstone.testing.world import ManualClock, SeededIds
from fieldstone.wire.errors import error_body, http_status
from fieldstone.wire.messages import BadMessage, decode_message
from tests.servers.houses import entrance_to

JSON: Final = {"content-type": "application/json"}
KEY: Final = FieldKey("local", "main")
COUNTER: Final = Cl100kCounter()  # loaded once, with the first count


def words_only() -> Models:
    """What most tests need: nothing that has to be loaded."""
    return Models(WordCounter())


def real_models() -> Models:
    """What a field has by default: its own embedder, and tokens as models count them."""
    return Models(COUNTER, StaticEmbedder())


class Answer(NamedTuple):
    status: int
    body: dict[str, Any]


class Place(NamedTuple):
    """Where a field lies, and by which rules it is opened."""

    path: Path | None  # None: in memory
    options: Options
    clock: ManualClock
    ids: SeededIds  # the same requests get the same ids, whatever the transport
    max_bytes: int | None = None
    wrap: Callable[[Store], Store] | None = None  # something around the store, such as a fault
    models: Callable[[], Models] = words_only  # made anew whenever the field is opened


class Way(Protocol):
    @property
    def door(self) -> Door: ...

    async def open(self, place: Place) -> None: ...

    async def post(self, body: bytes) -> Answer: ...

    async def close(self) -> None: ...


class Native:
    """The field in this process, spoken to as a transport does: decode, send, answer or error body."""

    def __init__(self) -> None:
        self._field: LocalField | None = None

    @property
    def door(self) -> LocalField:
        assert self._field is not None
        return self._field

    async def open(self, place: Place) -> None:
        self._field = await open_field_at(place)

    async def post(self, body: bytes) -> Answer:
        try:
            message = decode_message(body)
        except BadMessage as bad:
            return refusal(bad.error, bad.operation)
        try:
            reply = await self.door.send(message)
        except FieldError as refused:
            return refusal(refused, message.operation)
        return Answer(200, json.decode(json.encode(reply)))

    async def close(self) -> None:
        await self.door.close()


class Http:
    """The HTTP application without a socket before it. Arrays go to a route that takes none."""

    def __init__(self) -> None:
        self._field: LocalField | None = None
        self._remote: RemoteField | None = None
        self._client: httpx.AsyncClient | None = None

    @property
    def door(self) -> RemoteField:
        assert self._remote is not None
        return self._remote

    async def open(self, place: Place) -> None:
        self._field = await open_field_at(place)
        self._client = await self._connect(self._field)
        self._remote = RemoteField(str(self._client.base_url), self._client)

    async def post(self, body: bytes) -> Answer:
        path = "/v1/record" if body.startswith(b"[") else "/v1/messages"
        answer = await self.request("POST", path, content=body)
        return Answer(answer.status_code, answer.json())

    async def request(self, method: str, path: str, **how: Any) -> httpx.Response:
        assert self._client is not None
        return await self._client.request(method, path, **how)

    async def close(self) -> None:
        assert self._field is not None
        await self.door.close()
        await self._field.close()

    async def _connect(self, field: LocalField) -> httpx.AsyncClient:
        entrance, keys = entrance_to(field)
        app = HttpApp(entrance, keys, Gate("127.0.0.1"), max_body_bytes=Settings().max_body_bytes)
        return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1", headers=JSON)


class Socket(Http):
    """A server on loopback, spoken to through a socket. It takes a moment to stop, so few tests use it."""

    def __init__(self) -> None:
        super().__init__()
        self._serving: Serving | None = None

    @property
    def serving(self) -> Serving:
        assert self._serving is not None
        return self._serving

    async def close(self) -> None:
        await self.door.close()
        await self.serving.stop()
        await super().close()

    async def _connect(self, field: LocalField) -> httpx.AsyncClient:
        self._serving = await start(*entrance_to(field), Settings(port=0))
        return httpx.AsyncClient(base_url=self._serving.url, headers=JSON)


def refusal(error: FieldError, operation: str | None) -> Answer:
    assert not isinstance(error, InternalError)
    return Answer(http_status(error), to_builtins(error_body(error, operation)))


async def open_field_at(place: Place) -> LocalField:
    store: Store
    if place.path is None:
        store = MemoryStore(KEY, room=Room(place.max_bytes))
    else:
        store = SqliteStore.open(place.path, KEY, max_bytes=place.max_bytes)
    if place.wrap is not None:
        store = place.wrap(store)
    return await open_local(
        store,
        clock=place.clock,
        ids=place.ids,
        harness=shared_harness,
        secrets=Secrets(MemoryVault()),
        models=place.models(),
        options=place.options,
    )


def on_disk(folder: Path) -> bytes:
    """Every byte of every file there."""
    return b"".join(file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file())


# Name of the transport → how it is spoken to, and whether its field lies on disk.
WAYS: Final[dict[str, tuple[type[Way], bool]]] = {
    "memory": (Native, False),
    "sqlite": (Native, True),
    "http": (Http, True),
}
DURABLE: Final = tuple(name for name, (_, on_disk) in WAYS.items() if on_disk)
