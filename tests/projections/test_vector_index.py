"""The nearest units by vector: the same as looking at every one, however many there are and whatever is filtered."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fieldstone.projections.vector_index import RATED_LEAST, SEGMENT_ROWS, Floats, Rows, VectorIndex, quantize

DIMENSION = 20  # no multiple of what is counted at once
ROUNDING = 1e-2  # of a cosine, by bytes
MOST = 100
MANY_ROWS = 2 * SEGMENT_ROWS + 5_000

seeds = st.integers(0, 2**32 - 1)


def some_vectors(count: int, *, seed: int = 0, dimension: int = DIMENSION) -> Floats:
    """Of any length and direction."""
    return np.random.default_rng(seed).normal(size=(count, dimension)).astype(np.float32)


def clustered(count: int, *, seed: int, dimension: int) -> Floats:
    """As texts lie: around subjects, some of them frequent, and all of them leaning to one side."""
    chance = np.random.default_rng(seed)
    subjects = chance.normal(size=(200, dimension)) + chance.normal(size=dimension)
    belongs = (200 * chance.random(count) ** 2).astype(int)
    return np.asarray(subjects[belongs] + chance.normal(size=(count, dimension)), np.float32)


def filled(vectors: Floats, rows: Rows | None = None) -> VectorIndex:
    index = VectorIndex(vectors.shape[1])
    index.put(np.arange(len(vectors)) if rows is None else rows, *quantize(vectors))
    return index


def cosines(vectors: Floats, query: Floats) -> Floats:
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(query)
    return np.asarray(vectors @ query / lengths, np.float32)


def nearest(vectors: Floats, query: Floats, mask: NDArray[np.bool_], most: int) -> Rows:
    allowed = np.flatnonzero(mask)
    return allowed[np.argsort(-cosines(vectors[allowed], query), kind="stable")[:most]]


@given(seed=seeds, length=st.floats(1e-6, 1e6))
def test_a_quantized_vector_points_where_the_vector_does_and_has_length_one(seed: int, length: float) -> None:
    vectors = some_vectors(8, seed=seed) * np.float32(length)
    scales, codes = quantize(vectors)
    decoded = codes * scales[:, np.newaxis]
    np.testing.assert_allclose(np.linalg.norm(decoded, axis=1), 1, atol=1e-5)
    assert (np.vecdot(decoded, vectors) / np.linalg.norm(vectors, axis=1) > 1 - ROUNDING).all()


def test_the_vector_of_a_text_that_says_nothing_is_near_to_nothing() -> None:
    vectors = some_vectors(3)
    vectors[1] = 0
    index = filled(vectors)
    assert index.similarities(vectors[0], np.arange(3))[1] == 0
    assert index.missing(3).size == 0


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused(wrong: float) -> None:
    vectors = some_vectors(3)
    vectors[1, 4] = wrong
    with pytest.raises(ValueError, match="not finite"):
        quantize(vectors)


def test_an_index_without_vectors_finds_nothing() -> None:
    rows, similarities = VectorIndex(DIMENSION).search(some_vectors(1)[0], np.ones(5, np.bool_), MOST)
    assert (rows.tolist(), similarities.tolist()) == ([], [])
    assert VectorIndex(DIMENSION).missing(3).tolist() == [0, 1, 2]


@given(seed=seeds, count=st.integers(1, 60), most=st.integers(1, 70), share=st.floats(0, 1))
def test_among_few_rows_the_nearest_in_the_mask_are_found_with_their_cosines(
    seed: int, count: int, most: int, share: float
) -> None:
    vectors, query = some_vectors(count, seed=seed), some_vectors(1, seed=seed + 1)[0]
    mask = np.random.default_rng(seed).random(count) < share
    rows, similarities = filled(vectors).search(query, mask, most)
    assert len(rows) == len(set(rows.tolist())) == min(most, int(mask.sum()))
    assert mask[rows].all()
    assert (np.diff(similarities) <= 0).all()
    np.testing.assert_allclose(similarities, cosines(vectors[rows], query), atol=ROUNDING)
    expected = cosines(vectors, query)[nearest(vectors, query, mask, most)]
    np.testing.assert_allclose(similarities, expected, atol=ROUNDING)


@pytest.mark.parametrize("dimension", [64, 100, 256, 1_000])
@pytest.mark.parametrize("share", [1.0, 0.9, 0.4])
def test_among_many_rows_nearly_all_of_the_nearest_in_the_mask_are_found(dimension: int, share: float) -> None:
    count = 3 * RATED_LEAST
    vectors = clustered(count, seed=dimension, dimension=dimension)
    queries = clustered(20, seed=dimension, dimension=dimension) + some_vectors(20, seed=1, dimension=dimension)
    mask = np.random.default_rng(2).random(count) < share
    index = filled(vectors)
    found = 0
    for query in queries:
        rows, _ = index.search(query, mask, MOST)
        assert len(rows) == MOST
        assert mask[rows].all()
        found += len(np.intersect1d(rows, nearest(vectors, query, mask, MOST)))
    assert found >= 0.98 * MOST * len(queries)


def test_an_index_that_was_filled_little_by_little_finds_as_much() -> None:
    vectors = clustered(3 * RATED_LEAST, seed=5, dimension=64)
    everything = np.ones(len(vectors), np.bool_)
    index = VectorIndex(64)
    for first in range(0, len(vectors), 1_000):
        index.put(np.arange(first, first + 1_000), *quantize(vectors[first : first + 1_000]))
    queries = vectors[::1_000]
    found = [index.search(query, None, MOST)[0] for query in queries]
    wanted = [nearest(vectors, query, everything, MOST) for query in queries]
    assert sum(map(len, map(np.intersect1d, found, wanted))) >= 0.98 * MOST * len(queries)


def test_near_vectors_are_not_lost_among_many_that_differ_in_more_than_256_numbers() -> None:
    query = np.ones(1_000, np.float32)
    vectors = np.ones((MOST + 2 * RATED_LEAST, 1_000), np.float32)
    vectors[:MOST, :30] = -1
    vectors[MOST:, :260] = -1
    assert set(filled(vectors).search(query, None, MOST)[0].tolist()) == set(range(MOST))


def test_near_vectors_are_not_lost_among_many_that_agree_with_the_query_only_where_it_says_little() -> None:
    query = np.ones(100, np.float32)
    query[:10] = 10
    vectors = np.ones((MOST + 2 * RATED_LEAST, 100), np.float32)
    vectors[:MOST, 10:35] = -1
    vectors[MOST:, :10] = -1
    assert set(filled(vectors).search(query, None, MOST)[0].tolist()) == set(range(MOST))


def test_near_vectors_are_not_lost_where_all_of_them_have_much_in_common() -> None:
    own = np.random.default_rng(6).choice([-0.5, 0.5], (MOST + 2 * RATED_LEAST, 64)).astype(np.float32)
    own[-MOST:] = own[-1]
    vectors = 3 + own
    found = filled(vectors).search(vectors[-1], None, MOST)[0]
    assert set(found.tolist()) == set(range(len(vectors) - MOST, len(vectors)))


@pytest.mark.parametrize("kept", [3, 250])
def test_a_mask_that_leaves_few_of_many_rows_loses_none_of_them(kept: int) -> None:
    vectors = clustered(MANY_ROWS, seed=3, dimension=DIMENSION)
    mask = np.zeros(MANY_ROWS, np.bool_)
    mask[np.random.default_rng(4).choice(MANY_ROWS, kept, replace=False)] = True
    rows, similarities = filled(vectors).search(vectors[0], mask, kept)
    assert sorted(rows.tolist()) == np.flatnonzero(mask).tolist()
    np.testing.assert_allclose(similarities, cosines(vectors[rows], vectors[0]), atol=ROUNDING)


def test_every_unit_is_nearest_to_itself_in_whatever_segment_it_lies() -> None:
    vectors = some_vectors(MANY_ROWS)
    index = filled(vectors)
    for row in (0, SEGMENT_ROWS - 1, SEGMENT_ROWS, 2 * SEGMENT_ROWS, MANY_ROWS - 1):
        rows, similarities = index.search(vectors[row], None, 1)
        assert rows.tolist() == [row]
        assert similarities[0] > 1 - ROUNDING


def test_vectors_that_are_all_the_same_are_not_all_rated() -> None:
    rows, similarities = filled(np.ones((MANY_ROWS, DIMENSION), np.float32)).search(
        np.ones(DIMENSION, np.float32), None, MOST
    )
    assert len(set(rows.tolist())) == MOST
    np.testing.assert_allclose(similarities, 1, atol=ROUNDING)


def test_a_query_that_says_nothing_is_answered() -> None:
    rows, similarities = filled(some_vectors(2 * RATED_LEAST)).search(np.zeros(DIMENSION, np.float32), None, MOST)
    assert len(rows) == MOST
    assert not similarities.any()


def test_rows_may_come_in_any_order_and_with_gaps() -> None:
    vectors = some_vectors(4)
    at = np.array([SEGMENT_ROWS + 1, 2, 3 * SEGMENT_ROWS, 0])
    index = filled(vectors, at)
    np.testing.assert_array_equal(index.search(vectors[2], None, 1)[0], [3 * SEGMENT_ROWS])
    np.testing.assert_allclose(index.similarities(vectors[1], at), cosines(vectors, vectors[1]), atol=ROUNDING)
    missing = set(range(3 * SEGMENT_ROWS + 5)) - set(at.tolist())
    assert set(index.missing(3 * SEGMENT_ROWS + 5).tolist()) == missing


def test_a_mask_of_an_older_or_a_newer_snapshot_is_as_good() -> None:
    vectors = some_vectors(10)
    index = filled(vectors)
    assert set(index.search(vectors[9], np.ones(4, np.bool_), MOST)[0].tolist()) == set(range(4))
    assert set(index.search(vectors[9], np.ones(SEGMENT_ROWS + 7, np.bool_), MOST)[0].tolist()) == set(range(10))


def test_a_unit_that_gets_a_new_vector_is_found_by_that_one_only() -> None:
    vectors = some_vectors(5)
    index = filled(vectors)
    index.put(np.array([2]), *quantize(-vectors[2:3]))
    assert index.search(-vectors[2], None, 1)[0].tolist() == [2]
    assert index.similarities(vectors[2], np.array([2]))[0] < -1 + ROUNDING


def test_a_removed_vector_is_not_found_and_nothing_of_it_is_left() -> None:
    vectors = some_vectors(5)
    index = filled(vectors)
    index.remove(np.array([2, SEGMENT_ROWS + 9]))
    assert 2 not in index.search(vectors[2], None, MOST)[0]
    assert index.missing(5).tolist() == [2]
    assert not index.vectors(np.array([2])).any()
    assert index.similarities(vectors[2], np.array([2])).tolist() == [0]


@given(seed=seeds)
def test_vectors_come_back_in_the_order_in_which_they_are_asked_for(seed: int) -> None:
    vectors = some_vectors(30, seed=seed)
    rows = np.random.default_rng(seed).integers(0, 30, 12)
    found = filled(vectors).vectors(rows)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    assert (np.vecdot(found, vectors[rows]) / np.linalg.norm(vectors[rows], axis=1) > 1 - ROUNDING).all()


def test_rows_that_have_no_vector_have_zeros_and_are_similar_to_nothing() -> None:
    index = filled(some_vectors(3))
    rows = np.array([1, 77, 5 * SEGMENT_ROWS])
    assert index.vectors(rows)[1:].any(axis=1).tolist() == [False, False]
    assert index.similarities(some_vectors(1)[0], rows)[1:].tolist() == [0, 0]
