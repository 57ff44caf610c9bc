"""A figure, name or date that no source has is found in a summary; other words for the same are not."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.compaction.invented import invented
from tests.compaction.groups import texts

SOURCES: Final = (
    "Alice decided on 2025-06-15 to move the cart service to Postgres 16 at 14:00.",
    "Bob counted 1,250 orders, twenty-five of them late, and 20,000 visits. The third deploy failed. It may rain.",
    "It cost 2.50 dollars on 3 March, see config.yaml.",
    "planner",
)


@pytest.mark.parametrize(
    "summary",
    [
        "Alice moved the cart service to Postgres 16 on June 15, 2025.",
        "Bob found 25 late orders of 1250, and 20k visits.",
        "At 2 pm the 3rd deploy failed.",
        "Overall, the team discussed deployments. Participants agreed. However, Bob's count may be wrong.",
        "On the 3rd of March it cost 2.5 dollars. The planner says so in config.yaml.",
        "One deploy failed, e.g. by rain.",
        "",
    ],
)
def test_what_the_sources_say_may_be_said_in_other_forms(summary: str) -> None:
    assert invented(summary, SOURCES) == []


@pytest.mark.parametrize(
    ("summary", "found"),
    [
        ("Zorblax decided it.", ["Zorblax"]),
        ("Alice met Carol Jones.", ["Carol", "Jones"]),
        ("It was PostgreSQL.", ["PostgreSQL"]),
        ("It was 42%, not 43.", ["42", "43"]),
        ("It cost 2.51 dollars.", ["2.51"]),
        ("Bob counted twenty-six late orders.", ["26"]),
        ("Seven of them were late.", ["Seven"]),
        ("It was decided on 2025-07-15.", ["2025-07-15"]),
        ("It was decided in July.", ["July"]),
        ("It was decided on March 15.", ["March 15"]),
        ("The deploy comes tomorrow, or on Friday.", ["tomorrow", "Friday"]),
        ("See prod.yaml and ask ops@example.", ["prod.yaml", "ops@example"]),
        ("Carol and Carol.", ["Carol"]),
    ],
)
def test_what_no_source_has_is_found(summary: str, found: list[str]) -> None:
    assert invented(summary, SOURCES) == found


@given(said=st.lists(texts, max_size=6))
def test_who_only_quotes_invents_nothing(said: list[str]) -> None:
    assert invented("\n".join(said), said) == []


@pytest.mark.parametrize("unit", ["a", ". ", "\n", "1-", "1,000", "a@", "_a", "May ", "1 May ", "a.bc", " ", "Ab "])
def test_a_million_characters_of_one_thing_stop_nobody(unit: str) -> None:
    assert "Zorblax" in invented("It was Zorblax.", [unit * (1_000_000 // len(unit))])
