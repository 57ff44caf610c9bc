"""One field for each transport, opened for a test and closed after it."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from fieldstone.field.options import Options
from fieldstone.testing.world import ManualClock, SeededIds
from tests.protocol.rig import OpenRig, Rig, options
from tests.protocol.ways import WAYS, Place


@pytest.fixture(params=WAYS)
def transport(request: pytest.FixtureRequest) -> str:
    """Every way in; a test that needs fewer says `parametrize("transport", …, indirect=True)`."""
    name: str = request.param
    return name


@pytest.fixture
async def rigs(transport: str, tmp_path: Path) -> AsyncIterator[OpenRig]:
    """Opens fields: `await rigs()`, or with options of their own."""
    async with AsyncExitStack() as stack:
        opened: list[Rig] = []

        async def open_rig(wanted: Options | None = None, **more: Any) -> Rig:
            kind, durable = WAYS[transport]
            path = tmp_path / f"field-{len(opened)}.db" if durable else None
            rig = Rig(kind, Place(path, wanted or options(), ManualClock(), SeededIds(), **more))
            opened.append(rig)
            stack.push_async_callback(rig.close)
            return await rig.open()

        yield open_rig


@pytest.fixture
async def field(rigs: OpenRig) -> Rig:
    """An empty field."""
    return await rigs()


@pytest.fixture
async def team(field: Rig) -> Rig:
    """A field with two researchers, ada and ben, and an analyst, eve."""
    await field.register("ada", "ben")
    await field.register("eve", role="analyst")
    return field
