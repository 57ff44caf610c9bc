"""Servers in a thread of their own, for tests that are not async."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from typing import NamedTuple, TypeVar

import httpx

from fieldstone.servers.http.serve import House, start
from fieldstone.settings import Settings
from fieldstone.wiring import open_house, open_local_field
from tests.servers.auth.tokens import make, with_secret
from tests.servers.houses import entrance_to
from tests.servers.live import message, unit

TIMEOUT_S = 30
AUTHORITIES = (0, 2, 4, 6, 8, 10)

T = TypeVar("T")


class Guarded(NamedTuple):
    """A server with keys, tokens for it that are good and that are not, and ids that there are."""

    url: str
    good: tuple[str, ...]
    bad: tuple[str, ...]
    ids: tuple[str, ...]


def served(db: str = "memory:") -> AbstractContextManager[str]:
    """The URL of an open server. Reads leave nothing in its log, so that whoever counts entries sees writes only."""
    return _in_thread(lambda: _serve_open(Settings(db=db, port=0, log_reads=False)))


def guarded() -> AbstractContextManager[Guarded]:
    """A server with two tenants, an agent `ada` in each, and a key of every authority."""
    return _in_thread(lambda: _serve_guarded(Settings(db="memory:", port=0, embedder="none", log_reads=False)))


@asynccontextmanager
async def _serve_open(settings: Settings) -> AsyncIterator[str]:
    field = await open_local_field(settings)
    serving = await start(*entrance_to(field), settings)
    yield serving.url
    await serving.stop()
    await field.close()


@asynccontextmanager
async def _serve_guarded(settings: Settings) -> AsyncIterator[Guarded]:
    async with open_house(settings) as house:
        first = make(house.keys, "acme", authority=10)  # with a key it is open to nobody from the start
        serving = await start(house.entrance, house.keys, settings)
        async with httpx.AsyncClient(base_url=serving.url) as client:
            yield await _furnished(house, client, first.key)
        await serving.stop()


async def _furnished(house: House, client: httpx.AsyncClient, first: str) -> Guarded:
    good = [first, make(house.keys, "zeta", authority=10).key]
    ids = [await _join_and_record(client, key) for key in good]
    good += [
        make(house.keys, tenant, authority=authority).key for tenant in ("acme", "zeta") for authority in AUTHORITIES
    ]
    spare, revoked = make(house.keys, "acme", authority=2), make(house.keys, "acme", authority=10)
    house.keys.revoke(revoked.id)
    bad = ["", "garbage", "a.b.c", revoked.key, with_secret(first), first[:-1], f"{first}x", "x" * 9_000]
    return Guarded(str(client.base_url), tuple(good), tuple(bad), (*ids, spare.id, "of-acme", "field", "%00", "%2e%2e"))


async def _join_and_record(client: httpx.AsyncClient, key: str) -> str:
    """The id of the unit."""
    headers = {"authorization": f"Bearer {key}"}
    joining = message("REGISTER", {"id": "ada", "role": "researcher"})
    assert (await client.post("/v1/register", json=joining, headers=headers)).status_code == 200
    answer = await client.post("/v1/record", json=message("RECORD", unit("It is cold.")), headers=headers)
    unit_id: str = answer.json()["memory_unit_id"]
    return unit_id


@contextmanager
def _in_thread(opening: Callable[[], AbstractAsyncContextManager[T]]) -> Iterator[T]:
    """What `opening` gives, as long as its event loop runs in a thread beside."""
    ready = threading.Event()
    told: list[T] = []
    loops: list[asyncio.AbstractEventLoop] = []
    stop = asyncio.Event()

    async def run() -> None:
        async with opening() as opened:
            told.append(opened)
            loops.append(asyncio.get_running_loop())
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    assert ready.wait(TIMEOUT_S)
    try:
        yield told[0]
    finally:
        loops[0].call_soon_threadsafe(stop.set)
        thread.join(TIMEOUT_S)
        assert not thread.is_alive()
