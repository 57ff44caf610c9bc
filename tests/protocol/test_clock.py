"""§1: Lamport's clock, as agents see it."""

from typing import Any

import pytest

from tests.protocol.rig import Body, OpenRig, Rig, attunement, options, unit
from tests.protocol.ways import DURABLE
from tests.requirements import requirement

READS: list[tuple[str, Body]] = [("ATTUNE", attunement()), ("DETECT", {"mode": "list"})]
MAX_EPOCH = 2**53 - 1


@requirement("akashik:clock:receipt-steps")
async def test_a_write_sets_the_clock_one_past_the_later_of_both_clocks(team: Rig) -> None:
    local = await team.epoch()
    for received, expected in [(0, local + 1), (local + 1, local + 2), (local + 500, local + 501), (7, local + 502)]:
        answer = await team.ask("RECORD", "ada", unit(), epoch=received)
        assert answer["epoch"] == expected == await team.epoch()
        assert (await team.unit(answer["memory_unit_id"])).epoch == expected


@requirement("akashik:clock:receipt-steps")
async def test_every_accepted_write_makes_one_step_however_many_entries_it_leaves(field: Rig) -> None:
    steps: list[int] = [(await field.register("ada"))["epoch"]]
    target = await field.record("ada")
    draft = await field.draft("ada", relations=[{"type": "contradicts", "target_id": target}])
    requests: list[tuple[str, Body]] = [
        ("COMMIT", {"memory_unit_id": draft, "confidence": {"score": 1, "reasoning": "checked"}}),
        ("RETRACT", {"memory_unit_id": target, "reason": "wrong"}),
        ("DEREGISTER", {"agent_id": "ada"}),
    ]
    steps += [(await field.ask(operation, "ada", payload))["epoch"] for operation, payload in requests]
    assert steps == [1, 4, 5, 6]
    epochs = [line.entry.epoch for line in await field.log()]
    assert epochs == sorted(epochs)
    assert set(epochs) == set(range(1, 7))


@requirement("akashik:clock:reads-do-not-step")
@pytest.mark.parametrize(("operation", "payload"), READS)
async def test_a_read_raises_the_clock_to_what_the_caller_knows_and_no_further(
    team: Rig, operation: str, payload: Body
) -> None:
    local = await team.epoch()
    assert (await team.ask(operation, "ada", payload))["epoch"] == local
    assert (await team.ask(operation, "ada", payload, epoch=local + 40))["epoch"] == local + 40
    assert (await team.ask(operation, "ada", payload, epoch=local + 1))["epoch"] == local + 40
    assert await team.epoch() == local + 40
    assert (await team.ask("RECORD", "ada", unit()))["epoch"] == local + 41


@requirement("akashik:clock:beyond-2-53-refused", "akashik:errors:http-status")
@pytest.mark.parametrize("epoch", [MAX_EPOCH + 1, 2**63, 2**64, 10**30])
@pytest.mark.parametrize(("operation", "payload"), [("RECORD", unit()), *READS])
async def test_an_epoch_beyond_2_to_the_53_is_refused_and_leaves_the_clock(
    team: Rig, operation: str, payload: Body, epoch: int
) -> None:
    body = team.envelope(operation, "ada", payload, epoch=epoch)
    before = await team.epoch()
    raw = str(body).replace("'", '"').replace("None", "null").encode()  # as JSON: msgspec writes no such integers
    status, refusal = await team.post(raw)
    assert (status, refusal["code"], refusal["recoverable"]) == (400, "EPOCH_OVERFLOW", False)
    assert await team.epoch() == before


@requirement("akashik:clock:beyond-2-53-refused")
async def test_the_last_epoch_of_all_can_be_read_and_not_written(rigs: OpenRig) -> None:
    field = await rigs(options(epoch_leap=MAX_EPOCH))
    await field.register("ada")
    await field.refused("EPOCH_OVERFLOW", "RECORD", "ada", unit(), epoch=MAX_EPOCH)
    assert (await field.ask("ATTUNE", "ada", attunement(), epoch=MAX_EPOCH))["epoch"] == MAX_EPOCH
    await field.refused("EPOCH_OVERFLOW", "RECORD", "ada", unit())


@requirement("akashik:clock:too-far-ahead-refused")
@pytest.mark.parametrize(("operation", "payload"), [("RECORD", unit()), *READS])
async def test_an_epoch_too_far_ahead_is_refused_and_at_the_bound_it_is_taken(
    team: Rig, operation: str, payload: Body
) -> None:
    bound = await team.epoch() + 10_000
    await team.refused("EPOCH_OVERFLOW", operation, "ada", payload, epoch=bound + 1)
    answer = await team.ask(operation, "ada", payload, epoch=bound)
    assert answer["epoch"] == bound + (operation == "RECORD")


@requirement("akashik:clock:too-far-ahead-refused")
async def test_how_far_ahead_an_epoch_may_be_is_a_setting(rigs: OpenRig) -> None:
    field = await rigs(options(epoch_leap=5))
    await field.register("ada", "ben")
    await field.refused("EPOCH_OVERFLOW", "RECORD", "ada", unit(), epoch=8)
    assert (await field.ask("RECORD", "ada", unit(), epoch=7))["epoch"] == 8


@requirement("akashik:clock:never-back")
async def test_neither_an_old_epoch_nor_a_refusal_moves_the_clock_back(team: Rig) -> None:
    await team.ask("RECORD", "ada", unit(), epoch=1_000)
    requests: list[tuple[str, Body, Any]] = [
        ("ATTUNE", attunement(), 0),
        ("RECORD", unit(content=""), 5),
        ("RECORD", unit(), 20_000),
        ("DETECT", {"mode": "list"}, 7),
    ]
    for operation, payload, epoch in requests:
        await team.send(operation, "ada", payload, epoch=epoch)
        assert await team.epoch() == 1_001


@requirement("akashik:clock:never-back")
@pytest.mark.parametrize("transport", DURABLE, indirect=True)
async def test_a_restart_does_not_move_the_clock_back_not_even_one_that_only_a_read_has_raised(team: Rig) -> None:
    await team.ask("RECORD", "ada", unit(), epoch=1_000)
    await team.restart()
    assert await team.epoch() == 1_001
    told = (await team.ask("ATTUNE", "ada", attunement(), epoch=2_000))["epoch"]
    await team.restart()
    assert await team.epoch() == told == 2_000
