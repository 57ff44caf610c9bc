"""What a summariser promises, whoever makes the words."""

from collections.abc import AsyncIterator, Callable
from typing import Final

import pytest

from fieldstone.ports.summarizer import Original, Summarizer

OpenSummarizer = Callable[[], Summarizer]

GROUP: Final = (
    Original("a", 1, "decision", "planner", "We ship the cart on 2025-06-15, and not before."),
    Original("b", 2, "finding", "tester", "All 42 tests of the cart are green.", contested=True),
    Original("c", 3, "finding", "tester", "The log holds [REDACTED:api-key] in line 7. Nobody saw it. It was removed."),
    Original("d", 4, "constraint", "owner", "Nothing is deployed on a Friday."),
    Original("e", 5, "question", "tester", "Who signs it off?"),
    Original("f", 6, "human_directive", "owner", "Ask Carol before you touch the index."),
    *(
        Original(f"g-{number}", 6 + number, "observation", "watcher", f"Run {number} took {number * 7} seconds.")
        for number in range(1, 40)
    ),
)
ENOUGH_TOKENS: Final = 250  # for what must be quoted, and not for the rest


class SummarizerTests:
    """Give a fixture `open_summarizer`; the tests get an open `summarizer`."""

    @pytest.fixture
    async def summarizer(self, open_summarizer: OpenSummarizer) -> AsyncIterator[Summarizer]:
        summarizer = open_summarizer()
        yield summarizer
        await summarizer.close()

    async def test_it_has_a_name_and_says_who_made_the_text(self, summarizer: Summarizer) -> None:
        made = await summarizer.distil(GROUP, ENOUGH_TOKENS)
        assert summarizer.name
        assert made.text
        assert made.by == summarizer.name or made.fell_back

    async def test_what_binds_somebody_is_quoted_whole(self, summarizer: Summarizer) -> None:
        made = await summarizer.distil(GROUP, ENOUGH_TOKENS)
        assert not made.over_budget
        for original in GROUP:
            assert not original.verbatim or original.text in made.text

    async def test_every_redaction_marker_is_kept(self, summarizer: Summarizer) -> None:
        made = await summarizer.distil(GROUP, ENOUGH_TOKENS)
        assert "[REDACTED:api-key]" in made.text

    async def test_essentials_win_over_the_budget(self, summarizer: Summarizer) -> None:
        made = await summarizer.distil(GROUP, 1)
        assert made.over_budget
        assert all(original.text in made.text for original in GROUP if original.verbatim)
        assert "[REDACTED:api-key]" in made.text

    async def test_quotes_stand_word_for_word_where_they_are_said_to_stand(self, summarizer: Summarizer) -> None:
        made = await summarizer.distil(GROUP, ENOUGH_TOKENS)
        texts = {original.unit_id: original.text for original in GROUP}
        assert {quote.unit_id for quote in made.quotes} >= {"a", "b", "d", "e", "f"}
        for quote in made.quotes:
            quoted = made.text[quote.at : quote.at + quote.end - quote.start]
            assert quoted == texts[quote.unit_id][quote.start : quote.end]

    async def test_nothing_said_gives_nothing(self, summarizer: Summarizer) -> None:
        made = await summarizer.distil([], ENOUGH_TOKENS)
        assert (made.text, made.quotes, made.tokens, made.over_budget) == ("", (), 0, False)

    async def test_closing_twice_does_no_harm(self, summarizer: Summarizer) -> None:
        await summarizer.close()
        await summarizer.close()
