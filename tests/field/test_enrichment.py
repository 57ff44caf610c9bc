"""What a model does wrong costs a vector for a while, and nobody waits for it."""

import asyncio
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from fieldstone.backends.memory.store import MemoryStore
from fieldstone.core.replies import Accepted
from fieldstone.field import enrichment, following
from fieldstone.field.field import LocalField
from fieldstone.testing import KEY
from tests.field.fields import opened, staffed, waiting
from tests.messages import accepted, attune, attuned, join, record, retract
from tests.requirements import requirement
from tests.scripted import Rows, ScriptedEmbedder, eventually

LONG_MS = 3_600_000


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enrichment, "FIRST_PAUSE_MS", 1)
    monkeypatch.setattr(enrichment, "LONGEST_PAUSE_MS", 1)
    monkeypatch.setattr(following, "TELL_AFTER_MS", 0)


async def is_late(field: LocalField, content: str) -> bool:
    reply = await field.send(record("ada", content))
    assert isinstance(reply, Accepted)
    return bool(reply.warnings)


async def none_waits(field: LocalField) -> None:
    async def holds() -> bool:
        return await waiting(field) == [0]

    await eventually(holds)


def not_numbers(rows: Rows) -> Rows:
    return np.full_like(rows, np.nan)


@pytest.mark.parametrize(
    "lie",
    [not_numbers, lambda rows: rows[:, :1], lambda rows: rows[:-1], lambda rows: rows.repeat(2, axis=0)],
    ids=["not numbers", "one number each", "too few", "too many"],
)
async def test_a_model_that_answers_nonsense_is_not_believed(lie: Callable[[Rows], Rows]) -> None:
    embedder = ScriptedEmbedder()
    field = await staffed(embedder)
    embedder.lie = lie
    assert await is_late(field, "The pump runs.")
    embedder.lie = None
    await none_waits(field)
    assert not await is_late(field, "The pump stopped.")
    await field.close()


async def test_a_model_that_breaks_in_an_unknown_way_is_tried_again() -> None:
    embedder = ScriptedEmbedder()
    field = await staffed(embedder)

    def broken(rows: Rows) -> Rows:
        raise RuntimeError("a bug of the model's library")

    embedder.lie = broken
    assert await is_late(field, "The pump runs.")
    embedder.lie = None
    await none_waits(field)
    await field.close()


async def test_new_units_go_before_those_that_are_made_up_for() -> None:
    store = MemoryStore(KEY)
    field = await opened(store=store)
    await join(field, "ada")
    for number in range(40):
        await accepted(field, record("ada", f"Old note {number}."))
    await field.close()
    embedder = ScriptedEmbedder(most_at_once=8)
    embedder.opened.clear()
    field = await opened(embedder, store=store, seed=2)
    await embedder.asked.wait()
    answer = asyncio.create_task(is_late(field, "The new note."))

    async def recorded() -> bool:
        return (await field.status()).units == 41

    await eventually(recorded)
    embedder.opened.set()
    assert not await answer
    assert any("new note" in text for text in embedder.calls[1])
    await none_waits(field)
    assert sum(len(call) for call in embedder.calls) == 41
    await field.close()


@requirement("akashik:enrichment:turns")
async def test_a_model_that_answers_on_the_spot_lets_others_have_their_turn() -> None:
    store = MemoryStore(KEY)
    field = await staffed(store=store)
    for number in range(40):
        await accepted(field, record("ada", f"Old note {number}."))
    await field.close()
    field = await opened(ScriptedEmbedder(most_at_once=1), store=store, seed=2)
    seen: list[list[int]] = []
    while seen[-1:] != [[0]]:
        await asyncio.sleep(0)
        seen.append(await waiting(field))
    assert len(seen) >= 20
    await field.close()


async def test_nobody_waits_for_a_model_that_has_just_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enrichment, "FIRST_PAUSE_MS", LONG_MS)
    monkeypatch.setattr(enrichment, "LONGEST_PAUSE_MS", LONG_MS)
    embedder = ScriptedEmbedder()
    field = await staffed(embedder, enrichment_timeout_ms=LONG_MS)
    embedder.fails = True
    assert await is_late(field, "The pump runs.")
    assert await is_late(field, "The pump stopped.")
    assert len(embedder.calls) == 1
    await field.close()


async def test_nobody_waits_for_a_model_that_is_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enrichment, "STUCK_MS", -1)  # whatever it is at, it has been at it for too long
    embedder = ScriptedEmbedder()
    field = await staffed(embedder, enrichment_timeout_ms=LONG_MS)
    embedder.opened.clear()
    first = asyncio.create_task(is_late(field, "The pump runs."))
    await embedder.asked.wait()
    assert await is_late(field, "The pump stopped.")
    embedder.opened.set()
    assert not await first
    await none_waits(field)
    await field.close()


async def test_a_model_that_never_finishes_loading_holds_up_neither_answers_nor_closing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(enrichment, "LOADING_MS", 1)
    monkeypatch.setattr(enrichment, "CLOSING_MS", 1)

    class Loading(ScriptedEmbedder):
        async def embed(self, texts: Sequence[str]) -> Rows:
            await self.opened.wait()
            return await super().embed(texts)

    embedder = Loading()
    embedder.opened.clear()
    field = await staffed(embedder, enrichment_timeout_ms=1)
    assert await is_late(field, "The pump runs.")
    await field.close()


async def test_a_model_that_hangs_does_not_hold_up_closing_and_its_units_are_embedded_next_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(enrichment, "CLOSING_MS", 1)
    store, embedder = MemoryStore(KEY), ScriptedEmbedder()
    field = await staffed(embedder, store=store, enrichment_timeout_ms=1)
    embedder.opened.clear()
    unit = await accepted(field, record("ada", "The pump runs."))
    await field.close()
    assert embedder.closed
    field = await opened(ScriptedEmbedder(), store=store, seed=2)

    async def is_active() -> bool:
        return (await field.unit(unit)).status == "active"

    await eventually(is_active)
    assert await waiting(field) == [0]
    await field.close()


async def test_a_batch_that_is_under_way_is_finished_when_the_field_closes() -> None:
    store, embedder = MemoryStore(KEY), ScriptedEmbedder()
    field = await staffed(embedder, store=store, enrichment_timeout_ms=1)
    embedder.opened.clear()
    await accepted(field, record("ada", "The pump runs."))
    closing = asyncio.create_task(field.close())
    embedder.opened.set()
    await closing
    again = ScriptedEmbedder()
    field = await opened(again, store=store, seed=2)
    assert await waiting(field) == [0]
    assert again.calls == []
    await field.close()


async def test_a_unit_that_left_before_its_turn_is_not_embedded_after_a_restart() -> None:
    store, embedder = MemoryStore(KEY), ScriptedEmbedder()
    embedder.fails = True
    field = await staffed(embedder, store=store)
    unit = await accepted(field, record("ada", "The pump runs."))
    await field.send(retract("ada", unit))
    await field.close()
    again = ScriptedEmbedder()
    field = await opened(again, store=store, seed=2)
    assert (await waiting(field), again.calls) == ([0], [])
    await field.close()


async def test_units_that_were_imported_get_their_vectors_and_are_compared() -> None:
    source = await staffed()
    await accepted(source, record("ada", "The API rate limit is 100 requests per second."))
    await accepted(source, record("ben", "The pump runs."))
    lines = b"".join([part async for part in source.export()]).splitlines()
    await source.close()
    embedder = ScriptedEmbedder()
    field = await opened(embedder, seed=2)
    await field.import_lines(lines)
    await none_waits(field)
    assert sum(len(call) for call in embedder.calls) == 2
    assert (await field.status()).detection_behind == 2
    await join(field, "eve")
    assert len(await attuned(field, attune("eve", "pump"))) == 2
    await field.close()
