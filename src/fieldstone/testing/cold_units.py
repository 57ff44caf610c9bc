"""What moving the rows of archived units promises: whoever reads or changes them sees no difference."""

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import pytest

from fieldstone.core.errors import StorageFull
from fieldstone.ports.log import Head
from fieldstone.ports.store import Commit, Store
from fieldstone.ports.views import (
    ArchiveUnits,
    Change,
    CommitUnit,
    MarkEcho,
    PurgeUnits,
    PutUnit,
    RestoreUnits,
    SetUnitStatus,
    UnitRow,
)
from fieldstone.testing.opening import OTHER_KEY, OpenStore, StoreCase
from fieldstone.testing.rows import draft_row, entries, head_of, text, unit_row

MANY: Final = 400  # more than one block, page or batch of any backend
PLENTY: Final = 1_000_000
AT_ONCE: Final = 100
SMALL_BYTES: Final = 512 * 1024
BATCH: Final = 64


class ColdUnitsTests(StoreCase):
    async def test_where_nothing_is_archived_nothing_moves(self, store: Store) -> None:
        await _apply(store, *(PutUnit(unit_row(seq)) for seq in (1, 2)))
        assert await store.move_units(limit=AT_ONCE) == 0
        assert await store.has_every_view()
        assert list(await store.views.scan_units(after=0, limit=9)) == [unit_row(1), unit_row(2)]

    @pytest.mark.parametrize("archived", ["some", "the oldest", "the newest", "all"])
    async def test_rows_are_read_alike_wherever_they_lie(self, store: Store, archived: str) -> None:
        rows = [_row(seq) for seq in range(1, MANY * 3, 3)]
        chosen = {
            "some": [row.seq for row in rows if row.seq % 7 < 3],
            "the oldest": [row.seq for row in rows[:250]],
            "the newest": [row.seq for row in rows[150:]],
            "all": [row.seq for row in rows],
        }
        await _apply(store, *(PutUnit(row) for row in rows), ArchiveUnits(chosen[archived], 77))
        before = await _all_reads(store, rows)
        await _move_all(store)
        assert await _all_reads(store, rows) == before
        assert await store.views.unit("mem-unknown") is None
        assert await store.views.units([2, MANY * 3]) == {}

    @pytest.mark.parametrize("limit", [1, 7, 100])
    async def test_pages_of_hot_and_cold_rows_are_full_and_in_order(self, store: Store, limit: int) -> None:
        rows = [_row(seq) for seq in range(1, 300)]
        gone = [row.seq for row in rows if row.seq % 3 or row.seq > 250]
        await _apply(store, *(PutUnit(row) for row in rows), ArchiveUnits(gone, 77))
        await _move_all(store)
        found: list[UnitRow] = []
        while page := await store.views.scan_units(after=found[-1].seq if found else 0, limit=limit):
            columns = await store.views.unit_columns(after=found[-1].seq if found else 0, limit=limit)
            assert columns.seq.tolist() == [row.seq for row in page]
            found += page
            assert len(page) == limit or len(found) == len(rows)
        assert found == [row._replace(archived_epoch=77) if row.seq in gone else row for row in rows]

    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ([SetUnitStatus(5, "retracted")], {"status": "retracted"}),
            ([MarkEcho(5, 2)], {"echo_of": 2}),
            ([PurgeUnits((4, 5), 90)], {"purged_seq": 90}),
            ([ArchiveUnits((5, 6), 91)], {"archived_epoch": 91}),
            ([RestoreUnits((5,))], {"archived_epoch": None}),
            (
                [CommitUnit(5, 92, 93, 0.25)],
                {"mode": "committed", "status": "active", "epoch": 92, "committed_seq": 93, "score": 0.25},
            ),
            ([RestoreUnits((5,)), ArchiveUnits((5,), 94)], {"archived_epoch": 94}),
            ([SetUnitStatus(5, "contested"), MarkEcho(5, 3)], {"status": "contested", "echo_of": 3}),
        ],
        ids=lambda each: " and ".join(type(one).__name__ for one in each) if isinstance(each, list) else None,
    )
    async def test_a_row_that_moved_is_changed_as_any_other_and_its_neighbours_stay(
        self, store: Store, changes: Sequence[Change], expected: dict[str, Any]
    ) -> None:
        await _apply(store, *(PutUnit(_row(seq)) for seq in range(1, 11)), ArchiveUnits(range(1, 9), 60))
        await _move_all(store)
        before = list(await store.views.scan_units(after=0, limit=PLENTY))
        await _apply(store, *changes)
        changed = (await store.views.units([5]))[5]
        assert changed == before[4]._replace(**expected)
        assert await store.views.unit(changed.id) == changed
        others = [row for row in await store.views.scan_units(after=0, limit=PLENTY) if row.seq not in (4, 5, 6)]
        assert others == [row for row in before if row.seq not in (4, 5, 6)]
        checksum = await store.views.checksum()
        await _move_all(store)
        assert (await store.views.units([5]))[5] == changed
        assert await store.views.checksum() == checksum

    async def test_a_row_is_archived_and_restored_again_and_again(self, store: Store) -> None:
        rows = [_row(seq) for seq in range(1, 80)]
        await _apply(store, *(PutUnit(row) for row in rows))
        before = await store.views.checksum()
        for _ in range(3):
            await _apply(store, ArchiveUnits(range(10, 70), 60))
            await _move_all(store)
            await _apply(store, RestoreUnits(range(10, 70)))
            assert await store.views.checksum() == before
            await _move_all(store)
            assert await store.views.checksum() == before

    async def test_a_commit_that_is_refused_leaves_a_moved_row_as_it_was(self, store: Store) -> None:
        await _apply(store, *(PutUnit(_row(seq)) for seq in range(1, 6)), ArchiveUnits((1, 2, 3), 60))
        await _move_all(store)
        before = await store.views.checksum()
        wrong = entries(2)[1:]
        with pytest.raises(ValueError, match="does not continue"):
            await store.commit(Commit(entries=wrong, changes=[SetUnitStatus(2, "retracted")]))
        assert await store.views.checksum() == before
        await _apply(store, SetUnitStatus(2, "retracted"))
        assert (await store.views.units([2]))[2].status == "retracted"

    async def test_replaced_views_count_alone_and_their_archived_rows_move_again(self, store: Store) -> None:
        changes: list[Change] = [PutUnit(_row(seq)) for seq in range(1, 150)]
        changes += [ArchiveUnits(range(1, 100), 60), SetUnitStatus(5, "superseded"), PurgeUnits((7,), 61)]
        await _apply(store, *changes)
        before = await store.views.checksum()
        await _move_all(store)
        await store.replace_views(_batches(changes[:80], changes[80:]))
        assert await store.views.checksum() == before
        await _move_all(store)
        assert await store.views.checksum() == before
        await store.replace_views(_batches([PutUnit(_row(3))]))  # nothing else was ever there
        assert list(await store.views.scan_units(after=0, limit=PLENTY)) == [_row(3)]
        await _move_all(store)
        assert list(await store.views.scan_units(after=0, limit=PLENTY)) == [_row(3)]

    async def test_moved_rows_of_a_durable_store_are_there_again(self, open_store: OpenStore) -> None:
        store = open_store()
        await _apply(store, *(PutUnit(_row(seq)) for seq in range(1, 200)), ArchiveUnits(range(1, 150), 60))
        await _move_all(store)
        await _apply(store, SetUnitStatus(9, "retracted"), RestoreUnits((10,)))
        before = await store.views.checksum()
        await store.close()
        again = open_store()
        assert await again.has_every_view()
        if again.durable:
            assert await again.views.checksum() == before
            await _move_all(again)
            assert await again.views.checksum() == before
        await again.close()

    async def test_another_field_of_the_same_store_has_moved_rows_of_its_own(
        self, store: Store, open_store: OpenStore
    ) -> None:
        other = open_store(key=OTHER_KEY)
        for each in (store, other):
            await _apply(each, *(PutUnit(unit_row(seq)) for seq in (1, 2, 3)), ArchiveUnits((1, 2), 60))
        await _move_all(other)
        await _move_all(store)
        await _apply(other, SetUnitStatus(1, "retracted"))
        assert [row.status for row in await store.views.scan_units(after=0, limit=9)] == ["active"] * 3
        theirs = [row.status for row in await other.views.scan_units(after=0, limit=9)]
        assert theirs == ["retracted", "active", "active"]
        assert (await other.views.unit(unit_row(2).id)) == (await other.views.units([2]))[2]
        await store.replace_views(_batches([PutUnit(unit_row(1))]))
        assert len(await other.views.scan_units(after=0, limit=9)) == 3
        await other.close()

    async def test_a_full_store_is_archived_row_by_row_and_then_purged(self, open_store: OpenStore) -> None:
        store = open_store(max_bytes=SMALL_BYTES)
        units = await _fill(store)
        for part in _parts(units):
            await _make_room(store, part, ArchiveUnits(part, 60))
            await _move_all(store)
        for part in _parts(units):
            await _make_room(store, part, PurgeUnits(part, 61))
            await _move_all(store)
        rows = await store.views.scan_units(after=0, limit=PLENTY)
        assert [(row.seq, row.archived_epoch, row.purged_seq) for row in rows] == [(unit, 60, 61) for unit in units]
        further = entries(1, after=await store.log.head())
        await store.commit(Commit(entries=further, texts=[text(further[0].seq)]))
        await store.close()


def _row(seq: int) -> UnitRow:
    """Of every kind some: drafts, once drafts, with and without a score."""
    row = draft_row(seq) if seq % 5 == 0 else unit_row(seq, agent=seq % 3 + 1)
    return row._replace(
        score=None if seq % 4 == 0 else seq / 1_999,
        committed_seq=seq + 1_000 if seq % 11 == 0 else None,
        trust=seq % 9 if seq % 2 else None,
    )


async def _all_reads(store: Store, rows: Sequence[UnitRow]) -> tuple[object, ...]:
    views, seqs = store.views, [row.seq for row in rows]
    columns = await views.unit_columns(after=0, limit=PLENTY)
    return (
        list(await views.scan_units(after=0, limit=PLENTY)),
        list(await views.scan_units(after=seqs[100], limit=50)),
        [repr(list(column)) for column in columns],  # no number is equal to none
        dict(sorted((await views.units(seqs)).items())),
        [await views.unit(row.id) for row in rows[::10]],
        list(await views.drafted_units()),
        await views.checksum(),
    )


async def _move_all(store: Store) -> None:
    while await store.move_units(limit=AT_ONCE):
        pass


async def _apply(store: Store, *changes: Change) -> None:
    await store.commit(Commit(changes=changes))


async def _make_room(store: Store, units: Sequence[int], change: Change) -> None:
    written = entries(1, after=await store.log.head())
    await store.commit(Commit(entries=written, changes=[change], erased_texts=units, makes_room=True))


async def _fill(store: Store) -> list[int]:
    """Units, until there is no room for one more."""
    head: Head = await store.log.head()
    units: list[int] = []
    for count in (BATCH, 1):
        try:
            while True:
                written = entries(count, after=head)
                seqs = [entry.seq for entry in written]
                changes = [PutUnit(unit_row(seq)) for seq in seqs]
                await store.commit(Commit(entries=written, texts=[text(seq) for seq in seqs], changes=changes))
                units += seqs
                head = head_of(written)
        except StorageFull:
            continue
    return units


def _parts(units: Sequence[int]) -> list[Sequence[int]]:
    return [units[first : first + BATCH] for first in range(0, len(units), BATCH)]


async def _batches(*batches: Sequence[Change]) -> AsyncIterator[Sequence[Change]]:
    for batch in batches:
        yield batch
