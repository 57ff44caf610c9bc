"""The summariser without a model keeps what must be kept, and of the rest what tells most."""

import os
import re
import subprocess
import sys
from random import Random
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.backends.tokens import Cl100kCounter
from fieldstone.compaction import pieces
from fieldstone.compaction.extractive import distil
from fieldstone.compaction.pieces import STATEMENT_CHARS, pieces_of
from fieldstone.ports.summarizer import Distillate, Original
from fieldstone.retrieval.sentences import MARKER
from fieldstone.testing.tokens import WordCounter
from tests.compaction.groups import groups, talk, texts_of

WORDS: Final = WordCounter()
TOKENS: Final = Cl100kCounter()
budgets = st.integers(0, 200)

CHAT: Final = talk(
    ("alice", "Hey there! Good to see you!"),
    ("bob", "Good to see you too! What have you been up to?"),
    ("alice", "I moved to Lisbon last month, with three cats."),
    ("bob", "Oh wow, that is so great! That must feel so good."),
    ("alice", "It does feel good! Yes, it is great."),
    ("bob", "Great, great. See you!"),
)


@given(group=groups(), most_tokens=budgets)
def test_it_stays_within_the_budget_or_says_that_the_essentials_are_more(
    group: list[Original], most_tokens: int
) -> None:
    for counter in (WORDS, TOKENS):
        made = distil(group, most_tokens, counter)
        assert made.tokens == counter.count(made.text)
        assert made.over_budget == (made.tokens > most_tokens)
        assert (made.by, made.fell_back) == ("extractive", None)


@given(group=groups(), most_tokens=budgets)
def test_nothing_found_in_a_group_is_remembered_once_it_is_distilled(group: list[Original], most_tokens: int) -> None:
    pieces_of(group)
    distil(group, most_tokens, WORDS)
    assert not any(original in pieces._found for original in group)


@given(group=groups(), most_tokens=budgets)
def test_every_quote_stands_word_for_word_in_its_original(group: list[Original], most_tokens: int) -> None:
    made, texts = distil(group, most_tokens, WORDS), texts_of(group)
    for quote in made.quotes:
        assert quote.start < quote.end
        quoted = made.text[quote.at : quote.at + quote.end - quote.start]
        assert quoted == texts[quote.unit_id][quote.start : quote.end]


@given(group=groups(), most_tokens=budgets)
def test_between_the_quotes_there_are_only_marks_and_who_said_it(group: list[Original], most_tokens: int) -> None:
    labels = r'(?:alice|bob|agent-7)(?: \((?:contested )?\w+\))?: "'
    assert re.fullmatch(rf'(?:{labels}Q(?: … Q)*(?:" "Q(?: … Q)*)*"\n?)*', frame(distil(group, most_tokens, WORDS)))


@given(group=groups(), most_tokens=budgets)
def test_quotes_come_in_the_order_in_which_they_were_said(group: list[Original], most_tokens: int) -> None:
    epochs = {original.unit_id: original.epoch for original in group}
    places = [(epochs[q.unit_id], q.unit_id, q.start) for q in distil(group, most_tokens, WORDS).quotes]
    assert places == sorted(places)


@given(group=groups(), most_tokens=budgets)
def test_every_redaction_marker_of_an_original_stands_in_the_summary(group: list[Original], most_tokens: int) -> None:
    made = distil(group, most_tokens, WORDS)
    for original in group:
        quoted = [original.text[q.start : q.end] for q in made.quotes if q.unit_id == original.unit_id]
        assert MARKER.findall(original.text) == MARKER.findall(" ".join(quoted))


@given(group=groups(), most_tokens=budgets)
def test_what_binds_somebody_is_quoted_whole(group: list[Original], most_tokens: int) -> None:
    made = distil(group, most_tokens, WORDS)
    quoted = {(quote.unit_id, quote.end - quote.start) for quote in made.quotes}
    for original in group:
        if original.verbatim and original.text.strip():
            assert (original.unit_id, len(original.text.strip())) in quoted


@given(group=groups(), most_tokens=budgets, chance=st.randoms(use_true_random=False))
def test_the_order_in_which_the_group_is_given_does_not_matter(
    group: list[Original], most_tokens: int, chance: Random
) -> None:
    shuffled = chance.sample(group, len(group))
    assert distil(shuffled, most_tokens, WORDS) == distil(group, most_tokens, WORDS)


@given(group=groups())
def test_a_group_that_fits_is_quoted_whole(group: list[Original]) -> None:
    made = distil(group, 100_000, WORDS)
    told = {original.unit_id: original.text.strip() for original in group if original.text.strip()}
    assert {quote.unit_id: made.text[quote.at :][: quote.end - quote.start] for quote in made.quotes} == told


def test_the_same_group_gives_the_same_bytes_in_every_process() -> None:
    program = (
        "from fieldstone.compaction.extractive import distil\n"
        "from fieldstone.testing.tokens import WordCounter\n"
        "from tests.compaction.groups import PHRASES, talk\n"
        "said = [(f'agent-{n % 5}', ' '.join(PHRASES[n % 13 :]) + f' Run {n} of Carol.') for n in range(60)]\n"
        "print(distil(talk(*said), 400, WordCounter()))\n"
    )
    seeds = ("1", "2")
    runs = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        for seed in seeds
    ]
    assert runs[0].stdout == runs[1].stdout != ""


def test_names_figures_dates_and_answers_are_kept_and_small_talk_is_not() -> None:
    made = distil(CHAT, 20, WORDS)
    assert made.text == 'alice: "I moved to Lisbon last month, with three cats."'


def test_what_is_essential_says_what_it_is_and_shares_no_line_with_the_rest() -> None:
    group = [
        Original("a", 1, "decision", "planner", "We ship on Friday."),
        Original("b", 2, "finding", "tester", "The build is green.", contested=True),
        Original("c", 3, "finding", "tester", "The build took 9 minutes."),
        Original("d", 4, "question", "tester", "Who signs?"),
    ]
    assert distil(group, 1_000, WORDS).text == (
        'planner (decision): "We ship on Friday."\n'
        'tester (contested finding): "The build is green."\n'
        'tester: "The build took 9 minutes."\n'
        'tester (question): "Who signs?"'
    )


def test_what_one_agent_said_before_another_spoke_stands_on_one_line() -> None:
    group = talk(("alice", "One."), ("alice", "Two."), ("bob", "Three."), ("alice", "Four."))
    assert distil(group, 1_000, WORDS).text == 'alice: "One." "Two."\nbob: "Three."\nalice: "Four."'


def test_a_quote_that_would_part_two_others_is_counted_with_the_label_that_it_costs() -> None:
    group = talk(("alice", "Carol joined Acme."), ("bob", "Hello"), ("alice", "Dave left Acme."))
    for most_tokens in range(40):
        assert distil(group, most_tokens, WORDS).tokens <= most_tokens
    assert distil(group, 19, WORDS).text == 'alice: "Carol joined Acme." "Dave left Acme."'


def test_essentials_win_over_the_budget_and_nothing_else_is_there() -> None:
    group = [
        Original("a", 1, "constraint", "planner", "Never deploy on a Friday, whatever anybody says."),
        Original("b", 2, "finding", "tester", "Carol counted 42 errors on 2025-06-15."),
    ]
    made = distil(group, 3, WORDS)
    assert made.over_budget
    assert [quote.unit_id for quote in made.quotes] == ["a"]


def test_of_a_long_text_the_telling_sentences_are_quoted_and_neighbours_stay_as_they_stood() -> None:
    filler = "It was a day like any other day and there was nothing at all to be said of it. "
    text = f"{filler * 4}Carol joined Acme in 2019.  Dave left it in 2021. {filler * 4}The root cause was the disk."
    assert len(text) > STATEMENT_CHARS
    [made] = {distil(talk(text), most_tokens, WORDS).text for most_tokens in (28, 29)}
    assert made == 'alice: "Carol joined Acme in 2019.  Dave left it in 2021. … The root cause was the disk."'


def test_a_short_statement_is_never_cut() -> None:
    group = talk("Dave left Acme in 2021. That is not true, though.", "Nothing else was said on that day at all.")
    for most_tokens in range(40):
        made = distil(group, most_tokens, WORDS)
        assert ("Dave left" in made.text) == ("not true" in made.text)


def test_a_report_that_comes_every_hour_does_not_fill_the_summary() -> None:
    hours = [f"Backup number {hour} of the cluster finished." for hour in range(1_000, 1_060)]
    group = talk(*hours, "Carol found that the index was corrupt.", "The license server moved to Oslo.")
    made = distil(group, 40, WORDS)
    assert "Carol found" in made.text
    assert "Oslo" in made.text


@pytest.mark.parametrize("text", ["", " ", "\n \u2003"])
def test_nothing_said_gives_nothing(text: str) -> None:
    assert distil([], 10, WORDS) == distil(talk(text, text), 10, WORDS) == Distillate("", (), 0, "extractive")


def test_where_nothing_is_short_enough_the_text_is_empty() -> None:
    assert distil(talk("word " * 500), 10, WORDS) == Distillate("", (), 0, "extractive")


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("第一に記憶が大切です。東京で2025年に会いました。" * 30 + "会議は6月15日に大阪で開かれました。", "大阪"),
        ("Погода была хорошая, и все были рады. " * 30 + "Анна переехала в Киев в 2019 году.", "Анна переехала в Киев"),
        ("هل هذا صحيح؟ " * 60 + "اجتمعنا يوم 15 في القاهرة.", "15"),
    ],
)
def test_other_alphabets_are_read_as_well(said: str, kept: str) -> None:
    made = distil(talk(said), 60, TOKENS)
    assert kept in made.text
    assert made.tokens <= 60


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        " ",
        ".",
        ". ",
        "\n",
        "x\n",
        ", ",
        "```\n",
        "[REDACTED:",
        "記、",
        '."',
        "A",
        "_a",
        "- ",
        "1-",
        "?'",
        "Ab. ",
        "no sentence at all ",
    ],
)
def test_a_million_characters_of_one_thing_stop_nobody(unit: str) -> None:
    made = distil(talk(unit * (1_000_000 // len(unit)) + "x"), 64, WORDS)
    assert made.tokens <= 64


def test_a_million_characters_of_figures_stop_nobody() -> None:
    made = distil(talk(" ".join(str(number) for number in range(150_000)), "Carol moved to Oslo."), 64, WORDS)
    assert made.text == 'alice: "Carol moved to Oslo."'


def test_a_million_characters_of_markers_are_all_kept() -> None:
    marked = "[REDACTED:key] was here.\n" * 40_000
    made = distil(talk(marked, "Something else."), 64, WORDS)
    assert made.over_budget
    assert made.text.count("[REDACTED:key]") == 40_000


def frame(made: Distillate) -> str:
    """The text with every quote as a Q."""
    text = made.text
    for quote in reversed(made.quotes):
        text = text[: quote.at] + "Q" + text[quote.at + quote.end - quote.start :]
    return text
