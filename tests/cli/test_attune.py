"""`fieldstone attune`"""

import pytest

from tests.cli.running import answer, done, record, refused


@pytest.fixture
def team() -> list[str]:
    """Three units of two agents."""
    return [
        record("Tea is served hot in the garden", "--agent", "ada", "--session", "tea"),
        record("Coffee is served cold", "--agent", "bob", "--session", "coffee"),
        record("Decide on tea", "--agent", "ada", "--type", "decision", "--session", "tea"),
    ]


def test_a_page_has_score_reason_content_and_budget(team: list[str]) -> None:
    page = done("attune", "coffee", "--max-units", "1", "--db", "team.db")
    assert f"{team[1]}, epoch" in page
    assert "matches your hint on “coffee”" in page
    assert "     Coffee is served cold\n" in page
    assert "     why: tell the others\n" in page
    assert "     sure: 0.80, it was seen\n" in page
    assert "1 of 3 units, at epoch 6. See more with --max-units.\n" in page


def test_a_page_fits_the_terminal(team: list[str]) -> None:
    record("word " * 100)
    page = done("attune", "--agent", "eve", "--db", "team.db", env={"COLUMNS": "50"})
    assert max(len(line) for line in page.splitlines() if "mem-" not in line) <= 50


def test_what_agents_wrote_cannot_drive_the_terminal() -> None:
    record("red \x1b[31malert\x07 \u202eesrever")
    page = done("attune", "--agent", "eve", "--db", "team.db")
    assert "red \\u001b[31malert\\u0007 \\u202eesrever" in page


def test_conflicts_are_shown(team: list[str]) -> None:
    record("Tea is served cold", "--agent", "bob", "--relation", f"contradicts:{team[0]}:hot is not cold")
    page = done("attune", "--db", "team.db")
    assert "(factual, detected): hot is not cold" in " ".join(page.split())
    assert ", contested" in page


def test_own_units_come_only_when_asked_for(team: list[str]) -> None:
    own = ("attune", "--agent", "bob", "--db", "team.db")
    assert ids(*own) == {team[0], team[2]}
    assert ids(*own, "--include-own") == set(team)


def test_sessions_and_epochs_limit_what_comes(team: list[str]) -> None:
    assert ids("attune", "--session", "coffee", "--db", "team.db") == {team[1]}
    assert ids("attune", "--session", "coffee", "--session", "tea", "--db", "team.db") == set(team)
    assert ids("attune", "--since-epoch", "5", "--db", "team.db") == {team[2]}


def test_drafts_come_to_their_author_alone(team: list[str]) -> None:
    answer("record", "Maybe", "--draft", "--intent", "think", "--agent", "ada", "--db", "team.db")
    assert len(ids("attune", "--agent", "ada", "--include-drafts", "--include-own", "--db", "team.db")) == 4
    assert len(ids("attune", "--agent", "bob", "--include-drafts", "--include-own", "--db", "team.db")) == 3


def test_epoch_order_says_where_to_go_on(team: list[str]) -> None:
    page = done("attune", "--order", "epoch", "--max-units", "1", "--db", "team.db")
    assert team[0] in page
    assert "Go on with --since-epoch 4." in page


def test_ids_only_takes_the_whole_scope(team: list[str]) -> None:
    found = answer("attune", "--format", "ids_only", "--order", "epoch", "--session", "tea", "--db", "team.db")
    assert [scoped["memory_unit"]["id"] for scoped in found["record"]] == [team[0], team[2]]
    assert set(found["record"][0]["memory_unit"]) == {"id", "epoch"}
    page = done("attune", "--format", "ids_only", "--db", "team.db")
    assert team[0] in page
    assert "garden" not in page


def test_interests_count(team: list[str]) -> None:
    page = done("attune", "--interest", "garden", "--db", "team.db")
    assert "touches your interests: “garden”" in page


def test_an_agent_resumes_with_its_own_role(team: list[str]) -> None:
    answer("attune", "--agent", "eve", "--role", "engineer", "--db", "team.db")
    before = answer("status", "--db", "team.db")["agents"]
    answer("attune", "--agent", "eve", "--db", "team.db")
    assert answer("status", "--db", "team.db")["agents"] == before


def test_an_impossible_page_is_refused(team: list[str]) -> None:
    assert refused("attune", "--max-units", "0", "--db", "team.db").startswith("error INVALID_PAYLOAD: scope.max_units")


def ids(*args: str) -> set[str]:
    return {scoped["memory_unit"]["id"] for scoped in answer(*args)["record"]}
