"""mem0's `Memory.add(…, infer=False)`: `python -m benchmarks.peers.mem0_add ROWS_FILE COUNT DIRECTORY`.

Its default store (Qdrant's local mode, on a path) and its history database, both files with SQLite's defaults
(rollback journal, synchronous=FULL): an `add` is one durable commit in each. `infer=False` stores the text as it is,
without a language model. `benchmarks.peers` turns telemetry off (MEM0_TELEMETRY) before mem0 is imported.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from mem0 import Memory  # type: ignore[import-not-found]

from benchmarks.corpus import VECTOR_DIMENSIONS
from benchmarks.peers.harness import PeerRow, measure, read_rows, require_rows, vectors_by_content

COLLECTION = "memories"


class PrecomputedEmbedder:
    """mem0's embedder interface over vectors that are already there."""

    def __init__(self, vectors: dict[str, list[float]]) -> None:
        self._vectors = vectors

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return self._vectors[text]


def main(rows_file: Path, count: int, directory: Path) -> None:
    rows = read_rows(rows_file, count)
    memory = open_memory(directory, PrecomputedEmbedder(vectors_by_content(rows)))
    measure("mem0 add(infer=False), qdrant-local", rows, lambda: add_all(memory, rows))
    memory.vector_store.client.close()
    memory.close()
    require_rows(directory / "qdrant" / "collection" / COLLECTION / "storage.sqlite", "points", count)
    require_rows(directory / "history.db", "history", count)


def open_memory(directory: Path, embedder: PrecomputedEmbedder) -> Memory:
    never_called = {"provider": "openai", "config": {"api_key": "none"}}  # mem0 insists on making both clients
    qdrant = {
        "collection_name": COLLECTION,
        "embedding_model_dims": VECTOR_DIMENSIONS,
        "path": str(directory / "qdrant"),
    }
    memory = Memory.from_config(
        {
            "vector_store": {"provider": "qdrant", "config": qdrant},
            "history_db_path": str(directory / "history.db"),
            "llm": never_called,
            "embedder": never_called,
        }
    )
    # Its settings know only named providers, all of them models; the attribute is where a custom one goes.
    memory.embedding_model = embedder
    return memory


def add_all(memory: Memory, rows: Sequence[PeerRow]) -> None:
    for row in rows:
        # Not "role": mem0 keeps the message's role ("user") under that key.
        metadata = {
            "type": row["type"],
            "purpose": row["purpose"],
            "reasoning": row["reasoning"],
            "score": row["score"],
            "agent_role": row["role"],
        }
        memory.add(row["content"], agent_id=row["agent"], run_id=row["session"], metadata=metadata, infer=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
