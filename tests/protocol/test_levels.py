"""§5: levels, and what lasts."""

import pytest
from msgspec import json

from tests.protocol.rig import Body, OpenRig, Rig, attunement, ids, options, plain, relation, unit
from tests.protocol.ways import DURABLE
from tests.requirements import requirement

ABOVE_0: list[tuple[str, Body]] = [
    ("DEREGISTER", {"agent_id": "ada"}),
    ("DETECT", {"mode": "list"}),
    ("COMMIT", {"memory_unit_id": "mem-1"}),
    ("DISCARD", {"memory_unit_id": "mem-1"}),
    ("RETRACT", {"memory_unit_id": "mem-1", "reason": "wrong"}),
]


@requirement("akashik:level:default")
async def test_the_level_is_the_highest_complete_one(field: Rig) -> None:
    assert (await field.register("ada"))["field_capabilities"]["conformance_level"] == 1
    assert (await field.door.status()).conformance_level == 1


@requirement("akashik:level:lowered-refuses", "akashik:errors:http-status")
@pytest.mark.parametrize(("operation", "payload"), ABOVE_0, ids=lambda value: value if isinstance(value, str) else "")
async def test_a_lowered_level_refuses_the_operations_above_it(rigs: OpenRig, operation: str, payload: Body) -> None:
    field = await rigs(options(conformance_level=0))
    await field.register("ada")
    refusal = await field.refused("UNSUPPORTED_OPERATION", operation, "ada", payload)
    assert refusal["recoverable"] is False
    assert (await field.send(operation, "ada", payload)).status == 501


@requirement("akashik:level:lowered-refuses", "akashik:level:operations-listed")
async def test_a_lowered_level_lists_and_keeps_the_operations_of_its_own(rigs: OpenRig) -> None:
    field = await rigs(options(conformance_level=0))
    capabilities = (await field.register("ada", "ben"))["field_capabilities"]
    assert capabilities["conformance_level"] == 0
    assert set(capabilities["supported_operations"]) == {"REGISTER", "RECORD", "ATTUNE"}
    unit_id = await field.record("ada")
    assert await field.seen_by("ben") == {unit_id}
    payload = {"id": "eve", "role": "analyst", "required_operations": ["DETECT"]}
    refusal = await field.refused("UNSUPPORTED_OPERATION", "REGISTER", "eve", payload)
    assert "DETECT" in refusal["rejection_reason"]


@requirement("akashik:level:lowered-validates")
async def test_validation_follows_the_level(rigs: OpenRig) -> None:
    for level, status in ((0, 200), (1, 400)):
        field = await rigs(options(conformance_level=level))
        await field.register("ada")
        assert (await field.send("RECORD", "ada", unit(confidence=...))).status == status


@requirement("akashik:level:durable")
async def test_persistence_says_whether_the_field_lasts(field: Rig) -> None:
    persistence = (await field.register("ada"))["field_capabilities"]["persistence"]
    assert persistence is (field.place.path is not None)


@requirement("akashik:level:durable")
@pytest.mark.parametrize("transport", DURABLE, indirect=True)
async def test_units_agents_conflicts_and_the_log_survive_a_restart(team: Rig) -> None:
    target = await team.record("ada", "Pricing in Europe.", session="s-1", intent={"purpose": "p", "task_id": "t-1"})
    await team.record("ben", relations=[relation("contradicts", target, description="No.")])
    await team.draft("ada")
    await team.ask("DEREGISTER", "ben", {"agent_id": "ben"})
    await team.attune("eve", "pricing")

    async def everything() -> tuple[object, ...]:
        answer = await team.ask("ATTUNE", "eve", attunement("pricing", sessions=["s-1"]))
        kept = [line for line in await team.log() if json.encode(line.entry.event).find(b"attuned") < 0]
        return answer, plain(await team.door.agents()), plain(await team.door.conflicts()), kept

    before = await everything()
    await team.restart()
    assert await everything() == before
    assert (await team.door.verify()).ok
    await team.refused("AGENT_ID_TAKEN", "REGISTER", "ada", {"id": "ada", "role": "researcher"})
    await team.refused("AGENT_NOT_REGISTERED", "RECORD", "ben", unit())
    new = await team.record("ada")
    assert new in ids(await team.attune("eve"))


@requirement("akashik:level:durable")
@pytest.mark.parametrize("transport", DURABLE, indirect=True)
async def test_interests_and_authority_survive_a_restart(field: Rig) -> None:
    await field.register("ada", authority=10, interests=["energy"])
    await field.register("ben")
    await field.restart()
    [ada, _] = await field.door.agents()
    assert (ada.authority, ada.interests) == (10, ("energy",))
    await field.record("ada", type="human_directive")
    await field.record("ben", "Energy.")
    [found] = (await field.attune("ada"))["record"]
    assert found["factors"]["interests"] == 1
