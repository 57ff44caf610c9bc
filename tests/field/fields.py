"""Fields in memory whose models a test holds in its hands."""

from typing import Any

from fieldstone.backends.memory.store import MemoryStore
from fieldstone.backends.memory.vault import MemoryVault
from fieldstone.field.field import LocalField
from fieldstone.field.opening import open_local
from fieldstone.field.options import Models, Options
from fieldstone.field.secrets import Secrets
from fieldstone.ports.embedder import Embedder
from fieldstone.ports.judge import Judge
from fieldstone.ports.store import Store
from fieldstone.redact import shared_harness
from fieldstone.testing import KEY, ManualClock, SeededIds, WordCounter
from tests.messages import join


async def opened(
    embedder: Embedder | None = None,
    *,
    store: Store | None = None,
    judge: Judge | None = None,
    former: Embedder | None = None,
    seed: int = 1,
    **options: Any,
) -> LocalField:
    """Nothing is late, unless the options say so. The store may have been left by another field."""

    async def open_former(_name: str) -> Embedder | None:
        return former

    return await open_local(
        store or MemoryStore(KEY),
        clock=ManualClock(),
        ids=SeededIds(seed),
        harness=shared_harness,
        secrets=Secrets(MemoryVault()),
        models=Models(WordCounter(), embedder, open_former, judge),
        options=Options(**{"enrichment_timeout_ms": 60_000, "detection_timeout_ms": 60_000} | options),
    )


async def staffed(embedder: Embedder | None = None, **how: Any) -> LocalField:
    field = await opened(embedder, **how)
    await join(field, "ada", "ben")
    return field


async def waiting(field: LocalField) -> list[int]:
    """How many units of each model have no vector yet."""
    return [each.waiting for each in (await field.status()).embeddings]
