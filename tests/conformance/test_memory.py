"""The reference store keeps what the ports promise."""

import pytest

from fieldstone.backends.memory.store import MemoryStore
from fieldstone.ports.log import FieldKey
from fieldstone.ports.store import Store
from fieldstone.testing import (
    KEY,
    ContentStoreTests,
    EventLogTests,
    MarksTests,
    OpenStore,
    RepliesTests,
    StoreTests,
    TextIndexTests,
    VectorStoreTests,
    ViewsTests,
)


@pytest.fixture
def open_store() -> OpenStore:
    def open_it(*, key: FieldKey = KEY, max_bytes: int | None = None) -> Store:
        return MemoryStore(key, max_bytes=max_bytes)

    return open_it


class TestStore(StoreTests): ...


class TestEventLog(EventLogTests): ...


class TestContentStore(ContentStoreTests): ...


class TestViews(ViewsTests): ...


class TestReplies(RepliesTests): ...


class TestTextIndex(TextIndexTests): ...


class TestMarks(MarksTests): ...


class TestVectorStore(VectorStoreTests): ...
