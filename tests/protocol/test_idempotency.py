"""§1: an accepted write is remembered by (agent_id, id), so that sending it again is safe."""

import asyncio
from typing import Any

import apsw
import pytest

from tests.protocol.rig import Body, OpenRig, Rig, attunement, ids, options, unit
from tests.protocol.ways import DURABLE
from tests.requirements import requirement

durable = pytest.mark.parametrize("transport", DURABLE, indirect=True)
HOUR_MS = 3_600_000
in_process = pytest.mark.parametrize("transport", ["memory", "sqlite"], indirect=True)


async def send_twice(field: Rig, envelope: Body) -> None:
    """The second answer is the first one, and nothing has happened."""
    first = await field.send_envelope(envelope)
    assert first.status == 200, first.body
    before = await field.trace()
    assert await field.send_envelope(envelope) == first
    assert await field.trace() == before


@requirement("akashik:idempotency:same-answer")
async def test_every_kind_of_write_sent_again_gets_the_first_answer_and_changes_nothing(field: Rig) -> None:
    await send_twice(field, field.envelope("REGISTER", "ada", {"id": "ada", "role": "researcher"}))
    await send_twice(field, field.envelope("RECORD", "ada", unit()))
    await send_twice(field, field.envelope("RECORD", "ada", unit(mode="draft")))
    committed, retracted = await field.draft("ada"), await field.record("ada")
    confidence = {"score": 0.5, "reasoning": "checked"}
    await send_twice(field, field.envelope("COMMIT", "ada", {"memory_unit_id": committed, "confidence": confidence}))
    await send_twice(field, field.envelope("DISCARD", "ada", {"memory_unit_id": await field.draft("ada")}))
    await send_twice(field, field.envelope("RETRACT", "ada", {"memory_unit_id": retracted, "reason": "wrong"}))
    await send_twice(field, field.envelope("DEREGISTER", "ada", {"agent_id": "ada"}))


@requirement("akashik:idempotency:same-answer")
async def test_a_repeated_write_does_not_move_the_clock_whatever_epoch_it_brings(team: Rig) -> None:
    first = await team.ask("RECORD", "ada", unit(), id="m-1")
    again = await team.ask("RECORD", "ada", unit(), id="m-1", epoch=first["epoch"] + 500)
    assert again == first
    assert await team.epoch() == first["epoch"]


@requirement("akashik:idempotency:same-answer")
async def test_the_same_write_sent_many_times_at_once_is_recorded_once(team: Rig) -> None:
    envelope = team.envelope("RECORD", "ada", unit())
    answers = await asyncio.gather(*(team.send_envelope(envelope) for _ in range(10)))
    assert all(answer == answers[0] for answer in answers)
    assert len(await team.seen_by("ben")) == 1


@requirement("akashik:idempotency:same-answer")
async def test_the_repeated_answer_still_tells_what_was_redacted_and_which_conflicts_were_found(team: Rig) -> None:
    target = await team.record("ben")
    secret = "gh" + "p_" + "a1B2" * 9
    payload = unit(f"token {secret}", relations=[{"type": "contradicts", "target_id": target}])
    first = await team.ask("RECORD", "ada", payload, id="m-1")
    assert len(first["conflicts_detected"]) == 1
    assert first["warnings"]
    assert await team.ask("RECORD", "ada", payload, id="m-1") == first


@requirement("akashik:idempotency:across-restarts")
@durable
async def test_a_write_sent_again_after_a_restart_gets_the_first_answer(team: Rig) -> None:
    envelope = team.envelope("RECORD", "ada", unit())
    first = await team.send_envelope(envelope)
    before = await team.trace()
    await team.restart()
    assert await team.send_envelope(envelope) == first
    assert await team.trace() == before
    await team.refused("INVALID_ENVELOPE", "RECORD", "ada", unit("Something else."), id=envelope["id"])


@requirement("akashik:idempotency:per-agent")
async def test_the_same_id_from_another_agent_is_another_request(team: Rig) -> None:
    first = await team.ask("RECORD", "ada", unit(), id="m-1")
    second = await team.ask("RECORD", "ben", unit(), id="m-1")
    assert first["memory_unit_id"] != second["memory_unit_id"]
    assert first["epoch"] < second["epoch"]


@requirement("akashik:idempotency:other-request-refused")
@pytest.mark.parametrize(
    ("operation", "payload", "fields"),
    [
        ("RECORD", unit("Something else."), {}),
        ("RECORD", unit(mode="draft"), {}),
        ("RECORD", unit(), {"session_id": "sprint-7"}),
        ("DEREGISTER", {"agent_id": "ada"}, {}),
    ],
    ids=["other content", "other mode", "other session", "other operation"],
)
async def test_a_used_id_with_another_request_is_refused(
    team: Rig, operation: str, payload: Body, fields: dict[str, Any]
) -> None:
    await team.ask("RECORD", "ada", unit(), id="m-1")
    refusal = await team.refused("INVALID_ENVELOPE", operation, "ada", payload, id="m-1", **fields)
    assert "id" in refusal["message"]
    assert refusal["recoverable"] is True


@requirement("akashik:idempotency:rejections-forgotten")
async def test_a_rejected_write_can_be_corrected_under_the_same_id(team: Rig) -> None:
    await team.refused("MISSING_INTENT", "RECORD", "ada", unit(intent={"purpose": " "}), id="m-1")
    await team.refused("MISSING_CONFIDENCE", "RECORD", "ada", unit(confidence=None), id="m-1")
    await team.refused("UNIT_NOT_FOUND", "RETRACT", "ada", {"memory_unit_id": "mem-0", "reason": "no"}, id="m-1")
    accepted = await team.ask("RECORD", "ada", unit(), id="m-1")
    assert await team.seen_by("ben") == {accepted["memory_unit_id"]}


@requirement("akashik:idempotency:rejections-forgotten")
async def test_an_unregistered_agent_may_send_the_same_message_again_once_it_has_joined(field: Rig) -> None:
    await field.refused("AGENT_NOT_REGISTERED", "RECORD", "ada", unit(), id="m-1")
    await field.register("ada")
    assert (await field.ask("RECORD", "ada", unit(), id="m-1"))["status"] == "accepted"


@requirement("akashik:idempotency:rejections-forgotten")
@in_process
async def test_a_departure_that_found_nobody_is_not_remembered_even_beside_a_write(team: Rig) -> None:
    departure = team.envelope("DEREGISTER", "zoe", {"agent_id": "zoe"})
    # Sent at once, they are decided in one group.
    answers = await asyncio.gather(team.send_envelope(departure), team.send("RECORD", "ada", unit()))
    assert [answer.body["status"] for answer in answers] == ["not_found", "accepted"]
    await team.register("zoe")
    assert (await team.send_envelope(departure)).body["status"] == "ok"


@requirement("akashik:idempotency:window")
async def test_an_id_is_remembered_for_a_day_and_free_afterwards(team: Rig) -> None:
    first = await team.ask("RECORD", "ada", unit(), id="m-1")
    team.clock.advance(int(23.9 * HOUR_MS))
    assert await team.ask("RECORD", "ada", unit(), id="m-1") == first
    team.clock.advance(int(0.2 * HOUR_MS))
    later = await team.ask("RECORD", "ada", unit("Something else."), id="m-1")
    assert later["memory_unit_id"] != first["memory_unit_id"]
    assert await team.ask("RECORD", "ada", unit("Something else."), id="m-1") == later


@requirement("akashik:idempotency:window")
@durable
async def test_after_a_restart_an_id_of_the_day_before_is_free(team: Rig) -> None:
    first = await team.ask("RECORD", "ada", unit(), id="m-1")
    team.clock.advance(int(24.1 * HOUR_MS))
    await team.restart()
    later = await team.ask("RECORD", "ada", unit(), id="m-1")
    assert later["memory_unit_id"] != first["memory_unit_id"]


@requirement("akashik:idempotency:window")
@durable
async def test_how_long_an_id_is_remembered_is_a_setting(team: Rig) -> None:
    await team.restart(remember_replies_ms=HOUR_MS)
    first = await team.ask("RECORD", "ada", unit(), id="m-1")
    team.clock.advance(int(0.9 * HOUR_MS))
    await team.restart()
    assert await team.ask("RECORD", "ada", unit(), id="m-1") == first
    team.clock.advance(int(0.2 * HOUR_MS))
    await team.restart()
    assert await team.ask("RECORD", "ada", unit(), id="m-1") != first


@requirement("akashik:idempotency:reads-trace-only")
async def test_reads_may_share_an_id_and_each_gets_a_fresh_answer(team: Rig) -> None:
    first = await team.record("ada")
    assert ids(await team.ask("ATTUNE", "ben", attunement(), id="m-1")) == [first]
    second = await team.record("ada")
    assert set(ids(await team.ask("ATTUNE", "ben", attunement(max_units=5), id="m-1"))) == {first, second}
    assert (await team.ask("DETECT", "ben", {"mode": "list"}, id="m-1"))["conflicts"] == []
    assert (await team.ask("RECORD", "ben", unit(), id="m-1"))["status"] == "accepted"


@requirement("akashik:idempotency:keyed-digest")
@durable
async def test_what_is_kept_for_the_comparison_is_a_digest_under_a_key_of_the_store(rigs: OpenRig) -> None:
    kept = []
    for field in (await rigs(), await rigs(options(epoch_leap=5_000))):
        await field.register("ada")
        await field.ask("RECORD", "ada", unit("A very telling sentence."), id="m-telling")
        kept.append(remembered(field))
    for rows in kept:
        assert all(len(key) == len(request) == 16 for key, request, _ in rows)
        assert not any(word in b"".join(row) for row in rows for word in (b"telling", b"size it"))
    one, other = ({request for _, request, _ in rows} for rows in kept)
    assert not one & other, "the same request must not look the same in two stores"


def remembered(field: Rig) -> list[tuple[bytes, bytes, bytes]]:
    connection = apsw.Connection(str(field.place.path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        rows: list[Any] = connection.execute("SELECT key, request, body FROM replies").fetchall()
    finally:
        connection.close()
    recorded = [(key, request, body) for key, request, body in rows if b"memory_unit_id" in body]
    assert recorded
    return recorded
