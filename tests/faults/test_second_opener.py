"""A store has one holder. The next one is told who it is; a holder that is killed gives the store back."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from fieldstone.field.field import LocalField
from fieldstone.ports.lease import StoreHeld
from fieldstone.ports.log import FieldKey
from fieldstone.settings import Settings
from fieldstone.testing import SeededIds
from fieldstone.wiring import open_local_field, open_stores
from tests.faults.stores import open_field
from tests.messages import accepted, attune, attuned, join, record

PROGRAM: Final = "the first holder"
HOLD: Final = f"""
import asyncio, sys
from fieldstone.settings import Settings
from fieldstone.wiring import open_local_field

async def hold():
    field = await open_local_field(Settings(db=sys.argv[1]), program={PROGRAM!r})
    print("held", flush=True)
    sys.stdin.readline()
    await field.close()

asyncio.run(hold())
"""


@contextmanager
def holder_of(path: Path) -> "Iterator[subprocess.Popen[str]]":
    """Another process that has the store until it is killed, or told to go by a line."""
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


async def opened(path: Path) -> LocalField:
    return await open_local_field(Settings(db=str(path)), program="the second")


async def test_a_store_of_two_names_has_one_holder_and_its_other_files_once(tmp_path: Path) -> None:
    """Archived texts, keys and secrets are nowhere else: by the other name they would be missing."""
    path, link = tmp_path / "field.db", tmp_path / "names" / "link.db"
    link.parent.mkdir()
    link.symlink_to(path)
    for first, second in ((path, link), (link, path)):
        field = await opened(first)
        with pytest.raises(StoreHeld):
            await opened(second)
        await field.close()
    assert list(link.parent.iterdir()) == [link]


async def test_the_second_opener_is_told_which_process_holds_the_store_and_since_when(tmp_path: Path) -> None:
    path = tmp_path / "field.db"
    with holder_of(path) as process:
        with pytest.raises(StoreHeld) as held:
            await opened(path)
        sentence = str(held.value)
        assert str(path) in sentence
        assert f"{PROGRAM} (process {process.pid} on " in sentence
        assert held.value.holder is not None
        assert f"since {held.value.holder.since}" in sentence
        assert held.value.holder.since.endswith("Z")


async def test_a_holder_that_is_killed_gives_the_store_back(tmp_path: Path) -> None:
    path = tmp_path / "field.db"
    with holder_of(path) as process:
        process.kill()
        process.wait()
        field = await opened(path)
    await join(field, "ada")
    unit = await accepted(field, record("ada", "after the first"))
    assert (await field.unit(unit)).content == "after the first"
    await field.close()


async def test_a_holder_that_goes_gives_the_store_back(tmp_path: Path) -> None:
    path = tmp_path / "field.db"
    with holder_of(path) as process:
        process.communicate("go\n")
        assert process.returncode == 0
        field = await opened(path)
        await field.close()


async def test_within_one_process_too_there_is_one_holder(tmp_path: Path) -> None:
    path = tmp_path / "field.db"
    field = await opened(path)
    with pytest.raises(StoreHeld, match=f"process {os.getpid()} on "):
        await opened(path)
    await join(field, "ada")  # whoever was refused has not disturbed it
    await field.close()
    again = await opened(path)
    await again.close()


@pytest.mark.parametrize("kind", ["sqlite", "memory"])
async def test_the_fields_of_one_store_are_used_side_by_side_and_one_goes_on_when_another_is_closed(
    tmp_path: Path, kind: str
) -> None:
    stores = open_stores(Settings(db=str(tmp_path / "field.db") if kind == "sqlite" else "memory:"))
    keys = (FieldKey("acme", "research"), FieldKey("umbrella", "research"))
    fields = [await open_field(await stores.open(key), ids=SeededIds(seed)) for seed, key in enumerate(keys)]
    ours, theirs = fields
    for field in fields:
        await join(field, "ada", "grace")
    await asyncio.gather(
        *(accepted(ours, record("ada", f"our cache {number}")) for number in range(20)),
        *(accepted(theirs, record("ada", f"their cache {number}")) for number in range(20)),
    )
    await ours.close()
    await accepted(theirs, record("ada", "after the first"))
    shown = await attuned(theirs, attune("grace", "cache", max_units=100))
    assert len(shown) == 21
    assert not [unit for unit in shown if unit.content.startswith("our")]
    again = await open_field(await stores.open(keys[0]), ids=SeededIds(7))
    assert (await again.status()).units == 20
    for field in (again, theirs):
        assert (await field.verify()).ok
        await field.close()
    await stores.close()


async def test_a_store_that_is_open_for_all_its_fields_has_one_holder_until_it_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "field.db"
    stores = open_stores(Settings(db=str(path)), program=PROGRAM)
    await (await stores.open(FieldKey("acme", "research"))).close()
    with pytest.raises(StoreHeld, match=PROGRAM):
        await opened(path)
    await stores.close()
    await (await opened(path)).close()
