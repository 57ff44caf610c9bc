"""LangGraph's SqliteStore: `python -m benchmarks.peers.langgraph_store ROWS_FILE COUNT DIRECTORY ROWS_PER_BATCH`.

As its documentation sets it up: a store on a file, with an index of 256 dimensions over `content`. The connection
keeps SQLite's defaults (rollback journal, synchronous=FULL), so each `put` and each `batch` is one durable transaction.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path

from langgraph.store.base import PutOp  # type: ignore[import-not-found]
from langgraph.store.sqlite import SqliteStore  # type: ignore[import-not-found]

from benchmarks.corpus import VECTOR_DIMENSIONS
from benchmarks.peers.harness import PeerRow, measure, read_rows, require_rows, vectors_by_content

# Given with each put: SqliteStore 3.1 documents `fields` in its index settings but does not read it, and would
# embed the whole JSON value instead. One vector a row either way.
INDEXED = ["content"]


def main(rows_file: Path, count: int, directory: Path, rows_per_batch: int) -> None:
    rows = read_rows(rows_file, count)
    vectors = vectors_by_content(rows)

    def embed(texts: Sequence[str]) -> list[list[float]]:
        return [vectors[text] for text in texts]

    database = directory / "store.sqlite"
    connection = connect(database)
    store = SqliteStore(connection, index={"dims": VECTOR_DIMENSIONS, "embed": embed})
    store.setup()
    if rows_per_batch == 1:
        measure("LangGraph SqliteStore, put one by one", rows, lambda: put_one_by_one(store, rows))
    else:
        name = f"LangGraph SqliteStore, batch of {rows_per_batch}"
        measure(name, rows, lambda: put_in_batches(store, rows, rows_per_batch))
    connection.close()
    require_rows(database, "store", count)
    require_rows(database, "store_vectors", count)


class WithoutExtensions(sqlite3.Connection):
    """For a Python built without extension loading (pyenv's default), where the store's set-up would fail.

    The store needs sqlite-vec to search; what it writes are plain tables and blobs, with or without it.
    """

    def enable_load_extension(self, enable: bool, /) -> None:
        pass

    def load_extension(self, name: str, /, *, entrypoint: str | None = None) -> None:
        pass


def connect(database: Path) -> sqlite3.Connection:
    """What `SqliteStore.from_conn_string` does, with a way around a missing ability."""
    able = hasattr(sqlite3.Connection, "enable_load_extension")
    factory = sqlite3.Connection if able else WithoutExtensions
    return sqlite3.connect(database, check_same_thread=False, isolation_level=None, factory=factory)


def put_one_by_one(store: SqliteStore, rows: Sequence[PeerRow]) -> None:
    for row in rows:
        store.put(namespace(row), row["id"], value(row), index=INDEXED)


def put_in_batches(store: SqliteStore, rows: Sequence[PeerRow], rows_per_batch: int) -> None:
    for start in range(0, len(rows), rows_per_batch):
        batch = rows[start : start + rows_per_batch]
        store.batch([PutOp(namespace(row), row["id"], value(row), index=INDEXED) for row in batch])


def namespace(row: PeerRow) -> tuple[str, ...]:
    return ("memories", row["agent"])


def value(row: PeerRow) -> dict[str, object]:
    """All that our RECORD stores of the row, and nothing twice."""
    return {key: row[key] for key in ("type", "content", "purpose", "reasoning", "score", "role", "session")}


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
