"""`field:` refs: the Field's own syntheses, as a run that began at a moment saw them."""

from collections.abc import AsyncIterator

import pytest

from fieldstone.core.requests import Compact, CompactFilter, Message
from fieldstone.field.field import LocalField
from fieldstone.profiles.openwop import MemoryAdapter
from fieldstone.testing import KEY
from tests.field.fields import staffed
from tests.messages import accepted, record, register, retract
from tests.requirements import requirement
from tests.scripted import eventually

REF = f"field:{KEY.field}:town"
FACTS = ("The gate opens at nine.", "The store closes at ten.", "The bridge is blue.")


@pytest.fixture
async def field() -> AsyncIterator[LocalField]:
    field = await staffed(compaction_ratio=0.5)
    await field.send(register("op", authority=6))
    yield field
    await field.close()


@pytest.fixture
def memory(field: LocalField) -> MemoryAdapter:
    return MemoryAdapter(field)


async def compacted(field: LocalField, *facts: str) -> list[str]:
    units = [await accepted(field, record("ada", fact, session="town")) for fact in facts]
    asked = Compact("summarize", CompactFilter(session_id="town"), verify=False)
    await field.send(Message("COMPACT", "op", asked))
    return units


async def listed(memory: MemoryAdapter, snapshot: str | None = None) -> list[str]:
    return [entry.id for entry in (await memory.list(REF, snapshot=snapshot)).entries]


@requirement("openwop:views:snapshot")
@requirement("openwop:snapshot:run-start")
async def test_a_run_sees_the_syntheses_that_were_there_when_it_began_whatever_became_of_them(
    field: LocalField, memory: MemoryAdapter
) -> None:
    before = (await memory.list(REF)).snapshot
    await compacted(field, *FACTS)
    [first] = await listed(memory)
    snapshot = (await memory.list(REF)).snapshot
    await compacted(field, "The baker is new.", "The well is deep.")
    [second] = await listed(memory)
    assert first != second  # it was compacted, too
    assert await listed(memory, snapshot) == [first]
    assert await listed(memory, before) == []
    assert await memory.get(REF, first, snapshot=snapshot) is not None
    assert await memory.get(REF, second, snapshot=snapshot) is None
    assert await memory.get(REF, second) is not None


@requirement("openwop:views:syntheses")
async def test_a_synthesis_that_quotes_what_was_taken_back_is_not_shown_any_more(
    field: LocalField, memory: MemoryAdapter
) -> None:
    units = await compacted(field, *FACTS)
    [first] = await listed(memory)
    snapshot = (await memory.list(REF)).snapshot
    await field.send(retract("ada", units[1]))

    async def gave_way() -> bool:
        return first not in await listed(memory)

    await eventually(gave_way)
    [anew] = (await memory.list(REF)).entries
    assert FACTS[1] not in anew.content
    assert await memory.get(REF, first) is None
    assert await listed(memory, snapshot) == []
