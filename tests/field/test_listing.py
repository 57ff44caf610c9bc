"""Lists tell of nothing that the caller does not see."""

from collections.abc import AsyncIterator

import pytest

from fieldstone.core.errors import Forbidden
from fieldstone.core.requests import Compact, CompactFilter, Message
from fieldstone.field import listing
from tests.access.people import VAULT, Company, company, credential, tells_any
from tests.requirements import requirement


@pytest.fixture
async def team() -> AsyncIterator[Company]:
    made = await company(by_meaning=False)
    yield made
    await made.field.close()


@requirement("akashik:access:lists")
@requirement("akashik:access:closed-sessions")
@pytest.mark.parametrize("limit", [1, 2, 100])
async def test_guards_in_a_closed_session_are_listed_to_its_members_and_to_operators_alone(
    team: Company, limit: int
) -> None:
    inside = [await team.ada.record(f"Heron number {number}.", session=VAULT) for number in range(2)]
    outside = [await team.ada.record("Finch number 1.")]
    inside.append(await team.ada.record("Heron number 3.", session=VAULT))
    for unit in (*inside, *outside):
        await team.field.guard(unit, "pin")
    for caller, sees in (
        (team.ben.caller, {*inside, *outside}),
        (team.eve.caller, set(outside)),
        (credential("root", 10), {*inside, *outside}),
    ):
        page = await team.field.guards(limit=limit, caller=caller)
        listed = [each.unit_id for each in page.guards]
        while page.next is not None:
            assert len(page.guards) == limit, "a page that is not full would tell of what is left out"
            page = await team.field.guards(after=page.next, limit=limit, caller=caller)
            listed += [each.unit_id for each in page.guards]
        assert set(listed) == sees
        assert len(listed) == len(sees)


async def test_guards_are_looked_up_in_steps_until_a_page_is_full(
    team: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    units = [await team.ada.record(f"Finch number {number}.") for number in range(5)]
    for unit in units:
        await team.field.guard(unit, "hold")
    monkeypatch.setattr(listing, "MOST_LISTED", 3)
    first = await team.field.guards(limit=3)
    assert [each.unit_id for each in first.guards] == units[:3]
    last = await team.field.guards(after=first.next or 0, limit=3)
    assert [each.unit_id for each in last.guards] == units[3:]
    assert last.next is None


async def test_anothers_draft_that_an_operator_pinned_is_not_listed_to_others(team: Company) -> None:
    draft = await team.ada.record("Perhaps.", mode="draft")
    await team.field.guard(draft, "pin")
    assert [each.unit_id for each in (await team.field.guards(caller=team.ada.caller)).guards] == [draft]
    assert not tells_any(await team.field.guards(caller=team.eve.caller), [draft])


async def test_the_list_of_compactions_names_no_unit_and_no_session(team: Company) -> None:
    inside = await team.ada.record("Heron number 1.", session=VAULT)
    request = Compact("archive", CompactFilter(session_id=VAULT))
    await team.ada.send(Message("COMPACT", "ada", request))
    page = await team.field.compactions(caller=team.eve.caller)
    assert [each.agent_id for each in page.compactions] == ["ada"]
    assert not tells_any(page, [inside, VAULT, "Heron"])


@requirement("akashik:access:lists")
@pytest.mark.parametrize("authority", [0, 2, 4])
async def test_lists_need_the_authority_to_compact(team: Company, authority: int) -> None:
    caller = credential("low", authority)
    with pytest.raises(Forbidden):
        await team.field.guards(caller=caller)
    with pytest.raises(Forbidden):
        await team.field.compactions(caller=caller)
