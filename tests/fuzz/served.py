"""Servers in a thread of their own, for tests that are not async."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from typing import NamedTuple, TypeVar

import httpx

from fieldstone.profiles.openwop.discovery import HostFeatures
from fieldstone.servers.http.serve import start
from fieldstone.settings import Settings
from fieldstone.wiring import open_house, open_local_field
from tests.servers.auth.tokens import make, with_secret
from tests.servers.houses import entrance_to
from tests.servers.live import message, unit

TIMEOUT_S = 30
AUTHORITIES = (0, 2, 4, 6, 8, 10)

T = TypeVar("T")


class Holder(NamedTuple):
    """A good token, and the agent that speaks with it."""

    token: str
    agent: str


class Guarded(NamedTuple):
    """A server with keys, tokens for it that are good and that are not, and ids that there are."""

    url: str
    good: tuple[Holder, ...]
    bad: tuple[str, ...]
    ids: tuple[str, ...]

    @property
    def operator(self) -> Holder:
        return self.good[-1]  # of the highest authority


def served(db: str = "memory:") -> AbstractContextManager[str]:
    """The URL of an open server. Reads leave nothing in its log, so that whoever counts entries sees writes only."""
    return _in_thread(lambda: _serve_open(Settings(db=db, port=0, log_reads=False)))


def guarded() -> AbstractContextManager[Guarded]:
    """A server in conformance mode with two tenants, and in each a key of every authority and an agent with it."""
    return _in_thread(lambda: _serve_guarded(Settings(db="memory:", port=0, embedder="none", log_reads=False)))


@asynccontextmanager
async def _serve_open(settings: Settings) -> AsyncIterator[str]:
    field = await open_local_field(settings)
    serving = await start(*entrance_to(field), settings, HostFeatures())
    yield serving.url
    await serving.stop()
    await field.close()


@asynccontextmanager
async def _serve_guarded(settings: Settings) -> AsyncIterator[Guarded]:
    async with open_house(settings, conformance=True) as house:
        good = [
            Holder(make(house.keys, tenant, authority=authority).key, f"{tenant}-{authority}")
            for tenant in ("acme", "zeta")
            for authority in AUTHORITIES
        ]
        serving = await start(house.entrance, house.keys, settings, house.host, house.conformance)
        async with httpx.AsyncClient(base_url=serving.url, timeout=TIMEOUT_S) as client:
            ids = [await _join_and_record(client, holder) for holder in good]
        spare, revoked = make(house.keys, "acme", authority=2), make(house.keys, "acme", authority=10)
        house.keys.revoke(revoked.id)
        known = good[-1].token
        bad = ["", "garbage", "a.b.c", revoked.key, with_secret(known), known[:-1], f"{known}x", "x" * 9_000]
        there = (*filter(None, ids), spare.id, "of-acme", "field", "%00", "%2e%2e")
        yield Guarded(serving.url, tuple(good), tuple(bad), there)
        await serving.stop()


async def _join_and_record(client: httpx.AsyncClient, holder: Holder) -> str | None:
    """The id of the unit, if the key is good enough for one."""
    headers = {"authorization": f"Bearer {holder.token}"}
    joining = message("REGISTER", {"id": holder.agent, "role": "researcher"}, agent_id=holder.agent)
    assert (await client.post("/v1/register", json=joining, headers=headers)).status_code == 200
    recording = message("RECORD", unit("It is cold.", mode="draft"), agent_id=holder.agent)
    answer = await client.post("/v1/record", json=recording, headers=headers)
    unit_id: str | None = answer.json().get("memory_unit_id")
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
