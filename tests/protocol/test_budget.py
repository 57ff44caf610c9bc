"""The token budget: what is shown fits, what is counted is true, and what is left out is accounted for."""

from itertools import pairwise, product

import pytest

from fieldstone.field.paging import NAMED_LEFT_OUT
from tests.protocol.rig import EVERYTHING, Body, OpenRig, Rig, ids, relation, scores, warnings
from tests.protocol.ways import COUNTER, real_models
from tests.requirements import requirement

HINT = "why was the parcel late?"
LONG = (
    "The parcel left the harbour on Monday morning. The weather was fine and the roads were dry. "
    "The driver stopped twice to rest. Nobody had told him about the closed bridge. "
    "The parcel was late because the bridge was closed. The customer had been waiting since noon. "
    "The harbour office wrote a short note about it. The note was filed with the others. "
    "On the next day the bridge was open again. The driver took the same way as always. "
    "A second parcel arrived in time. The customer thanked the office for its trouble. "
) * 2
CONTENTS = (
    LONG,
    "The bridge was closed.",
    f"{LONG} {LONG}",
    "A parcel is late again.",
    "Rain.",
    LONG.replace("Mon", "Tues"),
)
BUDGETS = (1, 3, 8, 20, 50, 120, 400, 1_000, 100_000)


@pytest.fixture
async def office(rigs: OpenRig) -> Rig:
    """Long and short units of two agents, in a field with the models that it has by default."""
    office = await rigs(models=real_models)
    await office.register("ada", "ben")
    await office.register("eve", role="analyst")
    for n, content in enumerate(CONTENTS):
        await office.record(("ada", "ben")[n % 2], content)
    return office


def contents(attuned: Body) -> list[str]:
    return [found["memory_unit"]["content"] for found in attuned["record"]]


@requirement("akashik:scope:max-tokens", "akashik:scope:tokenizer-named")
@pytest.mark.parametrize("form", ["full", "summary"])
async def test_what_is_shown_never_has_more_tokens_than_asked_for_and_the_count_is_true(office: Rig, form: str) -> None:
    for most in BUDGETS:
        answer = await office.attune("eve", HINT, payload={"format": form}, max_tokens=most)
        budget = answer["context_budget"]
        assert budget["tokens_used"] == sum(map(COUNTER.count, contents(answer))) <= most
        assert (budget["tokens_budget"], budget["tokenizer"]) == (most, COUNTER.name)
        assert budget["units_returned"] + budget["left_out"]["over_budget"] == budget["units_available"]


@requirement("akashik:scope:max-tokens")
async def test_a_unit_is_shown_in_full_or_as_a_summary_that_is_taken_from_it_or_not_at_all(office: Rig) -> None:
    seen = set()
    for most in BUDGETS:
        for found in (await office.attune("eve", HINT, max_tokens=most))["record"]:
            shown, whole = found["memory_unit"], await office.unit(found["memory_unit"]["id"])
            seen.add(found["format"])
            if found["format"] == "full":
                assert shown["content"] == whole.content
            else:
                assert found["format"] == "summary"
                assert COUNTER.count(shown["content"]) < COUNTER.count(whole.content)
            assert shown["intent"]["purpose"] == whole.intent.purpose
    assert seen == {"full", "summary"}


@requirement("akashik:scope:max-tokens")
async def test_a_budget_changes_neither_scores_nor_their_order_and_a_larger_one_shows_no_less(office: Rig) -> None:
    plain = await office.attune("eve", HINT)
    shown = []
    for most in BUDGETS:
        answer = await office.attune("eve", HINT, max_tokens=most)
        assert scores(answer) == {unit_id: scores(plain)[unit_id] for unit_id in ids(answer)}
        assert ids(answer) == [unit_id for unit_id in ids(plain) if unit_id in ids(answer)]
        shown.append(answer["context_budget"]["tokens_used"])
    assert contents(await office.attune("eve", HINT, max_tokens=BUDGETS[-1])) == contents(plain)
    assert all(less <= more for less, more in pairwise(shown))


@requirement("akashik:scope:max-tokens")
async def test_the_best_unit_is_there_in_any_budget_that_holds_a_short_form_of_it(office: Rig) -> None:
    best = ids(await office.attune("eve", HINT))[0]
    for most in BUDGETS[3:]:
        assert ids(await office.attune("eve", HINT, max_tokens=most))[0] == best


@requirement("akashik:scope:max-tokens")
async def test_a_budget_holds_for_polling_too(office: Rig) -> None:
    answer = await office.attune("eve", order="epoch", max_tokens=50)
    assert answer["context_budget"]["tokens_used"] == sum(map(COUNTER.count, contents(answer))) <= 50
    everything = ids(await office.attune("eve", order="epoch"))
    assert ids(answer) == [unit_id for unit_id in everything if unit_id in ids(answer)], "oldest first, as without it"


@requirement("akashik:scope:tokenizer-named", "akashik:attune:tokens-null")
async def test_without_a_budget_no_tokens_are_counted_and_no_tokenizer_is_named(office: Rig) -> None:
    for form in ("full", "summary", "ids_only"):
        budget = (await office.attune("eve", HINT, payload={"format": form}))["context_budget"]
        assert (budget["tokens_used"], budget["tokens_budget"]) == (None, None)
        assert "tokenizer" not in budget


@requirement("akashik:scope:tokenizer-named", "akashik:attune:format-ids-only")
async def test_ids_have_no_content_and_cost_no_tokens(office: Rig) -> None:
    answer = await office.attune("eve", HINT, payload={"format": "ids_only"}, max_tokens=1)
    budget = answer["context_budget"]
    assert len(ids(answer)) == len(CONTENTS)
    assert (budget["tokens_used"], budget["tokens_budget"], budget["tokenizer"]) == (0, 1, COUNTER.name)


@requirement("akashik:attune:format-summary")
async def test_summary_shortens_long_units_to_sentences_of_theirs_and_leaves_short_ones(office: Rig) -> None:
    answer = await office.attune("eve", HINT, payload={"format": "summary"})
    assert warnings(answer) == []
    assert [found["format"] for found in answer["record"]] == ["summary"] * len(CONTENTS)
    for found in answer["record"]:
        whole, shown = (await office.unit(found["memory_unit"]["id"])).content, found["memory_unit"]["content"]
        if len(whole) < 100:
            assert shown == whole
        else:
            assert 0 < len(shown) < len(whole) / 2
            assert all(part in whole for part in shown.replace(" … ", ". ").rstrip(".").split(". "))


@requirement("akashik:attune:format-summary")
async def test_a_summary_keeps_what_the_hint_asks_for(office: Rig) -> None:
    answer = await office.attune("eve", "the bridge was closed", payload={"format": "summary"})
    assert all("bridge was closed" in content for content in contents(answer) if len(content) > 100)


@requirement("akashik:attune:left-out")
async def test_what_is_not_on_the_page_is_counted_and_named_with_its_reason(office: Rig) -> None:
    told = scores(await office.attune("eve", HINT))
    threshold = sorted(told.values())[1] + 1e-5
    answer = await office.attune("eve", HINT, max_units=3, max_tokens=8, relevance_threshold=threshold)
    left_out = answer["context_budget"]["left_out"]
    reasons = {unit["memory_unit_id"]: unit["reason"] for unit in left_out["units"]}
    assert set(reasons).isdisjoint(ids(answer))
    assert set(reasons) | set(ids(answer)) == set(told)
    assert {unit_id for unit_id, reason in reasons.items() if reason == "below threshold"} == {
        unit_id for unit_id, score in told.items() if score < threshold
    }
    counted = [
        left_out["over_budget"],
        left_out["below_threshold"],
        left_out["over_max_units"],
        left_out["duplicate"],
    ]
    named = [
        sum(reason.startswith(why) for reason in reasons.values())
        for why in ("over budget", "below threshold", "over max_units", "duplicate of")
    ]
    assert counted == named
    assert left_out["over_budget"] > 0
    assert left_out["below_threshold"] == 2


@requirement("akashik:attune:left-out")
@pytest.mark.parametrize("order", ["relevance", "epoch"])
async def test_the_receipt_adds_up_whatever_is_asked_for(office: Rig, order: str) -> None:
    for most, tokens, threshold in product((1, 3, EVERYTHING), (None, 8, 120), (None, 0.2, 1.0)):
        scope: Body = {"max_units": most, "max_tokens": tokens, "relevance_threshold": threshold}
        answer = await office.attune("eve", HINT, order=order, **scope)
        budget = answer["context_budget"]
        left_out = budget["left_out"]
        named = [unit["memory_unit_id"] for unit in left_out.pop("units")]
        assert sum(left_out.values()) == len(named) == budget["units_available"] - budget["units_returned"], scope
        assert sorted([*named, *ids(answer)]) == sorted(await office.seen_by("eve")), scope


@requirement("akashik:attune:left-out")
@pytest.mark.parametrize(
    ("reason", "scope"),
    [("over max_units", {"max_units": 1}), ("below threshold", {"relevance_threshold": 1.0})],
)
async def test_of_many_that_are_left_out_all_are_counted_and_the_best_hundred_are_named(
    team: Rig, reason: str, scope: Body
) -> None:
    for n in range(NAMED_LEFT_OUT + 30):
        await team.record("ada", f"Parcel {n}.")
    answer = await team.attune("eve", "a parcel", **scope)
    left_out = answer["context_budget"]["left_out"]
    best = [unit_id for unit_id in ids(await team.attune("eve", "a parcel")) if unit_id not in ids(answer)]
    assert left_out[reason.replace(" ", "_")] == len(best)
    assert [unit["memory_unit_id"] for unit in left_out["units"]] == best[:NAMED_LEFT_OUT]
    assert {unit["reason"] for unit in left_out["units"]} == {reason}


@requirement("akashik:attune:left-out")
async def test_what_the_caller_may_not_see_or_did_not_ask_for_is_never_named(team: Rig) -> None:
    await team.record("ada", session="s-1")
    await team.record("ada", session="s-1")
    wrong = await team.record("ada", session="s-1")
    old = await team.record("ada", session="s-1")
    await team.record("ada", session="s-1", relations=[relation("supersedes", old)])
    await team.ask("RETRACT", "ada", {"memory_unit_id": wrong, "reason": "wrong"})
    hidden = {wrong, old, await team.draft("ada", session="s-1"), await team.record("eve", session="s-1")}
    hidden.add(await team.record("ada", session="s-2"))
    answer = await team.attune("eve", max_units=1, sessions=["s-1"])
    left_out = answer["context_budget"]["left_out"]
    assert left_out["over_max_units"] == len(left_out["units"]) == 2
    assert hidden.isdisjoint(unit["memory_unit_id"] for unit in left_out["units"])


@requirement("akashik:attune:left-out")
async def test_where_everything_is_on_the_page_nothing_is_left_out(team: Rig) -> None:
    await team.record("ada")
    assert (await team.attune("eve", max_tokens=100))["context_budget"]["left_out"] == {
        "over_budget": 0,
        "below_threshold": 0,
        "duplicate": 0,
        "over_max_units": 0,
        "units": [],
    }
