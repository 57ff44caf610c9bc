"""What the contract says of entries that no scenario of OpenWOP's asks about: how they lie in the Field, and when."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from fieldstone import open_field
from fieldstone.core.access import Caller
from fieldstone.core.errors import Forbidden, InvalidPayload
from fieldstone.core.events import CompactionBegun, MemoryCompacted
from fieldstone.field import detecting
from fieldstone.field.field import LocalField
from fieldstone.field.options import MemoryOptions, Options
from fieldstone.profiles.openwop import MemoryAdapter, SeedEntry
from fieldstone.profiles.openwop.limits import HostLimits
from fieldstone.retrieval.reading import timestamp
from fieldstone.testing import ManualClock, SeededIds
from tests.cli.running import answer
from tests.field.fields import opened
from tests.messages import attune, attuned, join, register
from tests.openwop.host import Caller as Client
from tests.openwop.host import Host
from tests.openwop.host import memory as path_of
from tests.protocol.ways import Place, open_field_at
from tests.requirements import requirement
from tests.scripted import eventually

REF: Final = "mem_notes"
HOST: Final = Caller("key-1", 10)
HUNDRED: Final = "The API rate limit is 100 requests per second."
FIFTY: Final = "The API rate limit is 50 requests per second."
RUN_TAG: Final = "compacted-from:"


@pytest.fixture
async def field() -> AsyncIterator[LocalField]:
    field = await opened()
    yield field
    await field.close()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


# --- an entry is a unit -----------------------------------------------------------------------------------------------


@requirement("openwop:unit:is-a-unit")
async def test_an_entry_is_a_unit_of_the_host_in_the_session_of_its_memory(field: LocalField) -> None:
    memory = MemoryAdapter(field, HOST)
    entries = [await memory.put(REF, content=f"Stand {number} sells pears.") for number in range(2)]
    [event] = await memory.compact(REF, why="a test", whole=True)
    unit = await field.unit(entries[0].id, HOST)
    assert (unit.mode, unit.type, unit.content) == ("committed", "observation", entries[0].content)
    assert (unit.source.agent_id, unit.source.session_id) == ("openwop:key-1", f"openwop:{REF}")
    assert unit.intent.purpose == "OpenWOP put"
    assert unit.confidence is not None
    assert (unit.confidence.score, unit.confidence.reasoning) == (1.0, "asserted by the host")
    output = await field.unit(str(event.payload["outputId"]), HOST)
    assert (output.type, output.source.session_id) == ("synthesis", f"openwop:{REF}")


@requirement("openwop:unit:hosts-voice")
async def test_nobody_registers_as_the_agent_of_the_host(field: LocalField) -> None:
    await MemoryAdapter(field, HOST).put(REF, content=HUNDRED)
    for name in ("openwop:key-1", "openwop:key-2"):
        with pytest.raises(Forbidden):
            await field.send(register(name))


@requirement("openwop:unit:shared", "openwop:unit:apart")
@pytest.mark.parametrize("shared", [False, True])
async def test_a_field_that_shares_its_memories_shows_them_to_its_agents_and_no_other_does(shared: bool) -> None:
    field = await opened(memories=MemoryOptions(shared=shared))
    await join(field, "ada")
    await MemoryAdapter(field, HOST).put(REF, content=HUNDRED)
    seen = [unit.content for unit in await attuned(field, attune("ada"))]
    assert seen == ([HUNDRED] if shared else [])
    await field.close()


@requirement("openwop:unit:no-detection")
@pytest.mark.parametrize("asked_for", [False, True])
async def test_conflicts_between_entries_are_looked_for_only_where_the_settings_ask_for_it(
    asked_for: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detecting, "PAUSE_MS", 0)
    field = await opened(memories=MemoryOptions(detect_conflicts=asked_for))
    for number, content in enumerate((HUNDRED, FIFTY)):
        await MemoryAdapter(field, Caller(f"key-{number}", 10)).put(REF, content=content)

    async def compared() -> bool:
        return (await field.status()).detection_behind == 0

    await eventually(compared)
    assert len(await field.conflicts()) == int(asked_for)
    await field.close()


# --- bounds -----------------------------------------------------------------------------------------------------------


@requirement("openwop:memory:bounds")
async def test_an_id_has_1_to_1500_characters(field: LocalField) -> None:
    memory = MemoryAdapter(field)
    longest = "i" * 1_500
    await memory.seed(REF, [SeedEntry(id=longest, content="Under a long id.")])
    assert (entry := await memory.get(REF, longest)) is not None
    for none in ("", longest + "i"):
        with pytest.raises(InvalidPayload):
            await memory.seed(REF, [SeedEntry(id=none, content="Under no id.")])
        assert await memory.get(REF, none) is None
    assert (await memory.list(REF)).entries == (entry,)


@requirement("openwop:ttl:not-returned", "openwop:ttl:until-then", "openwop:ttl:past-refused")
async def test_at_its_last_millisecond_an_entry_is_there_and_at_its_end_it_is_not(clock: ManualClock) -> None:
    field = await open_field_at(Place(None, Options(), clock, SeededIds()))
    memory = MemoryAdapter(field)
    end = timestamp(clock.now_ms() + 10)
    entry = await memory.put(REF, content="Not for long.", expires_at=end)
    clock.advance(9)
    assert (await memory.list(REF)).entries == (entry,)
    assert await memory.get(REF, entry.id) == entry
    clock.advance(1)
    assert (await memory.list(REF)).entries == ()
    assert await memory.get(REF, entry.id) is None
    with pytest.raises(InvalidPayload):
        await memory.put(REF, content="Over already.", expires_at=end)
    await field.close()


@requirement("openwop:compaction:output-readable", "openwop:compaction:ttl-earliest")
async def test_an_output_can_be_got_until_its_end_and_no_longer(clock: ManualClock) -> None:
    field = await open_field_at(Place(None, Options(), clock, SeededIds()))
    memory = MemoryAdapter(field)
    for number in range(2):
        end = timestamp(clock.now_ms() + 10 + number)
        await memory.put(REF, content=f"Stand {number} sells pears.", expires_at=end)
    [event] = await memory.compact(REF, why="a test", whole=True)
    output = str(event.payload["outputId"])
    clock.advance(9)
    assert await memory.get(REF, output) is not None
    clock.advance(1)
    assert await memory.get(REF, output) is None
    await field.close()


# --- compaction -------------------------------------------------------------------------------------------------------


@requirement("openwop:compaction:one-event-per-output", "openwop:compaction:tag", "openwop:compaction:by-call")
async def test_each_output_of_a_run_has_its_event_and_all_share_the_runs_tag(field: LocalField) -> None:
    memory = MemoryAdapter(field, limits=HostLimits(max_input_entries=4))
    put = [(await memory.put(REF, content=f"Stand {number} sells pears.")).id for number in range(12)]
    events = await memory.compact(REF, why="a test")
    outputs = {str(event.payload["outputId"]) for event in events}
    assert len(events) == len(outputs) == 3
    assert Counter(source for event in events for source in event.payload["sourceIds"]) == Counter(put)
    listed = (await memory.list(REF)).entries
    assert {entry.id for entry in listed} == outputs
    tags = {tag for entry in listed for tag in entry.tags if tag.startswith(RUN_TAG)}
    assert len(tags) == 1
    assert {entry.id for entry in (await memory.list(REF, tag=tags.pop())).entries} == outputs


@requirement("openwop:compaction:who-asked")
async def test_who_asked_for_a_compaction_is_in_the_log_and_in_no_event_of_the_feed(field: LocalField) -> None:
    memory = MemoryAdapter(field)
    for number in range(2):
        await memory.put(REF, content=f"Stand {number} sells pears.")
    [event] = await memory.compact(REF, why="asked for by the night watch", whole=True)
    entries = [line.entry for line in (await field.log(limit=1_000)).entries]
    [told] = [entry.event for entry in entries if isinstance(entry.event, MemoryCompacted)]
    [begun] = [entry for entry in entries if isinstance(entry.event, CompactionBegun)]
    assert told.compaction == begun.seq
    assert b"asked for by the night watch" in (await field.audit.texts([begun.seq]))[begun.seq].body
    assert event.payload["trigger"] == "host-managed"
    assert "night watch" not in str(event.flat())


@requirement("openwop:compaction:by-call", "openwop:compaction:host-managed")
def test_the_command_line_compacts_a_memory_by_its_session(tmp_path: Path) -> None:
    db = str(tmp_path / "team.db")

    async def put() -> None:
        async with open_field(db) as field:
            for number in range(3):
                await MemoryAdapter(field).put(REF, content=f"Stand {number} sells pears at {number} coins.")

    asyncio.run(put())
    compacted = answer("compact", "summarize", "--session", f"openwop:{REF}", "--db", db)
    event = answer("events", "--type", "memory.compacted", "--db", db)
    assert [event["outputId"]] == compacted["synthesis_units"]
    assert (event["memoryRef"], event["sourceCount"], event["trigger"]) == (REF, 3, "host-managed")


@requirement("openwop:compaction:by-call")
def test_openwop_has_no_route_of_its_own_for_a_compaction(acme: Client, ref: str) -> None:
    acme.put(ref, "Pears cost two coins.")
    assert acme.post(f"{path_of(ref)}/compact", {}).status_code in (404, 405)
    assert acme.events_of(ref, "memory.compacted") == []


# --- secrets ----------------------------------------------------------------------------------------------------------


@requirement("openwop:sr-1:registry")
def test_a_registered_secret_is_in_no_file_in_plain_and_one_of_seven_characters_is_refused(host: Host) -> None:
    value = "glass marble and " + "seventeen geese"
    assert host.acme.http.put("/v1/secrets/door", json={"value": value}).status_code == 204
    for kept in host.folder.iterdir():
        if kept.is_file():
            assert value.encode() not in kept.read_bytes(), kept.name
    refused = host.acme.http.put("/v1/secrets/short", json={"value": "Xq7-vb9"})
    assert refused.status_code in (400, 422)
    assert "Xq7-vb9" not in refused.text
