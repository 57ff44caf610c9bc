"""Rows of archived units leave the hot table, and nobody who uses the field sees a difference."""

from pathlib import Path
from typing import Final

import apsw
import pytest
from structlog.testing import capture_logs

from fieldstone.backends.sqlite.cold import cold_path
from fieldstone.backends.sqlite.cold_units import ColdUnits
from fieldstone.backends.sqlite.store import SqliteStore
from fieldstone.core.errors import StorageFull
from fieldstone.core.replies import Compacted
from fieldstone.core.requests import Compact, CompactFilter, Message
from fieldstone.core.vocabulary import Strategy
from fieldstone.field.field import LocalField
from fieldstone.projections import cold_follower
from fieldstone.testing import KEY
from tests.field.fields import opened
from tests.messages import accepted, attune, attuned, join, record, register, retract
from tests.requirements import requirement

UNITS: Final = 12


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "field.db"


@requirement("akashik:compact:archive-rows")
@requirement("akashik:compact:archive-readable")
@pytest.mark.parametrize("at_once", [5, 1_000])
async def test_archived_units_have_no_row_in_the_hot_table_and_are_found_and_read_as_before(
    path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(cold_follower, "MOVED_AT_ONCE", at_once)
    field, units = await _filled(path)
    before = [await field.unit(unit) for unit in units]
    await _compacted(field, "archive")
    assert _hot_rows(path) == 1  # what is no finding stays
    assert [(await field.unit(unit)).content for unit in units] == [unit.content for unit in before]
    assert await _found(field) == set()
    assert await _found(field, include_archived=True) == set(units)
    await field.close()
    field = await opened(store=SqliteStore.open(path, KEY))
    assert await _found(field, include_archived=True) == set(units)
    assert (await field.verify()).ok
    await field.close()


@requirement("akashik:compact:restore")
async def test_restored_units_have_their_rows_in_the_hot_table_again(path: Path) -> None:
    field, units = await _filled(path)
    await _compacted(field, "archive")
    assert await field.restore(units[:4]) == 4
    assert _hot_rows(path) == 5
    assert await _found(field) == set(units[:4])
    assert (await field.rebuild()).unchanged
    await field.close()


async def test_a_unit_that_is_retracted_after_it_was_archived_is_retracted_and_moves_again(path: Path) -> None:
    field, units = await _filled(path)
    await _compacted(field, "archive")
    await field.send(retract("ada", units[3]))
    assert (await field.unit(units[3])).status == "retracted"
    assert _hot_rows(path) == 2
    await field.close()
    field = await opened(store=SqliteStore.open(path, KEY))
    assert _hot_rows(path) == 1
    assert (await field.unit(units[3])).status == "retracted"
    assert (await field.rebuild()).unchanged
    await field.close()


async def test_after_a_rebuild_the_rows_of_archived_units_move_again(path: Path) -> None:
    field, units = await _filled(path)
    await _compacted(field, "archive")
    assert (await field.rebuild()).unchanged
    assert _hot_rows(path) == 1
    assert (await field.unit(units[0])).content == "quagga 0"
    await field.close()


@pytest.mark.parametrize("strategy", ["summarize", "purge"])
async def test_originals_of_a_synthesis_and_units_purged_after_they_were_archived_lie_with_the_archived(
    path: Path, strategy: Strategy
) -> None:
    field, _ = await _filled(path)
    if strategy == "purge":
        await _compacted(field, "archive")
    answer = await _compacted(field, strategy)
    assert answer.units_affected == UNITS
    assert _hot_rows(path) == 1 + answer.synthesis_units_created
    assert (await field.rebuild()).unchanged
    await field.close()


@requirement("akashik:compact:archive-rows-lost")
async def test_without_its_cold_file_a_field_opens_with_rows_built_again_from_the_log_and_says_so(path: Path) -> None:
    field, _ = await _filled(path)
    await _compacted(field, "archive")
    checksum = await field._store.views.checksum()
    await field.close()
    for lost in path.parent.glob(f"{cold_path(path).name}*"):
        lost.unlink()
    with capture_logs() as told:
        field = await opened(store=SqliteStore.open(path, KEY))
    assert [line["log_level"] for line in told if "missing beside the store" in line["event"]] == ["warning"]
    assert await field._store.views.checksum() == checksum
    assert _hot_rows(path) == 1
    await field.close()


@requirement("akashik:compact:archive-rows-no-room")
async def test_a_field_opens_without_room_for_the_rows_that_are_still_to_move(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    field, units = await _filled(path)
    await _compacted(field, "archive")
    await field.send(retract("ada", units[3]))
    await field.close()

    async def no_room(*_: object) -> None:
        raise StorageFull

    with monkeypatch.context() as full, capture_logs() as told:
        full.setattr(ColdUnits, "copy", no_room)
        field = await opened(store=SqliteStore.open(path, KEY))
    assert [line["log_level"] for line in told if "no room to move rows" in line["event"]] == ["warning"]
    assert _hot_rows(path) == 2
    assert (await field.unit(units[3])).status == "retracted"
    assert await _found(field, include_archived=True) == {*units} - {units[3]}
    await field.close()
    await (await opened(store=SqliteStore.open(path, KEY))).close()
    assert _hot_rows(path) == 1


async def _filled(path: Path) -> tuple[LocalField, list[str]]:
    field = await opened(store=SqliteStore.open(path, KEY))
    await join(field, "ada", "grace")
    await field.send(register("op", authority=10))
    units = [await accepted(field, record("ada", f"quagga {number}")) for number in range(UNITS)]
    await accepted(field, record("ada", "which okapi?", type="question"))
    return field, units


async def _compacted(field: LocalField, strategy: Strategy) -> Compacted:
    wanted = CompactFilter(types=("finding",))
    answer = await field.send(Message("COMPACT", "op", Compact(strategy, wanted, verify=False)))
    assert isinstance(answer, Compacted)
    return answer


async def _found(field: LocalField, *, include_archived: bool = False) -> set[str]:
    shown = await attuned(field, attune("grace", "quagga", include_archived=include_archived))
    return {unit.id for unit in shown if unit.type == "finding"}


def _hot_rows(path: Path) -> int:
    connection = apsw.Connection(str(path))
    count: int = connection.execute("SELECT count(*) FROM units").get
    connection.close()
    return count
