"""The vector stage: search in memory against faiss' flat scan of bytes, recall against exact floats, and loading.

The vectors are made as the default embedder makes them, a text's being the mean of its words', with words drawn by
Zipf's law: so they lie around what is frequent and lean to one side, as real ones do, and near ones are hard to tell
apart. faiss runs in `.venv-bench` on the same vectors.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.corpus import VECTOR_DIMENSIONS, VOCABULARY_WORDS, ZIPF_SHIFT
from benchmarks.figures import Figure, Report, percentile
from benchmarks.scale import peer_seconds
from fieldstone.backends.sqlite.store import SqliteStore
from fieldstone.ports.log import FieldKey
from fieldstone.ports.vectors import Quantized
from fieldstone.projections.vector_index import VectorIndex, quantize

SIZES = (10_000, 100_000, 1_000_000)
QUERIES = 200
QUERIES_RATED = 50  # an exact scan of a million floats takes its time
MOST = 200
SHARES = (1.0, 0.1, 0.01, 0.001)
CHUNK = 50_000
UNIT_WORDS = 30
HINT_WORDS = 10

Floats = NDArray[np.float32]


def measure_vectors(report: Report, work_dir: Path, *, sizes: Sequence[int] = SIZES) -> None:
    with tempfile.TemporaryDirectory(dir=work_dir) as directory:
        vectors_file, queries_file = Path(directory) / "vectors.npy", Path(directory) / "queries.npy"
        vectors = _vectors(vectors_file, max(sizes))
        queries = _normal(_texts(np.random.default_rng(2), QUERIES, HINT_WORDS, _words()))
        np.save(queries_file, queries)
        for count in sizes:
            index = _filled(vectors[:count])
            ours = _search_times(index, queries)
            theirs = peer_seconds("faiss_scan", vectors_file, queries_file, count, MOST, work_dir=work_dir)
            _report_times(report, count, ours, theirs)
            _measure_recall(report, index, vectors[:count], queries)
        _measure_start(report, Path(directory), vectors)


def _report_times(report: Report, count: int, ours: Sequence[float], theirs: Sequence[float]) -> None:
    for name, share in (("p50", 0.5), ("p95", 0.95)):
        report.add(
            Figure(
                f"vector search {name}, {count:,} units",
                percentile(ours, share) * 1e3,
                "ms",
                "faiss flat SQ8, one thread",
                percentile(theirs, share) * 1e3,
                # The rest of an ATTUNE has to fit into one and a half times that scan.
                0.75 if count == SIZES[-1] and name == "p50" else None,
                at_most=True,
            )
        )


def _measure_start(report: Report, directory: Path, vectors: Floats) -> None:
    tracemalloc.start()
    seconds, index = asyncio.run(_load(directory, vectors))
    used = tracemalloc.get_traced_memory()[0] / len(vectors)
    tracemalloc.stop()
    report.add(Figure(f"loading {len(vectors):,} vectors", seconds, "s", bar=1.5, at_most=True))
    bar = 300 if len(vectors) == SIZES[-1] else None  # of few, the room that is kept for more is a large part
    report.add(Figure(f"vector index, {index.dimension} dimensions", used, "B a unit", bar=bar, at_most=True))


# --- ours ------------------------------------------------------------------------------------------------------------


def _filled(vectors: Floats) -> VectorIndex:
    index = VectorIndex(VECTOR_DIMENSIONS)
    for at, chunk in enumerate(_chunks(vectors)):
        index.put(np.arange(at * CHUNK, at * CHUNK + len(chunk)), *quantize(chunk))
    return index


def _search_times(index: VectorIndex, queries: Floats) -> list[float]:
    seconds: list[float] = []
    for _ in range(2):  # the first round warms caches, as a server's would be
        seconds = []
        for query in queries:
            started = time.perf_counter()
            index.search(query, None, MOST)
            seconds.append(time.perf_counter() - started)
    return seconds


def _measure_recall(report: Report, index: VectorIndex, vectors: Floats, queries: Floats) -> None:
    chance = np.random.default_rng(3)
    similar = np.concatenate([chunk @ queries[:QUERIES_RATED].T for chunk in _chunks(vectors)])
    for share in SHARES:
        mask = chance.random(len(vectors)) < share
        found = {10: 0.0, 100: 0.0}
        seconds: list[float] = []
        for at, query in enumerate(queries[:QUERIES_RATED]):
            started = time.perf_counter()
            rows, _ = index.search(query, mask, MOST)
            seconds.append(time.perf_counter() - started)
            nearest = np.argsort(np.where(mask, -similar[:, at], np.inf))
            for most in found:
                wanted = nearest[: min(most, int(mask.sum()))]
                found[most] += len(np.intersect1d(rows[: len(wanted)], wanted)) / len(wanted) / QUERIES_RATED
        what = f"{len(vectors):,} units, {share:.1%} in the mask"
        for most, recall in found.items():
            report.add(Figure(f"recall@{most}, {what}", recall, "", bar=0.98))
        report.add(Figure(f"vector search p50, {what}", percentile(seconds, 0.5) * 1e3, "ms"))


async def _load(directory: Path, vectors: Floats) -> tuple[float, VectorIndex]:
    """From the store's file to an index that can be searched, as at a field's opening."""
    store = SqliteStore.open(directory / "field.db", FieldKey("bench", "vectors"))
    model = await store.vectors.begin("bench", VECTOR_DIMENSIONS, state="serving")
    for at, chunk in enumerate(_chunks(vectors)):
        seqs = np.arange(at * CHUNK, at * CHUNK + len(chunk)) + 1
        await store.vectors.add(model.number, Quantized(seqs, *quantize(chunk)))
    started = time.perf_counter()
    index = VectorIndex(VECTOR_DIMENSIONS)
    async for piece in store.vectors.scan(model.number):
        index.put(piece.seqs - 1, piece.scales, piece.codes)
    seconds = time.perf_counter() - started
    await store.close()
    return seconds, index


# --- vectors ---------------------------------------------------------------------------------------------------------


def _vectors(path: Path, count: int) -> Floats:
    vectors = np.lib.format.open_memmap(path, "w+", np.float32, (count, VECTOR_DIMENSIONS))
    chance, words = np.random.default_rng(1), _words()
    for chunk in _chunks(vectors):
        chunk[:] = _normal(_texts(chance, len(chunk), UNIT_WORDS, words))
    return vectors


def _words() -> Floats:
    """Of different lengths, and leaning to one side, as the words of the default embedder are."""
    chance = np.random.default_rng(0)
    words = chance.normal(size=(VOCABULARY_WORDS, VECTOR_DIMENSIONS)) + 0.15 * chance.normal(size=VECTOR_DIMENSIONS)
    return np.asarray(words * chance.lognormal(0, 0.4, (VOCABULARY_WORDS, 1)), np.float32)


def _texts(chance: np.random.Generator, count: int, words_each: int, words: Floats) -> Floats:
    weights = 1 / (np.arange(VOCABULARY_WORDS) + 1 + ZIPF_SHIFT)
    drawn = chance.choice(VOCABULARY_WORDS, (count, words_each), p=weights / weights.sum())
    texts = np.zeros((count, VECTOR_DIMENSIONS), np.float32)
    for at in range(words_each):
        texts += words[drawn[:, at]]
    return texts


def _normal(vectors: Floats) -> Floats:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


def _chunks(vectors: Floats) -> Iterator[Floats]:
    for first in range(0, len(vectors), CHUNK):
        yield vectors[first : first + CHUNK]
