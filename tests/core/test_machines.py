"""The state machines of §4, as tables."""

from itertools import product
from typing import get_args

import pytest

from fieldstone.core import agents, conflicts
from fieldstone.core.errors import InvalidTransition
from fieldstone.core.vocabulary import AgentStatus, ConflictStatus, ConflictType

AGENT_MOVES: set[tuple[AgentStatus, AgentStatus]] = {
    ("idle", "working"),
    ("working", "idle"),
    ("working", "waiting"),
    ("waiting", "working"),
    *((status, "offline") for status in get_args(AgentStatus) if status != "offline"),
    *((status, "failed") for status in ("idle", "working", "waiting")),
    ("offline", "idle"),  # by registering again
    ("failed", "idle"),
}
CONFLICT_MOVES: set[tuple[ConflictStatus, ConflictStatus]] = {
    ("detected", "resolving"),
    ("detected", "escalated"),
    ("resolving", "resolved"),
    ("resolving", "escalated"),
    ("escalated", "resolved"),
}


@pytest.mark.parametrize(("now", "then"), list(product(get_args(AgentStatus), repeat=2)))
def test_an_agent_makes_the_moves_of_the_contract_and_no_others(now: AgentStatus, then: AgentStatus) -> None:
    if (now, then) in AGENT_MOVES:
        agents.check_move("ada", now, then)
    else:
        with pytest.raises(InvalidTransition, match=f"ada is {now} and cannot become {then}"):
            agents.check_move("ada", now, then)


@pytest.mark.parametrize(("now", "then"), list(product(get_args(ConflictStatus), repeat=2)))
def test_a_conflict_makes_the_moves_of_the_contract_and_no_others(now: ConflictStatus, then: ConflictStatus) -> None:
    if (now, then) in CONFLICT_MOVES:
        conflicts.check_move("conf-1", now, then)
    else:
        with pytest.raises(InvalidTransition, match=f"conf-1 is {now} and cannot become {then}"):
            conflicts.check_move("conf-1", now, then)


@pytest.mark.parametrize(
    ("status", "active"),
    [("idle", True), ("working", True), ("waiting", True), ("offline", False), ("failed", False)],
)
def test_an_agent_that_is_offline_or_failed_takes_no_part(status: AgentStatus, active: bool) -> None:
    facts = agents.AgentFacts("ada", 1, 2, status, 4, "researcher", ())
    assert facts.active is active


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("finding", "finding", "factual"),
        ("observation", "correction", "factual"),
        ("finding", "contradiction", "factual"),
        ("assumption", "finding", "interpretive"),
        ("question", "synthesis", "interpretive"),
        ("decision", "finding", "strategic"),
        ("intention", "assumption", "strategic"),
        ("constraint", "decision", "priority"),
        ("human_directive", "human_directive", "priority"),
    ],
)
def test_a_conflict_is_classified_by_the_kinds_that_disagree_whichever_came_first(
    one: str, other: str, expected: ConflictType
) -> None:
    assert conflicts.classify(one, other) == conflicts.classify(other, one) == expected
