"""One budget for several groups goes where there is something to tell."""

from itertools import groupby
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from fieldstone.compaction.extractive import distil
from fieldstone.compaction.shares import share_out
from fieldstone.ports.summarizer import Original
from fieldstone.testing.tokens import WordCounter
from tests.compaction.groups import groups, talk

WORDS: Final = WordCounter()


@given(group=groups(), most_tokens=st.integers(0, 300))
def test_the_shares_are_together_no_more_than_the_budget_unless_the_essentials_are(
    group: list[Original], most_tokens: int
) -> None:
    parted = by_author(group)
    shares = share_out(parted, most_tokens, WORDS)
    assert len(shares) == len(parted)
    essentials = share_out(parted, 0, WORDS)
    assert sum(shares) <= max(most_tokens, sum(essentials))
    assert all(share >= essential for share, essential in zip(shares, essentials, strict=True))


@given(group=groups(), most_tokens=st.integers(0, 300))
def test_a_share_holds_the_essentials_of_its_group(group: list[Original], most_tokens: int) -> None:
    parted = by_author(group)
    for each, share in zip(parted, share_out(parted, most_tokens, WORDS), strict=True):
        assert not distil(each, share, WORDS).over_budget


@given(group=groups(), most_tokens=st.integers(0, 300))
def test_the_order_in_which_the_groups_are_given_does_not_matter(group: list[Original], most_tokens: int) -> None:
    parted = by_author(group)
    turned = [each[::-1] for each in parted[::-1]]
    assert share_out(turned, most_tokens, WORDS) == share_out(parted, most_tokens, WORDS)[::-1]


def test_a_group_with_facts_gets_more_than_one_with_small_talk() -> None:
    facts = talk("Carol joined Acme in 2019.", "Dave moved to Oslo last May.")
    small_talk = [
        Original(f"chat-{epoch}", epoch, "observation", "bob", "Good, good. So good to see you here!")
        for epoch in range(3, 9)
    ]
    told, chatted = share_out([facts, small_talk], 24, WORDS)
    assert told > chatted


def test_every_group_can_say_something_as_long_as_there_is_room() -> None:
    facts = talk(*(f"Carol met {name} in 2019." for name in ("Dave", "Erin", "Frank", "Grace", "Heidi")))
    small_talk = [Original("chat", 9, "observation", "bob", "So good to see you here!")]
    groups = [facts, small_talk]
    for group, share in zip(groups, share_out(groups, 24, WORDS), strict=True):
        assert distil(group, share, WORDS).text


def test_no_groups_get_no_shares() -> None:
    assert share_out([], 100, WORDS) == []


def by_author(group: list[Original]) -> list[list[Original]]:
    ordered = sorted(group, key=lambda original: original.author)
    return [list(each) for _, each in groupby(ordered, key=lambda original: original.author)]
