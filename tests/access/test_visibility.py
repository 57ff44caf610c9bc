"""What is in a closed session, or in another's draft, shows nowhere: not as a unit, a count, a conflict or a reason."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fieldstone.core.access import Caller
from fieldstone.core.errors import FieldError, Forbidden, UnitNotFound
from fieldstone.core.replies import Compacted, Deregistered
from fieldstone.core.requests import Compact, CompactFilter, DetectFilter, Message
from fieldstone.core.vocabulary import RelationType, Strategy
from tests.access.people import UNKNOWN_UNIT, VAULT, Company, Person, company, credential, encoded, person, tells_any
from tests.access.sessions import close_session, leave_session
from tests.messages import commit, deregister, discard, record, register, relation, retract
from tests.requirements import requirement

GREEN = "The heron gate opens at 900 hours."
RED = "The heron gate opens at 1700 hours."


@pytest.fixture
async def team() -> AsyncIterator[Company]:
    made = await company()
    yield made
    await made.field.close()


# --- ATTUNE -----------------------------------------------------------------------------------------------------------


@requirement("akashik:access:closed-sessions", "akashik:attune:everything-else", "akashik:attune:budget-counts")
async def test_members_see_what_is_in_a_closed_session_and_nobody_else_sees_or_counts_it(team: Company) -> None:
    inside = {await team.ada.record(f"Heron number {number}.", session=VAULT) for number in range(3)}
    outside = {await team.ada.record(f"Finch number {number}.") for number in range(2)}
    assert await team.ben.sees("heron finch") == inside | outside
    told = await team.eve.attune("heron finch")
    assert {shown.memory_unit.id for shown in told.record} == outside
    assert told.context_budget.units_available == len(outside)
    assert not tells_any(told, ["Heron", VAULT, *inside])


@requirement("akashik:attune:left-out")
@pytest.mark.parametrize("scope", [{"max_units": 1}, {"relevance_threshold": 1.0}, {"max_tokens": 1}])
async def test_the_receipt_of_what_was_left_out_knows_nothing_of_a_closed_session(
    team: Company, scope: dict[str, float]
) -> None:
    inside = [await team.ada.record(f"Heron number {number}.", session=VAULT) for number in range(5)]
    outside = [await team.ada.record(f"Finch number {number}.") for number in range(2)]
    told = await team.eve.attune("heron finch", **scope)
    left = told.context_budget.left_out
    assert told.context_budget.units_available == len(outside)
    assert left.over_budget + left.below_threshold + left.duplicate + left.over_max_units <= len(outside)  # type: ignore[union-attr]
    assert not tells_any(told, inside)


async def test_asking_for_a_closed_session_by_name_is_asking_for_one_that_is_not_there(team: Company) -> None:
    await team.ada.record("A heron.", session=VAULT)
    await team.ada.record("A finch.")
    told = await team.eve.attune(sessions=(VAULT,))
    assert told.record == ()
    assert encoded(told) == encoded(await team.eve.attune(sessions=("no-such-session",)))


@requirement("akashik:attune:conflicts")
async def test_a_conflict_shows_to_those_alone_who_see_both_sides(team: Company) -> None:
    mine = await team.eve.record("The weir is dry.")
    against = await team.ada.accepted("It is not.", session=VAULT, relations=[relation("contradicts", mine)])
    [conflict] = against.conflicts_detected
    hidden = [conflict, against.memory_unit_id]
    for told in (
        await team.eve.attune("weir", include_own=True),
        await team.eve.detect("list"),
        await team.eve.detect("check", mine),
        await team.eve.detect("scan"),
        await team.field.conflicts(None, team.eve.caller),
    ):
        assert not tells_any(told, hidden)
    assert (await team.field.status(team.eve.caller)).conflicts_open == 0
    assert tells_any(await team.ben.attune("weir"), [conflict])
    assert tells_any(await team.ben.detect("check", mine), [conflict])
    assert (await team.field.status(team.ben.caller)).conflicts_open == 1


@requirement("akashik:attune:duplicates")
async def test_what_restates_a_unit_of_a_closed_session_is_no_duplicate_to_those_who_do_not_see_it(
    team: Company,
) -> None:
    original = await team.ada.record("The heron gate opens every morning at dawn.", session=VAULT)
    await team.ben.attune("heron gate")  # ben has just been shown it, and says it again in the open
    restated = await team.ben.record("The heron gate opens every morning at dawn.")
    told = await team.eve.attune("heron gate")
    assert [shown.memory_unit.id for shown in told.record] == [restated]
    assert not tells_any(told, [original, "duplicate_of", f"duplicate of {original}"])
    assert tells_any(await team.ada.attune("heron gate", include_own=True), ["duplicate_of"])


# --- one cannot tell from the outside what is inside -----------------------------------------------------------------

WORDS = st.lists(st.sampled_from(["heron", "weir", "gate", "finch", "opens", "closed"]), min_size=1, max_size=4)


async def told_outside(made: Company, inside: list[str], outside: list[str]) -> list[str]:
    """All that eve is told of a field that holds these texts inside the vault and outside."""
    for text in inside:
        await made.ada.record(text, session=VAULT)
        await made.ben.record(text, mode="draft")
    for text in outside:
        await made.ada.record(text)
    mine = await made.eve.record("The finch is here.")
    replies = [
        await made.eve.attune("heron weir finch", include_own=True),
        await made.eve.attune("heron gate", max_units=1, order="epoch"),
        await made.eve.detect("list"),
        await made.eve.detect("check", mine),
        await made.eve.detect("scan"),
        await made.field.conflicts(None, made.eve.caller),
        await made.field.agents(made.eve.caller),
        replace(await made.field.status(made.eve.caller), text_index_position=0),  # it may still be catching up
    ]
    await made.field.close()
    return [encoded(reply) for reply in replies]


@requirement("akashik:access:no-interference")
@given(one=WORDS, other=WORDS, outside=WORDS)
async def test_what_eve_is_told_does_not_depend_on_what_the_vault_and_others_drafts_say(
    one: list[str], other: list[str], outside: list[str]
) -> None:
    count = min(len(one), len(other))
    # Each note has a subject of its own: conflicts that members find among themselves are entries, and those count.
    texts = [[f"Note {number} says {word}." for number, word in enumerate(words[:count])] for words in (one, other)]
    seen = [f"The {word} was seen." for word in outside]
    for by_meaning in (False, True):
        told = [await told_outside(await company(by_meaning=by_meaning), inside, seen) for inside in texts]
        assert told[0] == told[1]


# --- DETECT, GET, counts ----------------------------------------------------------------------------------------------


async def refusal_of(asking: Callable[[], Awaitable[object]]) -> tuple[str, str]:
    with pytest.raises(FieldError) as refused:
        await asking()
    return refused.value.code, refused.value.message


@requirement("akashik:access:no-oracle", "akashik:detect:check-target")
async def test_a_unit_behind_the_door_is_refused_in_the_words_of_an_unknown_one(team: Company) -> None:
    hidden = await team.ada.record(GREEN, session=VAULT)
    draft = await team.ada.record("Perhaps.", mode="draft")

    async def refusals(unit: str) -> list[tuple[str, str]]:
        eve, field = team.eve, team.field
        return [
            await refusal_of(lambda: eve.detect("check", unit)),
            await refusal_of(lambda: eve.send(retract("eve", unit))),
            await refusal_of(lambda: eve.send(commit("eve", unit))),
            await refusal_of(lambda: eve.send(discard("eve", unit))),
            await refusal_of(lambda: eve.record("No.", relations=[relation("supersedes", unit)])),
            await refusal_of(lambda: eve.record("No.", relations=[relation("contradicts", unit)])),
            await refusal_of(lambda: field.unit(unit, eve.caller)),
        ]

    unknown = await refusals(UNKNOWN_UNIT)
    assert await refusals(hidden) == unknown
    assert await refusals(draft) == unknown
    assert {code for code, _ in unknown} == {"UNIT_NOT_FOUND"}


@requirement("akashik:record:other-relations-may-dangle")
async def test_a_relation_to_what_one_does_not_see_is_taken_as_one_to_nothing(team: Company) -> None:
    hidden = await team.ada.record(GREEN, session=VAULT)
    for kind in ("supports", "depends_on", "caused_by", "elaborates", "answers", "blocks", "informs"):
        await team.eve.accepted("As they say.", relations=[relation(kind, hidden)])
    assert not await team.field._store.views.relations()
    await team.ben.accepted("As they say.", relations=[relation("supports", hidden)])
    assert len(await team.field._store.views.relations()) == 1


@requirement("akashik:detect:scan", "akashik:detect:coverage")
async def test_a_scan_looks_at_what_the_caller_sees_and_finds_no_more(team: Company) -> None:
    for number in range(4):
        await team.ada.record(f"Heron number {number}.", session=VAULT)
    await team.ada.record("The finch sings.")
    assert (await team.eve.detect("scan")).scan_coverage.units_scanned == 1
    assert (await team.ben.detect("scan")).scan_coverage.units_scanned == 5


@requirement("akashik:detect:filter")
async def test_a_filter_brings_nothing_back_that_is_hidden(team: Company) -> None:
    first = await team.ada.record(GREEN, session=VAULT)
    await team.ben.accepted("It does not.", session=VAULT, relations=[relation("contradicts", first)])
    for wanted in (None, DetectFilter(status=("detected",)), DetectFilter(involving_agents=("ada",))):
        assert (await team.eve.detect("list", wanted=wanted)).conflicts == ()
        assert len((await team.ada.detect("list", wanted=wanted)).conflicts) == 1


async def test_the_status_counts_what_the_caller_sees(team: Company) -> None:
    await team.ada.record("A heron.", session=VAULT)
    await team.ada.record("A finch.")
    await team.ada.record("A finch, perhaps.", mode="draft")
    nobody, operator = credential("nobody", 2), credential("operator", 10)
    counts = {"ada": 3, "ben": 2, "eve": 1}
    for who in (team.ada, team.ben, team.eve):
        assert (await team.field.status(who.caller)).units == counts[who.agent]
    assert (await team.field.status(nobody)).units == 1
    assert (await team.field.status(operator)).units == 3


async def test_a_request_that_names_no_agent_sees_what_the_keys_agents_see(team: Company) -> None:
    inside = await team.ada.record("A heron.", session=VAULT)
    draft = await team.eve.record("A finch, perhaps.", mode="draft")
    for caller, sees in ((team.ben.caller, inside), (team.eve.caller, draft)):
        assert (await team.field.unit(sees, caller)).id == sees
    for caller, hidden in ((team.ben.caller, draft), (team.eve.caller, inside), (credential("other"), inside)):
        with pytest.raises(UnitNotFound):
            await team.field.unit(hidden, caller)
    for unit in (inside, draft):
        assert (await team.field.unit(unit, credential("operator", 10))).id == unit


@pytest.mark.parametrize("strategy", ["archive", "summarize"])
async def test_a_compaction_neither_touches_nor_counts_what_its_caller_does_not_see(
    team: Company, strategy: Strategy
) -> None:
    inside = [await team.ada.record(f"Heron number {number}.", session=VAULT) for number in range(4)]
    await team.ada.record("The finch sings.")
    wanted = {
        "all": CompactFilter(types=("finding",)),
        "vault": CompactFilter(session_id=VAULT),
        "unknown": CompactFilter(session_id="no-such-session"),
    }
    told = {name: await compacted(team.eve, Compact(strategy, each, dry_run=True)) for name, each in wanted.items()}
    assert told["all"].units_affected + len(told["all"].skipped) == 1
    assert encoded(told["vault"]) == encoded(told["unknown"])
    await compacted(team.eve, Compact(strategy, wanted["all"]))
    assert await team.ben.sees("heron") >= set(inside)


async def test_who_follows_anothers_compaction_is_not_told_what_it_found_behind_the_door(team: Company) -> None:
    inside = [await team.ada.record(f"Heron number {number}.", session=VAULT) for number in range(3)]
    done = await compacted(team.ada, Compact("summarize", CompactFilter(session_id=VAULT), verify=False))
    assert done.compaction_id is not None
    followed = await team.field.compaction(done.compaction_id, team.eve.caller)
    assert not tells_any(followed, [*inside, *(done.synthesis_units or ())])


async def test_a_purged_unit_leaves_its_tombstone_to_those_alone_who_saw_the_unit(team: Company) -> None:
    boss = await person(team.field, "boss", 10).join(10)
    await close_session(team.field, "annex", "boss", "ada")
    purged = await boss.record("A heron.", session="annex")
    done = await compacted(boss, Compact("purge", CompactFilter(session_id="annex", types=("finding",))))
    assert done.units_affected == 1
    for asking in (team.field.unit, team.field.lineage):
        told = await refusal_of(partial(asking, purged, caller=team.eve.caller))
        assert told == await refusal_of(partial(asking, UNKNOWN_UNIT, caller=team.eve.caller))
        assert (await refusal_of(partial(asking, purged, caller=team.ada.caller)))[0] == "UNIT_PURGED"
    assert await refusal_of(partial(team.eve.detect, "check", purged)) == await refusal_of(
        partial(team.eve.detect, "check", UNKNOWN_UNIT)
    )


async def compacted(who: Person, request: Compact) -> Compacted:
    reply = await who.send(Message("COMPACT", who.agent, request))
    assert isinstance(reply, Compacted)
    return reply


# --- the door ---------------------------------------------------------------------------------------------------------


@requirement("akashik:access:closed-sessions", "akashik:record:sessions-open", "akashik:record:refusal-changes-nothing")
async def test_only_members_record_in_a_closed_session_and_a_refused_one_leaves_nothing(team: Company) -> None:
    before = (await team.field.status()).units
    with pytest.raises(Forbidden):
        await team.eve.record("Let me in.", session=VAULT)
    assert (await team.field.status()).units == before
    await team.ben.record("A heron.", session=VAULT)
    await team.eve.record("Let me in.", session="a session that nobody closed")


@requirement("akashik:deregister:answer")
async def test_who_sends_an_agent_away_is_told_of_the_units_that_they_see(team: Company) -> None:
    for content, session in (("A heron.", VAULT), ("A second heron.", VAULT), ("A finch.", None)):
        await team.ben.record(content, session=session)
    reply = await team.eve.send(deregister("ben", by="eve"))
    assert isinstance(reply, Deregistered)
    assert reply.cleanup.units_orphaned == 1


@requirement("akashik:commit:relations-then")
@pytest.mark.parametrize("kind", ["supersedes", "contradicts"])
async def test_a_draft_does_not_reach_into_a_session_that_its_author_has_left(
    team: Company, kind: RelationType
) -> None:
    inside = await team.ada.record("A heron.", session=VAULT)
    draft = await team.ben.record("No heron.", mode="draft", relations=[relation(kind, inside)])
    await leave_session(team.field, VAULT, "ben")
    with pytest.raises(UnitNotFound):
        await team.ben.send(commit("ben", draft))
    assert (await team.field.unit(inside)).status == "active"


async def test_a_session_is_closed_for_the_request_that_comes_right_after(team: Company) -> None:
    closing = asyncio.ensure_future(close_session(team.field, "annex", "ada"))
    recording = asyncio.ensure_future(team.eve.record("Let me in.", session="annex"))
    closed, refused = await asyncio.gather(closing, recording, return_exceptions=True)
    assert closed is None
    assert isinstance(refused, Forbidden)


async def test_a_discarded_draft_of_another_counts_nowhere(team: Company) -> None:
    draft = await team.ada.record("A heron, perhaps.", mode="draft")
    await team.ada.send(discard("ada", draft))
    assert (await team.field.status(team.eve.caller)).units == 0
    with pytest.raises(UnitNotFound):
        await team.field.unit(draft, team.eve.caller)


async def test_who_leaves_a_session_sees_it_no_more_not_even_what_they_said_themselves(team: Company) -> None:
    theirs = await team.ben.record("A heron.", session=VAULT)
    draft = await team.ben.record("A heron, perhaps.", session=VAULT, mode="draft")
    await leave_session(team.field, VAULT, "ben")
    assert await team.ben.sees(include_own=True, include_drafts=True) == set()
    refusals = [
        await refusal_of(partial(team.ben.send, retract("ben", each))) for each in (theirs, draft, UNKNOWN_UNIT)
    ]
    assert len(set(refusals)) == 1
    assert await team.ada.sees() == {theirs}


async def test_members_are_members_after_the_views_were_built_again(team: Company) -> None:
    inside = await team.ada.record("A heron.", session=VAULT)
    assert (await team.field.rebuild()).unchanged
    assert await team.eve.sees() == set()
    assert await team.ben.sees() == {inside}


@requirement("akashik:detect:semantic")
async def test_the_field_itself_compares_nothing_through_a_closed_door(team: Company) -> None:
    inside = await team.ada.record(GREEN, session=VAULT)
    outside = await team.eve.accepted(RED)
    assert outside.conflicts_detected == ()
    assert (await team.field.unit(inside)).status == "active"
    assert (await team.ben.detect("scan")).conflicts == ()
    again = await team.ben.accepted(RED, session=VAULT)  # within the room it is found
    assert len(again.conflicts_detected) == 1


async def test_a_field_may_let_everyone_see_across_sessions() -> None:
    team = await company(cross_session=True)
    inside = await team.ada.record(GREEN, session=VAULT)
    assert await team.eve.sees("heron") == {inside}
    assert len((await team.eve.accepted(RED)).conflicts_detected) == 1
    await team.eve.record("May I?", session=VAULT)
    assert (await team.field.status(team.eve.caller)).units == 3
    await team.field.close()


# --- drafts -----------------------------------------------------------------------------------------------------------


@requirement("akashik:scope:include-drafts", "akashik:attune:others-drafts-excluded")
async def test_a_draft_is_its_authors_alone_also_within_a_session(team: Company) -> None:
    draft = await team.ada.record("A heron, perhaps.", mode="draft", session=VAULT)
    for who in (team.ben, team.eve):
        told = await who.attune("heron", include_drafts=True, include_own=True)
        assert not tells_any(told, [draft, "perhaps"])
        assert told.context_budget.units_available == 0
    assert await team.ada.sees(include_drafts=True) == {draft}


async def test_a_credential_sees_the_drafts_of_all_its_agents_where_no_agent_is_named(team: Company) -> None:
    second = Person(team.field, "eve-two", team.eve.caller)
    await second.join(4)
    draft = await second.record("A finch, perhaps.", mode="draft")
    assert (await team.field.unit(draft, team.eve.caller)).id == draft
    assert await team.eve.sees(include_drafts=True) == set()


def test_an_operator_is_whoever_has_the_highest_authority() -> None:
    assert credential("operator", 10).sees_all
    assert not credential("almost", 9).sees_all
    assert Caller(None, 10).is_local


async def test_the_same_unit_is_seen_by_the_member_through_every_way(team: Company) -> None:
    inside = await team.ada.record(GREEN, session=VAULT)
    other = await person(team.field, "kim").join(4)
    assert await other.sees() == set()
    assert await team.ben.sees() == {inside}
    assert (await team.ben.detect("check", inside)).scan_coverage.units_scanned == 1
    with pytest.raises(FieldError):
        await other.send(record("ben", "As ben."))
    with pytest.raises(FieldError):
        await other.send(register("ben"))
