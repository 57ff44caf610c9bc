"""How a backend's test hands its stores to the shared classes."""

from collections.abc import AsyncIterator
from typing import Final, Protocol

import pytest

from fieldstone.ports.log import FieldKey
from fieldstone.ports.store import Store

KEY: Final = FieldKey("acme", "research")
OTHER_KEY: Final = FieldKey("acme", "sales")


class OpenStore(Protocol):
    """Within one test all stores lie in one place: a durable one that is closed and opened again has what it had."""

    def __call__(self, *, key: FieldKey = KEY, max_bytes: int | None = None) -> Store: ...


class StoreCase:
    """Give a fixture `open_store`; the tests get an open `store`."""

    @pytest.fixture
    async def store(self, open_store: OpenStore) -> AsyncIterator[Store]:
        store = open_store()
        yield store
        await store.close()
