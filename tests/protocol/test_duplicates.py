"""Near-duplicates and echoes: one of them is enough for a page, and none is lost."""

import pytest

from tests.protocol.rig import Body, OpenRig, Rig, ids, relation, scores
from tests.protocol.ways import DURABLE, real_models, words_only
from tests.requirements import requirement

SAID = "The rate limit of the public interface is 50 requests for every client."
AGAIN = "For every client the rate limit of our public interface is 50 requests."
OTHERS = (
    "Fixing a broken car engine is expensive.",
    "The choir sings in the old church every Sunday.",
    "Two villages were flooded by the river in spring.",
)


@pytest.fixture
async def team(rigs: OpenRig) -> Rig:
    """Three agents in a field that knows what units mean. Units about other things are there already: in a field of two
    units that say the same nothing is known of what units have in common."""
    team = await rigs(models=real_models)
    await team.register("ada", "ben")
    await team.register("eve", role="analyst")
    for n, content in enumerate(OTHERS):
        await team.record(("ada", "ben")[n % 2], content)
    return team


def originals(attuned: Body) -> dict[str, str]:
    """The units that are marked, each with what it is said to be a duplicate of."""
    return {found["memory_unit"]["id"]: found["duplicate_of"] for found in attuned["record"] if "duplicate_of" in found}


@requirement("akashik:attune:duplicates")
@pytest.mark.parametrize("authors", [("ada", "ben"), ("ada", "ada")])
@pytest.mark.parametrize("hint", [None, "the rate limit"])
async def test_a_unit_that_restates_an_older_one_is_marked_and_keeps_its_score_and_place(
    team: Rig, hint: str | None, authors: tuple[str, str]
) -> None:
    first, again = await team.record(authors[0], SAID), await team.record(authors[1], AGAIN)
    answer = await team.attune("eve", hint)
    assert originals(answer) == {again: first}
    assert len(ids(answer)) == answer["context_budget"]["units_available"] == len(OTHERS) + 2
    told = [found["relevance_score"] for found in answer["record"]]
    assert told == sorted(told, reverse=True)
    alone = scores(await team.attune("eve", hint, max_units=1))
    assert alone.items() <= scores(answer).items()


@requirement("akashik:attune:duplicates", "akashik:attune:left-out")
async def test_a_page_holds_something_else_rather_than_the_same_twice_and_the_receipt_names_it(team: Rig) -> None:
    first, again = await team.record("ada", SAID), await team.record("ben", AGAIN)
    for most in (2, 3, 4):
        answer = await team.attune("eve", max_units=most)
        assert len(ids(answer)) == most
        assert first in ids(answer)
        assert again not in ids(answer), "although it scores higher: it is newer"
        left_out = answer["context_budget"]["left_out"]
        assert left_out["duplicate"] == 1
        assert {"memory_unit_id": again, "reason": f"duplicate of {first}"} in left_out["units"]
        assert answer["context_budget"]["units_available"] == len(OTHERS) + 2


@requirement("akashik:attune:duplicates")
async def test_a_duplicate_comes_before_what_is_worth_less_than_half_of_it(team: Rig) -> None:
    first, again = await team.record("ada", SAID), await team.record("ben", AGAIN)
    answer = await team.attune("eve", "the rate limit", max_units=2)
    assert set(ids(answer)) == {first, again}
    assert originals(answer) == {again: first}


@requirement("akashik:attune:duplicates")
async def test_a_duplicate_whose_original_is_not_a_candidate_is_none(team: Rig) -> None:
    first, again = await team.record("ada", SAID, session="s-1"), await team.record("ben", AGAIN, session="s-2")
    assert originals(await team.attune("eve", sessions=["s-2"])) == {}
    assert originals(await team.attune("ada")) == {}, "her own units are left out"
    await team.ask("RETRACT", "ada", {"memory_unit_id": first, "reason": "wrong"})
    answer = await team.attune("eve")
    assert again in ids(answer)
    assert originals(answer) == {}


@requirement("akashik:attune:duplicates")
async def test_an_echo_of_what_its_author_was_just_shown_is_marked(team: Rig) -> None:
    first = await team.record("ada", SAID)
    await team.attune("ben", "the rate limit")
    echo = await team.record("ben", AGAIN)
    assert originals(await team.attune("eve")) == {echo: first}
    assert "unit.echoed" in await team.kinds()


@requirement("akashik:attune:duplicates")
@pytest.mark.parametrize("transport", DURABLE, indirect=True)
async def test_an_echo_stays_one_without_any_model_and_what_was_found_out_independently_does_not(team: Rig) -> None:
    first = await team.record("ada", SAID)
    await team.attune("ben", "the rate limit")
    echo = await team.record("ben", AGAIN)
    independent = await team.record("eve", AGAIN)
    team.place = team.place._replace(models=words_only)
    await team.restart()
    await team.register("zoe")
    answer = await team.attune("zoe")
    assert {first, echo, independent} <= set(ids(answer))
    assert originals(answer) == {echo: first}


@requirement("akashik:attune:contradictions-are-no-duplicates")
@pytest.mark.parametrize(
    "other",
    [
        SAID.replace("50", "500"),
        SAID.replace("50", "fifty-five"),
        SAID.replace("is 50", "is not 50"),
        SAID.replace("is 50", "isn't 50"),
        SAID.replace("is 50", "was never 50"),
        SAID.replace("every client", "no client"),
    ],
)
async def test_units_that_differ_in_a_number_or_a_negation_both_stand_unmarked(team: Rig, other: str) -> None:
    both = {await team.record("ada", SAID), await team.record("ben", other)}
    await team.attune("eve", "the rate limit")
    echoed = await team.record("eve", other)
    answer = await team.attune("ben", "the rate limit of the public interface", include_own=True, max_units=4)
    assert both <= set(ids(answer))
    marked = originals(await team.attune("ben", include_own=True))
    assert both.isdisjoint(marked)
    assert set(marked) == {echoed}, "but saying one of them once more is no news"


@requirement("akashik:attune:contradictions-are-no-duplicates")
@pytest.mark.parametrize("declared", [True, False])
async def test_units_in_conflict_are_no_duplicates_however_alike_they_are(team: Rig, declared: bool) -> None:
    said = "Response caching is enabled in the production cluster of the public interface."
    other = said.replace("public", "own public") if declared else said.replace("enabled", "disabled")
    first = await team.record("ada", said)
    await team.record("ben", other, relations=[relation("contradicts", first)] if declared else [])
    answer = await team.attune("eve", "caching in the production cluster")
    assert len(answer["conflicts"]) == 1
    assert originals(answer) == {}
