"""What cold storage promises: archived texts are kept, read like the others, and gone when they are erased."""

import random
from collections.abc import Sequence
from typing import Final

from fieldstone.core.errors import StorageFull
from fieldstone.ports.log import Head, StoredText
from fieldstone.ports.store import Commit, Store
from fieldstone.ports.text_index import Document, Postings
from fieldstone.ports.views import PutUnit
from fieldstone.testing.opening import OTHER_KEY, OpenStore, StoreCase
from fieldstone.testing.rows import entries, head_of, text, unit_row

PLENTY: Final = 1_000_000
MANY: Final = 400  # more than one block, page or batch of any backend
SMALL_BYTES: Final = 512 * 1024
BATCH: Final = 64
TINY: Final = "x"
SENTENCE: Final = "what was said about the release of the third week, in so many words " * 5


class ColdStoreTests(StoreCase):
    async def test_where_nothing_was_archived_nothing_is_found(self, store: Store) -> None:
        assert await store.cold.get([1, 2]) == {}
        assert list(await store.cold.read(after=0, limit=10)) == []
        await store.cold.erase([1])
        assert await store.cold.scour()
        assert await store.cold.bytes_used() == 0

    async def test_texts_come_back_byte_for_byte(self, store: Store) -> None:
        kept = [text(1, "first"), text(3, "third: ünïcode"), StoredText(70, bytes(range(16)), bytes(range(256)))]
        await store.cold.put(kept)
        assert await store.cold.get([1, 2, 3, 70, 99]) == {1: kept[0], 3: kept[1], 70: kept[2]}
        assert await store.cold.get([]) == {}
        assert await store.cold.bytes_used() > 0

    async def test_a_text_that_is_there_is_replaced_and_its_neighbours_stay(self, store: Store) -> None:
        await store.cold.put([text(seq, "old") for seq in (1, 2, 3)])
        await store.cold.put([text(2, "new"), text(4, "new")])
        await store.cold.put([])
        kept = [text(1, "old"), text(2, "new"), text(3, "old"), text(4, "new")]
        assert list(await store.cold.read(after=0, limit=10)) == kept

    async def test_reading_is_ascending_begins_after_a_seq_and_stops_at_the_limit(self, store: Store) -> None:
        kept = [text(seq) for seq in range(1, MANY * 7, 7)]
        shuffled = random.Random(5).sample(kept, len(kept))
        for first in range(0, MANY, 50):
            await store.cold.put(shuffled[first : first + 50])
        assert list(await store.cold.read(after=0, limit=PLENTY)) == kept
        assert list(await store.cold.read(after=8, limit=90)) == kept[2:92]
        assert list(await store.cold.read(after=kept[-1].seq, limit=5)) == []
        assert list(await store.cold.read(after=0, limit=0)) == []

    async def test_an_erased_text_is_gone_and_the_others_stay(self, store: Store) -> None:
        kept = [text(seq) for seq in range(1, MANY)]
        await store.cold.put(kept)
        await store.cold.erase([2, 5, MANY * 9])
        await store.cold.erase([5, *range(60, 200)])
        stay = [each for each in kept if each.seq not in (2, 5) and not 60 <= each.seq < 200]
        assert list(await store.cold.read(after=0, limit=PLENTY)) == stay
        assert await store.cold.get([2, 5, 60, 199, 200]) == {200: text(200)}
        await store.cold.erase([each.seq for each in kept])
        assert list(await store.cold.read(after=0, limit=PLENTY)) == []
        await store.cold.put([text(2, "again")])
        assert await store.cold.get([2]) == {2: text(2, "again")}

    async def test_archived_texts_of_a_durable_store_are_there_again(self, open_store: OpenStore) -> None:
        store = open_store()
        await store.commit(Commit(entries=entries(3)))
        await store.cold.put([text(1), text(2)])
        await store.cold.erase([2])
        await store.cold.index.add([Document(1, "alpha")], position=3)
        await store.close()
        again = open_store()
        assert await again.texts.get([1, 2]) == ({1: text(1)} if again.durable else {})
        assert await again.cold.index.position() == (3 if again.durable else 0)
        assert await _found(again, "alpha") == ([1] if again.durable else [])
        await again.close()

    async def test_another_field_of_the_same_store_has_archived_texts_of_its_own(
        self, store: Store, open_store: OpenStore
    ) -> None:
        other = open_store(key=OTHER_KEY)
        await store.cold.put([text(1, "ours"), text(2, "ours")])
        await other.cold.put([text(1, "theirs")])
        await other.cold.erase([2])
        assert await store.cold.get([1, 2]) == {1: text(1, "ours"), 2: text(2, "ours")}
        assert list(await other.texts.read(after=0, limit=10)) == [text(1, "theirs")]
        await other.close()

    # --- one door ----------------------------------------------------------------------------------------------------

    async def test_texts_are_read_alike_wherever_they_lie(self, store: Store) -> None:
        written = [text(seq) for seq in range(1, MANY)]
        await store.commit(Commit(entries=entries(MANY), texts=written))
        await _archive(store, [each for each in written if each.seq % 3 or each.seq > MANY - 80])
        assert await store.texts.get([3, 4, MANY]) == {3: text(3), 4: text(4)}
        assert list(await store.texts.read(after=0, limit=PLENTY)) == written
        for limit in (1, 7, 100):
            assert await _paged(store, limit) == written

    async def test_of_a_text_that_is_in_both_the_hot_one_counts(self, store: Store) -> None:
        await store.cold.put([text(1, "cold"), text(2, "cold")])
        await store.commit(Commit(entries=entries(2), texts=[text(1, "hot")]))
        assert await store.texts.get([1, 2]) == {1: text(1, "hot"), 2: text(2, "cold")}
        assert list(await store.texts.read(after=0, limit=1)) == [text(1, "hot")]
        assert list(await store.texts.read(after=0, limit=9)) == [text(1, "hot"), text(2, "cold")]

    async def test_a_commit_erases_the_hot_text_and_the_cold_one_stays(self, store: Store) -> None:
        await store.commit(Commit(entries=entries(1), texts=[text(1)]))
        await store.cold.put([text(1)])
        await store.commit(Commit(erased_texts=[1]))
        assert await store.texts.get([1]) == {1: text(1)}
        await store.cold.erase([1])
        assert await store.texts.get([1]) == {}

    async def test_a_text_that_is_restored_is_where_it_was(self, store: Store) -> None:
        await store.commit(Commit(entries=entries(2), texts=[text(1), text(2)]))
        await _archive(store, [text(1), text(2)])
        await store.commit(Commit(replaced_texts=[text(1)]))
        await store.cold.erase([1])
        assert list(await store.texts.read(after=0, limit=9)) == [text(1), text(2)]
        assert list(await store.cold.read(after=0, limit=9)) == [text(2)]

    # --- words -------------------------------------------------------------------------------------------------------

    async def test_cold_words_are_found_in_the_cold_index_and_nowhere_else(self, store: Store) -> None:
        await store.commit(Commit(entries=entries(5)))
        await store.text_index.add([Document(1, "alpha"), Document(2, "alpha beta")], position=2)
        [empty] = await store.cold.index.search([["alpha"]], most_postings=PLENTY)
        assert empty == Postings(0, 0, {"alpha": 0}, {})
        await store.cold.index.remove([2])
        await store.cold.index.clear()
        await store.cold.index.add([Document(2, "alpha beta")], position=5)
        await store.text_index.remove([2])
        [hot] = await store.text_index.search([["alpha", "beta"]], most_postings=PLENTY)
        [cold] = await store.cold.index.search([["alpha", "beta"]], most_postings=PLENTY)
        assert (hot.position, dict(hot.seqs)) == (2, {"alpha": [1]})
        assert (cold.position, dict(cold.seqs)) == (5, {"alpha": [2], "beta": [2]})
        await store.cold.index.clear()
        assert await _found(store, "alpha") == []
        assert store.cold.index.analyze("Running") == store.text_index.analyze("Running")

    async def test_what_is_scoured_reads_as_before(self, store: Store) -> None:
        await store.commit(Commit(entries=entries(3)))
        await store.cold.put([text(seq) for seq in (1, 2, 3)])
        await store.cold.index.add([Document(seq, f"alpha beta{seq}") for seq in (1, 2, 3)], position=3)
        await store.cold.erase([2])
        await store.cold.index.remove([2])
        assert await store.scour()
        assert list(await store.cold.read(after=0, limit=9)) == [text(1), text(3)]
        assert await _found(store, "alpha") == [1, 3]
        assert await _found(store, "beta2") == []

    # --- a full store ------------------------------------------------------------------------------------------------

    async def test_a_full_store_is_archived_and_takes_everyday_writes_again(self, open_store: OpenStore) -> None:
        store = open_store(max_bytes=SMALL_BYTES)
        head = await _fill(store, SENTENCE)
        written = list(await store.texts.read(after=0, limit=PLENTY))
        for first in range(0, len(written), BATCH):
            part = written[first : first + BATCH]
            await store.cold.put(part)
            head = await _make_room(store, head, part)
        assert list(await store.cold.read(after=0, limit=PLENTY)) == written
        assert list(await store.texts.read(after=0, limit=PLENTY)) == written
        further = entries(1, after=head)
        await store.commit(Commit(entries=further, texts=[text(further[0].seq, SENTENCE)]))
        await store.close()

    async def test_a_full_store_is_purged_text_by_text_although_each_leaves_an_entry(
        self, open_store: OpenStore
    ) -> None:
        store = open_store(max_bytes=SMALL_BYTES)
        head = await _fill(store, TINY)
        written = list(await store.texts.read(after=0, limit=PLENTY))
        for each in written[:200]:
            head = await _make_room(store, head, [each])
        assert list(await store.texts.read(after=0, limit=PLENTY)) == written[200:]
        assert await store.log.head() == head
        await store.close()

    async def test_everyday_writes_leave_a_full_store_the_room_that_is_kept_for_making_room(
        self, open_store: OpenStore
    ) -> None:
        store = open_store(max_bytes=SMALL_BYTES)
        for _ in range(3):  # what is purged is filled up again, and purged once more
            head = await _fill(store, SENTENCE)
            oldest = list(await store.texts.read(after=0, limit=20))
            for each in oldest:
                head = await _make_room(store, head, [each])
        await store.close()


async def _archive(store: Store, texts: Sequence[StoredText]) -> None:
    await store.cold.put(texts)
    await store.commit(Commit(erased_texts=[each.seq for each in texts]))


async def _make_room(store: Store, head: Head, texts: Sequence[StoredText]) -> Head:
    written = entries(1, after=head)
    await store.commit(Commit(entries=written, erased_texts=[each.seq for each in texts], makes_room=True))
    return head_of(written)


async def _fill(store: Store, content: str) -> Head:
    """Units, until there is no room for one more."""
    head = await store.log.head()
    for units in (BATCH, 1):
        try:
            while True:
                written = entries(units, after=head)
                texts = [text(entry.seq, content) for entry in written]
                units_put = [PutUnit(unit_row(entry.seq)) for entry in written]
                await store.commit(Commit(entries=written, texts=texts, changes=units_put))
                head = head_of(written)
        except StorageFull:
            continue
    return head


async def _paged(store: Store, limit: int) -> list[StoredText]:
    found: list[StoredText] = []
    while page := await store.texts.read(after=found[-1].seq if found else 0, limit=limit):
        assert len(page) <= limit
        found += page
    return found


async def _found(store: Store, word: str) -> list[int]:
    [found] = await store.cold.index.search([[word]], most_postings=PLENTY)
    return sorted(found.seqs.get(word, ()))
