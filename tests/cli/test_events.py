"""`fieldstone events`"""

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from fieldstone import open_field
from fieldstone.cli import events as events_command
from fieldstone.field.field import LocalField
from fieldstone.profiles.openwop import MemoryAdapter, SeedEntry
from fieldstone.profiles.openwop.feed import Feed, FeedEvent
from fieldstone.settings import Settings
from fieldstone.wiring import open_local_field
from tests.cli.running import done, invoke, refused, served
from tests.requirements import requirement

NOW = datetime(2026, 1, 31, 8, tzinfo=UTC)


def test_a_line_has_id_time_type_and_fields_and_counts_what_would_make_it_long(night: None) -> None:
    lines = done("events", "--db", "team.db").splitlines()
    assert len(lines) == 5
    cursor, ts, kind, *fields = lines[-1].split()
    assert cursor.isdigit()
    assert (len(ts), kind) == (24, "memory.compacted")
    assert fields[0] == "memoryRef=notes"
    assert {"sourceCount=3", "sourceIds=3", "trigger=host-managed"} < set(fields)


def test_json_gives_a_line_of_flat_json_for_each_event(night: None) -> None:
    events = told()
    assert [event["type"] for event in events] == ["memory.written"] * 4 + ["memory.compacted"]
    assert events[-1]["sourceIds"] == ["a", "b", "c"]


@requirement("openwop:events:cli")
def test_one_query_tells_whether_compaction_ran_last_night(night: None) -> None:
    [event] = told("--type", "memory.compacted", "--since", "24h")
    assert event["sourceCount"] == 3


@requirement("openwop:events:cli")
def test_since_takes_an_id_and_a_time_too(night: None) -> None:
    events = told()
    assert told("--since", events[1]["id"]) == events[2:]
    assert told("--since", "2020-01-01T00:00:00Z") == events
    assert told("--since", "2999-01-01T00:00:00Z") == []
    told_why = refused("events", "--since", "yesterday", "--db", "team.db")
    assert "since must be a cursor, or a time" in told_why
    assert "--since 24h" in told_why


def test_where_there_are_no_events_a_person_reads_where_to_look(night: None) -> None:
    result = invoke("events", "--type", "agent.memory.consolidated", "--db", "team.db")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "`fieldstone log`" in result.stderr


def test_a_list_that_was_cut_says_how_it_goes_on(night: None) -> None:
    events = told()
    result = invoke("events", "--limit", "2", "--db", "team.db")
    assert len(result.stdout.splitlines()) == 2
    assert result.stderr == f"There is more: --since {events[1]['id']}\n"
    assert invoke("events", "--limit", str(len(events)), "--db", "team.db").stderr == ""


def test_several_pages_make_the_whole(night: None, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = told()
    monkeypatch.setattr(events_command, "PAGE_EVENTS", 2)
    assert told() == whole


def test_an_unknown_type_is_a_usage_error(night: None) -> None:
    assert "run.started" in refused("events", "--type", "run.started", "--db", "team.db", exit_code=2)


def test_a_store_that_nobody_else_can_write_to_is_not_followed(night: None) -> None:
    assert "fieldstone serve" in refused("events", "--follow", "--db", "team.db")


@requirement("openwop:events:cli")
async def test_following_goes_on_with_what_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_command, "FOLLOW_PAUSE_S", 0)
    async with open_field("memory:") as field:
        here = field.door
        assert isinstance(here, LocalField)
        await seed(here, "a")
        events = events_command.following(events_command.telling(field), ["memory.written"], None)
        assert (await anext(events)).payload["memoryId"] == "a"
        await seed(here, "b")
        assert (await anext(events)).payload["memoryId"] == "b"


@requirement("openwop:events:cli")
def test_through_a_server_it_is_the_same(night: None) -> None:
    here = told("--since", "24h")
    with served("team.db") as url:
        there = [json.loads(line) for line in done("events", "--since", "24h", "--json", "--url", url).splitlines()]
        assert there == here
        few = done("events", "--type", "memory.compacted", "--limit", "1", "--url", url)
        assert few.split()[2] == "memory.compacted"
        assert "since must be a cursor, or a time" in refused("events", "--since", "yesterday", "--url", url)


@pytest.mark.parametrize(
    ("since", "begins"),
    [
        ("24h", "2026-01-30T08:00:00+00:00"),
        ("90m", "2026-01-31T06:30:00+00:00"),
        ("1w", "2026-01-24T08:00:00+00:00"),
        ("17", "17"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("yesterday", "yesterday"),
        ("999999w", "0"),
    ],
)
def test_a_while_ago_is_a_time_and_all_else_is_left_to_the_field(since: str, begins: str) -> None:
    assert events_command.beginning(since, NOW) == begins


def test_an_event_can_play_no_tricks_on_a_terminal() -> None:
    event = FeedEvent("7", "memory.written", "2026-01-31T08:00:00.000Z", {"memoryRef": "a\x1b[2Jb", "memoryId": "c\nd"})
    assert "\x1b" not in events_command.readable(event)
    assert "\n" not in events_command.readable(event)


@pytest.fixture
def night() -> None:
    """team.db: three entries that were compacted."""
    asyncio.run(_night())


async def _night() -> None:
    field = await open_local_field(Settings(db="team.db"))
    try:
        await seed(field, "a", "b", "c")
        await MemoryAdapter(field).compact("notes", why="the schedule", whole=True)
        assert len((await Feed(field).page()).events) == 5
    finally:
        await field.close()


async def seed(field: LocalField, *ids: str) -> None:
    entries = [SeedEntry(id=entry_id, content=f"Entry {entry_id} tells of pears.") for entry_id in ids]
    await MemoryAdapter(field).seed("notes", entries)


def told(*args: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done("events", *args, "--json", "--db", "team.db").splitlines()]
