"""An index that cannot follow hinders nobody: what is not in it is scanned, and once it can, it catches up."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from fieldstone.backends.memory.store import MemoryStore
from fieldstone.backends.sqlite.store import SqliteStore
from fieldstone.core.errors import StorageFull
from fieldstone.field.field import LocalField
from fieldstone.ports.store import Store
from fieldstone.ports.text_index import Document, Postings, TextIndex
from fieldstone.projections import text_follower
from fieldstone.testing import KEY, FaultyStore, SeededIds
from tests.faults.stores import open_field
from tests.messages import accepted, attune, attuned, commit, join, record
from tests.requirements import requirement

PLENTY = 1_000_000
WAIT_S = 10.0  # for something that comes within milliseconds; a bound, not a pause


class LameIndex:
    """It takes nothing in while it is `full`, and at one chosen time; `refused` and `took` say what happened."""

    def __init__(self, index: TextIndex) -> None:
        self._index = index
        self.full = True
        self.refused = asyncio.Event()
        self.took = asyncio.Event()
        self.fails_once_at: int | None = None
        self.adds = 0

    def analyze(self, text: str) -> list[str]:
        return self._index.analyze(text)

    async def position(self) -> int:
        return await self._index.position()

    async def add(self, documents: Sequence[Document], *, position: int) -> None:
        self.adds += 1
        if self.full or self.adds == self.fails_once_at:
            self.refused.set()
            raise StorageFull
        await self._index.add(documents, position=position)
        self.took.set()

    async def search(self, queries: Sequence[Sequence[str]], *, most_postings: int) -> Sequence[Postings]:
        return await self._index.search(queries, most_postings=most_postings)

    async def remove(self, seqs: Sequence[int]) -> None:
        await self._index.remove(seqs)

    async def scour(self) -> bool:
        return await self._index.scour()

    async def clear(self) -> None:
        await self._index.clear()


@pytest.fixture(params=["memory", "sqlite"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Store]:
    """Each call opens the same store; the one in memory was never closed."""
    memory = MemoryStore(KEY)
    return lambda: memory if request.param == "memory" else SqliteStore.open(tmp_path / "field.db", KEY)


def with_index(store: Store, index: TextIndex) -> Store:
    return FaultyStore(store, text_index=index)


@requirement("akashik:attune:acknowledged-visible")
async def test_units_are_found_by_their_words_while_the_index_is_behind_and_after(
    open_store: Callable[[], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store()
    monkeypatch.setattr(text_follower, "IDLE_MS", 0)
    monkeypatch.setattr(text_follower, "RETRY_MS", 0)
    index = LameIndex(store.text_index)
    field = await open_field(with_index(store, index))
    await join(field, "ada", "grace")
    first = await accepted(field, record("ada", "the turbine hums"))
    await asyncio.wait_for(index.refused.wait(), WAIT_S)
    second = await accepted(field, record("ada", "the boiler leaks"))
    before = await _ranked(field, "turbine")
    assert before[0] == first
    assert set(before) == {first, second}
    assert await store.text_index.position() == 0
    index.full = False
    await asyncio.wait_for(index.took.wait(), WAIT_S)
    assert await _ranked(field, "turbine") == before
    [found] = await store.text_index.search([["turbin", "boiler"]], most_postings=PLENTY)
    assert found.documents == 2
    await field.close()


async def test_a_batch_that_did_not_go_in_is_not_passed_over(
    open_store: Callable[[], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The position says that all before it is in the index: it must wait for a batch that failed at the opening."""
    monkeypatch.setattr(text_follower, "IDLE_MS", 3_600_000)
    store = open_store()
    field = await open_field(with_index(store, LameIndex(store.text_index)))
    await join(field, "ada", "grace")
    for number in range(7):
        await accepted(field, record("ada", f"word{number}"))
    await field.close()
    monkeypatch.setattr(text_follower, "BATCH_UNITS", 2)
    store = open_store()
    index = LameIndex(store.text_index)
    index.full, index.fails_once_at = False, 1
    behind = await open_field(with_index(store, index), ids=SeededIds(2))
    position = await store.text_index.position()
    assert position == 0, "a later batch was taken in before an earlier one"
    assert len(await _ranked(behind, "word0")) == 7
    await behind.close()
    store = open_store()
    again = await open_field(store, ids=SeededIds(3))
    [found] = await store.text_index.search([[f"word{number}" for number in range(7)]], most_postings=PLENTY)
    assert found.documents == 7
    assert all(len(found.seqs[f"word{number}"]) == 1 for number in range(7))
    await again.close()


async def test_opening_again_and_again_indexes_everything_once(
    open_store: Callable[[], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also drafts that were committed late, whose record the index has long passed."""
    monkeypatch.setattr(text_follower, "IDLE_MS", 3_600_000)
    store = open_store()
    field = await open_field(store)
    await join(field, "ada")
    draft = await accepted(field, record("ada", "alpha", mode="draft"))
    await accepted(field, record("ada", "beta"))
    for number in range(4):
        await field.close()
        store = open_store()
        field = await open_field(store, ids=SeededIds(2 + number))
        if number == 1:
            await field.send(commit("ada", draft))
    [found] = await store.text_index.search([["alpha", "beta"]], most_postings=PLENTY)
    assert found.documents == 2
    assert {term: len(seqs) for term, seqs in found.seqs.items()} == {"alpha": 1, "beta": 1}
    await field.close()


async def test_a_rebuild_indexes_what_was_waiting_only_once(
    open_store: Callable[[], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_follower, "IDLE_MS", 0)
    field = await open_field(open_store())
    await join(field, "ada", "grace")
    unit = await accepted(field, record("ada", "the turbine hums"))
    assert (await field.rebuild()).unchanged
    other = await accepted(field, record("ada", "the turbine stopped"))
    assert set(await _ranked(field, "turbine")) == {unit, other}
    await field.close()
    store = open_store()
    reopened = await open_field(store, ids=SeededIds(2))
    [found] = await store.text_index.search([["turbin"]], most_postings=PLENTY)
    assert found.documents == 2
    assert len(found.seqs["turbin"]) == 2
    await reopened.close()


async def _ranked(field: LocalField, hint: str) -> list[str]:
    return [unit.id for unit in await attuned(field, attune("grace", hint))]
