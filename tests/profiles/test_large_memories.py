"""A memory of more entries than one step takes becomes one entry all the same."""

from fieldstone.compaction.plan import BATCH_UNITS
from fieldstone.core.access import LOCAL
from fieldstone.profiles.openwop import MemoryAdapter, SeedEntry
from tests.field.fields import opened

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


async def _texts(field):  # type: ignore[no-untyped-def]
    after = 0
    while batch := await field._store.texts.read(after=after, limit=1_000):
        for text in batch:
            yield text
        after = batch[-1].seq
