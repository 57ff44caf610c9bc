"""How the vectors of a field lie: how near strangers are, and how much nearer neighbours in a conversation."""

from typing import Any

import numpy as np
import pytest

from fieldstone.ports.vectors import StoredModel
from fieldstone.ports.views import CommitUnit, PutUnit, SetUnitStatus
from fieldstone.projections.columns import Snapshot, UnitColumns
from fieldstone.projections.meaning import (
    ELSEWHERE_PRIOR,
    PRIOR_PAIRS,
    PRIOR_VECTORS,
    SESSION_PRIOR,
    STRANGERS,
    Lie,
    Meaning,
)
from fieldstone.projections.vector_index import Floats, Rows, quantize
from tests.retrieval.units import row, snapshot

DIMENSION = 64
MANY = 400


def meaning_of(vectors: Floats, rows: Rows | None = None) -> Meaning:
    meaning = Meaning(StoredModel(1, "test", vectors.shape[1], "serving"))
    meaning.put(np.arange(len(vectors)) if rows is None else rows, *quantize(vectors))
    return meaning


def lie_of(vectors: Floats, **fields: Any) -> Lie:
    units = snapshot([row(seq, **fields) for seq in range(1, len(vectors) + 1)])
    return meaning_of(vectors).lie(units)


def strangers(count: int = MANY) -> Floats:
    return np.random.default_rng(0).normal(size=(count, DIMENSION)).astype(np.float32)


def chain(count: int = MANY) -> Floats:
    """Each one a little like the one before it."""
    vectors = strangers(count)
    vectors[1:] += 0.3 * vectors[:-1]
    return vectors


def test_neighbours_that_are_nearer_than_strangers_make_a_session_coherent_and_strangers_do_not() -> None:
    talk, heap = lie_of(chain(), session=7), lie_of(strangers(), session=7)
    assert talk.coherence > 0.9
    assert heap.coherence < 0.2
    assert talk.coherence_elsewhere == heap.coherence_elsewhere == ELSEWHERE_PRIOR


def test_units_without_a_session_are_looked_at_apart() -> None:
    assert lie_of(chain()).coherence_elsewhere > 0.9
    assert lie_of(chain()).coherence == SESSION_PRIOR


def test_authors_who_take_turns_are_no_conversation_for_being_near_to_themselves() -> None:
    turns = strangers() + 3 * strangers(2)[np.arange(MANY) % 2]
    units = snapshot([row(seq, session=7, agent=seq % 2 + 1) for seq in range(1, MANY + 1)])
    assert meaning_of(turns).lie(units).coherence < 0.2


def test_a_few_pairs_hardly_move_what_is_believed() -> None:
    alike = np.ones((2, DIMENSION), np.float32)
    alike[:, :2] = strangers(1)[0, :2]
    assert lie_of(alike, session=7).coherence == pytest.approx(SESSION_PRIOR, abs=1 / PRIOR_PAIRS)


def test_a_field_without_vectors_is_believed_to_be_as_fields_are() -> None:
    units = snapshot([row(1), row(2)])
    lie = Meaning(StoredModel(1, "test", DIMENSION, "serving")).lie(units)
    assert (lie.coherence, lie.coherence_elsewhere) == (SESSION_PRIOR, ELSEWHERE_PRIOR)
    assert not lie.mean.any()


def test_retracted_units_and_units_without_a_vector_are_not_looked_at() -> None:
    vectors = strangers(4)
    units = snapshot([row(1), row(2, status="retracted"), row(3), row(4)])
    lie = meaning_of(vectors[:3], np.arange(3)).lie(units)
    expected = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True))[[0, 2]].sum(axis=0) / (2 + PRIOR_VECTORS)
    np.testing.assert_allclose(lie.mean, expected, atol=1e-3)


def test_the_mean_follows_a_field_that_grows() -> None:
    units, vectors = snapshot([row(seq) for seq in range(1, 101)]), strangers(100)
    meaning = meaning_of(vectors[:50])
    before = meaning.lie(units)
    meaning.put(np.arange(50, 52), *quantize(vectors[50:52]))
    assert meaning.lie(units) is before, "two more of fifty change little"
    meaning.put(np.arange(52, 100), *quantize(vectors[52:]))
    assert meaning.lie(units).vectors == 100


def late_draft() -> UnitColumns:
    """A draft that was committed after a unit that was recorded later: its neighbour before it is the newer row."""
    columns = UnitColumns()
    columns.apply([PutUnit(row(1, mode="draft", status="draft", session=7)), PutUnit(row(2, session=7))])
    columns.apply([CommitUnit(1, 3, 3, None)])
    return columns


def test_a_neighbour_that_is_gone_is_no_neighbour_although_it_was_the_newest_row() -> None:
    columns = late_draft()
    columns.apply([SetUnitStatus(2, "retracted")])
    lie = meaning_of(strangers(2)).lie(columns.snapshot(3))
    assert lie.coherence == SESSION_PRIOR


def test_a_neighbour_that_came_after_the_snapshot_is_passed_over() -> None:
    columns = UnitColumns()
    columns.append([row(1, mode="draft", status="draft", session=7)])
    before: Snapshot = columns.snapshot(1)
    columns.apply([PutUnit(row(2, session=7)), CommitUnit(1, 3, 3, None)])
    assert before.before.tolist() == [1], "the writer went on"
    assert meaning_of(strangers(1)).lie(before).coherence == SESSION_PRIOR


def test_strangers_are_taken_from_all_over_the_sample() -> None:
    many, few = lie_of(strangers(STRANGERS * 3)), lie_of(strangers(5))
    assert len(many.sampled) == STRANGERS
    assert many.sampled[-1] >= STRANGERS * 3 - 3
    assert few.sampled.tolist() == [0, 1, 2, 3, 4]
