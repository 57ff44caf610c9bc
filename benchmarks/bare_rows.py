"""The rows that RECORDs left in a store, written once more by a plain loop: what the disk and SQLite alone allow.

One connection to each file, with the settings that ours has there, and everything prepared beforehand.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import apsw

from fieldstone.backends.sqlite.text_index import EVERYDAY, index_path
from fieldstone.core.events import UnitTexts, decode_texts
from fieldstone.projections.text_follower import searchable

ROWS_A_COMMIT = 100
TABLES = ("log", "texts", "units", "replies")
WORDS = "INSERT INTO words (rowid, text) VALUES (?, ?)"


def seconds_together(store: Path, path: Path, records: int, *, indexed: int = 0, at_once: bool = False) -> float:
    """All tables, 100 RECORDs a commit. `indexed`: so many of them into the full-text table, too."""
    source, target = _copy_schema(store, path)
    words = _words_table(store, path)
    found = {table: list(source.execute(f"SELECT * FROM {table} ORDER BY 1")) for table in TABLES}
    inserts = {table: _insert(table, rows[0]) for table, rows in found.items() if rows}
    documents = list(itertools.islice(_documents(source), indexed))
    started = time.perf_counter()
    for first in range(0, records, ROWS_A_COMMIT):
        with target:
            for table, insert in inserts.items():
                _write(target, insert, found[table][first : first + ROWS_A_COMMIT], at_once=at_once)
        if batch := documents[first : first + ROWS_A_COMMIT]:
            with words:
                _write(words, WORDS, batch, at_once=at_once)
    seconds = time.perf_counter() - started
    for connection in (source, target, words):
        connection.close()
    return seconds


def seconds_one_by_one(store: Path, path: Path, rows: int) -> float:
    """One row of the log a commit."""
    source, target = _copy_schema(store, path)
    found = list(source.execute("SELECT * FROM log ORDER BY 1 LIMIT ?", (rows,)))
    insert = _insert("log", found[0])
    started = time.perf_counter()
    for row in found:
        target.execute("BEGIN IMMEDIATE")
        target.execute(insert, row)
        target.execute("COMMIT")
    seconds = time.perf_counter() - started
    source.close()
    target.close()
    return seconds


def _write(target: apsw.Connection, insert: str, rows: Sequence[tuple[object, ...]], *, at_once: bool) -> None:
    if at_once:
        target.executemany(insert, rows)
        return
    for row in rows:
        target.execute(insert, row)


def _documents(source: apsw.Connection) -> Iterator[tuple[int, str]]:
    for position, body in source.execute("SELECT position, body FROM texts JOIN units USING (position) ORDER BY 1"):
        yield position, searchable(decode_texts(body, UnitTexts))


def _copy_schema(store: Path, path: Path) -> tuple[apsw.Connection, apsw.Connection]:
    source, target = apsw.Connection(str(store)), apsw.Connection(str(path))
    target.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL")
    ours = "sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"  # SQLite makes its own tables by itself
    for (statement,) in source.execute(f"SELECT sql FROM sqlite_schema WHERE {ours} ORDER BY rowid"):
        target.execute(statement)
    return source, target


def _words_table(store: Path, path: Path) -> apsw.Connection:
    """The full-text table of the store's one stream, empty."""
    source = apsw.Connection(str(index_path(store)))
    target = apsw.Connection(str(index_path(path)))
    target.execute(f"PRAGMA journal_mode=WAL; PRAGMA synchronous={EVERYDAY}; PRAGMA secure_delete=ON")
    (made,) = source.execute("SELECT sql FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL TABLE % USING fts5(%'")
    target.execute("CREATE VIRTUAL TABLE words USING " + made[0].partition(" USING ")[2])
    source.close()
    return target


def _insert(table: str, row: Sequence[object]) -> str:
    return f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})"
