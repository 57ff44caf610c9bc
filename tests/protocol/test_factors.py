"""The factors of Level 2, other things equal and with default weights.

Two units differ in one thing only, and are recorded in both orders: what is tested has to win against recency, too.
"""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from fieldstone.field.options import Models
from fieldstone.retrieval.score import WEIGHTS
from fieldstone.settings import Settings
from fieldstone.wiring import open_local_field
from tests.messages import accepted, attune, attuned, join, record
from tests.protocol.rig import Body, OpenRig, Rig, factors, ids, options, reasons, relation, scores
from tests.protocol.ways import DURABLE, real_models, words_only
from tests.requirements import requirement

SAID = "The delivery was late."

both_orders = pytest.mark.parametrize("favoured_first", [True, False], ids=["older", "newer"])
across_restarts = pytest.mark.parametrize("transport", DURABLE, indirect=True)
with_and_without_model = pytest.mark.parametrize("models", [words_only, real_models], ids=["words", "meaning"])


async def team_with(rigs: OpenRig, models: Callable[[], Models] = real_models, **weights: float) -> Rig:
    wanted = structs.replace(options(), weights={**WEIGHTS, **weights})
    team = await rigs(wanted, models=models)
    await team.register("ada", "ben")
    await team.register("eve", role="analyst")
    return team


async def record_two(team: Rig, favoured: Body, other: Body, *, favoured_first: bool) -> tuple[str, str]:
    """Two units, alike but for what is said here; the favoured one's id comes first."""
    plain: Body = {"agent": "ada", "content": SAID}
    recorded = {}
    for each in (favoured, other) if favoured_first else (other, favoured):
        said = plain | each
        recorded[id(each)] = await team.record(said.pop("agent"), said.pop("content"), **said)
    return recorded[id(favoured)], recorded[id(other)]


def assert_favoured(answer: Body, favoured: str, other: str, by: str) -> None:
    """It scores higher, and for that reason."""
    assert scores(answer)[favoured] > scores(answer)[other]
    assert factors(answer)[favoured][by] > factors(answer)[other][by]


@requirement("akashik:attune:semantic")
@both_orders
@pytest.mark.parametrize(
    ("hint", "near", "far"),
    [
        ("automobile repair bills", "Fixing a broken car engine is expensive.", "The choir sings every Sunday."),
        ("which physician was consulted?", "She saw a doctor at the hospital.", "The river flooded two villages."),
    ],
)
async def test_of_two_units_without_a_word_of_the_hint_the_one_nearer_in_meaning_scores_higher(
    rigs: OpenRig, hint: str, near: str, far: str, favoured_first: bool
) -> None:
    team = await team_with(rigs)
    found = await record_two(team, {"content": near}, {"content": far}, favoured_first=favoured_first)
    answer = await team.attune("eve", hint)
    assert [factors(answer)[unit_id]["lexical"] for unit_id in found] == [0, 0]
    assert_favoured(answer, *found, by="semantic")
    assert "close in meaning to your hint" in reasons(answer)[found[0]]


@requirement("akashik:attune:semantic")
@across_restarts
async def test_a_unit_counts_by_its_meaning_as_soon_as_its_record_is_answered_and_after_a_restart(
    rigs: OpenRig,
) -> None:
    team = await team_with(rigs)
    found = await record_two(
        team, {"content": "Fixing a car engine is expensive."}, {"content": "The choir sings."}, favoured_first=True
    )
    answer = await team.attune("eve", "automobile repair")
    assert_favoured(answer, *found, by="semantic")
    await team.restart()
    again = await team.attune("eve", "automobile repair")
    assert factors(again)[found[0]]["semantic"] == factors(answer)[found[0]]["semantic"] > 0


@requirement("akashik:attune:semantic", "akashik:scope:include-drafts")
async def test_own_drafts_that_are_asked_for_count_by_their_meaning_too(rigs: OpenRig) -> None:
    team = await team_with(rigs)
    for content in ("The choir sings every Sunday.", "The river flooded two villages."):
        await team.record("ada", content)
    draft = await team.draft("eve", "Fixing a broken car engine is expensive.")
    answer = await team.attune("eve", "automobile repair bills", include_drafts=True)
    assert factors(answer)[draft]["semantic"] > 0
    assert ids(answer)[0] == draft


@requirement("akashik:attune:surroundings")
@both_orders
@with_and_without_model
async def test_a_unit_beside_a_match_in_the_same_session_scores_higher(
    rigs: OpenRig, models: Callable[[], Models], favoured_first: bool
) -> None:
    team = await team_with(rigs, models)
    question = {"content": "Why did the parcel from Lisbon arrive on Monday?", "session": "s-1"}
    beside, apart = {"session": "s-1"}, {"session": "s-2"}
    if favoured_first:
        found = await record_two(team, beside, apart, favoured_first=True)
        await team.record("ben", **question)
    else:
        await team.record("ben", **question)
        found = await record_two(team, beside, apart, favoured_first=False)
    answer = await team.attune("eve", "the parcel from Lisbon")
    assert_favoured(answer, *found, by="surroundings")
    assert factors(answer)[found[0]]["lexical"] == factors(answer)[found[1]]["lexical"] == 0


@requirement("akashik:attune:surroundings")
async def test_what_the_caller_may_not_see_does_not_shine_through_its_neighbours(rigs: OpenRig) -> None:
    team = await team_with(rigs, words_only)
    alone, among_hidden = [await team.record("ada", "A parcel.", session=session) for session in ("s-1", "s-2")]
    await team.draft("ben", "The delivery from Lisbon.", session="s-2")
    withdrawn = await team.record("ben", "The delivery from Lisbon.", session="s-2")
    await team.ask("RETRACT", "ben", {"memory_unit_id": withdrawn, "reason": "wrong"})
    told = factors(await team.attune("eve", "the parcel, a delivery from Lisbon"))
    assert told[among_hidden]["surroundings"] == told[alone]["surroundings"]


@requirement("akashik:attune:surroundings")
async def test_a_neighbour_that_was_withdrawn_after_a_draft_followed_it_hinders_nothing(rigs: OpenRig) -> None:
    team = await team_with(rigs)
    draft = await team.draft("ada", SAID, session="s-1")
    withdrawn = await team.record("ada", SAID, session="s-1")
    await team.ask("COMMIT", "ada", {"memory_unit_id": draft, "confidence": {"score": 0.5, "reasoning": "seen"}})
    await team.ask("RETRACT", "ada", {"memory_unit_id": withdrawn, "reason": "wrong"})
    assert ids(await team.attune("eve", "the delivery")) == [draft]


@requirement("akashik:attune:author")
@both_orders
@with_and_without_model
async def test_units_of_an_agent_that_the_hint_names_score_higher(
    rigs: OpenRig, models: Callable[[], Models], favoured_first: bool
) -> None:
    team = await team_with(rigs, models)
    found = await record_two(team, {"agent": "ben"}, {"agent": "ada"}, favoured_first=favoured_first)
    answer = await team.attune("eve", "What did Ben say about the delivery?")
    assert_favoured(answer, *found, by="author")
    assert "your hint names its author" in reasons(answer)[found[0]]
    assert "author" not in factors(await team.attune("eve", "the delivery"))[found[0]], "nobody is named"


@requirement("akashik:attune:author", "akashik:attune:score-independent")
async def test_whoever_registers_under_a_word_and_records_nothing_takes_the_word_from_nobody(rigs: OpenRig) -> None:
    team = await team_with(rigs)
    await team.record("ada", SAID)
    before = await team.attune("eve", "the delivery")
    await team.register("delivery")
    after = await team.attune("eve", "the delivery")
    assert [found["lexical"] for found in factors(after).values()] == [1.0]
    assert factors(after).keys() == factors(before).keys()


@requirement("akashik:attune:interests")
@both_orders
@with_and_without_model
@pytest.mark.parametrize("registered", [True, False])
async def test_a_unit_that_touches_the_callers_interests_scores_higher(
    rigs: OpenRig, models: Callable[[], Models], favoured_first: bool, registered: bool
) -> None:
    team = await team_with(rigs, models)
    interests: Body = {"interests": ["renewable energy"]}
    await team.register("zoe", role="analyst", **(interests if registered else {}))
    found = await record_two(
        team, {"content": "Energy became cheaper."}, {"content": "Bread became cheaper."}, favoured_first=favoured_first
    )
    answer = await team.attune("zoe", **({} if registered else interests))
    assert_favoured(answer, *found, by="interests")
    assert "touches your interests" in reasons(answer)[found[0]]


@requirement("akashik:attune:interests")
@both_orders
async def test_interests_are_touched_by_meaning_too(rigs: OpenRig, favoured_first: bool) -> None:
    team = await team_with(rigs)
    found = await record_two(
        team,
        {"content": "They fixed the car engine."},
        {"content": "The choir sang on Sunday."},
        favoured_first=favoured_first,
    )
    assert_favoured(await team.attune("eve", interests=["automobile repair"]), *found, by="interests")


@requirement("akashik:attune:relation-proximity")
@both_orders
@with_and_without_model
async def test_a_unit_related_to_what_the_caller_recorded_scores_higher(
    rigs: OpenRig, models: Callable[[], Models], favoured_first: bool
) -> None:
    team = await team_with(rigs, models)
    own = await team.record("eve", "The carrier changed.")
    found = await record_two(team, {"relations": [relation("caused_by", own)]}, {}, favoured_first=favoured_first)
    answer = await team.attune("eve")
    assert_favoured(answer, *found, by="proximity")
    assert "related to what you recorded or read" in reasons(answer)[found[0]]
    assert factors(await team.attune("ben"))[found[0]]["proximity"] == 0, "ben had nothing to do with it"


@requirement("akashik:attune:relation-proximity")
@both_orders
async def test_a_unit_related_to_what_the_caller_just_read_scores_higher(rigs: OpenRig, favoured_first: bool) -> None:
    team = await team_with(rigs, words_only)
    read = await team.record("ben", "The carrier changed.", session="s-1")
    await team.attune("eve", sessions=["s-1"])
    found = await record_two(team, {"relations": [relation("caused_by", read)]}, {}, favoured_first=favoured_first)
    assert_favoured(await team.attune("eve"), *found, by="proximity")


@requirement("akashik:attune:relation-proximity")
@across_restarts
async def test_what_was_read_is_remembered_across_a_restart(rigs: OpenRig) -> None:
    team = await team_with(rigs, words_only)
    read = await team.record("ben", session="s-1")
    await team.attune("eve", sessions=["s-1"])
    await team.restart()
    found = await record_two(team, {"relations": [relation("informs", read)]}, {}, favoured_first=True)
    assert_favoured(await team.attune("eve"), *found, by="proximity")


@requirement("akashik:attune:relation-proximity", "akashik:commit:relations-then")
async def test_relations_of_somebody_elses_draft_bring_nothing_nearer_until_it_is_committed(rigs: OpenRig) -> None:
    team = await team_with(rigs, words_only)
    own, far = await team.record("eve"), await team.record("ada")
    draft = await team.draft("ben", relations=[relation("supports", own), relation("supports", far)])
    assert factors(await team.attune("eve"))[far]["proximity"] == 0
    await team.ask("COMMIT", "ben", {"memory_unit_id": draft, "confidence": {"score": 0.5, "reasoning": "seen"}})
    assert factors(await team.attune("eve"))[far]["proximity"] > 0


@requirement("akashik:attune:confidence")
@both_orders
@with_and_without_model
async def test_the_unit_whose_author_is_surer_scores_higher(
    rigs: OpenRig, models: Callable[[], Models], favoured_first: bool
) -> None:
    team = await team_with(rigs, models)
    sure, unsure = ({"confidence": {"score": score, "reasoning": "counted"}} for score in (0.9, 0.4))
    found = await record_two(team, sure, unsure, favoured_first=favoured_first)
    for hint in (None, "the delivery"):
        assert_favoured(await team.attune("eve", hint), *found, by="confidence")


@requirement("akashik:attune:confidence")
async def test_the_confidence_that_came_with_the_commit_counts(rigs: OpenRig) -> None:
    team = await team_with(rigs, words_only)
    draft = await team.draft("ada", confidence={"score": 0.1, "reasoning": "a hunch"})
    await team.ask("COMMIT", "ada", {"memory_unit_id": draft, "confidence": {"score": 0.9, "reasoning": "counted"}})
    assert factors(await team.attune("eve"))[draft]["confidence"] == 0.9


@requirement("akashik:scope:active-task")
@both_orders
@with_and_without_model
async def test_units_of_the_active_task_score_higher(
    rigs: OpenRig, models: Callable[[], Models], favoured_first: bool
) -> None:
    team = await team_with(rigs, models)
    of_task: list[Body] = [{"intent": {"purpose": "size it", "task_id": task}} for task in ("t-1", "t-2")]
    found = await record_two(team, *of_task, favoured_first=favoured_first)
    for hint in (None, "the delivery"):
        answer = await team.attune("eve", hint, active_task_id="t-1")
        assert_favoured(answer, *found, by="task")
        assert "belongs to your task" in reasons(answer)[found[0]]
    unheard_of = await team.attune("eve", active_task_id="t-77")
    assert {told["task"] for told in factors(unheard_of).values()} == {0.0}


@requirement("akashik:attune:weights-overridable")
async def test_a_field_that_weighs_a_factor_more_ranks_by_it(rigs: OpenRig) -> None:
    for weights, first in (({}, "the matching one"), ({"confidence": 50.0}, "the sure one")):
        team = await team_with(rigs, words_only, **weights)
        matching = await team.record("ada", "The parcel.", confidence={"score": 0.1, "reasoning": "a hunch"})
        sure = await team.record("ada", "The weather.", confidence={"score": 1.0, "reasoning": "counted"})
        answer = await team.attune("eve", "parcel")
        assert ids(answer)[0] == {"the matching one": matching, "the sure one": sure}[first]
        table = {**WEIGHTS, **weights}
        for unit_id, told in factors(answer).items():
            mean = sum(table[name] * value for name, value in told.items()) / sum(table[name] for name in told)
            assert scores(answer)[unit_id] == pytest.approx(mean, abs=2e-4)


@requirement("akashik:attune:weights-overridable")
@pytest.mark.parametrize(("weights", "favoured"), [({}, 0), ({"type": 0.0, "recency": 1.0}, 1)])
async def test_the_settings_override_the_weights(weights: dict[str, float], favoured: int) -> None:
    field = await open_local_field(Settings(db="memory:", embedder="none", weights=weights))
    try:
        await join(field, "ada", "eve")
        units = [await accepted(field, record("ada", SAID, type=kind)) for kind in ("decision", "observation")]
        assert (await attuned(field, attune("eve")))[0].id == units[favoured]
    finally:
        await field.close()


@requirement("akashik:attune:filters-exact")
@with_and_without_model
async def test_what_passes_the_filters_is_ranked_however_few_and_however_little_it_matches(
    rigs: OpenRig, models: Callable[[], Models]
) -> None:
    team = await team_with(rigs, models)
    for n in range(40):
        await team.record("ada", f"The parcel from Lisbon, number {n}.", session="s-1")
    few = [await team.record("ben", content, session="s-2") for content in ("Rain.", "A parcel.", "Wind and snow.")]
    own = await team.record("eve", "The weather.", session="s-2")
    epoch = (await team.unit(few[1])).epoch
    hint = "the parcel from Lisbon"
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({"sessions": ["s-2"]}, few),
        ({"sessions": ["s-2"], "include_own": True}, [*few, own]),
        ({"since_epoch": epoch}, few[1:]),
        ({"sessions": ["s-2"], "since_epoch": epoch, "include_own": True}, [*few[1:], own]),
    ]
    whole = scores(await team.attune("eve", hint, include_own=True))
    for scope, expected in cases:
        answer = await team.attune("eve", hint, **scope)
        assert set(ids(answer)) == set(expected)
        assert answer["context_budget"]["units_available"] == len(expected)
        assert ids(answer)[0] == few[1], "the one that matches"
        assert ids(await team.attune("eve", hint, max_units=1, **scope)) == [few[1]]
        assert scores(answer) == {unit_id: whole[unit_id] for unit_id in expected}, "a filter changes no score"
