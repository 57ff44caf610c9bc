"""Rows of archived units in the cold file of an SQLite store: where they lie, and what is left when it breaks."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fieldstone.backends.memory.store import MemoryStore
from fieldstone.backends.sqlite import store as sqlite_store
from fieldstone.backends.sqlite.cold import cold_path
from fieldstone.backends.sqlite.cold_units import packed_row
from fieldstone.backends.sqlite.store import SqliteStore
from fieldstone.core.errors import StorageFull
from fieldstone.ports.store import Commit, Store
from fieldstone.ports.views import (
    ArchiveUnits,
    Change,
    MarkEcho,
    PurgeUnits,
    PutUnit,
    RestoreUnits,
    SetUnitStatus,
    UnitRow,
)
from fieldstone.testing import KEY
from fieldstone.testing.rows import draft_row, entries, text, unit_row
from tests.faults.disk import faulty_disk
from tests.requirements import requirement

UNITS: Final = 200
ARCHIVED: Final = range(1, 151)
AT_ONCE: Final = 64
PLENTY: Final = 1_000_000
MOST_SEQ: Final = 140


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "field.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore.open(path, KEY)
    await _apply(store, *(PutUnit(unit_row(seq)) for seq in range(1, UNITS + 1)), ArchiveUnits(ARCHIVED, 300))
    yield store
    await store.close()


# --- where they lie --------------------------------------------------------------------------------------------------


async def test_the_hot_table_and_its_indexes_hold_what_is_not_archived_and_nothing_else(
    store: SqliteStore, path: Path
) -> None:
    before = await store.views.checksum()
    assert await _moved(store) == len(ARCHIVED)
    assert _execute(path, "SELECT count(*) FROM units") == UNITS - len(ARCHIVED)
    assert _execute(path, "SELECT count(*) FROM units INDEXED BY units_archived WHERE archived_epoch IS NOT NULL") == 0
    assert await store.views.checksum() == before
    assert await _moved(store) == 0


async def test_a_row_that_changes_is_hot_until_it_is_moved_again(store: SqliteStore, path: Path) -> None:
    await _moved(store)
    await _apply(store, SetUnitStatus(7, "retracted"), PurgeUnits((8,), 301))
    assert _execute(path, "SELECT count(*) FROM units") == UNITS - len(ARCHIVED) + 2
    assert await _moved(store) == 2
    assert _execute(path, "SELECT count(*) FROM units") == UNITS - len(ARCHIVED)
    rows = await store.views.units([7, 8])
    assert (rows[7].status, rows[8].purged_seq) == ("retracted", 301)


async def test_what_is_restored_leaves_no_copy(store: SqliteStore, path: Path) -> None:
    await _moved(store)
    await _apply(store, RestoreUnits(range(1, 100)))
    await _moved(store)
    assert _execute(cold_path(path), "SELECT count(*) FROM unit_blocks") == 2  # of those that are still archived
    await _apply(store, RestoreUnits(range(100, 151)))
    await _moved(store)
    assert _execute(cold_path(path), "SELECT count(*) FROM unit_blocks") == 0
    assert _execute(path, "SELECT count(*) FROM moved_units") == 0


async def test_our_own_readers_of_moved_rows_keep_no_older_state(store: SqliteStore) -> None:
    await _moved(store)
    await _apply(store, SetUnitStatus(7, "retracted"))
    await store.views.scan_units(after=0, limit=1)
    await store.views.unit_columns(after=0, limit=1)
    await store.views.unit(unit_row(5).id)
    await store.views.drafted_units()
    assert await store.scour()
    await _moved(store)
    assert await store.scour()


# --- when something comes in between ---------------------------------------------------------------------------------


async def test_a_row_that_changes_after_its_copy_was_made_stays_with_its_change(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = store.cold_units.copy

    async def copy_and_change(rows: Mapping[int, bytes], head: int) -> None:
        await copy(rows, head)
        monkeypatch.setattr(store.cold_units, "copy", copy)
        await _apply(store, SetUnitStatus(3, "superseded"), RestoreUnits((4,)), MarkEcho(5, 1))

    monkeypatch.setattr(store.cold_units, "copy", copy_and_change)
    await _moved(store)
    rows = await store.views.units([3, 4, 5])
    assert (rows[3].status, rows[4].archived_epoch, rows[5].echo_of) == ("superseded", None, 1)
    assert await store.move_units(limit=AT_ONCE) == 0


async def test_rows_are_read_in_several_turns_and_one_that_changes_in_between_stays_with_its_change(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_store, "READ_UNITS", 10)
    moving = asyncio.ensure_future(store.move_units(limit=AT_ONCE))
    await asyncio.sleep(0)  # the first few are read
    await _apply(store, SetUnitStatus(3, "superseded"), RestoreUnits((AT_ONCE,)))
    assert await moving >= AT_ONCE - 1
    assert _execute(path, f"SELECT count(*) FROM units WHERE position & 0xffffffff IN (3, {AT_ONCE})") == 2
    rows = await store.views.units([3, AT_ONCE])
    assert (rows[3].status, rows[AT_ONCE].archived_epoch) == ("superseded", None)
    await _moved(store)
    assert _execute(path, "SELECT count(*) FROM units") == UNITS - len(ARCHIVED) + 1


@pytest.mark.parametrize("changed", [True, False])
async def test_of_a_row_in_both_places_the_hot_one_counts(store: SqliteStore, path: Path, changed: bool) -> None:
    await store.cold_units.copy(_packed(await store.views.scan_units(after=0, limit=50)), 0)  # and there it was cut off
    if changed:
        await _apply(store, SetUnitStatus(7, "retracted"))
    before = await store.views.checksum()
    await store.close()
    again = SqliteStore.open(path, KEY)
    assert await again.has_every_view()
    assert await again.views.checksum() == before
    assert await _moved(again) == len(ARCHIVED)
    assert await again.views.checksum() == before
    assert (await again.views.units([7]))[7].status == ("retracted" if changed else "active")
    await again.close()


async def test_without_room_for_the_copies_every_row_stays_where_it_is(path: Path) -> None:
    with faulty_disk(lambda name: "-cold" in name) as disk:
        store = SqliteStore.open(path, KEY)
        await _apply(store, *(PutUnit(unit_row(seq)) for seq in range(1, UNITS)), ArchiveUnits(ARCHIVED, 300))
        await store.cold.put([text(1)])
        before = await store.views.checksum()
        disk.shrink_to(disk.taken_bytes() + 4_000)
        with pytest.raises(StorageFull):
            await store.move_units(limit=PLENTY)
        assert await store.views.checksum() == before
        disk.heal()
        assert await _moved(store) == len(ARCHIVED)
        assert await store.views.checksum() == before
        await store.close()


async def test_rows_that_could_not_leave_are_read_and_move_the_next_time(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await store.views.checksum()
    monkeypatch.setattr(sqlite_store, "LEAVING_UNITS", 20)
    leave, calls = store.cold_units.leave, iter(range(PLENTY))

    def leave_or_fail(writer: apsw.Connection, rows: Mapping[int, bytes]) -> None:
        leave(writer, rows)
        if next(calls) == 1:
            raise StorageFull

    monkeypatch.setattr(store.cold_units, "leave", leave_or_fail)
    with pytest.raises(StorageFull):
        await store.move_units(limit=AT_ONCE)
    assert await store.views.checksum() == before
    assert await _moved(store) == len(ARCHIVED) - AT_ONCE, "the others have their copies"
    assert _execute(path, "SELECT count(*) FROM units") == UNITS - len(ARCHIVED)
    assert await store.views.checksum() == before


async def test_rows_leave_with_those_that_are_archived_next(store: SqliteStore, path: Path) -> None:
    before = await store.views.checksum()
    assert await store.move_units(limit=100, at_once=False) == 100
    assert _execute(path, "SELECT count(*) FROM units") == UNITS
    with pytest.raises(ValueError, match="does not continue"):
        await store.commit(Commit(entries=entries(2)[1:], changes=[ArchiveUnits((160, 161), 301)]))
    await _apply(store, SetUnitStatus(1, "retracted"))
    assert _execute(path, "SELECT count(*) FROM units") == UNITS
    await _apply(store, SetUnitStatus(1, "active"), ArchiveUnits(range(151, 171), 301))
    assert _execute(path, "SELECT count(*) FROM units") == UNITS - 20
    await _apply(store, RestoreUnits(range(151, 171)), SetUnitStatus(90, "contested"))
    assert await _moved(store) == len(ARCHIVED) - 100 + 1, "the changed one is copied again"
    assert (await store.views.units([90]))[90].status == "contested"
    await _apply(store, SetUnitStatus(90, "active"))
    assert await store.views.checksum() == before


# --- what is lost ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", ["the file", "what came last"])
async def test_rows_that_are_lost_are_told_and_replaced_views_need_them_no_more(
    store: SqliteStore, path: Path, tmp_path: Path, lost: str
) -> None:
    before = await store.views.checksum()
    await store.move_units(limit=AT_ONCE)
    older = await _closed_copy(store, path, tmp_path)
    again = SqliteStore.open(path, KEY)
    await _moved(again)
    await again.close()
    cold_path(path).unlink()
    if lost == "what came last":
        shutil.copy(older, cold_path(path))
    broken = SqliteStore.open(path, KEY)
    assert not await broken.has_every_view()
    for read in (broken.views.checksum(), broken.views.units([140]), broken.views.unit(unit_row(140).id)):
        with pytest.raises(apsw.CorruptError):
            await read
    await broken.replace_views(_all_changes())
    assert await broken.has_every_view()
    assert await broken.views.checksum() == before
    assert await _moved(broken) == len(ARCHIVED)
    await broken.close()
    whole = SqliteStore.open(path, KEY)
    assert await whole.has_every_view()
    assert await whole.views.checksum() == before
    await whole.close()


@pytest.mark.parametrize("damage", ["columns = zeroblob(length(columns))", "ids = x''", "columns = ids"])
async def test_a_damaged_block_is_told_and_mended_by_a_rebuild(store: SqliteStore, path: Path, damage: str) -> None:
    before = await store.views.checksum()
    await _moved(store)
    _execute(cold_path(path), f"UPDATE unit_blocks SET {damage} WHERE position & 0xffffffff = 1")
    with pytest.raises(apsw.CorruptError):
        await store.views.units([70])
    with pytest.raises(apsw.CorruptError):
        await store.views.checksum()
    assert (await store.views.units([5]))[5].seq == 5
    await store.replace_views(_all_changes())
    assert await _moved(store) == len(ARCHIVED)
    assert await store.views.checksum() == before


async def test_rows_of_a_newer_cold_file_that_this_store_never_moved_count_for_nothing(
    store: SqliteStore, path: Path, tmp_path: Path
) -> None:
    older = tmp_path / "older.db"
    await store.close()
    shutil.copy(path, older)
    newer = SqliteStore.open(path, KEY)
    await _apply(newer, *(PutUnit(unit_row(seq)) for seq in range(UNITS + 1, UNITS + 9)))
    await _apply(newer, ArchiveUnits(range(UNITS + 1, UNITS + 9), 400))
    await _moved(newer)
    await newer.close()
    shutil.copy(older, path)  # as from a backup
    back = SqliteStore.open(path, KEY)
    assert [row.seq for row in await back.views.scan_units(after=0, limit=PLENTY)] == list(range(1, UNITS + 1))
    assert await back.views.unit(unit_row(UNITS + 1).id) is None
    await back.close()


@requirement("akashik:compact:archive-rows-other-time")
@pytest.mark.parametrize("older", ["the cold file", "the store"])
async def test_a_row_of_another_time_than_the_store_is_told_though_it_lies_where_it_should(
    store: SqliteStore, path: Path, tmp_path: Path, older: str
) -> None:
    await store.commit(Commit(entries=entries(1)))
    await _moved(store)
    file = cold_path(path) if older == "the cold file" else path
    await store.close()
    kept = shutil.copy(file, tmp_path / "kept")
    again = SqliteStore.open(path, KEY)
    assert await again.has_every_view()
    change: list[Change] = [SetUnitStatus(7, "retracted"), PurgeUnits((8,), 2)]
    await again.commit(Commit(entries=entries(2)[1:], changes=change))
    assert await _moved(again) == len(change)
    await again.close()
    shutil.copy(kept, file)  # as from a backup
    mixed = SqliteStore.open(path, KEY)
    assert not await mixed.has_every_view()
    await mixed.replace_views(_all_changes())
    await _moved(mixed)
    await mixed.close()
    mended = SqliteStore.open(path, KEY)
    assert await mended.has_every_view()
    await mended.close()


async def test_a_cold_file_from_before_rows_were_moved_takes_them(store: SqliteStore, path: Path) -> None:
    await store.cold.put([text(1)])
    before = await store.views.checksum()
    await store.close()
    query = "SELECT group_concat(name) FROM sqlite_schema WHERE type = 'table' AND name NOT IN ('streams', 'blocks')"
    for table in str(_execute(cold_path(path), query)).split(","):
        _execute(cold_path(path), f"DROP TABLE {table}")
    _execute(cold_path(path), "PRAGMA user_version=1")
    again = SqliteStore.open(path, KEY)
    assert await again.texts.get([1]) == {1: text(1)}
    assert await _moved(again) == len(ARCHIVED)
    assert await again.views.checksum() == before
    await again.close()


# --- two ways to keep the same ---------------------------------------------------------------------------------------

seqs = st.lists(st.integers(1, MOST_SEQ), min_size=1, max_size=20, unique=True)
CHANGES: Final = ("status", "echo", "archive", "restore", "purge")
kinds = st.sampled_from((*CHANGES, "move", "move with others", "copy only", "rebuild"))
steps = st.lists(st.tuples(kinds, seqs), max_size=15)


@settings(max_examples=15)  # a file each, written step by step
@given(steps=steps, limit=st.integers(1, MOST_SEQ))
def test_memory_and_sqlite_have_the_same_rows_whatever_was_moved_when(
    steps: list[tuple[str, list[int]]], limit: int
) -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(_compare(Path(folder) / "field.db", steps, limit))


async def _compare(path: Path, steps: list[tuple[str, list[int]]], limit: int) -> None:
    made: list[Change] = [PutUnit(draft_row(seq) if seq % 9 == 0 else unit_row(seq)) for seq in range(1, MOST_SEQ + 1)]
    sqlite, memory = SqliteStore.open(path, KEY), MemoryStore(KEY)
    stores: tuple[Store, ...] = (memory, sqlite)
    for store in stores:
        await _apply(store, *made)
    done = list(made)
    for number, (step, chosen) in enumerate(steps):
        change = _change(step, chosen, number)
        if change is not None:
            done.append(change)
            for store in stores:
                await _apply(store, change)
        elif step.startswith("move"):
            await sqlite.move_units(limit=len(chosen) * 5, at_once=step == "move")
        elif step == "copy only":
            rows = (await sqlite.views.units(chosen)).values()
            await sqlite.cold_units.copy(_packed(row for row in rows if row.archived_epoch is not None), 0)
        else:
            await sqlite.replace_views(_batches(made, done[len(made) :]))
        assert await sqlite.views.checksum() == await memory.views.checksum()
    for after in (0, limit):
        expected = await memory.views.scan_units(after=after, limit=limit)
        assert list(await sqlite.views.scan_units(after=after, limit=limit)) == list(expected)
    assert list(await sqlite.views.drafted_units()) == list(await memory.views.drafted_units())
    before = await sqlite.views.checksum()
    await sqlite.close()
    again = SqliteStore.open(path, KEY)
    assert await again.has_every_view()
    assert await again.views.checksum() == before
    await again.close()


def _packed(rows: Iterable[UnitRow]) -> dict[int, bytes]:
    return {row.seq: packed_row(row) for row in rows}


def _change(step: str, seqs: list[int], number: int) -> Change | None:
    match step:
        case "status":
            return SetUnitStatus(seqs[0], "superseded" if number % 2 else "contested")
        case "echo":
            return MarkEcho(seqs[0], number + 1)
        case "archive":
            return ArchiveUnits(seqs, 300 + number)
        case "restore":
            return RestoreUnits(seqs)
        case "purge":
            return PurgeUnits(seqs, 400 + number)
        case _:
            return None


async def _all_changes() -> AsyncIterator[Sequence[Change]]:
    yield [PutUnit(unit_row(seq)) for seq in range(1, UNITS + 1)]
    yield [ArchiveUnits(ARCHIVED, 300)]


async def _batches(*batches: Sequence[Change]) -> AsyncIterator[Sequence[Change]]:
    for batch in batches:
        yield batch


async def _closed_copy(store: SqliteStore, path: Path, folder: Path) -> Path:
    await store.close()
    return Path(shutil.copy(cold_path(path), folder / "older-cold"))


async def _moved(store: Store) -> int:
    moved = 0
    while count := await store.move_units(limit=AT_ONCE):
        moved += count
    return moved


async def _apply(store: Store, *changes: Change) -> None:
    await store.commit(Commit(changes=changes))


def _execute(path: Path, statement: str) -> object:
    connection = apsw.Connection(str(path))
    result: object = connection.execute(statement).get
    connection.close()
    return result
