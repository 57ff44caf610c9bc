"""What a store promises: a commit is there whole, or nothing of it is."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final

import pytest

from fieldstone.core.errors import StorageFull
from fieldstone.ports.log import GENESIS_HASH, Head, StoredEntry
from fieldstone.ports.store import Commit, Store
from fieldstone.ports.views import Change, KeepHint, PutAgent, PutName, PutUnit, SetUnitStatus
from fieldstone.testing.opening import KEY, OTHER_KEY, OpenStore, StoreCase
from fieldstone.testing.rows import agent_row, entries, head_of, name_row, reply, text, unit_row

SMALL_BYTES: Final = 512 * 1024  # an empty store and some small commits fit
LARGE_TEXT: Final = "x" * SMALL_BYTES


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
