"""An export that was once written can be imported today, and gives the field that it was made from."""

import secrets
from collections.abc import Callable
from pathlib import Path

import pytest

from fieldstone.backends.memory.store import MemoryStore
from fieldstone.backends.sqlite.store import SqliteStore
from fieldstone.field.transfer import Imported
from fieldstone.ports.store import Store
from fieldstone.testing import KEY, ManualClock
from tests.golden.field import DIGEST_KEY, EXPORT, FACTS, facts_of, open_on, read_facts

Make = Callable[[Path], Store]


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    # The checksum covers digests of names, and these depend on a key that a store makes by chance.
    monkeypatch.setattr(secrets, "token_bytes", lambda size: DIGEST_KEY[:size])
    return MemoryStore(KEY) if request.param == "memory" else SqliteStore.open(tmp_path / "field.db", KEY)


async def test_an_import_gives_the_same_head_the_same_views_and_the_same_units(store: Store) -> None:
    field = await open_on(store, ManualClock())
    lines = EXPORT.read_bytes().splitlines()
    expected = read_facts()
    assert await field.import_lines(lines) == Imported(expected.entries, 0)
    assert await facts_of(field, store) == expected
    assert (await field.verify()).ok
    assert (await field.rebuild()).checksum == expected.views
    await field.close()


async def test_an_imported_field_is_exported_byte_for_byte(store: Store) -> None:
    field = await open_on(store, ManualClock())
    await field.import_lines(EXPORT.read_bytes().splitlines())
    assert b"".join([batch async for batch in field.export()]) == EXPORT.read_bytes()
    await field.close()


async def test_an_import_that_broke_off_goes_on_where_it_was(store: Store) -> None:
    field = await open_on(store, ManualClock())
    lines = EXPORT.read_bytes().splitlines()
    assert await field.import_lines(lines[:10]) == Imported(10, 0)
    assert await field.import_lines(lines) == Imported(len(lines) - 10, 10)
    assert await facts_of(field, store) == read_facts()
    await field.close()


def test_the_golden_field_has_a_unit_of_every_status_that_this_level_knows() -> None:
    assert set(read_facts().units.values()) == {"active", "contested", "superseded", "retracted"}
    assert FACTS.exists()
