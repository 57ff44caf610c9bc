"""A store without room, and a process that is gone, while vectors and conflicts are on their way: nothing is lost."""

from pathlib import Path
from typing import Any

import pytest

from fieldstone.backends.memory.store import MemoryStore
from fieldstone.backends.sqlite.store import SqliteStore
from fieldstone.core.errors import StorageFull
from fieldstone.core.replies import Accepted
from fieldstone.core.requests import Detect, Message
from fieldstone.field import detecting, enrichment, following, meanings
from fieldstone.field.field import LocalField
from fieldstone.ports.store import Store
from fieldstone.ports.vectors import ModelState, Quantized, StoredModel, VectorStore
from fieldstone.projections import vector_keeper
from fieldstone.testing import KEY, FaultyStore
from fieldstone.testing.faults import fail
from tests.faults.stores import copy_store
from tests.field.fields import opened, staffed, waiting
from tests.messages import accepted, record
from tests.requirements import requirement
from tests.scripted import ScriptedEmbedder, eventually

HUNDRED = "The API rate limit is 100 requests per second."
FIFTY = "The API rate limit is 50 requests per second."
ALWAYS = 1_000_000
REGISTERED = 2  # commits that two agents took


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enrichment, "FIRST_PAUSE_MS", 1)
    monkeypatch.setattr(enrichment, "LONGEST_PAUSE_MS", 1)
    monkeypatch.setattr(following, "TELL_AFTER_MS", 0)
    monkeypatch.setattr(following, "RETRY_MS", 0)
    monkeypatch.setattr(detecting, "PAUSE_MS", 0)
    monkeypatch.setattr(detecting, "RETRY_MS", 0)
    monkeypatch.setattr(meanings, "ASK_AGAIN_MS", 0)
    monkeypatch.setattr(vector_keeper, "IDLE_MS", 0)
    monkeypatch.setattr(vector_keeper, "RETRY_MS", 0)


class LameVectors:
    """Vectors in a store that has no room for them while it is `full`."""

    def __init__(self, vectors: VectorStore) -> None:
        self._vectors = vectors
        self.full = True
        self.refused = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._vectors, name)

    async def begin(self, name: str, dimension: int, *, state: ModelState) -> StoredModel:
        self._refuse()
        return await self._vectors.begin(name, dimension, state=state)

    async def add(self, model: int, batch: Quantized, *, cold: bool = False) -> None:
        self._refuse()
        await self._vectors.add(model, batch, cold=cold)

    async def serve(self, model: int) -> None:
        self._refuse()
        await self._vectors.serve(model)

    def _refuse(self) -> None:
        if self.full:
            self.refused += 1
            raise StorageFull


class WithVectors(FaultyStore):
    def __init__(self, store: Store, vectors: Any) -> None:
        super().__init__(store)
        self._lame = vectors

    @property
    def vectors(self) -> VectorStore:
        vectors: VectorStore = self._lame
        return vectors


async def recorded(field: LocalField, agent: str, content: str) -> Accepted:
    reply = await field.send(record(agent, content))
    assert isinstance(reply, Accepted)
    return reply


async def becomes(field: LocalField, unit: str, status: str) -> None:
    async def holds() -> bool:
        return (await field.unit(unit)).status == status

    await eventually(holds)


async def serves(field: LocalField, *models: tuple[str, str, int]) -> None:
    async def holds() -> bool:
        return tuple((each.model, each.state, each.waiting) for each in (await field.status()).embeddings) == models

    await eventually(holds)


# --- a store without room ---------------------------------------------------------------------------------------------


async def test_vectors_that_find_no_room_serve_all_the_same_and_are_kept_when_there_is() -> None:
    store = MemoryStore(KEY)
    lame = LameVectors(store.vectors)
    lame.full = False
    field = await staffed(ScriptedEmbedder(), store=WithVectors(store, lame))
    lame.full = True
    reply = await recorded(field, "ada", "The pump runs.")
    assert not reply.warnings

    async def refused() -> bool:
        return lame.refused > 0

    await eventually(refused)
    lame.full = False
    await field.close()
    again = ScriptedEmbedder()
    field = await opened(again, store=store, seed=2)
    assert (await waiting(field), again.calls) == ([0], [])
    await field.close()


async def test_vectors_that_never_find_room_are_made_again_at_the_next_opening() -> None:
    store = MemoryStore(KEY)
    lame = LameVectors(store.vectors)
    lame.full = False
    field = await staffed(ScriptedEmbedder(), store=WithVectors(store, lame))
    lame.full = True
    unit = await accepted(field, record("ada", "The pump runs."))
    await field.close()
    again = ScriptedEmbedder()
    field = await opened(again, store=store, seed=2)
    await serves(field, ("scripted/words", "serving", 0))
    assert len(again.calls) == 1
    assert (await field.unit(unit)).status == "active"
    await field.close()


@requirement("akashik:enrichment:retried")
async def test_a_field_without_room_for_a_model_opens_and_embeds_when_there_is() -> None:
    store = MemoryStore(KEY)
    lame = LameVectors(store.vectors)
    field = await staffed(ScriptedEmbedder(), store=WithVectors(store, lame))
    reply = await recorded(field, "ada", "The pump runs.")
    assert reply.warnings
    assert (await field.unit(reply.memory_unit_id)).status == "pending_enrichment"
    lame.full = False
    await becomes(field, reply.memory_unit_id, "active")
    await field.close()


@requirement("akashik:enrichment:model-changed")
async def test_a_new_model_that_finds_no_room_takes_over_later_and_the_old_one_serves_meanwhile() -> None:
    store = MemoryStore(KEY)
    field = await staffed(ScriptedEmbedder(), store=store)
    await accepted(field, record("ada", "The pump runs."))
    await field.close()
    lame = LameVectors(store.vectors)
    better = ScriptedEmbedder("scripted/better")
    field = await opened(better, former=ScriptedEmbedder(), store=WithVectors(store, lame), seed=2)
    await serves(field, ("scripted/words", "serving", 0))
    lame.full = False
    await serves(field, ("scripted/better", "serving", 0))
    assert [model.name for model in await store.vectors.models()] == ["scripted/better"]
    await field.close()


async def test_a_conflict_that_finds_no_room_is_deferred_and_found_when_there_is() -> None:
    store = FaultyStore(MemoryStore(KEY), at=REGISTERED + 3, strike=fail(StorageFull()))
    field = await staffed(store=store)
    await recorded(field, "ada", HUNDRED)
    reply = await recorded(field, "ben", FIFTY)
    assert (reply.conflicts_detected, reply.conflict_detection) == ((), "deferred")

    async def found() -> bool:
        return len(await field.conflicts()) == 1

    await eventually(found)
    assert (await field.verify()).ok
    await field.close()


async def test_a_conflict_whose_write_breaks_off_is_found_by_the_next_scan_at_the_latest() -> None:
    """Nobody knows what became of the write: the units are told in the logs, and the field goes on."""
    store = FaultyStore(MemoryStore(KEY), at=REGISTERED + 3, strike=fail(OSError("the disk is gone")))
    field = await staffed(store=store)
    await recorded(field, "ada", HUNDRED)
    reply = await recorded(field, "ben", FIFTY)
    assert reply.conflict_detection != "deferred"
    assert await field.conflicts() == []
    await field.send(Message("DETECT", "ada", Detect("scan")))
    assert len(await field.conflicts()) == 1
    assert (await field.verify()).ok
    await field.close()


async def test_a_pending_status_that_finds_no_room_costs_nobody_an_answer() -> None:
    store = FaultyStore(MemoryStore(KEY), at=REGISTERED + 2, strike=fail(StorageFull()))
    embedder = ScriptedEmbedder()
    field = await staffed(embedder, store=store)
    embedder.fails = True
    reply = await recorded(field, "ada", "The pump runs.")
    assert reply.warnings
    assert (await field.unit(reply.memory_unit_id)).status == "active"
    embedder.fails = False
    await serves(field, ("scripted/words", "serving", 0))
    await field.close()


@requirement("akashik:enrichment:retried")
async def test_a_unit_whose_enriched_status_finds_no_room_is_told_again() -> None:
    store = FaultyStore(MemoryStore(KEY), at=REGISTERED + 3, strike=fail(StorageFull()), times=3)
    embedder = ScriptedEmbedder()
    field = await staffed(embedder, store=store)
    embedder.fails = True
    reply = await recorded(field, "ada", "The pump runs.")
    assert (await field.unit(reply.memory_unit_id)).status == "pending_enrichment"
    embedder.fails = False
    await becomes(field, reply.memory_unit_id, "active")
    assert store.commits == REGISTERED + 6
    await field.close()


# --- a process that is gone -------------------------------------------------------------------------------------------


@requirement("akashik:enrichment:retried")
async def test_a_process_that_died_between_commit_and_embedding_left_units_that_are_embedded_at_the_opening(
    tmp_path: Path,
) -> None:
    embedder = ScriptedEmbedder()
    field = await staffed(embedder, store=SqliteStore.open(tmp_path / "field.db", KEY), enrichment_timeout_ms=1)
    embedder.opened.clear()
    units = [await accepted(field, record("ada", f"Pump {number} runs.")) for number in range(3)]
    (tmp_path / "after").mkdir()
    left = copy_store(tmp_path / "field.db", tmp_path / "after")  # what is on disk at this moment
    embedder.opened.set()
    await field.close()
    again = ScriptedEmbedder()
    field = await opened(again, store=SqliteStore.open(left, KEY), seed=2)
    for unit in units:
        await becomes(field, unit, "active")
    await serves(field, ("scripted/words", "serving", 0))
    assert sum(len(call) for call in again.calls) == 3
    assert (await field.verify()).ok
    await field.close()


@requirement("akashik:enrichment:retried")
async def test_a_process_that_died_between_a_vector_and_its_status_left_a_unit_that_becomes_active_at_the_opening() -> (
    None
):
    store = MemoryStore(KEY)
    faulty = FaultyStore(store, at=REGISTERED + 3, strike=fail(StorageFull()), times=ALWAYS)
    embedder = ScriptedEmbedder()
    field = await staffed(embedder, store=faulty)
    embedder.fails = True
    unit = await accepted(field, record("ada", "The pump runs."))
    embedder.fails = False
    await serves(field, ("scripted/words", "serving", 0))
    await field.close()
    again = ScriptedEmbedder()
    field = await opened(again, store=store, seed=2)
    await becomes(field, unit, "active")
    assert again.calls == []
    await field.close()
