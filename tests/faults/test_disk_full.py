"""A disk without room, and the cap on a store's size: STORAGE_FULL, reads go on, and writes work again with room."""

import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from fieldstone.backends.sqlite.store import SqliteStore
from fieldstone.core.errors import StorageFull
from fieldstone.core.events import UnitRecorded
from fieldstone.field.field import LocalField
from fieldstone.testing import KEY, ManualClock, SeededIds
from tests.faults.disk import FaultyDisk, faulty_disk, of_folder
from tests.faults.stores import open_field
from tests.messages import accepted, attune, attuned, join, record
from tests.requirements import requirement

SMALL_BYTES: Final = 2 * 1024 * 1024
LARGE_BYTES: Final = 32 * 1024 * 1024
MOST_UNITS: Final = 1_000  # far more than fit
FILLING: Final = "".join(f" filling{number}" for number in range(1_500))
TWO_DAYS_MS: Final = 2 * 24 * 60 * 60 * 1000

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # see test_io_errors


class SmallDisk(NamedTuple):
    folder: Path
    make_room: Callable[[], None]
    closing: Callable[[], AbstractContextManager[None]] = nullcontext  # see `_with_room`


@pytest.fixture(params=["tmpfs", "vfs"])
def small_disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SmallDisk]:
    """A real file system of 2 MB where one can be mounted; else, and in any case once, a small disk under SQLite."""
    if request.param == "tmpfs" and _mount(tmp_path, SMALL_BYTES):
        try:
            yield SmallDisk(tmp_path, lambda: _remount(tmp_path, LARGE_BYTES))
        finally:
            subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)
        return
    with faulty_disk(of_folder(tmp_path)) as disk:
        disk.shrink_to(SMALL_BYTES)
        yield SmallDisk(tmp_path, disk.heal, lambda: _with_room(disk))


@requirement("akashik:errors:storage-full", "akashik:attune:acknowledged-visible")
async def test_on_a_full_disk_reads_go_on_and_with_room_writes_do(small_disk: SmallDisk) -> None:
    path = small_disk.folder / "field.db"
    field = await open_field(SqliteStore.open(path, KEY))
    await join(field, "ada", "grace")
    units = await _fill(field)
    await _check_reads(field, units)
    small_disk.make_room()
    units |= {await accepted(field, record("ada", f"after: {FILLING}")): f"after: {FILLING}"}
    await _check_reads(field, units)
    await field.close()
    again = await open_field(SqliteStore.open(path, KEY), ids=SeededIds(2))
    await _check_reads(again, units)
    await _check_index(again)
    await again.close()


@requirement("akashik:level:durable")
async def test_a_store_that_filled_the_disk_can_be_opened_again_and_read(small_disk: SmallDisk) -> None:
    path = small_disk.folder / "field.db"
    clock = ManualClock()
    field = await open_field(SqliteStore.open(path, KEY), clock=clock)
    await join(field, "ada", "grace")
    await accepted(field, record("ada", "remembered", id="m-1"))
    units = await _fill(field)
    with small_disk.closing():
        await field.close()
    clock.advance(TWO_DAYS_MS)  # answers are due to be forgotten, which is a write
    again = await open_field(SqliteStore.open(path, KEY), ids=SeededIds(2), clock=clock)
    units |= await _fill(again)  # what closing gave free is used up
    await _check_reads(again, units, more=1)
    with small_disk.closing():
        await again.close()


@requirement("akashik:level:durable", "akashik:errors:storage-full")
async def test_a_store_is_opened_and_read_on_a_disk_without_a_free_byte(tmp_path: Path) -> None:
    path = tmp_path / "field.db"
    clock = ManualClock()
    with faulty_disk(of_folder(tmp_path)) as disk:
        field = await open_field(SqliteStore.open(path, KEY), clock=clock)
        await join(field, "ada", "grace")
        units = {await accepted(field, record("ada", text, id=text)): text for text in ("filling7 one", "unit two")}
        await field.close()
        clock.advance(TWO_DAYS_MS)
        disk.shrink_to(0)
        full = await open_field(SqliteStore.open(path, KEY), ids=SeededIds(2), clock=clock)
        await _check_reads(full, units)
        with pytest.raises(StorageFull):
            await accepted(full, record("ada", "no room"))
        await _check_reads(full, units)
        disk.heal()
        units[await accepted(full, record("ada", "room"))] = "room"
        await _check_reads(full, units)
        await full.close()


@requirement("akashik:errors:storage-full")
async def test_the_size_cap_refuses_writes_until_it_is_raised(tmp_path: Path) -> None:
    path = tmp_path / "field.db"
    field = await open_field(SqliteStore.open(path, KEY, max_bytes=SMALL_BYTES))
    await join(field, "ada", "grace")
    units = await _fill(field)
    assert path.stat().st_size <= SMALL_BYTES
    await _check_reads(field, units)
    await field.close()
    same = await open_field(SqliteStore.open(path, KEY, max_bytes=SMALL_BYTES), ids=SeededIds(2))
    with pytest.raises(StorageFull):
        await accepted(same, record("ada", f"still too much: {FILLING}"))
    await _check_reads(same, units)
    await same.close()
    raised = await open_field(SqliteStore.open(path, KEY, max_bytes=2 * SMALL_BYTES), ids=SeededIds(3))
    more = await _fill(raised)
    await _check_reads(raised, units | more)
    await _check_index(raised)
    await raised.close()


@requirement("akashik:errors:storage-full")
async def test_a_cap_below_the_present_size_only_stops_growth(tmp_path: Path) -> None:
    path = tmp_path / "field.db"
    field = await open_field(SqliteStore.open(path, KEY))
    await join(field, "ada", "grace")
    texts = [f"unit {number}: {FILLING}" for number in range(20)]
    units = {await accepted(field, record("ada", text)): text for text in texts}
    await field.close()
    capped = await open_field(SqliteStore.open(path, KEY, max_bytes=64 * 1024), ids=SeededIds(2))
    await _check_reads(capped, units)
    with pytest.raises(StorageFull):
        await accepted(capped, record("ada", f"too much: {FILLING}"))
    await _check_reads(capped, units)
    await capped.close()
    raised = await open_field(SqliteStore.open(path, KEY, max_bytes=LARGE_BYTES), ids=SeededIds(3))
    units[await accepted(raised, record("ada", f"enough: {FILLING}"))] = f"enough: {FILLING}"
    await _check_reads(raised, units)
    await _check_index(raised)
    await raised.close()


async def _fill(field: LocalField) -> dict[str, str]:
    """Record until there is no room. What was accepted: id → content."""
    units: dict[str, str] = {}
    for number in range(MOST_UNITS):
        text = f"unit {number}: {FILLING}"
        try:
            units[await accepted(field, record("ada", text))] = text
        except StorageFull as full:
            return units if full.code == "STORAGE_FULL" else {}
    raise AssertionError("there is always room")


async def _check_reads(field: LocalField, units: dict[str, str], *, more: int = 0) -> None:
    for unit_id, text in units.items():
        assert (await field.unit(unit_id)).content == text
    status = await field.status()
    assert status.units == len(units) + more
    assert [page async for page in _log(field)][-1] == status.log_entries
    shown = await attuned(field, attune("grace", "filling7 unit"))
    assert {unit.id for unit in shown} >= set(units)
    assert len(shown) == len(units) + more
    found = await field.verify()
    assert found.ok, found.first_bad


async def _check_index(field: LocalField) -> None:
    """Whatever was left behind while there was no room has caught up."""
    assert (await field.rebuild()).unchanged
    status = await field.status()
    [last] = (await field.log(after=status.text_index_position - 1, limit=1)).entries
    assert isinstance(last.entry.event, UnitRecorded)
    later = await field.log(after=status.text_index_position, limit=1_000)
    assert not [line for line in later.entries if isinstance(line.entry.event, UnitRecorded)]


async def _log(field: LocalField) -> AsyncIterator[int]:
    after: int | None = 0
    while after is not None:
        page = await field.log(after=after, limit=1_000)
        if page.entries:
            yield page.entries[-1].entry.seq
        after = page.next


@contextmanager
def _with_room(disk: FaultyDisk) -> Iterator[None]:
    """SQLite takes no notice when there is no room for its checkpoint; apsw raises what our disk raised in it."""
    disk.heal()
    yield
    disk.shrink_to(SMALL_BYTES)


def _mount(folder: Path, size_bytes: int) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "fieldstone-test", str(folder)]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _remount(folder: Path, size_bytes: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size_bytes}", str(folder)], check=True)
