"""§6: RETRACT."""

from typing import Any

import pytest

from tests.protocol.rig import Rig, relation
from tests.requirements import requirement


def retraction(unit_id: str, reason: Any = "wrong") -> dict[str, Any]:
    return {"memory_unit_id": unit_id} | ({} if reason is ... else {"reason": reason})


@requirement("akashik:retract:answer")
async def test_retract_answers_ok_and_the_unit_is_retracted(team: Rig) -> None:
    unit_id = await team.record("ada")
    answer = await team.ask("RETRACT", "ada", retraction(unit_id))
    assert answer == {"status": "ok", "memory_unit_id": unit_id, "epoch": await team.epoch()}
    assert (await team.unit(unit_id)).status == "retracted"
    assert await team.seen_by("eve") == set()


@requirement("akashik:retract:reason-required", "akashik:errors:payload-names-field")
@pytest.mark.parametrize("reason", [..., None, "", " \u200b", 7], ids=repr)
async def test_a_retraction_without_a_reason_is_refused(team: Rig, reason: Any) -> None:
    unit_id = await team.record("ada")
    refusal = await team.refused("INVALID_PAYLOAD", "RETRACT", "ada", retraction(unit_id, reason))
    assert "reason" in refusal["message"]


@requirement("akashik:retract:author-or-authority-8", "akashik:retract:others-forbidden", "akashik:authority:refusal")
async def test_the_author_and_authority_8_may_retract_and_nobody_else(team: Rig) -> None:
    for authority in (4, 6, 7, 8, 10):
        await team.register(f"rank-{authority}", authority=authority)
    for agent in ("ben", "rank-4", "rank-6", "rank-7"):
        unit_id = await team.record("ada")
        refusal = await team.refused("FORBIDDEN", "RETRACT", agent, retraction(unit_id))
        assert refusal["recoverable"] is True
        assert (await team.send("RETRACT", agent, retraction(unit_id))).status == 403
        assert (await team.unit(unit_id)).status == "active"
    for agent in ("ada", "rank-8", "rank-10"):
        unit_id = await team.record("ada")
        await team.ask("RETRACT", agent, retraction(unit_id))
        assert (await team.unit(unit_id)).status == "retracted"


@requirement("akashik:retract:others-draft-hidden")
async def test_to_everybody_else_a_draft_does_not_exist(team: Rig) -> None:
    await team.register("ann", authority=10)
    draft = await team.draft("ada")
    for agent in ("ben", "ann"):
        hidden = await team.refused("UNIT_NOT_FOUND", "RETRACT", agent, retraction(draft))
        assert hidden == await team.refused("UNIT_NOT_FOUND", "RETRACT", agent, retraction("mem-unknown"))
    await team.ask("DISCARD", "ada", {"memory_unit_id": draft})
    await team.refused("UNIT_NOT_FOUND", "RETRACT", "ann", retraction(draft))


@requirement("akashik:retract:answer")
async def test_a_draft_of_ones_own_and_what_is_retracted_already_cannot_be_retracted(team: Rig) -> None:
    draft, unit_id = await team.draft("ada"), await team.record("ada")
    await team.refused("INVALID_TRANSITION", "RETRACT", "ada", retraction(draft))
    await team.ask("RETRACT", "ada", retraction(unit_id))
    await team.refused("INVALID_TRANSITION", "RETRACT", "ada", retraction(unit_id, "again"))


@requirement("akashik:retract:answer")
async def test_a_contested_or_superseded_unit_may_be_retracted(team: Rig) -> None:
    contested, superseded = await team.record("ada"), await team.record("ada")
    await team.record("ben", relations=[relation("contradicts", contested)])
    await team.record("ada", relations=[relation("supersedes", superseded)])
    for unit_id in (contested, superseded):
        await team.ask("RETRACT", "ada", retraction(unit_id))
        assert (await team.unit(unit_id)).status == "retracted"


@requirement("akashik:retract:answer", "akashik:deregister:units-stay")
async def test_a_retracted_unit_stays_readable_by_its_id(team: Rig) -> None:
    unit_id = await team.record("ada", "It stays on record.")
    await team.ask("RETRACT", "ada", retraction(unit_id))
    assert (await team.unit(unit_id)).content == "It stays on record."
