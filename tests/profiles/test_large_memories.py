"""A memory of more entries than one step takes becomes one entry all the same."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from fieldstone.backends.memory.store import MemoryStore
from fieldstone.compaction.plan import BATCH_UNITS
from fieldstone.core.access import LOCAL
from fieldstone.field.compact import Compactions
from fieldstone.field.compacting import Compacting
from fieldstone.field.field import LocalField
from fieldstone.field.synthesis import Synthesizing
from fieldstone.ports.log import StoredText
from fieldstone.profiles.openwop import MemoryAdapter, SeedEntry
from fieldstone.testing import KEY
from tests.field.fields import opened
from tests.requirements import requirement

COUNT = 2 * BATCH_UNITS + 10


async def test_a_compaction_of_more_entries_than_one_step_takes_leaves_one_and_knows_all_its_sources() -> None:
    field = await opened()
    memory = MemoryAdapter(field, LOCAL)
    await memory.seed("m", [SeedEntry(id=f"e{at}", content=f"Stand {at} sells pears.") for at in range(COUNT)])
    [event] = await memory.compact("m", why="by hand", whole=True)
    assert (event.payload["sourceCount"], "sourceIds" in event.payload) == (COUNT, False)
    [output] = (await memory.list("m")).entries
    assert output.id == event.payload["outputId"]
    assert len((await field.lineage(output.id)).made_from) == COUNT
    assert await memory.delete("m", output.id)
    texts = [text.body async for text in _texts(field)]
    assert not any(b"sells pears" in body for body in texts)
    before = await field._store.views.checksum()
    await field.rebuild()
    assert await field._store.views.checksum() == before
    await field.close()


async def _texts(field: LocalField) -> AsyncIterator[StoredText]:
    after = 0
    while batch := await field._store.texts.read(after=after, limit=1_000):
        for text in batch:
            yield text
        after = batch[-1].seq


async def test_a_compaction_that_was_cut_off_evicts_its_sources_when_the_field_opens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = MemoryStore(KEY)
    field = await opened(store=store)
    memory = MemoryAdapter(field, LOCAL)
    await memory.seed("m", [SeedEntry(id=f"e{at}", content=f"Stand {at} sells pears.") for at in range(COUNT)])

    async def die(*_: object, **__: object) -> None:
        raise OSError("cut off")

    async def nothing(*_: object, **__: object) -> None:
        return None

    with monkeypatch.context() as cut:
        cut.setattr(Compacting, "_archive_rest", die)
        cut.setattr(Compactions, "_end", nothing)
        with pytest.raises(OSError, match="cut off"):
            await memory.compact("m", why="by hand", whole=True)
        await field.close()
    again = await opened(store=store, seed=2)
    [output] = (await MemoryAdapter(again, LOCAL).list("m")).entries
    assert output.tags[0].startswith("compacted-from:")
    await again.close()


@requirement("openwop:compaction:deleted-meanwhile")
async def test_what_is_deleted_while_its_memory_is_compacted_is_in_no_synthesis(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    field = await opened()
    memory = MemoryAdapter(field, LOCAL)
    await memory.seed("m", [SeedEntry(id=f"e{at}", content=f"Stand {at} sells pears.") for at in range(COUNT)])
    synthesizing = Compacting._synthesizing

    async def deleted_just_before(*given: Any) -> Synthesizing:
        work = await synthesizing(*given)
        between.undo()
        assert await memory.delete("m", f"e{COUNT - 1}")
        return work

    with monkeypatch.context() as between:
        between.setattr(Compacting, "_synthesizing", deleted_just_before)
        [event] = await memory.compact("m", why="by hand", whole=True)
    assert event.payload["sourceCount"] == COUNT - 1
    assert not [text async for text in _texts(field) if f"Stand {COUNT - 1} ".encode() in text.body]
    await field.close()
