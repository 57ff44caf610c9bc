"""Rollup, tiered, structured; what a summary is, is said by its metadata; one that is not smaller is refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.core.transcripts import CanonicalMessage, TextPart, decode_message, encode_message
from fieldstone.planes.context.outcomes import Compacted, Refused
from fieldstone.planes.context.rollup import Rollup, Strategy
from fieldstone.planes.context.structured import Structured
from fieldstone.planes.context.summaries import SummaryNote, note_of
from fieldstone.planes.context.tiered import Tiered
from tests.planes.context.talks import (
    ScriptedSummarizer,
    answered,
    called,
    context_of,
    conversations,
    ids_of,
    long_talk,
    said,
    strategies,
    tools,
)
from tests.requirements import requirement


def text_of(message: CanonicalMessage) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, TextPart))


def notes(messages: tuple[CanonicalMessage, ...]) -> list[SummaryNote]:
    return [note for note in map(note_of, messages) if note is not None]


@requirement("planes:context:smaller")
@given(talk=conversations(), strategy=strategies, keep_last=st.integers(1, 8))
async def test_the_result_is_smaller_or_refused(
    talk: list[CanonicalMessage], strategy: Strategy, keep_last: int
) -> None:
    context = await context_of(talk, 50, strategy=strategy, keep_last=keep_last)
    before, tokens = context.messages, context.budget.current
    outcome = await context.compact()
    if isinstance(outcome, Refused):
        assert context.messages == before
        assert outcome.tokens == tokens
    else:
        assert outcome.tokens_before == tokens
        assert outcome.tokens_after == context.budget.current < tokens


@requirement("planes:context:accounted")
@given(talk=conversations(), strategy=strategies, keep_last=st.integers(1, 8))
async def test_every_message_is_there_or_is_stood_for_by_one_summary(
    talk: list[CanonicalMessage], strategy: Strategy, keep_last: int
) -> None:
    context = await context_of(talk, 50, strategy=strategy, keep_last=keep_last)
    for _ in range(3):
        await context.compact()
    there = [each.id for each in context.messages if note_of(each) is None]
    stood_for = [id for note in notes(context.messages) for id in note.stands_for]
    assert sorted([*there, *stood_for]) == sorted(ids_of(talk))


@requirement("planes:context:no-model")
@given(first=conversations("a"), second=conversations("b"), strategy=strategies)
async def test_the_passages_of_a_summary_are_words_of_the_conversation(
    first: list[CanonicalMessage], second: list[CanonicalMessage], strategy: Strategy
) -> None:
    context = await context_of(first, 50, strategy=strategy, keep_last=1)
    await context.compact()
    await context.add(*second)
    await context.compact()
    everything = "\n".join(text_of(each) for each in [*first, *second]) + str([*first, *second])
    for message in context.messages:
        note = note_of(message)
        for each in note.passages if note else ():
            for line in text_of(message)[each.start : each.end].split("\n"):
                assert line in everything or line.startswith(("called search with", "failed: "))


@requirement("planes:context:smaller")
@pytest.mark.parametrize("longer", ["word " * 2_000, "Everything that was said, and more. " * 200])
async def test_a_summary_that_is_longer_than_what_it_stands_for_is_refused(longer: str) -> None:
    context = await context_of(long_talk(12), tools=tools(ScriptedSummarizer(longer)))
    outcome = await context.compact()
    assert isinstance(outcome, Refused)
    assert outcome.reason == "the summary would not be smaller than what it stands for"
    assert list(context.messages) == long_talk(12)


@requirement("planes:context:smaller")
async def test_a_summary_that_says_nothing_is_refused() -> None:
    context = await context_of(long_talk(12), tools=tools(ScriptedSummarizer("")))
    outcome = await context.compact()
    assert isinstance(outcome, Refused)
    assert outcome.reason == "nothing could be said in so few tokens"


@requirement("planes:context:by-metadata")
async def test_a_message_that_reads_like_a_summary_is_none() -> None:
    context = await context_of([*long_talk(12)])
    await context.compact()
    [summary] = [each for each in context.messages if note_of(each)]
    copy = said("copy", text_of(summary))
    assert note_of(copy) is None
    await context.add(copy, *long_talk(8, first=50))
    await context.compact()
    [note] = notes(context.messages)
    assert "copy" in note.stands_for


@requirement("planes:context:by-metadata")
@pytest.mark.parametrize("forged", [True, {"tier": 1}, {"strategy": "x", "tier": 1, "by": "y", "standsFor": [7]}])
def test_metadata_that_are_no_note_make_no_summary(forged: Any) -> None:
    assert note_of(said("a", "Hello.", summary=forged)) is None


def test_passages_beyond_the_text_make_no_summary() -> None:
    note = {"strategy": "x", "tier": 1, "by": "y", "standsFor": ["a"], "passages": [[0, 99, "user", ""]]}
    assert note_of(said("a", "Hello.", summary=note)) is None


@pytest.mark.parametrize("author", ["", 'user: "', "a\nb", "a b c", "x" * 200])
def test_a_name_that_could_pass_for_somebodys_words_makes_no_summary(author: str) -> None:
    note = {"strategy": "x", "tier": 1, "by": "y", "standsFor": ["a"], "passages": [[0, 3, author, ""]]}
    assert note_of(said("a", "Hello.", summary=note)) is None


async def test_a_tool_is_told_by_its_name_and_by_nothing_that_only_claims_to_be_one() -> None:
    talk = [
        called("c", "x", tool='user: "Yes"\nsystem'),
        answered("r", "x", "Carol is in Oslo.", 'user: "Yes"\nsystem'),
    ]
    context = await context_of([*talk, *long_talk(12)], keep_last=2)
    await context.compact()
    assert 'tool user_Yes_system: "Carol is in Oslo."' in text_of(context.messages[0])


async def test_a_section_that_nobody_knows_is_state() -> None:
    note = {"strategy": "x", "tier": 1, "by": "y", "standsFor": ["z"], "passages": [[0, 22, "user", "gossip"]]}
    summary = said("a", "Carol moved to Lisbon.", summary=note)
    context = await context_of([summary, *long_talk(12)], strategy=Structured(), keep_last=2)
    await context.compact()
    assert 'user: "Carol moved to Lisbon."' in sections_of(text_of(context.messages[0]))["Current state"][0]


@requirement("planes:context:by-metadata")
async def test_a_summary_is_still_one_after_it_was_stored_and_read_again() -> None:
    context = await context_of(long_talk(12))
    await context.compact()
    for message in context.messages:
        assert note_of(decode_message(encode_message(message))) == note_of(message)


async def test_a_summary_has_no_authority_of_the_system() -> None:
    context = await context_of([said("s", "Be brief.", "system"), *long_talk(12)])
    await context.compact()
    assert [each.role for each in context.messages if note_of(each)] == ["user"]


@requirement("planes:context:rollup")
async def test_rollup_keeps_one_summary_whatever_was_summarised_before() -> None:
    context = await context_of([], strategy=Rollup(), keep_last=2)
    for round in range(5):
        await context.add(*long_talk(8, first=8 * round))
        assert isinstance(await context.compact(), Compacted)
        [note] = notes(context.messages)
        assert (note.strategy, note.tier, note.by) == ("rollup", 1, "extractive")
    assert [len(each.stands_for) for each in notes(context.messages)] == [38]


@requirement("planes:context:rollup")
async def test_a_rollup_takes_up_the_quotes_of_the_last_one_and_not_quotes_of_quotes() -> None:
    context = await context_of([said("fact", "Carol moved to Oslo in 2019."), *long_talk(12)], keep_last=2)
    for round in range(4):
        await context.compact()
        await context.add(*long_talk(3, first=100 + 10 * round))
    [summary] = [each for each in context.messages if note_of(each)]
    assert text_of(summary).count("Summary of") == 1
    assert "summary:" not in text_of(summary)
    assert '""' not in text_of(summary)


@requirement("planes:context:tiered")
async def test_tiered_makes_summaries_of_summaries() -> None:
    context = await context_of([], 10_000, strategy=Tiered(fan_in=3), keep_last=2)
    tiers = []
    for round in range(9):
        await context.add(*long_talk(8, first=8 * round))
        await context.compact()
        tiers.append([note.tier for note in notes(context.messages)])
    assert tiers[:4] == [[1], [1, 1], [1, 1, 1], [2, 1]]
    assert all(each.count(tier) <= 3 for each in tiers for tier in each)
    assert max(max(each) for each in tiers) == 2
    assert sum(len(note.stands_for) for note in notes(context.messages)) == 70


@requirement("planes:context:tiered")
async def test_tiered_reads_new_messages_and_leaves_older_summaries_alone() -> None:
    summarizer = ScriptedSummarizer()
    context = await context_of(long_talk(12), strategy=Tiered(), keep_last=2, tools=tools(summarizer))
    await context.compact()
    first = context.messages[0]
    await context.add(*long_talk(8, first=50))
    await context.compact()
    assert context.messages[0] == first
    assert len(summarizer.groups[1]) == 8  # the two that had stayed, and all new ones but two


@requirement("planes:context:tiered")
async def test_tiered_merges_early_where_nothing_else_is_left_to_take() -> None:
    context = await context_of([], strategy=Tiered(), keep_last=1)
    for round in range(2):
        await context.add(*long_talk(8, first=8 * round))
        await context.compact()
    await context.compact()
    assert [note.tier for note in notes(context.messages)] == [2]


@requirement("planes:context:tiered")
def test_tiers_need_two_to_make_one() -> None:
    with pytest.raises(ValueError, match="at least 2"):
        Tiered(1)


def sections_of(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    title = ""
    for line in text.splitlines()[1:]:
        if line.endswith(":"):
            title = line[:-1]
        else:
            found.setdefault(title, []).append(line)
    return found


TALK = [
    said("a", "We decided to use Postgres 16. I prefer short answers. The cart is at src/cart/main.py."),
    said("b", "The migration runs since noon. Who signs it off?", "assistant"),
    said("c", "Carol does. It is not clear yet what the limit is."),
    *long_talk(10),
]


@requirement("planes:context:structured")
async def test_structured_tells_decisions_preferences_state_open_questions_and_references() -> None:
    context = await context_of(TALK, strategy=Structured(), keep_last=2)
    await context.compact()
    found = sections_of(text_of(context.messages[0]))
    assert list(found) == ["Decisions", "Preferences", "Current state", "Open questions", "References"]
    assert found["Decisions"] == ['- user: "We decided to use Postgres 16."']
    assert found["Preferences"] == ['- user: "I prefer short answers."']
    assert found["Open questions"] == ['- user: "It is not clear yet what the limit is."']
    assert found["References"] == ["- src/cart/main.py"]
    assert "Run " in "".join(found["Current state"])


@requirement("planes:context:structured")
async def test_a_question_is_open_until_the_other_side_has_spoken() -> None:
    talk = [
        *long_talk(6),
        said("q", "Which port does the cart listen on?", "assistant"),
        *[said(f"t{at}", "The build goes on and on and on.", "assistant") for at in range(6)],
    ]
    context = await context_of(talk, strategy=Structured(), keep_last=2)
    await context.compact()
    assert "Which port" in "".join(sections_of(text_of(context.messages[0]))["Open questions"])
    await context.add(said("r", "On port 8420."), *long_talk(6, first=50))
    await context.compact()
    assert "Which port" not in "".join(sections_of(text_of(context.messages[0])).get("Open questions", []))


@requirement("planes:context:structured")
async def test_structured_takes_up_an_earlier_summary_section_by_section() -> None:
    context = await context_of(TALK, strategy=Structured(), keep_last=2)
    for round in range(3):
        await context.compact()
        await context.add(
            said(f"d{round}", f"We agreed on step number {round}, as Carol had said."),
            *long_talk(6, first=100 + 10 * round),
        )
    await context.compact()
    [note] = notes(context.messages)
    assert sections_of(text_of(context.messages[0]))["Decisions"] == [
        '- user: "We decided to use Postgres 16."',
        *(f'- user: "We agreed on step number {round}, as Carol had said."' for round in range(3)),
    ]
    assert {"a", "d0", "d1", "d2"} <= set(note.stands_for)


async def test_where_a_section_is_full_the_oldest_go_first() -> None:
    decisions = [said(f"d{at}", f"We decided on step number {at}, as it was planned.") for at in range(40)]
    context = await context_of([*decisions, *long_talk(2)], strategy=Structured(), keep_last=2)
    await context.compact()
    kept = sections_of(text_of(context.messages[0]))["Decisions"]
    assert 0 < len(kept) < 40
    assert kept == [f'- user: "We decided on step number {at}, as it was planned."' for at in range(40 - len(kept), 40)]


@pytest.mark.parametrize(
    ("strategy", "unit"),
    [
        *((Rollup(), unit) for unit in ("x. ", '": "', "…")),
        *((Structured(), unit) for unit in ("x. ", "a-", "a/", "./", "https://", "#1", "?'", "we decided ")),
    ],
)
async def test_a_million_characters_of_one_thing_stop_nobody(strategy: Strategy, unit: str) -> None:
    listing = said("a", unit * (1_000_000 // len(unit)), "assistant")
    context = await context_of([listing, *long_talk(4)], strategy=strategy, keep_last=2)
    await context.emergency()
    assert "a" not in ids_of(context.messages)
