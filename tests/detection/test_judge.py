"""What a verdict says, and what stands above the words of the two statements."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.core.vocabulary import MEMORY_TYPES, DetectedBy
from fieldstone.detection import Claim, judge, prepare
from fieldstone.detection.judge import ESTABLISHED_SCORE_MIN, SIMILARITY_MIN
from fieldstone.detection.statements import SENTENCES_MAX, TEXT_CHARS_MAX

OLDER = Claim("The API rate limit is 100 requests per second.", "finding", 1, 0.9)
NEWER = Claim("The API rate limit is 50 requests per second.", "finding", 2, 0.9)

# Parts that make statements, values and what lies between them; joined at random they give much that is almost a claim.
FRAGMENTS = (
    *("The gateway", "the cache", "Ana", "a man", "it", "service billing", "web-01", "src/app.py", "OPS-12"),
    *(" is ", " uses ", " has ", " runs on ", " was ", " will be ", " lives in ", " not ", " never ", "n't ", " no "),
    *("open", "closed", "PostgreSQL 14", "MySQL", "3 replicas", "at least 5 GB", "May 3", "on Monday", "at 10:00"),
    *(
        "the first",
        "10%",
        "$40",
        "1.2.3",
        "half of the",
        "without",
        "both",
        ", ",
        " and ",
        ". ",
        "? ",
        "\n",
        "; ",
        "’s",
        "-",
    ),
)
TEXTS = st.one_of(st.lists(st.sampled_from(FRAGMENTS), max_size=12).map("".join), st.text(max_size=60))
CLAIMS = st.builds(
    Claim,
    text=TEXTS,
    type=st.sampled_from(MEMORY_TYPES),
    epoch=st.integers(1, 9),
    score=st.none() | st.floats(0, 1),
    agent=st.integers(0, 2),
    session=st.none() | st.integers(1, 2),
)


@given(CLAIMS, CLAIMS)
def test_any_two_texts_get_the_same_answer_in_either_order(a: Claim, b: Claim) -> None:
    there, back = judge(a, b), judge(b, a)
    assert (there is None) == (back is None)
    if there and back:
        assert there.strength == back.strength


@given(CLAIMS, CLAIMS)
def test_a_verdict_has_a_strength_up_to_one_and_a_short_description(a: Claim, b: Claim) -> None:
    verdict = judge(a, b)
    if verdict:
        assert 0 < verdict.strength <= 1
        assert 0 < len(verdict.description) <= 200
        assert "\n" not in verdict.description


@given(CLAIMS)
def test_a_claim_does_not_contradict_what_says_the_same(claim: Claim) -> None:
    text = claim.text.split(".")[0].split("\n")[0].split(";")[0]
    claim = claim._replace(text=text)
    assert judge(claim, claim._replace(epoch=claim.epoch + 1)) is None


@given(CLAIMS, CLAIMS)
def test_a_text_that_was_prepared_is_judged_as_the_text_itself(a: Claim, b: Claim) -> None:
    ready = judge(a._replace(prepared=prepare(a.text)), b._replace(prepared=prepare(b.text)))
    assert ready == judge(a, b)


def test_the_description_quotes_the_words_that_differ_and_no_others() -> None:
    verdict = judge(NEWER, OLDER)
    assert verdict
    assert "“50” against “100”" in verdict.description
    assert "API" not in verdict.description


def test_a_denial_is_described_by_what_it_denies() -> None:
    verdict = judge(
        NEWER._replace(text="The parser does not handle tabs."), OLDER._replace(text="The parser handles tabs.")
    )
    assert verdict
    assert "“not handle” against “handle”" in verdict.description


@pytest.mark.parametrize("type_", ["question", "contradiction"])
def test_units_that_claim_nothing_contradict_nothing(type_: str) -> None:
    assert judge(NEWER._replace(type=type_), OLDER) is None
    assert judge(NEWER, OLDER._replace(type=type_)) is None


def test_a_sentence_with_a_question_mark_contradicts_nothing() -> None:
    assert judge(NEWER._replace(text="Is the API rate limit 50 requests per second?"), OLDER) is None


@pytest.mark.parametrize(
    ("newer", "older", "by"),
    [
        (("assumption", 0.9), ("finding", 0.9), "logical"),
        (("finding", 0.9), ("assumption", 0.9), "logical"),
        (("assumption", 0.2), ("assumption", 0.9), "semantic"),
        (("finding", 0.4), ("finding", 0.9), "temporal"),
        (("observation", 0.4), ("decision", 0.9), "temporal"),
        (("finding", 0.95), ("finding", 0.9), "semantic"),
        (("finding", 0.4), ("finding", ESTABLISHED_SCORE_MIN - 0.1), "semantic"),
        (("finding", None), ("finding", 0.9), "semantic"),
        (("finding", 0.4), ("finding", None), "semantic"),
        (("intention", 0.4), ("finding", 0.9), "semantic"),
    ],
)
def test_a_verdict_says_by_what_the_contradiction_was_found(
    newer: tuple[str, float | None], older: tuple[str, float | None], by: DetectedBy
) -> None:
    a = NEWER._replace(type=newer[0], score=newer[1])
    b = OLDER._replace(type=older[0], score=older[1])
    for verdict in (judge(a, b), judge(b, a)):
        assert verdict
        assert verdict.detected_by == by


def test_texts_whose_embeddings_are_far_apart_do_not_contradict() -> None:
    assert judge(NEWER, OLDER, similarity=SIMILARITY_MIN - 0.1) is None
    assert judge(NEWER, OLDER, similarity=0.95) == judge(NEWER, OLDER)


def test_what_one_agent_says_of_itself_does_not_contradict_another_agent() -> None:
    mine = Claim("I am not allergic to cats.", "finding", 2, None, agent=1)
    yours = Claim("I am allergic to cats.", "finding", 1, None, agent=2)
    assert judge(mine, yours) is None
    assert judge(mine, yours._replace(agent=1)) is not None


def test_what_held_today_in_another_session_does_not_contradict() -> None:
    now = Claim("The queue holds 300 messages today.", "observation", 2, None, session=2)
    then = Claim("The queue holds 20 messages today.", "observation", 1, None, session=1)
    assert judge(now, then) is None
    assert judge(now, then._replace(session=2)) is not None


def test_a_sentence_among_others_is_found() -> None:
    around = "We met in the morning. {} Lunch was late."
    verdict = judge(
        NEWER._replace(text=around.format(NEWER.text)), OLDER._replace(text="Notes of the call.\n" + OLDER.text)
    )
    assert verdict
    assert "“50” against “100”" in verdict.description


def test_of_a_long_text_only_the_beginning_is_compared() -> None:
    many = " ".join(f"Sentence {letter} says nothing." for letter in string.ascii_uppercase[:SENTENCES_MAX])
    assert judge(NEWER._replace(text=f"{many} {NEWER.text}"), OLDER) is None
    assert len(prepare("word " * TEXT_CHARS_MAX).statements[0].tokens) < TEXT_CHARS_MAX / 10


@given(
    st.sampled_from(("Observation {}: the sensor was {}.", "Step {} is {}.", "Ticket OPS-{} is {}.", "User {} is {}.")),
    st.integers(1, 5_000),
    st.integers(1, 5_000),
    st.sampled_from(("stable", "open", "ready", "enabled")),
    st.sampled_from(("unstable", "closed", "not ready", "disabled")),
)
def test_items_of_a_list_do_not_contradict_whatever_they_say(form: str, i: int, j: int, yes: str, no: str) -> None:
    if i != j:
        a, b = Claim(form.format(i, yes), "observation", 1, None), Claim(form.format(j, no), "observation", 2, None)
        assert judge(b, a) is None


@given(st.integers(1, 10_000), st.integers(1, 10_000))
def test_two_numbers_for_one_thing_contradict_exactly_when_they_differ(i: int, j: int) -> None:
    a, b = (Claim(f"The retry limit is {count} requests.", "finding", 1, None) for count in (i, j))
    assert (judge(a, b) is not None) == (i != j)
