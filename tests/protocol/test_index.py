"""Whether the text index has caught up changes nothing that an agent sees."""

import asyncio

from fieldstone.core.events import UnitRecorded
from tests.protocol.rig import Rig, factors, scores
from tests.requirements import requirement

WORDS = ("pricing", "region", "weather", "growth", "churn", "margin", "hiring")


async def caught_up(field: Rig) -> None:
    """Return when every unit is in the index."""
    last = max(
        line.entry.seq
        for line in await field.log()
        if isinstance(line.entry.event, UnitRecorded) and line.entry.event.mode == "committed"
    )
    async with asyncio.timeout(20):
        while (await field.door.status()).text_index_position < last:  # noqa: ASYNC110 (there is no event for it)
            await asyncio.sleep(0.01)


async def record_some(field: Rig, number: int) -> None:
    for n in range(number):
        content = " ".join(WORDS[(n * k) % len(WORDS)] for k in (1, 2, 5)) + f" topic{n}"
        await field.record(("ada", "ben")[n % 2], content)


@requirement("akashik:attune:score-independent", "akashik:attune:acknowledged-visible")
async def test_scores_and_reasons_are_the_same_before_and_after_the_index_has_caught_up(team: Rig) -> None:
    await record_some(team, 40)
    hints = ("pricing margin topic7", "hiring", "topic3 topic4 topic5", "unheard-of words and growth")
    fresh = [(await team.attune("eve", hint, interests=["churn"]))["record"] for hint in hints]
    await caught_up(team)
    assert [(await team.attune("eve", hint, interests=["churn"]))["record"] for hint in hints] == fresh


@requirement("akashik:attune:score-independent")
async def test_scores_are_the_same_when_half_of_the_units_are_indexed_and_when_all_are(team: Rig) -> None:
    await record_some(team, 20)
    await caught_up(team)
    await record_some(team, 20)
    half = (await team.attune("eve", "pricing margin topic7"))["record"]
    await caught_up(team)
    assert (await team.attune("eve", "pricing margin topic7"))["record"] == half


@requirement("akashik:attune:score-independent", "akashik:attune:acknowledged-visible")
async def test_a_word_that_was_asked_for_before_anybody_used_it_is_found_afterwards(team: Rig) -> None:
    await record_some(team, 40)
    await caught_up(team)
    assert all(found["lexical"] == 0 for found in factors(await team.attune("eve", "zanzibar")).values())
    unit_id = await team.record("ada", "We opened an office in Zanzibar.")
    fresh = await team.attune("eve", "zanzibar")
    assert factors(fresh)[unit_id]["lexical"] == 1
    await caught_up(team)
    indexed = await team.attune("eve", "zanzibar")
    assert factors(indexed)[unit_id]["lexical"] == 1
    assert scores(indexed) == scores(fresh)


@requirement("akashik:attune:score-independent")
async def test_scores_are_the_same_before_and_after_a_rebuild_that_finds_units_not_yet_indexed(team: Rig) -> None:
    await record_some(team, 10)
    await caught_up(team)
    await record_some(team, 10)
    before = (await team.attune("eve", "pricing margin topic7"))["record"]
    assert (await team.door.rebuild()).unchanged
    assert (await team.attune("eve", "pricing margin topic7"))["record"] == before
    await team.record("ada", "Something about pricing and topic7.")
    await caught_up(team)
    after = scores(await team.attune("eve", "pricing margin topic7"))
    # The same field, never rebuilt in between, for comparison: rebuilt once more when everything is indexed.
    await team.door.rebuild()
    assert scores(await team.attune("eve", "pricing margin topic7")) == after


@requirement("akashik:attune:others-drafts-excluded", "akashik:attune:score-independent")
async def test_what_others_draft_weighs_in_nobodys_scores(team: Rig) -> None:
    await record_some(team, 10)
    before = {
        unit_id: found["lexical"] for unit_id, found in factors(await team.attune("eve", "pricing topic7")).items()
    }
    for _ in range(5):
        await team.draft("ben", "topic7 topic7 pricing")
    for wait in (False, True):
        if wait:
            await caught_up(team)
        after = factors(await team.attune("eve", "pricing topic7"))
        assert {unit_id: found["lexical"] for unit_id, found in after.items()} == before


@requirement("akashik:scope:include-drafts")
async def test_own_drafts_are_found_by_their_words_too(team: Rig) -> None:
    await record_some(team, 5)
    draft = await team.draft("ada", "An office in Zanzibar.")
    found = factors(await team.attune("ada", "zanzibar", include_drafts=True))
    assert found[draft]["lexical"] == 1
