"""A store that fails a commit: every caller is told, nothing half-done is seen, and the next ones are served."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

import pytest

from fieldstone.backends.memory.store import MemoryStore
from fieldstone.backends.sqlite.store import SqliteStore
from fieldstone.core.errors import FieldError, StorageFull
from fieldstone.core.replies import Accepted
from fieldstone.field.field import LocalField
from fieldstone.ports.log import StoredEntry
from fieldstone.testing import KEY, FaultyLog, FaultyStore, SeededIds, die, fail
from tests.faults.stores import open_field
from tests.messages import accepted, attune, attuned, join, record, relation, retract
from tests.requirements import requirement

CROWD: Final = 80  # so many that a writer may make several groups of them, one decided on top of the other
WAIT_S: Final = 20.0  # a bound for what would hang, not a pause


@requirement("akashik:errors:storage-full", "akashik:record:refusal-changes-nothing")
async def test_a_refused_commit_is_told_to_all_of_its_group_and_leaves_nothing() -> None:
    # The group, and then each of its five alone.
    store = FaultyStore(MemoryStore(KEY), at=3, strike=fail(StorageFull()), times=6)
    field = await open_field(store)
    await join(field, "ada", "grace")
    before = await store.log.head()
    outcomes = await _together(field, 5)
    assert [type(outcome) for outcome in outcomes] == [StorageFull] * 5
    assert await store.log.head() == before
    assert (await field.status()).units == 0
    await accepted(field, record("ada", "there is room again"))
    assert (await field.verify()).ok
    await field.close()


@pytest.mark.parametrize("at", range(3, 8))
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_group_that_has_no_room_is_written_one_by_one(at: int, kind: str, tmp_path: Path) -> None:
    inner = MemoryStore(KEY) if kind == "memory" else SqliteStore.open(tmp_path / "field.db", KEY)
    store = FaultyStore(inner, at=at, strike=fail(StorageFull()))
    field = await open_field(store)
    await join(field, "ada", "grace")
    told: list[object] = []
    while store.commits < at + 2:
        told += await asyncio.wait_for(_together(field, CROWD), WAIT_S)
    refused = [outcome for outcome in told if isinstance(outcome, StorageFull)]
    taken = [outcome.memory_unit_id for outcome in told if isinstance(outcome, Accepted)]
    assert not refused, "there was room for each of them alone"
    assert len(taken) == len(told)
    shown = await attuned(field, attune("grace", include_own=True))
    assert {unit.id for unit in shown} == set(taken)
    assert (await field.status()).units == len(taken)
    assert (await field.verify()).ok
    assert (await field.rebuild()).unchanged
    await field.close()


async def test_what_stands_on_a_unit_of_a_refused_group_is_refused_too() -> None:
    """Groups are decided ahead of the disk; a relation to a unit that then was not written must not be."""
    store = FaultyStore(MemoryStore(KEY), at=2, strike=fail(StorageFull()), times=1)
    field = await open_field(store, ids=SeededIds(1))
    await join(field, "ada")
    probe = await open_field(MemoryStore(KEY), ids=SeededIds(1))
    await join(probe, "ada")
    crowd = [record("ada", f"unit {number}") for number in range(CROWD)]
    coming = [await accepted(probe, message) for message in crowd]
    last = record("ada", "superseding", relations=[relation("supersedes", coming[0])])
    outcomes = await asyncio.gather(
        *(field.send(message) for message in crowd),
        field.send(retract("ada", coming[1])),
        field.send(last),
        return_exceptions=True,
    )
    units = (await field.status()).units
    assert units == sum(isinstance(outcome, Accepted) for outcome in outcomes)
    assert (await field.verify()).ok
    assert (await field.rebuild()).unchanged
    await field.close()
    await probe.close()


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_store_that_breaks_is_told_to_everyone_and_read_again(
    when: Literal["before", "after"], tmp_path: Path
) -> None:
    """An error that is none of the Field's own: nobody knows whether the commit is there, so the store is asked."""
    store = FaultyStore(
        SqliteStore.open(tmp_path / "field.db", KEY), at=3, when=when, strike=fail(OSError("loose cable"))
    )
    field = await open_field(store)
    await join(field, "ada", "grace")
    outcomes = await asyncio.wait_for(_together(field, 3), WAIT_S)
    assert [type(outcome) for outcome in outcomes] == [OSError] * 3
    there = 0 if when == "before" else 3
    assert (await field.status()).units == there
    unit = await accepted(field, record("ada", "the cable holds"))
    shown = await attuned(field, attune("grace", "cable unit"))
    assert len(shown) == there + 1
    assert unit in {each.id for each in shown}
    assert (await field.verify()).ok
    assert (await field.rebuild()).unchanged
    await field.close()


async def test_a_store_that_neither_writes_nor_reads_leaves_nobody_waiting() -> None:
    broken = False

    def noise(entries: Sequence[StoredEntry]) -> Sequence[StoredEntry]:
        if broken:
            raise OSError("the disk makes a noise")
        return entries

    memory = MemoryStore(KEY)
    store = FaultyStore(
        memory, at=3, times=100, strike=fail(OSError("the disk makes a noise")), log=FaultyLog(memory.log, noise)
    )
    field = await open_field(store)
    await join(field, "ada", "grace")
    broken = True
    for _ in range(2):
        outcomes = await asyncio.wait_for(_together(field, 3), WAIT_S)
        assert all(isinstance(outcome, OSError) for outcome in outcomes)


# --- a process that dies in a commit ---------------------------------------------------------------------------------


@requirement("akashik:idempotency:across-restarts")
@pytest.mark.parametrize(("when", "there"), [("before", 1), ("after", 2)])
async def test_a_process_that_dies_in_a_commit_leaves_all_of_it_or_nothing(
    when: str, there: int, tmp_path: Path
) -> None:
    path = tmp_path / "field.db"
    command = [sys.executable, "-m", "tests.faults.test_faulty_store", str(path), when]
    died = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False, timeout=60)
    assert died.returncode == -signal.SIGKILL, died.stderr
    [acknowledged] = died.stdout.split()
    field = await open_field(SqliteStore.open(path, KEY), ids=SeededIds(2))
    assert (await field.status()).units == there
    assert (await field.unit(acknowledged)).content == "first"
    assert (await field.verify()).ok
    assert (await field.rebuild()).unchanged
    again = await accepted(field, record("ada", "second", id="m-2"))
    assert (await field.unit(again)).content == "second"
    assert (await field.status()).units == 2
    await field.close()


async def _die_in_the_third_commit(path: Path, when: Literal["before", "after"]) -> None:
    field = await open_field(FaultyStore(SqliteStore.open(path, KEY), at=3, when=when, strike=die))
    await join(field, "ada")
    print(await accepted(field, record("ada", "first", id="m-1")), flush=True)
    await accepted(field, record("ada", "second", id="m-2"))


async def _together(field: LocalField, count: int) -> list[object]:
    sent = (field.send(record("ada", f"unit {number} of {count}")) for number in range(count))
    outcomes = await asyncio.gather(*sent, return_exceptions=True)
    assert all(isinstance(outcome, Accepted | FieldError | OSError) for outcome in outcomes), outcomes
    return list(outcomes)


if __name__ == "__main__":
    asyncio.run(_die_in_the_third_commit(Path(sys.argv[1]), "before" if sys.argv[2] == "before" else "after"))
