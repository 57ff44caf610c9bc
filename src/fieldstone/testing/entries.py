"""What views promise of memories' entries, and of the feed: each found by what it bears, gone when it is gone."""

from collections.abc import Sequence
from typing import Final

from fieldstone.ports.store import Commit, Store
from fieldstone.ports.views import (
    Change,
    EntryRow,
    FeedRow,
    PutEntry,
    PutFeed,
    RelabelEntry,
    RemoveEntries,
    ReturnEntries,
    ShelveEntries,
)
from fieldstone.testing.opening import OTHER_KEY, OpenStore, StoreCase

MEMORY: Final = 3
OPS: Final = b"digest of ops..."
EU: Final = b"digest of eu...."
NOTE: Final = b"digest of note.."


def entry_row(unit: int, *, memory: int = MEMORY) -> EntryRow:
    return EntryRow(unit, memory, unit + 1)


def put(*rows: EntryRow, tags: Sequence[bytes] = ()) -> list[Change]:
    return [PutEntry(row, tags) for row in rows]


class EntriesTests(StoreCase):
    async def test_there_are_no_entries_at_first(self, store: Store) -> None:
        views = store.views
        assert await views.entry(MEMORY, NOTE) is None
        assert await views.entries_of([1]) == {}
        assert await views.entries(MEMORY, limit=10) == []
        assert await views.memories() == {}
        assert await views.expired_entries(2**62, limit=10) == []
        assert await views.feed(after=0, limit=10) == []
        assert await views.feed_of(1, "memory.written") is None

    async def test_a_memory_lists_its_entries_newest_first_and_page_by_page(self, store: Store) -> None:
        rows = [entry_row(unit) for unit in (10, 12, 14)]
        await _apply(store, *put(*rows), *put(entry_row(16, memory=4)))
        assert await store.views.entries(MEMORY, limit=10) == rows[::-1]
        assert await store.views.entries(MEMORY, limit=2) == rows[:0:-1]
        assert await store.views.entries(MEMORY, before=14, limit=1) == [rows[1]]
        assert await store.views.entries(MEMORY, before=10, limit=1) == []
        assert await store.views.memories() == {MEMORY: 3, 4: 1}
        assert await store.views.entries_of([12, 13]) == {12: rows[1]}

    async def test_entries_are_found_by_a_tag(self, store: Store) -> None:
        await _apply(store, *put(entry_row(10), tags=(OPS, EU)), *put(entry_row(12), tags=(EU,)), *put(entry_row(14)))
        await _apply(store, *put(entry_row(16, memory=4), tags=(OPS,)))
        assert [row.unit for row in await store.views.entries(MEMORY, limit=10, tag=EU)] == [12, 10]
        assert [row.unit for row in await store.views.entries(MEMORY, limit=10, tag=OPS)] == [10]
        assert [row.unit for row in await store.views.entries(MEMORY, before=12, limit=10, tag=EU)] == [10]

    async def test_an_archived_entry_is_listed_again_only_once_it_is_restored(self, store: Store) -> None:
        await _apply(store, *put(entry_row(10), entry_row(12), tags=(EU,)), ShelveEntries((10, 11), 20))
        assert [row.unit for row in await store.views.entries(MEMORY, limit=10)] == [12]
        assert [row.unit for row in await store.views.entries(MEMORY, limit=10, tag=EU)] == [12]
        every = await store.views.entries(MEMORY, limit=10, every=True)
        assert [(row.unit, row.archived_seq) for row in every] == [(12, None), (10, 20)]
        assert [row.unit for row in await store.views.entries(MEMORY, limit=10, tag=EU, every=True)] == [12, 10]
        await _apply(store, ReturnEntries((10, 11)))
        assert [row.unit for row in await store.views.entries(MEMORY, limit=10)] == [12, 10]

    async def test_an_entry_that_is_gone_says_since_when_and_the_first_time_counts(self, store: Store) -> None:
        await _apply(store, *put(entry_row(10)), RemoveEntries((10, 11), 20))
        await _apply(store, RemoveEntries((10,), 30))
        assert await store.views.entries(MEMORY, limit=10) == []
        assert (await store.views.entries_of([10]))[10].gone_seq == 20
        assert await store.views.memories() == {}

    async def test_of_a_purged_entry_no_label_and_no_time_is_left(self, store: Store) -> None:
        await _apply(store, *put(entry_row(10)._replace(digest=NOTE, expires_ms=5), tags=(OPS, NOTE)))
        await _apply(store, RemoveEntries((10,), 20, purged=True))
        assert await store.views.entry(MEMORY, NOTE) is None
        assert await store.views.entries(MEMORY, limit=10, tag=OPS, every=True) == []
        assert await store.views.expired_entries(2**62, limit=10) == []
        assert (await store.views.entries_of([10]))[10] == entry_row(10)._replace(gone_seq=20)

    async def test_of_two_with_the_same_id_the_newest_is_found(self, store: Store) -> None:
        first, second = entry_row(10)._replace(digest=NOTE), entry_row(12)._replace(digest=NOTE)
        await _apply(store, *put(first, second, entry_row(14, memory=4)._replace(digest=NOTE)))
        assert await store.views.entry(MEMORY, NOTE) == second

    async def test_an_entry_whose_text_was_rewritten_is_found_by_its_new_labels_alone(self, store: Store) -> None:
        await _apply(store, *put(entry_row(10)._replace(digest=NOTE), tags=(OPS,)), *put(entry_row(12), tags=(OPS,)))
        await _apply(store, RelabelEntry(11, EU, (EU,)))
        assert await store.views.entry(MEMORY, NOTE) is None
        assert await store.views.entry(MEMORY, EU) == entry_row(10)._replace(digest=EU)
        assert [row.unit for row in await store.views.entries(MEMORY, limit=10, tag=OPS)] == [12]
        assert [row.unit for row in await store.views.entries(MEMORY, limit=10, tag=EU)] == [10]

    async def test_what_is_past_its_time_comes_in_the_order_of_its_time(self, store: Store) -> None:
        timed = {10: 300, 12: 100, 14: 200}
        await _apply(store, *put(*(entry_row(unit)._replace(expires_ms=at) for unit, at in timed.items())))
        await _apply(store, *put(entry_row(16)), ShelveEntries((12,), 20), RemoveEntries((14,), 21))
        assert [row.unit for row in await store.views.expired_entries(200, limit=10)] == [12, 14]
        assert [row.unit for row in await store.views.expired_entries(300, limit=1)] == [12]
        assert await store.views.expired_entries(99, limit=10) == []

    async def test_the_feed_comes_in_order_by_kind_and_since_a_time(self, store: Store) -> None:
        rows = [
            FeedRow(5, "memory.written", 100, 4),
            FeedRow(7, "memory.compacted", 300, 6),
            FeedRow(9, "memory.written", 200, 8),  # clocks are set back
            FeedRow(11, "agent.memory.consolidated", 400, None),
        ]
        await _apply(store, *(PutFeed(row) for row in rows))
        assert await store.views.feed(after=0, limit=10) == rows
        assert await store.views.feed(after=5, limit=2) == rows[1:3]
        assert await store.views.feed(after=0, limit=10, kinds=["memory.written"]) == [rows[0], rows[2]]
        both = await store.views.feed(after=0, limit=2, kinds=["memory.compacted", "memory.written"])
        assert both == rows[:2]
        assert await store.views.feed(after=0, limit=10, since_ms=200) == rows[1:]
        assert await store.views.feed(after=7, limit=10, since_ms=101, kinds=["memory.written"]) == [rows[2]]
        assert await store.views.feed(after=0, limit=10, since_ms=401) == []
        assert await store.views.feed(after=0, limit=10, kinds=[]) == []

    async def test_the_newest_event_about_a_unit_is_found(self, store: Store) -> None:
        rows = [FeedRow(5, "memory.compacted", 100, 4), FeedRow(7, "memory.compacted", 200, 4)]
        await _apply(store, *(PutFeed(row) for row in rows))
        assert await store.views.feed_of(4, "memory.compacted") == rows[1]
        assert await store.views.feed_of(4, "memory.written") is None

    async def test_another_field_of_the_same_store_has_memories_of_its_own(
        self, store: Store, open_store: OpenStore
    ) -> None:
        other = open_store(key=OTHER_KEY)
        row = entry_row(10)._replace(digest=NOTE, expires_ms=1)
        await _apply(store, *put(row, tags=(EU,)), PutFeed(FeedRow(11, "memory.written", 100, 10)))
        assert await other.views.entry(MEMORY, NOTE) is None
        assert await other.views.entries(MEMORY, limit=10, tag=EU) == []
        assert await other.views.memories() == {}
        assert await other.views.expired_entries(2**62, limit=10) == []
        assert await other.views.feed(after=0, limit=10, since_ms=0) == []
        await _apply(other, *put(row), RemoveEntries((10,), 12))
        assert await store.views.entries(MEMORY, limit=10) == [row]
        await other.close()


async def _apply(store: Store, *changes: Change) -> None:
    await store.commit(Commit(changes=changes))
