"""Known secrets on the roads that a usual request does not take: much text, refusals, conflicts, imports, settings.

tests/mutate takes each scrub out in turn; these are the tests that notice where no other one does.
"""

from base64 import b64encode
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from msgspec import Raw, json, structs

from fieldstone.compaction.retention import Match, Policy
from fieldstone.core.chain import link, seal
from fieldstone.core.errors import SecretLeakage
from fieldstone.core.events import Entry, UnitRecorded, encode_entry
from fieldstone.field.transfer import Line
from fieldstone.field.writer import SCANNED_ON_THE_SPOT_CHARS
from fieldstone.settings import Secret, Settings
from fieldstone.wiring import open_local_field
from tests.field.fields import opened
from tests.messages import accepted, join, record
from tests.protocol.rig import Body, OpenRig, Rig, options, unit
from tests.protocol.ways import on_disk
from tests.redact.fakes import HEX, TOKENS, noise

SALT = b"s" * 16
TOKEN = TOKENS["GitHub personal"]


def phrase() -> str:
    """Nothing about it looks like a secret until somebody says that it is one."""
    return f"zeppelin {noise(10).lower()} under {noise(12).lower()}"


async def test_a_secret_in_more_text_than_is_scanned_on_the_spot_is_taken_out(team: Rig) -> None:
    filler = "The market grows, and so does the report. " * (SCANNED_ON_THE_SPOT_CHARS // 40)
    content = (await team.unit(await team.record("ada", f"{filler}The token is {TOKEN}, as agreed."))).content
    assert len(content) > SCANNED_ON_THE_SPOT_CHARS
    assert TOKEN not in content


async def test_a_field_that_refuses_secrets_refuses_and_keeps_nothing(rigs: OpenRig) -> None:
    field = await rigs(structs.replace(options(), refuse_secrets=True))
    await field.register("ada")
    refusal = await field.refused("SECRET_LEAKAGE", "RECORD", "ada", unit(f"We use {TOKEN} for it."))
    assert TOKEN not in repr(refusal)


async def test_of_a_secret_split_over_a_reason_and_a_unit_the_later_part_is_taken_out(team: Rig) -> None:
    """Whatever an agent wrote just before counts, and not only its units."""
    secret = noise(32)
    await team.door.put_secret("vault", secret)
    draft = await team.draft("ada")
    await team.ask("DISCARD", "ada", {"memory_unit_id": draft, "reason": f"It begins with {secret[:16]}"})
    content = (await team.unit(await team.record("ada", f"{secret[16:]} is how it ends."))).content
    assert secret[16:] not in content


async def test_what_the_field_says_of_a_conflict_does_not_quote_a_secret_that_became_known_late(team: Rig) -> None:
    code = noise(8, "123456789")
    await team.record("ada", f"The door code of the server room is {code}.")
    await team.door.put_secret("door", code)
    await team.record("ben", "The door code of the server room is 17.")
    [conflict] = await team.door.conflicts()
    assert "[REDACTED:door]" in conflict.description
    assert code not in conflict.description


# --- compaction: texts that are written anew --------------------------------------------------------------------------


async def decided(field: Rig, secret: str) -> list[str]:
    """An agent and its decisions, which a synthesis quotes word for word. What they tell is no secret yet."""
    author = f"keeper of {secret}"
    await field.register("op", role="operator", authority=10)
    await field.register(author)
    return [await field.record(author, f"We open door {at} with {secret}.", type="decision") for at in range(4)]


async def compacted(field: Rig, strategy: str, **payload: Any) -> Body:
    return await field.ask("COMPACT", "op", {"strategy": strategy, **payload})


async def test_the_reason_of_a_compaction_is_kept_without_its_secret(team: Rig) -> None:
    await decided(team, "a key")
    await compacted(team, "archive", reason=f"no longer in use: {TOKEN}")
    exported = b"".join([batch async for batch in team.door.export()])
    assert b"no longer in use: [REDACTED:" in exported
    assert TOKEN.encode() not in exported


async def test_a_synthesis_does_not_quote_a_secret_that_became_known_late(team: Rig) -> None:
    await decided(team, secret := phrase())
    await team.door.put_secret("door", secret)
    [synthesis] = (await compacted(team, "summarize"))["synthesis_units"]
    said = await team.unit(synthesis)
    assert "We open door 0 with [REDACTED:door]." in said.content
    assert secret not in said.content


async def test_a_synthesis_does_not_name_an_agent_whose_name_became_a_secret(team: Rig) -> None:
    await decided(team, secret := phrase())
    await team.door.put_secret("door", secret)
    [synthesis] = (await compacted(team, "summarize"))["synthesis_units"]
    confidence = (await team.unit(synthesis)).confidence
    assert confidence is not None
    assert "[REDACTED:door]" in str(confidence.reasoning)
    assert secret not in str(confidence.reasoning)


async def test_a_synthesis_that_is_made_anew_after_a_purge_does_not_quote_a_late_secret(team: Rig) -> None:
    await decided(team, secret := phrase())
    await team.record("ada", "Who pays for the doors?", type="question")
    await compacted(team, "summarize")
    await team.door.put_secret("door", secret)
    [synthesis] = (await compacted(team, "purge", filter={"types": ["question"]}))["synthesis_units"]
    content = (await team.unit(synthesis)).content
    assert "We open door 0 with [REDACTED:door]." in content
    assert secret not in content


@pytest.mark.parametrize("place", ["name", "session"])
async def test_a_retention_policy_with_a_secret_in_place_of_a_name_is_refused(place: str) -> None:
    field, secret = await opened(), noise(24).lower()
    await field.put_secret("vault", secret)
    policy = Policy("old", "archive", Match(session=secret), max_units=5)
    if place == "name":
        policy = Policy(secret, "archive", max_units=5)
    with pytest.raises(SecretLeakage):
        await field.set_retention([policy])
    assert await field.retention() == ()
    await field.close()


async def test_the_reason_of_a_run_by_a_policy_is_kept_without_a_late_secret() -> None:
    field, secret = await opened(), noise(24).lower()
    await join(field, "ada")
    for at in range(3):
        await accepted(field, record("ada", f"Number {at}."))
    await field.set_retention([Policy(secret, "archive", max_units=1)])
    await field.put_secret("vault", secret)
    await field.apply_retention()
    exported = b"".join([batch async for batch in field.export()])
    assert b"by retention policy [REDACTED:vault]" in exported
    await field.close()


# --- imports and settings ---------------------------------------------------------------------------------------------


async def continued(field: Rig, unit_id: str, content: str) -> bytes:
    """A line that goes on from the field's history with a unit, as anyone could write it."""
    [*_, last] = await field.log()
    text = json.encode({"content": content, "purpose": "to go on", "reasoning": "seen"})
    event = UnitRecorded(id=unit_id, mode="committed", type="finding", agent=1, registration=2, session=None, score=0.5)
    entry = Entry(last.entry.seq + 1, last.entry.epoch + 1, last.entry.at_ms, event, seal(SALT, text))
    body = encode_entry(entry)
    return json.encode(Line(Raw(body), link(bytes.fromhex(last.hash), body).hex(), SALT.hex(), Raw(text)))


@pytest.mark.parametrize("transport", ["memory", "sqlite"], indirect=True)
async def test_an_import_whose_text_holds_a_secret_is_refused_and_one_without_is_taken_in(team: Rig) -> None:
    unit_id = f"mem-{noise(32, HEX)}"
    before = await team.trace()
    with pytest.raises(SecretLeakage, match="line 1"):
        await team.door.import_lines([await continued(team, unit_id, f"The token is {TOKEN}.")])
    assert await team.trace() == before
    assert (await team.door.import_lines([await continued(team, unit_id, "There is a token.")])).imported == 1


@pytest.mark.parametrize("transport", ["memory", "sqlite"], indirect=True)
async def test_an_import_with_a_secret_in_place_of_an_id_is_refused(team: Rig) -> None:
    secret = noise(32, HEX)
    await team.door.put_secret("hex", secret)
    before = await team.trace()
    with pytest.raises(SecretLeakage, match="line 1"):
        await team.door.import_lines([await continued(team, f"mem-{secret}", "An honest text.")])
    assert await team.trace() == before


async def opened_and_told(folder: Path, secret: str, **values: Any) -> None:
    """A field with these settings, in which the secret is recorded; closed again."""
    field = await open_local_field(Settings(db=str(folder / "field.db"), **values))
    await join(field, "ada")
    await accepted(field, record("ada", f"It opens with {secret}, and so on."))
    await field.close()


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("before", "after"):
        (tmp_path / name).mkdir()
    return tmp_path / "before", tmp_path / "after"


async def test_a_secret_of_the_environment_is_never_stored(
    monkeypatch: pytest.MonkeyPatch, folders: tuple[Path, Path]
) -> None:
    secret, (before, after) = phrase(), folders
    await opened_and_told(before, secret)
    assert secret.encode() in on_disk(before), "without it the test would prove nothing"
    monkeypatch.setenv("FIELDSTONE_SECRET_DOOR", secret)
    await opened_and_told(after, secret)
    assert b"[REDACTED:door]" in on_disk(after)
    assert secret.encode() not in on_disk(after)


@pytest.mark.parametrize("name", [name for name, kind in get_type_hints(Settings).items() if kind == Secret | None])
async def test_a_key_among_the_settings_is_never_stored(name: str, tmp_path: Path) -> None:
    secret = b64encode(noise(32).encode()).decode()
    await opened_and_told(tmp_path, secret, **{name: Secret(secret)})
    assert f"[REDACTED:fieldstone.{name}]".encode() in on_disk(tmp_path)
    assert secret.encode() not in on_disk(tmp_path)
