"""What a log and the texts beside it promise."""

from fieldstone.ports.log import GENESIS_HASH, Head
from fieldstone.ports.store import Commit, Store
from fieldstone.testing.opening import OTHER_KEY, OpenStore, StoreCase
from fieldstone.testing.rows import entries, head_of, text


class EventLogTests(StoreCase):
    async def test_an_empty_log_has_no_entries_and_the_genesis_hash(self, store: Store) -> None:
        assert await store.log.head() == Head(0, GENESIS_HASH)
        assert list(await store.log.read(after=0, limit=10)) == []

    async def test_entries_come_back_byte_for_byte_in_their_order(self, store: Store) -> None:
        written = entries(5)
        await store.commit(Commit(entries=written))
        assert list(await store.log.read(after=0, limit=10)) == written

    async def test_the_head_is_the_last_entry(self, store: Store) -> None:
        written = entries(3)
        await store.commit(Commit(entries=written))
        assert await store.log.head() == head_of(written)
        further = entries(2, after=head_of(written))
        await store.commit(Commit(entries=further))
        assert await store.log.head() == head_of(further)

    async def test_reading_begins_after_a_seq_and_stops_at_the_limit(self, store: Store) -> None:
        written = entries(7)
        await store.commit(Commit(entries=written))
        assert list(await store.log.read(after=2, limit=3)) == written[2:5]
        assert list(await store.log.read(after=5, limit=100)) == written[5:]
        assert list(await store.log.read(after=7, limit=100)) == []
        assert list(await store.log.read(after=0, limit=0)) == []

    async def test_a_commit_without_entries_leaves_the_head_where_it_is(self, store: Store) -> None:
        written = entries(2)
        await store.commit(Commit(entries=written))
        await store.commit(Commit())
        assert await store.log.head() == head_of(written)

    async def test_another_field_of_the_same_store_has_a_log_of_its_own(
        self, store: Store, open_store: OpenStore
    ) -> None:
        other = open_store(key=OTHER_KEY)
        await store.commit(Commit(entries=entries(3)))
        assert await other.log.head() == Head(0, GENESIS_HASH)
        await other.commit(Commit(entries=entries(1)))
        assert (await store.log.head()).seq == 3
        assert len(await store.log.read(after=0, limit=100)) == 3
        await other.close()


class ContentStoreTests(StoreCase):
    async def test_texts_come_back_byte_for_byte(self, store: Store) -> None:
        written = [text(1, "first"), text(3, "third: ünïcode")]
        await store.commit(Commit(entries=entries(3), texts=written))
        assert await store.texts.get([1, 3]) == {1: written[0], 3: written[1]}

    async def test_texts_that_are_not_there_are_left_out(self, store: Store) -> None:
        await store.commit(Commit(entries=entries(2), texts=[text(1)]))
        assert await store.texts.get([1, 2, 99]) == {1: text(1)}
        assert await store.texts.get([]) == {}

    async def test_reading_begins_after_a_seq_and_stops_at_the_limit(self, store: Store) -> None:
        written = [text(seq) for seq in (1, 2, 4, 5)]
        await store.commit(Commit(entries=entries(5), texts=written))
        assert list(await store.texts.read(after=0, limit=100)) == written
        assert list(await store.texts.read(after=1, limit=2)) == written[1:3]
        assert list(await store.texts.read(after=5, limit=2)) == []

    async def test_an_erased_text_is_gone_and_its_entry_stays(self, store: Store) -> None:
        written = entries(2)
        await store.commit(Commit(entries=written, texts=[text(1), text(2)]))
        await store.commit(Commit(erased_texts=[1]))
        assert await store.texts.get([1, 2]) == {2: text(2)}
        assert list(await store.texts.read(after=0, limit=100)) == [text(2)]
        assert list(await store.log.read(after=0, limit=100)) == written

    async def test_erasing_a_text_that_is_not_there_changes_nothing(self, store: Store) -> None:
        await store.commit(Commit(entries=entries(1), texts=[text(1)]))
        await store.commit(Commit(erased_texts=[99]))
        assert await store.texts.get([1]) == {1: text(1)}

    async def test_another_field_of_the_same_store_has_texts_of_its_own(
        self, store: Store, open_store: OpenStore
    ) -> None:
        other = open_store(key=OTHER_KEY)
        await store.commit(Commit(entries=entries(1), texts=[text(1, "ours")]))
        assert await other.texts.get([1]) == {}
        await other.commit(Commit(entries=entries(1), texts=[text(1, "theirs")]))
        await other.commit(Commit(erased_texts=[1]))
        assert await store.texts.get([1]) == {1: text(1, "ours")}
        await other.close()
