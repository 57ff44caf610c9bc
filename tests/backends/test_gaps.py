"""What deleted rows left in the middle of pages is looked for a few pages at a time."""

import random
from pathlib import Path

import pytest

from fieldstone.backends.sqlite import gaps
from fieldstone.backends.sqlite.connection import empty_journal, open_writer
from fieldstone.backends.sqlite.gaps import Gap, Table

TEXTS = Table("texts", ("salt", "body"))


async def test_in_short_stretches_the_same_gaps_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "store.db"
    fill_and_delete(path)
    found: list[list[Gap]] = []
    for pages in (1, 7, 1_000_000):
        monkeypatch.setattr(gaps, "READ_PAGES", pages)
        found.append(await gaps._find_gaps(path, [TEXTS]))
    assert found[0] == found[1] == found[2] != []


async def test_in_a_file_behind_a_symbolic_link_the_same_gaps_are_found(tmp_path: Path) -> None:
    path, link = tmp_path / "store.db", tmp_path / "link.db"
    fill_and_delete(path)
    link.symlink_to(path)
    assert await gaps._find_gaps(link, [TEXTS]) == await gaps._find_gaps(path, [TEXTS]) != []


def fill_and_delete(path: Path) -> None:
    chance = random.Random(5)
    connection = open_writer(path)
    rows = [(at, b"salt", bytes(chance.randrange(65, 90) for _ in range(chance.randrange(600)))) for at in range(2_000)]
    with connection:
        connection.executemany("INSERT INTO texts (position, salt, body) VALUES (?, ?, ?)", rows)
    with connection:
        connection.executemany(
            "DELETE FROM texts WHERE position = ?", [(at,) for at in chance.sample(range(2_000), 1_500)]
        )
    assert empty_journal(connection)
    connection.close()
