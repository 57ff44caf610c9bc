"""§7: the error format, on every transport."""

import pytest

from tests.protocol.rig import Body, OpenRig, Rig, attunement, relation, unit
from tests.requirements import requirement

FIVE = {"code", "message", "operation", "recoverable", "suggested_action"}

# One request for each code that a field of this level can answer with: code → operation, agent, payload, envelope.
REFUSED: dict[str, tuple[str, str, Body, Body]] = {
    "INVALID_ENVELOPE": ("RECORD", "ada", unit(), {"version": "9"}),
    "INVALID_PAYLOAD": ("RECORD", "ada", unit(content=""), {}),
    "MISSING_INTENT": ("RECORD", "ada", unit(intent=None), {}),
    "MISSING_CONFIDENCE": ("RECORD", "ada", unit(confidence=None), {}),
    "INVALID_CONFIDENCE": ("RECORD", "ada", unit(confidence={"score": 2}), {}),
    "INVALID_TYPE": ("RECORD", "ada", unit(type="rumour"), {}),
    "EPOCH_OVERFLOW": ("RECORD", "ada", unit(), {"epoch": 2**53 - 1}),
    "AGENT_NOT_REGISTERED": ("ATTUNE", "zoe", attunement(), {}),
    "FORBIDDEN": ("RECORD", "ada", unit(type="human_directive"), {}),
    "UNIT_NOT_FOUND": ("RETRACT", "ada", {"memory_unit_id": "mem-0", "reason": "wrong"}, {}),
    "AGENT_ID_TAKEN": ("REGISTER", "ada", {"id": "ada", "role": "researcher"}, {}),
    "SECRET_LEAKAGE": ("RECORD", "ada", unit(), {"session_id": "gh" + "p_" + "a1B2c3D4e5F6" * 3}),
    "UNSUPPORTED_OPERATION": ("MERGE", "ada", {"conflict_id": "c", "strategy": "vote"}, {}),
}
STATUS = {
    "INVALID_ENVELOPE": 400,
    "INVALID_PAYLOAD": 400,
    "MISSING_INTENT": 400,
    "MISSING_CONFIDENCE": 400,
    "INVALID_CONFIDENCE": 400,
    "INVALID_TYPE": 400,
    "EPOCH_OVERFLOW": 400,
    "AGENT_NOT_REGISTERED": 403,
    "FORBIDDEN": 403,
    "UNIT_NOT_FOUND": 404,
    "AGENT_ID_TAKEN": 409,
    "SECRET_LEAKAGE": 422,
    "UNSUPPORTED_OPERATION": 501,
}


@requirement(
    "akashik:errors:body",
    "akashik:errors:rejected",
    "akashik:errors:recoverable",
    "akashik:errors:http-status",
)
@pytest.mark.parametrize("code", REFUSED)
async def test_a_refusal_has_the_five_fields_and_the_codes_status(team: Rig, code: str) -> None:
    operation, agent, payload, envelope = REFUSED[code]
    body = await team.refused(code, operation, agent, payload, **envelope)
    rejected = {"status", "rejection_reason"} if operation in ("RECORD", "REGISTER") else set()
    assert set(body) == FIVE | rejected
    assert body["operation"] == operation
    assert body["recoverable"] is (code not in ("UNIT_NOT_FOUND", "UNSUPPORTED_OPERATION", "EPOCH_OVERFLOW"))
    for said in (body["message"], body["suggested_action"]):
        assert said.endswith(".")
        assert len(said.split()) > 2
    if rejected:
        assert body["status"] == "rejected"
        assert body["message"] in body["rejection_reason"]
    assert (await team.send(operation, agent, payload, **envelope)).status == STATUS[code]


@requirement("akashik:errors:http-status", "akashik:errors:body")
async def test_a_move_that_the_status_does_not_allow_is_a_conflict(team: Rig) -> None:
    unit_id = await team.record("ada")
    payload = {"memory_unit_id": unit_id, "confidence": {"score": 1, "reasoning": "sure"}}
    body = await team.refused("INVALID_TRANSITION", "COMMIT", "ada", payload)
    assert set(body) == FIVE
    assert body["recoverable"] is True
    assert (await team.send("COMMIT", "ada", payload)).status == 409


@requirement("akashik:errors:storage-full", "akashik:errors:http-status")
async def test_a_full_store_refuses_writes_and_reads_go_on(rigs: OpenRig) -> None:
    field = await rigs(max_bytes=2_000_000)
    await field.register("ada", "ben")
    first = await field.record("ada", "The first one.")
    answers = [await field.send("RECORD", "ada", unit(f"{n} " + "plain words " * 10_000)) for n in range(30)]
    status, refusal = answers[-1]
    assert (status, refusal["code"], refusal["recoverable"]) == (507, "STORAGE_FULL", False)
    assert (refusal["status"], set(refusal) >= FIVE) == ("rejected", True)
    before = await field.trace()
    assert (await field.send("RECORD", "ada", unit("plain words " * 10_000))).status == 507
    assert await field.trace() == before
    answer = await field.attune("ben", "first")
    assert first in [found["memory_unit"]["id"] for found in answer["record"]]
    assert (await field.door.verify()).ok


@requirement("akashik:errors:recoverable")
async def test_what_was_refused_for_want_of_a_relations_target_works_once_it_is_there(team: Rig) -> None:
    await team.refused("UNIT_NOT_FOUND", "RECORD", "ada", unit(relations=[relation("contradicts", "mem-0")]))
    target = await team.record("ben")
    await team.record("ada", relations=[relation("contradicts", target)])


@requirement("akashik:errors:shutting-down")
@pytest.mark.parametrize("transport", ["memory", "sqlite"], indirect=True)
async def test_a_field_that_is_closed_says_so_to_whoever_still_asks(rigs: OpenRig) -> None:
    field = await rigs()
    await field.register("ada", "eve")
    await field.record("ada")
    await field.close()
    for operation, agent, payload in (("RECORD", "ada", unit()), ("ATTUNE", "eve", attunement("market"))):
        status, body = await field.send(operation, agent, payload)
        assert (status, body["code"], body["recoverable"]) == (503, "SHUTTING_DOWN", True), operation
