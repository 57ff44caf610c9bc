"""§3: conflicts that the Field finds by itself: at RECORD, later, and when DETECT asks for it."""

import asyncio
from typing import Any

import pytest
from msgspec import structs

from fieldstone.field import detect, detecting, enrichment, following
from fieldstone.field.options import Models
from fieldstone.testing import WordCounter
from tests.protocol.rig import Body, OpenRig, Rig, options, unit
from tests.protocol.ways import DURABLE
from tests.requirements import requirement
from tests.scripted import ScriptedEmbedder, ScriptedJudge, eventually

durable = pytest.mark.parametrize("transport", DURABLE, indirect=True)

HUNDRED = "The API rate limit is 100 requests per second."
FIFTY = "The API rate limit is 50 requests per second."
LIST: Body = {"mode": "list"}
SURE: Body = {"score": 0.9, "reasoning": "measured"}
DOUBTFUL: Body = {"score": 0.4, "reasoning": "hearsay"}
LONG_MS = 3_600_000


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detecting, "PAUSE_MS", 0)
    monkeypatch.setattr(detecting, "RETRY_MS", 0)


async def opened(rigs: OpenRig, *, models: Any = None, **changes: Any) -> Rig:
    """A field with these options and two researchers, ada and ben, and an analyst, eve."""
    more = {} if models is None else {"models": models}
    field: Rig = await rigs(structs.replace(options(), **changes), **more)
    await field.register("ada", "ben")
    await field.register("eve", role="analyst")
    return field


async def conflicts(field: Rig, **filters: Any) -> list[Body]:
    listed: list[Body] = (await field.ask("DETECT", "eve", LIST | {"filter": filters}))["conflicts"]
    return listed


async def scan(field: Rig, after_epoch: int | None = None) -> Body:
    return await field.ask("DETECT", "eve", {"mode": "scan", "after_epoch": after_epoch})


async def check(field: Rig, target: str) -> Body:
    return await field.ask("DETECT", "eve", {"mode": "check", "target_id": target})


# --- what is a conflict -----------------------------------------------------------------------------------------------


@requirement("akashik:detect:semantic", "akashik:detect:at-record", "akashik:record:contested-by-second-event")
async def test_opposed_statements_are_a_semantic_conflict_that_contests_both_sides(team: Rig) -> None:
    older = await team.record("ada", HUNDRED, confidence=SURE)
    answer = await team.ask("RECORD", "ben", unit(FIFTY, confidence=SURE))
    [found] = answer["conflicts_detected"]
    assert "conflict_detection" not in answer
    [listed] = await conflicts(team)
    assert (listed["id"], listed["detected_by"], listed["status"]) == (found, "semantic", "detected")
    assert (listed["unit_a"], listed["unit_b"]) == (answer["memory_unit_id"], older)
    assert "“50” against “100”" in listed["description"]
    for side in (older, answer["memory_unit_id"]):
        assert (await team.unit(side)).status == "contested"
    assert [conflict["id"] for conflict in (await team.attune("eve"))["conflicts"]] == [found]


@requirement("akashik:detect:semantic")
@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The parser handles tabs.", "The parser does not handle tabs."),
        ("The gateway is open.", "The gateway is closed."),
        ("The launch is on March 3.", "The launch is on March 9."),
        ("The backup takes 20 minutes.", "The backup takes 2 hours."),
    ],
)
async def test_negations_opposites_dates_and_quantities_are_found_without_a_model(
    team: Rig, older: str, newer: str
) -> None:
    await team.record("ada", older)
    answer = await team.ask("RECORD", "ben", unit(newer))
    assert len(answer["conflicts_detected"]) == 1


@requirement("akashik:detect:logical")
async def test_an_assumption_against_a_finding_is_found_by_logical_means(team: Rig) -> None:
    await team.record("ada", HUNDRED)
    await team.record("ben", FIFTY, type="assumption")
    [listed] = await conflicts(team)
    assert listed["detected_by"] == "logical"


@requirement("akashik:detect:temporal")
async def test_a_newer_statement_against_an_established_one_is_found_by_temporal_means(team: Rig) -> None:
    await team.record("ada", HUNDRED, confidence=SURE)
    await team.record("ben", FIFTY, confidence=DOUBTFUL)
    [listed] = await conflicts(team)
    assert listed["detected_by"] == "temporal"


@requirement("akashik:detect:lists")
@pytest.mark.parametrize(
    "statements",
    [
        [f"Observation {number}: the pump ran." for number in range(1, 6)],
        [f"On March {day} the pump ran for {day} hours." for day in range(1, 6)],
        [f"Pump P-{number} holds {10 + number} litres." for number in range(1, 6)],
        [f"Item {number} of the list is checked." for number in range(1, 6)],
    ],
    ids=["numbered", "dated", "subjects", "items"],
)
async def test_items_of_a_list_different_dates_and_different_subjects_are_no_contradictions(
    team: Rig, statements: list[str]
) -> None:
    for statement in statements:
        await team.record("ada", statement)
    assert await conflicts(team) == []


async def test_a_unit_against_two_others_is_in_two_conflicts_and_the_history_is_sound(team: Rig) -> None:
    await team.record("ada", HUNDRED)
    await team.record("eve", HUNDRED)
    answer = await team.ask("RECORD", "ben", unit(FIFTY))
    assert len(answer["conflicts_detected"]) == 2
    assert (await team.door.verify()).ok
    assert (await team.door.rebuild()).unchanged


# --- at RECORD and COMMIT ---------------------------------------------------------------------------------------------


@requirement("akashik:detect:at-record")
async def test_a_commit_answers_conflicts_with_what_was_recorded_since_the_draft(team: Rig) -> None:
    draft = await team.draft("ada", HUNDRED)
    other = await team.record("ben", FIFTY)
    assert await conflicts(team) == []
    answer = await team.ask("COMMIT", "ada", {"memory_unit_id": draft, "confidence": SURE})
    [listed] = await conflicts(team)
    assert answer["conflicts_detected"] == [listed["id"]]
    assert (listed["unit_a"], listed["unit_b"]) == (draft, other), "what took effect later is the newer one"


@requirement("akashik:detect:at-record")
async def test_units_recorded_together_are_compared_with_each_other(team: Rig) -> None:
    answers = await asyncio.gather(team.ask("RECORD", "ada", unit(HUNDRED)), team.ask("RECORD", "ben", unit(FIFTY)))
    found = [conflict for answer in answers for conflict in answer["conflicts_detected"]]
    assert found == [listed["id"] for listed in await conflicts(team)]
    assert len(found) == 1


@requirement("akashik:idempotency:same-answer", "akashik:detect:at-record")
async def test_a_message_sent_again_gets_the_answer_with_its_conflicts(team: Rig) -> None:
    await team.record("ada", HUNDRED)
    envelope = team.envelope("RECORD", "ben", unit(FIFTY))
    _, first = await team.send_envelope(envelope)
    _, again = await team.send_envelope(envelope)
    assert again == first
    assert len(first["conflicts_detected"]) == 1


async def test_a_field_that_is_told_not_to_look_finds_nothing_by_itself(rigs: OpenRig) -> None:
    field = await opened(rigs, detect_conflicts=False)
    await field.record("ada", HUNDRED)
    answer = await field.ask("RECORD", "ben", unit(FIFTY))
    assert answer["conflicts_detected"] == []
    assert "conflict_detection" not in answer
    assert (await field.door.status()).detection_behind == 0


# --- later ------------------------------------------------------------------------------------------------------------


async def is_compared(field: Rig) -> None:
    async def holds() -> bool:
        return (await field.door.status()).detection_behind == 0

    await eventually(holds)


@requirement("akashik:detect:deferred", "akashik:idempotency:same-answer")
async def test_detection_past_its_time_limit_is_deferred_and_happens_by_itself(rigs: OpenRig) -> None:
    field = await opened(rigs, detection_timeout_ms=0)
    older = await field.record("ada", HUNDRED)
    envelope = field.envelope("RECORD", "ben", unit(FIFTY))
    _, answer = await field.send_envelope(envelope)
    assert (answer["conflicts_detected"], answer["conflict_detection"]) == ([], "deferred")
    await is_compared(field)
    [listed] = await conflicts(field)
    assert {listed["unit_a"], listed["unit_b"]} == {older, answer["memory_unit_id"]}
    assert listed["detected_by"] == "semantic"
    assert (await field.send_envelope(envelope)).body == answer, "the first answer is the one that is remembered"


@requirement("akashik:detect:deferred")
async def test_many_units_at_once_are_answered_without_waiting_and_compared_afterwards(rigs: OpenRig) -> None:
    field = await opened(rigs, detection_timeout_ms=50)
    texts = [*(f"Pump {number} was checked." for number in range(62)), HUNDRED, FIFTY]
    answers = await asyncio.gather(*(field.ask("RECORD", "ada", unit(text)) for text in texts))
    assert all(answer.get("conflict_detection") == "deferred" for answer in answers)
    await is_compared(field)
    [listed] = await conflicts(field)
    assert {listed["unit_a"], listed["unit_b"]} == {answer["memory_unit_id"] for answer in answers[-2:]}


@durable
@requirement("akashik:detect:deferred")
async def test_what_was_deferred_when_the_field_closed_is_compared_after_the_restart(
    rigs: OpenRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detecting, "PAUSE_MS", LONG_MS)
    field = await opened(rigs, detection_timeout_ms=0)
    await field.record("ada", HUNDRED)
    await field.record("ben", FIFTY)
    assert (await field.door.status()).detection_behind == 2
    assert await conflicts(field) == []
    monkeypatch.setattr(detecting, "PAUSE_MS", 0)
    await field.restart()
    await is_compared(field)
    assert len(await conflicts(field)) == 1
    await field.restart()
    assert (await field.door.status()).detection_behind == 0, "what was compared is not compared again"


@durable
@requirement("akashik:detect:deferred")
async def test_a_draft_whose_commit_was_not_compared_any_more_is_compared_after_the_restart(
    rigs: OpenRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mark stands after the draft's record, and before its commit."""
    field = await opened(rigs)
    draft = await field.draft("ada", HUNDRED)
    await field.record("ben", FIFTY)
    await field.restart(detection_timeout_ms=0)
    monkeypatch.setattr(detecting, "PAUSE_MS", LONG_MS)
    await is_compared(field)
    await field.ask("COMMIT", "ada", {"memory_unit_id": draft, "confidence": SURE})
    assert (await field.door.status()).detection_behind == 1
    monkeypatch.setattr(detecting, "PAUSE_MS", 0)
    await field.restart()
    await is_compared(field)
    assert len(await conflicts(field)) == 1
    await field.restart()
    assert (await field.door.status()).detection_behind == 0, "what was compared is not compared again"


# --- DETECT -----------------------------------------------------------------------------------------------------------


@requirement("akashik:detect:check")
async def test_a_check_compares_one_unit_puts_it_on_record_and_answers_its_conflicts(rigs: OpenRig) -> None:
    field = await opened(rigs, detect_conflicts=False)
    older = await field.record("ada", HUNDRED)
    newer = await field.record("ben", FIFTY)
    await field.record("ben", "The gateway is open.")
    await field.record("ada", "The gateway is closed.")
    checked = await check(field, older)
    [found] = checked["conflicts"]
    assert {found["unit_a"], found["unit_b"]} == {older, newer}
    assert checked["scan_coverage"] == {
        "units_scanned": 1,
        "new_conflicts_found": 1,
        "complete": True,
        "next_after_epoch": None,
    }
    assert await conflicts(field) == [found]
    again = await check(field, newer)
    assert again["conflicts"] == [found]
    assert again["scan_coverage"]["new_conflicts_found"] == 0


@requirement("akashik:detect:scan")
async def test_a_scan_finds_what_nobody_looked_for_and_finds_it_once(rigs: OpenRig) -> None:
    field = await opened(rigs, detect_conflicts=False)
    await field.record("ada", HUNDRED)
    after = await field.epoch()
    await field.record("ben", FIFTY)
    await field.record("ben", "The gateway is open.")
    await field.record("ada", "The gateway is closed.")
    scanned = await scan(field, after)
    assert scanned["scan_coverage"] == {
        "units_scanned": 3,
        "new_conflicts_found": 2,
        "complete": True,
        "next_after_epoch": None,
    }
    assert await conflicts(field) == scanned["conflicts"]
    again = await scan(field)
    assert again["conflicts"] == []
    assert (again["scan_coverage"]["units_scanned"], again["scan_coverage"]["new_conflicts_found"]) == (4, 0)


@requirement("akashik:detect:scan")
async def test_a_scan_of_a_large_field_is_gone_on_with_where_the_last_one_stopped(
    rigs: OpenRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detect, "SCAN_MS", 0)
    field = await opened(rigs, detect_conflicts=False)
    for number in range(25):
        await field.record("ada", f"Service s{number} runs on port {8000 + number}.")
        await field.record("ben", f"Service s{number} runs on port {9000 + number}.")
    after, calls, scanned, found = None, 0, 0, set()
    while calls == 0 or after is not None:
        answer = await scan(field, after)
        coverage = answer["scan_coverage"]
        assert coverage["complete"] == (coverage["next_after_epoch"] is None)
        after = coverage["next_after_epoch"]
        calls, scanned = calls + 1, scanned + coverage["units_scanned"]
        found |= {conflict["id"] for conflict in answer["conflicts"]}
    assert (calls, scanned) == (4, 50)
    assert len(found) == 25
    assert {conflict["id"] for conflict in await conflicts(field)} == found


async def test_a_resolved_conflict_is_not_found_again(team: Rig) -> None:
    older = await team.record("ada", HUNDRED)
    newer = await team.record("ben", FIFTY)
    await team.ask("RETRACT", "ada", {"memory_unit_id": older, "reason": "wrong"})
    assert (await team.unit(newer)).status == "active"
    assert (await scan(team))["scan_coverage"]["new_conflicts_found"] == 0
    assert (await check(team, newer))["conflicts"] == []
    [listed] = await conflicts(team)
    assert listed["status"] == "resolved"
    assert await conflicts(team, status=["detected"]) == []


# --- a model that has a word in it ------------------------------------------------------------------------------------

ALIKE = "The deployment of the billing service went well in the end."
UNLIKE = "The deployment of the billing service went south in the end."


async def judged(rigs: OpenRig, word: bool | None) -> tuple[Rig, ScriptedJudge]:
    judge = ScriptedJudge(word)
    field = await opened(rigs, models=lambda: Models(WordCounter(), ScriptedEmbedder(), judge=judge))
    return field, judge


async def test_a_judge_that_says_no_drops_what_the_rules_found(rigs: OpenRig) -> None:
    field, judge = await judged(rigs, word=False)
    await field.record("ada", HUNDRED)
    answer = await field.ask("RECORD", "ben", unit(FIFTY))
    assert answer["conflicts_detected"] == []
    assert judge.asked == [(FIFTY, HUNDRED)]
    assert (await field.unit(answer["memory_unit_id"])).status == "active"


async def test_a_judge_that_says_yes_adds_what_no_rule_knows(rigs: OpenRig) -> None:
    field, judge = await judged(rigs, word=True)
    await field.record("ada", ALIKE)
    answer = await field.ask("RECORD", "ben", unit(UNLIKE))
    assert judge.asked == [(UNLIKE, ALIKE)]
    [listed] = await conflicts(field)
    assert answer["conflicts_detected"] == [listed["id"]]
    assert listed["detected_by"] == "semantic"


async def test_a_judge_that_is_silent_leaves_what_the_rules_said(rigs: OpenRig) -> None:
    field, judge = await judged(rigs, word=None)
    await field.record("ada", HUNDRED)
    await field.record("ada", ALIKE)
    assert len((await field.ask("RECORD", "ben", unit(FIFTY)))["conflicts_detected"]) == 1
    assert (await field.ask("RECORD", "ben", unit(UNLIKE)))["conflicts_detected"] == []
    assert judge.asked == [(FIFTY, HUNDRED), (UNLIKE, ALIKE)]


async def test_a_unit_whose_vector_was_late_is_compared_by_its_meaning_when_it_comes(
    rigs: OpenRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enrichment, "FIRST_PAUSE_MS", 1)
    monkeypatch.setattr(following, "TELL_AFTER_MS", 0)
    embedder, judge = ScriptedEmbedder(), ScriptedJudge(word=True)
    field = await opened(rigs, models=lambda: Models(WordCounter(), embedder, judge=judge))
    await field.record("ada", ALIKE)
    embedder.fails = True
    answer = await field.ask("RECORD", "ben", unit(UNLIKE))
    assert answer["conflicts_detected"] == []
    embedder.fails = False

    async def found() -> bool:
        return len(await conflicts(field)) == 1

    await eventually(found)


@durable
async def test_a_judge_that_never_answers_does_not_hold_up_closing_and_the_rules_decide_later(
    rigs: OpenRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detecting, "CLOSING_MS", 1)
    field, judge = await judged(rigs, word=None)
    await field.restart(detection_timeout_ms=10)
    await field.record("ada", HUNDRED)
    judge.opened.clear()
    answer = await field.ask("RECORD", "ben", unit(FIFTY))
    assert answer["conflict_detection"] == "deferred"
    await field.restart()
    judge.opened.set()

    async def found() -> bool:
        return len(await conflicts(field)) == 1

    await eventually(found)


async def test_a_field_closes_its_judge(rigs: OpenRig) -> None:
    field, judge = await judged(rigs, word=None)
    await field.restart()
    assert judge.closed
