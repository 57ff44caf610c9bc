"""The detector over the pairs of pairs.toml: how often it is right, by the kind of difference."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from fieldstone.detection import Claim, judge

PAIRS: dict[str, dict[str, list[list[str]]]] = tomllib.loads(
    (Path(__file__).parent / "pairs.toml").read_text(encoding="utf-8")
)
OPPOSED = sorted(kind for kind, lists in PAIRS.items() if "opposed" in lists)
AGREEING = sorted(kind for kind, lists in PAIRS.items() if "agreeing" in lists)

PRECISION_MIN = 0.97
RECALL_MIN = 0.92
# In any one kind: a rule that breaks shows even where the sum hides it.
KIND_RECALL_MIN = 0.85
KIND_FLAGGED_MAX = 0.03


def pairs(label: str) -> Iterator[list[str]]:
    for lists in PAIRS.values():
        yield from lists.get(label, [])


def flagged(older: str, newer: str) -> bool:
    return judge(Claim(newer, "finding", 2, 0.8), Claim(older, "finding", 1, 0.8)) is not None


def test_what_is_flagged_is_a_contradiction_and_most_contradictions_are_flagged() -> None:
    hits = sum(flagged(*pair) for pair in pairs("opposed"))
    false_alarms = sum(flagged(*pair) for pair in pairs("agreeing"))
    assert hits / (hits + false_alarms) >= PRECISION_MIN
    assert hits / sum(1 for _ in pairs("opposed")) >= RECALL_MIN


@pytest.mark.parametrize("kind", OPPOSED)
def test_contradictions_of_every_kind_are_flagged(kind: str) -> None:
    listed = PAIRS[kind]["opposed"]
    missed = [pair for pair in listed if not flagged(*pair)]
    assert len(missed) <= (1 - KIND_RECALL_MIN) * len(listed), missed


@pytest.mark.parametrize("kind", AGREEING)
def test_differences_of_every_kind_that_can_both_hold_are_not_flagged(kind: str) -> None:
    listed = PAIRS[kind]["agreeing"]
    wrong = [pair for pair in listed if flagged(*pair)]
    assert len(wrong) <= KIND_FLAGGED_MAX * len(listed), wrong


@pytest.mark.parametrize("label", ["opposed", "agreeing"])
def test_the_order_of_the_two_does_not_change_whether_they_contradict(label: str) -> None:
    assert [pair for pair in pairs(label) if flagged(*pair) != flagged(*pair[::-1])] == []


@pytest.mark.parametrize("label", ["opposed", "agreeing"])
def test_no_statement_contradicts_itself(label: str) -> None:
    assert [text for pair in pairs(label) for text in pair if flagged(text, text)] == []
