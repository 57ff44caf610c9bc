"""Vectors reach the store behind the log: in batches, once, and also after it had no room for a while."""

import asyncio
from typing import Literal

import numpy as np
import pytest

from fieldstone.backends.memory.vectors import MemoryVectors
from fieldstone.core.errors import StorageFull
from fieldstone.ports.vectors import Quantized
from fieldstone.projections import vector_keeper
from fieldstone.projections.vector_keeper import VectorKeeper
from tests.scripted import eventually

DIMENSION = 4
LONG_MS = 3_600_000
FIRST_ARCHIVED = 120


class Vectors(MemoryVectors):
    """It takes nothing while it is `full`, or while it is not `opened`; `adds` are the sizes of what it was given."""

    def __init__(self) -> None:
        super().__init__(lambda size: None)
        self.full: Exception | None = None
        self.opened = asyncio.Event()
        self.opened.set()
        self.adds: list[int] = []

    async def add(self, model: int, batch: Quantized, *, cold: bool = False) -> None:
        self.adds.append(len(batch.seqs))
        await self.opened.wait()
        if self.full is not None:
            raise self.full
        await super().add(model, batch, cold=cold)


@pytest.fixture
def store() -> Vectors:
    return Vectors()


@pytest.fixture
async def keeper(store: Vectors, monkeypatch: pytest.MonkeyPatch) -> VectorKeeper:
    """One that writes when it is told to, or when it has ten."""
    monkeypatch.setattr(vector_keeper, "IDLE_MS", LONG_MS)
    monkeypatch.setattr(vector_keeper, "RETRY_MS", LONG_MS)
    monkeypatch.setattr(vector_keeper, "BATCH_VECTORS", 10)
    model = await store.begin("model", DIMENSION, state="serving")
    return VectorKeeper(store, model.number, lambda seqs: seqs >= FIRST_ARCHIVED)


def batch(*seqs: int) -> Quantized:
    rows = np.ones((len(seqs), DIMENSION), np.int8) * np.asarray(seqs, np.int8)[:, np.newaxis]
    return Quantized(np.asarray(seqs, np.int64), np.ones(len(seqs), np.float32), rows)


async def kept(store: Vectors) -> list[int]:
    return [seq async for part in store.scan(1) for seq in part.seqs.tolist()]


async def test_few_vectors_wait_and_many_are_written_together(store: Vectors, keeper: VectorKeeper) -> None:
    for seq in range(1, 10):
        keeper.keep(batch(seq))
    assert store.adds == []
    keeper.keep(batch(10))
    await keeper.flush()
    assert store.adds == [10]
    assert await kept(store) == list(range(1, 11))


async def test_few_vectors_are_written_after_a_while(
    store: Vectors, keeper: VectorKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_keeper, "IDLE_MS", 0)
    keeper.keep(batch(1))

    async def written() -> bool:
        return await kept(store) == [1]

    await eventually(written)


async def test_what_comes_while_a_batch_is_written_is_written_next(store: Vectors, keeper: VectorKeeper) -> None:
    store.opened.clear()
    keeper.keep(batch(*range(1, 11)))
    flushing = asyncio.create_task(keeper.flush())

    async def under_way() -> bool:
        return bool(store.adds)

    await eventually(under_way)
    keeper.keep(batch(11))
    store.opened.set()
    await flushing
    assert store.adds == [10, 1]
    assert await kept(store) == list(range(1, 12))


@pytest.mark.parametrize("error", [StorageFull(), OSError("the disk is gone")], ids=["full", "broken"])
async def test_what_the_store_would_not_take_is_kept_and_given_again(
    store: Vectors, keeper: VectorKeeper, error: Exception
) -> None:
    store.full = error
    keeper.keep(batch(1, 2))
    await keeper.flush()
    assert await kept(store) == []
    store.full = None
    await keeper.flush()
    assert await kept(store) == [1, 2]


async def test_a_store_that_had_no_room_is_not_asked_for_every_batch(store: Vectors, keeper: VectorKeeper) -> None:
    store.full = StorageFull()
    keeper.keep(batch(1))
    await keeper.flush()
    for seq in range(2, 40):
        keeper.keep(batch(seq))
        await asyncio.sleep(0)
    assert store.adds == [1]


async def test_a_store_that_has_room_again_is_asked_by_itself(
    store: Vectors, keeper: VectorKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_keeper, "RETRY_MS", 0)
    store.full = StorageFull()
    keeper.keep(batch(1))
    await keeper.flush()
    store.full = None

    async def written() -> bool:
        return await kept(store) == [1]

    await eventually(written)


async def test_a_store_without_room_does_not_fill_the_memory(
    store: Vectors, keeper: VectorKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_keeper, "MOST_WAITING", 20)
    store.full = StorageFull()
    for first in range(1, 100, 5):
        keeper.keep(batch(*range(first, first + 5)))
        await keeper.flush()
    store.full = None
    await keeper.flush()
    assert await kept(store) == list(range(81, 101)), "the newest are kept"


async def test_vectors_of_a_model_that_was_dropped_are_of_no_use(store: Vectors, keeper: VectorKeeper) -> None:
    await store.drop(1)
    keeper.keep(batch(1))
    await keeper.flush()
    await keeper.flush()
    assert store.adds == [1], "it is not tried again"


async def test_closing_writes_what_waits_and_takes_no_more(store: Vectors, keeper: VectorKeeper) -> None:
    keeper.keep(batch(1))
    await keeper.close()
    assert await kept(store) == [1]
    keeper.keep(batch(2))
    await keeper.flush()
    assert await kept(store) == [1]


async def test_a_full_store_does_not_hold_up_closing(store: Vectors, keeper: VectorKeeper) -> None:
    store.full = StorageFull()
    keeper.keep(batch(1))
    await keeper.close()
    assert store.adds == [1]


async def test_a_vector_that_comes_just_when_the_last_batch_is_written_is_written_too(
    store: Vectors, keeper: VectorKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_keeper, "IDLE_MS", 0)
    taken = store.opened

    class Late(asyncio.Event):
        async def wait(self) -> Literal[True]:
            asyncio.get_running_loop().call_soon(keeper.keep, batch(2))  # after the write, before anyone knows of it
            store.opened = taken
            return True

    store.opened = Late()
    keeper.keep(batch(1))

    async def written() -> bool:
        return await kept(store) == [1, 2]

    await eventually(written)


async def test_the_vectors_of_archived_units_are_written_to_cold_storage(store: Vectors, keeper: VectorKeeper) -> None:
    keeper.keep(batch(1, FIRST_ARCHIVED, 2))
    assert keeper.holds_any([7, 2])
    assert not keeper.holds_any([7, 8])
    await keeper.flush()
    assert not keeper.holds_any([2])
    assert await kept(store) == [1, 2]
    assert (await store.cold_seqs(1)).tolist() == [FIRST_ARCHIVED]
