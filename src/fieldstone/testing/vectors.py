"""What a store of vectors promises: a unit has the last vector that it was given, of each model, until it is erased."""

from collections.abc import AsyncIterator, Sequence
from typing import Final, get_args

import numpy as np
import pytest

from fieldstone.core.errors import StorageFull
from fieldstone.ports.store import Commit, Store
from fieldstone.ports.vectors import ModelState, Quantized, StoredModel, UnknownModel, VectorStore
from fieldstone.ports.views import Change, PutUnit
from fieldstone.testing.opening import OTHER_KEY, OpenStore, StoreCase
from fieldstone.testing.rows import entries, unit_row

DIMENSION: Final = 5  # nothing that divides the size of a block
SMALL_BYTES: Final = 512 * 1024
MANY: Final = 1_000  # more than fit into one block, or a few
SPREAD_SEQS: Final = (1, 2, 63, 64, 65, 127, 128, 1_000, 70_000, 2**32 - 1)


class VectorStoreTests(StoreCase):
    async def test_a_field_has_no_model_at_first(self, store: Store) -> None:
        assert await store.vectors.models() == []

    async def test_models_are_told_with_name_dimension_and_state(self, store: Store) -> None:
        first = await store.vectors.begin("static", 256, state="serving")
        second = await store.vectors.begin("onnx", 384, state="preparing")
        assert first == StoredModel(first.number, "static", 256, "serving")
        assert await store.vectors.models() == [first, second]

    @pytest.mark.parametrize("state", get_args(ModelState))
    async def test_a_second_model_in_the_same_state_is_refused(self, store: Store, state: ModelState) -> None:
        await store.vectors.begin("old", DIMENSION, state="serving")
        await store.vectors.begin("new", DIMENSION, state="preparing")
        before = await store.vectors.models()
        with pytest.raises(ValueError, match=f"a {state} model already"):
            await store.vectors.begin("one too many", DIMENSION, state=state)
        assert await store.vectors.models() == before

    async def test_a_number_is_never_given_twice(self, store: Store) -> None:
        numbers = []
        for _ in range(3):
            model = await store.vectors.begin("static", DIMENSION, state="preparing")
            numbers.append(model.number)
            await store.vectors.drop(model.number)
        assert numbers == sorted(set(numbers))

    async def test_vectors_come_back_by_seq_as_they_were_given(self, store: Store) -> None:
        model = await _begin(store)
        batch = _batch(SPREAD_SEQS)
        await store.vectors.add(model, _picked(batch, [3, 9, 0, 7]))
        await store.vectors.add(model, _picked(batch, [1, 2, 8, 6, 5, 4]))
        _assert_same(await _all(store.vectors, model), batch)

    async def test_many_vectors_come_back_whether_they_came_at_once_or_one_by_one(self, store: Store) -> None:
        model = await _begin(store)
        batch = _batch(range(1, MANY + 1))
        await store.vectors.add(model, _picked(batch, slice(100, None)))
        for at in range(100):
            await store.vectors.add(model, _picked(batch, [at]))
        _assert_same(await _all(store.vectors, model), batch)

    async def test_an_empty_batch_changes_nothing(self, store: Store) -> None:
        model = await _begin(store)
        await store.vectors.add(model, _batch(()))
        assert [piece async for piece in store.vectors.scan(model)] == []

    async def test_the_last_vector_that_a_unit_was_given_stays(self, store: Store) -> None:
        model = await _begin(store)
        await store.vectors.add(model, _batch((1, 2, 3)))
        again = _batch((2, 4, 2), salt=1)
        await store.vectors.add(model, again)
        _assert_same(
            await _all(store.vectors, model),
            _joined(_batch((1,)), _picked(again, [2]), _batch((3,)), _picked(again, [1])),
        )

    async def test_what_is_given_may_be_written_over_afterwards(self, store: Store) -> None:
        model = await _begin(store)
        batch = _batch((1, 2))
        await store.vectors.add(model, batch)
        batch.codes[:] = 0
        batch.scales[:] = 0
        _assert_same(await _all(store.vectors, model), _batch((1, 2)))

    async def test_vectors_of_another_dimension_are_refused_and_leave_nothing(self, store: Store) -> None:
        model = await _begin(store)
        wrong = _batch((1, 2))._replace(codes=np.zeros((2, DIMENSION + 1), np.int8))
        with pytest.raises(ValueError, match="dimensions"):
            await store.vectors.add(model, wrong)
        assert [piece async for piece in store.vectors.scan(model)] == []

    async def test_the_preparing_model_takes_the_place_of_the_serving_one(self, store: Store) -> None:
        old = await _begin(store)
        await store.vectors.add(old, _batch(range(1, MANY + 1)))
        new = await store.vectors.begin("new", DIMENSION, state="preparing")
        await store.vectors.add(new.number, _batch((7, 8), salt=1))
        await store.vectors.serve(new.number)
        assert await store.vectors.models() == [new._replace(state="serving")]
        assert [piece async for piece in store.vectors.scan(old)] == []
        _assert_same(await _all(store.vectors, new.number), _batch((7, 8), salt=1))

    async def test_a_model_that_serves_already_goes_on(self, store: Store) -> None:
        model = await _begin(store)
        await store.vectors.add(model, _batch((1, 2)))
        preparing = await store.vectors.begin("new", DIMENSION, state="preparing")
        await store.vectors.serve(model)
        assert [known.number for known in await store.vectors.models()] == [model, preparing.number]
        _assert_same(await _all(store.vectors, model), _batch((1, 2)))

    async def test_a_model_that_is_the_first_one_can_be_prepared_and_serve(self, store: Store) -> None:
        model = await store.vectors.begin("first", DIMENSION, state="preparing")
        await store.vectors.serve(model.number)
        assert await store.vectors.models() == [model._replace(state="serving")]

    async def test_a_dropped_model_is_gone_and_another_one_stays(self, store: Store) -> None:
        kept = await _begin(store)
        await store.vectors.add(kept, _batch((1, 2)))
        dropped = await store.vectors.begin("new", DIMENSION, state="preparing")
        await store.vectors.add(dropped.number, _batch((1, 2), salt=1))
        await store.vectors.drop(dropped.number)
        assert [known.number for known in await store.vectors.models()] == [kept]
        assert [piece async for piece in store.vectors.scan(dropped.number)] == []
        _assert_same(await _all(store.vectors, kept), _batch((1, 2)))

    async def test_a_model_that_is_not_there_can_neither_be_written_nor_served_nor_dropped(self, store: Store) -> None:
        gone = await _begin(store)
        await store.vectors.drop(gone)
        with pytest.raises(UnknownModel):
            await store.vectors.add(gone, _batch((1,)))
        with pytest.raises(UnknownModel):
            await store.vectors.serve(gone)
        with pytest.raises(UnknownModel):
            await store.vectors.drop(gone)
        assert await store.vectors.models() == []

    async def test_erased_units_are_gone_from_every_model_and_their_neighbours_stay(self, store: Store) -> None:
        serving = await _begin(store)
        preparing = (await store.vectors.begin("new", DIMENSION, state="preparing")).number
        for model in (serving, preparing):
            await store.vectors.add(model, _batch(SPREAD_SEQS, salt=model))
        await store.vectors.erase([70_000, 64, 2, 64, 3, 5_000_000])
        kept = [seq for seq in SPREAD_SEQS if seq not in (70_000, 64, 2)]
        for model in (serving, preparing):
            _assert_same(await _all(store.vectors, model), _batch(kept, salt=model))

    async def test_an_erased_unit_can_be_given_a_vector_again(self, store: Store) -> None:
        model = await _begin(store)
        await store.vectors.add(model, _batch((1,)))
        await store.vectors.erase([1])
        assert [piece async for piece in store.vectors.scan(model)] == []
        await store.vectors.add(model, _batch((1,), salt=1))
        _assert_same(await _all(store.vectors, model), _batch((1,), salt=1))

    async def test_a_batch_for_which_there_is_no_room_leaves_nothing(self, open_store: OpenStore) -> None:
        store = open_store(max_bytes=SMALL_BYTES)
        model = (await store.vectors.begin("wide", 1_024, state="serving")).number
        fits = Quantized(np.arange(1, 3), np.ones(2, np.float32), np.ones((2, 1_024), np.int8))
        await store.vectors.add(model, fits)
        too_many = Quantized(np.arange(2, 2_002), np.zeros(2_000, np.float32), np.zeros((2_000, 1_024), np.int8))
        with pytest.raises(StorageFull):
            await store.vectors.add(model, too_many)
        _assert_same(await _all(store.vectors, model), fits)
        await store.commit(Commit(entries=entries(1)))
        await store.close()

    async def test_vectors_count_as_bytes_used(self, store: Store) -> None:
        model = (await store.vectors.begin("wide", 1_024, state="serving")).number
        before = await store.bytes_used()
        await store.vectors.add(
            model, Quantized(np.arange(1, 201), np.ones(200, np.float32), np.ones((200, 1_024), np.int8))
        )
        assert await store.bytes_used() >= before + 200 * 1_024

    async def test_replacing_the_views_leaves_vectors_alone(self, store: Store) -> None:
        model = await _begin(store)
        await store.commit(Commit(entries=entries(2), changes=[PutUnit(unit_row(1))]))
        await store.vectors.add(model, _batch((1,)))
        await store.replace_views(_batches([PutUnit(unit_row(2))]))
        assert [known.number for known in await store.vectors.models()] == [model]
        _assert_same(await _all(store.vectors, model), _batch((1,)))

    async def test_the_vectors_of_a_durable_store_are_there_again(self, open_store: OpenStore) -> None:
        store = open_store()
        model = await store.vectors.begin("static", DIMENSION, state="serving")
        await store.vectors.add(model.number, _batch(SPREAD_SEQS))
        await store.close()
        again = open_store()
        assert await again.vectors.models() == ([model] if again.durable else [])
        if again.durable:
            _assert_same(await _all(again.vectors, model.number), _batch(SPREAD_SEQS))
        await again.close()

    async def test_another_field_of_the_same_store_has_vectors_of_its_own(
        self, store: Store, open_store: OpenStore
    ) -> None:
        other = open_store(key=OTHER_KEY)
        ours, theirs = await _begin(store), await _begin(other)
        await store.vectors.add(ours, _batch((1, 2)))
        await other.vectors.add(theirs, _batch((1, 2, 3), salt=1))
        await store.vectors.erase([1, 2, 3])
        await store.vectors.drop(ours)
        assert await store.vectors.models() == []
        _assert_same(await _all(other.vectors, theirs), _batch((1, 2, 3), salt=1))
        await other.close()

    async def test_a_model_of_another_field_is_not_there(self, store: Store, open_store: OpenStore) -> None:
        other = open_store(key=OTHER_KEY)
        theirs = await _begin(other)
        await other.vectors.add(theirs, _batch((1,)))
        with pytest.raises(UnknownModel):
            await store.vectors.add(theirs, _batch((2,)))
        with pytest.raises(UnknownModel):
            await store.vectors.drop(theirs)
        assert [piece async for piece in store.vectors.scan(theirs)] == []
        _assert_same(await _all(other.vectors, theirs), _batch((1,)))
        await other.close()

    # --- cold storage -------------------------------------------------------------------------------------------------

    async def test_nothing_is_in_cold_storage_at_first(self, store: Store) -> None:
        model = await _begin(store)
        await store.vectors.add(model, _batch((1, 2)))
        await _assert_lies(store, model, hot=(1, 2), cold=())
        assert await store.vectors.warm([1, 2]) == {}
        await _assert_lies(store, model, hot=(1, 2), cold=())

    async def test_vectors_that_are_cooled_lie_in_cold_storage_as_they_were_and_nowhere_else(
        self, store: Store
    ) -> None:
        model = await _begin(store)
        await store.vectors.add(model, _batch(SPREAD_SEQS))
        gone = (2, 64, 65, 70_000, 2**32 - 1)
        await store.vectors.cool([*gone, 3, 5_000_000])
        await _assert_lies(store, model, hot=[seq for seq in SPREAD_SEQS if seq not in gone], cold=gone)

    async def test_vectors_that_are_warmed_are_back_and_told_by_model(self, store: Store) -> None:
        serving = await _begin(store)
        preparing = (await store.vectors.begin("new", DIMENSION, state="preparing")).number
        for model in (serving, preparing):
            await store.vectors.add(model, _batch(SPREAD_SEQS, salt=model))
        await store.vectors.cool(SPREAD_SEQS)
        came = await store.vectors.warm([65, 1, 64, 7])
        assert came.keys() == {serving, preparing}
        for model in (serving, preparing):
            _assert_same(came[model], _batch((1, 64, 65), salt=model))
            stays = [seq for seq in SPREAD_SEQS if seq not in (1, 64, 65)]
            await _assert_lies(store, model, hot=(1, 64, 65), cold=stays, salt=model)

    async def test_moving_again_changes_nothing_more(self, store: Store) -> None:
        model = await _begin(store)
        await store.vectors.add(model, _batch(range(1, MANY + 1)))
        for _ in range(2):
            await store.vectors.cool(range(1, MANY, 2))
        await _assert_lies(store, model, hot=range(2, MANY + 1, 2), cold=range(1, MANY, 2))
        for _ in range(2):
            await store.vectors.warm(range(1, MANY, 2))
        await _assert_lies(store, model, hot=range(1, MANY + 1), cold=())

    async def test_a_vector_in_both_parts_lies_in_one_after_it_was_moved(self, store: Store) -> None:
        model = await _begin(store)
        for move in (store.vectors.cool, store.vectors.warm):
            for cold in (False, True):
                await store.vectors.add(model, _batch((1, 2)), cold=cold)
            await move([1, 2])
            is_cold = move == store.vectors.cool
            await _assert_lies(store, model, hot=() if is_cold else (1, 2), cold=(1, 2) if is_cold else ())

    async def test_vectors_can_be_put_into_cold_storage_and_replaced_there(self, store: Store) -> None:
        model = await _begin(store)
        await store.vectors.add(model, _batch((1, 2, 200)), cold=True)
        await store.vectors.add(model, _batch((2, 3), salt=1), cold=True)
        assert [piece async for piece in store.vectors.scan(model)] == []
        expected = _joined(_batch((1,)), _batch((2, 3), salt=1), _batch((200,)))
        _assert_same(await _all(store.vectors, model, cold=True), expected)

    async def test_cold_vectors_of_another_dimension_are_refused_and_leave_nothing(self, store: Store) -> None:
        model = await _begin(store)
        wrong = _batch((1, 2))._replace(codes=np.zeros((2, DIMENSION + 1), np.int8))
        with pytest.raises(ValueError, match="dimensions"):
            await store.vectors.add(model, wrong, cold=True)
        await _assert_lies(store, model, hot=(), cold=())

    async def test_erased_units_are_gone_from_cold_storage_too(self, store: Store) -> None:
        serving = await _begin(store)
        preparing = (await store.vectors.begin("new", DIMENSION, state="preparing")).number
        for model in (serving, preparing):
            await store.vectors.add(model, _batch(SPREAD_SEQS, salt=model))
        await store.vectors.cool(SPREAD_SEQS[::2])
        await store.vectors.erase([1, 2, 64, 65, 5_000_000])
        for model in (serving, preparing):
            await _assert_lies(store, model, hot=(127, 1_000, 2**32 - 1), cold=(63, 128, 70_000), salt=model)

    async def test_a_dropped_or_replaced_model_has_nothing_in_cold_storage(self, store: Store) -> None:
        old = await _begin(store)
        await store.vectors.add(old, _batch(range(1, MANY + 1)))
        await store.vectors.cool(range(1, MANY + 1))
        new = (await store.vectors.begin("new", DIMENSION, state="preparing")).number
        await store.vectors.add(new, _batch((7, 8), salt=new), cold=True)
        await store.vectors.serve(new)
        assert (await store.vectors.cold_seqs(old)).tolist() == []
        assert [piece async for piece in store.vectors.scan(old, cold=True)] == []
        await _assert_lies(store, new, hot=(), cold=(7, 8), salt=new)
        await store.vectors.drop(new)
        assert (await store.vectors.cold_seqs(new)).tolist() == []
        with pytest.raises(UnknownModel):
            await store.vectors.add(new, _batch((7,)), cold=True)

    async def test_cold_vectors_take_nothing_of_the_size_cap(self, open_store: OpenStore) -> None:
        store = open_store(max_bytes=SMALL_BYTES)
        model = (await store.vectors.begin("wide", 1_024, state="serving")).number
        for first in range(1, 2_001, 100):
            seqs = np.arange(first, first + 100)
            await store.vectors.add(model, Quantized(seqs, np.ones(100, np.float32), np.ones((100, 1_024), np.int8)))
            await store.vectors.cool(seqs.tolist())
        assert (await store.vectors.cold_seqs(model)).tolist() == list(range(1, 2_001))
        with pytest.raises(StorageFull):
            await store.vectors.warm(range(1, 2_001))
        assert len(await store.vectors.cold_seqs(model)) == 2_000
        await store.close()

    async def test_the_cold_vectors_of_a_durable_store_are_there_again(self, open_store: OpenStore) -> None:
        store = open_store()
        model = (await store.vectors.begin("static", DIMENSION, state="serving")).number
        await store.vectors.add(model, _batch(SPREAD_SEQS))
        await store.vectors.cool((1, 70_000))
        await store.close()
        again = open_store()
        if again.durable:
            await _assert_lies(again, model, hot=[s for s in SPREAD_SEQS if s not in (1, 70_000)], cold=(1, 70_000))
            await again.vectors.erase([1])
            await again.vectors.warm([1, 70_000])
            await _assert_lies(again, model, hot=[seq for seq in SPREAD_SEQS if seq != 1], cold=())
        await again.close()

    async def test_another_field_of_the_same_store_has_cold_vectors_of_its_own(
        self, store: Store, open_store: OpenStore
    ) -> None:
        other = open_store(key=OTHER_KEY)
        ours, theirs = await _begin(store), await _begin(other)
        await store.vectors.add(ours, _batch((1, 2)))
        await other.vectors.add(theirs, _batch((1, 2, 3), salt=1))
        for each in (store, other):
            await each.vectors.cool([1, 2, 3])
        await store.vectors.erase([1, 2, 3])
        await store.vectors.drop(ours)
        await _assert_lies(other, theirs, hot=(), cold=(1, 2, 3), salt=1)
        assert [piece async for piece in store.vectors.scan(theirs, cold=True)] == []
        await other.close()


async def _begin(store: Store) -> int:
    return (await store.vectors.begin("static", DIMENSION, state="serving")).number


def _batch(seqs: Sequence[int], *, salt: int = 0) -> Quantized:
    """Vectors that tell whose they are, with the extremes among them."""
    numbers = np.asarray(seqs, np.int64)
    codes = (numbers[:, np.newaxis] * 31 + np.arange(DIMENSION) * 7 + salt * 101) % 256 - 128
    return Quantized(numbers, ((numbers + salt) / 7).astype(np.float32), codes.astype(np.int8))


def _picked(batch: Quantized, which: slice | Sequence[int]) -> Quantized:
    return Quantized(batch.seqs[which], batch.scales[which], batch.codes[which])


def _joined(*batches: Quantized) -> Quantized:
    return Quantized(*(np.concatenate(columns) for columns in zip(*batches, strict=True)))


async def _all(vectors: VectorStore, model: int, *, cold: bool = False) -> Quantized:
    pieces = [piece async for piece in vectors.scan(model, cold=cold)]
    return _joined(*pieces) if pieces else _batch(())


async def _assert_lies(store: Store, model: int, *, hot: Sequence[int], cold: Sequence[int], salt: int = 0) -> None:
    """Exactly these units have vectors in the one part and in the other, as they were given."""
    _assert_same(await _all(store.vectors, model), _batch(hot, salt=salt))
    _assert_same(await _all(store.vectors, model, cold=True), _batch(cold, salt=salt))
    assert (await store.vectors.cold_seqs(model)).tolist() == list(cold)


def _assert_same(found: Quantized, expected: Quantized) -> None:
    np.testing.assert_array_equal(found.seqs, expected.seqs)
    np.testing.assert_array_equal(found.scales, expected.scales)
    np.testing.assert_array_equal(found.codes, expected.codes)


async def _batches(*batches: Sequence[Change]) -> AsyncIterator[Sequence[Change]]:
    for batch in batches:
        yield batch
