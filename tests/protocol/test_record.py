"""§3 and the seed: what RECORD takes, and what it refuses."""

import asyncio
from typing import Any

import pytest

from tests.protocol.rig import Body, OpenRig, Rig, options, relation, unit, warnings
from tests.redact.fakes import TOKENS
from tests.requirements import requirement

MODES = ("draft", "committed")
both_modes = pytest.mark.parametrize("mode", MODES)

# Nothing of these can be seen: spaces, controls, zero-width, fillers that Unicode files under letters or marks.
BLANKS = (
    " ",
    " \t\r\n",
    "\u00a0",
    "\u2003\u3000",
    "\u200b",
    "\u200c\u200d",
    "\u2060",
    "\ufeff",
    "\u00ad",
    "\u034f",
    "\u061c",
    "\u115f",
    "\u1160",
    "\u17b4\u17b5",
    "\u180b",
    "\u180e",
    "\u2028",
    "\u202e",
    "\u2800",
    "\u3164",
    "\u3164 \u200b",
    "\ufe00",
    "\ufe0f",
    "\uffa0",
    "\U000e0001",
    "\U000e0100",
)


@requirement("akashik:record:answer")
@both_modes
async def test_record_answers_status_id_epoch_and_conflicts(team: Rig, mode: str) -> None:
    answer = await team.ask("RECORD", "ada", unit(mode=mode))
    assert set(answer) >= {"status", "memory_unit_id", "epoch", "conflicts_detected"}
    assert answer["status"] == "accepted"
    assert answer["conflicts_detected"] == []
    assert answer.get("rejection_reason") is None
    assert answer["epoch"] == await team.epoch()
    assert (await team.unit(answer["memory_unit_id"])).content == "The market grows."


@requirement("akashik:record:mode-and-type-required", "akashik:errors:payload-names-field")
@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"mode": ...}, "mode"),
        ({"mode": None}, "mode"),
        ({"mode": "final"}, "mode"),
        ({"mode": 7}, "mode"),
        ({"type": ...}, "type"),
    ],
    ids=repr,
)
async def test_a_unit_without_a_mode_or_a_type_or_of_an_unknown_mode_is_refused(
    team: Rig, fields: dict[str, Any], named: str
) -> None:
    payload = {name: value for name, value in (unit() | fields).items() if value is not ...}
    refusal = await team.refused("INVALID_PAYLOAD", "RECORD", "ada", payload)
    assert named in refusal["message"]


@requirement("akashik:record:type-known")
@both_modes
@pytest.mark.parametrize("kind", ["rumour", "Finding", "finding ", ""])
async def test_an_unknown_type_is_refused(team: Rig, mode: str, kind: str) -> None:
    await team.refused("INVALID_TYPE", "RECORD", "ada", unit(mode=mode, type=kind))


@requirement("akashik:record:content-required", "akashik:errors:payload-names-field")
@both_modes
@pytest.mark.parametrize("content", [..., None, "", " \n", "\u200b", 7, ["text"]], ids=repr)
async def test_a_unit_without_content_is_refused(team: Rig, mode: str, content: Any) -> None:
    payload = {name: value for name, value in (unit(mode=mode) | {"content": content}).items() if value is not ...}
    refusal = await team.refused("INVALID_PAYLOAD", "RECORD", "ada", payload)
    assert "content" in refusal["message"]


@requirement("akashik:record:intent-required", "akashik:record:refusal-changes-nothing")
@both_modes
@pytest.mark.parametrize("intent", [..., None, {}, {"purpose": None}, {"purpose": ""}, {"question": "why?"}], ids=repr)
async def test_a_unit_without_a_purpose_is_refused_and_nothing_is_appended(team: Rig, mode: str, intent: Any) -> None:
    refusal = await team.refused("MISSING_INTENT", "RECORD", "ada", unit(mode=mode, intent=intent))
    assert (refusal["status"], refusal["recoverable"]) == ("rejected", True)
    assert "MISSING_INTENT" in refusal["rejection_reason"]
    assert "intent.purpose" in refusal["suggested_action"]


@requirement("akashik:record:intent-not-blank")
@both_modes
async def test_a_purpose_that_nobody_could_see_is_missing(team: Rig, mode: str) -> None:
    before = await team.trace()
    codes = {}
    for purpose in BLANKS:
        _, body = await team.send("RECORD", "ada", unit(mode=mode, intent={"purpose": purpose}))
        codes[ascii(purpose)] = body.get("code")
    assert {purpose: code for purpose, code in codes.items() if code != "MISSING_INTENT"} == {}
    assert await team.trace() == before


@requirement("akashik:record:intent-not-blank")
@pytest.mark.parametrize("purpose", ["a", "?", "日本", "\u200bwhy\u200b", "👩‍🚀", "é", "ㅤwhy"])
async def test_a_purpose_with_anything_to_see_is_one(team: Rig, purpose: str) -> None:
    unit_id = await team.record("ada", intent={"purpose": purpose})
    assert (await team.unit(unit_id)).intent.purpose == purpose


@requirement("akashik:record:draft-without-confidence")
async def test_a_draft_needs_no_confidence(team: Rig) -> None:
    for confidence in (..., None, {}, {"score": 0.5}, {"reasoning": "a hunch"}):
        assert (await team.unit(await team.draft("ada", confidence=confidence))).status == "draft"


@requirement("akashik:record:confidence-required")
@pytest.mark.parametrize(
    "confidence",
    [
        ...,
        None,
        {},
        {"score": 0.5},
        {"score": 0.5, "reasoning": None},
        {"score": 0.5, "reasoning": ""},
        {"score": 0.5, "reasoning": " \u200b"},
        {"reasoning": "two reports"},
        {"score": None, "reasoning": "two reports"},
    ],
    ids=repr,
)
async def test_a_committed_unit_without_score_or_reasoning_is_refused(team: Rig, confidence: Any) -> None:
    refusal = await team.refused("MISSING_CONFIDENCE", "RECORD", "ada", unit(confidence=confidence))
    assert (refusal["status"], refusal["recoverable"]) == ("rejected", True)


@requirement("akashik:record:confidence-optional-at-level-0", "akashik:level:lowered-validates")
async def test_at_level_0_a_committed_unit_needs_no_confidence_but_a_bad_one_is_refused(rigs: OpenRig) -> None:
    field = await rigs(options(conformance_level=0))
    await field.register("ada", "ben")
    unit_id = await field.record("ada", confidence=...)
    assert await field.seen_by("ben") == {unit_id}
    await field.refused("INVALID_CONFIDENCE", "RECORD", "ada", unit(confidence={"score": 2}))
    await field.refused("MISSING_INTENT", "RECORD", "ada", unit(intent=None))


@requirement("akashik:record:confidence-range")
@both_modes
@pytest.mark.parametrize(
    "score", ["-0.01", "1.01", "-1", "2", "1e400", "-1e400", "1" + "0" * 400, '"0.5"', "true", "[]"]
)
async def test_a_score_that_is_no_number_from_0_to_1_is_refused_in_either_mode(
    team: Rig, mode: str, score: str
) -> None:
    payload = unit(mode=mode, confidence={"score": 77, "reasoning": "measured"})
    envelope = team.envelope("RECORD", "ada", payload, id="m")
    body = repr(envelope).replace("'", '"').replace("None", "null").replace("77", score)
    await team.refused_post("INVALID_CONFIDENCE", body.encode())


@requirement("akashik:record:confidence-range")
@both_modes
@pytest.mark.parametrize("score", ["NaN", "Infinity", "-Infinity"])
async def test_a_score_that_json_has_no_word_for_is_refused_with_400(team: Rig, mode: str, score: str) -> None:
    """No JSON, hence no envelope; or, read leniently, no confidence. Both are right."""
    envelope = team.envelope("RECORD", "ada", unit(mode=mode, confidence={"score": 77, "reasoning": "measured"}))
    before = await team.trace()
    body = repr(envelope).replace("'", '"').replace("None", "null").replace("77", score)
    status, refusal = await team.post(body.encode())
    assert (status, refusal["code"]) in [(400, "INVALID_CONFIDENCE"), (400, "INVALID_ENVELOPE")]
    assert await team.trace() == before


@requirement("akashik:record:confidence-range")
@both_modes
async def test_the_scores_0_and_1_are_inside(team: Rig, mode: str) -> None:
    for score in (0, 0.0, 1, 1.0):
        await team.record("ada", mode=mode, confidence={"score": score, "reasoning": "measured"})


@requirement("akashik:record:server-fields-refused", "akashik:errors:payload-unknown-field")
@both_modes
@pytest.mark.parametrize(
    "brought",
    [
        {"id": "mem-1"},
        {"epoch": 7},
        {"source": {"agent_id": "eve"}},
        {"status": "active"},
        {"memory_unit_id": "mem-1"},
        {"archived_epoch": 7},
        {"priority": 1},
    ],
    ids=repr,
)
async def test_a_unit_that_brings_what_the_field_makes_or_does_not_know_is_refused(
    team: Rig, mode: str, brought: Body
) -> None:
    refusal = await team.refused("INVALID_PAYLOAD", "RECORD", "ada", unit(mode=mode) | brought)
    assert next(iter(brought)) in refusal["message"]


@requirement("akashik:record:status-by-mode")
async def test_a_draft_is_a_draft_and_a_committed_unit_is_active(team: Rig) -> None:
    draft, committed = await team.unit(await team.draft("ada")), await team.unit(await team.record("ada"))
    assert (draft.mode, draft.status) == ("draft", "draft")
    assert (committed.mode, committed.status) == ("committed", "active")


@requirement("akashik:record:logged")
async def test_an_accepted_unit_is_an_entry_of_the_log(team: Rig) -> None:
    before = await team.kinds()
    unit_id = await team.record("ada")
    assert await team.kinds() == [*before, "unit.recorded"]
    entry = (await team.log())[-1].entry
    assert getattr(entry.event, "id", None) == unit_id
    assert entry.epoch == (await team.unit(unit_id)).epoch


@requirement("akashik:record:refusal-changes-nothing")
async def test_a_refused_unit_leaves_no_text_that_could_be_found_or_exported(team: Rig) -> None:
    for payload in (
        unit("zanzibar", intent=None),
        unit("zanzibar", confidence=None),
        unit("zanzibar", status="active"),
    ):
        assert (await team.send("RECORD", "ada", payload)).status == 400
    assert b"zanzibar" not in b"".join([batch async for batch in team.door.export()])
    assert await team.seen_by("eve") == set()


@requirement("akashik:record:refusal-changes-nothing")
async def test_one_refused_among_many_at_once_leaves_nothing_and_hinders_none(team: Rig) -> None:
    payloads = [unit(f"Unit {n}.", relations=[relation("contradicts", "mem-0")] if n == 7 else []) for n in range(20)]
    answers = await asyncio.gather(*(team.send("RECORD", "ada", payload) for payload in payloads))
    assert [answer.status for answer in answers] == [404 if n == 7 else 200 for n in range(20)]
    assert (await team.door.verify()).ok
    assert len(await team.seen_by("eve")) == 19


@requirement("akashik:record:redacted-warning")
async def test_what_was_redacted_is_told_as_a_warning_and_is_no_error(team: Rig) -> None:
    answer = await team.ask("RECORD", "ada", unit(f"The key is {TOKENS['GitHub personal']}."))
    [(code, message)] = warnings(answer)
    assert code == "REDACTED"
    assert TOKENS["GitHub personal"] not in message
    assert "[REDACTED:" in (await team.unit(answer["memory_unit_id"])).content
    assert "warnings" not in await team.ask("RECORD", "ada", unit())


@requirement("akashik:record:openwop-sessions-reserved", "akashik:errors:http-status")
@both_modes
async def test_a_session_of_the_openwop_host_is_closed_to_record(team: Rig, mode: str) -> None:
    for session in ("openwop:", "openwop:memory:42"):
        await team.refused("FORBIDDEN", "RECORD", "ada", unit(mode=mode), session_id=session)
        assert (await team.send("RECORD", "ada", unit(mode=mode), session_id=session)).status == 403
    await team.record("ada", session="my-openwop:notes")


@requirement("akashik:record:sessions-open")
async def test_everyone_records_and_reads_in_sessions_that_nobody_created(team: Rig) -> None:
    recorded = {
        await team.record(agent, session=session) for agent in ("ada", "ben") for session in ("s-1", "s-2", None)
    }
    assert await team.seen_by("eve") == recorded
