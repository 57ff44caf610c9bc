"""§3, partial failures: a unit is safe with or without its vector, and gets one by itself."""

import asyncio

import pytest
from msgspec import structs

from fieldstone.field import enrichment, following, meanings
from fieldstone.field.options import Models
from fieldstone.ports.embedder import Embedder
from fieldstone.testing import WordCounter
from tests.protocol.rig import OpenRig, Rig, factors, ids, options, unit, warnings
from tests.protocol.ways import DURABLE
from tests.requirements import requirement
from tests.scripted import ScriptedEmbedder, ScriptedJudge, eventually

durable = pytest.mark.parametrize("transport", DURABLE, indirect=True)

LATE = "ENRICHMENT_FAILED"
AT_ONCE_MS = 1  # a time limit that has passed before a model that waits can answer


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tried again after a while is tried again at once."""
    monkeypatch.setattr(enrichment, "FIRST_PAUSE_MS", 1)
    monkeypatch.setattr(enrichment, "LONGEST_PAUSE_MS", 1)
    monkeypatch.setattr(following, "TELL_AFTER_MS", 0)
    monkeypatch.setattr(meanings, "ASK_AGAIN_MS", 1)


class Bench:
    """A field whose models a test holds in its hands; `old` makes the vectors of a former model."""

    def __init__(self, rigs: OpenRig) -> None:
        self._rigs = rigs
        self.embedder = ScriptedEmbedder()
        self.judge: ScriptedJudge | None = None
        self.old: ScriptedEmbedder | None = None

    async def open(self, *, timeout_ms: int = 60_000) -> Rig:
        rig: Rig = await self._rigs(structs.replace(options(), enrichment_timeout_ms=timeout_ms), models=self._models)
        await rig.register("ada", "ben")
        await rig.register("eve", role="analyst")
        return rig

    def _models(self) -> Models:
        return Models(WordCounter(), self.embedder, self._former, self.judge)

    async def _former(self, _name: str) -> Embedder | None:
        return self.old


@pytest.fixture
def bench(rigs: OpenRig) -> Bench:
    return Bench(rigs)


async def becomes(field: Rig, unit_id: str, status: str) -> None:
    async def holds() -> bool:
        return (await field.unit(unit_id)).status == status

    await eventually(holds)


async def models_of(field: Rig) -> list[tuple[str, str, int]]:
    return [(each.model, each.state, each.waiting) for each in (await field.door.status()).embeddings]


# --- in time, and late ------------------------------------------------------------------------------------------------


@requirement("akashik:enrichment:in-time")
async def test_a_unit_that_is_embedded_in_time_is_active_and_its_answer_has_no_warning(bench: Bench) -> None:
    field = await bench.open()
    answer = await field.ask("RECORD", "ada", unit("The cache is cold."))
    assert warnings(answer) == []
    assert (await field.unit(answer["memory_unit_id"])).status == "active"
    assert await models_of(field) == [("scripted/words", "serving", 0)]


@requirement("akashik:enrichment:late")
async def test_a_unit_whose_embedding_fails_is_pending_says_so_and_is_found_by_its_words(bench: Bench) -> None:
    field = await bench.open()
    bench.embedder.fails = True
    answer = await field.ask("RECORD", "ada", unit("The turbine hums."))
    assert [code for code, _ in warnings(answer)] == [LATE]
    assert (await field.unit(answer["memory_unit_id"])).status == "pending_enrichment"
    attuned = await field.attune("eve", "turbine")
    assert ids(attuned) == [answer["memory_unit_id"]]
    assert factors(attuned)[answer["memory_unit_id"]]["lexical"] > 0


@requirement("akashik:enrichment:late", "akashik:enrichment:retried")
async def test_a_unit_whose_embedding_is_late_is_pending_until_it_comes(bench: Bench) -> None:
    field = await bench.open(timeout_ms=AT_ONCE_MS)
    bench.embedder.opened.clear()
    answer = await field.ask("RECORD", "ada", unit("The turbine hums."))
    assert [code for code, _ in warnings(answer)] == [LATE]
    assert (await field.unit(answer["memory_unit_id"])).status == "pending_enrichment"
    assert answer["memory_unit_id"] in ids(await field.attune("eve"))
    bench.embedder.opened.set()
    await becomes(field, answer["memory_unit_id"], "active")
    assert len(bench.embedder.calls) == 1, "what is only late is not asked for twice"


async def test_a_draft_that_takes_effect_without_its_vector_is_pending_then(bench: Bench) -> None:
    field = await bench.open()
    bench.embedder.fails = True
    draft = await field.draft("ada", "The turbine may hum.")
    assert (await field.unit(draft)).status == "draft"
    sure = {"score": 0.8, "reasoning": "heard it"}
    answer = await field.ask("COMMIT", "ada", {"memory_unit_id": draft, "confidence": sure})
    assert [code for code, _ in warnings(answer)] == [LATE]
    assert (await field.unit(draft)).status == "pending_enrichment"
    bench.embedder.fails = False
    await becomes(field, draft, "active")


@requirement("akashik:idempotency:same-answer")
async def test_a_message_sent_again_gets_the_answer_with_the_warning(bench: Bench) -> None:
    field = await bench.open()
    bench.embedder.fails = True
    envelope = field.envelope("RECORD", "ada", unit("The turbine hums."))
    _, first = await field.send_envelope(envelope)
    bench.embedder.fails = False
    await becomes(field, first["memory_unit_id"], "active")
    _, again = await field.send_envelope(envelope)
    assert again == first
    assert [code for code, _ in warnings(again)] == [LATE]


@requirement("akashik:idempotency:same-answer")
async def test_a_message_sent_again_while_the_model_is_waited_for_gets_the_same_answer(bench: Bench) -> None:
    field = await bench.open()
    bench.embedder.opened.clear()
    envelope = field.envelope("RECORD", "ada", unit("The turbine hums."))
    first = asyncio.create_task(field.send_envelope(envelope))
    await bench.embedder.asked.wait()
    second = asyncio.create_task(field.send_envelope(envelope))
    bench.embedder.fails = True
    bench.embedder.opened.set()
    answers = await asyncio.gather(first, second)
    assert answers[0] == answers[1]
    assert [code for code, _ in warnings(answers[0].body)] == [LATE]


async def test_a_vector_that_comes_while_conflicts_are_looked_for_leaves_no_unit_pending(bench: Bench) -> None:
    """The unit was late, and had its vector before anyone wrote down that it was: it must not stay pending."""
    bench.judge = ScriptedJudge(word=True)
    field = await bench.open(timeout_ms=AT_ONCE_MS)
    bench.embedder.opened.clear()
    await field.record("ada", "The limit is 40 requests.", type="question")
    late = asyncio.create_task(field.ask("RECORD", "ada", unit("The API rate limit is 100 requests per second.")))
    judged = bench.judge
    judged.opened.clear()
    first = (await late)["memory_unit_id"]
    answer = asyncio.create_task(field.ask("RECORD", "ben", unit("The API rate limit is 50 requests per second.")))

    async def is_judged() -> bool:
        return bool(judged.asked)

    await eventually(is_judged)
    bench.embedder.opened.set()

    async def none_waits() -> bool:
        return await models_of(field) == [("scripted/words", "serving", 0)]

    await eventually(none_waits)
    judged.opened.set()
    second = (await answer)["memory_unit_id"]
    await field.ask("RETRACT", "ada", {"memory_unit_id": first, "reason": "settle it"})
    assert (await field.unit(second)).status == "active"


# --- tried again ------------------------------------------------------------------------------------------------------


@requirement("akashik:enrichment:retried")
async def test_a_pending_unit_is_embedded_by_itself_when_the_model_answers_again(bench: Bench) -> None:
    field = await bench.open()
    bench.embedder.fails = True
    units = [await field.record("ada", f"Pump {number} runs.") for number in range(3)]
    bench.embedder.fails = False
    for each in units:
        await becomes(field, each, "active")
    kinds = await field.kinds()
    assert (kinds.count("unit.pending"), kinds.count("unit.enriched")) == (3, 3)
    assert await models_of(field) == [("scripted/words", "serving", 0)]


@durable
@requirement("akashik:enrichment:retried")
async def test_a_unit_that_was_pending_when_the_field_closed_is_embedded_after_the_restart(bench: Bench) -> None:
    field = await bench.open()
    bench.embedder.fails = True
    pending = await field.record("ada", "The turbine hums.")
    bench.embedder = ScriptedEmbedder()
    await field.restart()
    await becomes(field, pending, "active")
    assert "semantic" in factors(await field.attune("eve", "turbine"))[pending]
    assert await models_of(field) == [("scripted/words", "serving", 0)]


@requirement("akashik:enrichment:retried")
async def test_one_text_that_no_model_takes_hinders_no_other_unit(bench: Bench) -> None:
    field = await bench.open()
    bench.embedder.fails = True
    units = [await field.record("ada", f"Pump {number} runs.") for number in range(6)]
    bad = await field.record("ada", "This is poison to it.")
    bench.embedder.poison, bench.embedder.fails = "poison", False
    for each in units:
        await becomes(field, each, "active")
    assert (await field.unit(bad)).status == "pending_enrichment"
    later = await field.ask("RECORD", "ada", unit("Pump 7 runs."))
    await becomes(field, later["memory_unit_id"], "active")


async def test_a_retracted_unit_stays_retracted_when_its_vector_comes(bench: Bench) -> None:
    field = await bench.open(timeout_ms=AT_ONCE_MS)
    bench.embedder.opened.clear()
    gone = await field.record("ada", "The turbine hums.")
    await field.ask("RETRACT", "ada", {"memory_unit_id": gone, "reason": "it does not"})
    bench.embedder.opened.set()
    other = await field.record("ada", "The boiler leaks.")
    await becomes(field, other, "active")
    assert (await field.unit(gone)).status == "retracted"


# --- models -----------------------------------------------------------------------------------------------------------


@durable
@requirement("akashik:enrichment:model-stored")
async def test_the_model_and_its_dimension_are_known_after_a_restart_without_asking_it(bench: Bench) -> None:
    bench.embedder = ScriptedEmbedder(told=False)
    field = await bench.open()
    known = await field.record("ada", "The turbine hums.")
    bench.embedder = ScriptedEmbedder(told=False)
    bench.embedder.fails = True
    await field.restart()
    assert await models_of(field) == [("scripted/words", "serving", 0)]
    assert bench.embedder.calls == []
    assert (await field.unit(known)).status == "active"


@requirement("akashik:enrichment:late", "akashik:enrichment:retried")
async def test_an_endpoint_that_has_never_answered_is_asked_until_it_does(bench: Bench) -> None:
    bench.embedder = ScriptedEmbedder(told=False)
    bench.embedder.fails = True
    field = await bench.open()
    assert await models_of(field) == []
    answer = await field.ask("RECORD", "ada", unit("The turbine hums."))
    assert [code for code, _ in warnings(answer)] == [LATE]
    bench.embedder.fails = False
    await becomes(field, answer["memory_unit_id"], "active")
    assert await models_of(field) == [("scripted/words", "serving", 0)]


@durable
@requirement("akashik:enrichment:model-changed")
async def test_another_model_embeds_everything_while_the_old_vectors_serve_and_then_takes_over(bench: Bench) -> None:
    field = await bench.open()
    first = await field.record("ada", "The turbine hums.")
    bench.old, bench.embedder = ScriptedEmbedder(), ScriptedEmbedder("scripted/better", dimension=32)
    bench.embedder.opened.clear()
    await field.restart()
    second = await field.record("ada", "The turbine stopped.")
    assert await models_of(field) == [("scripted/words", "serving", 0), ("scripted/better", "preparing", 2)]
    attuned = await field.attune("eve", "turbine", include_own=True)
    assert all("semantic" in factors(attuned)[each] for each in (first, second))
    bench.embedder.opened.set()

    async def taken_over() -> bool:
        return await models_of(field) == [("scripted/better", "serving", 0)]

    await eventually(taken_over)
    attuned = await field.attune("eve", "turbine", include_own=True)
    assert all("semantic" in factors(attuned)[each] for each in (first, second))
    old, bench.old = bench.old, None
    bench.embedder = ScriptedEmbedder("scripted/better", dimension=32)
    await field.restart()
    assert old.closed
    assert await models_of(field) == [("scripted/better", "serving", 0)]
    assert bench.embedder.calls == [], "what was embedded is kept"


@durable
@requirement("akashik:enrichment:model-changed", "akashik:enrichment:retried")
async def test_a_unit_that_the_old_model_left_pending_is_active_once_the_new_one_serves(bench: Bench) -> None:
    field = await bench.open()
    await field.record("ada", "The turbine hums.")
    bench.old, bench.embedder = ScriptedEmbedder(), ScriptedEmbedder("scripted/better")
    bench.old.fails = True
    bench.embedder.opened.clear()
    await field.restart()
    pending = await field.record("ada", "The turbine stopped.")
    assert (await field.unit(pending)).status == "pending_enrichment"
    bench.embedder.opened.set()
    await becomes(field, pending, "active")


@durable
@requirement("akashik:enrichment:model-changed")
async def test_a_former_model_that_is_gone_leaves_words_until_the_new_one_is_ready(bench: Bench) -> None:
    field = await bench.open()
    first = await field.record("ada", "The turbine hums.")
    bench.embedder = ScriptedEmbedder("scripted/better")
    bench.embedder.opened.clear()
    await field.restart()
    assert await models_of(field) == [("scripted/better", "preparing", 1)]
    assert ids(await field.attune("eve", "turbine")) == [first]
    bench.embedder.opened.set()

    async def taken_over() -> bool:
        return await models_of(field) == [("scripted/better", "serving", 0)]

    await eventually(taken_over)


# --- queries ----------------------------------------------------------------------------------------------------------


@requirement("akashik:enrichment:model-silent")
async def test_an_attune_whose_hint_cannot_be_embedded_is_answered_by_words_and_says_so(bench: Bench) -> None:
    field = await bench.open()
    found = await field.record("ada", "The turbine hums.")
    bench.embedder.fails = True
    attuned = await field.attune("eve", "turbine")
    assert ids(attuned) == [found]
    assert [code for code, _ in warnings(attuned)] == [LATE]
    assert "semantic" not in factors(attuned)[found]


@requirement("akashik:enrichment:model-silent")
async def test_an_attune_does_not_wait_for_a_model_that_hangs(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meanings, "QUERY_MS", 1)
    field = await bench.open()
    found = await field.record("ada", "The turbine hums.")
    bench.embedder.opened.clear()
    attuned = await field.attune("eve", "turbine")
    assert ids(attuned) == [found]
    assert [code for code, _ in warnings(attuned)] == [LATE]
    bench.embedder.opened.set()

    async def speaks_again() -> bool:
        return not warnings(await field.attune("eve", "turbine"))

    await eventually(speaks_again)
