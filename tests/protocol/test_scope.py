"""§2: what a scope asks for."""

from typing import Any

import pytest

from tests.protocol.rig import EVERYTHING, Body, OpenRig, Rig, attunement, ids, options, unit, warnings
from tests.requirements import requirement

SCOPE: Body = {"role": "analyst", "max_units": 10}
NOT_AT_LEVEL_0: Body = {
    "max_tokens": 500,
    "active_task_id": "task-7",
    "temporal_layers": ["past", "present", "future"],
    "relevance_threshold": 0.5,
    "recency_weight": 1.0,
}


@requirement("akashik:scope:role-required", "akashik:errors:payload-names-field")
@pytest.mark.parametrize("role", [..., None, "", " \u200b", 7], ids=repr)
async def test_a_scope_without_a_role_is_refused(team: Rig, role: Any) -> None:
    scope = {name: value for name, value in (SCOPE | {"role": role}).items() if value is not ...}
    refusal = await team.refused("INVALID_PAYLOAD", "ATTUNE", "eve", {"scope": scope})
    assert "role" in refusal["message"]


@requirement("akashik:scope:max-units-required", "akashik:errors:payload-names-field")
@pytest.mark.parametrize("most", [..., None, 0, -1, EVERYTHING + 1, 2**53, 1.5, "10", True], ids=repr)
async def test_max_units_is_a_whole_number_from_1_to_a_million(team: Rig, most: Any) -> None:
    scope = {name: value for name, value in (SCOPE | {"max_units": most}).items() if value is not ...}
    refusal = await team.refused("INVALID_PAYLOAD", "ATTUNE", "eve", {"scope": scope})
    assert "max_units" in refusal["message"]


@requirement("akashik:scope:max-units-required")
async def test_one_and_a_million_units_may_be_asked_for(team: Rig) -> None:
    for _ in range(3):
        await team.record("ada")
    assert len(ids(await team.attune("eve", max_units=1))) == 1
    assert len(ids(await team.attune("eve", max_units=EVERYTHING))) == 3


@requirement("akashik:scope:unknown-field-refused", "akashik:errors:payload-unknown-field")
@pytest.mark.parametrize("name", ["colour", "limit", "include_all", "role_"])
async def test_a_field_that_no_scope_has_is_refused_and_named(team: Rig, name: str) -> None:
    refusal = await team.refused("INVALID_PAYLOAD", "ATTUNE", "eve", {"scope": SCOPE | {name: 1}})
    assert name in refusal["message"]


@requirement("akashik:scope:unknown-field-refused")
@pytest.mark.parametrize("scope", [..., None, [], "analyst"], ids=repr)
async def test_a_scope_is_required_and_is_an_object(team: Rig, scope: Any) -> None:
    refusal = await team.refused("INVALID_PAYLOAD", "ATTUNE", "eve", {} if scope is ... else {"scope": scope})
    assert "scope" in refusal["message"]


@requirement("akashik:scope:include-own", "akashik:attune:own-excluded")
async def test_own_units_stay_out_unless_they_are_asked_for(team: Rig) -> None:
    own, other = await team.record("ada"), await team.record("ben")
    assert await team.seen_by("ada") == {other}
    assert await team.seen_by("ada", include_own=False) == {other}
    assert await team.seen_by("ada", include_own=True) == {own, other}


@requirement("akashik:scope:include-drafts", "akashik:attune:others-drafts-excluded")
async def test_drafts_are_shown_to_their_author_alone_and_only_when_asked_for(team: Rig) -> None:
    draft, committed = await team.draft("ada"), await team.record("ada")
    theirs = await team.record("ben")
    assert await team.seen_by("ada") == {theirs}
    assert await team.seen_by("ada", include_own=True) == {committed, theirs}
    assert await team.seen_by("ada", include_drafts=True) == {draft, theirs}
    assert await team.seen_by("ada", include_drafts=True, include_own=True) == {draft, committed, theirs}
    assert await team.seen_by("eve", include_drafts=True, include_own=True) == {committed, theirs}


@requirement("akashik:scope:include-archived")
async def test_include_archived_is_a_boolean_and_brings_nothing_while_nothing_is_archived(team: Rig) -> None:
    unit_id = await team.record("ada")
    for asked in (True, False):
        answer = await team.attune("eve", include_archived=asked)
        assert ids(answer) == [unit_id]
        assert warnings(answer) == []
    for name in ("include_own", "include_drafts", "include_archived"):
        bad: list[Body] = [{name: 1}, {name: "true"}, {name: None}, {name: []}]
        for scope in bad:
            refusal = await team.refused("INVALID_PAYLOAD", "ATTUNE", "eve", attunement(**scope))
            assert name in refusal["message"]


@requirement("akashik:scope:sessions")
async def test_sessions_limits_the_answer_exactly_and_the_envelope_limits_nothing(team: Rig) -> None:
    recorded = {name: await team.record("ada", session=name) for name in ("s-1", "s-10", "S-1", None)}
    everything = set(recorded.values())
    assert await team.seen_by("eve", sessions=["s-1"]) == {recorded["s-1"]}
    assert await team.seen_by("eve", sessions=["s-10", "S-1"]) == {recorded["s-10"], recorded["S-1"]}
    assert await team.seen_by("eve", sessions=["s-1", "unheard-of"]) == {recorded["s-1"]}
    assert await team.seen_by("eve", sessions=["unheard-of"]) == set()
    assert await team.seen_by("eve", sessions=None) == everything
    answer = await team.ask("ATTUNE", "eve", attunement(), session_id="s-1")
    assert set(ids(answer)) == everything


@requirement("akashik:scope:sessions")
@pytest.mark.parametrize("sessions", ["s-1", [7], [None], {}], ids=repr)
async def test_sessions_is_a_list_of_strings(team: Rig, sessions: Any) -> None:
    refusal = await team.refused("INVALID_PAYLOAD", "ATTUNE", "eve", attunement(sessions=sessions))
    assert "sessions" in refusal["message"]


@requirement("akashik:scope:order-epoch")
async def test_order_epoch_answers_oldest_first_and_says_where_to_go_on(team: Rig) -> None:
    recorded = [await team.record("ada", type=kind) for kind in ("observation", "decision", "finding", "decision")]
    cut = await team.attune("eve", order="epoch", max_units=3)
    assert ids(cut) == recorded[:3]
    fourth = (await team.unit(recorded[3])).epoch
    assert cut["context_budget"]["next_since_epoch"] == fourth
    rest = await team.attune("eve", order="epoch", max_units=3, since_epoch=fourth)
    assert ids(rest) == recorded[3:]
    assert "next_since_epoch" not in rest["context_budget"]
    assert "next_since_epoch" not in (await team.attune("eve", max_units=3))["context_budget"]


@requirement("akashik:scope:order-epoch")
@pytest.mark.parametrize("order", ["newest", "", None, 1])
async def test_an_unknown_order_is_refused(team: Rig, order: Any) -> None:
    refusal = await team.refused("INVALID_PAYLOAD", "ATTUNE", "eve", attunement(order=order))
    assert "order" in refusal["message"]


@requirement("akashik:scope:extended-validated", "akashik:errors:payload-names-field")
@pytest.mark.parametrize(
    "bad",
    [
        {"max_tokens": 0},
        {"max_tokens": "500"},
        {"interests": "pricing"},
        {"interests": [1]},
        {"active_task_id": ""},
        {"active_task_id": 7},
        {"temporal_layers": "past"},
        {"temporal_layers": ["yesterday"]},
        {"relevance_threshold": 1.1},
        {"relevance_threshold": -0.1},
        {"relevance_threshold": "high"},
        {"recency_weight": 2},
        {"recency_weight": -1},
        {"since_epoch": -1},
        {"since_epoch": 1.5},
        {"since_epoch": 2**53},
    ],
    ids=repr,
)
async def test_a_bad_value_in_a_field_that_is_not_in_force_is_still_refused(team: Rig, bad: Body) -> None:
    refusal = await team.refused("INVALID_PAYLOAD", "ATTUNE", "eve", attunement(**bad))
    assert next(iter(bad)) in refusal["message"]


@requirement("akashik:scope:extended-by-level")
async def test_a_lowered_level_ignores_the_extended_fields_above_it_with_a_warning(rigs: OpenRig) -> None:
    field = await rigs(options(conformance_level=0))
    await field.register("ada", "eve")
    first = await field.record("ada", "Pricing in Europe.", confidence=...)
    second = (await field.ask("RECORD", "ada", unit("The weather.", confidence=...)))["epoch"]
    plain = await field.attune("eve")
    for extended in (
        {"interests": ["pricing"]},
        {"since_epoch": second},
        *({name: NOT_AT_LEVEL_0[name]} for name in NOT_AT_LEVEL_0),
    ):
        answer = await field.attune("eve", **extended)
        assert any(code == "FIELD_IGNORED" and next(iter(extended)) in said for code, said in warnings(answer)), (
            extended
        )
        assert answer["record"] == plain["record"]
        assert first in ids(answer)


@requirement("akashik:scope:own-fields-at-level-1")
async def test_since_epoch_and_our_own_fields_work_without_a_warning(team: Rig) -> None:
    await team.record("eve", session="s-1")
    epoch = (await team.ask("RECORD", "ada", unit(), session_id="s-1"))["epoch"]
    answer = await team.attune(
        "eve",
        since_epoch=epoch,
        include_own=True,
        include_drafts=True,
        include_archived=True,
        sessions=["s-1"],
        order="epoch",
    )
    assert len(ids(answer)) == 1
    assert "warnings" not in answer
