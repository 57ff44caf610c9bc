"""Run the benchmarks: `python -m benchmarks [record] [attune] [http] [peers] [size]`, or all of them."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchmarks.attune import measure_attune
from benchmarks.corpus import write_rows_file
from benchmarks.figures import Figure, Report
from benchmarks.http import measure_http
from benchmarks.peers import measure_peers
from benchmarks.peers.environment import ROOT, fresh_install_mb, mem0_installed_mb
from benchmarks.record import measure_record

PARTS = ("record", "peers", "attune", "http", "size")
PEER_ROWS = 20_000
LANGGRAPH_ONE_BY_ONE = 2_000
MEM0_ROWS = 1_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help="which parts to run (default: all)")
    parser.add_argument("--no-keep", action="store_true", help="print only, keep no result file")
    arguments = parser.parse_args()
    parts = arguments.parts or list(PARTS)
    report = Report()
    # On the disk of the project, not in a memory file system: an fsync is what is measured.
    with tempfile.TemporaryDirectory(dir=ROOT, prefix=".bench-") as directory:
        work_dir = Path(directory)
        record_rate = measure_record(report, work_dir) if {"record", "peers"} & set(parts) else 0.0
        if "peers" in parts:
            _peers(report, work_dir, record_rate)
        if "attune" in parts:
            measure_attune(report, work_dir)
        if "http" in parts:
            measure_http(report)
    if "size" in parts:
        _size(report)
    if not arguments.no_keep:
        print(f"kept in {report.keep().relative_to(ROOT)}")


def _peers(report: Report, work_dir: Path, record_rate: float) -> None:
    rows_file = work_dir / "rows.jsonl"
    write_rows_file(rows_file, PEER_ROWS)
    one, batch, mem0 = measure_peers(
        rows_file,
        count_one_by_one=LANGGRAPH_ONE_BY_ONE,
        count_batch=PEER_ROWS,
        count_mem0=MEM0_ROWS,
        work_dir=work_dir,
    )
    report.add(Figure("RECORD, 64 agents", record_rate, "/s", "LangGraph put one by one", one.rows_per_s, 10.0))
    report.add(Figure("RECORD, 64 agents", record_rate, "/s", "LangGraph batch of 100", batch.rows_per_s))
    report.add(Figure("RECORD, 64 agents", record_rate, "/s", "mem0 add(infer=False)", mem0.rows_per_s, 25.0))


def _size(report: Report) -> None:
    ours = fresh_install_mb([str(ROOT)])
    report.add(Figure("base install", ours, "MB", bar=152.0, at_most=True))
    report.add(Figure("base install", ours, "MB", "mem0 installed the same way", mem0_installed_mb()))


if __name__ == "__main__":
    main()
