"""The default store keeps what the ports promise."""

from pathlib import Path
from typing import Final

import apsw
import numpy as np
import pytest
from numpy.typing import NDArray

from fieldstone.backends.sqlite.file import SqliteFile
from fieldstone.backends.sqlite.lease import FileLease
from fieldstone.backends.sqlite.store import SqliteStore, SqliteStores
from fieldstone.ports.log import FieldKey
from fieldstone.ports.store import Store, Stores
from fieldstone.ports.vectors import Quantized, UnknownModel
from fieldstone.testing import (
    KEY,
    ColdStoreTests,
    ColdUnitsTests,
    ContentStoreTests,
    EntriesTests,
    EventLogTests,
    LeaseTests,
    MakeLease,
    MarksTests,
    OpenStore,
    RepliesTests,
    StoreTests,
    TextIndexTests,
    VectorStoreTests,
    ViewsTests,
)
from fieldstone.testing.lease import FIRST
from fieldstone.testing.store import OpenStores, StoresTests

TELLING: Final = np.arange(1, 121, dtype=np.int8).reshape(3, 40)  # bytes that stand nowhere else


@pytest.fixture
def open_store(tmp_path: Path) -> OpenStore:
    def open_it(*, key: FieldKey = KEY, max_bytes: int | None = None) -> Store:
        return SqliteStore.open(tmp_path / "field.db", key, max_bytes=max_bytes)

    return open_it


@pytest.fixture
def open_stores(tmp_path: Path) -> OpenStores:
    def open_them(*, max_bytes: int | None = None) -> Stores:
        lease = FileLease(tmp_path / "field.db")
        lease.acquire(FIRST)
        return SqliteStores(SqliteFile(tmp_path / "field.db", max_bytes=max_bytes), lease)

    return open_them


@pytest.fixture
def make_lease(tmp_path: Path) -> MakeLease:
    return lambda: FileLease(tmp_path / "field.db")


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


class TestVectorStore(VectorStoreTests):
    async def test_nothing_of_an_erased_vector_or_a_dropped_model_is_left_in_the_file(self, tmp_path: Path) -> None:
        store = SqliteStore.open(tmp_path / "field.db", KEY)
        serving = (await store.vectors.begin("old", TELLING.shape[1], state="serving")).number
        preparing = (await store.vectors.begin("new", TELLING.shape[1], state="preparing")).number
        await store.vectors.add(serving, _telling(TELLING))
        await store.vectors.add(preparing, _telling(-TELLING))
        await store.vectors.erase([2])
        await store.vectors.serve(preparing)
        await store.close()
        left = (tmp_path / "field.db").read_bytes()
        kept = [codes.tobytes() in left for codes in (*TELLING, *-TELLING)]
        assert kept == [False, False, False, True, False, True]

    async def test_a_dropped_model_that_a_crash_has_left_is_out_of_sight_and_overwritten_by_the_next_write(
        self, tmp_path: Path
    ) -> None:
        store = SqliteStore.open(tmp_path / "field.db", KEY)
        left = await store.vectors.begin("old", TELLING.shape[1], state="preparing")
        await store.vectors.add(left.number, _telling(TELLING))
        serving = await store.vectors.begin("new", TELLING.shape[1], state="serving")
        await store.close()
        _execute(tmp_path / "field.db", f"UPDATE vector_models SET state = 'dropped' WHERE number = {left.number}")
        again = SqliteStore.open(tmp_path / "field.db", KEY)
        assert await again.vectors.models() == [serving]
        with pytest.raises(UnknownModel):
            await again.vectors.add(left.number, _telling(TELLING))
        await again.vectors.add(serving.number, _telling(-TELLING))
        await again.close()
        assert _execute(tmp_path / "field.db", "SELECT count(*) FROM vector_models") == 1
        assert TELLING[0].tobytes() not in (tmp_path / "field.db").read_bytes()


class TestLease(LeaseTests): ...


def _telling(codes: NDArray[np.int8]) -> Quantized:
    return Quantized(np.arange(1, 4), np.ones(3, np.float32), codes)


def _execute(path: Path, statement: str) -> object:
    connection = apsw.Connection(str(path))
    result = connection.execute(statement).get
    connection.close()
    return result
