"""Relations in memory: the same whether they were read back or came in one by one."""

from hypothesis import given
from hypothesis import strategies as st

from fieldstone.ports.views import PutRelation, PutUnit, RelationRow
from fieldstone.projections.relations import Relations
from tests.retrieval.units import row

UNITS = 6
ALL = range(1, UNITS + 1)

drawn_rows = st.lists(
    st.builds(
        RelationRow,
        source=st.integers(1, UNITS),
        place=st.integers(0, 3),
        type=st.sampled_from(["supports", "answers", "informs"]),
        target=st.integers(1, UNITS),
    ),
    max_size=20,
)


@given(rows=drawn_rows)
def test_relations_that_come_one_by_one_are_the_same_as_those_read_back(rows: list[RelationRow]) -> None:
    read_back, followed = Relations(rows), Relations()
    for each in rows:
        followed.apply([PutUnit(row(9)), PutRelation(each)])
    assert followed.answers == read_back.answers
    assert all(followed.around([unit], 100) == read_back.around([unit], 100) for unit in ALL)


@given(rows=drawn_rows, units=st.sets(st.integers(1, UNITS)))
def test_around_some_units_is_whatever_points_to_them_or_is_pointed_to(
    rows: list[RelationRow], units: set[int]
) -> None:
    targets = {each.target for each in rows if each.source in units}
    sources = {each.source for each in rows if each.target in units}
    assert Relations(rows).around(units, 100) == targets | sources


@given(rows=drawn_rows, most=st.integers(0, 5))
def test_no_more_than_asked_for_are_given(rows: list[RelationRow], most: int) -> None:
    whole, some = Relations(rows).around(ALL, 1_000), Relations(rows).around(ALL, most)
    assert len(some) <= most
    assert some <= whole


def test_answers_are_kept_apart_with_who_answers_first() -> None:
    relations = Relations([RelationRow(3, 0, "answers", 1), RelationRow(3, 1, "supports", 2)])
    assert relations.answers == [(3, 1)]
