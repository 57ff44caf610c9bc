"""Corners of the MemoryAdapter: what a snapshot shows, what a hold keeps, what an id may replace."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fieldstone.backends.memory.store import MemoryStore
from fieldstone.core.errors import Forbidden, InvalidPayload
from fieldstone.field.compacting import Compacting
from fieldstone.field.condensing import Condensing
from fieldstone.field.field import LocalField
from fieldstone.ports.store import Commit
from fieldstone.profiles.openwop import MemoryAdapter, SeedEntry
from fieldstone.testing import KEY
from tests.field.fields import opened
from tests.requirements import requirement


@pytest.fixture
async def field() -> AsyncIterator[LocalField]:
    opened_field = await opened()
    yield opened_field
    await opened_field.close()


@pytest.fixture
def memory(field: LocalField) -> MemoryAdapter:
    return MemoryAdapter(field)


async def two(memory: MemoryAdapter) -> list[str]:
    return [(await memory.put("m", content=f"Stand {at} sells pears.", tags=["fair"])).id for at in range(2)]


@requirement("openwop:snapshot:run-start")
async def test_what_a_compaction_made_after_a_run_began_is_not_there_for_the_run(memory: MemoryAdapter) -> None:
    await two(memory)
    snapshot = (await memory.list("m")).snapshot
    [event] = await memory.compact("m", why="by hand", whole=True)
    output = event.payload["outputId"]
    assert await memory.get("m", output, snapshot=snapshot) is None
    assert await memory.get("m", output) is not None
    assert len((await memory.list("m", snapshot=snapshot)).entries) == 2


@requirement("openwop:snapshot:replay")
async def test_a_run_gets_the_version_of_an_id_that_was_there_when_it_began(memory: MemoryAdapter) -> None:
    await memory.seed("m", [SeedEntry(id="k", content="The old text.")])
    snapshot = (await memory.list("m")).snapshot
    await memory.seed("m", [SeedEntry(id="k", content="The new text.")])
    old, new = await memory.get("m", "k", snapshot=snapshot), await memory.get("m", "k")
    assert old is not None
    assert new is not None
    assert (old.content, new.content) == ("The old text.", "The new text.")


@requirement("openwop:unit:seed-replaces", "openwop:compaction:immutable")
async def test_an_id_that_the_host_made_can_be_replaced_but_an_output_stays(memory: MemoryAdapter) -> None:
    first, _ = await two(memory)
    await memory.seed("m", [SeedEntry(id=first, content="Another text.")])
    listed = (await memory.list("m")).entries
    assert [entry.id for entry in listed].count(first) == 1
    assert await memory.delete("m", first)
    assert await memory.get("m", first) is None
    [event] = await _compacted(memory)
    with pytest.raises(InvalidPayload, match="stays as it is"):
        await memory.seed("m", [SeedEntry(id=event, content="A forged text.")])


@requirement("openwop:forget:held")
async def test_a_held_output_is_not_deleted_and_neither_is_what_it_was_made_from(
    field: LocalField, memory: MemoryAdapter
) -> None:
    originals = await two(memory)
    [event] = await memory.compact("m", why="by hand", whole=True)
    output = event.payload["outputId"]
    await field.guard(output, "hold")
    with pytest.raises(Forbidden, match="held"):
        await memory.delete("m", output)
    assert await memory.get("m", output) is not None
    assert await field.restore(originals) == 2


@requirement("openwop:forget:held")
async def test_forgetting_counts_what_went_and_not_what_is_held(field: LocalField, memory: MemoryAdapter) -> None:
    first, _ = await two(memory)
    await field.guard(first, "hold")
    assert await memory.forget("m", tag="fair") == 1
    assert [entry.id for entry in (await memory.list("m")).entries] == [first]


@requirement("openwop:memory:entry-closed")
@pytest.mark.parametrize(
    "moment", ["9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59", "2030-W01-1T00:00:00Z", "20300101T000000Z", ""]
)
async def test_a_time_that_is_none_is_refused(memory: MemoryAdapter, moment: str) -> None:
    with pytest.raises(InvalidPayload):
        await memory.put("m", content="It goes soon.", expires_at=moment)


@requirement("openwop:compaction:nothing-under-two")
async def test_one_entry_is_not_distilled_again(memory: MemoryAdapter) -> None:
    await two(memory)
    assert await memory.distil("m", 8_000) is not None
    assert await memory.distil("m", 8_000) is None


async def _compacted(memory: MemoryAdapter) -> list[str]:
    await two(memory)
    return [event.payload["outputId"] for event in await memory.compact("m", why="by hand", whole=True)]


class Lingering(MemoryStore):
    """What it has written is there for whoever reads, and its writer hears of it later."""

    def __init__(self) -> None:
        super().__init__(KEY)
        self.written = asyncio.Event()
        self.goes_on = asyncio.Event()
        self.goes_on.set()

    async def commit(self, commit: Commit) -> None:
        await super().commit(commit)
        self.written.set()
        await self.goes_on.wait()


async def test_an_entry_that_is_on_disk_and_not_yet_acknowledged_breaks_no_compaction() -> None:
    store = Lingering()
    field = await opened(store=store)
    memory = MemoryAdapter(field)
    await two(memory)
    store.written.clear()
    store.goes_on.clear()
    putting = asyncio.ensure_future(memory.put("m", content="Meanwhile."))
    await store.written.wait()
    compacting = asyncio.ensure_future(memory.compact("m", why="by hand", whole=True))
    await asyncio.sleep(0)
    store.goes_on.set()
    [event] = await compacting
    assert event.payload["sourceCount"] in (2, 3)
    assert (await putting).content == "Meanwhile."
    await field.close()


@requirement("openwop:compaction:changed-meanwhile")
async def test_an_entry_that_is_deleted_while_a_memory_is_compacted_does_not_keep_the_others_from_it(
    memory: MemoryAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    await memory.seed("m", [SeedEntry(id=each, content=f"Stand {each} sells pears.") for each in "klm"])
    synthesizing, times = Compacting._synthesizing, 0

    async def deleted_meanwhile(*given: Any, **how: Any) -> Any:
        nonlocal times
        times += 1
        if times == 1:
            await memory.delete("m", "l")
        return await synthesizing(*given, **how)

    monkeypatch.setattr(Compacting, "_synthesizing", deleted_meanwhile)
    [event] = await memory.compact("m", why="by hand", whole=True)
    assert event.payload["sourceIds"] == ["k", "m"]
    assert times == 2


@requirement("openwop:distillation:replaced-meanwhile")
async def test_an_entry_that_is_replaced_while_it_is_distilled_is_said_as_it_is_now(
    memory: MemoryAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    await memory.seed("m", [SeedEntry(id="k", content="The old text."), SeedEntry(id="l", content="Another one.")])
    within, times = Condensing._within, 0

    async def replaced_meanwhile(*given: Any, **how: Any) -> Any:
        nonlocal times
        times += 1
        if times == 1:
            await memory.seed("m", [SeedEntry(id="k", content="The new text.")])
        return await within(*given, **how)

    with monkeypatch.context() as between:
        between.setattr(Condensing, "_within", replaced_meanwhile)
        assert await memory.distil("m") is not None
    [output] = (await memory.list("m")).entries
    assert "The new text." in output.content
    assert "The old text." not in output.content
