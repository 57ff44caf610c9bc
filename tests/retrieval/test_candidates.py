"""Which units a request may see, and the columns that say so."""

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.core.vocabulary import SHOWN_STATUSES, UnitStatus
from fieldstone.ports.views import CommitUnit, PutUnit, SetUnitStatus, UnitRow
from fieldstone.projections.columns import FIRST_CAPACITY, STATUS_CODES, UnitColumns
from fieldstone.projections.relations import Relations
from fieldstone.retrieval.candidates import Filter, candidates
from tests.retrieval.units import row, snapshot

statuses: tuple[UnitStatus, ...] = get_args(UnitStatus)
drawn_rows = st.lists(
    st.fixed_dictionaries(
        {
            "agent": st.integers(1, 3),
            "status": st.sampled_from(statuses),
            "session": st.none() | st.integers(1, 3),
            "archived_epoch": st.none() | st.just(9),
        }
    ),
    max_size=30,
)
filters = st.builds(
    Filter,
    caller=st.integers(1, 4),
    since_epoch=st.integers(0, 35),
    include_own=st.booleans(),
    include_archived=st.booleans(),
    include_drafts=st.booleans(),
    sessions=st.none() | st.sets(st.integers(1, 4)),
)


def may_be_seen(unit: UnitRow, wanted: Filter) -> bool:
    """The contract, unit by unit."""
    own = unit.agent == wanted.caller
    if unit.status == "draft":
        shown = own and wanted.include_drafts
    else:
        shown = unit.status in SHOWN_STATUSES and (wanted.include_own or not own)
    return (
        shown
        and (wanted.include_archived or unit.archived_epoch is None)
        and unit.epoch >= wanted.since_epoch
        and (wanted.sessions is None or unit.session in wanted.sessions)
    )


@given(drawn=drawn_rows, wanted=filters)
def test_the_mask_is_what_the_contract_says_unit_by_unit(drawn: list[dict[str, Any]], wanted: Filter) -> None:
    rows = [row(seq, **fields) for seq, fields in enumerate(drawn, start=1)]
    mask = candidates(snapshot(rows), wanted, Relations())
    assert mask.tolist() == [may_be_seen(unit, wanted) for unit in rows]


@given(drawn=drawn_rows, wanted=filters)
def test_asking_twice_gives_the_same_and_changes_nothing(drawn: list[dict[str, Any]], wanted: Filter) -> None:
    units = snapshot([row(seq, **fields) for seq, fields in enumerate(drawn, start=1)])
    before = [array.tolist() for array in (units.status, units.agent, units.session, units.archived)]
    assert candidates(units, wanted, Relations()).tolist() == candidates(units, wanted, Relations()).tolist()
    assert [array.tolist() for array in (units.status, units.agent, units.session, units.archived)] == before


def test_every_status_has_a_code_and_the_shown_ones_come_first() -> None:
    assert set(STATUS_CODES) == set(statuses)
    assert sorted(STATUS_CODES, key=STATUS_CODES.__getitem__)[: len(SHOWN_STATUSES)] == list(SHOWN_STATUSES)


def test_changes_of_a_unit_show_in_the_next_snapshot() -> None:
    columns = UnitColumns()
    columns.apply([PutUnit(row(5, status="draft", epoch=2)), PutUnit(row(8, epoch=3))])
    columns.apply([CommitUnit(5, 4, 9, 0.5), SetUnitStatus(8, "superseded")])
    units = columns.snapshot(4)
    assert units.unit_epoch.tolist() == [4, 3]
    assert units.status.tolist() == [STATUS_CODES["active"], STATUS_CODES["superseded"]]
    assert (units.size, units.epoch) == (2, 4)


@pytest.mark.parametrize("more", [1, FIRST_CAPACITY, 3 * FIRST_CAPACITY])
def test_a_snapshot_keeps_its_size_while_units_are_added(more: int) -> None:
    columns = UnitColumns()
    for seq in range(1, FIRST_CAPACITY + 1):
        columns.append([row(seq)])
    before = columns.snapshot(FIRST_CAPACITY)
    for seq in range(FIRST_CAPACITY + 1, FIRST_CAPACITY + more + 1):
        columns.append([row(seq, agent=9, type="decision")])
    assert before.size == len(before.seq) == FIRST_CAPACITY
    assert before.seq.tolist() == list(range(1, FIRST_CAPACITY + 1))
    after = columns.snapshot(FIRST_CAPACITY + more)
    assert after.size == columns.size == FIRST_CAPACITY + more
    assert after.seq.tolist() == list(range(1, FIRST_CAPACITY + more + 1))
    assert after.types[after.type[-1]] == "decision"
    assert after.agent_code(9) == after.agent[-1]
    assert after.agent_code(77) == -1
