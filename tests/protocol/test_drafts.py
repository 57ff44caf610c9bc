"""§6: COMMIT and DISCARD."""

from typing import Any

import pytest

from tests.protocol.rig import Body, OpenRig, Rig, options, plain, relation, unit
from tests.protocol.ways import DURABLE
from tests.requirements import requirement

SURE: Body = {"score": 0.9, "reasoning": "measured twice", "evidence": ["report 7"], "assumptions": ["stable prices"]}


def commit(unit_id: str, confidence: Any = SURE) -> Body:
    return {"memory_unit_id": unit_id} | ({} if confidence is ... else {"confidence": confidence})


@requirement("akashik:commit:answer")
async def test_commit_answers_as_record_does_with_the_drafts_id_and_a_new_epoch(team: Rig) -> None:
    recorded = await team.ask("RECORD", "ada", unit(mode="draft"))
    answer = await team.ask("COMMIT", "ada", commit(recorded["memory_unit_id"]))
    assert set(answer) == set(recorded)
    assert answer["status"] == "accepted"
    assert answer["memory_unit_id"] == recorded["memory_unit_id"]
    assert answer["conflicts_detected"] == []
    assert answer["epoch"] == recorded["epoch"] + 1 == await team.epoch()


@requirement("akashik:commit:becomes-committed")
async def test_a_committed_draft_is_active_with_the_commits_epoch_and_others_see_it(team: Rig) -> None:
    draft = await team.draft("ada", session="s-1")
    before = await team.unit(draft)
    assert draft not in await team.seen_by("eve")
    answer = await team.ask("COMMIT", "ada", commit(draft))
    after = await team.unit(draft)
    assert (after.mode, after.status, after.epoch) == ("committed", "active", answer["epoch"])
    assert (after.id, after.content, after.intent, after.source) == (
        before.id,
        before.content,
        before.intent,
        before.source,
    )
    assert await team.seen_by("eve") == {draft}
    assert draft not in await team.seen_by("ada", include_drafts=True), "it is no draft any more"


@requirement("akashik:commit:validated")
@pytest.mark.parametrize(
    ("had", "brings", "code"),
    [
        (..., ..., "MISSING_CONFIDENCE"),
        (..., None, "MISSING_CONFIDENCE"),
        (..., {}, "MISSING_CONFIDENCE"),
        (..., {"score": 0.5}, "MISSING_CONFIDENCE"),
        (..., {"reasoning": "a hunch"}, "MISSING_CONFIDENCE"),
        (..., {"score": 0.5, "reasoning": " "}, "MISSING_CONFIDENCE"),
        ({"score": 0.5}, ..., "MISSING_CONFIDENCE"),
        ({"reasoning": "a hunch"}, ..., "MISSING_CONFIDENCE"),
        (..., {"score": 1.5, "reasoning": "sure"}, "INVALID_CONFIDENCE"),
        (..., {"score": "0.5", "reasoning": "sure"}, "INVALID_CONFIDENCE"),
        (SURE, {"score": -1}, "INVALID_CONFIDENCE"),
    ],
    ids=repr,
)
async def test_commit_validates_as_a_committed_record_does(team: Rig, had: Any, brings: Any, code: str) -> None:
    draft = await team.draft("ada", confidence=had)
    await team.refused(code, "COMMIT", "ada", commit(draft, brings))
    assert (await team.unit(draft)).status == "draft"


@requirement("akashik:commit:validated")
@pytest.mark.parametrize(
    ("had", "brings"),
    [
        (SURE, ...),
        ({"score": 0.5}, {"reasoning": "now I know why"}),
        ({"reasoning": "I know why"}, {"score": 0.5}),
        (..., {"score": 0, "reasoning": "a guess"}),
    ],
    ids=repr,
)
async def test_what_the_draft_had_and_what_commit_brings_count_together(team: Rig, had: Any, brings: Any) -> None:
    draft = await team.draft("ada", confidence=had)
    assert (await team.ask("COMMIT", "ada", commit(draft, brings)))["status"] == "accepted"


@requirement("akashik:commit:validated", "akashik:level:lowered-refuses")
async def test_at_level_0_there_is_no_commit(rigs: OpenRig) -> None:
    field = await rigs(options(conformance_level=0))
    await field.register("ada")
    draft = await field.draft("ada")
    await field.refused("UNSUPPORTED_OPERATION", "COMMIT", "ada", commit(draft))


@requirement("akashik:commit:confidence")
async def test_the_confidence_given_with_commit_becomes_the_units(team: Rig) -> None:
    for had in (..., {"score": 0.1, "reasoning": "a hunch", "evidence": ["rumour"], "assumptions": ["luck"]}):
        draft = await team.draft("ada", confidence=had)
        await team.ask("COMMIT", "ada", commit(draft))
        assert plain((await team.unit(draft)).confidence) == SURE


@requirement("akashik:commit:confidence")
async def test_without_confidence_in_commit_the_drafts_own_stays(team: Rig) -> None:
    draft = await team.draft("ada", confidence=SURE)
    await team.ask("COMMIT", "ada", commit(draft, ...))
    assert plain((await team.unit(draft)).confidence) == SURE


@requirement("akashik:commit:relations-then")
async def test_the_relations_of_a_draft_take_effect_when_it_is_committed_and_not_before(team: Rig) -> None:
    rival, outdated = await team.record("ben"), await team.record("ada")
    relations = [relation("contradicts", rival, description="No."), relation("supersedes", outdated)]
    draft = await team.draft("ada", relations=relations)
    assert (await team.unit(rival)).status == "active"
    assert (await team.unit(outdated)).status == "active"
    assert not await team.door.conflicts()
    [found] = (await team.ask("COMMIT", "ada", commit(draft)))["conflicts_detected"]
    [conflict] = await team.door.conflicts()
    assert (conflict.id, conflict.description) == (found, "No.")
    assert {conflict.unit_a, conflict.unit_b} == {draft, rival}
    statuses = [(await team.unit(unit_id)).status for unit_id in (draft, rival, outdated)]
    assert statuses == ["contested", "contested", "superseded"]


@requirement("akashik:commit:relations-then")
async def test_a_discarded_drafts_relations_never_take_effect(team: Rig) -> None:
    rival = await team.record("ben")
    draft = await team.draft("ada", relations=[relation("contradicts", rival)])
    await team.ask("DISCARD", "ada", {"memory_unit_id": draft})
    assert (await team.unit(rival)).status == "active"
    assert not await team.door.conflicts()


@requirement("akashik:commit:author-only", "akashik:discard:author-only", "akashik:errors:http-status")
@pytest.mark.parametrize("operation", ["COMMIT", "DISCARD"])
async def test_to_everybody_else_a_draft_does_not_exist(team: Rig, operation: str) -> None:
    await team.register("ann", authority=10)
    draft = await team.draft("ada")
    payload = commit if operation == "COMMIT" else lambda unit_id: {"memory_unit_id": unit_id}
    for agent in ("ben", "ann"):
        hidden = await team.refused("UNIT_NOT_FOUND", operation, agent, payload(draft))
        unknown = await team.refused("UNIT_NOT_FOUND", operation, agent, payload("mem-unknown"))
        assert hidden == unknown, "the refusal must not tell that the draft is there"
        assert hidden["recoverable"] is False
    await team.refused("UNIT_NOT_FOUND", operation, "ada", payload("mem-unknown"))
    assert (await team.send(operation, "ben", payload(draft))).status == 404
    assert (await team.unit(draft)).status == "draft"


@requirement("akashik:commit:drafts-only", "akashik:discard:drafts-only", "akashik:errors:http-status")
@pytest.mark.parametrize("operation", ["COMMIT", "DISCARD"])
async def test_what_is_no_draft_is_neither_committed_nor_discarded(team: Rig, operation: str) -> None:
    committed, superseded, retracted = [await team.record("ada") for _ in range(3)]
    await team.record("ada", relations=[relation("supersedes", superseded)])
    await team.ask("RETRACT", "ada", {"memory_unit_id": retracted, "reason": "wrong"})
    discarded, once = await team.draft("ada"), await team.draft("ada")
    await team.ask("DISCARD", "ada", {"memory_unit_id": discarded})
    await team.ask("COMMIT", "ada", commit(once))
    for unit_id in (committed, superseded, retracted, discarded, once):
        payload = commit(unit_id) if operation == "COMMIT" else {"memory_unit_id": unit_id}
        refusal = await team.refused("INVALID_TRANSITION", operation, "ada", payload)
        assert refusal["recoverable"] is True
        assert (await team.send(operation, "ada", payload)).status == 409


@requirement("akashik:discard:answer")
@pytest.mark.parametrize("reason", [{}, {"reason": None}, {"reason": "superfluous"}], ids=repr)
async def test_discard_answers_ok_with_id_and_epoch_whether_or_not_a_reason_is_given(team: Rig, reason: Body) -> None:
    draft = await team.draft("ada")
    answer = await team.ask("DISCARD", "ada", {"memory_unit_id": draft} | reason)
    assert answer == {"status": "ok", "memory_unit_id": draft, "epoch": await team.epoch()}


@requirement("akashik:discard:gone")
async def test_a_discarded_draft_comes_out_of_no_attune_and_cannot_be_committed(team: Rig) -> None:
    draft = await team.draft("ada", "zanzibar")
    await team.ask("DISCARD", "ada", {"memory_unit_id": draft})
    for agent in ("ada", "eve"):
        answer = await team.attune(agent, "zanzibar", include_own=True, include_drafts=True, include_archived=True)
        assert answer["record"] == []
    await team.refused("INVALID_TRANSITION", "COMMIT", "ada", commit(draft))


@requirement("akashik:level:durable", "akashik:commit:becomes-committed")
@pytest.mark.parametrize("transport", DURABLE, indirect=True)
async def test_a_draft_survives_a_restart_and_can_be_committed_after_it(team: Rig) -> None:
    draft = await team.draft("ada", relations=[relation("contradicts", await team.record("ben"))])
    await team.restart()
    assert await team.seen_by("ada", include_drafts=True, include_own=True) >= {draft}
    answer = await team.ask("COMMIT", "ada", commit(draft))
    assert len(answer["conflicts_detected"]) == 1
    await team.restart()
    assert plain((await team.unit(draft)).confidence) == SURE


@requirement("akashik:commit:validated", "akashik:errors:payload-names-field")
@pytest.mark.parametrize("operation", ["COMMIT", "DISCARD"])
@pytest.mark.parametrize(
    "payload", [{}, {"memory_unit_id": None}, {"memory_unit_id": ""}, {"memory_unit_id": 7}], ids=repr
)
async def test_the_unit_must_be_named(team: Rig, operation: str, payload: Body) -> None:
    refusal = await team.refused("INVALID_PAYLOAD", operation, "ada", payload)
    assert "memory_unit_id" in refusal["message"]
