"""What a score is made of, as bars."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from fieldstone.cli.explain import EMPTY, FULL, LONGEST_BAR, SHORTEST_BAR, Part, bars, parts_of
from fieldstone.retrieval.score import WEIGHTS

SHARES = st.floats(0, 1)
FACTORS = st.dictionaries(st.sampled_from(sorted(WEIGHTS)), SHARES, min_size=1)
PARTS = st.lists(st.builds(Part, st.sampled_from(sorted(WEIGHTS)), SHARES, st.none() | SHARES), min_size=1)


def test_what_decided_most_comes_first_with_its_share() -> None:
    parts = parts_of(0.52, {"recency": 1.0, "lexical": 0.4}, {"recency": 1, "lexical": 4, "task": 9})
    assert parts == [Part("lexical", 0.4, 0.8), Part("recency", 1.0, 0.2)]


def test_weights_that_do_not_make_up_the_score_are_not_shown() -> None:
    parts = parts_of(0.9, {"recency": 1.0, "lexical": 0.4}, {"recency": 1, "lexical": 4})
    assert [part.share for part in parts] == [None, None]


def test_a_unit_without_factors_has_no_parts() -> None:
    assert parts_of(0.9, UNSET, WEIGHTS) == []


@given(FACTORS)
def test_the_parts_make_up_the_score(factors: dict[str, float]) -> None:
    whole = sum(WEIGHTS[name] for name in factors)
    score = sum(value * WEIGHTS[name] / whole for name, value in factors.items())
    parts = parts_of(round(score, 6), {name: round(value, 4) for name, value in factors.items()}, WEIGHTS)
    assert sum(part.worth for part in parts) == pytest.approx(score, abs=0.001)
    assert [part.worth for part in parts] == sorted((part.worth for part in parts), reverse=True)


def test_a_line_has_name_bar_value_and_share() -> None:
    assert bars([Part("lexical", 0.5, 0.4), Part("task", 1.0, 0.05)], 41) == [
        f"lexical {FULL * 7}{EMPTY * 7} 0.50 ×  40% = 0.20",
        f"task    {FULL * 14} 1.00 ×   5% = 0.05",
    ]
    assert bars([Part("task", 0.0, None)], 20) == [f"task {EMPTY * 10} 0.00"]


@given(PARTS, st.integers(40, 300))
def test_bars_fit_the_width_and_stand_under_each_other(parts: list[Part], width: int) -> None:
    cells = [sum(map(line.count, (FULL, EMPTY))) for line in bars(parts, width)]
    assert len(set(cells)) == 1
    assert SHORTEST_BAR <= cells[0] <= LONGEST_BAR
    assert max(map(len, bars(parts, width))) <= width


def test_a_terminal_that_knows_no_blocks_gets_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    class Latin:
        encoding = "latin-1"

    monkeypatch.setattr(sys, "stdout", Latin())
    assert bars([Part("task", 0.5, None)], 20) == ["task #####..... 0.50"]
