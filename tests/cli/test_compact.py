"""`fieldstone compact`, `restore`, `hold`, `pin` and `lineage`"""

import click.testing
import pytest

from fieldstone import open_field
from tests.cli.running import answer, done, invoke, record, refused, served
from tests.cli.stepping import in_steps

HERE = ("--db", "team.db")


@pytest.fixture
def units() -> list[str]:
    """Three units of one session."""
    return [record(f"Step {n} takes {n}.9 s at checkout", "--session", "s-1") for n in range(3)]


def found(*more: str) -> set[str]:
    attuned = answer("attune", "checkout", "--agent", "bob", *HERE, *more)
    return {each["memory_unit"]["id"] for each in attuned["record"]}


def test_archived_units_are_out_of_sight_until_they_are_restored(units: list[str]) -> None:
    said = done("compact", "archive", *HERE)
    assert said.startswith("3 units archived; ")
    assert found() == set()
    assert found("--include-archived") == set(units)
    assert done("restore", units[0], *HERE) == "1 unit is back\n"
    assert found() == {units[0]}


def test_all_that_one_compaction_archived_comes_back(units: list[str]) -> None:
    compaction = answer("compact", "archive", *HERE)["compaction_id"]
    assert answer("restore", "--compaction", compaction, *HERE) == {"restored": 3}
    assert found() == set(units)
    assert answer("restore", "--compaction", compaction, *HERE) == {"restored": 0}


def test_a_compaction_that_is_not_known_is_refused_with_what_to_do(units: list[str]) -> None:
    assert "List the compactions." in refused("restore", "--compaction", "comp-1", *HERE)


def test_restore_is_told_what_to_bring_back(units: list[str]) -> None:
    assert "Name units" in refused("restore", *HERE, exit_code=2)
    assert "Name units" in refused("restore", units[0], "--compaction", "comp-1", *HERE, exit_code=2)


def test_filters_restrict(units: list[str]) -> None:
    decision = record("Guest checkout comes first", "--type", "decision")
    assert answer("compact", "archive", "--type", "decision", "--dry-run", *HERE)["units_affected"] == 1
    assert answer("compact", "archive", "--status", "retracted", "--dry-run", *HERE)["units_affected"] == 0
    assert answer("compact", "archive", "--max-age-epochs", "1", "--dry-run", *HERE)["units_affected"] == 2
    assert answer("compact", "archive", "--session", "s-1", *HERE)["units_affected"] == 3
    assert found() == {decision}


def test_a_dry_run_shows_the_groups_and_does_nothing(units: list[str]) -> None:
    said = done("compact", "summarize", "--dry-run", *HERE)
    assert said.startswith("3 units would be summarized and archived; ")
    assert "3 units of session s-1: " in said
    assert found() == set(units)


def test_what_recent_requests_would_lose_is_skipped_and_a_person_reads_what_goes_on_all_the_same() -> None:
    with open_field("team.db") as field:
        ada = field.agent("ada", role="researcher")
        for n in range(40):
            said = f"Observation {n}: the checkout of shop {n % 7} took {n * 3} seconds on day {n}."
            ada.record(said, type="finding", intent="look", confidence=0.8, reasoning="measured")
    found("--max-units", "3")
    result = invoke("compact", "summarize", "--dry-run", *HERE)
    assert "recent requests would no longer find what they found" in result.stderr
    assert "tested with 1 recent request: " in result.stderr
    assert "--no-verify" in result.stderr


def test_a_purge_says_that_texts_are_gone_wherever_they_were(units: list[str]) -> None:
    done("compact", "archive", *HERE)
    assert done("compact", "purge", "--session", "s-1", "--dry-run", *HERE).endswith("bytes\n")
    assert "of text is gone for good\n" in done("compact", "purge", "--session", "s-1", *HERE)


def test_a_restore_of_nothing_says_why(units: list[str]) -> None:
    result = invoke("restore", units[0], *HERE)
    assert result.stdout == "0 units are back\n"
    assert "they were never archived, are back already" in result.stderr


def test_the_status_says_how_many_units_are_archived(units: list[str]) -> None:
    assert "units       3\n" in done("status", *HERE)
    done("compact", "archive", *HERE)
    done("restore", units[0], *HERE)
    assert "units       3, of which 2 archived\n" in done("status", *HERE)
    assert answer("status", *HERE)["units_archived"] == 2
    done("compact", "purge", "--session", "s-1", *HERE)
    assert "units       0\n" in done("status", *HERE)
    with served("team.db") as url:
        assert answer("status", "--url", url)["units_archived"] == 0


def test_held_and_pinned_units_stay_until_they_are_released(units: list[str]) -> None:
    done("hold", units[0], *HERE)
    done("pin", units[1], *HERE)
    result = invoke("compact", "purge", "--session", "s-1", *HERE)
    assert result.stdout.startswith("1 unit purged; ")
    assert f"skipped {units[0]}: held" in result.stderr
    assert f"skipped {units[1]}: pinned" in result.stderr
    done("hold", units[0], "--release", *HERE)
    done("pin", units[1], "--release", *HERE)
    assert answer("compact", "purge", "--session", "s-1", *HERE)["units_affected"] == 2


def test_only_the_first_of_many_skipped_units_are_named(units: list[str]) -> None:
    for unit in [*units, *(record(f"Note {n}", "--session", "s-1") for n in range(8))]:
        done("pin", unit, *HERE)
    result = invoke("compact", "archive", *HERE)
    assert result.stderr.count("skipped mem-") == 10
    assert "and 1 more were skipped: --json names all" in result.stderr


def test_a_purge_asks_first_on_a_terminal(units: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    at_a_terminal(monkeypatch)
    purge = ("compact", "purge", "--session", "s-1", *HERE)
    assert invoke(*purge, input="n\n").exit_code == 1
    assert found() == set(units)
    assert "gone for good" in invoke(*purge, input="y\n").stderr
    assert found() == set()


def test_a_purge_that_was_said_twice_does_not_ask(units: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    at_a_terminal(monkeypatch)
    result = invoke("compact", "purge", "--session", "s-1", "--yes", *HERE)
    assert result.stdout.startswith("3 units purged")
    assert "purge" in result.stderr, "a terminal sees a bar"


def test_a_purge_of_everything_is_refused(units: list[str]) -> None:
    assert "filter must not be empty" in refused("compact", "purge", *HERE)


def test_ctrl_c_stops_it_after_its_step_and_says_what_is_done(
    units: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        in_steps(patch, "interrupt")
        result = invoke("compact", "archive", *HERE)
    assert result.exit_code == 130
    assert result.stdout.startswith("1 unit archived; ")
    assert "Cancelling" in result.stderr
    assert "what is done stays done" in result.stderr
    assert len(found()) == 2
    assert answer("compact", "archive", *HERE)["units_affected"] == 2
    assert answer("verify", *HERE)["ok"] is True


def test_one_that_breaks_says_how_far_it_came(units: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    in_steps(monkeypatch, "break")
    assert "broke after 0 of 3 units" in refused("compact", "archive", *HERE)


def test_through_a_server_it_is_the_same(units: list[str]) -> None:
    with served("team.db") as url:
        assert answer("compact", "archive", "--dry-run", "--url", url)["units_affected"] == 3
        done("pin", units[2], "--url", url)
        compacted = answer("compact", "summarize", "--no-verify", "--url", url)
        assert compacted["units_affected"] == 2
        assert compacted["skipped"] == [{"unit_id": units[2], "reason": "pinned"}]
        [synthesis] = compacted["synthesis_units"]
        said = done("lineage", synthesis, "--url", url)
        assert said.splitlines()[1] == "made from"
        assert answer("restore", "--compaction", compacted["compaction_id"], "--url", url) == {"restored": 2}


def test_lineage_walks_all_levels_down_and_up(units: list[str]) -> None:
    [first] = answer("compact", "summarize", "--no-verify", *HERE)["synthesis_units"]
    record("Step 7 takes 7.9 s at checkout", "--session", "s-1")
    [second] = answer("compact", "summarize", "--no-verify", *HERE)["synthesis_units"]
    down = answer("lineage", second, *HERE)
    [middle] = [each for each in down["made_from"] if each["unit_id"] == first]
    assert {each["unit_id"] for each in middle["made_from"]} == set(units)
    up = answer("lineage", units[0], *HERE)
    assert [each["unit_id"] for each in up["made_into"]] == [first]
    assert [each["unit_id"] for each in up["made_into"][0]["made_into"]] == [second]
    said = done("lineage", second, *HERE)
    assert f"├─ {first}  synthesis: " in said or f"└─ {first}  synthesis: " in said
    assert f"└─ {units[2]}  finding: Step 2 takes 2.9 s at checkout" in said


def test_lineage_shows_what_was_purged_and_what_stands_above_already(units: list[str]) -> None:
    elaborated = ("--relation", f"elaborates:{units[0]}")
    middle = record("Step 0 again", *elaborated)
    last = record("Step 0 and again", *elaborated, "--relation", f"elaborates:{middle}")
    said = done("lineage", last, *HERE)
    assert "(above already)" in said
    done("compact", "purge", "--session", "s-1", *HERE)
    assert f"{units[0]}  purged" in done("lineage", last, *HERE)


def test_lineage_of_an_unknown_unit_is_told_in_a_sentence(units: list[str]) -> None:
    assert "UNIT_NOT_FOUND" in refused("lineage", "mem-gone", *HERE)


def at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(click.testing._NamedTextIOWrapper, "isatty", lambda _: True, raising=False)
