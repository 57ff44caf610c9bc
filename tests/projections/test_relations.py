"""Relations in memory: the same whether they were read back or came in one by one."""

from hypothesis import given
from hypothesis import strategies as st

from fieldstone.ports.views import ElaborateUnits, PutRelation, PutUnit, RelationRow
from fieldstone.projections.relations import Relations
from tests.retrieval.units import row

UNITS = 6
ALL = range(1, UNITS + 1)

drawn_rows = st.lists(
    st.builds(
        RelationRow,
        source=st.integers(1, UNITS),
        place=st.integers(0, 3),
        type=st.sampled_from(["supports", "answers", "informs", "elaborates", "caused_by"]),
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


@given(rows=drawn_rows, targets=st.lists(st.integers(1, UNITS), min_size=1, max_size=8))
def test_what_a_unit_elaborates_is_the_same_whether_it_comes_at_once_or_one_by_one(
    rows: list[RelationRow], targets: list[int]
) -> None:
    each = [RelationRow(9, place, "elaborates", target) for place, target in enumerate(targets)]
    one_by_one, at_once = Relations([*rows, *each]), Relations(rows)
    at_once.apply([ElaborateUnits(9, targets)])
    assert list(at_once.elaborated_by(9)) == targets
    for unit in (*ALL, 9):
        assert list(at_once.elaborating(unit)) == list(one_by_one.elaborating(unit))
        assert list(at_once.elaborated_by(unit)) == list(one_by_one.elaborated_by(unit))
        assert at_once.around([unit], 100) == one_by_one.around([unit], 100)
        assert at_once.derived_from(unit) == one_by_one.derived_from(unit)


@given(rows=drawn_rows)
def test_what_was_made_from_a_unit_is_found_through_every_step(rows: list[RelationRow]) -> None:
    relations = Relations(rows)
    made = [each for each in rows if each.type in ("elaborates", "caused_by")]
    for ancestor in ALL:
        found: set[int] = set()
        while new := {each.source for each in made if each.target in found | {ancestor}} - found - {ancestor}:
            found |= new
        assert relations.derived_from(ancestor) == found


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
