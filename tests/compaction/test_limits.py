"""Which units pass a limit: an age in epochs, an entry of the log, a cap on their number."""

from hypothesis import given
from hypothesis import strategies as st

from fieldstone.compaction.plan import Selection, matching
from fieldstone.core.vocabulary import UnitStatus
from fieldstone.ports.views import UnitRow
from fieldstone.projections.columns import Snapshot, UnitColumns

STATUSES: tuple[UnitStatus, ...] = ("active", "draft", "superseded", "retracted", "contested")
NOW = 50

epochs = st.lists(st.integers(1, NOW), max_size=30)
limits = st.none() | st.integers(0, NOW)


def units(at_epochs: list[int], status: UnitStatus = "active") -> Snapshot:
    """One at each of these epochs, recorded in this order: the entries have the numbers 1, 2, 3 …"""
    columns = UnitColumns()
    columns.append(
        [
            UnitRow(seq, f"mem-{seq}", "committed", "finding", status, epoch, 0, 1, 1, None, None, 0.5, None, None)
            for seq, epoch in enumerate(at_epochs, 1)
        ]
    )
    return columns.snapshot(NOW)


def going(found: Snapshot, wanted: Selection) -> set[int]:
    return set(found.seq[matching(found, wanted)].tolist())


@given(epochs, st.integers(0, 40))
def test_of_a_cap_the_newest_stay_and_all_others_go(at_epochs: list[int], cap: int) -> None:
    gone = going(units(at_epochs), Selection("archive", NOW, beyond_newest=cap))
    oldest_first = sorted(range(1, len(at_epochs) + 1), key=lambda seq: (at_epochs[seq - 1], seq))
    assert gone == set(oldest_first[: max(0, len(at_epochs) - cap)])


@given(epochs, limits, limits, limits)
def test_a_unit_that_passes_one_limit_goes_and_without_limits_all_do(
    at_epochs: list[int], age: int | None, before: int | None, cap: int | None
) -> None:
    found = units(at_epochs)
    alone = [
        Selection("archive", NOW, max_age_epochs=age),
        Selection("archive", NOW, before=before),
        Selection("archive", NOW, beyond_newest=cap),
    ]
    given_limits = [each for each, limit in zip(alone, (age, before, cap), strict=True) if limit is not None]
    expected = set().union(*(going(found, each) for each in given_limits)) if given_limits else going(found, alone[0])
    everything = Selection("archive", NOW, max_age_epochs=age, before=before, beyond_newest=cap)
    assert going(found, everything) == expected


@given(epochs, st.integers(0, NOW), st.integers(0, 40))
def test_the_same_again_takes_nothing_more(at_epochs: list[int], before: int, cap: int) -> None:
    wanted = Selection("archive", NOW, before=before, beyond_newest=cap)
    found = units(at_epochs)
    gone = matching(found, wanted)
    found.archived[gone] = True
    assert not going(found, wanted)


@given(epochs, st.sampled_from(STATUSES))
def test_what_does_not_match_does_not_count_against_the_cap(at_epochs: list[int], status: UnitStatus) -> None:
    active: tuple[UnitStatus, ...] = ("active",)
    wanted = Selection("archive", NOW, beyond_newest=0, statuses=active)
    assert len(going(units(at_epochs, status), wanted)) == (len(at_epochs) if status == "active" else 0)
