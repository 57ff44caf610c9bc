"""A store of any version is brought up to the newest schema, and no other."""

from pathlib import Path

import apsw
import pytest

from fieldstone.backends.sqlite.connection import migrate, migration_steps, open_writer
from fieldstone.backends.sqlite.store import SqliteStore
from fieldstone.ports.store import Commit, StoreTooNew
from fieldstone.testing import KEY
from fieldstone.testing.rows import entries, text
from tests.golden.schemas import dump, golden_schema, migrated_to

NEWEST = len(migration_steps())


@pytest.mark.parametrize("version", range(1, NEWEST + 1))
def test_a_migration_step_gives_the_schema_that_it_once_gave(version: int) -> None:
    assert dump(migrated_to(version)) == golden_schema(version).read_text()


@pytest.mark.parametrize("version", range(NEWEST + 1))
def test_migrating_from_any_version_equals_a_fresh_schema(version: int, tmp_path: Path) -> None:
    fresh = open_writer(tmp_path / "fresh.db")
    old = migrated_to(version)
    migrate(old)
    assert dump(old) == dump(fresh)
    assert old.pragma("user_version") == fresh.pragma("user_version") == NEWEST
    fresh.close()


def test_every_migration_step_has_a_golden_schema() -> None:
    folder = golden_schema(1).parent
    assert sorted(folder.glob("schema_*.sql")) == [golden_schema(version) for version in range(1, NEWEST + 1)]


def test_migrating_twice_changes_nothing() -> None:
    connection = migrated_to(0)
    migrate(connection)
    once = dump(connection)
    migrate(connection)
    assert dump(connection) == once


def test_a_step_that_fails_leaves_the_version_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [*migration_steps(), "CREATE TABLE half (id INTEGER); SELECT no_such_column FROM half;"]
    monkeypatch.setattr("fieldstone.backends.sqlite.connection.migration_steps", lambda: steps)
    connection = migrated_to(NEWEST)
    with pytest.raises(apsw.SQLError):
        migrate(connection)
    assert connection.pragma("user_version") == NEWEST
    assert dump(connection) == golden_schema(NEWEST).read_text()


async def test_a_store_of_a_newer_version_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "field.db"
    store = SqliteStore.open(path, KEY)
    await store.commit(Commit(entries=entries(1), texts=[text(1)]))
    await store.close()
    newer = apsw.Connection(str(path))
    newer.execute(f"PRAGMA user_version={NEWEST + 1}")
    newer.close()
    with pytest.raises(StoreTooNew, match=rf"schema version {NEWEST + 1}.*knows {NEWEST}\. Upgrade"):
        SqliteStore.open(path, KEY)
    newer = apsw.Connection(str(path))
    assert newer.pragma("user_version") == NEWEST + 1
    assert newer.execute("SELECT count(*) FROM log").get == 1
    newer.close()
