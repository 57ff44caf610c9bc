"""What marks promise."""

from fieldstone.ports.store import Store
from fieldstone.testing.opening import OTHER_KEY, OpenStore, StoreCase


class MarksTests(StoreCase):
    async def test_a_mark_is_0_at_first_and_moves_on(self, store: Store) -> None:
        assert await store.marks.get("detected") == 0
        await store.marks.set("detected", 7)
        await store.marks.set("detected", 9)
        assert await store.marks.get("detected") == 9

    async def test_a_mark_at_0_is_forgotten_and_others_stay(self, store: Store) -> None:
        await store.marks.set("detected", 7)
        await store.marks.set("swept-0123", 3)
        await store.marks.set("swept-0123", 0)
        assert await store.marks.get("swept-0123") == 0
        assert await store.marks.get("detected") == 7

    async def test_another_field_of_the_same_store_has_marks_of_its_own(
        self, store: Store, open_store: OpenStore
    ) -> None:
        await store.marks.set("detected", 7)
        other = open_store(key=OTHER_KEY)
        assert await other.marks.get("detected") == 0
        await other.close()
