"""§3: REGISTER and DEREGISTER."""

from typing import Any

import pytest

from tests.protocol.rig import Body, Rig, attunement, plain, unit
from tests.requirements import requirement

BUILT = {"REGISTER", "DEREGISTER", "RECORD", "ATTUNE", "DETECT", "COMMIT", "DISCARD", "RETRACT", "COMPACT"}


@requirement("akashik:register:answer", "akashik:agent:shape")
async def test_register_answers_the_agent_idle_with_its_role_and_interests(field: Rig) -> None:
    answer = await field.register("ada", role="market researcher", interests=["pricing", "Europe"])
    assert answer["status"] == "registered"
    assert answer["rejection_reason"] is None
    agent = answer["agent"]
    assert set(agent) >= {"id", "role", "status", "interests", "current_task_id"}
    assert (agent["id"], agent["role"], agent["status"]) == ("ada", "market researcher", "idle")
    assert (agent["interests"], agent["current_task_id"]) == (["pricing", "Europe"], None)
    assert plain(await field.door.agents()) == [agent]


@requirement("akashik:register:answer")
@pytest.mark.parametrize("interests", [{}, {"interests": None}, {"interests": []}])
async def test_interests_may_be_left_out(field: Rig, interests: Body) -> None:
    assert (await field.register("ada", **interests))["agent"]["interests"] == []


@requirement("akashik:register:capabilities", "akashik:level:default", "akashik:level:operations-listed")
async def test_the_answer_says_what_the_field_can_do(field: Rig) -> None:
    capabilities = (await field.register("ada"))["field_capabilities"]
    assert set(capabilities) == {
        "conformance_level",
        "supported_operations",
        "protocol_version",
        "persistence",
        "conflict_strategies",
    }
    assert capabilities["conformance_level"] == 1
    assert capabilities["protocol_version"] == "0.1.0"
    assert set(capabilities["supported_operations"]) == BUILT
    assert capabilities["conflict_strategies"] == []


@requirement("akashik:level:operations-listed")
async def test_every_listed_operation_works_and_no_other_one_does(field: Rig) -> None:
    listed = (await field.register("ada"))["field_capabilities"]["supported_operations"]
    everything = ("MERGE", "SUBSCRIBE", "REPLAY", "COORDINATE", "HANDOFF", "SESSION", *BUILT)
    for operation in everything:
        refusal = (await field.send(operation, "ada", {})).body
        assert (refusal["code"] == "UNSUPPORTED_OPERATION") == (operation not in listed), operation


@requirement("akashik:register:id-and-role-required", "akashik:errors:payload-names-field")
@pytest.mark.parametrize(
    ("payload", "named"),
    [
        ({"role": "researcher"}, "id"),
        ({"id": "ada"}, "role"),
        ({"id": "ada", "role": ""}, "role"),
        ({"id": "ada", "role": " \u200b\n"}, "role"),
        ({"id": "ada", "role": None}, "role"),
        ({"id": "ada", "role": 7}, "role"),
        ({"id": "", "role": "researcher"}, "id"),
        ({"id": "ada", "role": "researcher", "interests": "pricing"}, "interests"),
        ({"id": "ada", "role": "researcher", "interests": [7]}, "interests"),
        ({"id": "ada", "role": "researcher", "authority": 11}, "authority"),
        ({"id": "ada", "role": "researcher", "authority": -1}, "authority"),
        ({"id": "ada", "role": "researcher", "authority": "10"}, "authority"),
        ({"id": "ada", "role": "researcher", "status": "working"}, "status"),
    ],
    ids=repr,
)
async def test_a_registration_with_a_bad_field_is_refused_and_the_field_named(
    field: Rig, payload: Body, named: str
) -> None:
    refusal = await field.refused("INVALID_PAYLOAD", "REGISTER", "ada", payload)
    assert named in refusal["message"]
    assert refusal["status"] == "rejected"


@requirement("akashik:register:id-is-sender")
async def test_nobody_registers_another_id_than_its_own(field: Rig) -> None:
    await field.refused("INVALID_PAYLOAD", "REGISTER", "ada", {"id": "ben", "role": "researcher"})


@requirement("akashik:register:id-taken", "akashik:errors:http-status")
async def test_a_registered_id_is_taken(team: Rig) -> None:
    refusal = await team.refused("AGENT_ID_TAKEN", "REGISTER", "ada", {"id": "ada", "role": "researcher"})
    assert (refusal["status"], refusal["recoverable"]) == ("rejected", True)
    assert (await team.send("REGISTER", "ada", {"id": "ada", "role": "writer"})).status == 409
    assert [agent.role for agent in await team.door.agents() if agent.id == "ada"] == ["researcher"]


@requirement("akashik:register:required-operations")
@pytest.mark.parametrize("missing", [["MERGE"], ["RECORD", "REPLAY", "MERGE"], ["DANCE"]])
async def test_required_operations_that_are_missing_reject_the_registration_and_are_named(
    field: Rig, missing: list[str]
) -> None:
    payload = {"id": "ada", "role": "researcher", "required_operations": missing}
    refusal = await field.refused("UNSUPPORTED_OPERATION", "REGISTER", "ada", payload)
    assert refusal["status"] == "rejected"
    for operation in missing:
        assert (operation in refusal["rejection_reason"]) == (operation not in BUILT)
    assert (await field.send("REGISTER", "ada", payload)).status == 501
    await field.refused("AGENT_NOT_REGISTERED", "RECORD", "ada", unit())


@requirement("akashik:register:required-operations")
@pytest.mark.parametrize("there", [sorted(BUILT), [], None])
async def test_required_operations_that_are_there_do_not_hinder(field: Rig, there: Any) -> None:
    assert (await field.register("ada", required_operations=there))["status"] == "registered"


@requirement("akashik:register:again-after-deregister")
async def test_a_deregistered_id_may_register_again_with_another_role(team: Rig) -> None:
    unit_id = await team.record("ada")
    await team.ask("DEREGISTER", "ada", {"agent_id": "ada"})
    again = await team.register("ada", role="writer", interests=["style"])
    assert (again["agent"]["role"], again["agent"]["status"]) == ("writer", "idle")
    assert again["agent"]["interests"] == ["style"]
    assert unit_id not in await team.seen_by("ada"), "it is the same agent, and the unit is still its own"
    await team.record("ada")


@requirement("akashik:register:reserved-id")
async def test_nobody_registers_as_the_field(field: Rig) -> None:
    refusal = await field.refused("AGENT_ID_TAKEN", "REGISTER", "field", {"id": "field", "role": "researcher"})
    assert "field" in refusal["message"]


@requirement("akashik:deregister:answer")
async def test_deregister_counts_the_units_that_it_leaves_behind(team: Rig) -> None:
    for _ in range(3):
        await team.record("ada")
    await team.record("ben")
    answer = await team.ask("DEREGISTER", "ada", {"agent_id": "ada"})
    assert answer["status"] == "ok"
    assert answer["cleanup"] == {"units_orphaned": 3, "tasks_reassigned": 0}
    assert (await team.ask("DEREGISTER", "eve", {"agent_id": "eve"}))["cleanup"]["units_orphaned"] == 0


@requirement("akashik:deregister:units-stay")
async def test_the_units_of_a_deregistered_agent_stay_visible(team: Rig) -> None:
    unit_id = await team.record("ada")
    before = await team.unit(unit_id)
    await team.ask("DEREGISTER", "ada", {"agent_id": "ada"})
    assert await team.seen_by("eve") == {unit_id}
    assert await team.unit(unit_id) == before


@requirement("akashik:deregister:unknown-not-found")
async def test_an_unknown_or_departed_agent_is_not_found_and_that_is_no_error(team: Rig) -> None:
    before = await team.trace()
    for agent in ("zoe", "field"):
        answer = await team.ask("DEREGISTER", "ada", {"agent_id": agent})
        assert (answer["status"], answer["cleanup"]["units_orphaned"]) == ("not_found", 0)
    assert (await team.ask("DEREGISTER", "zoe", {"agent_id": "zoe"}))["status"] == "not_found"
    assert await team.trace() == before
    await team.ask("DEREGISTER", "ada", {"agent_id": "ada"})
    assert (await team.ask("DEREGISTER", "ada", {"agent_id": "ada"}))["status"] == "not_found"


@requirement("akashik:deregister:then-unregistered", "akashik:record:registered-only", "akashik:attune:registered-only")
@pytest.mark.parametrize("registered_once", [True, False], ids=["deregistered", "never there"])
@pytest.mark.parametrize(
    ("operation", "payload"),
    [
        ("RECORD", unit()),
        ("ATTUNE", attunement()),
        ("DETECT", {"mode": "list"}),
        ("COMMIT", {"memory_unit_id": "mem-1"}),
        ("DISCARD", {"memory_unit_id": "mem-1"}),
        ("RETRACT", {"memory_unit_id": "mem-1", "reason": "wrong"}),
        ("DEREGISTER", {"agent_id": "ben"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_what_an_unregistered_agent_sends_is_refused(
    team: Rig, operation: str, payload: Body, registered_once: bool
) -> None:
    agent = "ada" if registered_once else "zoe"
    if registered_once:
        await team.ask("DEREGISTER", "ada", {"agent_id": "ada"})
    refusal = await team.refused("AGENT_NOT_REGISTERED", operation, agent, payload)
    assert "REGISTER" in refusal["suggested_action"]
    assert (await team.send(operation, agent, payload)).status == 403


@requirement("akashik:deregister:answer", "akashik:agent:shape")
async def test_a_deregistered_agent_is_shown_offline(team: Rig) -> None:
    await team.ask("DEREGISTER", "ada", {"agent_id": "ada"})
    assert {agent.id: agent.status for agent in await team.door.agents()} == {
        "ada": "offline",
        "ben": "idle",
        "eve": "idle",
    }
    assert (await team.door.status()).agents == 2
