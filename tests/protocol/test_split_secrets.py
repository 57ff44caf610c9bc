"""A secret cut in two: over the texts of one unit, and over entries that follow each other."""

import pytest

from tests.protocol.rig import Rig, unit, warnings
from tests.protocol.ways import DURABLE
from tests.redact.fakes import noise
from tests.requirements import requirement


async def registered(field: Rig) -> str:
    secret = noise(32)
    await field.door.put_secret("vault", secret)
    return secret


async def told(field: Rig) -> bytes:
    """All that is stored, as it is exported."""
    return b"".join([batch async for batch in field.door.export()])


async def test_of_a_secret_split_over_two_texts_of_a_unit_the_parts_are_taken_out(team: Rig) -> None:
    secret = await registered(team)
    answer = await team.ask(
        "RECORD",
        "ada",
        {
            "mode": "committed",
            "type": "finding",
            "content": f"The first half is {secret[:16]}",
            "intent": {"purpose": f"{secret[16:]} is the second half"},
            "confidence": {"score": 0.5, "reasoning": "seen"},
        },
    )
    assert [code for code, _ in warnings(answer)] == ["REDACTED"]
    stored = await told(team)
    assert not (secret[:16].encode() in stored and secret[16:].encode() in stored)


@requirement("akashik:secrets:split")
async def test_of_a_secret_split_over_entries_of_an_agent_the_later_part_is_taken_out(team: Rig) -> None:
    secret = await registered(team)
    await team.record("ada", f"It begins with {secret[:16]}")
    await team.record("ada", f"{secret[16:]} is how it ends.")
    assert secret[16:].encode() not in await told(team)


async def test_of_a_secret_split_over_agents_of_a_session_the_later_part_is_taken_out(team: Rig) -> None:
    secret = await registered(team)
    await team.record("ada", f"It begins with {secret[:16]}", session="war room")
    await team.record("ben", f"{secret[16:]} is how it ends.", session="war room")
    assert secret[16:].encode() not in await told(team)


@pytest.mark.parametrize("transport", DURABLE[:1], indirect=True)
async def test_a_restart_between_the_two_parts_changes_nothing(team: Rig) -> None:
    secret = await registered(team)
    await team.record("ada", f"It begins with {secret[:16]}", session="war room")
    await team.restart()
    await team.door.put_secret("vault", secret)  # the vault of this rig lies in memory
    await team.record("ada", f"{secret[16:]} is how it ends.")
    assert secret[16:].encode() not in await told(team)


async def test_what_was_refused_is_no_first_part(team: Rig) -> None:
    secret = await registered(team)
    await team.refused("INVALID_TYPE", "RECORD", "ada", unit(secret[:16], type="nonsense"))
    await team.record("ada", f"{secret[16:]} stands alone.")
    assert secret[16:].encode() in await told(team)
