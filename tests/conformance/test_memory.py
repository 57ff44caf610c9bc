"""The reference store keeps what the ports promise."""

import pytest

from fieldstone.backends.memory.store import MemoryStore, MemoryStores, Room
from fieldstone.ports.log import FieldKey
from fieldstone.ports.store import Store, Stores
from fieldstone.testing import (
    KEY,
    ColdStoreTests,
    ColdUnitsTests,
    ContentStoreTests,
    EntriesTests,
    EventLogTests,
    MarksTests,
    OpenStore,
    RepliesTests,
    StoreTests,
    TextIndexTests,
    VectorStoreTests,
    ViewsTests,
)
from fieldstone.testing.store import OpenStores, StoresTests


@pytest.fixture
def open_store() -> OpenStore:
    def open_it(*, key: FieldKey = KEY, max_bytes: int | None = None) -> Store:
        return MemoryStore(key, room=Room(max_bytes))

    return open_it


@pytest.fixture
def open_stores() -> OpenStores:
    def open_them(*, max_bytes: int | None = None) -> Stores:
        return MemoryStores(max_bytes=max_bytes)

    return open_them


class TestStore(StoreTests): ...


class TestStores(StoresTests): ...


class TestEventLog(EventLogTests): ...


class TestContentStore(ContentStoreTests): ...


class TestColdStore(ColdStoreTests): ...


class TestColdUnits(ColdUnitsTests): ...


class TestViews(ViewsTests): ...


class TestEntries(EntriesTests): ...


class TestReplies(RepliesTests): ...


class TestTextIndex(TextIndexTests): ...


class TestMarks(MarksTests): ...


class TestVectorStore(VectorStoreTests): ...
