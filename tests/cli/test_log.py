"""`fieldstone log` and `fieldstone status`"""

from collections.abc import AsyncIterator

import pytest
from msgspec import to_builtins

from fieldstone import open_field
from fieldstone.cli import log as log_command
from fieldstone.field.field import LogLine
from tests.cli.running import answer, done, invoke, record, refused
from tests.cli.showing import log


def test_a_line_has_seq_epoch_time_kind_and_fields() -> None:
    unit_id = record("Tea is hot")
    lines = done("log", "--db", "team.db").splitlines()
    assert len(lines) == 3
    seq, epoch, day, time, kind, *fields = lines[2].split()
    assert (seq, epoch, kind) == ("3", "2", "unit.recorded")
    assert (len(day), len(time)) == (10, 13)
    assert f"id={unit_id}" in fields
    assert "score=0.8" in fields


def test_json_gives_a_line_of_json_for_each_entry() -> None:
    record("Tea is hot")
    lines = log()
    assert [line["entry"]["seq"] for line in lines] == [1, 2, 3]
    assert all(len(line["hash"]) == 64 for line in lines)


def test_after_and_limit_cut_the_log_and_say_that_there_is_more() -> None:
    record("Tea is hot")
    result = invoke("log", "--after", "1", "--limit", "1", "--db", "team.db")
    assert result.stdout.split()[0] == "2"
    assert result.stderr == "There is more: --after 2\n"
    assert invoke("log", "--after", "1", "--limit", "2", "--db", "team.db").stderr == ""


def test_a_limit_above_a_page_reads_several_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    record("Tea is hot")
    monkeypatch.setattr(log_command, "PAGE_ENTRIES", 1)
    assert len(log()) == 3


async def test_following_goes_on_with_what_is_appended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_command, "FOLLOW_PAUSE_S", 0)
    async with open_field("memory:") as field:
        ada = await field.agent("ada", role="researcher")
        lines = log_command.following(field, after=1)
        assert await kinds(lines, 1) == ["agent.registered"]
        await ada.record("Tea", intent="tell", confidence=1, reasoning="seen")
        assert await kinds(lines, 1) == ["unit.recorded"]


def test_a_store_that_nobody_else_can_write_to_is_not_followed() -> None:
    record("Tea is hot")
    assert "fieldstone serve" in refused("log", "--follow", "--db", "team.db")


def test_status_counts_what_is_there() -> None:
    record("Tea is hot")
    table = dict(line.split(maxsplit=1) for line in done("status", "--db", "team.db").splitlines())
    assert table["field"] == "main (tenant local)"
    assert table["units"] == "1"
    assert table["agents"] == "1 active"
    assert table["conflicts"] == "0 open"
    assert table["log"] == "3 entries"
    assert table["store"].startswith("sqlite:team.db, ")
    assert answer("status", "--db", "team.db")["log_entries"] == 3


async def kinds(lines: AsyncIterator[LogLine], count: int) -> list[str]:
    return [to_builtins((await anext(lines)).entry.event)["kind"] for _ in range(count)]
