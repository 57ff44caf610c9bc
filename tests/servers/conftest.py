"""A server for each test, and its log."""

import io
import logging
from collections.abc import AsyncIterator, Iterator

import pytest
import structlog

from fieldstone.servers.http.logs import configure_logs
from tests.servers.live import Live, live_server


@pytest.fixture
async def live() -> AsyncIterator[Live]:
    async with live_server() as server:
        yield server


@pytest.fixture
async def team(live: Live) -> Live:
    """Two agents: ada and ben."""
    await live.join("ada", "ben")
    return live


@pytest.fixture
def log_lines() -> Iterator[io.StringIO]:
    """What the server logs as JSON, at every level."""
    root, uvicorn = logging.getLogger(), logging.getLogger("uvicorn.error")
    before = root.handlers, root.level, uvicorn.level
    out = io.StringIO()
    configure_logs("debug", "json", out)
    yield out
    root.handlers = before[0]
    root.setLevel(before[1])
    uvicorn.setLevel(before[2])
    structlog.reset_defaults()
