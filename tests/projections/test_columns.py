"""Columns that follow the log and columns that are read back from the store are the same."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fieldstone.backends.memory.store import MemoryStore
from fieldstone.field.state import FieldState
from fieldstone.ports.store import Commit
from fieldstone.ports.views import ArchiveUnits, Change, CommitUnit, MarkEcho, PutUnit, SetUnitStatus
from fieldstone.projections.columns import NO_ROW, Snapshot, UnitColumns
from fieldstone.testing import KEY
from tests.retrieval.units import row

drawn_fields = st.fixed_dictionaries(
    {
        "mode": st.sampled_from(["committed", "draft"]),
        "type": st.sampled_from(["finding", "question", "decision"]),
        "agent": st.integers(1, 3),
        "registration": st.integers(4, 7),
        "session": st.none() | st.integers(1, 2),
        "task": st.none() | st.integers(1, 2),
        "score": st.none() | st.sampled_from([0.0, 0.3, 1.0]),
    }
)
# What happens after each unit was recorded: to which unit, and what.
drawn_events = st.lists(
    st.tuples(st.integers(0, 30), st.sampled_from(["commit", "discard", "retract", "echo", "archive"]))
)
histories = st.lists(st.tuples(drawn_fields, drawn_events), max_size=15)


History = list[tuple[dict[str, Any], list[tuple[int, str]]]]


def changes_of(history: History) -> list[Change]:
    """A history that the field could have: seqs grow, only drafts are committed, and only once."""
    seq, drafts, committed, changes = 0, list[int](), list[int](), list[Change]()
    for fields, events in history:
        seq += 1
        is_draft = fields["mode"] == "draft"
        (drafts if is_draft else committed).append(seq)
        changes.append(PutUnit(row(seq, status="draft" if is_draft else "active", **fields)))
        for which, what in events:
            seq += 1
            if what in ("commit", "discard") and drafts:
                unit = drafts.pop(which % len(drafts))
                if what == "commit":
                    committed.append(unit)
                    changes.append(CommitUnit(unit, seq, seq, None if which % 2 else 0.5))
                else:
                    changes.append(SetUnitStatus(unit, "retracted"))
            elif what == "retract" and committed:
                changes.append(SetUnitStatus(committed[which % len(committed)], "retracted"))
            elif what == "echo" and committed:
                changes.append(MarkEcho(committed[which % len(committed)], 1))
            elif what == "archive" and committed:
                changes.append(ArchiveUnits([committed[which % len(committed)]], 9))
    return changes


def followed(changes: Sequence[Change]) -> UnitColumns:
    columns = UnitColumns()
    for change in changes:
        columns.apply([change])
    return columns


def followed_at_once(changes: Sequence[Change]) -> UnitColumns:
    columns = UnitColumns()
    columns.apply(changes)
    return columns


async def read_back(changes: Sequence[Change]) -> UnitColumns:
    store = MemoryStore(KEY)
    await store.commit(Commit(changes=changes))
    return (await FieldState.load(store)).columns


def said(units: Snapshot) -> list[list[Any]]:
    """Everything, with codes spelt out: which code a value has depends on who came first."""
    agents = {code: agent for agent, code in units.agent_codes.items()}
    plain: list[NDArray[Any]] = [units.seq, units.unit_epoch, units.session, units.task, units.status, units.archived]
    plain += [units.confidence, units.before, units.after, units.echo_of]
    return [
        *(column.tolist() for column in plain),
        [agents[code] for code in units.agent.tolist()],
        [units.registrations[code] for code in units.role.tolist()],
        [units.types[code] for code in units.type.tolist()],
    ]


@given(history=histories)
async def test_columns_that_followed_every_change_are_those_that_are_read_back(history: History) -> None:
    changes = changes_of(history)
    assert said(followed(changes).snapshot(0)) == said((await read_back(changes)).snapshot(0))


@given(history=histories)
def test_changes_of_one_group_lead_to_the_same_columns_as_one_by_one(history: History) -> None:
    changes = changes_of(history)
    assert said(followed_at_once(changes).snapshot(0)) == said(followed(changes).snapshot(0))


@given(history=histories, more=histories)
async def test_columns_that_were_read_back_go_on_as_if_they_had_followed_all_along(
    history: History, more: History
) -> None:
    changes = changes_of([*history, *more])
    begun = len(changes_of(history))
    columns = await read_back(changes[:begun])
    columns.apply(changes[begun:])
    assert said(columns.snapshot(0)) == said(followed(changes).snapshot(0))


@given(history=histories)
def test_neighbours_point_at_each_other_and_are_of_one_conversation(history: History) -> None:
    units = followed(changes_of(history)).snapshot(0)
    rows = np.flatnonzero(units.after != NO_ROW)
    after = units.after[rows]
    assert (units.before[after] == rows).all()
    assert (units.session[after] == units.session[rows]).all()
    assert ((units.session[rows] > 0) | (units.task[after] == units.task[rows])).all()
    assert np.count_nonzero(units.before != NO_ROW) == len(rows)


def test_a_draft_has_no_neighbours_until_it_is_committed_and_then_comes_last() -> None:
    columns = UnitColumns()
    for seq, mode in enumerate(("committed", "draft", "committed"), start=1):
        columns.append([row(seq, mode=mode, session=7)])
    assert columns.snapshot(0).after.tolist() == [2, NO_ROW, NO_ROW]
    columns.apply([CommitUnit(2, 4, 4, None)])
    units = columns.snapshot(0)
    assert units.before.tolist() == [NO_ROW, 2, 0]
    assert units.after.tolist() == [2, NO_ROW, 1]
