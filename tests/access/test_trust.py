"""How far a unit is to be trusted: the server says whose it is, a synthesis is worth what it was made of, and what
nobody of enough authority stands by can be kept out of view."""

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from fieldstone.core.units import MemoryUnit, ScopedMemoryUnit
from fieldstone.core.vocabulary import RelationType
from fieldstone.field.field import LocalField
from fieldstone.settings import TenantSettings
from tests.access.people import Person, person
from tests.access.tower import tower
from tests.field.fields import opened
from tests.messages import commit, deregister, relation, retract
from tests.requirements import requirement
from tests.servers.live import assert_refused, unit

MADE_OF: tuple[RelationType, ...] = (
    "elaborates",
    "supports",
    "depends_on",
    "caused_by",
    "informs",
    "answers",
    "blocks",
)


class Ranks(NamedTuple):
    """An agent of each authority, and eve, who reads."""

    field: LocalField
    junior: Person  # 4
    senior: Person  # 6
    boss: Person  # 10
    eve: Person


async def ranks(vouch_authority: int = 0) -> Ranks:
    field = await opened(vouch_authority=vouch_authority)
    junior, senior, boss = [await person(field, f"rank-{rank}", rank).join(rank) for rank in (4, 6, 10)]
    return Ranks(field, junior, senior, boss, await person(field, "eve", 4).join(4))


@pytest.fixture
async def trusting() -> AsyncIterator[Ranks]:
    made = await ranks()
    yield made
    await made.field.close()


@pytest.fixture
async def wary() -> AsyncIterator[Ranks]:
    """What is below 6 needs somebody of 6 who stands by it."""
    made = await ranks(vouch_authority=6)
    yield made
    await made.field.close()


async def shown(who: Person, unit_id: str, **scope: Any) -> ScopedMemoryUnit[MemoryUnit]:
    return next(each for each in (await who.attune(**scope)).record if each.memory_unit.id == unit_id)


# --- whose it is ------------------------------------------------------------------------------------------------------


@requirement("akashik:access:trust-lowest", "akashik:record:server-fields-refused", "akashik:record:field-generates")
@pytest.mark.parametrize("field", ["source", "id", "epoch", "status", "trust", "untrusted"])
async def test_nobody_says_for_the_server_whose_a_unit_is_or_how_far_it_is_trusted(field: str) -> None:
    async with tower(embedder="none") as server:
        ada = await server.holder("acme", "ada")
        claim = {field: {"agent_id": "boss", "agent_role": "operator"} if field == "source" else 10}
        assert_refused(await server.send(ada, "RECORD", unit("Trust me.") | claim), 400, "INVALID_PAYLOAD")
        recorded = await server.record(ada, "Trust me.")
        found = (await server.request(ada, "GET", f"/v1/units/{recorded}")).json()
        assert (found["source"]["agent_id"], found["source"]["agent_role"]) == ("ada", "researcher")


async def test_a_unit_is_trusted_as_far_as_its_author_was_when_it_was_recorded(trusting: Ranks) -> None:
    by = {who: await who.record("As I say.") for who in (trusting.junior, trusting.senior, trusting.boss)}
    assert [(await shown(trusting.eve, unit_id)).trust for unit_id in by.values()] == [4, 6, 10]
    boss = trusting.boss
    await boss.send(deregister(boss.agent))
    await boss.join(2)
    assert (await shown(trusting.eve, by[boss])).trust == 10


@requirement("akashik:record:field-generates")
async def test_a_draft_that_is_committed_keeps_the_trust_of_its_author(trusting: Ranks) -> None:
    draft = await trusting.senior.record("Perhaps.", mode="draft")
    await trusting.senior.send(commit(trusting.senior.agent, draft))
    assert (await shown(trusting.eve, draft)).trust == 6


# --- a synthesis ------------------------------------------------------------------------------------------------------


@requirement("akashik:access:trust-lowest")
@given(
    sources=st.lists(st.sampled_from(["junior", "senior", "boss"]), min_size=1, max_size=4),
    kind=st.sampled_from(MADE_OF),
)
async def test_a_synthesis_is_trusted_no_further_than_the_least_trusted_of_its_sources(
    sources: list[str], kind: RelationType
) -> None:
    made = await ranks()
    trusts = {"junior": 4, "senior": 6, "boss": 10}
    units = [await getattr(made, source).record(f"Note {at}.") for at, source in enumerate(sources)]
    relations = [relation(kind, each) for each in units]
    synthesis = await made.boss.record("All in all.", type="synthesis", relations=relations)
    assert (await shown(made.eve, synthesis)).trust == min(trusts[source] for source in sources)
    again = await made.boss.record("In short.", type="synthesis", relations=[relation(kind, synthesis)])
    assert (await shown(made.eve, again)).trust == min(trusts[source] for source in sources)
    await made.field.close()


@pytest.mark.parametrize("kind", ["contradicts", "supersedes"])
async def test_what_a_synthesis_stands_against_does_not_lower_it(trusting: Ranks, kind: RelationType) -> None:
    doubtful = await trusting.junior.record("Nobody uses it.")
    synthesis = await trusting.boss.record("All in all.", type="synthesis", relations=[relation(kind, doubtful)])
    assert (await shown(trusting.eve, synthesis)).trust == 10


async def test_a_synthesis_is_trusted_no_further_than_its_author(trusting: Ranks) -> None:
    note = await trusting.boss.record("Ship it.")
    synthesis = await trusting.junior.record("Ship it.", type="synthesis", relations=[relation("elaborates", note)])
    assert (await shown(trusting.eve, synthesis)).trust == 4


# --- vouching ---------------------------------------------------------------------------------------------------------


async def test_what_nobody_vouches_for_is_not_shown_unless_it_is_asked_for(wary: Ranks) -> None:
    doubtful = await wary.junior.record("The cache is cold.")
    trusted = await wary.senior.record("The queue is long.")
    told = await wary.eve.attune()
    assert [each.memory_unit.id for each in told.record] == [trusted]
    assert told.context_budget.units_available == 1
    assert await wary.eve.sees(include_unvouched=True) == {doubtful, trusted}


@requirement("akashik:access:vouching")
async def test_support_of_enough_authority_shows_a_unit_and_its_withdrawal_hides_it_again(wary: Ranks) -> None:
    doubtful = await wary.junior.record("The cache is cold.")
    await wary.eve.record("So I heard.", relations=[relation("supports", doubtful)])
    assert await wary.eve.sees() == set()
    support = await wary.senior.record("I measured it.", relations=[relation("supports", doubtful)])
    assert await wary.eve.sees() == {doubtful, support}
    await wary.senior.send(retract(wary.senior.agent, support))
    assert await wary.eve.sees() == set()


@pytest.mark.parametrize("kind", ["elaborates", "informs", "depends_on", "answers", "contradicts"])
async def test_no_other_relation_vouches(wary: Ranks, kind: RelationType) -> None:
    doubtful = await wary.junior.record("The cache is cold.")
    await wary.boss.record("About that.", relations=[relation(kind, doubtful)])
    assert doubtful not in await wary.eve.sees()


async def test_a_draft_vouches_for_nothing_until_it_is_committed(wary: Ranks) -> None:
    doubtful = await wary.junior.record("The cache is cold.")
    draft = await wary.boss.record("I measured it.", mode="draft", relations=[relation("supports", doubtful)])
    assert doubtful not in await wary.eve.sees()
    await wary.boss.send(commit(wary.boss.agent, draft))
    assert doubtful in await wary.eve.sees()


async def test_what_was_vouched_for_does_not_vouch_for_others(wary: Ranks) -> None:
    first = await wary.junior.record("The cache is cold.")
    second = await wary.junior.record("It is.", relations=[relation("supports", first)])
    await wary.boss.record("I measured it.", relations=[relation("supports", second)])
    assert first not in await wary.eve.sees()
    assert second in await wary.eve.sees()


async def test_ones_own_units_need_nobody_else(wary: Ranks) -> None:
    mine = await wary.eve.record("The cache is cold.")
    assert await wary.eve.sees(include_own=True) == {mine}


# --- marks ------------------------------------------------------------------------------------------------------------


@requirement("akashik:access:untrusted-marked")
async def test_results_say_how_far_each_unit_is_trusted_and_mark_what_is_not(wary: Ranks) -> None:
    doubtful = await wary.junior.record("The cache is cold.")
    trusted = await wary.senior.record("The queue is long.")
    marks = {unit_id: await shown(wary.eve, unit_id, include_unvouched=True) for unit_id in (doubtful, trusted)}
    assert (marks[doubtful].trust, marks[doubtful].untrusted) == (4, True)
    assert (marks[trusted].trust, marks[trusted].untrusted) == (6, UNSET)
    await wary.boss.record("I measured it.", relations=[relation("supports", doubtful)])
    vouched = await shown(wary.eve, doubtful)
    assert (vouched.trust, vouched.untrusted) == (4, UNSET)


async def test_where_nothing_needs_a_voucher_what_is_below_the_usual_authority_is_marked_all_the_same(
    trusting: Ranks,
) -> None:
    usual = await trusting.junior.record("The cache is cold.")
    assert (await shown(trusting.eve, usual)).untrusted is UNSET
    observer = await person(trusting.field, "observer", 4).join(2)
    draft = await observer.record("The queue is long.", mode="draft")
    await trusting.boss.send(deregister("observer", by=trusting.boss.agent))
    await observer.join(4)
    await observer.send(commit("observer", draft))
    found = await shown(trusting.eve, draft)
    assert (found.trust, found.untrusted) == (2, True)


async def test_each_tenant_decides_for_itself_what_needs_a_voucher() -> None:
    strict = TenantSettings(vouch_authority=6)
    async with tower(embedder="none", tenants={"strict": strict}) as server:
        for tenant, seen in (("strict", 0), ("easy", 1)):
            ada, eve = await server.holder(tenant, "ada"), await server.holder(tenant, "eve")
            await server.record(ada, "The cache is cold.")
            assert len((await server.attune(eve))["record"]) == seen
            assert len((await server.attune(eve, include_unvouched=True))["record"]) == 1
