"""Vectors of archived units in SQLite's cold file: nothing erased is left there, and nothing foreign or damaged is
read."""

from pathlib import Path
from typing import Any, Final

import apsw
import numpy as np
import pytest

from fieldstone.backends.sqlite.cold import cold_path
from fieldstone.backends.sqlite.store import SqliteStore
from fieldstone.core.errors import StorageFull
from fieldstone.ports.cold import ForeignColdStore
from fieldstone.ports.vectors import Quantized
from fieldstone.testing import KEY
from tests.faults.disk import Blow, faulty_disk

DIMENSION: Final = 64
UNITS: Final = 500
ERASED: Final = [seq for seq in range(1, UNITS + 1) if seq % 5]
WINDOW: Final = slice(1_000, 1_024)  # in the middle of a packed block


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "field.db"


def noise(count: int = UNITS) -> Quantized:
    chance = np.random.default_rng(5)
    codes = np.clip(chance.normal(0, 30, (count, DIMENSION)), -127, 127).astype(np.int8)  # as models make them
    return Quantized(np.arange(1, count + 1), chance.random(count).astype(np.float32), codes)


async def _with_cold(path: Path, count: int = UNITS) -> tuple[SqliteStore, int]:
    store = SqliteStore.open(path, KEY)
    model = (await store.vectors.begin("model", DIMENSION, state="serving")).number
    await store.vectors.add(model, noise(count), cold=True)
    return store, model


async def _seqs(store: SqliteStore, model: int, *, cold: bool) -> list[int]:
    return [seq async for piece in store.vectors.scan(model, cold=cold) for seq in piece.seqs.tolist()]


async def test_nothing_of_an_erased_vector_is_left_in_any_file_after_scouring(path: Path) -> None:
    store, _ = await _with_cold(path)
    packed = [codes[WINDOW] for (codes,) in _all(cold_path(path), "SELECT codes FROM vectors")]
    assert all(window in _bytes_of(path) for window in packed)
    await store.vectors.erase(ERASED)
    assert await store.scour()
    left = _bytes_of(path)
    assert not any(window in left for window in packed)
    told = [seq for seq, scale in zip(noise().seqs.tolist(), noise().scales, strict=True) if scale.tobytes() in left]
    assert told == [seq for seq in range(1, UNITS + 1) if seq not in ERASED]
    await store.close()


async def test_nothing_of_a_model_that_another_one_replaced_is_left_in_any_file_after_scouring(path: Path) -> None:
    store, _ = await _with_cold(path)
    packed = [codes[WINDOW] for (codes,) in _all(cold_path(path), "SELECT codes FROM vectors")]
    new = await store.vectors.begin("new", DIMENSION, state="preparing")
    await store.vectors.serve(new.number)
    assert await store.scour()
    assert not any(window in _bytes_of(path) for window in packed)
    assert _all(cold_path(path), "SELECT * FROM vector_models") == []
    await store.close()


async def test_a_dropped_model_that_a_crash_has_left_is_overwritten_by_the_next_write(path: Path) -> None:
    store, left = await _with_cold(path, 3)
    serving = await store.vectors.begin("new", DIMENSION, state="preparing")
    await store.close()
    _all(path, f"DELETE FROM vector_models WHERE number = {left}")
    again = SqliteStore.open(path, KEY)
    await again.vectors.add(serving.number, noise(2), cold=True)
    await again.close()
    assert _all(cold_path(path), "SELECT number FROM vector_models") == [(serving.number,)]
    assert _all(cold_path(path), "SELECT position >> 32 FROM vectors") == [(serving.number,)]


async def test_what_a_crash_has_left_of_a_dropped_model_is_erased_with_its_unit(path: Path) -> None:
    store, left = await _with_cold(path, 3)
    await store.close()
    _all(path, f"DELETE FROM vector_models WHERE number = {left}")
    again = SqliteStore.open(path, KEY)
    await again.vectors.erase([1, 2, 3])
    await again.close()
    assert _all(cold_path(path), "SELECT * FROM vectors") == []


async def test_cold_vectors_of_another_store_are_neither_read_nor_written_over(path: Path) -> None:
    store, model = await _with_cold(path, 3)
    await store.close()
    _remove(path)
    again = SqliteStore.open(path, KEY)
    assert (await again.vectors.begin("new", DIMENSION, state="serving")).number == model
    with pytest.raises(ForeignColdStore):
        await again.vectors.cold_seqs(model)
    with pytest.raises(ForeignColdStore):
        await again.vectors.add(model, noise(1), cold=True)
    await again.close()
    assert len(_all(cold_path(path), "SELECT * FROM vectors")) == 1


@pytest.mark.parametrize("damage", ["codes = x''", "scales = x'00'", "members = x'0000000000000080'"])
async def test_a_damaged_block_is_told_and_never_read_as_something_else(path: Path, damage: str) -> None:
    store, model = await _with_cold(path, 3)
    await store.close()
    _all(cold_path(path), f"UPDATE vectors SET {damage}")
    again = SqliteStore.open(path, KEY)
    with pytest.raises(apsw.CorruptError):
        await again.vectors.warm([1])
    with pytest.raises(apsw.CorruptError):
        await _seqs(again, model, cold=True)
    await again.close()


@pytest.mark.parametrize("failing", ["field.db-wal", "field.db-cold-wal"])
@pytest.mark.parametrize("is_cold", [True, False])
async def test_a_disk_that_fails_while_vectors_move_loses_none_of_them(
    path: Path, failing: str, *, is_cold: bool
) -> None:
    with faulty_disk(lambda name: name.endswith(failing)) as disk:
        store = SqliteStore.open(path, KEY)
        model = (await store.vectors.begin("model", DIMENSION, state="serving")).number
        await store.vectors.add(model, noise(3), cold=is_cold)
        move = store.vectors.warm if is_cold else store.vectors.cool
        await store.vectors.add(model, noise(5), cold=not is_cold)  # both files are there
        disk.arm(Blow(1, "full", lasting=True))
        with pytest.raises(StorageFull):
            await move([1, 2, 3])
        held = set(await _seqs(store, model, cold=True)) | set(await _seqs(store, model, cold=False))
        assert held == {1, 2, 3, 4, 5}
        disk.heal()
        await move([1, 2, 3])
        assert not {1, 2, 3} & set(await _seqs(store, model, cold=is_cold))
        assert {1, 2, 3} <= set(await _seqs(store, model, cold=not is_cold))
        await store.close()


async def test_a_unit_that_was_never_archived_costs_no_write_to_the_cold_file_when_it_is_erased(path: Path) -> None:
    with faulty_disk(lambda name: "-cold" in name) as disk:
        store, model = await _with_cold(path, 3)
        await store.vectors.add(model, Quantized(np.asarray([1_000]), *noise(1)[1:]))
        disk.operations.clear()
        await store.vectors.erase([1_000])
        assert not disk.operations
        await store.close()


def _remove(path: Path) -> None:
    path.unlink()


def _bytes_of(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(path.parent.iterdir()))


def _all(path: Path, statement: str) -> list[Any]:
    connection = apsw.Connection(str(path))
    rows = connection.execute(statement).fetchall()
    connection.close()
    return rows
