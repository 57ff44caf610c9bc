"""mem0's `Memory.search`: `python -m benchmarks.peers.mem0_search ROWS_FILE HINTS_FILE COUNT DIRECTORY`.

The memory is the one of `mem0_add`, and every row has the same `user_id`: mem0 searches the memories of somebody, and
all of them are asked for. HINTS_FILE is a JSON list; the first half warms caches. It prints the seconds of each hint of
the second half.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from mem0 import Memory  # type: ignore[import-not-found]

from benchmarks.corpus import vector
from benchmarks.peers.harness import PeerRow, read_rows, vectors_by_content
from benchmarks.peers.mem0_add import PrecomputedEmbedder, open_memory

PAGE = 20
TEAM = "team"


def main(rows_file: Path, hints_file: Path, count: int, directory: Path) -> None:
    rows = read_rows(rows_file, count)
    hints: list[str] = json.loads(hints_file.read_text(encoding="utf-8"))
    asked = {hint: vector(count + at) for at, hint in enumerate(hints)}
    memory = open_memory(directory, PrecomputedEmbedder(vectors_by_content(rows) | asked))
    add_all(memory, rows)
    seconds: list[float] = []
    for hint in hints:
        started = time.perf_counter()
        found = memory.search(hint, filters={"user_id": TEAM}, top_k=PAGE)["results"]
        seconds.append(time.perf_counter() - started)
        if len(found) != PAGE:
            raise SystemExit(f"{len(found)} memories for {hint!r}, {PAGE} expected")
    print(json.dumps(seconds[len(hints) // 2 :]))


def add_all(memory: Memory, rows: Sequence[PeerRow]) -> None:
    for row in rows:
        metadata = {"type": row["type"], "purpose": row["purpose"], "reasoning": row["reasoning"]}
        memory.add(row["content"], user_id=TEAM, agent_id=row["agent"], metadata=metadata, infer=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
