"""What the peers' scripts share: the rows, the vectors and the clock. Runs inside `.venv-bench`."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import TypedDict

from benchmarks.corpus import vector


class PeerRow(TypedDict):
    id: str
    type: str
    content: str
    purpose: str
    reasoning: str
    score: float
    agent: str
    role: str
    session: str


def read_rows(rows_file: Path, count: int) -> list[PeerRow]:
    with rows_file.open(encoding="utf-8") as lines:
        rows: list[PeerRow] = [json.loads(line) for line in islice(lines, count)]
    if len(rows) != count:
        raise SystemExit(f"{rows_file} has only {len(rows)} of {count} rows")
    return rows


def vectors_by_content(rows: Sequence[PeerRow]) -> dict[str, list[float]]:
    """Embedding is looked up, not computed: stores are compared here, not models."""
    return {row["content"]: vector(index) for index, row in enumerate(rows)}


def measure(name: str, rows: Sequence[PeerRow], write_all: Callable[[], None]) -> None:
    """Times the writes alone (no imports, no set-up, no vectors) and prints one line of JSON."""
    started = time.perf_counter()
    write_all()
    seconds = time.perf_counter() - started
    figures = {"name": name, "rows": len(rows), "seconds": round(seconds, 3)}
    print(json.dumps({**figures, "rows_per_s": round(len(rows) / seconds, 1)}))


def require_rows(database: Path, table: str, count: int) -> None:
    """A figure counts only if the rows are in the file, as another connection sees it."""
    with sqlite3.connect(database) as reader:
        (found,) = reader.execute(f"SELECT count(*) FROM {table}").fetchone()
    if found != count:
        raise SystemExit(f"{database.name}: {found} rows in {table}, {count} expected")
