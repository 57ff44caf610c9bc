"""§2, §3 and §4: what follows from `contradicts` and `supersedes`, and how conflicts end."""

import pytest

from fieldstone.core.conflicts import Conflict
from tests.protocol.rig import OpenRig, Rig, ids, plain, relation, unit
from tests.protocol.ways import DURABLE
from tests.requirements import requirement

MAY_DANGLE = ("supports", "depends_on", "caused_by", "elaborates", "answers", "blocks", "informs")


async def contradict(field: Rig, agent: str, *targets: str, description: str | None = None) -> tuple[str, list[str]]:
    """The new unit, and the conflicts that it made."""
    said = {} if description is None else {"description": description}
    relations = [relation("contradicts", target, **said) for target in targets]
    answer = await field.ask("RECORD", agent, unit("It does not.", relations=relations))
    return answer["memory_unit_id"], answer["conflicts_detected"]


async def conflict(field: Rig, conflict_id: str) -> Conflict:
    return next(found for found in await field.door.conflicts() if found.id == conflict_id)


async def status(field: Rig, *unit_ids: str) -> list[str]:
    return [(await field.unit(unit_id)).status for unit_id in unit_ids]


@requirement(
    "akashik:record:contradicts-makes-conflict",
    "akashik:conflict:shape",
    "akashik:conflict:explicit",
)
async def test_a_contradiction_makes_a_conflict_between_the_two_units(team: Rig) -> None:
    old = await team.record("ben")
    new, [found] = await contradict(team, "ada", old, description="They cannot both hold.")
    [shown] = plain((await team.ask("DETECT", "eve", {"mode": "list"}))["conflicts"])
    assert set(shown) == {
        "id",
        "type",
        "status",
        "unit_a",
        "unit_b",
        "description",
        "detected_by",
        "resolution",
    }
    assert shown["id"] == found
    assert (shown["status"], shown["detected_by"]) == ("detected", "explicit")
    assert {shown["unit_a"], shown["unit_b"]} == {new, old}
    assert shown["type"] in ("factual", "interpretive", "strategic", "priority")
    assert shown["description"] == "They cannot both hold."
    assert shown["resolution"] is None


@requirement("akashik:conflict:shape")
async def test_a_conflict_without_a_description_of_its_own_still_has_one(team: Rig) -> None:
    old = await team.record("ben")
    new, [found] = await contradict(team, "ada", old)
    description = (await conflict(team, found)).description
    assert new in description
    assert old in description


@requirement("akashik:record:contested-by-second-event")
async def test_both_sides_are_recorded_active_and_contested_by_further_events(team: Rig) -> None:
    old = await team.record("ben")
    before = await team.kinds()
    new, _ = await contradict(team, "ada", old)
    appended = (await team.kinds())[len(before) :]
    assert appended == ["unit.recorded", "conflict.detected", "unit.contested", "unit.contested"]
    assert await status(team, old, new) == ["contested", "contested"]
    assert await team.seen_by("eve") == {old, new}, "contested units are still shown"


@requirement("akashik:record:contradicts-makes-conflict")
async def test_a_unit_that_contradicts_several_makes_a_conflict_with_each_once(team: Rig) -> None:
    targets = [await team.record("ben") for _ in range(3)]
    new, found = await contradict(team, "ada", *targets, targets[0])
    assert len(found) == len(set(found)) == 3
    assert await status(team, new, *targets) == ["contested"] * 4


@requirement("akashik:record:contested-by-second-event")
async def test_a_unit_is_contested_by_a_live_conflict_also_when_another_of_its_targets_is_gone(team: Rig) -> None:
    gone, there = await team.record("ben"), await team.record("ben")
    await team.ask("RETRACT", "ben", {"memory_unit_id": gone, "reason": "wrong"})
    new, found = await contradict(team, "ada", gone, there)
    assert [(await conflict(team, one)).status for one in found] == ["resolved", "detected"]
    assert await status(team, new, there) == ["contested", "contested"]


@requirement("akashik:record:target-exists", "akashik:errors:http-status")
@pytest.mark.parametrize("kind", ["contradicts", "supersedes"])
@pytest.mark.parametrize("mode", ["draft", "committed"])
async def test_a_target_that_must_exist_and_does_not_refuses_the_unit(team: Rig, kind: str, mode: str) -> None:
    there = await team.record("ben")
    hidden = await team.draft("ben")
    for target in ("mem-unknown", hidden):
        payload = unit(mode=mode, relations=[relation("supports", there), relation(kind, target)])
        refusal = await team.refused("UNIT_NOT_FOUND", "RECORD", "ada", payload)
        assert refusal["recoverable"] is False
        assert (await team.send("RECORD", "ada", payload)).status == 404


@requirement("akashik:record:supersedes-takes-effect")
async def test_a_superseded_unit_has_that_status_and_leaves_every_attune(team: Rig) -> None:
    old = await team.record("ada")
    new = await team.record("ada", "Revised.", relations=[relation("supersedes", old)])
    assert await status(team, old, new) == ["superseded", "active"]
    assert await team.seen_by("eve") == {new}
    assert "unit.superseded" in await team.kinds()


@requirement("akashik:record:other-relations-may-dangle")
@pytest.mark.parametrize("kind", MAY_DANGLE)
async def test_the_other_relations_may_point_beyond_the_field(team: Rig, kind: str) -> None:
    unit_id = await team.record("ada", relations=[relation(kind, "elsewhere-42")])
    shown = await team.unit(unit_id)
    assert plain(shown.relations) == [relation(kind, "elsewhere-42")]
    assert shown.status == "active"


@requirement("akashik:conflict:resolved-with-its-side")
@pytest.mark.parametrize("how", ["superseded", "retracted"])
@pytest.mark.parametrize("side", ["old", "new"])
async def test_a_conflict_ends_when_a_side_goes_and_the_other_side_stands_again(team: Rig, how: str, side: str) -> None:
    old = await team.record("ben")
    new, [found] = await contradict(team, "ada", old)
    gone, stays, author = (old, new, "ben") if side == "old" else (new, old, "ada")
    if how == "superseded":
        await team.record(author, "Revised.", relations=[relation("supersedes", gone)])
    else:
        await team.ask("RETRACT", author, {"memory_unit_id": gone, "reason": "wrong"})
    ended = await conflict(team, found)
    assert ended.status == "resolved"
    assert ended.resolution is not None
    assert (ended.resolution.winner_id, ended.resolution.resolved_by) == (stays, "field")
    assert how in ended.resolution.rationale
    assert gone in ended.resolution.rationale
    assert ended.resolution.epoch_resolved == await team.epoch()
    assert await status(team, gone, stays) == [how, "active"]
    assert (await team.attune("eve"))["conflicts"] == []


@requirement("akashik:conflict:resolved-with-its-side")
async def test_a_unit_with_another_open_conflict_stays_contested(team: Rig) -> None:
    first, second = await team.record("ben"), await team.record("ben")
    new, [ended, open_still] = await contradict(team, "ada", first, second)
    await team.ask("RETRACT", "ben", {"memory_unit_id": first, "reason": "wrong"})
    assert (await conflict(team, ended)).status == "resolved"
    assert (await conflict(team, open_still)).status == "detected"
    assert await status(team, first, second, new) == ["retracted", "contested", "contested"]


@requirement("akashik:conflict:resolved-with-its-side", "akashik:record:supersedes-takes-effect")
async def test_a_unit_that_supersedes_both_sides_ends_the_conflict_and_leaves_neither_standing(team: Rig) -> None:
    old = await team.record("ben")
    rival, [found] = await contradict(team, "ada", old)
    both = [relation("supersedes", old), relation("supersedes", rival)]
    synthesis = await team.record("eve", "Both, in part.", type="synthesis", relations=both)
    assert await status(team, old, rival, synthesis) == ["superseded", "superseded", "active"]
    assert await team.seen_by("eve", include_own=True) == {synthesis}
    assert (await conflict(team, found)).status == "resolved"
    assert (await team.kinds()).count("conflict.resolved") == 1


@requirement("akashik:conflict:resolved-with-its-side")
@pytest.mark.parametrize("how", ["superseded", "retracted"])
async def test_a_contradiction_of_what_is_gone_already_is_on_record_and_resolved_with_the_reason(
    team: Rig, how: str
) -> None:
    old = await team.record("ben")
    if how == "superseded":
        await team.record("ben", "Revised.", relations=[relation("supersedes", old)])
    else:
        await team.ask("RETRACT", "ben", {"memory_unit_id": old, "reason": "wrong"})
    new, [found] = await contradict(team, "ada", old)
    ended = await conflict(team, found)
    assert ended.status == "resolved"
    assert ended.resolution is not None
    assert how in ended.resolution.rationale
    assert await status(team, old, new) == [how, "active"]


@requirement("akashik:record:supersedes-takes-effect")
async def test_a_unit_may_supersede_and_contradict_the_same_target(team: Rig) -> None:
    old = await team.record("ben")
    relations = [relation("contradicts", old), relation("supersedes", old)]
    new = await team.record("ada", relations=relations)
    assert await status(team, old, new) == ["superseded", "active"]
    assert [found.status for found in await team.door.conflicts()] == ["resolved"]


@requirement("akashik:level:durable", "akashik:conflict:explicit")
@pytest.mark.parametrize("transport", DURABLE, indirect=True)
async def test_conflicts_are_the_same_after_a_restart_and_after_a_rebuild(rigs: OpenRig) -> None:
    field = await rigs()
    await field.register("ada", "ben", "eve")
    first, second = await field.record("ben"), await field.record("ben")
    await contradict(field, "ada", first, second, description="No.")
    await field.ask("RETRACT", "ben", {"memory_unit_id": first, "reason": "wrong"})
    before = await field.door.conflicts()
    shown = await field.attune("eve")
    assert [found.status for found in before] == ["resolved", "detected"]
    await field.restart()
    assert await field.door.conflicts() == before
    assert (await field.door.rebuild()).unchanged
    assert await field.door.conflicts() == before
    assert ids(await field.attune("eve")) == ids(shown)
