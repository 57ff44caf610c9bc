"""What users would pick instead, measured in the same run and on the same disk as ours.

Each peer runs in a process of its own with the interpreter of `.venv-bench`, so that nothing of it enters our
environment and no peer slows another. The rows and the vectors are ours (`benchmarks.corpus`).
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.environment import ROOT, bench_python

PEER_TIMEOUT_S = 600  # 2,000 rows at mem0's slowest measured pace take 20 s


@dataclass(frozen=True, slots=True)
class PeerResult:
    name: str
    rows: int
    seconds: float
    rows_per_s: float


class PeerFailed(Exception):
    """A peer's process ended without a figure, or tried to reach the network. Its own words follow."""


def measure_peers(
    rows_file: Path, *, count_one_by_one: int, count_batch: int, count_mem0: int, work_dir: Path
) -> list[PeerResult]:
    """`work_dir` must be on the disk that our own figures come from: an fsync is what is compared."""
    python = bench_python()

    def measured(module: str, count: int, *options: str) -> PeerResult:
        return measure_peer(python, module, rows_file, count, options, work_dir=work_dir)

    return [
        measured("benchmarks.peers.langgraph_store", count_one_by_one, "1"),
        measured("benchmarks.peers.langgraph_store", count_batch, "100"),
        measured("benchmarks.peers.mem0_add", count_mem0),
    ]


def measure_peer(
    python: Path, module: str, rows_file: Path, count: int, options: tuple[str, ...], *, work_dir: Path
) -> PeerResult:
    with tempfile.TemporaryDirectory(dir=work_dir.resolve(), prefix="peer-") as directory:
        guarded = [str(python), "-m", "benchmarks.peers.offline", module]
        command = [*guarded, str(rows_file.resolve()), str(count), directory, *options]
        # Nothing of the caller's environment but PATH: no API keys, no tracing switches, no proxies, and the
        # "home" that mem0 writes its settings to is thrown away with the directory.
        clean = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": directory,
            "MEM0_DIR": directory,
            "MEM0_TELEMETRY": "False",
        }
        ran = subprocess.run(
            command, cwd=ROOT, env=clean, capture_output=True, text=True, timeout=PEER_TIMEOUT_S, check=False
        )
    if ran.returncode != 0:
        raise PeerFailed(f"{module}: exit {ran.returncode}\n{ran.stderr}")
    figures = json.loads(ran.stdout.splitlines()[-1])
    return PeerResult(
        name=figures["name"], rows=figures["rows"], seconds=figures["seconds"], rows_per_s=figures["rows_per_s"]
    )
