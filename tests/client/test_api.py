"""The native API: the same calls, answers and errors wherever the field is."""

import math
from typing import Any

import pytest

from fieldstone import Confidence, Field, Intent, Relation
from fieldstone.core import errors
from fieldstone.core.errors import FieldError

WHY: dict[str, Any] = {"intent": "size the market", "confidence": 0.8, "reasoning": "two reports"}


async def test_an_agent_records_and_another_attunes(field: Field) -> None:
    ada = await field.agent("ada", role="researcher", interests=["pricing"])
    ben = await field.agent("ben", role="analyst")
    accepted = await ada.record("The market grows.", type="decision", session_id="s-1", **WHY)
    attuned = await ben.attune("market", max_units=5)
    [found] = attuned.record
    assert found.memory_unit.id == accepted.memory_unit_id
    assert found.memory_unit.content == "The market grows."
    assert found.memory_unit.source.session_id == "s-1"
    assert 0 < found.relevance_score <= 1
    assert "market" in found.relevance_reason
    assert (ada.id, ada.role, ada.profile.interests) == ("ada", "researcher", ("pricing",))


async def test_agent_joins_and_resumes_and_joins_again_after_it_left(field: Field) -> None:
    joined = await field.agent("ada", role="researcher", authority=6)
    await joined.record("First.", **WHY)
    resumed = await field.agent("ada", role="something else")
    assert (resumed.role, resumed.profile.authority) == ("researcher", 6), "it is still who it was"
    await resumed.record("Second.", **WHY)
    await resumed.deregister()
    again = await field.agent("ada", role="writer")
    assert again.role == "writer"
    assert len((await again.attune(include_own=True)).record) == 2


async def test_register_is_strict(field: Field) -> None:
    await field.register("ada", role="researcher")
    with pytest.raises(errors.AgentIdTaken):
        await field.register("ada", role="researcher")
    with pytest.raises(errors.UnsupportedOperation, match="MERGE"):
        await field.register("ben", role="researcher", required_operations=["MERGE"])
    with pytest.raises(errors.AgentIdTaken):
        await field.agent("field", role="researcher")


async def test_intent_confidence_and_relations_come_as_values_or_mappings(field: Field) -> None:
    ada = await field.agent("ada", role="researcher")
    target = (await ada.record("First.", **WHY)).memory_unit_id
    relations: list[Any] = [Relation("supports", target, "it does"), {"type": "informs", "target_id": target}]
    intents: list[Any] = [Intent("size it", "t-1", "how large?"), {"purpose": "size it", "task_id": "t-1"}]
    confidences: list[Any] = [Confidence(0.5, "a hunch", ("e",), ("a",)), {"score": 0.5, "reasoning": "a hunch"}]
    for intent, confidence in zip(intents, confidences, strict=True):
        accepted = await ada.record("Next.", intent=intent, confidence=confidence, relations=relations)
        unit = await field.unit(accepted.memory_unit_id)
        assert (unit.intent.purpose, unit.intent.task_id) == ("size it", "t-1")
        assert unit.confidence is not None
        assert (unit.confidence.score, unit.confidence.reasoning) == (0.5, "a hunch")
        assert unit.relations == (Relation("supports", target, "it does"), Relation("informs", target))
    said = await ada.record("Last.", evidence=["e-1"], assumptions=["a-1"], **WHY)
    confidence = (await field.unit(said.memory_unit_id)).confidence
    assert confidence == Confidence(0.8, "two reports", ("e-1",), ("a-1",))


async def test_drafts_retractions_and_conflicts(field: Field) -> None:
    ada, ben = await field.agent("ada", role="researcher"), await field.agent("ben", role="researcher")
    draft = await ada.record("Maybe.", intent="note it", mode="draft")
    assert [found.memory_unit.id for found in (await ada.attune(include_drafts=True)).record] == [draft.memory_unit_id]
    committed = await ada.commit(draft.memory_unit_id, confidence=0.7, reasoning="checked")
    assert committed.memory_unit_id == draft.memory_unit_id
    against = await ben.record("No.", relations=[{"type": "contradicts", "target_id": draft.memory_unit_id}], **WHY)
    detection = await ada.detect(status=["detected"])
    assert [conflict.id for conflict in detection.conflicts] == list(against.conflicts_detected)
    assert [conflict.id for conflict in await field.conflicts(["detected"])] == list(against.conflicts_detected)
    assert not await field.conflicts(["resolved"])
    assert (await ben.retract(against.memory_unit_id, reason="wrong")).status == "ok"
    assert [conflict.status for conflict in await field.conflicts()] == ["resolved"]
    other = await ada.record("Hm.", intent="note it", mode="draft")
    assert (await ada.discard(other.memory_unit_id, reason="no")).status == "ok"
    assert (await ada.deregister()).cleanup.units_orphaned == 1


async def test_ids_only_and_polling(field: Field) -> None:
    ada, ben = await field.agent("ada", role="researcher"), await field.agent("ben", role="analyst")
    recorded = [await ada.record(f"Unit {n}.", **WHY) for n in range(5)]
    first = await ben.attune_ids(max_units=3, order="epoch")
    assert [found.memory_unit.id for found in first.record] == [each.memory_unit_id for each in recorded[:3]]
    rest = await ben.attune(order="epoch", since_epoch=recorded[3].epoch, min_epoch=recorded[4].epoch)
    assert [found.memory_unit.id for found in rest.record] == [each.memory_unit_id for each in recorded[3:]]


async def test_an_agent_remembers_the_epoch_of_the_last_answer_and_sends_it_along(field: Field) -> None:
    ada, ben = await field.agent("ada", role="researcher"), await field.agent("ben", role="analyst")
    first = await ada.record("First.", **WHY)
    assert ada.epoch == first.epoch > ben.epoch
    await ben.attune()
    assert ben.epoch == first.epoch
    assert (await ben.record("Second.", **WHY)).epoch == first.epoch + 1 == ben.epoch


async def test_a_record_with_an_id_may_be_sent_again(field: Field) -> None:
    ada = await field.agent("ada", role="researcher")
    first = await ada.record("Once.", id="m-1", **WHY)
    assert await ada.record("Once.", id="m-1", **WHY) == first
    with pytest.raises(errors.InvalidEnvelope):
        await ada.record("Twice.", id="m-1", **WHY)
    assert await ada.record("Once.", **WHY) != first, "without an id it is a new one each time"


REFUSED: list[tuple[dict[str, Any], type[FieldError]]] = [
    ({"intent": " "}, errors.MissingIntent),
    ({"confidence": None}, errors.MissingConfidence),
    ({"reasoning": None}, errors.MissingConfidence),
    ({"confidence": 1.5}, errors.InvalidConfidence),
    ({"confidence": math.nan}, errors.InvalidConfidence),
    ({"confidence": math.inf}, errors.InvalidConfidence),
    ({"confidence": math.nan, "mode": "draft"}, errors.InvalidConfidence),
    ({"confidence": {"score": "high", "reasoning": "x"}}, errors.InvalidConfidence),
    ({"type": "rumour"}, errors.InvalidType),
    ({"mode": "final"}, errors.InvalidPayload),
    ({"content": ""}, errors.InvalidPayload),
    ({"content": "half \ud83d pair"}, errors.InvalidPayload),
    ({"content": "a\x00b"}, errors.InvalidPayload),
    ({"intent": {"purpose": "p", "priority": 1}}, errors.InvalidPayload),
    ({"relations": [{"type": "contradicts", "target_id": "mem-0"}]}, errors.UnitNotFound),
    ({"type": "human_directive"}, errors.Forbidden),
    ({"session_id": "gh" + "p_" + "a1B2c3D4e5F6" * 3}, errors.SecretLeakage),
    ({"session_id": ""}, errors.InvalidEnvelope),
    ({"id": "half \ud83d pair"}, errors.InvalidEnvelope),
]


@pytest.mark.parametrize(("wrong", "kind"), REFUSED, ids=[ascii(case[0]) for case in REFUSED])
async def test_every_refusal_is_the_same_class_and_sentence_wherever_the_field_is(
    field: Field, wrong: dict[str, Any], kind: type[FieldError]
) -> None:
    ada = await field.agent("ada", role="researcher")
    with pytest.raises(kind) as refused:
        await ada.record(**({"content": "The market grows."} | WHY | wrong))
    assert type(refused.value) is kind
    assert refused.value.message
    assert (await field.status()).units == 0


async def test_an_unknown_unit_is_not_found_whatever_is_in_its_name(field: Field) -> None:
    for unit_id in ("mem-0", "a/b", "../agents", "a?b=c", "a#b", "ü", "%2F", " ", "a\nb"):
        with pytest.raises(errors.UnitNotFound):
            await field.unit(unit_id)


async def test_operators_see_status_log_and_whether_all_is_well(field: Field) -> None:
    ada = await field.agent("ada", role="researcher")
    await ada.record("First.", **WHY)
    status = await field.status()
    assert (status.units, status.agents, status.epoch, status.conformance_level) == (1, 1, 2, 1)
    assert [agent.id for agent in await field.agents()] == ["ada"]
    first = await field.log(limit=2)
    rest = await field.log(after=first.next or 0)
    assert [line.entry.seq for line in (*first.entries, *rest.entries)] == list(range(1, status.log_entries + 1))
    assert rest.next is None
    verified = await field.verify()
    assert (verified.ok, verified.first_bad, verified.entries) == (True, None, status.log_entries)
    assert (await field.rebuild()).unchanged
    with pytest.raises(errors.InvalidPayload):
        await field.log(limit=100_000)


async def test_an_export_can_be_read_in_again_and_is_skipped_where_it_is_known(field: Field) -> None:
    ada = await field.agent("ada", role="researcher")
    await ada.record("First.", **WHY)
    lines = b"".join([batch async for batch in field.export()]).splitlines()
    again = await field.import_lines(lines)
    assert (again.imported, again.skipped) == (0, len(lines))
    with pytest.raises(errors.InvalidPayload, match="line 1"):
        await field.import_lines([b'{"not": "ours"}'])


async def test_a_field_that_is_not_open_says_how_to_open_it(field: Field) -> None:
    await field.close()
    with pytest.raises(RuntimeError, match="with open_field"):
        await field.status()
