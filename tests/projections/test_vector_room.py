"""Vectors that are removed give their room back, and whoever searches sees no difference."""

from collections.abc import Sequence
from threading import Thread
from typing import Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.projections import vector_index
from fieldstone.projections.vector_index import RATED_LEAST, SEGMENT_ROWS, BothIndexes, Floats, VectorIndex, quantize

DIMENSION: Final = 8
ROWS: Final = 60
ROUNDING: Final = 1e-5

rows = st.lists(st.integers(0, ROWS - 1), min_size=1, max_size=ROWS, unique=True)
steps = st.lists(st.tuples(st.sampled_from(["put", "remove", "shrink"]), rows), max_size=12)


def some(count: int, *, seed: int = 0, dimension: int = DIMENSION) -> Floats:
    return np.random.default_rng(seed).normal(size=(count, dimension)).astype(np.float32)


def carry_out(index: VectorIndex, taken: Sequence[tuple[str, list[int]]]) -> dict[int, Floats]:
    """The steps, and what each row ought to have after them."""
    model: dict[int, Floats] = {}
    for number, (step, at) in enumerate(taken):
        match step:
            case "put":
                scales, codes = quantize(some(len(at), seed=number))
                index.put(np.asarray(at), scales, codes)
                model |= dict(zip(at, codes * scales[:, np.newaxis], strict=True))
            case "remove":
                index.remove(np.asarray(at))
                model = {row: vector for row, vector in model.items() if row not in at}
            case _:
                index.shrink()
    return model


@given(taken=steps, few=st.sampled_from([1, 10, RATED_LEAST]))
def test_however_rows_come_and_go_the_index_holds_what_it_was_given(
    taken: list[tuple[str, list[int]]], few: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_index, "SEGMENT_ROWS", 16)
        patch.setattr(vector_index, "PACKED_LEAST", 2)
        patch.setattr(vector_index, "RATED_LEAST", few)  # also by signs
        index = VectorIndex(DIMENSION)
        model = carry_out(index, taken)
        held = sorted(model)
        assert index.count == len(model)
        assert index.missing(ROWS).tolist() == [row for row in range(ROWS) if row not in model]
        zeros = np.zeros(DIMENSION, np.float32)
        expected = np.stack([model.get(row, zeros) for row in range(ROWS)])
        np.testing.assert_allclose(index.vectors(np.arange(ROWS)), expected, atol=ROUNDING)
        found, scales, codes = index.quantized(np.arange(ROWS)[::-1])
        assert found.tolist() == held
        np.testing.assert_allclose(codes * scales[:, np.newaxis], expected[held], atol=ROUNDING)
        nearest, similarities = index.search(some(1, seed=99)[0], None, ROWS)
        assert sorted(nearest.tolist()) == held
        query = some(1, seed=99)[0] / np.linalg.norm(some(1, seed=99)[0])
        np.testing.assert_allclose(similarities, expected[nearest] @ query, atol=1e-3)
        some_of_them, similarities = index.search(query, None, 3)
        assert model.keys() >= set(some_of_them.tolist())
        np.testing.assert_allclose(similarities, expected[some_of_them] @ query, atol=1e-3)


def test_an_index_whose_vectors_are_all_removed_takes_a_fiftieth_of_its_room() -> None:
    index = VectorIndex(256)
    index.put(np.arange(2 * SEGMENT_ROWS), *quantize(some(2 * SEGMENT_ROWS, dimension=256)))
    full = index.taken_bytes
    for first in range(0, 2 * SEGMENT_ROWS, 1_024):
        index.remove(np.arange(first, first + 1_024))
        index.shrink()
    assert index.count == 0
    assert index.taken_bytes < full / 50


def test_a_few_rows_that_stay_keep_only_their_own_room() -> None:
    index = VectorIndex(256)
    index.put(np.arange(SEGMENT_ROWS), *quantize(some(SEGMENT_ROWS, dimension=256)))
    full = index.taken_bytes
    index.remove(np.flatnonzero(np.arange(SEGMENT_ROWS) % 50))
    index.shrink()
    assert index.count == -(-SEGMENT_ROWS // 50)
    assert index.taken_bytes < full / 30


def test_rows_are_not_copied_again_with_every_step() -> None:
    index = VectorIndex(DIMENSION)
    index.put(np.arange(SEGMENT_ROWS), *quantize(some(SEGMENT_ROWS)))
    sizes = set()
    for first in range(0, SEGMENT_ROWS, 256):
        index.remove(np.arange(first, first + 256))
        index.shrink()
        sizes.add(index.taken_bytes)
    assert len(sizes) <= 2 + int(np.log2(SEGMENT_ROWS / vector_index.PACKED_LEAST))


def test_a_search_that_is_under_way_while_rows_come_and_go_finds_those_that_stay() -> None:
    vectors = some(2 * SEGMENT_ROWS, dimension=16)
    index = VectorIndex(16)
    index.put(np.arange(len(vectors)), *quantize(vectors))
    stays = np.arange(0, len(vectors), 1_000)
    goes = np.setdiff1d(np.arange(len(vectors)), stays)
    missed: list[int] = []
    is_over = False

    def search() -> None:
        while not is_over:
            missed.extend(int(row) for row in stays if row not in index.search(vectors[row], None, 10)[0])

    thread = Thread(target=search)
    thread.start()
    for _ in range(3):
        index.remove(goes)
        index.shrink()
        index.put(goes, *quantize(vectors[goes]))
    is_over = True
    thread.join()
    assert not missed


@given(seed=st.integers(0, 2**32 - 1), most=st.integers(1, 40), share=st.floats(0, 1), both=st.floats(0, 1))
def test_two_indexes_are_searched_as_one_whichever_a_vector_is_in(
    seed: int, most: int, share: float, both: float
) -> None:
    chance = np.random.default_rng(seed)
    vectors, query = some(30, seed=seed), some(1, seed=seed + 1)[0]
    is_hot = chance.random(30) < share
    in_both = chance.random(30) < both
    whole, hot, cold = VectorIndex(DIMENSION), VectorIndex(DIMENSION), VectorIndex(DIMENSION)
    for index, which in ((whole, is_hot | True), (hot, is_hot | in_both), (cold, ~is_hot | in_both)):
        index.put(np.flatnonzero(which), *quantize(vectors[which]))
    two = BothIndexes(hot, cold)
    mask = chance.random(30) < 0.8
    (found, similarities), (expected, expected_similarities) = (each.search(query, mask, most) for each in (two, whole))
    assert found.tolist() == expected.tolist()
    np.testing.assert_allclose(similarities, expected_similarities, atol=ROUNDING)
    at = chance.integers(0, 40, 20)
    np.testing.assert_array_equal(two.vectors(at), whole.vectors(at))
    np.testing.assert_array_equal(two.similarities(query, at), whole.similarities(query, at))
