"""`fieldstone demo`: what a newcomer sees first."""

import json
from pathlib import Path
from typing import Any

from tests.cli.running import answer, done


def test_the_demo_tells_of_five_agents_one_conflict_and_its_end() -> None:
    told = done("demo")
    for name in ("Rana", "Amir", "Elin", "Ravi", "Sol"):
        assert f"{name}, the " in told
    assert told.count("CONFLICT detected") == 1
    assert "the field sees the conflict as resolved" in told
    assert "ok: " in told


def test_the_demo_leaves_nothing_behind() -> None:
    done("demo", env={"FIELDSTONE_DB": "team.db"})
    assert list(Path.cwd().iterdir()) == []


def test_the_conflict_is_shown_to_those_whom_it_concerns_until_it_is_resolved() -> None:
    steps = told_steps()
    concerned = [step["agent"] for step in steps if step["operation"] == "ATTUNE" and step["answer"]["conflicts"]]
    assert concerned == ["sol", "amir"]
    resolved = next(step["answer"] for step in steps if step["operation"] == "CONFLICTS")
    assert resolved["status"] == "resolved"
    assert resolved["resolution"]["resolved_by"] == "field"


def test_the_decision_comes_first_when_the_engineer_asks_what_to_build() -> None:
    last = [step for step in told_steps() if step["operation"] == "ATTUNE"][-1]
    assert last["agent"] == "elin"
    assert last["answer"]["record"][0]["memory_unit"]["type"] == "decision"


def test_every_step_has_a_number_a_headline_and_the_fields_answer() -> None:
    steps = told_steps()
    assert [step["step"] for step in steps] == list(range(1, len(steps) + 1))
    assert all(step["headline"] and step["answer"] for step in steps)
    assert steps[-1]["answer"]["ok"] is True


def test_the_demo_can_be_told_again_on_the_same_store() -> None:
    first, second = told_steps("--db", "demo.db"), told_steps("--db", "demo.db")
    assert [plain(step) for step in first[:-2]] == [plain(step) for step in second[:-2]]
    status = answer("status", "--db", "demo.db")
    assert (status["agents"], status["units"], status["conflicts_open"]) == (5, 12, 0)


def told_steps(*more: str) -> list[Any]:
    return [json.loads(line) for line in done("demo", "--json", *more).splitlines()]


def plain(step: Any) -> tuple[Any, ...]:
    """What does not differ from one telling to the next: no ids."""
    shown = [scoped["memory_unit"]["content"] for scoped in step["answer"]["record"]] if is_attune(step) else None
    return step["operation"], step["headline"], step.get("said"), step.get("remark"), shown


def is_attune(step: Any) -> bool:
    return bool(step["operation"] == "ATTUNE")
