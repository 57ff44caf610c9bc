"""Secrets that became known late: a sweep clears them from every store, and the history stays whole."""

from pathlib import Path

import pytest
from msgspec import structs

from fieldstone.core.events import ContentReplaced
from fieldstone.field.sweep import BATCH_TEXTS, Sweeping
from fieldstone.ports.store import Commit
from fieldstone.testing import FaultyStore
from tests.protocol.rig import OpenRig, Rig, ids, options, relation
from tests.protocol.ways import DURABLE, on_disk
from tests.redact.fakes import noise
from tests.requirements import requirement


class CutOff(Exception):
    """As if the process had ended there."""


def late_secret() -> str:
    """Nothing about it looks like a secret until somebody says that it is one."""
    return f"zeppelin {noise(10).lower()} under {noise(12).lower()}"


async def say(field: Rig, secret: str) -> str:
    """The secret in every kind of text that is kept. The id of the unit that holds it."""
    await field.register("ada", role=f"keeper of {secret}", interests=[secret])
    await field.register("ben")
    before = await field.record("ben", "The market shrinks.")
    unit = await field.record(
        "ada",
        f"We open the door with {secret} and then it is open.",
        session=f"room {secret}",
        relations=[relation("contradicts", before, description=f"because of {secret}")],
    )
    draft = await field.draft("ada", f"A draft about {secret}.")
    await field.ask("DISCARD", "ada", {"memory_unit_id": draft, "reason": f"it told of {secret}"})
    await field.attune("ben", f"what opens with {secret}?")
    await field.record("ben", "What a read left goes with it.")
    return unit


@requirement("akashik:secrets:sweep")
async def test_a_sweep_clears_a_late_secret_from_everything_that_is_told(field: Rig) -> None:
    secret = late_secret()
    unit = await say(field, secret)
    await field.door.put_secret("door", secret)
    swept = await field.door.sweep()
    assert swept.replaced >= 6
    assert swept.secrets == ("door",)
    content = (await field.unit(unit)).content
    assert content == "We open the door with [REDACTED:door] and then it is open."
    exported = b"".join([batch async for batch in field.door.export()])
    shown = repr([await field.attune("ben"), await field.door.agents(), await field.door.conflicts()])
    assert secret.encode() not in exported
    assert secret not in shown


async def test_what_was_swept_verifies_rebuilds_and_is_found_by_what_it_says_now(field: Rig) -> None:
    secret = late_secret()
    unit = await say(field, secret)
    await field.door.put_secret("door", secret)
    await field.door.sweep()
    assert (await field.door.verify()).ok
    assert (await field.door.rebuild()).unchanged
    found = await field.attune("ben", "open the door", max_units=1)
    assert ids(found) == [unit]
    word = secret.split()[1]
    [hit] = [each for each in (await field.attune("ben", word))["record"] if each["memory_unit"]["id"] == unit]
    assert hit["factors"].get("lexical", 0) == 0


async def test_a_second_sweep_changes_nothing_more(field: Rig) -> None:
    await say(field, secret := late_secret())
    await field.door.put_secret("door", secret)
    await field.door.sweep()
    entries = (await field.door.status()).log_entries
    assert (await field.door.sweep()).replaced == 0
    assert (await field.door.status()).log_entries == entries


@requirement("akashik:secrets:sweep")
@pytest.mark.parametrize("transport", DURABLE, indirect=True)
async def test_no_byte_of_any_file_holds_what_was_swept(field: Rig, tmp_path: Path) -> None:
    secret = late_secret()
    await say(field, secret)
    raw = on_disk(tmp_path)
    assert secret.encode() in raw
    await field.door.put_secret("door", secret)
    assert (await field.door.sweep()).residue == "none"
    for part in (secret, *(word for word in secret.split() if len(word) >= 10)):
        assert part.encode() not in on_disk(tmp_path), part
    await field.restart()
    assert secret.encode() not in on_disk(tmp_path)


async def test_names_that_held_it_stay_apart_and_their_agents_go_on(rigs: OpenRig) -> None:
    field = await rigs()
    secret = late_secret()
    await field.register(f"one {secret}", f"two {secret}", "cy")
    first = await field.record(f"one {secret}", "From the first.")
    second = await field.record(f"two {secret}", "From the second.")
    await field.door.put_secret("name", secret)
    await field.door.sweep()
    names = [(await field.unit(unit)).source.agent_id for unit in (first, second)]
    assert len(set(names)) == 2
    assert all(secret not in name and "[REDACTED:name]" in name for name in names)
    assert {agent.id for agent in await field.door.agents()} == {*names, "cy"}
    assert await field.seen_by("cy") == {first, second}


async def test_an_export_of_what_was_swept_is_imported_whole(rigs: OpenRig) -> None:
    field, copy = await rigs(), await rigs()
    secret = late_secret()
    unit = await say(field, secret)
    await field.door.put_secret("door", secret)
    await field.door.sweep()
    lines = b"".join([batch async for batch in field.door.export()]).splitlines()
    for start in range(0, len(lines), 5):  # in chunks: a text may come long after its entry
        await copy.door.import_lines(lines[start : start + 5])
    assert (await copy.door.verify()).ok
    assert (await copy.unit(unit)).content == (await field.unit(unit)).content
    assert ids(await copy.attune("ben", "open the door", max_units=1)) == [unit]


async def test_a_text_that_is_put_back_after_a_sweep_is_found_by_verify(rigs: OpenRig) -> None:
    kept: list[FaultyStore] = []

    def keep(store: object) -> FaultyStore:
        kept[:] = [FaultyStore(store)]  # type: ignore[arg-type]
        return kept[0]

    field = await rigs(wrap=keep)
    unit = await say(field, secret := late_secret())
    [seq] = [line.entry.seq for line in await field.log() if getattr(line.entry.event, "id", None) == unit]
    old = (await kept[0].texts.get([seq]))[seq]
    await field.door.put_secret("door", secret)
    await field.door.sweep()
    await kept[0].commit(Commit(replaced_texts=[old]))
    fault = (await field.door.verify()).first_bad
    assert fault is not None
    assert (fault.seq, fault.part) == (seq, "text")


@requirement("akashik:secrets:sweep")
@pytest.mark.parametrize("transport", DURABLE[:1], indirect=True)
async def test_a_sweep_that_was_cut_off_goes_on_where_it_was(rigs: OpenRig) -> None:
    field = await rigs()
    secret = late_secret()
    await field.register("ada")
    units = [await field.record("ada", f"Number {number}: {secret}.") for number in range(BATCH_TEXTS + 50)]
    await field.door.put_secret("door", secret)

    def cut_off(done: int) -> None:
        raise CutOff

    with pytest.raises(CutOff):
        await field.door.sweep(cut_off)  # type: ignore[call-arg]
    replaced = [line for line in await field.log() if isinstance(line.entry.event, ContentReplaced)]
    assert 0 < len(replaced) < len(units)
    swept = await field.door.sweep()
    assert swept.replaced == len(units) - len(replaced)
    contents = [(await field.unit(unit)).content for unit in units]
    assert not [content for content in contents if secret in content]


async def test_a_field_that_refuses_secrets_is_swept_all_the_same(rigs: OpenRig) -> None:
    field = await rigs(structs.replace(options(), refuse_secrets=True))
    unit = await say(field, secret := late_secret())
    await field.door.put_secret("door", secret)
    assert (await field.door.sweep()).replaced >= 6
    assert secret not in (await field.unit(unit)).content


@pytest.mark.parametrize("transport", DURABLE[:1], indirect=True)
async def test_a_sweep_that_was_cut_off_before_the_indexes_followed_is_made_up_for(
    rigs: OpenRig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    field = await rigs()
    await say(field, secret := late_secret())
    await field.restart()  # by now the words are in the index
    await field.door.put_secret("door", secret)

    async def cut_off(*_: object) -> None:
        raise CutOff

    with monkeypatch.context() as patch:
        patch.setattr(Sweeping, "_follow", cut_off)
        with pytest.raises(CutOff):
            await field.door.sweep()
    await field.restart()
    await field.door.put_secret("door", secret)
    await field.door.sweep()
    word = secret.split()[1]
    assert not [each for each in (await field.attune("ben", word))["record"] if each["factors"].get("lexical")]
    assert word.encode() not in on_disk(tmp_path)


@pytest.mark.parametrize("transport", DURABLE, indirect=True)
async def test_a_sweep_clears_what_is_archived_and_its_words(field: Rig, tmp_path: Path) -> None:
    await field.register("op", role="operator", authority=10)
    unit = await say(field, secret := late_secret())
    await field.ask("COMPACT", "op", {"strategy": "archive"})
    await field.door.put_secret("door", secret)
    assert (await field.door.sweep()).residue == "none"
    assert secret not in (await field.unit(unit)).content
    word = secret.split()[1]
    found = (await field.attune("ben", word, include_archived=True))["record"]
    assert not [each for each in found if each["factors"].get("lexical")]
    assert ids(await field.attune("ben", "open the door", include_archived=True, max_units=1)) == [unit]
    assert word.encode() not in on_disk(tmp_path)
