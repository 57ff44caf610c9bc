"""The sound store that these tests damage copies of."""

import asyncio
from pathlib import Path

import pytest

from tests.faults.stores import make_small_field


@pytest.fixture(scope="session")
def sound_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "field.db"
    asyncio.run(make_small_field(path))
    return path
