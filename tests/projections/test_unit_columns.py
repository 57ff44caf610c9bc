"""Units column by column say the same as the rows, in every backend."""

from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from fieldstone.backends.memory.store import MemoryStore
from fieldstone.backends.sqlite.store import SqliteStore
from fieldstone.ports.store import Commit, Store
from fieldstone.ports.views import CommitUnit, PutUnit, SetUnitStatus, UnitBatch, UnitRow
from fieldstone.testing import KEY
from fieldstone.testing.rows import draft_row, unit_row

INTEGERS = ("seq", "epoch", "agent", "registration", "session", "task", "committed_seq", "archived_epoch", "echo_of")
WORDS = ("mode", "type", "status")


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    store: Store = MemoryStore(KEY) if request.param == "memory" else SqliteStore.open(tmp_path / "field.db", KEY)
    rows = [
        unit_row(3)._replace(session=7, task=8, echo_of=2),
        unit_row(5, agent=9)._replace(score=None, type="decision, or so", archived_epoch=4),
        draft_row(6),
        draft_row(9)._replace(session=None, task=None, score=0.125),
    ]
    await store.commit(Commit(changes=[PutUnit(row) for row in rows]))
    await store.commit(Commit(changes=[CommitUnit(9, 2**53 - 1, 18, None), SetUnitStatus(3, "contested")]))
    yield store
    await store.close()


def assert_says_the_same(batch: UnitBatch, rows: list[UnitRow]) -> None:
    for name in INTEGERS:
        assert getattr(batch, name).tolist() == [getattr(row, name) or 0 for row in rows]
        assert getattr(batch, name).dtype == np.int64
    for name in WORDS:
        assert list(getattr(batch, name)) == [getattr(row, name) for row in rows]
    np.testing.assert_array_equal(batch.score, np.array([row.score for row in rows], np.float64))


async def test_columns_say_what_the_rows_say(store: Store) -> None:
    rows = list(await store.views.scan_units(after=0, limit=100))
    assert len(rows) == 4
    assert_says_the_same(await store.views.unit_columns(after=0, limit=100), rows)


@pytest.mark.parametrize(("after", "limit"), [(0, 2), (3, 2), (4, 10), (6, 1), (9, 10)])
async def test_columns_begin_after_a_seq_and_end_at_a_limit(store: Store, after: int, limit: int) -> None:
    rows = list(await store.views.scan_units(after=after, limit=limit))
    assert_says_the_same(await store.views.unit_columns(after=after, limit=limit), rows)


async def test_after_the_last_unit_every_column_is_empty(store: Store) -> None:
    assert [len(column) for column in await store.views.unit_columns(after=9, limit=5)] == [0] * len(UnitBatch._fields)
