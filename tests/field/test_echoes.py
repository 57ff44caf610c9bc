"""A unit that restates what its author was shown is an echo. What says something else, or was not shown, is not."""

import pytest

from fieldstone.field.field import LocalField
from tests.field.fields import staffed
from tests.messages import accepted, attune, attuned, record
from tests.scripted import ScriptedEmbedder

SAID = "The annual plan costs forty euros for every seat in Norway."
OTHERS = (
    "Sparrows nest under old bridges near rivers.",
    "Compilers fold constants before they allocate registers.",
    "Bakers knead rye dough until midnight.",
    "Tides follow whatever moons command them.",
)


async def echo_of(field: LocalField, agent: str, content: str) -> bool:
    await accepted(field, record(agent, content))
    page = await field.log(limit=1_000)
    return any(type(line.entry.event).__name__ == "UnitEchoed" for line in page.entries)


@pytest.mark.parametrize(
    ("content", "is_echo"),
    [
        (SAID, True),
        ("The annual plan costs forty euros for each seat in Norway.", True),
        ("The annual plan never costs forty euros for every seat in Norway.", False),
        ("Walruses sing about distant icebergs.", False),
    ],
    ids=["the same", "nearly the same", "denied", "something else"],
)
async def test_only_what_restates_a_unit_that_was_shown_is_an_echo(content: str, is_echo: bool) -> None:
    field = await staffed(ScriptedEmbedder(dimension=256))
    for each in (SAID, *OTHERS):
        await accepted(field, record("ada", each))
    assert await attuned(field, attune("ben", "plan"))
    assert await echo_of(field, "ben", content) == is_echo
    await field.close()


async def test_what_an_author_was_not_shown_is_no_echo() -> None:
    field = await staffed(ScriptedEmbedder(dimension=256))
    for each in (SAID, *OTHERS):
        await accepted(field, record("ada", each))
    assert not await echo_of(field, "ben", SAID)
    await field.close()
