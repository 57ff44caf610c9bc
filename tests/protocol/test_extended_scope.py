"""§2: the extended scope, from which on an agent says how much it wants, how new, how sure, and of which layer."""

from collections.abc import Callable
from itertools import combinations

import pytest

from fieldstone.ports.store import Commit, Store
from fieldstone.ports.views import PutUnit
from fieldstone.retrieval.score import WEIGHTS
from fieldstone.testing import FaultyStore
from tests.protocol.rig import Body, OpenRig, Rig, factors, ids, relation, scores, warnings
from tests.requirements import requirement

SHELF = "shelf"  # units of a session are archived in these tests, and others are not
LAYERS = ("past", "present", "future")


class ArchivingStore(FaultyStore):
    """COMPACT is not built yet, and a unit is archived by a flag in its row: here units of a session get it as they are
    recorded. A field reads it when it is opened."""

    async def commit(self, commit: Commit) -> None:
        changes = [
            PutUnit(change.row._replace(archived_epoch=change.row.epoch))
            if isinstance(change, PutUnit) and change.row.session is not None
            else change
            for change in commit.changes
        ]
        await super().commit(commit._replace(changes=changes))


def archiving() -> Callable[[Store], Store]:
    """What is in memory is kept, so that it can be opened again as a file is."""
    kept: list[Store] = []

    def wrap(store: Store) -> Store:
        if not kept or store.durable:
            kept[:] = [ArchivingStore(store)]
        return kept[0]

    return wrap


async def field_with_layers(rigs: OpenRig) -> tuple[Rig, dict[str, set[str]]]:
    """A field, and its units by layer."""
    team = await rigs(wrap=archiving())
    await team.register("ada", "ben", "eve")
    past = {await team.record("ada", kind, type=kind, session=SHELF) for kind in ("finding", "question")}
    answered = await team.record("ada", "Which of them?", type="question")
    given_up = await team.record("ada", "We should look.", type="intention")
    present = {
        await team.record("ben", "This one.", relations=[relation("answers", answered)]),
        await team.record("ben", "We looked.", relations=[relation("answers", given_up)]),
        await team.record("ada", "It is so.", type="decision"),
        answered,
        given_up,
    }
    future = {await team.record("ada", kind, type=kind) for kind in ("question", "intention")}
    supported = await team.record("ada", "Who asks?", type="question")
    present.add(await team.record("ben", "We all do.", relations=[relation("supports", supported)]))
    future.add(supported)
    await team.restart()
    return team, {"past": past, "present": present, "future": future}


@requirement("akashik:scope:temporal-layers", "akashik:scope:include-archived")
async def test_every_unit_is_in_one_layer_and_layers_add_up(rigs: OpenRig) -> None:
    team, layers = await field_with_layers(rigs)
    for count in (1, 2, 3):
        for wanted in combinations(LAYERS, count):
            expected = set[str]().union(*(layers[layer] for layer in wanted))
            answer = await team.attune("eve", temporal_layers=wanted)
            assert set(ids(answer)) == expected, wanted
            assert answer["context_budget"]["units_available"] == len(expected)
            assert warnings(answer) == []


@requirement("akashik:scope:temporal-layers", "akashik:scope:include-archived")
async def test_without_layers_present_and_future_come_and_include_archived_adds_the_past(rigs: OpenRig) -> None:
    team, layers = await field_with_layers(rigs)
    now = layers["present"] | layers["future"]
    assert await team.seen_by("eve") == await team.seen_by("eve", temporal_layers=None) == now
    assert await team.seen_by("eve", include_archived=True) == now | layers["past"]
    for layer in LAYERS:
        found = await team.seen_by("eve", include_archived=True, temporal_layers=[layer])
        assert found == layers[layer] | layers["past"]


@requirement("akashik:scope:temporal-layers")
async def test_an_archived_unit_says_when_it_was_archived_and_others_do_not(rigs: OpenRig) -> None:
    team, layers = await field_with_layers(rigs)
    answer = await team.attune("eve", include_archived=True)
    assert {found["memory_unit"]["id"] for found in answer["record"] if "archived_epoch" in found["memory_unit"]} == (
        layers["past"]
    )


@requirement("akashik:scope:temporal-layers")
@pytest.mark.parametrize("undone", ["draft", "retracted", "superseded"])
async def test_an_answer_that_does_not_stand_answers_nothing(team: Rig, undone: str) -> None:
    question = await team.record("ada", "Who pays?", type="question")
    answers = [relation("answers", question)]
    if undone == "draft":
        answer = await team.draft("ben", "We do.", relations=answers)
    else:
        answer = await team.record("ben", "We do.", relations=answers)
        assert await team.seen_by("eve", temporal_layers=["future"]) == set()
    if undone == "retracted":
        await team.ask("RETRACT", "ben", {"memory_unit_id": answer, "reason": "wrong"})
    if undone == "superseded":
        await team.record("ben", "Nobody knows.", relations=[relation("supersedes", answer)])
    assert await team.seen_by("eve", temporal_layers=["future"]) == {question}
    assert question not in await team.seen_by("eve", temporal_layers=["present"])


@requirement("akashik:scope:relevance-threshold")
async def test_a_threshold_leaves_what_scores_at_least_that_and_counts_the_rest(team: Rig) -> None:
    for n, kind in enumerate(("decision", "finding", "observation", "question") * 3):
        await team.record(("ada", "ben")[n % 2], f"Pricing{' in Europe' if n % 3 else ''}, {n}.", type=kind)
    hint = "pricing in Europe"
    told = scores(await team.attune("eve", hint))
    for threshold in (0.0, *sorted(told.values())[::3], 1.0):
        answer = await team.attune("eve", hint, relevance_threshold=threshold)
        # A score is told to six digits.
        assert {unit_id for unit_id, score in told.items() if score > threshold + 1e-6} <= set(ids(answer))
        assert set(ids(answer)) <= {unit_id for unit_id, score in told.items() if score >= threshold - 1e-6}
        assert scores(answer) == {unit_id: told[unit_id] for unit_id in ids(answer)}, "it cuts, and changes no score"
        budget = answer["context_budget"]
        assert budget["units_available"] == len(told)
        assert budget["left_out"]["below_threshold"] == len(told) - budget["units_returned"]


@requirement("akashik:scope:relevance-threshold")
async def test_a_threshold_holds_for_polling_too(team: Rig) -> None:
    matching = await team.record("ada", "Pricing in Europe.")
    await team.record("ada", "The weather.", type="observation")
    answer = await team.attune("eve", "pricing in Europe", order="epoch", relevance_threshold=0.5)
    assert ids(answer) == [matching]


@requirement("akashik:scope:recency-weight")
@pytest.mark.parametrize("share", [0.0, 0.25, 0.9, 1.0])
async def test_recency_makes_up_the_asked_share_and_the_others_keep_their_proportions(team: Rig, share: float) -> None:
    for n, kind in enumerate(("decision", "finding", "observation", "question")):
        await team.record("ada", f"Pricing{' in Europe' if n % 2 else ''}, {n}.", type=kind)
    for hint in (None, "pricing in Europe"):
        answer = await team.attune("eve", hint, recency_weight=share)
        for unit_id, told in factors(answer).items():
            recency = told.pop("recency")
            rest = sum(WEIGHTS[name] * value for name, value in told.items()) / sum(WEIGHTS[name] for name in told)
            assert scores(answer)[unit_id] == pytest.approx(share * recency + (1 - share) * rest, abs=2e-4)


@requirement("akashik:scope:recency-weight")
async def test_with_all_of_the_weight_the_newest_come_first_and_with_none_being_new_does_not_count(team: Rig) -> None:
    recorded = [
        await team.record("ada", "Pricing in Europe.", type="decision"),
        await team.record("ada", "The weather.", type="observation"),
        await team.record("ada", "The weather.", type="observation"),
    ]
    newest_first = await team.attune("eve", "pricing in Europe", recency_weight=1.0)
    assert ids(newest_first) == recorded[::-1]
    regardless = await team.attune("eve", "pricing in Europe", recency_weight=0.0)
    assert ids(regardless)[0] == recorded[0]
    assert scores(regardless)[recorded[1]] == scores(regardless)[recorded[2]]


@requirement("akashik:scope:own-fields-at-level-1")
async def test_every_extended_field_is_in_force_without_a_warning(team: Rig) -> None:
    unit_id = await team.record("ada", "Pricing in Europe.", intent={"purpose": "size it", "task_id": "t-1"})
    extended: Body = {
        "max_tokens": 500,
        "interests": ["pricing"],
        "active_task_id": "t-1",
        "temporal_layers": ["present"],
        "relevance_threshold": 0.1,
        "recency_weight": 0.2,
    }
    answer = await team.attune("eve", "pricing", payload={"format": "summary"}, **extended)
    assert ids(answer) == [unit_id]
    assert "warnings" not in answer
