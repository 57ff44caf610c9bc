"""§3 and the seed: what ATTUNE answers, what it leaves out, and the conflicts that concern the caller."""

import asyncio
from time import perf_counter
from typing import Any

import pytest

from tests.protocol.rig import Body, Rig, attunement, ids, plain, relation, unit
from tests.requirements import requirement


@requirement("akashik:attune:answer", "akashik:attune:tokens-null")
async def test_attune_answers_units_conflicts_budget_and_epoch(team: Rig) -> None:
    unit_id = await team.record("ada")
    answer = await team.attune("eve")
    assert set(answer) == {"status", "record", "conflicts", "context_budget", "epoch"}
    assert (answer["status"], answer["conflicts"]) == ("ok", [])
    assert answer["epoch"] == await team.epoch()
    assert answer["context_budget"] == {
        "units_returned": 1,
        "units_available": 1,
        "tokens_used": None,
        "tokens_budget": None,
        "left_out": {"over_budget": 0, "below_threshold": 0, "duplicate": 0, "over_max_units": 0, "units": []},
    }
    [found] = answer["record"]
    assert found["memory_unit"] == plain(await team.unit(unit_id))


@requirement("akashik:attune:answer")
async def test_an_empty_field_answers_with_nothing(team: Rig) -> None:
    answer = await team.attune("eve", "anything at all")
    assert (answer["record"], answer["conflicts"]) == ([], [])
    assert answer["context_budget"]["units_available"] == 0


@requirement("akashik:attune:retracted-and-superseded-excluded")
async def test_retracted_superseded_and_discarded_units_stay_out_whatever_is_asked_for(team: Rig) -> None:
    retracted, superseded = await team.record("ada"), await team.record("ada")
    discarded = await team.draft("ada")
    await team.ask("RETRACT", "ada", {"memory_unit_id": retracted, "reason": "wrong"})
    await team.ask("DISCARD", "ada", {"memory_unit_id": discarded})
    left = await team.record("ada", relations=[relation("supersedes", superseded)])
    everything = {"include_own": True, "include_drafts": True, "include_archived": True}
    for agent in ("ada", "eve"):
        assert await team.seen_by(agent, **everything) == {left}


@requirement("akashik:attune:others-drafts-excluded")
async def test_a_draft_that_matches_the_hint_best_is_still_hidden_from_others(team: Rig) -> None:
    await team.draft("ada", "zanzibar zanzibar zanzibar")
    answer = await team.attune("ben", "zanzibar", include_drafts=True, include_own=True)
    assert answer["record"] == []
    assert answer["context_budget"]["units_available"] == 0


@requirement("akashik:attune:everything-else", "akashik:attune:hint-optional")
async def test_every_visible_unit_comes_back_whatever_the_hint(team: Rig) -> None:
    recorded = {await team.record(agent, f"Unit {n}.", session=n) for n in ("a", "b", None) for agent in ("ada", "ben")}
    hints = (None, "", "Unit a", "nothing of the kind", "the of and", "\U0001f984", "“quoted” OR (NEAR) * -x")
    for hint in hints:
        assert set(ids(await team.attune("eve", hint))) == recorded


@requirement("akashik:attune:everything-else", "akashik:attune:max-units")
async def test_a_million_units_may_be_asked_for_and_all_that_there_are_come_back_once(team: Rig) -> None:
    envelopes = [team.send("RECORD", ("ada", "ben")[n % 2], unit(f"Unit {n}.")) for n in range(300)]
    answers = await asyncio.gather(*envelopes)
    expected = {answer.body["memory_unit_id"] for answer in answers}
    for hint in (None, "unit 7"):
        answer = await team.attune("eve", hint, max_units=1_000_000)
        assert len(ids(answer)) == 300
        assert set(ids(answer)) == expected


@requirement("akashik:attune:acknowledged-visible")
async def test_a_unit_is_found_by_its_words_as_soon_as_it_is_acknowledged(team: Rig) -> None:
    for n in range(30):
        unit_id = await team.record("ada", f"Observation about topic{n}.")
        answer = await team.attune("eve", f"topic{n}", max_units=1)
        assert ids(answer) == [unit_id]
        assert answer["record"][0]["factors"]["lexical"] == 1.0


@requirement("akashik:attune:max-units", "akashik:attune:budget-counts")
@pytest.mark.parametrize("order", ["relevance", "epoch"])
async def test_no_more_than_max_units_come_back_and_the_budget_counts_the_rest(team: Rig, order: str) -> None:
    recorded = [await team.record(("ada", "ben")[n % 2]) for n in range(12)]
    await team.draft("ada")
    await team.record("eve")
    for most in (1, 5, 11, 12, 13, 100):
        answer = await team.attune("eve", max_units=most, order=order)
        assert len(answer["record"]) == min(most, 12)
        assert set(ids(answer)) <= set(recorded)
        assert answer["context_budget"]["units_returned"] == min(most, 12)
        assert answer["context_budget"]["units_available"] == 12


@requirement("akashik:attune:since-epoch")
async def test_since_epoch_keeps_units_committed_at_or_after_it(team: Rig) -> None:
    recorded = [await team.ask("RECORD", "ada", unit()) for _ in range(4)]
    for at, answer in enumerate(recorded):
        expected = {later["memory_unit_id"] for later in recorded[at:]}
        assert await team.seen_by("eve", since_epoch=answer["epoch"]) == expected
        assert set(ids(await team.attune("eve", payload={"since_epoch": answer["epoch"]}))) == expected
    assert await team.seen_by("eve", since_epoch=recorded[-1]["epoch"] + 1) == set()
    assert len(await team.seen_by("eve", since_epoch=0)) == 4


@requirement("akashik:attune:since-epoch")
async def test_a_draft_counts_from_the_epoch_at_which_it_was_committed(team: Rig) -> None:
    draft = await team.draft("ada")
    between = (await team.ask("RECORD", "ada", unit()))["epoch"]
    assert draft not in await team.seen_by("eve", since_epoch=between)
    confidence = {"score": 0.5, "reasoning": "checked"}
    committed = await team.ask("COMMIT", "ada", {"memory_unit_id": draft, "confidence": confidence})
    assert draft in await team.seen_by("eve", since_epoch=committed["epoch"])
    assert draft not in await team.seen_by("eve", since_epoch=committed["epoch"] + 1)


@requirement("akashik:attune:since-epoch-larger")
async def test_of_two_since_epochs_the_larger_holds(team: Rig) -> None:
    first, second = [await team.ask("RECORD", "ada", unit()) for _ in range(2)]
    for low, high in ((first["epoch"], second["epoch"]), (0, second["epoch"])):
        assert ids(await team.attune("eve", payload={"since_epoch": low}, since_epoch=high)) == [
            second["memory_unit_id"]
        ]
        assert ids(await team.attune("eve", payload={"since_epoch": high}, since_epoch=low)) == [
            second["memory_unit_id"]
        ]
    answer = await team.attune("eve", payload={"since_epoch": None}, since_epoch=second["epoch"])
    assert ids(answer) == [second["memory_unit_id"]]


@requirement("akashik:attune:min-epoch-waits")
async def test_min_epoch_waits_for_the_write_that_reaches_it(team: Rig) -> None:
    wanted = await team.epoch() + 1
    waiting = asyncio.create_task(team.attune("eve", payload={"min_epoch": wanted}))
    await asyncio.sleep(0)  # let it begin to wait
    unit_id = await team.record("ada")
    answer = await waiting
    assert ids(answer) == [unit_id]
    assert answer["epoch"] >= wanted


@requirement("akashik:attune:min-epoch-waits")
async def test_a_min_epoch_that_is_reached_already_does_not_wait(team: Rig) -> None:
    unit_id = await team.record("ada")
    begun = perf_counter()
    for reached in (0, 1, await team.epoch(), None):
        assert ids(await team.attune("eve", payload={"min_epoch": reached})) == [unit_id]
    assert perf_counter() - begun < 1.5


@requirement("akashik:attune:min-epoch-times-out", "akashik:errors:http-status")
async def test_a_min_epoch_that_is_not_reached_within_two_seconds_is_told_so(team: Rig) -> None:
    begun = perf_counter()
    payload = attunement() | {"min_epoch": await team.epoch() + 1}
    status, refusal = await team.send("ATTUNE", "eve", payload)
    assert (status, refusal["code"], refusal["recoverable"]) == (504, "EPOCH_NOT_REACHED", True)
    assert 1.9 < perf_counter() - begun < 6


@requirement("akashik:attune:format-full")
@pytest.mark.parametrize("asked", [{}, {"format": "full"}])
async def test_the_whole_unit_is_the_default(team: Rig, asked: Body) -> None:
    unit_id = await team.record("ada", session="s-1")
    [found] = (await team.attune("eve", payload=asked))["record"]
    assert found["format"] == "full"
    assert found["memory_unit"] == plain(await team.unit(unit_id))


@requirement("akashik:attune:format-full", "akashik:errors:payload-names-field")
@pytest.mark.parametrize("form", ["brief", "", None, 7])
async def test_an_unknown_format_is_refused(team: Rig, form: Any) -> None:
    refusal = await team.refused("INVALID_PAYLOAD", "ATTUNE", "eve", attunement() | {"format": form})
    assert "format" in refusal["message"]


@requirement("akashik:attune:format-ids-only")
async def test_ids_only_brings_id_and_epoch_with_the_same_scores_and_reasons(team: Rig) -> None:
    for n in range(3):
        await team.record("ada", f"Unit {n}.")
    whole = await team.attune("eve", "unit 1")
    slim = await team.attune("eve", "unit 1", payload={"format": "ids_only"})
    assert [set(found["memory_unit"]) for found in slim["record"]] == [{"id", "epoch"}] * 3
    assert {found["format"] for found in slim["record"]} == {"ids_only"}
    for name in ("relevance_score", "relevance_reason"):
        assert [found[name] for found in slim["record"]] == [found[name] for found in whole["record"]]
    for found, full in zip(slim["record"], whole["record"], strict=True):
        assert found["memory_unit"] == {name: full["memory_unit"][name] for name in ("id", "epoch")}


@requirement("akashik:attune:conflicts")
async def test_conflicts_are_those_of_which_the_caller_recorded_a_side_or_a_side_is_a_candidate(team: Rig) -> None:
    await team.register("zoe")
    old = await team.record("ada", session="s-1")
    rival = await team.ask("RECORD", "ben", unit(relations=[relation("contradicts", old)]), session_id="s-2")
    [conflict] = rival["conflicts_detected"]

    async def shown_to(agent: str, **scope: Any) -> list[str]:
        return [found["id"] for found in (await team.attune(agent, **scope))["conflicts"]]

    assert await shown_to("eve") == [conflict], "both sides are candidates"
    assert await shown_to("eve", sessions=["s-1"]) == [conflict], "one side is a candidate"
    assert await shown_to("eve", sessions=["s-3"]) == [], "no side is a candidate"
    assert await shown_to("eve", since_epoch=rival["epoch"] + 1) == []
    assert await shown_to("ada", sessions=["s-3"]) == [conflict], "the caller recorded a side"
    assert await shown_to("ben", sessions=["s-3"]) == [conflict]
    assert await shown_to("eve", max_units=1) == [conflict], "a candidate need not be on the page"


@requirement("akashik:attune:conflicts")
async def test_resolved_conflicts_are_not_in_the_answer(team: Rig) -> None:
    olds = [await team.record("ada") for _ in range(2)]
    found = []
    for old in olds:
        answer = await team.ask("RECORD", "ben", unit(relations=[relation("contradicts", old)]))
        found += answer["conflicts_detected"]
    await team.ask("RETRACT", "ada", {"memory_unit_id": olds[0], "reason": "wrong"})
    assert [shown["id"] for shown in (await team.attune("eve"))["conflicts"]] == found[1:]
