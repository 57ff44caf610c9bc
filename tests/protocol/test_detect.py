"""§3: DETECT, at this level the list of conflicts."""

from typing import Any

import pytest

from tests.protocol.rig import Body, Rig, relation, unit
from tests.requirements import requirement

LIST: Body = {"mode": "list"}


async def three_conflicts(field: Rig) -> dict[str, str]:
    """One of each kind between ada and ben, the factual one resolved: kind → id."""
    found = {}
    for kind, unit_type in (("factual", "finding"), ("strategic", "decision"), ("priority", "constraint")):
        target = await field.record("ada", type=unit_type)
        answer = await field.ask("RECORD", "ben", unit(type=unit_type, relations=[relation("contradicts", target)]))
        [found[kind]] = answer["conflicts_detected"]
        if kind == "factual":
            await field.ask("RETRACT", "ada", {"memory_unit_id": target, "reason": "wrong"})
    return found


async def listed(field: Rig, **filters: Any) -> set[str]:
    answer = await field.ask("DETECT", "eve", LIST | {"filter": filters})
    return {conflict["id"] for conflict in answer["conflicts"]}


@requirement("akashik:detect:list", "akashik:detect:coverage")
async def test_list_answers_every_conflict_resolved_ones_included(team: Rig) -> None:
    found = await three_conflicts(team)
    answer = await team.ask("DETECT", "eve", LIST)
    assert set(answer) >= {"status", "conflicts", "scan_coverage"}
    assert answer["status"] == "ok"
    assert [conflict["id"] for conflict in answer["conflicts"]] == list(found.values())
    assert answer["scan_coverage"] == {
        "units_scanned": 0,
        "new_conflicts_found": 0,
        "complete": True,
        "next_after_epoch": None,
    }
    assert answer["epoch"] == await team.epoch()


@requirement("akashik:detect:list", "akashik:detect:coverage")
async def test_a_field_without_conflicts_lists_none(team: Rig) -> None:
    answer = await team.ask("DETECT", "eve", LIST)
    assert (answer["status"], answer["conflicts"]) == ("ok", [])
    assert set(answer["scan_coverage"]) >= {"units_scanned", "new_conflicts_found"}


@requirement("akashik:detect:filter")
async def test_filters_keep_the_given_status_types_and_agents(team: Rig) -> None:
    found = await three_conflicts(team)
    others = await team.record("eve")
    ours = await team.ask("RECORD", "ben", unit(relations=[relation("contradicts", others)]))
    [fourth] = ours["conflicts_detected"]
    everything = {*found.values(), fourth}
    assert await listed(team, status=["resolved"]) == {found["factual"]}
    assert await listed(team, status=["detected"]) == everything - {found["factual"]}
    assert await listed(team, status=["detected", "resolved"]) == everything
    assert await listed(team, status=["escalated"]) == set()
    assert await listed(team, types=["strategic"]) == {found["strategic"]}
    assert await listed(team, types=["strategic", "priority"]) == {found["strategic"], found["priority"]}
    assert await listed(team, involving_agents=["ada"]) == set(found.values())
    assert await listed(team, involving_agents=["eve"]) == {fourth}
    assert await listed(team, involving_agents=["ada", "eve"]) == everything
    assert await listed(team, involving_agents=["nobody"]) == set()
    assert await listed(team, involving_agents=["ada"], status=["detected"], types=["priority"]) == {found["priority"]}
    for nothing in ({}, {"status": None, "types": None, "involving_agents": None}):
        assert await listed(team, **nothing) == everything


@requirement("akashik:detect:filter", "akashik:errors:payload-names-field")
@pytest.mark.parametrize(
    "filters",
    [
        {"status": ["open"]},
        {"status": "detected"},
        {"types": ["ethical"]},
        {"types": [7]},
        {"involving_agents": "ada"},
        {"colour": ["red"]},
    ],
    ids=repr,
)
async def test_a_filter_with_a_word_that_it_does_not_take_is_refused(team: Rig, filters: Body) -> None:
    refusal = await team.refused("INVALID_PAYLOAD", "DETECT", "eve", LIST | {"filter": filters})
    assert next(iter(filters)) in refusal["message"]


@requirement("akashik:detect:mode-known", "akashik:errors:payload-names-field")
@pytest.mark.parametrize("payload", [{}, {"mode": "find"}, {"mode": None}, {"mode": 7}, {"mode": ""}], ids=repr)
async def test_an_unknown_mode_is_refused(team: Rig, payload: Body) -> None:
    refusal = await team.refused("INVALID_PAYLOAD", "DETECT", "eve", payload)
    assert "mode" in refusal["message"]


@requirement("akashik:detect:check-target", "akashik:errors:payload-names-field")
async def test_a_check_without_a_target_is_refused_and_an_unknown_target_is_not_found(team: Rig) -> None:
    refusal = await team.refused("INVALID_PAYLOAD", "DETECT", "eve", {"mode": "check"})
    assert "target_id" in refusal["message"]
    await team.refused("UNIT_NOT_FOUND", "DETECT", "eve", {"mode": "check", "target_id": "mem-1"})


@requirement("akashik:detect:check-target")
async def test_another_agents_draft_cannot_be_checked(team: Rig) -> None:
    draft = await team.draft("ada")
    await team.refused("UNIT_NOT_FOUND", "DETECT", "eve", {"mode": "check", "target_id": draft})


@requirement("akashik:detect:registered-only")
async def test_an_unregistered_agent_may_not_detect(field: Rig) -> None:
    await field.refused("AGENT_NOT_REGISTERED", "DETECT", "eve", LIST)
