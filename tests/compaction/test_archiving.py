"""Archiving goes in steps that others can wait for, and each of them leaves everything to be found."""

import asyncio
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.backends.memory.store import MemoryStore
from fieldstone.backends.sqlite.store import SqliteStore
from fieldstone.compaction import pace, plan
from fieldstone.core.errors import StorageFull
from fieldstone.core.events import AnyEvent, UnitRecorded, UnitsArchived, UnitsPurged, decode_entry
from fieldstone.core.replies import Compacted
from fieldstone.core.requests import Compact, CompactFilter, Message
from fieldstone.core.vocabulary import Strategy
from fieldstone.field import archiving, distilling, steps, writer
from fieldstone.field.archiving import Archiving
from fieldstone.field.field import LocalField
from fieldstone.field.secrets import SecretScope
from fieldstone.field.steps import ALONE_BATCHES, PIECE_UNITS, Stride
from fieldstone.field.work import Work
from fieldstone.field.writer import Cleaned
from fieldstone.ports.store import Commit, Store
from fieldstone.ports.text_index import Document, TextIndex
from fieldstone.redact import CleanGroup, Harness
from fieldstone.testing import KEY, FaultyStore, fail
from fieldstone.testing.rows import entries
from tests.field.fields import opened
from tests.messages import join, record, register
from tests.redact.fakes import noise
from tests.requirements import requirement

UNITS = 18
DOCUMENTS = 2_000


class Sizes(NamedTuple):
    """Those that a test sets, so that a few units take several steps."""

    batch: int = 6
    piece: int = 2
    alone_batches: int = 1


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> Sizes:
    sizes = Sizes()
    for room in (plan, archiving, steps):
        monkeypatch.setattr(room, "BATCH_UNITS", sizes.batch)
    monkeypatch.setattr(steps, "PIECE_UNITS", sizes.piece)
    monkeypatch.setattr(steps, "ALONE_BATCHES", sizes.alone_batches)
    return sizes


@given(others=st.lists(st.integers(0, 2), max_size=20))
def test_a_step_is_large_only_when_nobody_else_has_written_for_some_batches(others: list[int]) -> None:
    so_far = 0
    stride = Stride(lambda: so_far)
    for at, theirs in enumerate(others):
        alone = at >= ALONE_BATCHES and not any(others[at - ALONE_BATCHES : at])
        assert stride.is_alone is alone
        assert stride.units == (plan.BATCH_UNITS if alone else PIECE_UNITS)
        so_far += theirs
        stride.note()


@requirement("akashik:compact:steps-others-can-wait-for")
@pytest.mark.parametrize("strategy", ["archive", "purge"])
async def test_alone_units_go_in_whole_batches_after_careful_first_ones(sizes: Sizes, strategy: Strategy) -> None:
    store = MemoryStore(KEY)
    field = await filled(store)
    assert (await compacted(field, strategy)).units_affected == UNITS
    careful = 1 + sizes.alone_batches  # the first one finds what others recorded before
    assert await step_sizes(store) == [sizes.piece] * (careful * sizes.batch // sizes.piece) + [sizes.batch]
    await field.close()


@requirement("akashik:compact:steps-others-can-wait-for")
@pytest.mark.parametrize("strategy", ["archive", "purge"])
async def test_beside_others_units_go_in_pieces(sizes: Sizes, strategy: Strategy) -> None:
    store = MemoryStore(KEY)
    field = await filled(store, detect_conflicts=False)  # so whoever writes is answered at once, and back for each step
    compacting = asyncio.ensure_future(compacted(field, strategy))
    while not compacting.done():
        await field.send(record("ada", "somebody else writes, too", type="observation"))
    assert await step_sizes(store) == [sizes.piece] * (UNITS // sizes.piece)
    await field.close()


@requirement("akashik:compact:others-go-first")
async def test_whoever_comes_with_a_step_is_written_first_and_the_step_lets_one_group_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(writer, "MOST_REQUESTS_A_GROUP", 2)
    told: list[str] = []
    store = Telling(MemoryStore(KEY), told)
    field = await filled(store, detect_conflicts=False)
    told.clear()
    head = (await store.log.head()).seq

    async def step() -> None:
        await field._writer.submit_patiently(Archiving(1, [head]))

    await asyncio.gather(step(), *(field.send(record("ada", f"number {number}")) for number in range(5)))
    kinds = [type(event) for event in await events_of(store, after=head)]
    assert kinds == [*[UnitRecorded] * 4, UnitsArchived, UnitRecorded]
    assert len(told) == 3
    await field.close()


@requirement("akashik:compact:others-go-first")
async def test_a_step_waits_a_few_turns_for_others_who_are_only_on_their_way() -> None:
    store = MemoryStore(KEY)
    field = await filled(store, detect_conflicts=False)
    head = (await store.log.head()).seq

    async def from_a_socket() -> None:
        for _ in range(writer.TURNS_TO_THE_DOOR):
            await asyncio.sleep(0)
        await field.send(record("ada", "on the way"))

    await asyncio.gather(field._writer.submit_patiently(Archiving(1, [head])), from_a_socket())
    assert [type(event) for event in await events_of(store, after=head)] == [UnitRecorded, UnitsArchived]
    await field.close()


@requirement("akashik:compact:others-go-first")
async def test_an_answer_goes_out_before_the_next_group_is_written() -> None:
    told: list[str] = []
    store = Telling(MemoryStore(KEY), told)
    field = await filled(store, detect_conflicts=False)

    async def say(what: str) -> None:
        await field.send(record("ada", what))
        told.append(what)

    told.clear()
    store.meanwhile = say("second")
    await say("first")
    await store.others
    assert told == ["written", "first", "written", "second"]
    await field.close()


@requirement("akashik:compact:steps-others-can-wait-for")
@pytest.mark.parametrize(("alone_batches", "steps_units"), [(0, [[6, 6, 6]]), (99, [[6], [6], [6]])])
async def test_syntheses_share_a_step_alone_and_go_one_by_one_beside_others(
    monkeypatch: pytest.MonkeyPatch, alone_batches: int, steps_units: list[list[int]]
) -> None:
    monkeypatch.setattr(steps, "ALONE_BATCHES", alone_batches)
    store = Counting(MemoryStore(KEY))
    field = await filled(store, sessions=3)
    await compacted(field, "summarize")
    assert store.archived == steps_units
    await field.close()


@requirement("akashik:compact:others-go-first")
async def test_what_a_summarize_computes_gives_way_to_whoever_waits_for_the_writer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[object] = []
    in_thread = pace.in_thread

    async def noting(work: Any, *args: Any) -> Any:
        asked.append(pace._somebody_waits.get())
        return await in_thread(work, *args)

    monkeypatch.setattr(distilling, "in_thread", noting)
    field = await filled(MemoryStore(KEY))
    await compacted(field, "summarize")
    assert set(asked) == {field._writer.is_busy}
    await field.close()


@requirement("akashik:compact:others-go-first")
async def test_nobody_waits_until_the_words_of_a_synthesis_are_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    field = await filled(MemoryStore(KEY))
    harness, cleaning = await field._cleaning.harness(), asyncio.Event()
    said: list[str] = []

    async def slowly(_harness: Harness, dirty: Sequence[Sequence[str]]) -> Sequence[CleanGroup]:
        if any(text.startswith("to keep what") for texts in dirty for text in texts):
            cleaning.set()
            await field.send(record("ada", "somebody else"))
            said.append("somebody else")
        return harness.clean_groups(dirty)

    monkeypatch.setattr(writer, "_cleaned", slowly)
    await asyncio.wait_for(compacted(field, "summarize"), timeout=10)
    assert cleaning.is_set()
    assert said == ["somebody else"]
    await field.close()


@requirement("akashik:secrets:carried-forward")
async def test_a_secret_that_is_told_while_a_synthesis_waits_for_its_turn_is_taken_out_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, secret = MemoryStore(KEY), noise(32)
    field = await filled(store, says=f"the key is {secret}")
    clean_early = field._writer._clean_early

    async def then_told(work: Work) -> Cleaned | None:
        cleaned = await clean_early(work)
        assert cleaned is not None
        assert secret in repr(cleaned.clean)
        field._secrets.put("vault", secret, SecretScope(tenant=True))
        return cleaned

    monkeypatch.setattr(field._writer, "_clean_early", then_told)
    [synthesis] = (await compacted(field, "summarize")).synthesis_units or ()
    row = await store.views.unit(synthesis)
    assert row is not None
    text = (await store.texts.get([row.seq]))[row.seq].body
    assert b"[REDACTED:vault]" in text
    assert secret.encode() not in text
    await field.close()


async def test_a_synthesis_goes_in_the_same_step_as_what_it_quotes(sizes: Sizes) -> None:
    store = MemoryStore(KEY)
    field = await filled(store)
    await compacted(field, "summarize")
    await compacted(field, "purge")  # of findings, and so not of the synthesis itself
    first, *others = [event.units for event in await events_of(store) if isinstance(event, UnitsPurged)]
    assert len(first) == sizes.batch + 1
    assert max(first) > max(unit for units in others for unit in units), "the synthesis is younger than all others"
    await field.close()


@requirement("akashik:compact:half-failed-batch")
async def test_of_a_batch_that_fails_half_way_those_that_went_are_followed_at_once(sizes: Sizes) -> None:
    counted = FaultyStore(MemoryStore(KEY))
    await (await filled(counted)).close()
    store = MemoryStore(KEY)
    # After what was recorded come the compaction's own event and the first piece.
    field = await filled(FaultyStore(store, at=counted.commits + 3, strike=fail(StorageFull())))
    with pytest.raises(StorageFull):
        await compacted(field, "archive")
    assert await step_sizes(store) == [sizes.piece]
    assert len(await store.cold.read(after=0, limit=UNITS)) == sizes.batch, "the copies of the whole batch"
    assert await words_in(store.cold.index) == sizes.piece
    assert await words_in(store.text_index) + len(field._follower.tail()) == UNITS - sizes.piece
    await compacted(field, "archive")
    assert await words_in(store.cold.index) == UNITS
    await field.close()


async def test_a_text_index_is_written_anew_once_half_of_it_is_gone_and_not_before(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path / "field.db", KEY)
    await store.commit(Commit(entries(1)))  # the index is tied to the log
    index = store.text_index
    await index.add([Document(seq, f"okapi{seq} quagga") for seq in range(1, DOCUMENTS + 1)], position=1)
    full = index_bytes(tmp_path)
    await index.remove(range(1, DOCUMENTS // 4))
    assert index_bytes(tmp_path) >= full
    await index.remove(range(1, DOCUMENTS * 3 // 4))
    assert index_bytes(tmp_path) < full / 2
    await store.close()


class Telling(FaultyStore):
    """Tells when something is written. Whoever comes `meanwhile` comes with the next commit."""

    def __init__(self, store: Store, told: list[str]) -> None:
        super().__init__(store)
        self._told = told
        self.meanwhile: Coroutine[Any, Any, None] | None = None

    async def commit(self, commit: Commit) -> None:
        self._told.append("written")
        if self.meanwhile is not None:
            self.others, self.meanwhile = asyncio.ensure_future(self.meanwhile), None
            await asyncio.sleep(0)
        await super().commit(commit)


class Counting(FaultyStore):
    """How many units were archived by each event, for every commit that has one."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.archived: list[list[int]] = []

    async def commit(self, commit: Commit) -> None:
        events = [decode_entry(entry.body).event for entry in commit.entries]
        if sizes := [len(event.units) for event in events if isinstance(event, UnitsArchived)]:
            self.archived.append(sizes)
        await super().commit(commit)


async def filled(store: Store, *, sessions: int = 1, says: str = "quagga", **options: Any) -> LocalField:
    field = await opened(store=store, **options)
    await join(field, "ada")
    await field.send(register("op", authority=10))
    for number in range(UNITS):
        await field.send(record("ada", f"{says} number {number}", session=f"session {number % sessions}"))
    return field


async def compacted(field: LocalField, strategy: Strategy) -> Compacted:
    wanted = CompactFilter(types=("finding",))
    answer = await field.send(Message("COMPACT", "op", Compact(strategy, wanted, verify=False)))
    assert isinstance(answer, Compacted)
    return answer


async def step_sizes(store: Store) -> list[int]:
    return [len(event.units) for event in await events_of(store) if isinstance(event, UnitsArchived | UnitsPurged)]


async def events_of(store: Store, *, after: int = 0) -> list[AnyEvent]:
    return [decode_entry(each.body).event for each in await store.log.read(after=after, limit=1_000)]


async def words_in(index: TextIndex) -> int:
    """How many units it finds by their common word."""
    [found] = await index.search([["quagga"]], most_postings=1_000)
    return len(found.seqs.get("quagga", ()))


def index_bytes(folder: Path) -> int:
    """What the words take, without room that is free."""
    connection = apsw.Connection(str(folder / "field.db-index"))
    size: int = connection.execute("SELECT sum(length(block)) FROM text_1_data").get
    connection.close()
    return size
