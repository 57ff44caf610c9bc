"""What was taken back is not said on by a synthesis."""

from fieldstone.backends.memory.store import MemoryStore
from fieldstone.core.events import UnitRecorded
from fieldstone.core.requests import Compact, CompactFilter, Message
from fieldstone.field.field import LocalField
from fieldstone.field.requoting import REQUOTED
from fieldstone.testing import KEY
from tests.field.fields import opened, staffed
from tests.messages import accepted, record, register, retract
from tests.scripted import eventually

FACTS = ("The gate opens at nine.", "The store closes at ten.", "The bridge is blue.")


async def compacted(field: LocalField) -> list[str]:
    """Three facts of one session, in one synthesis."""
    units = [await accepted(field, record("ada", fact, session="town")) for fact in FACTS]
    await field.send(register("op", authority=6))
    asked = Compact("summarize", CompactFilter(session_id="town"), verify=False)
    await field.send(Message("COMPACT", "op", asked))
    return units


async def syntheses(field: LocalField) -> list[str]:
    events = [line.entry.event for line in (await field.log(limit=1_000)).entries]
    return [event.id for event in events if isinstance(event, UnitRecorded) and event.type == "synthesis"]


async def said(field: LocalField) -> list[str]:
    """By the syntheses that stand."""
    units = [await field.unit(unit) for unit in await syntheses(field)]
    return [unit.content for unit in units if unit.status == "active"]


async def test_a_synthesis_is_made_anew_without_the_unit_that_was_retracted() -> None:
    field = await staffed(compaction_ratio=0.5)
    units = await compacted(field)
    [text] = await said(field)
    assert all(fact in text for fact in FACTS)
    await field.send(retract("ada", units[1]))

    async def is_anew() -> bool:
        [text] = await said(field)
        return FACTS[1] not in text and FACTS[0] in text and FACTS[2] in text

    await eventually(is_anew)
    await field.close()


async def test_a_synthesis_of_which_nothing_holds_any_more_is_taken_back() -> None:
    field = await staffed(compaction_ratio=0.5)
    for unit in await compacted(field):
        await field.send(retract("ada", unit))

    async def is_gone() -> bool:
        return await said(field) == []

    await eventually(is_gone)
    await field.close()


async def test_what_a_crash_left_undone_is_done_when_the_field_opens() -> None:
    store = MemoryStore(KEY)
    field = await staffed(store=store, compaction_ratio=0.5)
    units = await compacted(field)
    before = await store.log.head()
    await store.marks.set(REQUOTED, before.seq)
    field._compactions.requoting.notice = lambda changes: None  # type: ignore[method-assign]  # it dies before that
    field._compactions.requoting._mark = _nothing  # type: ignore[method-assign]
    await field.send(retract("ada", units[1]))
    assert FACTS[1] in (await said(field))[0]
    await field.close()
    again = await opened(store=store, seed=2)

    async def is_anew() -> bool:
        [text] = await said(again)
        return FACTS[1] not in text

    await eventually(is_anew)
    await again.close()


async def test_a_pinned_synthesis_stays_as_it_is() -> None:
    field = await staffed(compaction_ratio=0.5)
    units = await compacted(field)
    [synthesis] = await syntheses(field)
    await field.guard(synthesis, "pin")
    await field.send(retract("ada", units[1]))
    await field.close()
    assert (await said(field))[0].count(FACTS[1]) == 1


async def _nothing() -> None:
    return None
