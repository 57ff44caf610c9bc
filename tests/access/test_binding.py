"""An agent is bound to the credential that registered it; each credential has its rate, its quota and its own answers;
and who asks for what is not theirs goes on record."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from fieldstone.core.access import LOCAL, Caller
from fieldstone.core.errors import AgentIdTaken, FieldError, Forbidden, RateLimited
from fieldstone.core.events import AccessRefused
from fieldstone.core.replies import AgentProfile
from fieldstone.field.field import LocalField
from fieldstone.field.refusals import COUNTED_MS
from fieldstone.testing import ManualClock
from tests.access.people import Company, Person, company, credential, person
from tests.access.tower import Holder, Tower, attunement, refused, tower
from tests.field.fields import opened
from tests.messages import attune, commit, deregister, discard, record, register, retract
from tests.requirements import requirement
from tests.servers.live import message, unit

OTHER = credential("mallory", 10)


@pytest.fixture
async def team() -> AsyncIterator[Company]:
    made = await company()
    yield made
    await made.field.close()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Tower]:
    async with tower(tmp_path / "tower.db", embedder="none") as served:
        yield served


async def profile(field: LocalField, agent: str) -> AgentProfile:
    return next(each for each in await field.agents() if each.id == agent)


# --- who speaks as whom -----------------------------------------------------------------------------------------------


@requirement("akashik:access:bound-agents")
async def test_nobody_speaks_as_an_agent_of_another_credential_whatever_their_authority(team: Company) -> None:
    draft = await team.ada.record("Perhaps.", mode="draft")
    done = await team.ada.record("Surely.")
    mallory = Person(team.field, "ada", OTHER)
    for sent in (
        record("ada", "I am ada."),
        attune("ada"),
        commit("ada", draft),
        discard("ada", draft),
        retract("ada", done),
        deregister("ada"),
    ):
        with pytest.raises(Forbidden, match="another credential"):
            await mallory.send(sent)
    assert {unit.status for unit in [await team.field.unit(draft), await team.field.unit(done)]} == {"draft", "active"}


@requirement("akashik:register:id-taken", "akashik:register:again-after-deregister")
async def test_an_id_that_was_given_up_comes_back_with_the_same_credential_only(team: Company) -> None:
    with pytest.raises(AgentIdTaken):
        await person(team.field, "mallory").send(register("eve"))
    await team.eve.send(deregister("eve"))
    for other in (person(team.field, "mallory"), Person(team.field, "eve", OTHER)):  # an operator's key neither
        with pytest.raises(AgentIdTaken):
            await other.send(register("eve"))
    await team.eve.join(4)
    await team.eve.record("I am back.")


async def test_who_is_refused_anothers_agent_is_not_sent_for_a_key_that_would_not_help(team: Company) -> None:
    lists_her = Person(team.field, "ada", credential("late", 4, agents=frozenset(("ada",))))
    with pytest.raises(Forbidden) as refusal:
        await lists_her.send(record("ada", "I am ada."))
    assert "keys rotate" in refusal.value.suggested_action
    assert "keys create" not in refusal.value.suggested_action
    await team.ada.send(deregister("ada"))
    with pytest.raises(AgentIdTaken) as taken:
        await lists_her.send(register("ada"))
    assert "DEREGISTER" not in taken.value.suggested_action, "she has left already"


async def test_a_key_for_certain_agents_registers_and_speaks_as_no_other(team: Company) -> None:
    listed = credential("listed", 4, agents=frozenset(("kim", "ada")))
    await Person(team.field, "kim", listed).join()
    with pytest.raises(Forbidden):
        await Person(team.field, "lee", listed).join()
    with pytest.raises(Forbidden):  # listed, and still of another credential
        await Person(team.field, "ada", listed).record("I am ada.")


@pytest.mark.parametrize("authority", [2, 4, 10])
async def test_agents_of_the_open_time_go_on_with_a_key_that_lists_them_or_an_operators(authority: int) -> None:
    field = await opened()
    await Person(field, "ada", LOCAL).join(4)
    plain = credential("plain", authority)
    lists = credential("lists", authority, agents=frozenset(("ada",)))
    lists_another = credential("lists-another", authority, agents=frozenset(("ben",)))
    speaks = {caller: await may_speak(field, caller) for caller in (plain, lists, lists_another)}
    assert speaks == {plain: authority == 10, lists: True, lists_another: False}
    await field.close()


async def may_speak(field: LocalField, caller: Caller) -> bool:
    try:
        await Person(field, "ada", caller).attune()
    except Forbidden:
        return False
    return True


async def test_an_agent_has_no_more_authority_than_the_key_that_speaks_for_it(team: Company) -> None:
    lowered = Person(team.field, "eve", replace(team.eve.caller, authority=2))
    with pytest.raises(Forbidden, match="needs authority 4; this agent has 2"):
        await lowered.record("As before.")
    await lowered.record("As before.", mode="draft")
    assert (await profile(team.field, "eve")).authority == 8


@pytest.mark.parametrize(
    ("grants", "claims", "gets"), [(4, None, 4), (2, None, 2), (10, None, 4), (8, 6, 6), (8, 8, 8)]
)
async def test_an_agent_gets_what_it_claims_as_far_as_its_credential_grants_it(
    grants: int, claims: int | None, gets: int
) -> None:
    field = await opened()
    await Person(field, "kim", credential("kim", grants)).join(claims)
    assert (await profile(field, "kim")).authority == gets
    await field.close()


@requirement("akashik:access:claim-refused")
async def test_a_claim_above_the_credential_is_refused_and_registers_nobody(team: Company) -> None:
    for claim in (9, 10):
        with pytest.raises(Forbidden):
            await person(team.field, "kim", 8).join(claim)
    assert "kim" not in {agent.id for agent in await team.field.agents()}


@requirement("akashik:access:bound-agents")
async def test_a_rotated_key_goes_on_with_its_agents_and_the_old_secret_does_not(server: Tower) -> None:
    ada = await server.holder("acme", "ada", authority=10)
    await server.record(ada, "Before.")
    rotated = (await server.request(ada, "POST", f"/v1/keys/{ada.key_id}/rotate")).json()
    assert rotated["id"] == ada.key_id
    assert refused(await server.send(ada, "RECORD", unit("With the old one."))) == (401, "UNAUTHENTICATED")
    await server.record(ada._replace(key=rotated["key"]), "After.")


async def test_a_revoked_key_stops_at_once_and_takes_its_agents_with_it(server: Tower) -> None:
    boss, ada = await server.holder("acme", "boss", authority=10), await server.holder("acme", "ada")
    await server.record(ada, "Before.")
    assert (await server.request(boss, "DELETE", f"/v1/keys/{ada.key_id}")).status_code == 204
    assert refused(await server.send(ada, "ATTUNE", attunement())) == (401, "UNAUTHENTICATED")
    assert refused(await server.send(boss, "ATTUNE", attunement(), agent_id="ada")) == (403, "FORBIDDEN")


# --- remembered answers -----------------------------------------------------------------------------------------------


@requirement("akashik:access:replies-own", "akashik:idempotency:same-answer")
async def test_an_answer_is_given_again_to_the_credential_that_asked_and_to_no_other(team: Company) -> None:
    sent = record("eve", "Once.", id="m-1")
    first = await team.eve.send(sent)
    assert await team.eve.send(sent) == first
    with pytest.raises(Forbidden):
        await Person(team.field, "eve", OTHER).send(sent)
    assert len(await team.ada.sees()) == 1


async def test_a_registration_that_another_credential_sends_again_is_not_answered_as_the_first(team: Company) -> None:
    sent = register("kim", id="m-1")
    first = await person(team.field, "kim").send(sent)
    assert await person(team.field, "kim").send(sent) == first
    with pytest.raises(AgentIdTaken):
        await Person(team.field, "kim", OTHER).send(sent)


# --- rates and quotas -------------------------------------------------------------------------------------------------


@requirement("akashik:access:rates-quotas")
async def test_a_key_over_its_rate_is_told_when_to_come_back_and_others_are_not_held_up(server: Tower) -> None:
    slow = await server.holder("acme", "slow", rate_per_second=0.01)
    quick = await server.holder("acme", "quick")
    answer = await server.send(slow, "ATTUNE", attunement())
    assert refused(answer) == (429, "RATE_LIMITED")
    assert 1 <= int(answer.headers["retry-after"]) <= 100
    for path in ("/v1/agents", "/v1/nothing", "/docs"):
        assert (await server.request(slow, "GET", path)).status_code == 429
    assert (await server.request(slow, "GET", "/healthz")).status_code == 200
    assert (await server.send(quick, "ATTUNE", attunement())).status_code == 200


async def test_a_server_has_a_rate_for_keys_that_have_none(tmp_path: Path) -> None:
    async with tower(tmp_path / "tower.db", embedder="none", rate_per_second=0.01) as server:
        first, second = [server.make_key("acme", authority=2) for _ in range(2)]
        own = server.make_key("acme", authority=2, rate_per_second=1_000)
        for made, statuses in ((first, [200, 429]), (second, [200, 429]), (own, [200, 200])):
            holder = Holder("nobody", made.key)
            answers = [await server.request(holder, "GET", "/v1/agents") for _ in statuses]
            assert [answer.status_code for answer in answers] == statuses


@requirement("akashik:access:rates-quotas")
async def test_a_quota_counts_what_all_agents_of_the_key_recorded_drafts_too(team: Company) -> None:
    caller = credential("few", 4, quota_units=3)
    kim, lee = Person(team.field, "kim", caller), Person(team.field, "lee", caller)
    for who in (kim, lee):
        await who.join()
    await kim.record("One.")
    await lee.record("Two.", mode="draft")
    await kim.record("Three.")
    for who in (kim, lee):
        with pytest.raises(RateLimited, match="quota"):
            await who.record("Four.")
    assert len(await kim.sees()) == 0  # reads go on
    await team.ada.record("Others go on.")


async def test_a_quota_holds_also_within_one_array_of_messages(server: Tower) -> None:
    few = await server.holder("acme", "few", quota_units=2)
    sent = [message("RECORD", unit(f"Number {number}."), agent_id="few") for number in range(5)]
    answers = (await server.request(few, "POST", "/v1/messages", sent)).json()
    assert [answer.get("code") for answer in answers] == [None, None, *["RATE_LIMITED"] * 3]


# --- on record --------------------------------------------------------------------------------------------------------


async def refusals(field: LocalField) -> list[AccessRefused]:
    page = await field.log(limit=1_000)
    return [line.entry.event for line in page.entries if isinstance(line.entry.event, AccessRefused)]


async def try_it(who: Person, *sent: Any) -> None:
    for each in sent:
        with pytest.raises(FieldError):
            await who.send(each)


@requirement("akashik:access:refusals-recorded")
async def test_refused_access_is_counted_on_record_and_does_not_fill_the_log(team: Company) -> None:
    mallory = Person(team.field, "ada", OTHER)
    await try_it(mallory, *[record("ada", "I am ada.")] * 100)
    await team.ada.record("What nobody waits for joins the next write.")
    [first] = await refusals(team.field)
    assert (first.asked, first.code, first.credential, first.times) == ("RECORD", "FORBIDDEN", OTHER.credential, 1)
    clock = team.field._clock
    assert isinstance(clock, ManualClock)
    clock.advance(COUNTED_MS)
    await try_it(mallory, record("ada", "I am ada."))
    await team.ada.record("Another.")
    assert [each.times for each in await refusals(team.field)] == [1, 100]


async def test_every_way_of_asking_too_much_goes_on_record(team: Company) -> None:
    watcher = Person(team.field, "watcher", credential("watcher", 0))
    await watcher.join()
    await try_it(watcher, attune("watcher"), record("watcher", "I may not."))
    for asking in (team.field.status, team.field.agents, team.field.rebuild, team.field.secrets, team.field.sweep):
        with pytest.raises(Forbidden):
            await asking(caller=watcher.caller)
    await team.ada.record("What nobody waits for joins the next write.")
    asked = {each.asked for each in await refusals(team.field)}
    assert {"ATTUNE", "RECORD", "read the field's status", "list the agents", "rebuild the views", "sweep"} <= asked
    assert {each.credential for each in await refusals(team.field)} == {watcher.caller.credential}


async def test_who_wants_a_key_for_another_tenant_goes_on_record_in_their_own(server: Tower) -> None:
    boss = await server.holder("acme", "boss", authority=10)
    wish = {"tenant": "zeta", "authority": 10}
    assert refused(await server.request(boss, "POST", "/v1/keys", wish)) == (403, "FORBIDDEN")
    await server.record(boss, "What nobody waits for joins the next write.")
    async with server.house.entrance.tenants.visit("acme") as field:
        [told] = await refusals(field)
    assert (told.asked, told.credential) == ("manage keys", boss.key_id)


async def test_counted_refusals_are_not_lost_when_the_field_closes(server: Tower) -> None:
    low, audit = (
        await server.holder("acme", "low", authority=0),
        Holder("audit", server.make_key("acme", authority=0).key),
    )
    for _ in range(7):
        assert refused(await server.send(low, "ATTUNE", attunement())) == (403, "FORBIDDEN")
    async with server.house.entrance.tenants.visit("acme") as field:
        field._refusals.flush()
        await field._writer.drain()
    page = (await server.request(audit, "GET", "/v1/log")).json()
    told = [line["entry"]["event"] for line in page["entries"] if line["entry"]["event"]["kind"] == "access.refused"]
    assert sum(event.get("times", 1) for event in told) == 7
