"""Lists of guards and compactions through the API: the same calls wherever the field is."""

from typing import Any

import pytest

from fieldstone import Agent, Field
from fieldstone.core import errors
from fieldstone.core.replies import GuardPage

WHY: dict[str, Any] = {"intent": "size the market", "confidence": 0.8, "reasoning": "two reports"}


async def recorded(field: Field, count: int) -> tuple[Agent, list[str]]:
    ada = await field.agent("ada", role="researcher", authority=10)
    units = [(await ada.record(f"Region {n} grows.", **WHY, session_id=f"s-{n}")).memory_unit_id for n in range(count)]
    return ada, units


def told(page: GuardPage) -> list[tuple[str, str]]:
    return [(each.unit_id, each.guard) for each in page.guards]


async def test_guards_are_listed_by_unit_and_page_by_page(field: Field) -> None:
    _, units = await recorded(field, 3)
    for unit in reversed(units):
        await field.pin(unit)
    await field.hold(units[1])
    everything = [(units[0], "pin"), (units[1], "hold"), (units[1], "pin"), (units[2], "pin")]
    assert told(await field.guards()) == everything
    assert told(await field.guards("hold")) == [(units[1], "hold")]
    pages = [first := await field.guards(limit=2)]
    assert first.next is not None
    pages.append(await field.guards(after=first.next, limit=2))
    assert [told(page) for page in pages] == [everything[:3], everything[3:]], "a unit's guards stay together"
    assert pages[-1].next is None
    await field.unpin(units[0])
    assert told(await field.guards()) == everything[1:]


async def test_compactions_are_listed_the_oldest_first_and_page_by_page(field: Field) -> None:
    ada, _ = await recorded(field, 3)
    assert (await field.compactions()).compactions == ()
    made = [(await ada.compact("archive", session_id=f"s-{n}")).compaction_id for n in range(3)]
    first = await field.compactions(limit=2)
    assert first.next is not None
    last = await field.compactions(after=first.next, limit=2)
    assert [each.compaction_id for each in (*first.compactions, *last.compactions)] == made
    assert last.next is None
    assert {(each.strategy, each.state, each.units_done, each.agent_id) for each in first.compactions} == {
        ("archive", "done", 1, "ada")
    }


@pytest.mark.parametrize("limit", [0, 1_001])
async def test_a_page_has_a_size_that_can_be_read_in_one_go(field: Field, limit: int) -> None:
    for listing in (field.guards(limit=limit), field.compactions(limit=limit)):
        with pytest.raises(errors.InvalidPayload, match="limit"):
            await listing
