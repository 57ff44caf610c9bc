"""The schema of the default store, as SQLite holds it."""

import re
from pathlib import Path
from typing import Final

import apsw

from fieldstone.backends.sqlite.connection import migration_steps

FOLDER: Final = Path(__file__).parent
_COMMENT: Final = re.compile(r" *--[^\n]*")  # what a comment says may change


def golden_schema(version: int) -> Path:
    return FOLDER / f"schema_{version:04d}.sql"


def dump(connection: apsw.Connection) -> str:
    """Every object that has a statement of its own, by name, so that the order of creation makes no difference."""
    rows = connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name")
    return "\n\n".join(f"{_COMMENT.sub('', statement)};" for (statement,) in rows) + "\n"


def migrated_to(version: int) -> apsw.Connection:
    """A new file in memory, brought up step by step as an old one would be."""
    connection = apsw.Connection(":memory:")
    for script in migration_steps()[:version]:
        connection.execute(script)
    connection.execute(f"PRAGMA user_version={version}")
    return connection
