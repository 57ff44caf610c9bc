"""§2: memory units, as they are recorded and as they come back."""

import re
from typing import Any

import pytest

from tests.protocol.rig import Body, OpenRig, Rig, attunement, options, plain, relation, unit
from tests.protocol.ways import DURABLE
from tests.requirements import requirement

TYPES = (
    "finding",
    "decision",
    "observation",
    "intention",
    "assumption",
    "constraint",
    "question",
    "contradiction",
    "synthesis",
    "correction",
    "human_directive",
)
MAY_DANGLE = ("supports", "depends_on", "caused_by", "elaborates", "answers", "blocks", "informs")

FULL: Body = {
    "mode": "committed",
    "type": "finding",
    "content": 'Größe: 4,2 Mrd. € — 日本 👩‍🚀\n\ttab & "quotes" \\ end',
    "intent": {"purpose": "Validate the size", "task_id": "task-sizing", "question": "Is it large enough?"},
    "confidence": {
        "score": 0.82,
        "reasoning": "Three reports agree.",
        "evidence": ["https://example.com/a", "https://example.com/b"],
        "assumptions": ["Enforcement begins in Q3"],
    },
}


@requirement("akashik:unit:shape", "akashik:record:field-generates")
async def test_a_unit_shows_what_was_recorded_and_what_the_field_made(team: Rig) -> None:
    accepted = await team.ask("RECORD", "ada", FULL, session_id="sprint-7")
    [found] = (await team.attune("eve"))["record"]
    shown = found["memory_unit"]
    assert set(shown) == {
        "id",
        "mode",
        "type",
        "content",
        "intent",
        "confidence",
        "source",
        "relations",
        "status",
        "epoch",
    }
    assert (shown["id"], shown["epoch"]) == (accepted["memory_unit_id"], accepted["epoch"])
    assert (shown["mode"], shown["type"], shown["status"]) == ("committed", "finding", "active")
    assert shown["source"] == {
        "agent_id": "ada",
        "agent_role": "researcher",
        "session_id": "sprint-7",
        "timestamp": "2025-06-15T15:06:40.000Z",
    }


@requirement("akashik:record:field-generates")
async def test_every_unit_has_an_id_and_an_epoch_of_its_own(team: Rig) -> None:
    answers = [await team.ask("RECORD", "ada", unit()) for _ in range(20)]
    assert len({answer["memory_unit_id"] for answer in answers}) == 20
    epochs = [answer["epoch"] for answer in answers]
    assert epochs == sorted(set(epochs))
    assert all(re.fullmatch(r"mem-[0-9a-f]{32}", answer["memory_unit_id"]) for answer in answers)


@requirement("akashik:record:field-generates")
async def test_the_source_keeps_the_role_that_the_author_had_when_it_recorded(team: Rig) -> None:
    before = await team.record("ada")
    await team.ask("DEREGISTER", "ada", {"agent_id": "ada"})
    await team.register("ada", role="writer")
    after = await team.record("ada")
    assert (await team.unit(before)).source.agent_role == "researcher"
    assert (await team.unit(after)).source.agent_role == "writer"


@requirement("akashik:unit:texts-come-back")
async def test_intent_and_confidence_come_back_as_they_were_recorded(team: Rig) -> None:
    unit_id = (await team.ask("RECORD", "ada", FULL))["memory_unit_id"]
    shown = plain(await team.unit(unit_id))
    assert {name: shown[name] for name in ("content", "intent", "confidence")} == {
        name: FULL[name] for name in ("content", "intent", "confidence")
    }
    [found] = (await team.attune("eve"))["record"]
    assert found["memory_unit"] == shown


@requirement("akashik:unit:texts-come-back")
@pytest.mark.parametrize("score", [0, 0.0, 1, 1.0, 0.123456789])
async def test_a_score_comes_back_to_the_last_digit(team: Rig, score: float) -> None:
    unit_id = await team.record("ada", confidence={"score": score, "reasoning": "measured"})
    confidence = (await team.unit(unit_id)).confidence
    assert confidence is not None
    assert confidence.score == score


@requirement("akashik:unit:texts-come-back")
async def test_a_draft_may_have_no_confidence_or_half_of_one(team: Rig) -> None:
    assert (await team.unit(await team.draft("ada"))).confidence is None
    half = (await team.unit(await team.draft("ada", confidence={"reasoning": "a hunch"}))).confidence
    assert half is not None
    assert (half.score, half.reasoning) == (None, "a hunch")


@requirement("akashik:unit:types")
async def test_the_eleven_types_of_the_protocol_are_accepted(field: Rig) -> None:
    await field.register("ada", authority=10)
    for kind in TYPES:
        assert (await field.unit(await field.record("ada", type=kind))).type == kind


@requirement("akashik:unit:types-extended", "akashik:record:type-known")
async def test_further_types_are_accepted_when_the_configuration_names_them(rigs: OpenRig) -> None:
    field = await rigs(options(memory_types=frozenset({*TYPES, "hypothesis"})))
    await field.register("ada", "ben")
    unit_id = await field.record("ada", type="hypothesis")
    assert (await field.unit(unit_id)).type == "hypothesis"
    assert await field.seen_by("ben") == {unit_id}
    await field.refused("INVALID_TYPE", "RECORD", "ada", unit(type="rumour"))


@requirement("akashik:unit:relations")
async def test_the_nine_types_of_relations_come_back_with_target_and_description(team: Rig) -> None:
    target, rival = await team.record("ben"), await team.record("ben")
    relations = [
        *(relation(kind, target, description=f"it {kind} it") for kind in MAY_DANGLE),
        relation("supersedes", target),
        relation("contradicts", rival, description="they cannot both hold"),
    ]
    unit_id = await team.record("ada", relations=relations)
    assert plain((await team.unit(unit_id)).relations) == relations


@requirement("akashik:unit:relations", "akashik:errors:payload-names-field")
@pytest.mark.parametrize(
    "relations",
    [
        {"type": "supports", "target_id": "mem-1"},
        ["mem-1"],
        [{"type": "likes", "target_id": "mem-1"}],
        [{"type": "supports"}],
        [{"target_id": "mem-1"}],
        [{"type": "supports", "target_id": ""}],
        [{"type": "supports", "target_id": None}],
        [{"type": "supports", "target_id": "mem-1", "description": 7}],
        [{"type": "supports", "target_id": "mem-1", "weight": 0.5}],
    ],
    ids=repr,
)
async def test_any_other_relation_is_refused_and_named(team: Rig, relations: Any) -> None:
    refusal = await team.refused("INVALID_PAYLOAD", "RECORD", "ada", unit(relations=relations))
    assert "relations" in refusal["message"]


@requirement("akashik:unit:immutable")
async def test_nothing_that_happens_to_a_committed_unit_changes_what_it_says(team: Rig) -> None:
    unit_id = (await team.ask("RECORD", "ada", FULL))["memory_unit_id"]
    said = said_by(await team.unit(unit_id))
    await team.record("ben", relations=[relation("contradicts", unit_id)])
    assert (await team.unit(unit_id)).status == "contested"
    assert said_by(await team.unit(unit_id)) == said
    await team.record("ada", "Revised.", relations=[relation("supersedes", unit_id)])
    assert (await team.unit(unit_id)).status == "superseded"
    assert said_by(await team.unit(unit_id)) == said
    await team.ask("RETRACT", "ada", {"memory_unit_id": unit_id, "reason": "wrong"})
    assert (await team.unit(unit_id)).status == "retracted"
    assert said_by(await team.unit(unit_id)) == said


@requirement("akashik:unit:immutable", "akashik:level:durable")
@pytest.mark.parametrize("transport", DURABLE, indirect=True)
async def test_a_unit_is_the_same_after_a_restart_and_after_a_rebuild(team: Rig) -> None:
    target = await team.record("ben")
    await team.record("ada", relations=[relation("contradicts", target, description="no")], session="sprint-7")
    await team.ask("RECORD", "ada", FULL)
    await team.ask("ATTUNE", "eve", attunement("size"))  # what is related to what it was shown counts from now on
    before = await team.ask("ATTUNE", "eve", attunement("size"))
    await team.restart()
    assert await team.ask("ATTUNE", "eve", attunement("size")) == before
    assert (await team.door.rebuild()).unchanged
    assert await team.ask("ATTUNE", "eve", attunement("size")) == before


def said_by(shown: Any) -> tuple[Any, ...]:
    return shown.mode, shown.type, shown.content, shown.intent, shown.confidence, shown.source, shown.relations
