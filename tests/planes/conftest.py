"""One test, every backend of the planes."""

from collections.abc import AsyncIterator

import pytest

from tests.planes.scene import BACKENDS, Scene, a_scene


@pytest.fixture(params=BACKENDS)
async def scene(request: pytest.FixtureRequest) -> AsyncIterator[Scene]:
    async with a_scene(request.param) as scene:
        yield scene
