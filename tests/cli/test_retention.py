"""`fieldstone retention`"""

from pathlib import Path

import pytest

from tests.cli.running import answer, done, invoke, record, refused, served
from tests.cli.stepping import in_steps

HERE = ("--db", "team.db")
POLICIES = """
[[policies]]
name = "capped"
strategy = "archive"
match = {session = "s-1", types = ["finding"]}
max_units = 1
schedule = "0 3 * * sun"

[[policies]]
name = "aged"
strategy = "purge"
max_age = "52w"
enabled = false
"""


@pytest.fixture
def policies() -> str:
    """A file of two policies, beside a store with three units."""
    for n in range(3):
        record(f"Step {n} takes {n}.9 s", "--session", "s-1")
    Path("retention.toml").write_text(POLICIES)
    return "retention.toml"


def test_without_policies_nothing_goes_and_that_is_said() -> None:
    record("Tea is hot")
    for name in ("show", "plan", "apply", "status"):
        result = invoke("retention", name, *HERE)
        assert (result.exit_code, result.stdout) == (0, "")
        assert "nothing goes by itself" in result.stderr
    assert answer("retention", "show", *HERE) == {"policies": []}


def test_of_one_policy_and_one_unit_it_speaks_in_the_singular() -> None:
    for content in ("Tea is hot", "Ice is cold"):
        record(content)
    Path("one.toml").write_text("[[policies]]\nname = 'capped'\nstrategy = 'archive'\nmax_units = 1\n")
    assert done("retention", "set", "one.toml", *HERE) == "1 policy holds from now on\n"
    assert done("retention", "apply", *HERE).startswith("capped: 1 unit went (archive), ")
    assert "done: 1 unit\n" in done("retention", "status", *HERE)


def test_policies_of_a_file_are_set_and_shown(policies: str) -> None:
    assert done("retention", "set", policies, *HERE) == "2 policies hold from now on\n"
    said = done("retention", "show", *HERE)
    for words in ("capped", "archive", "s-1", "finding", "the newest 1 unit\n", "0 3 * * sun", "52w", "no"):
        assert words in said
    [capped, aged] = answer("retention", "show", *HERE)["policies"]
    assert capped["match"] == {"session": "s-1", "types": ["finding"]}
    assert aged["enabled"] is False


def test_a_plan_does_nothing_and_apply_does_it(policies: str) -> None:
    done("retention", "set", policies, *HERE)
    assert done("retention", "plan", *HERE).startswith("capped: 2 units would go (archive), ")
    assert done("retention", "apply", *HERE).splitlines()[0].startswith("capped: 2 units went (archive), ")
    assert done("retention", "apply", *HERE).splitlines() == [
        "capped: 0 units went (archive), 0 bytes",
        "aged: not enabled",
    ]


def test_pinned_units_are_said_to_be_kept(policies: str) -> None:
    pinned = record("Step 0 is pinned", "--session", "s-1")
    done("pin", pinned, *HERE)
    Path(policies).write_text(POLICIES.replace("max_units = 1", "max_units = 0"))
    done("retention", "set", policies, *HERE)
    assert done("retention", "apply", *HERE).splitlines()[0].endswith(", 1 kept")


def test_status_says_when_each_ran_and_runs_next(policies: str) -> None:
    done("retention", "set", policies, *HERE)
    before = done("retention", "status", *HERE)
    assert "last run  never" in before
    assert "aged (not enabled)" in before
    assert "when it is applied" in before
    done("retention", "apply", *HERE)
    [capped, aged] = answer("retention", "status", *HERE)["policies"]
    assert capped["last_run"]["units"] == 2
    assert capped["next_run"].endswith("T03:00:00.000Z")
    assert (aged["last_run"], aged["next_run"]) == (None, None)
    assert "done: 2 units" in done("retention", "status", *HERE)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"[[policies]", "not TOML"),
        (b"policies = 3", "malformed"),
        (b"[[policies]]\nname = 'a'\nstrategy = 'archive'\n", "everything would go"),
        (b"[[policies]]\nname = 'a'\nstrategy = 'archive'\nmax_age = 'long'\n", "max_age looks like 90m"),
        (b"\xff\xfe", "not UTF-8"),
        (b"#" * 1_000_001, "more than 1,000,000 bytes"),
    ],
)
def test_a_file_that_holds_no_policies_is_told_in_a_sentence(content: bytes, told: str) -> None:
    record("Tea is hot")
    Path("retention.toml").write_bytes(content)
    assert told in refused("retention", "set", "retention.toml", *HERE)


def test_ctrl_c_stops_it_after_its_step_and_no_other_policy_follows(
    policies: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(policies).write_text(POLICIES + "[[policies]]\nname = 'rest'\nstrategy = 'archive'\nmax_units = 0\n")
    done("retention", "set", policies, *HERE)
    with monkeypatch.context() as patch:
        in_steps(patch, "interrupt")
        result = invoke("retention", "apply", *HERE)
    assert result.exit_code == 130
    assert len(result.stdout.splitlines()) == 1
    assert result.stdout.startswith("capped: 1 unit went")
    assert "what is done stays done" in result.stderr
    assert [
        each["last_run"]["state"] for each in answer("retention", "status", *HERE)["policies"] if each["last_run"]
    ] == ["cancelled"]


def test_through_a_server_it_is_the_same(policies: str) -> None:
    with served("team.db") as url:
        assert len(answer("retention", "set", policies, "--url", url)["policies"]) == 2
        assert answer("retention", "plan", "--url", url)["policies"][0]["result"]["units_affected"] == 2
        assert answer("retention", "apply", *HERE)["policies"][0]["result"]["units_affected"] == 2
        assert answer("retention", "status", "--url", url)["policies"][0]["last_run"]["units"] == 2
