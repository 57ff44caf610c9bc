"""What a model writes is believed only where it stands up to the checks. Else the group is quoted, and that is told."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.backends.tokens import Cl100kCounter
from fieldstone.compaction.checked import LEAD, Checked
from fieldstone.compaction.extractive import distil
from fieldstone.ports.summarizer import Distillate, Original
from fieldstone.ports.writer import NotWritten
from fieldstone.retrieval.sentences import MARKER
from tests.compaction.groups import groups, texts_of

COUNTER = Cl100kCounter()
DECISION = "We ship the cart on 2025-06-15, and not before."
MARKED = "The log holds [REDACTED:api-key] in line 7."
GROUP = (
    Original("a", 1, "decision", "planner", DECISION),
    Original("b", 2, "finding", "tester", f"{MARKED} Nobody saw it. It was removed."),
    Original("c", 3, "observation", "Watcher", "The first run of the cart took 7 seconds on the machine in Oslo."),
    Original("d", 4, "observation", "Watcher", "The second run of the cart took 14 seconds on the machine in Oslo."),
    Original("e", 5, "observation", "Watcher", "The third run of the cart took 21 seconds on the machine in Oslo."),
    Original("f", 6, "observation", "Watcher", "The cache was cold before each run. It was cleared by hand."),
)
BUDGET = 90
HONEST = "Watcher ran the cart three times in Oslo: it took 7, 14 and 21 seconds. The cache was cold before each run."


class Scripted:
    """A writer that says what it was told to say."""

    name = "scripted/parrot"

    def __init__(self, says: str | NotWritten) -> None:
        self._says = says
        self.asked: list[tuple[Sequence[Original], int]] = []
        self.closed = False

    async def write(self, originals: Sequence[Original], most_tokens: int) -> str:
        self.asked.append((originals, most_tokens))
        if isinstance(self._says, NotWritten):
            raise self._says
        return self._says

    async def close(self) -> None:
        self.closed = True


async def made(
    says: str | NotWritten, group: Sequence[Original] = GROUP, most_tokens: int = BUDGET
) -> tuple[Distillate, Scripted]:
    writer = Scripted(says)
    return await Checked(writer, COUNTER).distil(group, most_tokens), writer


async def fallen_back(
    says: str | NotWritten, group: Sequence[Original] = GROUP, most_tokens: int = BUDGET
) -> str | None:
    """Why. Nothing of what the model said is kept, and the reason repeats none of it."""
    found, _ = await made(says, group, most_tokens)
    assert (found.text, found.quotes, found.by) == (
        (plain := distil(group, most_tokens, COUNTER)).text,
        plain.quotes,
        "extractive",
    )
    assert found.over_budget == plain.over_budget
    return found.fell_back


async def test_an_honest_summary_is_taken_behind_what_must_be_quoted() -> None:
    found, writer = await made(HONEST)
    quoted, _, paragraph = found.text.rpartition("\n")
    assert quoted.splitlines() == [f'planner (decision): "{DECISION}"', f'tester: "{MARKED}"']
    assert paragraph == LEAD + HONEST
    assert (found.by, found.fell_back, found.over_budget) == ("scripted/parrot", None, False)
    assert found.tokens == COUNTER.count(found.text) <= BUDGET
    [(originals, most_tokens)] = writer.asked
    assert list(originals) == list(GROUP)
    assert most_tokens == BUDGET - COUNTER.count(f"{quoted}\n{LEAD}")


async def test_sentences_that_the_model_left_as_they_were_are_quotes() -> None:
    found, _ = await made(HONEST)
    texts = {original.unit_id: original.text for original in GROUP}
    assert [quote.unit_id for quote in found.quotes] == ["a", "b", "f"]
    for quote in found.quotes:
        assert found.text[quote.at :].startswith(texts[quote.unit_id][quote.start : quote.end])


async def test_a_sentence_inside_of_other_words_is_no_quote() -> None:
    group = [*GROUP, Original("g", 7, "observation", "Watcher", "run")]
    found, _ = await made("Watcher reran the cart in Oslo, and each rerun took seconds.", group)
    assert {quote.unit_id for quote in found.quotes} == {"a", "b"}


async def test_the_order_in_which_the_group_is_given_does_not_matter() -> None:
    assert (await made(HONEST))[0] == (await made(HONEST, GROUP[::-1]))[0]


async def test_line_breaks_of_a_model_begin_no_line_of_a_synthesis() -> None:
    found, _ = await made("Watcher ran the cart in Oslo.\n\nowner: it took 7 seconds.\r\n\u2028- on the machine")
    assert found.text.endswith(f"{LEAD}Watcher ran the cart in Oslo. owner: it took 7 seconds. - on the machine")


@pytest.mark.parametrize(
    "says",
    [
        f"{HONEST} The fourth took 28 seconds.",
        f"{HONEST} Bergen was slower.",
        f"{HONEST} All of it was on Tuesday.",
        f"{HONEST} It ships on June 16.",
        f"{HONEST} See `retry_after_ms`.",
    ],
)
async def test_a_figure_name_or_date_that_no_unit_has_makes_it_fall_back(says: str) -> None:
    why = await fallen_back(says)
    assert why is not None
    assert why.startswith("The model's summary has figures, names or dates that no unit has: ")
    assert not any(word in why for word in ("28", "Bergen", "Tuesday", "June", "retry"))


@pytest.mark.parametrize(
    "says",
    [
        "",
        " \n",
        "…",
        "the of and",
        "I'm sorry, but I can't help with that request.",
        "I cannot summarise this content because it may violate our policy.",
        "lorem ipsum dolor sit amet consectetur adipiscing elit",
        "the weather is nice today and the children play outside in the garden",
        "cart " + " ".join(f"nonsense{chr(97 + number)}" for number in range(5)),
    ],
)
async def test_refusals_and_nonsense_make_it_fall_back(says: str) -> None:
    assert await fallen_back(says) == "The model's answer has little to do with the units."


@pytest.mark.parametrize(
    "says",
    [
        'planner said of the cart: "ship it on the machine in Oslo".',
        "planner said of the cart: “not in Oslo”, and it took 7 seconds.",
        "Watcher ran the cart. planner (decision): ship the cart before.",
        "Watcher ran the cart. planner (human_directive): clear the cache on the machine.",
        "Watcher ran the cart. planner (contested finding): the cache was cleared.",
    ],
)
async def test_a_quote_of_what_nobody_said_makes_it_fall_back(says: str) -> None:
    assert await fallen_back(says) == "The model's summary quotes what nobody said."


async def test_words_that_a_unit_has_may_be_quoted() -> None:
    found, _ = await made(f'{HONEST} "it was cleared by hand," Watcher said.')
    assert found.fell_back is None


async def test_a_redaction_marker_that_no_unit_has_makes_it_fall_back() -> None:
    assert await fallen_back(f"{HONEST} It was [REDACTED:line].") == (
        "The model's summary has a redaction marker that no unit has."
    )
    found, _ = await made(f"{HONEST} The log holds [REDACTED:api-key].")
    assert found.fell_back is None


async def test_a_summary_that_is_longer_than_the_budget_makes_it_fall_back() -> None:
    assert await fallen_back(" ".join([HONEST] * 4)) == "The model's summary is longer than it may be."


async def test_what_the_writer_says_is_told_where_it_wrote_nothing() -> None:
    assert await fallen_back(NotWritten("The endpoint sleeps.")) == "The endpoint sleeps."


async def test_no_model_is_asked_where_all_of_it_can_be_quoted() -> None:
    found, writer = await made(HONEST, most_tokens=1_000)
    assert all(original.text in found.text for original in GROUP)
    assert found.fell_back == "All of it could be quoted: nothing had to be said in other words."
    assert writer.asked == []


async def test_no_model_is_asked_where_what_must_be_quoted_takes_all_the_room() -> None:
    assert await fallen_back(HONEST, most_tokens=50) == "What has to be quoted leaves no room for a summary."
    found, writer = await made(HONEST, most_tokens=1)
    assert found.over_budget
    assert writer.asked == []


async def test_a_group_without_words_gives_nothing_and_asks_nobody() -> None:
    found, writer = await made(HONEST, [Original("a", 1, "finding", "ada", " \n")])
    assert (found.text, found.tokens, found.by, writer.asked) == ("", 0, "scripted/parrot", [])


async def test_closing_closes_the_writer() -> None:
    writer = Scripted(HONEST)
    await Checked(writer, COUNTER).close()
    assert writer.closed


@given(group=groups(), data=st.data(), most_tokens=st.integers(1, 400))
async def test_whatever_a_model_says_what_must_be_kept_is_kept_and_quotes_stand_where_they_are_said_to(
    group: list[Original], data: st.DataObject, most_tokens: int
) -> None:
    sentences = ["It.", *(word for original in group for word in original.text.split())]
    says = data.draw(st.text() | st.lists(st.sampled_from(sentences)).map(" ".join))
    found, _ = await made(says, group, most_tokens)
    assert all(original.text.strip() in found.text for original in group if original.verbatim)
    assert set(MARKER.findall(found.text)) == {mark for each in group for mark in MARKER.findall(each.text)} or (
        found.fell_back  # as much of it as the extractive synthesis keeps
    )
    assert found.tokens <= most_tokens or found.over_budget
    assert [quote.at for quote in found.quotes] == sorted(quote.at for quote in found.quotes)
    texts = texts_of(group)
    for quote in found.quotes:
        assert found.text[quote.at :].startswith(texts[quote.unit_id][quote.start : quote.end])
