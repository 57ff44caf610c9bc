"""MEMORY-INDEX.json: which archives the distillations of a memory left behind. Nothing is stored: the log tells it."""

from hashlib import sha256
from typing import Final

from msgspec import json

from fieldstone.field.field import LocalField
from fieldstone.retrieval.reading import timestamp

INDEX_FILE: Final = "MEMORY-INDEX.json"
VERSION: Final = 1


async def index_of(field: LocalField, ref: str) -> dict[str, object] | None:
    """None: nothing of the memory was distilled yet."""
    archives = await field.memories.condensing.archives(ref)
    if not archives:
        return None
    listed = [
        {
            "outputId": entry.id,
            "checksum": sha256(entry.content.encode()).hexdigest(),
            "sourceCount": event.sources,
            "tokenBudget": event.token_budget,
            "tokensUsed": event.tokens_used,
            "byteSize": event.bytes,
            "ts": timestamp(told.at_ms),
        }
        for entry, told, event in archives
    ]
    return {"version": VERSION, "memoryRef": ref, "updatedAt": listed[0]["ts"], "archives": listed}


def encoded(index: dict[str, object]) -> str:
    return json.encode(index).decode()
