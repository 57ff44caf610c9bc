"""One API, three addresses: a field in memory, in a file, and behind a server."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fieldstone import wiring
from fieldstone.backends.system import SystemClock
from fieldstone.client.field import Field
from fieldstone.servers.http.serve import start
from fieldstone.settings import Settings
from tests.servers.houses import entrance_to


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[str]:
    """The URL of a server that holds served.db."""
    settings = Settings(db=str(tmp_path / "served.db"), port=0)
    field = await wiring.open_local_field(settings, program="fieldstone serve")
    serving = await start(*entrance_to(field), settings)
    field.announce(wiring.holder(SystemClock(), "fieldstone serve", serving.url))
    try:
        yield serving.url
    finally:
        await serving.stop()
        await field.close()


@pytest.fixture(params=["memory", "file", "server"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "memory":
        return "memory:"
    if request.param == "file":
        return str(tmp_path / "team.db")
    url: str = request.getfixturevalue("server")
    return url


@pytest.fixture
async def field(address: str) -> AsyncIterator[Field]:
    async with wiring.open_field(address) as opened:
        yield opened
