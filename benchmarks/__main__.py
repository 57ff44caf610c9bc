"""Run the benchmarks: `python -m benchmarks [PART …]`, or all of them."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.attune import measure_attune
from benchmarks.compaction import measure_compaction
from benchmarks.contradictions import measure_contradictions
from benchmarks.corpus import write_rows_file
from benchmarks.distil import measure_distil
from benchmarks.embedders import measure_embedders
from benchmarks.figures import Figure, Report
from benchmarks.http import measure_http
from benchmarks.memory_host import measure_memory_host
from benchmarks.peers import measure_peers
from benchmarks.peers.environment import ROOT, fresh_install, mem0_installed
from benchmarks.quality import measure_quality
from benchmarks.recall import measure_recall
from benchmarks.record import Rates, measure_record
from benchmarks.redaction import measure_redaction
from benchmarks.scale import SIZES, measure_scale
from benchmarks.streams import measure_streams
from benchmarks.threads import measure_threads
from benchmarks.vectors import measure_vectors

PARTS = (
    "record",
    "peers",
    "attune",
    "http",
    "embedders",
    "vectors",
    "scale",
    "quality",
    "contradictions",
    "distil",
    "compaction",
    "recall",
    "redaction",
    "memory",
    "streams",
    "threads",
    "size",
)
DATA = ROOT.parent / "shared" / "data"  # not ours to publish: what is not there is skipped
PEER_ROWS = 20_000
LANGGRAPH_ONE_BY_ONE = 2_000
MEM0_ROWS = 1_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="no field of a million units")
    parser.add_argument("--data", type=Path, default=DATA, help="where the labelled data are (default: %(default)s)")
    parser.add_argument("--no-keep", action="store_true", help="print only, keep no result file")
    arguments = parser.parse_args()
    parts = arguments.parts or list(PARTS)
    if unknown := sorted(set(parts) - set(PARTS)):
        parser.error(f"no such part: {', '.join(unknown)}. There are {', '.join(PARTS)}.")
    sizes = SIZES[:-1] if arguments.quick else SIZES
    report = Report()
    _stores(report, parts, sizes)
    if "embedders" in parts:
        measure_embedders(report)
    if "quality" in parts:
        measure_quality(report, arguments.data)
    if "contradictions" in parts:
        measure_contradictions(report, arguments.data)
    if "distil" in parts:
        measure_distil(report, arguments.data)
    if "recall" in parts:
        measure_recall(report, arguments.data)
    if "redaction" in parts:
        measure_redaction(report)
    if "size" in parts:
        _size(report)
    if not arguments.no_keep:
        print(f"kept in {report.keep().relative_to(ROOT)}")


def _stores(report: Report, parts: Sequence[str], sizes: Sequence[int]) -> None:
    # On the disk of the project, not in a memory file system: an fsync is what is measured.
    with tempfile.TemporaryDirectory(dir=ROOT, prefix=".bench-") as directory:
        work_dir = Path(directory)
        if {"record", "peers"} & set(parts):
            rates = measure_record(report, work_dir)
            if "peers" in parts:
                _peers(report, work_dir, rates)
        if "attune" in parts:
            measure_attune(report, work_dir)
        if "http" in parts:
            measure_http(report)
        if "vectors" in parts:
            measure_vectors(report, work_dir, sizes=sizes)
        if "compaction" in parts:
            measure_compaction(report, work_dir, large=sizes == SIZES)
        if "memory" in parts:
            measure_memory_host(report, work_dir)
        if "streams" in parts:
            measure_streams(report, work_dir, large=sizes == SIZES)
        if "threads" in parts:
            measure_threads(report, work_dir, large=sizes == SIZES)
        if "scale" in parts:
            measure_scale(report, work_dir, sizes=sizes)


def _peers(report: Report, work_dir: Path, rates: Rates) -> None:
    rows_file = work_dir / "rows.jsonl"
    write_rows_file(rows_file, PEER_ROWS)
    one, batch, mem0 = measure_peers(
        rows_file,
        count_one_by_one=LANGGRAPH_ONE_BY_ONE,
        count_batch=PEER_ROWS,
        count_mem0=MEM0_ROWS,
        work_dir=work_dir,
    )
    for name, rate, bars in (
        ("RECORD, 64 agents", rates.without_vectors, (10.0, 25.0)),
        ("RECORD with embedding and detection, 64 agents", rates.by_default, (None, None)),
    ):
        report.add(Figure(name, rate, "/s", "LangGraph put one by one", one.rows_per_s, bars[0]))
        report.add(Figure(name, rate, "/s", "LangGraph batch of 100", batch.rows_per_s))
        report.add(Figure(name, rate, "/s", "mem0 add(infer=False)", mem0.rows_per_s, bars[1]))


def _size(report: Report) -> None:
    """The goal is a number, and mem0's: which of its two sizes that was, nobody wrote down."""
    ours, mem0 = fresh_install([str(ROOT)]), mem0_installed()
    for name, size, theirs, most in (
        ("base install", ours.compiled, mem0.compiled, 1.0),
        ("base install before Python compiles", ours.files, mem0.files, None),
    ):
        report.add(Figure(name, size, "MB", bar=152.0, at_most=True))
        report.add(Figure(name, size, "MB", "mem0 installed the same way", theirs, bar=most, at_most=True))


if __name__ == "__main__":
    main()
