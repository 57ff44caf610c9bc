"""What a store promises: a commit is there whole, or nothing of it is. And that fields of one place do not meet."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final, Protocol

import numpy as np
import pytest

from fieldstone.core.errors import StorageFull
from fieldstone.ports.log import GENESIS_HASH, FieldKey, Head, StoredEntry
from fieldstone.ports.store import Commit, FieldOpen, Store, Stores, UnknownField
from fieldstone.ports.text_index import Document
from fieldstone.ports.vectors import Quantized
from fieldstone.ports.views import Change, KeepHint, PutAgent, PutName, PutUnit, SetUnitStatus
from fieldstone.testing.opening import KEY, OTHER_KEY, OpenStore, StoreCase
from fieldstone.testing.rows import agent_row, entries, head_of, name_row, reply, text, unit_row

SMALL_BYTES: Final = 512 * 1024  # an empty store and some small commits fit
LARGE_TEXT: Final = "x" * SMALL_BYTES
OTHER_TENANT: Final = FieldKey("umbrella", KEY.field)  # the same name, and another one's
TURNS: Final = 20


class StoreTests(StoreCase):
    async def test_all_parts_of_a_commit_are_visible_when_it_returns(self, store: Store) -> None:
        await store.commit(_whole_commit(entries(2)))
        assert (await store.log.head()).seq == 2
        assert set(await store.texts.get([1, 2])) == {1, 2}
        assert await store.views.unit(unit_row(1).id) == unit_row(1)
        assert await store.views.agents() == [agent_row(1)]
        assert set(await store.replies.find([reply("r1").key])) == {reply("r1").key}

    async def test_an_empty_commit_changes_nothing(self, store: Store) -> None:
        before = await store.views.checksum()
        await store.commit(Commit())
        assert await store.log.head() == Head(0, GENESIS_HASH)
        assert await store.views.checksum() == before

    @pytest.mark.parametrize("seqs", [(2,), (5,), (0,), (1, 3), (1, 1), (1, 2, 2), (2, 1)])
    async def test_entries_that_do_not_begin_the_log_are_refused_and_leave_nothing(
        self, store: Store, seqs: tuple[int, ...]
    ) -> None:
        before = await store.views.checksum()
        wrong = [StoredEntry(seq, b"{}", bytes(32)) for seq in seqs]
        with pytest.raises(ValueError, match="does not continue"):
            await store.commit(_whole_commit(wrong))
        await _assert_nothing_of_the_whole_commit(store, Head(0, GENESIS_HASH), before)

    @pytest.mark.parametrize("seqs", [(1,), (3,), (5,), (4, 6), (4, 4), (4, 3)])
    async def test_entries_that_do_not_continue_the_log_are_refused_and_leave_nothing(
        self, store: Store, seqs: tuple[int, ...]
    ) -> None:
        written = entries(3)
        await store.commit(Commit(entries=written))
        before = await store.views.checksum()
        wrong = [StoredEntry(seq, b"{}", bytes(32)) for seq in seqs]
        with pytest.raises(ValueError, match="does not continue"):
            await store.commit(_whole_commit(wrong))
        await _assert_nothing_of_the_whole_commit(store, head_of(written), before)
        assert list(await store.log.read(after=0, limit=100)) == written

    async def test_a_replaced_text_takes_the_place_of_the_old_one_and_one_that_was_missing_is_there(
        self, store: Store
    ) -> None:
        await store.commit(Commit(entries=entries(3), texts=[text(1), text(3)]))
        new = [text(1, "something else"), text(2, "what came late")]
        await store.commit(Commit(replaced_texts=new))
        assert await store.texts.read(after=0, limit=10) == [*new, text(3)]

    async def test_what_is_scoured_reads_as_before(self, store: Store) -> None:
        await store.commit(_whole_commit(entries(2)))
        await store.text_index.add([Document(1, "alpha beta"), Document(2, "beta")], position=2)
        await store.text_index.add([Document(1, "gamma")], position=2)
        assert await store.scour()
        assert set(await store.texts.get([1, 2])) == {1, 2}
        [postings] = await store.text_index.search([["alpha", "beta", "gamma"]], most_postings=100)
        assert {word: list(seqs) for word, seqs in postings.seqs.items()} == {"beta": [2], "gamma": [1]}

    async def test_the_log_goes_on_after_a_refusal(self, store: Store) -> None:
        written = entries(2)
        with pytest.raises(ValueError, match="does not continue"):
            await store.commit(Commit(entries=written[1:]))
        await store.commit(Commit(entries=written))
        assert await store.log.head() == head_of(written)

    async def test_commits_at_the_same_time_are_written_one_after_the_other(self, store: Store) -> None:
        written = entries(40)
        await asyncio.gather(*(store.commit(Commit(entries=[entry], texts=[text(entry.seq)])) for entry in written))
        assert list(await store.log.read(after=0, limit=100)) == written
        assert len(await store.texts.read(after=0, limit=100)) == 40

    async def test_a_commit_for_which_there_is_no_room_leaves_nothing(self, open_store: OpenStore) -> None:
        store = open_store(max_bytes=SMALL_BYTES)
        written = entries(3)
        await store.commit(Commit(entries=written))
        before = await store.views.checksum()
        commit = _whole_commit(entries(2, after=head_of(written)))
        with pytest.raises(StorageFull):
            await store.commit(commit._replace(texts=[*commit.texts[:-1], text(5, LARGE_TEXT)]))
        await _assert_nothing_of_the_whole_commit(store, head_of(written), before)
        await store.close()

    async def test_a_full_store_is_read_on_and_takes_what_fits(self, open_store: OpenStore) -> None:
        store = open_store(max_bytes=SMALL_BYTES)
        written = entries(1)
        await store.commit(Commit(entries=written, texts=[text(1)], changes=[PutUnit(unit_row(1))]))
        further = entries(1, after=head_of(written))
        with pytest.raises(StorageFull):
            await store.commit(Commit(entries=further, texts=[text(2, LARGE_TEXT)]))
        assert list(await store.log.read(after=0, limit=10)) == written
        assert await store.texts.get([1]) == {1: text(1)}
        assert await store.views.unit(unit_row(1).id) == unit_row(1)
        await store.commit(Commit(entries=further, texts=[text(2, "small")]))
        assert await store.log.head() == head_of(further)
        await store.close()

    async def test_a_large_commit_fits_without_a_cap(self, store: Store) -> None:
        before = await store.bytes_used()
        await store.commit(Commit(entries=entries(1), texts=[text(1, LARGE_TEXT)]))
        assert await store.bytes_used() >= before + SMALL_BYTES

    async def test_a_durable_store_comes_back_as_it_was_and_another_one_empty(self, open_store: OpenStore) -> None:
        store = open_store()
        await store.commit(_whole_commit(entries(2)))
        head, checksum, digest_key = await store.log.head(), await store.views.checksum(), store.digest_key
        await store.close()
        again = open_store()
        if again.durable:
            assert await again.log.head() == head
            assert await again.views.checksum() == checksum
            assert set(await again.texts.get([1, 2])) == {1, 2}
            assert set(await again.replies.find([reply("r1").key])) == {reply("r1").key}
            assert again.digest_key == digest_key
        else:
            assert await again.log.head() == Head(0, GENESIS_HASH)
        await again.close()

    async def test_a_store_says_whose_it_is_and_what_it_is(self, store: Store) -> None:
        assert store.key == KEY
        assert store.description

    async def test_every_field_has_a_digest_key_of_its_own(self, store: Store, open_store: OpenStore) -> None:
        other = open_store(key=OTHER_KEY)
        assert len(store.digest_key) >= 16
        assert other.digest_key != store.digest_key
        await other.close()

    async def test_replaced_views_are_what_the_changes_say_and_nothing_else(self, store: Store) -> None:
        written = entries(4)
        await store.commit(Commit(entries=written, texts=[text(3)], changes=[PutUnit(unit_row(3)), KeepHint(4)]))
        await store.replace_views(_batches([PutAgent(agent_row(1)), PutUnit(unit_row(2))], [SetUnitStatus(2, "draft")]))
        assert await store.views.unit(unit_row(3).id) is None
        assert (await store.views.units([2]))[2].status == "draft"
        assert await store.views.hints() == []
        assert await store.log.head() == head_of(written)
        assert await store.texts.get([3]) == {3: text(3)}

    async def test_views_rebuilt_from_the_same_changes_have_the_same_checksum(self, store: Store) -> None:
        changes: list[Change] = [
            PutName(name_row(1)),
            PutAgent(agent_row(1)),
            PutUnit(unit_row(3)),
            SetUnitStatus(3, "contested"),
        ]
        await store.commit(Commit(changes=changes))
        before = await store.views.checksum()
        await store.replace_views(_batches(changes[:2], [], changes[2:]))
        assert await store.views.checksum() == before

    async def test_views_stay_as_they_were_when_replacing_them_breaks_off(self, store: Store) -> None:
        await store.commit(Commit(changes=[PutAgent(agent_row(1)), PutUnit(unit_row(2))]))
        before = await store.views.checksum()
        with pytest.raises(_BrokeOff):
            await store.replace_views(_batches_that_break_off([PutUnit(unit_row(7))]))
        assert await store.views.checksum() == before
        assert await store.views.unit(unit_row(7).id) is None
        await store.commit(Commit(changes=[PutUnit(unit_row(8))]))
        assert await store.views.unit(unit_row(8).id) == unit_row(8)

    async def test_replacing_the_views_of_a_field_leaves_another_ones_alone(
        self, store: Store, open_store: OpenStore
    ) -> None:
        other = open_store(key=OTHER_KEY)
        await other.commit(Commit(changes=[PutUnit(unit_row(2)), PutAgent(agent_row(1))]))
        before = await other.views.checksum()
        await store.replace_views(_batches([PutUnit(unit_row(5))]))
        assert await other.views.checksum() == before
        await other.close()


class OpenStores(Protocol):
    """Within one test they lie in one place: durable ones that are closed and opened again have what they had."""

    def __call__(self, *, max_bytes: int | None = None) -> Stores: ...


class StoresTests:
    """Give a fixture `open_stores`; the tests get open `stores`."""

    @pytest.fixture
    async def stores(self, open_stores: OpenStores) -> AsyncIterator[Stores]:
        stores = open_stores()
        yield stores
        await stores.close()

    @pytest.mark.parametrize("other_key", [OTHER_KEY, OTHER_TENANT], ids=["another field", "another tenant"])
    async def test_a_field_shows_nothing_of_what_another_one_holds(self, stores: Stores, other_key: FieldKey) -> None:
        empty = await stores.open(other_key)
        before = await empty.views.checksum()
        await _fill(await stores.open(KEY), "ours")
        await _assert_nothing_of_the_whole_commit(empty, Head(0, GENESIS_HASH), before)
        assert await empty.log.read(after=0, limit=10) == []
        assert await empty.texts.get([1]) == {}
        assert await empty.views.unit(unit_row(1).id) is None
        assert await empty.views.agents() == []
        assert await empty.marks.get("detected") == 0
        assert await empty.vectors.models() == []
        assert await empty.text_index.position() == 0
        [found] = await empty.text_index.search([["ours"]], most_postings=10)
        assert (found.documents, found.frequencies, found.seqs) == (0, {"ours": 0}, {})

    async def test_fields_that_are_filled_side_by_side_have_each_their_own(self, stores: Stores) -> None:
        keys = (KEY, OTHER_KEY, OTHER_TENANT)
        opened = [await stores.open(key) for key in keys]
        await asyncio.gather(*(_fill(store, store.key.tenant + store.key.field) for store in opened))
        for store in opened:
            await _assert_filled(store, store.key.tenant + store.key.field)

    async def test_all_fields_commit_at_the_same_time_and_each_log_is_whole(self, stores: Stores) -> None:
        opened = [await stores.open(key) for key in (KEY, OTHER_KEY, OTHER_TENANT)]
        written = entries(TURNS)
        commits = [
            store.commit(Commit(entries=[entry], texts=[text(entry.seq)])) for entry in written for store in opened
        ]
        await asyncio.gather(*commits)
        for store in opened:
            assert list(await store.log.read(after=0, limit=100)) == written
            assert len(await store.texts.read(after=0, limit=100)) == TURNS

    async def test_commits_long_writes_and_the_index_of_several_fields_go_on_together(self, stores: Stores) -> None:
        opened = [await stores.open(key) for key in (KEY, OTHER_KEY)]
        await asyncio.gather(*(_take_turns(store) for store in opened))
        for store in opened:
            assert (await store.log.head()).seq == TURNS
            assert await store.marks.get("detected") == TURNS
            assert await store.text_index.position() == TURNS
            [found] = await store.text_index.search([["word"]], most_postings=100)
            assert found.documents == TURNS
            assert sorted(found.seqs["word"]) == list(range(1, TURNS + 1))

    async def test_a_commit_that_is_refused_is_nothing_to_another_field(self, stores: Stores) -> None:
        ours, theirs = await stores.open(KEY), await stores.open(OTHER_KEY)
        results = await asyncio.gather(
            theirs.commit(_whole_commit(entries(2))),
            ours.commit(_whole_commit(entries(2)[1:])),
            theirs.commit(_whole_commit(entries(1, after=head_of(entries(2))))),
            return_exceptions=True,
        )
        assert [type(result) for result in results] == [type(None), ValueError, type(None)]
        assert (await theirs.log.head()).seq == 3
        assert (await ours.log.head()).seq == 0

    async def test_what_is_written_while_the_views_of_another_field_are_replaced_is_there_with_them(
        self, stores: Stores
    ) -> None:
        ours, theirs = await stores.open(KEY), await stores.open(OTHER_KEY)
        started = asyncio.Event()
        replacing = asyncio.create_task(ours.replace_views(_batches_after(started, [PutUnit(unit_row(7))])))
        commits = [asyncio.create_task(theirs.commit(_whole_commit(entries(2)))), asyncio.create_task(stores.fields())]
        await asyncio.sleep(0)
        started.set()
        await asyncio.gather(replacing, *commits)
        assert await ours.views.unit(unit_row(7).id) == unit_row(7)
        assert (await theirs.log.head()).seq == 2
        assert await theirs.views.unit(unit_row(7).id) is None

    async def test_views_whose_replacing_breaks_off_take_nothing_of_another_field_with_them(
        self, stores: Stores
    ) -> None:
        ours, theirs = await stores.open(KEY), await stores.open(OTHER_KEY)
        results = await asyncio.gather(
            ours.replace_views(_batches_that_break_off([PutUnit(unit_row(7))])),
            theirs.commit(_whole_commit(entries(2))),
            stores.open(OTHER_TENANT),
            return_exceptions=True,
        )
        assert isinstance(results[0], _BrokeOff)
        assert (await theirs.log.head()).seq == 2
        assert OTHER_TENANT in await stores.fields()

    async def test_closing_one_field_leaves_the_others_open(self, stores: Stores) -> None:
        ours, theirs = await stores.open(KEY), await stores.open(OTHER_KEY)
        await _fill(ours, "ours")
        await ours.close()
        await _fill(theirs, "theirs")
        await _assert_filled(theirs, "theirs")

    async def test_when_every_field_is_closed_the_place_is_still_open(self, stores: Stores) -> None:
        await (await stores.open(KEY)).close()
        await _fill(await stores.open(OTHER_KEY), "later")

    async def test_a_field_that_is_closed_and_opened_again_has_what_it_had(self, stores: Stores) -> None:
        first = await stores.open(KEY)
        await _fill(first, "ours")
        checksum, digest_key = await first.views.checksum(), first.digest_key
        await first.close()
        again = await stores.open(KEY, create=False)
        await _assert_filled(again, "ours")
        assert (await again.views.checksum(), again.digest_key) == (checksum, digest_key)
        await again.commit(Commit(entries=entries(1, after=await again.log.head())))

    async def test_a_field_is_open_once(self, stores: Stores) -> None:
        store = await stores.open(KEY)
        with pytest.raises(FieldOpen):
            await stores.open(KEY)
        await store.commit(Commit(entries=entries(1)))  # who was refused has not disturbed it
        await store.close()
        await store.close()
        await stores.open(KEY)

    async def test_of_two_that_open_a_field_at_the_same_time_one_gets_it(self, stores: Stores) -> None:
        results = await asyncio.gather(stores.open(KEY), stores.open(KEY), return_exceptions=True)
        assert sorted(isinstance(result, FieldOpen) for result in results) == [False, True]

    async def test_a_field_that_is_not_there_is_made_only_when_that_is_wanted(self, stores: Stores) -> None:
        await stores.open(OTHER_TENANT)
        with pytest.raises(UnknownField) as unknown:
            await stores.open(KEY, create=False)
        assert OTHER_TENANT.tenant not in str(unknown.value)
        assert await stores.fields() == [OTHER_TENANT]

    async def test_the_fields_that_are_there_are_told_whether_open_or_not(self, stores: Stores) -> None:
        assert await stores.fields() == []
        for key in (OTHER_TENANT, KEY):
            await stores.open(key)
        await (await stores.open(OTHER_KEY)).close()
        assert await stores.fields() == [KEY, OTHER_KEY, OTHER_TENANT]

    async def test_the_fields_of_one_place_share_its_room(self, open_stores: OpenStores) -> None:
        stores = open_stores(max_bytes=SMALL_BYTES)
        ours, theirs = await stores.open(KEY), await stores.open(OTHER_KEY)
        half = "x" * (SMALL_BYTES // 2)
        await ours.commit(Commit(entries=entries(1), texts=[text(1, half)]))
        with pytest.raises(StorageFull):
            await theirs.commit(Commit(entries=entries(1), texts=[text(1, half)]))
        assert (await theirs.log.head()).seq == 0
        await ours.commit(Commit(entries=entries(1, after=head_of(entries(1)))))
        await theirs.commit(Commit(entries=entries(1)))
        await stores.close()

    async def test_durable_fields_come_back_each_as_it_was(self, open_stores: OpenStores) -> None:
        stores = open_stores()
        for key in (KEY, OTHER_TENANT):
            await _fill(await stores.open(key), key.tenant)
        durable = (await stores.open(OTHER_KEY)).durable
        await stores.close()  # with the fields that are open
        again = open_stores()
        assert await again.fields() == ([KEY, OTHER_KEY, OTHER_TENANT] if durable else [])
        for key in (KEY, OTHER_TENANT) if durable else ():
            await _assert_filled(await again.open(key), key.tenant)
        await again.close()


async def _fill(store: Store, word: str) -> None:
    """One of everything, by every way to write."""
    written = entries(2)
    await store.commit(_whole_commit(written)._replace(texts=[text(1, word), text(2, word)]))
    model = await store.vectors.begin(word, 2, state="serving")
    await store.vectors.add(model.number, _vector_of(word))
    await store.marks.set("detected", len(word))
    await store.text_index.add([Document(1, word)], position=2)


async def _assert_filled(store: Store, word: str) -> None:
    assert await store.log.head() == head_of(entries(2))
    assert await store.texts.get([1, 2]) == {1: text(1, word), 2: text(2, word)}
    assert await store.views.unit(unit_row(1).id) == unit_row(1)
    assert await store.views.agents() == [agent_row(1)]
    assert set(await store.replies.find([reply("r1").key])) == {reply("r1").key}
    assert await store.marks.get("detected") == len(word)
    [model] = await store.vectors.models()
    assert model.name == word
    [held] = [piece async for piece in store.vectors.scan(model.number)]
    np.testing.assert_array_equal(held.codes, _vector_of(word).codes)
    [found] = await store.text_index.search([[word]], most_postings=10)
    assert (found.position, found.documents, dict(found.seqs)) == (2, 1, {word: [1]})


def _vector_of(word: str) -> Quantized:
    return Quantized(np.array([1]), np.ones(1, np.float32), np.array([[len(word), -len(word)]], np.int8))


async def _take_turns(store: Store) -> None:
    for entry in entries(TURNS):
        await asyncio.gather(
            store.commit(Commit(entries=[entry], texts=[text(entry.seq)])),
            store.replies.forget_before(0, limit=10),
        )
        await asyncio.gather(
            store.marks.set("detected", entry.seq),
            store.text_index.add([Document(entry.seq, f"word number{entry.seq}")], position=entry.seq),
        )


class _BrokeOff(Exception):
    pass


def _whole_commit(written: Sequence[StoredEntry]) -> Commit:
    """One of everything, so that half of it would be seen."""
    first = written[0].seq
    return Commit(
        entries=written,
        texts=[text(entry.seq) for entry in {entry.seq: entry for entry in written}.values()],
        changes=[PutName(name_row(first)), PutAgent(agent_row(first)), PutUnit(unit_row(first))],
        replies=[reply(f"r{first}")],
    )


async def _assert_nothing_of_the_whole_commit(store: Store, head: Head, checksum: str) -> None:
    assert await store.log.head() == head
    assert await store.views.checksum() == checksum
    assert list(await store.texts.read(after=head.seq, limit=100)) == []
    assert await store.replies.find([reply(f"r{seq}").key for seq in range(10)]) == {}


async def _batches(*batches: Sequence[Change]) -> AsyncIterator[Sequence[Change]]:
    for batch in batches:
        yield batch


async def _batches_that_break_off(batch: Sequence[Change]) -> AsyncIterator[Sequence[Change]]:
    yield batch
    raise _BrokeOff


async def _batches_after(started: asyncio.Event, batch: Sequence[Change]) -> AsyncIterator[Sequence[Change]]:
    await started.wait()
    yield batch
