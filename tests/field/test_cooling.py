"""Vectors of archived units leave the others, on disk and in memory; whoever asks for archived units misses none."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fieldstone.backends.memory.store import MemoryStore
from fieldstone.backends.memory.vectors import MemoryVectors
from fieldstone.core.errors import StorageFull
from fieldstone.core.replies import AttuneReply
from fieldstone.core.requests import Compact, CompactFilter, Message
from fieldstone.core.vocabulary import Strategy
from fieldstone.field import cooling
from fieldstone.field.field import LocalField
from fieldstone.ports.vectors import Quantized
from fieldstone.projections import cold_meaning, vector_keeper
from fieldstone.projections.vector_index import VectorIndex
from fieldstone.testing import KEY
from tests.field.fields import opened, waiting
from tests.messages import accepted, attune, join, record, register
from tests.redact.fakes import noise
from tests.requirements import requirement
from tests.scripted import ScriptedEmbedder, eventually

HINT = "the kiln of a potter"
OLD = 12
NEW = 3


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(KEY)


@pytest.fixture
def embedder() -> ScriptedEmbedder:
    return ScriptedEmbedder()


@pytest.fixture
async def field(store: MemoryStore, embedder: ScriptedEmbedder) -> AsyncIterator[LocalField]:
    field = await opened(embedder, store=store)
    await filled(field)
    yield field
    await field.close()


async def filled(field: LocalField) -> None:
    await field.send(register("op", role="operator", authority=10))
    await join(field, "ada", "ben")
    for session, count in (("old", OLD), ("new", NEW)):
        for at in range(count):
            said = f"The kiln {at} of potter {at * 7} was {'cold' if at % 3 else 'hot'} in {session} days."
            await accepted(field, record("ada", said, session=session))
    await written(field)


async def written(field: LocalField) -> None:
    """All vectors that were made are in the store."""
    if field._meanings._serving is not None:
        await field._meanings._serving.flush()


async def compact(field: LocalField, strategy: Strategy = "archive") -> None:
    request = Compact(strategy=strategy, filter=CompactFilter(session_id="old"), reason="a test")
    await field.send(Message("COMPACT", "op", request))


async def restore_all(field: LocalField) -> None:
    rows = await field._store.views.scan_units(after=0, limit=100)
    await field.restore([row.id for row in rows if row.archived_epoch is not None])


async def near(field: LocalField, hint: str = HINT, **scope: Any) -> dict[str, float]:
    """How near each unit that is shown is to the hint, best first."""
    reply = await field.send(attune("ben", hint, **scope))
    assert isinstance(reply, AttuneReply)
    return {each.memory_unit.id: (each.factors or {}).get("semantic", 0.0) for each in reply.record}


async def lying(store: MemoryStore) -> tuple[int, int]:
    """How many vectors of the serving model lie here, and how many in cold storage."""
    model = next(each for each in await store.vectors.models() if each.state == "serving")
    counts = [0, 0]
    for cold in (False, True):
        async for piece in store.vectors.scan(model.number, cold=cold):
            counts[cold] += len(piece.seqs)
    return counts[0], counts[1]


def hot_index(field: LocalField) -> VectorIndex:
    assert field._meanings.meaning is not None
    return field._meanings.meaning.index


@requirement("akashik:compact:archive-vectors")
async def test_vectors_of_archived_units_leave_the_store_and_the_index_in_memory(
    field: LocalField, store: MemoryStore
) -> None:
    assert hot_index(field).count == OLD + NEW
    await compact(field)
    assert await lying(store) == (NEW, OLD)
    assert hot_index(field).count == NEW


@requirement("akashik:compact:archive-ranked-by-meaning")
async def test_whoever_asks_for_archived_units_finds_them_as_near_as_before(field: LocalField) -> None:
    before = await near(field, include_archived=True)
    await compact(field)
    assert await near(field, include_archived=True) == pytest.approx(before)
    hot = await near(field)
    assert list(await near(field, temporal_layers=["past"])) == [unit for unit in before if unit not in hot]


async def test_also_after_the_field_was_opened_again(
    field: LocalField, store: MemoryStore, embedder: ScriptedEmbedder
) -> None:
    before = await near(field, include_archived=True)
    await compact(field)
    await field.close()
    again = await opened(ScriptedEmbedder(), store=store, seed=2)
    assert await waiting(again) == [0]
    assert await near(again, include_archived=True) == pytest.approx(before)
    await again.close()


async def test_nobody_reads_them_who_does_not_ask_for_them(field: LocalField) -> None:
    await compact(field)
    assert len(await near(field)) == NEW
    assert field._meanings.reach is field._meanings.meaning


@requirement("akashik:compact:restore-vectors")
async def test_restored_units_are_near_again_without_the_model_being_asked(
    field: LocalField, store: MemoryStore, embedder: ScriptedEmbedder
) -> None:
    before = await near(field)
    await compact(field)
    asked = len(embedder.calls)
    await restore_all(field)
    assert len(embedder.calls) == asked
    assert await lying(store) == (OLD + NEW, 0)
    assert await near(field) == pytest.approx(before)


async def test_units_restored_before_their_vectors_were_moved_keep_them(
    field: LocalField, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await compact(field)
    await restore_all(field)
    async with field._meanings.cooling._moving:  # it does not come to moving anything
        archiving = asyncio.ensure_future(compact(field))
        await eventually(lambda: _holds(len(field._meanings.cooling._due) == OLD))
        restoring = asyncio.ensure_future(restore_all(field))
        for _ in range(20):
            await asyncio.sleep(0)
    await archiving
    await restoring
    assert await lying(store) == (OLD + NEW, 0)
    assert hot_index(field).count == OLD + NEW


async def test_an_archived_unit_that_never_got_a_vector_gets_it_in_cold_storage(
    store: MemoryStore, embedder: ScriptedEmbedder
) -> None:
    field = await opened(None, store=store)
    await filled(field)
    await compact(field)
    await field.close()
    field = await opened(embedder, store=store, seed=2)
    await eventually(lambda: _none_waits(field))
    await near(field, include_archived=True)
    assert hot_index(field).count == NEW
    await field.close()
    assert await lying(store) == (NEW, OLD)


@pytest.fixture
async def slow_field(
    store: MemoryStore, embedder: ScriptedEmbedder, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[LocalField]:
    """The vectors of its archived units were made after these were archived, and are not in the store yet."""
    monkeypatch.setattr(vector_keeper, "IDLE_MS", 3_600_000)
    embedder.opened.clear()
    field = await opened(embedder, store=store, enrichment_timeout_ms=0)
    await filled(field)
    await compact(field)
    embedder.opened.set()
    await eventually(lambda: _none_waits(field))
    assert await lying(store) == (0, 0)
    yield field
    await field.close()


async def test_a_vector_made_for_an_archived_unit_is_found_before_it_is_in_the_store(slow_field: LocalField) -> None:
    found = await near(slow_field, include_archived=True)
    assert len(found) == OLD + NEW
    assert all(found.values())


async def test_a_unit_restored_before_its_vector_was_in_the_store_is_found_by_its_meaning(
    slow_field: LocalField,
) -> None:
    await restore_all(slow_field)
    await eventually(lambda: _none_waits(slow_field))
    found = await near(slow_field)
    assert len(found) == OLD + NEW
    assert all(found.values())


async def test_a_new_model_embeds_archived_units_too_and_their_vectors_are_cold(
    field: LocalField, store: MemoryStore, embedder: ScriptedEmbedder
) -> None:
    await compact(field)
    await field.close()
    new = ScriptedEmbedder("scripted/others", dimension=32)
    field = await opened(new, store=store, former=embedder, seed=2)

    async def serves() -> bool:
        return [each.model for each in (await field.status()).embeddings] == ["scripted/others"]

    await eventually(serves)
    found = await near(field, include_archived=True)
    assert len(found) == OLD + NEW
    assert all(found.values())
    assert hot_index(field).count == NEW
    await field.close()
    assert await lying(store) == (NEW, OLD)


async def test_units_archived_while_a_new_model_is_prepared_leave_both(
    field: LocalField, store: MemoryStore, embedder: ScriptedEmbedder
) -> None:
    await field.close()
    new = ScriptedEmbedder("scripted/others", dimension=32)
    new.opened.clear()
    field = await opened(new, store=store, former=ScriptedEmbedder(), seed=2)
    await new.asked.wait()
    archiving = asyncio.ensure_future(compact(field))
    await archiving
    assert hot_index(field).count == NEW
    new.opened.set()

    async def serves() -> bool:
        return [each.model for each in (await field.status()).embeddings] == ["scripted/others"]

    await eventually(serves)
    assert hot_index(field).count == NEW
    await field.close()
    assert await lying(store) == (NEW, OLD)


@requirement("akashik:compact:purge-cold-vectors")
@pytest.mark.parametrize("loaded", [True, False])
async def test_nothing_of_a_purged_unit_is_in_cold_storage_or_in_memory(
    field: LocalField, store: MemoryStore, *, loaded: bool
) -> None:
    await compact(field)
    if loaded:
        await near(field, include_archived=True)
    await compact(field, "purge")
    assert await lying(store) == (NEW, 0)
    reach = await field._meanings.whole()
    assert reach is not None
    assert reach.index.count == NEW


async def test_an_archived_text_that_is_swept_is_embedded_as_it_is_now_and_nothing_is_left_of_its_old_vector(
    field: LocalField, store: MemoryStore, embedder: ScriptedEmbedder
) -> None:
    secret = f"zeppelin {noise(10).lower()} under {noise(12).lower()}"
    unit = await accepted(field, record("ada", f"The door opens with {secret}.", session="old"))
    await compact(field)
    was_near = (await near(field, secret, include_archived=True))[unit]
    assert was_near > 0.2
    [model] = await store.vectors.models()
    [before] = [piece async for piece in store.vectors.scan(model.number, cold=True)]
    await field.put_secret("door", secret)
    await field.sweep()
    await eventually(lambda: _none_waits(field))
    found = await near(field, "The door opens with [REDACTED:door]", include_archived=True)
    assert found[unit] == max(found.values())
    await field.close()
    assert await lying(store) == (NEW, OLD + 1)
    [after] = [piece async for piece in store.vectors.scan(model.number, cold=True)]
    assert after.seqs.tolist() == before.seqs.tolist()
    changed = (after.codes != before.codes).any(axis=1)
    assert changed.tolist() == [seq == max(before.seqs) for seq in before.seqs]


@pytest.mark.parametrize("are_archived", [True, False])
async def test_vectors_that_lie_where_they_do_not_belong_are_moved_when_the_field_opens(
    field: LocalField, store: MemoryStore, *, are_archived: bool
) -> None:
    if are_archived:
        await compact(field)
    await field.close()
    units = [row.seq for row in await store.views.scan_units(after=0, limit=100)]
    if are_archived:  # an older version had no cold vectors
        await store.vectors.warm(units)
    else:  # a crash came after a restore, and before its vectors were back
        await store.vectors.cool(units[:OLD])
    embedder = ScriptedEmbedder()
    again = await opened(embedder, store=store, seed=2)
    expected = (NEW, OLD) if are_archived else (OLD + NEW, 0)

    async def are_there() -> bool:
        return await lying(store) == expected

    await eventually(are_there)
    assert hot_index(again).count == expected[0]
    assert embedder.calls == []
    await again.close()


async def test_cold_vectors_of_units_that_are_not_here_are_left_alone(field: LocalField, store: MemoryStore) -> None:
    await compact(field)
    await field.close()
    [model] = await store.vectors.models()
    [held] = [piece async for piece in store.vectors.scan(model.number, cold=True)]
    newer = Quantized(held.seqs[:1] + 10_000, held.scales[:1], held.codes[:1])
    await store.vectors.add(model.number, newer, cold=True)
    again = await opened(ScriptedEmbedder(), store=store, seed=2)
    assert len(await near(again, include_archived=True)) == OLD + NEW
    await again.close()
    assert await lying(store) == (NEW, OLD + 1)


async def test_they_are_let_go_when_nobody_asks_for_them_and_read_again_when_somebody_does(
    field: LocalField, monkeypatch: pytest.MonkeyPatch
) -> None:
    await compact(field)
    monkeypatch.setattr(cold_meaning, "IDLE_S", 0.0)
    before = await near(field, include_archived=True)

    async def is_gone() -> bool:
        return field._meanings.reach is field._meanings.meaning

    await eventually(is_gone)
    assert await near(field, include_archived=True) == pytest.approx(before)


class SlowVectors(MemoryVectors):
    """Reading cold ones takes until it is `opened`; or it `fails`."""

    def __init__(self) -> None:
        super().__init__(lambda size: None)
        self.opened = asyncio.Event()
        self.opened.set()
        self.asked = asyncio.Event()
        self.fails = False

    async def scan(self, model: int, *, cold: bool = False) -> AsyncIterator[Quantized]:
        pieces = [piece async for piece in super().scan(model, cold=cold)]
        if cold:
            self.asked.set()
            await self.opened.wait()
            if self.fails:
                raise OSError("it was told to fail")
        for piece in pieces:
            yield piece


async def test_units_that_are_archived_or_purged_while_the_others_are_read_are_as_they_are_then(
    store: MemoryStore, embedder: ScriptedEmbedder
) -> None:
    store.vectors = slow = SlowVectors()
    field = await opened(embedder, store=store)
    await filled(field)
    before = await near(field, include_archived=True)
    slow.opened.clear()
    slow.asked.clear()
    field._meanings._serving.cold.let_go()  # type: ignore[union-attr]
    answers = [asyncio.ensure_future(near(field, include_archived=True)) for _ in range(3)]
    await slow.asked.wait()
    await compact(field)
    slow.opened.set()
    assert [await answer for answer in answers] == [pytest.approx(before)] * 3
    slow.opened.clear()
    field._meanings._serving.cold.let_go()  # type: ignore[union-attr]
    reading = asyncio.ensure_future(field._meanings.whole())
    await asyncio.sleep(0)
    await compact(field, "purge")
    slow.opened.set()
    reach = await reading
    assert reach is not None
    assert reach.index.count == NEW
    await field.close()


async def test_a_reading_that_fails_is_told_and_tried_again_by_the_next_who_asks(
    store: MemoryStore, embedder: ScriptedEmbedder
) -> None:
    store.vectors = slow = SlowVectors()
    field = await opened(embedder, store=store)
    await filled(field)
    before = await near(field, include_archived=True)
    await compact(field)
    field._meanings._serving.cold.let_go()  # type: ignore[union-attr]
    slow.fails = True
    with pytest.raises(OSError, match="told to fail"):
        await near(field, include_archived=True)
    assert len(await near(field)) == NEW
    slow.fails = False
    assert await near(field, include_archived=True) == pytest.approx(before)
    await field.close()


async def test_a_disk_that_will_not_take_them_leaves_them_where_they_are_and_they_are_moved_later(
    field: LocalField, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(_units: object) -> None:
        raise StorageFull

    before = await near(field, include_archived=True)
    with monkeypatch.context() as patch:
        patch.setattr(store.vectors, "cool", full)
        with pytest.raises(StorageFull):
            await compact(field)
    assert await near(field, include_archived=True) == pytest.approx(before)
    assert await lying(store) == (OLD + NEW, 0)
    await field._meanings.cooling.flush()
    assert await lying(store) == (NEW, OLD)


async def test_a_unit_restates_what_was_shown_from_the_archive(field: LocalField) -> None:
    said = "Cobalt glaze turns green above twelve hundred degrees."
    original = await accepted(field, record("ada", said, session="old"))
    await compact(field)
    assert original in await near(field, "cobalt glaze", include_archived=True)
    unit = await accepted(field, record("ben", said, session="new"))
    row = await field._store.views.unit(unit)
    shown = await field._store.views.unit(original)
    assert row is not None
    assert shown is not None
    assert row.echo_of == shown.seq


async def test_vectors_move_in_larger_steps_than_units_and_all_of_them_by_the_end(
    field: LocalField, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[int] = []
    cool = store.vectors.cool

    async def counted(units: Any) -> None:
        steps.append(len(units))
        await cool(units)

    monkeypatch.setattr(store.vectors, "cool", counted)
    monkeypatch.setattr(cooling, "MOVED_UNITS", 5)
    await compact(field)
    assert sum(steps) == OLD
    assert max(steps) <= 5


async def _none_waits(field: LocalField) -> bool:
    return await waiting(field) == [0]


async def _holds(holds: bool) -> bool:
    return holds
