"""What is read out of a conversation as a decision or a finding, and what is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.core.transcripts import CanonicalMessage, Role, TextPart
from fieldstone.planes.findings import CANDIDATES_MAX, LABELLED, SAID, Candidate, candidates_in
from tests.planes.events import call, delta, finished, messages_from, reasoning, result, user
from tests.requirements import requirement

DECISIONS = (
    "We decided to keep SQLite for the ledger.",
    "We've finally decided against a second region.",
    "I have decided that the cache goes.",
    "The team agreed on a freeze from Friday.",
    "It was decided to ship on Monday.",
    "The decision is to wait for the audit.",
    "After a long talk the board chose the smaller office.",
    "We decided not to use Redis.",
    "No, we decided to keep it.",
    "We’ll go with PostgreSQL.",
    "Let's stick with the old name.",
    "- We settled on two replicas.",
    "2. You agreed to pay 40 euros a seat.",
)
FINDINGS = (
    "I found that the index is not used.",
    "We have confirmed that backups run at night.",
    "The logs show that 3 of 40 requests fail.",
    "The measurements showed that the disk is never idle.",
    "It turned out that the clock was an hour late.",
    "The slow part turned out to be the DNS lookup.",
    "The root cause is a missing lock.",
    "The cause of the outage was an expired certificate.",
    "The delay was caused by DNS.",
    "When I ran the tests, I found that two fail.",
)
NEITHER = (
    "Have we decided to keep SQLite?",
    "We have not decided to keep SQLite.",
    "We haven't decided on a name.",
    "If we decided to keep SQLite, we would need backups.",
    "Once we have agreed on a date, I will write to them.",
    "You should say whether you agreed to the terms.",
    "Nobody agreed to the plan.",
    "We probably decided to move too early.",
    "I found that it might be the cache.",
    "I did not find that the index helps.",
    "Perhaps the delay was caused by DNS.",
    'He said "we decided to leave".',
    "For example, we decided to leave.",
    "> We decided to keep SQLite.",
    "| We decided to keep SQLite. |",
    "```\nWe decided to keep SQLite.\n```",
    "We agreed on that.",
    "I like that you chose pottery for it.",
    "Tell me why we decided to leave.",
    "You have found that same bond.",
    "Let's keep going.",
    "I picked up a few recipes.",
    "It turned out that.",
    "Decision:",
    "Decision: none yet.",
    "Root cause: unknown so far.",
    "The decision tree has four leaves.",
    "The findings are in the annex.",
    "I'll use the search tool.",
    "The market grows.",
    f"We decided to keep {'very ' * 200}quiet.",
)


def message(text: str, role: Role = "assistant", id: str = "m1") -> CanonicalMessage:
    return CanonicalMessage(id, None, role, (TextPart(text),), "2026-01-01T00:00:00.000Z", {"schemaVersion": 1})


def found_in(text: str, role: Role = "assistant") -> list[tuple[str, str]]:
    return [(each.type, each.content) for each in candidates_in([message(text, role)])]


@requirement("planes:remembering:by-rule")
@pytest.mark.parametrize("sentence", DECISIONS)
def test_a_sentence_that_says_that_something_was_decided_is_a_decision(sentence: str) -> None:
    assert found_in(f"It rains. {sentence}" if sentence[0].isalpha() else sentence) == [
        ("decision", sentence.removeprefix("- ").removeprefix("2. "))
    ]


@requirement("planes:remembering:by-rule")
@pytest.mark.parametrize("sentence", FINDINGS)
def test_a_sentence_that_says_that_something_was_found_is_a_finding(sentence: str) -> None:
    assert found_in(f"It rains. {sentence} The sun shines.") == [("finding", sentence)]


@requirement("planes:remembering:by-rule")
@pytest.mark.parametrize("sentence", NEITHER)
@pytest.mark.parametrize("role", ["assistant", "user"])
def test_questions_conditions_guesses_denials_and_quotations_are_nothing(sentence: str, role: Role) -> None:
    assert found_in(sentence, role) == []


@pytest.mark.parametrize(
    ("text", "kind", "content"),
    [
        ("Decision: keep SQLite.", "decision", "Decision: keep SQLite."),
        ("**Decision:** Keep SQLite.", "decision", "Decision: Keep SQLite."),
        ("- __Root cause__: a lock.", "finding", "Root cause: a lock."),
        ("key finding: prices fell by 4%.", "finding", "Key finding: prices fell by 4%."),
    ],
)
def test_what_somebody_called_a_decision_or_a_finding_counts_for_more(text: str, kind: str, content: str) -> None:
    [found] = candidates_in([message(text)])
    assert (found.type, found.content, found.score) == (kind, content, LABELLED)
    assert SAID < LABELLED


def test_a_user_who_says_what_will_be_used_decides_and_a_model_tells_what_it_does_next() -> None:
    sentence = "Let's use PostgreSQL for the ledger."
    assert found_in(sentence, "user") == [("decision", sentence)]
    assert found_in(sentence, "assistant") == []


def test_what_a_model_thought_and_what_a_tool_answered_is_not_read() -> None:
    said = "We decided to leave."
    messages = messages_from(reasoning(said), call("c1", query=said), result("c1", said), delta("Done."), finished())
    assert {each.role for each in messages} == {"assistant", "tool"}
    assert candidates_in(messages) == []


@requirement("planes:remembering:by-rule")
def test_each_candidate_names_its_message_and_what_was_asked() -> None:
    messages = messages_from(
        user("Which database do we take? Take your time."),
        delta("I looked around. We decided to "),
        delta("keep SQLite."),
        finished(),
        user("We agreed to meet at noon."),
    )
    question, answer, last = messages
    assert candidates_in(messages) == [
        Candidate(
            "decision",
            "We decided to keep SQLite.",
            "Keep what was decided on: Which database do we take?",
            answer.id,
            "assistant",
            SAID,
        ),
        Candidate(
            "decision",
            "We agreed to meet at noon.",
            "Keep what was decided in a conversation.",
            last.id,
            "user",
            SAID,
        ),
    ]
    [again] = candidates_in([answer], asked_before=question)
    assert again.purpose == "Keep what was decided on: Which database do we take?"


def test_what_is_said_again_is_found_once_where_it_was_said_first() -> None:
    said = [message("We decided to leave.", id="m1"), message("As said:\n\nwe  decided to LEAVE.", id="m2")]
    assert [each.message_id for each in candidates_in(said)] == ["m1"]


def test_a_run_gives_no_more_than_so_many() -> None:
    listing = "\n\n".join(f"We decided to buy part {number}." for number in range(CANDIDATES_MAX + 50))
    found = candidates_in([message(listing)])
    assert [each.content for each in found] == [f"We decided to buy part {number}." for number in range(CANDIDATES_MAX)]


_pieces = st.sampled_from(
    [*DECISIONS, *FINDINGS, *NEITHER, "\n", " ", "Decision: ", "**", "we", "found that", "…", "é"]
)


@requirement("planes:remembering:by-rule")
@given(st.lists(_pieces, max_size=12).map("".join), st.sampled_from(["user", "assistant", "system", "tool"]))
def test_whatever_was_said_the_same_is_found_each_time_and_in_the_speakers_words(text: str, role: Role) -> None:
    found = candidates_in([message(text, role)])
    assert found == candidates_in([message(text, role)])
    assert role in ("user", "assistant") or not found
    for each in found:
        assert each.message_id == "m1"
        assert each.purpose.strip()
        assert each.content in text or each.score == LABELLED
        assert each.content.partition(": ")[2] in text
