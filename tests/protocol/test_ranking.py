"""The seed's recommended factors, other things equal and with default weights.

The favoured unit is always recorded first, so that what is tested has to win against recency.
"""

from itertools import pairwise

import pytest
from msgspec import to_builtins

from fieldstone.retrieval.score import WEIGHTS
from tests.protocol.rig import Rig, attunement, factors, ids, reasons, relation, scores, unit
from tests.requirements import requirement

HINTS = (None, "pricing in Europe")


@requirement("akashik:attune:recency")
@pytest.mark.parametrize("hint", HINTS)
async def test_of_two_units_that_say_the_same_the_newer_scores_higher(team: Rig, hint: str | None) -> None:
    recorded = [await team.record("ada", "Pricing differs in Europe.") for _ in range(10)]
    answer = await team.attune("eve", hint)
    assert ids(answer) == recorded[::-1]
    assert all(scores(answer)[newer] > scores(answer)[older] for older, newer in pairwise(recorded))


@requirement("akashik:attune:recency")
async def test_the_newer_of_two_old_units_still_scores_higher(team: Rig) -> None:
    older, newer = [await team.record("ada") for _ in range(2)]
    for _ in range(3):
        answer = await team.ask("ATTUNE", "eve", attunement(), epoch=await team.epoch() + 1_000)
        assert scores(answer)[newer] > scores(answer)[older]


@requirement("akashik:attune:recency")
async def test_a_unit_scores_less_as_the_field_moves_on_and_never_nothing(team: Rig) -> None:
    unit_id = await team.record("ada")
    told = []
    for _ in range(4):
        answer = await team.ask("ATTUNE", "eve", attunement(), epoch=await team.epoch() + 2_000)
        told.append(scores(answer)[unit_id])
    assert told == sorted(told, reverse=True)
    assert told[-1] > 0


@requirement("akashik:attune:role-alignment")
@pytest.mark.parametrize(
    ("own", "near", "far"),
    [
        ("market researcher", "market researcher", "engineer"),
        ("market researcher", "researcher", "engineer"),
        ("researcher", "market_researcher", "engineer"),
        ("researcher", "researcher", "market_researcher"),
        ("Researcher", "researcher", "research engineer"),
    ],
)
async def test_a_unit_from_a_role_nearer_to_the_callers_scores_higher(
    field: Rig, own: str, near: str, far: str
) -> None:
    await field.register("nea", role=near)
    await field.register("far", role=far)
    await field.register("eve", role="somebody else")
    favoured, other = await field.record("nea"), await field.record("far")
    answer = await field.attune("eve", role=own)
    assert scores(answer)[favoured] > scores(answer)[other]
    assert factors(answer)[favoured]["role"] > factors(answer)[other]["role"]


@requirement("akashik:attune:type-importance")
@pytest.mark.parametrize("kind", ["decision", "contradiction"])
@pytest.mark.parametrize("hint", HINTS)
async def test_a_decision_or_contradiction_scores_higher_than_an_observation(
    team: Rig, kind: str, hint: str | None
) -> None:
    favoured, other = await team.record("ada", type=kind), await team.record("ada", type="observation")
    answer = await team.attune("eve", hint)
    assert scores(answer)[favoured] > scores(answer)[other]


@requirement("akashik:attune:hint-optional")
@pytest.mark.parametrize("where", ["content", "purpose", "question"])
async def test_a_unit_that_matches_the_hint_scores_higher_wherever_it_matches(team: Rig, where: str) -> None:
    said = {"content": "We looked.", "purpose": "to know", "question": "is it so?"} | {where: "Pricing across Europe."}
    favoured = await team.record(
        "ada", said["content"], intent={"purpose": said["purpose"], "question": said["question"]}
    )
    other = await team.record("ada", "The weather in Berlin.")
    plain = await team.attune("eve")
    assert scores(plain)[favoured] < scores(plain)[other], "without the hint the newer one goes first"
    answer = await team.attune("eve", "about to draft the European price list: pricing, prices")
    assert scores(answer)[favoured] > scores(answer)[other]


@requirement("akashik:attune:hint-optional")
async def test_a_unit_that_matches_more_of_the_hint_scores_higher(team: Rig) -> None:
    both = await team.record("ada", "Pricing differs across regions.")
    one = await team.record("ada", "Pricing matters to all.")
    await team.record("ada", "Weather differs too.")
    none = await team.record("ada", "The sun shone.")
    told = scores(await team.attune("eve", "pricing in regions"))
    assert told[both] > told[one] > told[none]


@requirement("akashik:attune:hint-optional")
async def test_units_that_touch_the_callers_interests_score_higher(field: Rig) -> None:
    await field.register("ada")
    await field.register("eve", role="analyst", interests=["renewable energy"])
    await field.register("zoe", role="analyst")
    favoured, other = await field.record("ada", "Energy prices rose."), await field.record("ada", "It rained.")
    for answer in (await field.attune("eve"), await field.attune("zoe", interests=["energy"])):
        assert scores(answer)[favoured] > scores(answer)[other]
        assert "energy" in reasons(answer)[favoured].lower()
        assert "interests" not in reasons(answer)[other]
    plain = await field.attune("zoe")
    assert scores(plain)[favoured] < scores(plain)[other]


@requirement("akashik:attune:source-diversity")
@pytest.mark.parametrize("hint", HINTS)
@pytest.mark.parametrize("most", [2, 5, 10])
async def test_a_page_holds_several_authors_although_one_has_written_far_more(
    team: Rig, hint: str | None, most: int
) -> None:
    quiet = await team.record("ben", "Pricing differs in Europe.")
    for _ in range(40):
        await team.record("ada", "Pricing differs in Europe.")
    answer = await team.attune("eve", hint, max_units=most)
    assert quiet in ids(answer)
    assert [found["relevance_score"] for found in answer["record"]] == sorted(scores(answer).values(), reverse=True)


@requirement("akashik:attune:score-range", "akashik:attune:sorted")
async def test_scores_are_from_0_to_1_and_sorted_with_the_newer_first_among_equals(team: Rig) -> None:
    await team.register("dan", role="analyst", authority=10)
    for n, kind in enumerate(("human_directive", "decision", "observation", "finding", "question") * 4):
        words = "pricing" if n % 3 else "pricing regions Europe"
        await team.record("dan" if kind == "human_directive" else ("ada", "ben")[n % 2], words, type=kind)
    # Far in the past, units recorded one after the other score the same.
    for _ in range(12):
        await team.ask("ATTUNE", "eve", attunement(), epoch=await team.epoch() + 10_000)
    await team.record("ada", "pricing regions Europe", type="decision")
    for hint in (None, "pricing", "pricing regions Europe", "nothing of it"):
        answer = await team.attune("eve", hint, interests=["regions"])
        keys = [(found["relevance_score"], found["memory_unit"]["epoch"]) for found in answer["record"]]
        assert len(keys) == 21
        assert all(0.0 <= score <= 1.0 for score, _ in keys)
        assert keys == sorted(keys, reverse=True)


@requirement("akashik:attune:score-independent")
async def test_a_units_score_is_the_same_whatever_else_is_in_the_answer(team: Rig) -> None:
    recorded = [
        await team.ask("RECORD", ("ada", "ben")[n % 2], unit(f"Pricing {n} region{n % 4}"), session_id=f"s-{n % 3}")
        for n in range(24)
    ]
    whole = scores(await team.attune("eve", "pricing region1 region2"))
    others = [
        await team.attune("eve", "pricing region1 region2", max_units=3),
        await team.attune("eve", "pricing region1 region2", max_units=17),
        await team.attune("eve", "pricing region1 region2", sessions=["s-1"]),
        await team.attune("eve", "pricing region1 region2", since_epoch=recorded[15]["epoch"]),
        await team.attune("eve", "pricing region1 region2", order="epoch", max_units=5),
        await team.attune("ada", "pricing region1 region2"),
        await team.attune("ben", "pricing region1 region2", include_own=True, max_units=8),
    ]
    for answer in others:
        assert answer["record"]
        assert all(whole[unit_id] == score for unit_id, score in scores(answer).items())


@requirement("akashik:attune:reason", "akashik:attune:reason-from-factors")
async def test_the_score_is_the_weighted_mean_of_the_factors_that_are_shown(team: Rig) -> None:
    for n in range(6):
        await team.record("ada", f"Pricing in region{n}.", type=("decision", "observation")[n % 2])
    for hint, interests in ((None, None), ("pricing region2", None), ("region3", ["region4"]), (None, ["region5"])):
        answer = await team.attune("eve", hint, interests=interests, role="researcher")
        for found in answer["record"]:
            shown = found["factors"]
            expected = {"recency", "type", "role", "confidence", "proximity"}
            expected |= {"lexical", "surroundings"} if hint else set()
            expected |= {"interests"} if interests else set()
            assert set(shown) == expected
            assert all(0.0 <= value <= 1.0 for value in shown.values())
            mean = sum(WEIGHTS[name] * value for name, value in shown.items()) / sum(WEIGHTS[name] for name in shown)
            assert found["relevance_score"] == pytest.approx(mean, abs=2e-4)


@requirement("akashik:attune:reason", "akashik:attune:reason-from-factors")
async def test_the_reason_names_the_factors_that_counted_and_no_others(team: Rig) -> None:
    await team.register("dan", role="analyst")
    matching = await team.record("dan", "Pricing across Europe.", type="decision")
    other = await team.record("ada", "The weather.", type="observation")
    answer = await team.attune("eve", "European pricing of Europe")
    told = reasons(answer)
    assert all(reason.endswith(".") and len(reason.split()) > 4 for reason in told.values())
    assert "dan" in told[matching]
    assert "decision" in told[matching].lower()
    assert "pricing" in told[matching]
    assert "role" in told[matching]
    assert "hint" not in told[other]
    assert "your role" not in told[other]
    assert "observation" in told[other].lower()
    assert factors(answer)[other]["lexical"] == factors(answer)[other]["role"] == 0
    strongest = max(factors(answer)[matching], key=lambda name: WEIGHTS[name] * factors(answer)[matching][name])
    assert strongest == "lexical"
    assert told[matching].index("pricing") < told[matching].index("role"), "the strongest factor is told first"


@requirement("akashik:attune:recency")
async def test_a_draft_is_as_recent_as_its_commit(team: Rig) -> None:
    draft = await team.draft("ada")
    between = await team.record("ada")
    confidence = to_builtins((await team.unit(between)).confidence)
    await team.ask("COMMIT", "ada", {"memory_unit_id": draft, "confidence": confidence})
    told = scores(await team.attune("eve"))
    assert told[draft] > told[between]


@requirement("akashik:attune:sorted")
async def test_a_contested_unit_keeps_its_score(team: Rig) -> None:
    target = await team.record("ada")
    rival = await team.record("ben", relations=[relation("contradicts", target)])
    told = scores(await team.attune("eve"))
    assert told[rival] > told[target] > 0
