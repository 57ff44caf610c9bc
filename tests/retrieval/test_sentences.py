"""A text is cut where its sentences end, in whatever script, and nowhere else."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.retrieval.sentences import sentences_of

PARTS: Final = [
    "deploy",
    "3.4.",
    "e.g.",
    "Friday,",
    "[REDACTED:a. B]",
    "記憶。",
    "x\n",
    "- item\n",
    "```\ncode. More\n```\n",
]

texts = st.lists(st.sampled_from(PARTS)).map(" ".join) | st.text(max_size=200)
SENTENCES: Final = [
    ["It rained.", "We left!", "Why?", "Nobody knows…"],
    ["Dr. Smith met J. R. Doe, e.g. at 3.4 p.m. on No. 5.", "He left."],
    ["See https://example.com/a.b?c=d. and go.", "Version 1.2.3 is out."],
    ['He said "Stop."', "Then he left."],
    ["It cost approx. 5 coins in the U.S. last year."],
    ["In 2025.", "Not in 2024."],
    ["هل هذا صحيح؟", "نعم."],
    ["यह सच है।", "ठीक है।"],
    ["Key [REDACTED:a. B] was used.", "It is gone."],
]
LINES: Final = [
    ["Next:", "- call Alice", "- write it down", "1. First thing", "2. second"],
    ["A line that an editor has wrapped because it had become too long\nfor the window.", "Next one."],
    ["Run this.", "```\na = 1. B\n\nc = 2\n```", "Then that."],
    ["# Title", "| a | b |", "| 1 | 2 |", "> said by Alice"],
]


def split(text: str) -> list[str]:
    return [sentence.text for sentence in sentences_of(text)]


@given(text=texts)
def test_sentences_are_the_text_without_the_space_between_them(text: str) -> None:
    found = list(sentences_of(text))
    assert [text[sentence.start : sentence.end] for sentence in found] == [sentence.text for sentence in found]
    assert "".join("".join(sentence.text.split()) for sentence in found) == "".join(text.split())


@pytest.mark.parametrize("sentences", SENTENCES)
def test_a_text_is_split_where_its_sentences_end(sentences: list[str]) -> None:
    assert split(" ".join(sentences)) == sentences


@pytest.mark.parametrize("lines", LINES)
def test_lists_tables_and_code_are_split_at_their_lines_and_wrapped_lines_are_not(lines: list[str]) -> None:
    assert split("\n".join(lines)) == lines


def test_other_scripts_need_no_space_between_sentences_and_blank_text_has_none() -> None:
    assert split("第一に記憶。第二に力！そうですか？") == ["第一に記憶。", "第二に力！", "そうですか？"]
    assert split("One paragraph\n\nAnother one") == ["One paragraph", "Another one"]
    assert split(" \n ") == split("") == []
