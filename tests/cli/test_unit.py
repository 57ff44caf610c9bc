"""`fieldstone unit` and `fieldstone compactions`"""

from pathlib import Path

import pytest

from tests.cli.running import answer, done, invoke, record, refused, served

HERE = ("--db", "team.db")


def test_a_unit_is_shown_with_all_that_was_said_of_it() -> None:
    first = record("Checkout takes 11 s")
    unit = record(
        "Checkout takes 1.9 s",
        *("--type", "decision", "--session", "s-1", "--task", "t-1", "--question", "Is it slow?"),
        *("--evidence", "20,000 traces", "--assumption", "clocks agree"),
        *("--relation", f"contradicts:{first}:both cannot be right"),
    )
    said = done("unit", unit, *HERE)
    assert said.startswith("Checkout takes 1.9 s\n")
    for part in (unit, "decision", "contested", "cli (operator)", "epoch", "s-1", "t-1", "Is it slow?", "0.80"):
        assert part in said
    for part in ("tell the others", "it was seen", "20,000 traces", "clocks agree", f"{first}: both cannot be right"):
        assert part in said


def test_in_json_a_unit_is_what_the_protocol_says_it_is() -> None:
    unit = record("Checkout takes 1.9 s")
    found = answer("unit", unit, *HERE)
    assert (found["id"], found["content"], found["source"]["agent_id"]) == (unit, "Checkout takes 1.9 s", "cli")
    with served("team.db") as url:
        assert answer("unit", unit, "--url", url) == found


def test_a_draft_and_an_archived_unit_say_that_they_are() -> None:
    draft = record("Perhaps", "--draft")
    unit = record("Checkout takes 1.9 s")
    done("compact", "archive", *HERE)
    assert "status  draft\n" in done("unit", draft, *HERE)
    assert "archived  at epoch" in done("unit", unit, *HERE)


def test_what_an_agent_wrote_plays_no_tricks_on_the_terminal() -> None:
    unit = record("Red \x1b[31m alert", "--question", "What \x1b]0;now\x07?")
    said = done("unit", unit, *HERE)
    assert "\x1b" not in said
    assert "\\u001b[31m" in said


def test_of_a_purged_unit_the_tombstone_is_told() -> None:
    unit = record("Checkout takes 1.9 s", "--session", "s-1")
    done("compact", "purge", "--session", "s-1", "--reason", "its source was withdrawn", *HERE)
    said = refused("unit", unit, *HERE)
    assert "UNIT_PURGED" in said
    assert "reason: its source was withdrawn" in said
    assert "deleted_at: 20" in said


def test_a_text_that_is_lost_is_told_with_what_to_do() -> None:
    unit = record("Checkout takes 1.9 s")
    done("compact", "archive", *HERE)
    for lost in Path().glob("team.db-cold*"):
        lost.unlink()
    shown = invoke("unit", unit, *HERE)
    assert shown.stdout.startswith("(its text is missing)\n")
    for result in (shown, invoke("unit", unit, "--json", *HERE)):
        assert result.exit_code == 0
        assert "warning: The unit's text is missing from the store" in result.stderr
        assert "`fieldstone verify`" in result.stderr
    assert "or their texts are missing" in invoke("restore", unit, *HERE).stderr


def test_an_unknown_unit_is_told_in_a_sentence() -> None:
    record("Something")
    assert "UNIT_NOT_FOUND" in refused("unit", "mem-gone", *HERE)


# --- compactions ------------------------------------------------------------------------------------------------------


def test_compactions_are_listed_with_what_they_did_the_newest_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fieldstone.cli.compactions.PAGE_COMPACTIONS", 1)
    made = []
    for strategy, session in (("archive", "s-1"), ("purge", "s-2")):
        record(f"Something of {session}", "--session", session)
        compact = ("compact", strategy, "--session", session, "--agent", "ada")
        made.append(answer(*compact, *HERE)["compaction_id"])
    listed = answer("compactions", *HERE)["compactions"]
    assert [each["compaction_id"] for each in listed] == made
    told = [(each["strategy"], each["state"], each["units_done"], each["agent_id"]) for each in listed]
    assert told == [("archive", "done", 1, "ada"), ("purge", "done", 1, "ada")]
    assert all(each["begun_at"] <= each["ended_at"] for each in listed)
    assert [line.split()[0] for line in done("compactions", *HERE).splitlines()] == made
    with served("team.db") as url:
        assert answer("compactions", "--url", url) == {"compactions": listed}


def test_where_nothing_was_compacted_the_list_says_so() -> None:
    record("Something")
    assert invoke("compactions", *HERE).stderr == "There was no compaction yet.\n"
    assert answer("compactions", *HERE) == {"compactions": []}


def test_a_unit_says_that_it_is_on_hold_or_pinned_and_through_a_server_too() -> None:
    unit, other = record("Checkout takes 1.9 s"), record("Tea is hot")
    done("pin", unit, *HERE)
    assert "guarded  pinned: no compaction touches it\n" in done("unit", unit, *HERE)
    done("hold", unit, *HERE)
    assert "on hold and pinned" in done("unit", unit, *HERE)
    assert "guards" not in answer("unit", other, *HERE)
    with served("team.db") as url:
        assert answer("unit", unit, "--url", url)["guards"] == ["hold", "pin"]


def test_a_key_that_may_not_list_guards_is_not_told_of_them() -> None:
    unit = record("Checkout takes 1.9 s")
    done("hold", unit, *HERE)
    keys = [done("keys", "create", "--tenant", "local", "--authority", each, *HERE).strip() for each in ("4", "6")]
    with served("team.db") as url:
        low, high = (answer("unit", unit, "--url", url, env={"FIELDSTONE_KEY": key}) for key in keys)
    assert ("guards" in low, high["guards"]) == (False, ["hold"])
