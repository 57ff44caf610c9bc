"""The default store keeps what the ports promise."""

from pathlib import Path

import pytest

from fieldstone.backends.sqlite.lease import FileLease
from fieldstone.backends.sqlite.store import SqliteStore
from fieldstone.ports.log import FieldKey
from fieldstone.ports.store import Store
from fieldstone.testing import (
    KEY,
    ContentStoreTests,
    EventLogTests,
    LeaseTests,
    MakeLease,
    OpenStore,
    RepliesTests,
    StoreTests,
    TextIndexTests,
    ViewsTests,
)


@pytest.fixture
def open_store(tmp_path: Path) -> OpenStore:
    def open_it(*, key: FieldKey = KEY, max_bytes: int | None = None) -> Store:
        return SqliteStore(tmp_path / "field.db", key, max_bytes=max_bytes)

    return open_it


@pytest.fixture
def make_lease(tmp_path: Path) -> MakeLease:
    return lambda: FileLease(tmp_path / "field.db")


class TestStore(StoreTests): ...


class TestEventLog(EventLogTests): ...


class TestContentStore(ContentStoreTests): ...


class TestViews(ViewsTests): ...


class TestReplies(RepliesTests): ...


class TestTextIndex(TextIndexTests): ...


class TestLease(LeaseTests): ...
