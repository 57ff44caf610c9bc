"""faiss' flat scan of bytes, the bare limit: `python -m benchmarks.peers.faiss_scan VECTORS QUERIES COUNT MOST`.

Both files are arrays of float32, one vector a row. One thread, as our scan has. It prints the seconds of each query.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import faiss  # type: ignore[import-not-found]
import numpy as np

ROWS_AT_ONCE = 50_000
TRAINED_ON = 100_000


def main(vectors_file: Path, queries_file: Path, count: int, most: int) -> None:
    faiss.omp_set_num_threads(1)  # two were three times slower
    index = fill(vectors_file, count)
    queries = np.load(queries_file)
    seconds: list[float] = []
    for _ in range(2):  # the first round warms caches, as a server's would be
        seconds = []
        for query in queries:
            started = time.perf_counter()
            index.search(query[np.newaxis], most)
            seconds.append(time.perf_counter() - started)
    print(json.dumps(seconds))


def fill(vectors_file: Path, count: int) -> faiss.Index:
    vectors = np.load(vectors_file, mmap_mode="r")[:count]
    if len(vectors) != count:
        raise SystemExit(f"{vectors_file} has only {len(vectors)} of {count} vectors")
    bytes_each = faiss.ScalarQuantizer.QT_8bit
    index = faiss.IndexScalarQuantizer(vectors.shape[1], bytes_each, faiss.METRIC_INNER_PRODUCT)
    index.train(vectors[:TRAINED_ON])
    for first in range(0, count, ROWS_AT_ONCE):
        index.add(vectors[first : first + ROWS_AT_ONCE])
    return index


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
