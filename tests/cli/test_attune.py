"""`fieldstone attune`"""

import re

import pytest

from fieldstone import open_field
from fieldstone.retrieval.score import WEIGHTS
from tests.cli.running import answer, done, record, refused, served


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


def test_of_many_conflicts_a_person_reads_those_of_the_page_first_and_how_many_more_there_are(
    team: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fieldstone.cli.attune.CONFLICTS_SHOWN", 1)
    record("Nobody drinks here", "--agent", "bob", "--relation", f"contradicts:{team[0]}:somebody does")
    late = record("The shop is shut", "--agent", "bob", "--relation", f"contradicts:{team[2]}:it is open")
    page = done("attune", "is the shop shut?", "--agent", "eve", "--max-units", "1", "--db", "team.db")
    assert late in page.partition("conflict conf-")[0]
    assert page.count("conflict conf-") == 1
    assert ": it is open" in page
    assert "and 1 more conflict: --json names all" in page


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


def test_explain_shows_what_each_score_is_made_of(team: list[str]) -> None:
    asked = ("attune", "tea in the garden", "--max-units", "1", "--db", "team.db")
    parts = explained(*asked, "--agent", "eve", "--explain")
    [scoped] = answer(*asked, "--agent", "zoe")["record"]  # to whom nothing was shown before, either
    assert {name: value for name, (value, _, _) in parts.items()} == rounded(scoped["factors"])
    assert sum(share for _, share, _ in parts.values()) == pytest.approx(1, abs=0.05)
    assert sum(worth for *_, worth in parts.values()) == pytest.approx(scoped["relevance_score"], abs=0.05)


def test_bars_stand_below_the_reason_and_above_the_content(team: list[str]) -> None:
    page = done("attune", "coffee", "--explain", "--max-units", "1", "--db", "team.db")
    assert page.index("matches your hint") < page.index("lexical") < page.index("Coffee is served cold")
    assert "█" in page


def test_explain_fits_the_terminal(team: list[str]) -> None:
    page = done("attune", "tea", "--explain", "--db", "team.db", env={"COLUMNS": "60"})
    assert max(len(line) for line in page.splitlines() if "mem-" not in line) <= 60


def test_explained_shares_follow_the_settings_and_the_recency_weight(team: list[str]) -> None:
    asked = ("attune", "tea", "--explain", "--max-units", "1", "--db", "team.db")
    assert explained(*asked, "--recency-weight", "0.5")["recency"] == (1.0, 0.5, 0.5)
    only = ",".join(f"{name}={int(name == 'lexical')}" for name in WEIGHTS)
    assert explained(*asked, env={"FIELDSTONE_WEIGHTS": only})["lexical"] == (1.0, 1.0, 1.0)


def test_a_server_with_weights_of_its_own_is_not_explained_with_ours(team: list[str]) -> None:
    with served("team.db") as url:
        asked = ("attune", "tea", "--explain", "--url", url)
        page = done(*asked, env={"FIELDSTONE_WEIGHTS": "lexical=0.9"})
        assert "lexical" in page
        assert "%" not in page
        assert explained(*asked, "--max-units", "1")["lexical"][0] == 1.0


def test_explain_with_json_is_the_same_json(team: list[str]) -> None:
    plain = answer("attune", "tea", "--db", "team.db")
    assert "lexical" in plain["record"][0]["factors"]
    assert answer("attune", "tea", "--explain", "--db", "team.db") == plain


def test_a_budget_is_kept_and_accounted_for(team: list[str]) -> None:
    page = done("attune", "tea", "--max-tokens", "8", "--db", "team.db")
    used = int(page.split(" of 8 tokens, counted with ")[0].split()[-1])
    assert 0 < used <= 8
    assert "Left out: " in page
    assert " over the budget" in page
    assert "--max-units" not in page


def test_a_threshold_cuts_and_says_so(team: list[str]) -> None:
    page = done("attune", "garden", "--threshold", "0.4", "--db", "team.db")
    assert "1 of 3 units, at epoch 6.\nLeft out: 2 below the threshold.\n" in page


def test_a_summary_is_marked_as_one() -> None:
    record("The garden is open. " * 40 + "Tea is served at five.")
    page = done("attune", "tea", "--agent", "eve", "--format", "summary", "--db", "team.db")
    assert ", summary\n" in page
    assert page.count("The garden is open.") < 40


def test_units_of_the_task_come_first(team: list[str]) -> None:
    task = record("Cups are in the cupboard", "--agent", "ada", "--task", "breakfast")
    record("Plates are in the cupboard", "--agent", "ada")
    found = answer("attune", "--task", "breakfast", "--db", "team.db")
    assert found["record"][0]["memory_unit"]["id"] == task
    assert "belongs to your task" in found["record"][0]["relevance_reason"]


def test_layers_limit_what_comes(team: list[str]) -> None:
    question = record("Is there any milk?", "--agent", "ada", "--type", "question")
    assert ids("attune", "--layer", "future", "--db", "team.db") == {question}
    assert question not in ids("attune", "--layer", "present", "--db", "team.db")
    assert ids("attune", "--layer", "future", "--layer", "present", "--db", "team.db") == {*team, question}


@pytest.mark.parametrize(
    ("option", "name"),
    [("--threshold", "relevance_threshold"), ("--recency-weight", "recency_weight"), ("--max-tokens", "max_tokens")],
)
def test_an_impossible_value_is_refused_with_its_name(team: list[str], option: str, name: str) -> None:
    assert f"scope.{name} must be" in refused("attune", option, "-1", "--db", "team.db")


def explained(*args: str, env: dict[str, str] | None = None) -> dict[str, tuple[float, float, float]]:
    """Factor → value, share and worth, as the lines of the only unit on the page say."""
    lines = re.findall(r"^ {5}(\w+) +[█░]+ ([\d.]+) × +(\d+)% = ([\d.]+)$", done(*args, env=env), re.MULTILINE)
    return {name: (float(value), int(share) / 100, float(worth)) for name, value, share, worth in lines}


def rounded(factors: dict[str, float]) -> dict[str, float]:
    return {name: float(f"{value:.2f}") for name, value in factors.items()}


def ids(*args: str) -> set[str]:
    return {scoped["memory_unit"]["id"] for scoped in answer(*args)["record"]}


def test_what_nobody_vouches_for_is_shown_when_it_is_asked_for_and_says_so() -> None:
    record("Tea is hot", "--agent", "ada")
    wary = {"FIELDSTONE_VOUCH_AUTHORITY": "10"}
    with open_field("team.db") as field:
        field.agent("low", role="guest", authority=4).record("Tea is cold", intent="say", confidence=0.5, reasoning="x")
    assert "Tea is cold" not in done("attune", "tea", "--db", "team.db", env=wary)
    said = done("attune", "tea", "--include-unvouched", "--db", "team.db", env=wary)
    assert "Tea is cold" in said
    assert said.count(", untrusted\n") == 1
