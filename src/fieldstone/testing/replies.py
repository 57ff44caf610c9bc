"""What the memory of answers promises."""

from msgspec.structs import replace

from fieldstone.ports.store import Commit, Store
from fieldstone.testing.opening import OTHER_KEY, OpenStore, StoreCase
from fieldstone.testing.rows import reply


class RepliesTests(StoreCase):
    async def test_a_remembered_answer_is_found_as_it_was(self, store: Store) -> None:
        first, second = reply("first"), reply("second")
        await store.commit(Commit(replies=[first, second]))
        assert await store.replies.find([first.key, second.key]) == {first.key: first, second.key: second}

    async def test_what_is_not_remembered_is_left_out(self, store: Store) -> None:
        known = reply("known")
        await store.commit(Commit(replies=[known]))
        assert await store.replies.find([known.key, reply("unknown").key]) == {known.key: known}
        assert await store.replies.find([]) == {}

    async def test_keys_that_begin_alike_are_told_apart(self, store: Store) -> None:
        one, two = reply("one"), reply("two")
        one, two = replace(one, key=b"same start" + b"1" * 6), replace(two, key=b"same start" + b"2" * 6)
        await store.commit(Commit(replies=[one, two]))
        assert await store.replies.find([two.key]) == {two.key: two}
        assert await store.replies.find([b"same start" + b"3" * 6]) == {}

    async def test_older_answers_are_forgotten_and_counted(self, store: Store) -> None:
        old, edge, new = reply("old", at_ms=10), reply("edge", at_ms=20), reply("new", at_ms=30)
        await store.commit(Commit(replies=[old, edge, new]))
        assert await store.replies.forget_before(20, limit=100) == 1
        assert set(await store.replies.find([old.key, edge.key, new.key])) == {edge.key, new.key}
        assert await store.replies.forget_before(20, limit=100) == 0

    async def test_forgetting_stops_at_the_limit_and_goes_on_when_called_again(self, store: Store) -> None:
        old = [reply(f"old {number}", at_ms=number) for number in range(5)]
        await store.commit(Commit(replies=old))
        counts = [await store.replies.forget_before(100, limit=2) for _ in range(4)]
        assert counts == [2, 2, 1, 0]
        assert await store.replies.find([each.key for each in old]) == {}

    async def test_answers_are_forgotten_by_what_is_in_them(self, store: Store) -> None:
        kept, told = reply("kept"), reply("told")
        await store.commit(Commit(replies=[kept, told]))
        assert await store.replies.forget_where(lambda bodies: [b"told" in body for body in bodies]) == 1
        assert await store.replies.find([kept.key, told.key]) == {kept.key: kept}
        assert await store.replies.forget_where(lambda bodies: [b"told" in body for body in bodies]) == 0

    async def test_another_field_of_the_same_store_neither_shares_answers_nor_hinders_forgetting(
        self, store: Store, open_store: OpenStore
    ) -> None:
        other = open_store(key=OTHER_KEY)
        theirs = [reply(f"theirs {number}", at_ms=number) for number in range(3)]
        await other.commit(Commit(replies=theirs))
        ours = reply("ours", at_ms=5)
        await store.commit(Commit(replies=[ours]))
        assert await store.replies.find([theirs[0].key]) == {}
        assert await store.replies.forget_before(100, limit=2) == 1
        assert await store.replies.find([ours.key]) == {}
        assert len(await other.replies.find([each.key for each in theirs])) == 3
        await other.close()
