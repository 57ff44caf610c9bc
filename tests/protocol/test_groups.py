"""Requests that come at once are decided one after the other, in one transaction or in several, and see each other."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from fieldstone.core.errors import StorageFull
from fieldstone.ports.store import Store
from fieldstone.testing.faults import FaultyStore, fail
from tests.protocol.rig import Body, OpenRig, Rig, relation, unit
from tests.protocol.ways import Answer
from tests.requirements import requirement

SURE: Body = {"score": 0.9, "reasoning": "measured"}
CROWD = 100

# In this process what is sent first is decided first; over HTTP the order is anybody's.
in_order = pytest.mark.parametrize("transport", ["memory", "sqlite"], indirect=True)


async def at_once(field: Rig, *requests: tuple[str, str, Body]) -> list[Answer]:
    return list(await asyncio.gather(*(field.send(*request) for request in requests)))


@in_order
async def test_an_agent_may_record_in_the_same_breath_in_which_it_registers(field: Rig) -> None:
    answers = await at_once(
        field,
        ("REGISTER", "ada", {"id": "ada", "role": "researcher"}),
        ("RECORD", "ada", unit()),
        ("RECORD", "ada", unit()),
    )
    assert [answer.status for answer in answers] == [200, 200, 200]
    assert [answer.body["epoch"] for answer in answers] == [1, 2, 3]


@requirement("akashik:register:id-taken")
async def test_of_many_that_register_one_id_at_once_one_gets_it(field: Rig) -> None:
    answers = await at_once(field, *[("REGISTER", "ada", {"id": "ada", "role": "researcher"})] * CROWD)
    assert sorted(answer.status for answer in answers) == [200] + [409] * (CROWD - 1)
    assert len(await field.door.agents()) == 1


@requirement("akashik:deregister:answer")
@in_order
async def test_a_departure_counts_the_units_that_were_recorded_just_before_it(team: Rig) -> None:
    await team.record("ada")
    answers = await at_once(team, ("RECORD", "ada", unit()), ("DEREGISTER", "ada", {"agent_id": "ada"}))
    assert answers[1].body["cleanup"]["units_orphaned"] == 2


@requirement("akashik:deregister:then-unregistered")
@in_order
async def test_what_comes_right_after_a_departure_is_refused(team: Rig) -> None:
    answers = await at_once(team, ("DEREGISTER", "ada", {"agent_id": "ada"}), ("RECORD", "ada", unit()))
    assert [answer.status for answer in answers] == [200, 403]


@requirement("akashik:commit:drafts-only", "akashik:discard:drafts-only")
async def test_of_several_ends_of_a_draft_at_once_one_happens(team: Rig) -> None:
    draft = await team.draft("ada")
    commit: Any = ("COMMIT", "ada", {"memory_unit_id": draft, "confidence": SURE})
    discard: Any = ("DISCARD", "ada", {"memory_unit_id": draft})
    answers = await at_once(team, *[commit, discard] * 5)
    assert sorted(answer.status for answer in answers) == [200] + [409] * 9
    assert (await team.kinds()).count("unit.committed") + (await team.kinds()).count("unit.discarded") == 1


async def test_a_unit_is_retracted_once_and_superseded_once(team: Rig) -> None:
    first, second = await team.record("ada"), await team.record("ada")
    answers = await at_once(team, *[("RETRACT", "ada", {"memory_unit_id": first, "reason": "wrong"})] * 5)
    assert sorted(answer.status for answer in answers) == [200, 409, 409, 409, 409]
    await at_once(team, *[("RECORD", "ben", unit(relations=[relation("supersedes", second)]))] * 5)
    assert (await team.kinds()).count("unit.superseded") == 1


@requirement("akashik:conflict:resolved-with-its-side")
async def test_a_contradiction_and_a_retraction_at_once_leave_no_open_conflict(team: Rig) -> None:
    for _ in range(5):
        target = await team.record("ada")
        contradiction: Any = ("RECORD", "ben", unit(relations=[relation("contradicts", target)]))
        retraction: Any = ("RETRACT", "ada", {"memory_unit_id": target, "reason": "wrong"})
        for requests in ([contradiction, retraction], [retraction, contradiction]):
            await at_once(team, *requests)
    assert {conflict.status for conflict in await team.door.conflicts()} == {"resolved"}
    shown = (await team.attune("eve"))["record"]
    assert {found["memory_unit"]["status"] for found in shown} == {"active"}


@requirement("akashik:clock:receipt-steps", "akashik:idempotency:same-answer")
async def test_a_crowd_gets_an_epoch_each_and_repeated_messages_get_their_first_answer(team: Rig) -> None:
    envelopes = [team.envelope("RECORD", ("ada", "ben")[n % 2], unit(f"Unit {n}.")) for n in range(CROWD)]
    answers = await asyncio.gather(*(team.send_envelope(envelope) for envelope in [*envelopes, *envelopes]))
    assert all(answer.status == 200 for answer in answers)
    assert answers[:CROWD] == answers[CROWD:]
    assert len({answer.body["epoch"] for answer in answers}) == CROWD
    assert len(await team.seen_by("eve")) == CROWD
    assert (await team.door.verify()).ok


def striking(at: int, error: Exception) -> Callable[[Store], Store]:
    """A store whose commit of this number fails before it has any effect."""
    return lambda store: FaultyStore(store, at=at, strike=fail(error))


@requirement("akashik:errors:storage-full", "akashik:record:refusal-changes-nothing")
@pytest.mark.parametrize("transport", ["memory", "sqlite"], indirect=True)
async def test_a_group_that_the_disk_refuses_is_written_one_by_one_and_each_gets_its_own_answer(rigs: OpenRig) -> None:
    field = await rigs(wrap=striking(3, StorageFull()))
    await field.register("ada", "ben")
    crowd = 3 * CROWD  # more than one group, whatever its bound
    envelopes = [field.envelope("RECORD", "ada", unit(f"Unit {n}.")) for n in range(crowd)]
    answers = await asyncio.gather(*(field.send_envelope(envelope) for envelope in envelopes))
    assert {answer.status for answer in answers} == {200}
    accepted = {answer.body["memory_unit_id"] for answer in answers if answer.status == 200}
    assert await field.seen_by("ben") == accepted
    assert (await field.door.verify()).ok
    again = await asyncio.gather(*(field.send_envelope(envelope) for envelope in envelopes))
    assert {answer.status for answer in again} == {200}
    assert again == answers
    assert len(await field.seen_by("ben")) == crowd
    assert (await field.door.rebuild()).unchanged


@requirement("akashik:record:refusal-changes-nothing")
@pytest.mark.parametrize("transport", ["memory", "sqlite"], indirect=True)
async def test_a_store_that_breaks_fails_its_group_and_the_field_goes_on(rigs: OpenRig) -> None:
    field = await rigs(wrap=striking(2, OSError("the disk is gone")))
    await field.register("ada")
    with pytest.raises(OSError, match="the disk is gone"):
        await field.send("RECORD", "ada", unit("Lost."))
    unit_id = await field.record("ada", "Kept.")
    assert await field.seen_by("ada", include_own=True) == {unit_id}
    assert (await field.door.verify()).ok
