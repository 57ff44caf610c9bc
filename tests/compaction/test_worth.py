"""What tells more for its tokens is offered first."""

from collections.abc import Sequence
from typing import Final

import pytest

from fieldstone.compaction.pieces import SENTENCES_MAX, pieces_of
from fieldstone.compaction.worth import offers
from fieldstone.ports.summarizer import Original
from fieldstone.testing.tokens import WordCounter
from tests.compaction.groups import talk

WORDS: Final = WordCounter()
SAID: Final = ("people talk about these little things", "people talk these little things about")
NEW: Final = "people parse about these little things"


@pytest.mark.parametrize(
    "telling",
    [
        "people talk about Carol little things",  # a name
        "people talk about 42 little things",  # a figure
        "people talk about these things Monday",  # a date
        "people agreed about these little things",  # a decision
    ],
)
def test_a_fact_tells_more_than_a_new_word_and_that_more_than_what_was_said(telling: str) -> None:
    assert order(talk(*SAID, NEW, telling, SAID[1]))[:2] == [telling, NEW]


def test_who_was_asked_by_another_tells_more() -> None:
    plain, answer = "these little things are nice things", "nice things are these little things"
    group = talk(("bob", "nice little things"), ("alice", plain), ("bob", "nice things?"), ("alice", answer))
    assert order(group)[0] == answer
    alone = talk(("bob", "nice little things"), ("alice", plain), ("alice", "nice things?"), ("alice", answer))
    assert order(alone)[0] != answer


def test_the_first_mention_tells_more_than_the_second() -> None:
    group = talk("the parser reads the grammar", "the grammar reads the parser")
    assert order(group) == ["the parser reads the grammar"]


def test_those_who_talk_are_no_names_to_each_other() -> None:
    group = talk(("alice", "so I asked Bob for it"), ("bob", "so I asked Carol for it"))
    assert order(group)[0] == "so I asked Carol for it"


def test_a_table_of_figures_is_not_the_whole_story() -> None:
    table = " ".join(str(number) for number in range(1_000, 1_080))
    group = talk(table, "Carol moved to Oslo")
    assert order(group)[0] == "Carol moved to Oslo"


def test_of_the_same_words_with_other_figures_each_tells_less() -> None:
    group = talk(*(f"backup {number} is done" for number in range(100, 104)))
    worths = [offer.worth for offer in offers(group, pieces_of(group), 100, WORDS)]
    assert worths == sorted(worths, reverse=True)
    assert worths[0] > 2 * worths[2]


def test_essentials_and_what_tells_nothing_or_is_too_long_are_not_offered() -> None:
    group = [
        Original("a", 1, "decision", "alice", "Carol goes."),
        Original("b", 2, "finding", "bob", "We are here."),
        Original("c", 3, "finding", "bob", "word " * 50),
        Original("d", 4, "finding", "bob", "The key [REDACTED:k] is gone."),
    ]
    assert order(group, room_tokens=20) == []


def test_of_a_text_without_end_so_many_sentences_are_read_and_all_with_markers() -> None:
    pieces = pieces_of(talk("No.\n" * (SENTENCES_MAX + 5) + "A [REDACTED:k].\n"))
    assert len(pieces) == SENTENCES_MAX + 1
    assert [piece.essential for piece in pieces[-2:]] == [False, True]


def order(group: Sequence[Original], room_tokens: int = 1_000) -> list[str]:
    return [
        group[offer.span.original].text[offer.span.start : offer.span.end]
        for offer in offers(group, pieces_of(group), room_tokens, WORDS)
    ]
