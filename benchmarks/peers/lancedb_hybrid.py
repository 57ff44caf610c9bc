"""LanceDB hybrid: `python -m benchmarks.peers.lancedb_hybrid ROWS_FILE HINTS_FILE COUNT DIRECTORY VECTOR_INDEX`.

As its documentation sets it up: a table on disk with a full-text index, words and vectors fused by its default
reranker. VECTOR_INDEX is `flat` (no index: its scan is exact, as ours is) or `ivf_pq`, its index for large tables.
HINTS_FILE is a JSON list; the first half warms caches. It prints the seconds of each hint of the second half.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lancedb  # type: ignore[import-not-found]
import numpy as np
import pyarrow as pa  # type: ignore[import-not-found]
from lancedb.index import FTS, IvfPq  # type: ignore[import-not-found]

from benchmarks.corpus import VECTOR_DIMENSIONS, vector
from benchmarks.peers.harness import PeerRow, read_rows

PAGE = 20


def main(rows_file: Path, hints_file: Path, count: int, directory: Path, vector_index: str) -> None:
    table = fill(directory, read_rows(rows_file, count), vector_index)
    hints: list[str] = json.loads(hints_file.read_text(encoding="utf-8"))
    seconds: list[float] = []
    for at, hint in enumerate(hints):
        query = np.asarray(vector(count + at), np.float32)  # looked up, not computed: stores are compared, not models
        started = time.perf_counter()
        found = table.search(query_type="hybrid").vector(query).text(hint).limit(PAGE).to_list()
        seconds.append(time.perf_counter() - started)
        if len(found) != PAGE:
            raise SystemExit(f"{len(found)} rows for {hint!r}, {PAGE} expected")
    print(json.dumps(seconds[len(hints) // 2 :]))


def fill(directory: Path, rows: Sequence[PeerRow], vector_index: str) -> Any:
    vectors = np.asarray([vector(at) for at in range(len(rows))], np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), VECTOR_DIMENSIONS)
    memories = pa.Table.from_pylist(list(rows)).append_column("vector", column)
    table = lancedb.connect(directory / "lance").create_table("memories", memories)
    table.create_index("content", config=FTS())
    if vector_index == "ivf_pq":
        table.create_index("vector", config=IvfPq(distance_type="cosine"))
    elif vector_index != "flat":
        raise SystemExit(f"{vector_index} is not flat or ivf_pq")
    return table


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]), sys.argv[5])
