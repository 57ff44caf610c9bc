"""A server in a thread of its own, for tests that are not async."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from fieldstone.servers.http.serve import start
from fieldstone.settings import Settings
from fieldstone.wiring import open_local_field
from tests.servers.houses import entrance_to

TIMEOUT_S = 30


@contextmanager
def served(db: str = "memory:") -> Iterator[str]:
    """Its URL. Reads leave nothing in its log, so that whoever counts entries sees writes only."""
    ready = threading.Event()
    told: list[str] = []
    loops: list[asyncio.AbstractEventLoop] = []
    stop = asyncio.Event()

    async def serve() -> None:
        settings = Settings(db=db, port=0, log_reads=False)
        field = await open_local_field(settings)
        serving = await start(*entrance_to(field), settings)
        told.append(serving.url)
        loops.append(asyncio.get_running_loop())
        ready.set()
        await stop.wait()
        await serving.stop()
        await field.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(TIMEOUT_S)
    try:
        yield told[0]
    finally:
        loops[0].call_soon_threadsafe(stop.set)
        thread.join(TIMEOUT_S)
        assert not thread.is_alive()
