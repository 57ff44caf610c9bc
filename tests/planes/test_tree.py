"""Messages as a tree: ancestors, pages of a path, selections, chains whose parent comes later, circles."""

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.backends.memory.planes import MemoryPlanes
from fieldstone.planes.tree import (
    FIRST_DEPTH,
    ancestor_at,
    attach,
    first_leaf,
    hang,
    is_hung,
    is_on_path,
    leaf_by_selections,
    leaf_through,
    path_page,
    place_under,
    upwards,
)
from fieldstone.ports.planes import MessageRow, ReadTables, Tables, ThreadRow
from tests.planes.scene import SCOPE, THREAD, Scene
from tests.requirements import requirement

MOST = 12
LONG = 1_000


def put(tables: Tables, message: str, parent: str | None, *, place: int, stands: bool = True) -> MessageRow:
    """As a commit adds a message, without the run."""
    above = None if parent is None else tables.message(THREAD, parent)
    depth, jump = place_under(tables, THREAD, above)
    row = MessageRow(message, parent, "run-1", "user", 0, place, depth, jump, stands)
    tables.put_messages(THREAD, [row])
    attach(tables, THREAD, row)
    return row


def get(tables: ReadTables, message: str) -> MessageRow:
    row = tables.message(THREAD, message)
    assert row is not None
    return row


def in_tables(work: object) -> None:
    """Run a plain function over the tables of a new store."""

    def begun(tables: Tables) -> None:
        tables.put_thread(ThreadRow(THREAD, 0, 0))
        work(tables)  # type: ignore[operator]

    async def play() -> None:
        await MemoryPlanes().open(SCOPE).write(begun)

    asyncio.run(play())


# A parent for each of some messages: one of them, whether it comes earlier, later or is the message itself; one that
# never comes; or the root.
parents = st.integers(1, MOST).flatmap(
    lambda count: st.lists(st.sampled_from([None, "gone", *map(str, range(count))]), min_size=count, max_size=count)
)


@requirement("planes:branches:missing-parent", "planes:branches:cycles")
@given(parents)
def test_whatever_parents_messages_name_and_in_whatever_order_they_come_each_has_its_place(
    named: list[str | None],
) -> None:
    def work(tables: Tables) -> None:
        for at, parent in enumerate(named):
            put(tables, str(at), parent, place=at + 1)
        for at in range(len(named)):
            row = get(tables, str(at))
            chain = list(upwards(tables, THREAD, row))
            assert [each.depth for each in chain] == list(range(row.depth, 0, -1))
            assert [ancestor_at(tables, THREAD, row, each.depth) for each in chain] == chain
            assert all(is_on_path(tables, THREAD, each, row) for each in chain)
            assert begins_there(tables, chain[-1])
            assert is_hung(tables, THREAD, row)
            assert leaf_through(tables, THREAD, row).depth >= row.depth

    in_tables(work)


def begins_there(tables: ReadTables, head: MessageRow) -> bool:
    """A chain begins where no parent is, or where its parents would lead round to it."""
    seen, parent = {head.id}, head.parent
    while parent is not None and (above := tables.message(THREAD, parent)) is not None:
        if above.id in seen:
            return above.id == head.id
        seen.add(above.id)
        parent = above.parent
    return head.parent is None or tables.message(THREAD, head.parent) is None


@requirement("planes:branches:paged")
@given(parents, st.integers(0, MOST), st.integers(0, MOST))
def test_a_page_of_a_path_is_the_same_part_of_the_whole_path(named: list[str | None], after: int, limit: int) -> None:
    def work(tables: Tables) -> None:
        for at, parent in enumerate(named):
            put(tables, str(at), parent, place=at + 1)
        leaf = get(tables, "0")
        whole = list(upwards(tables, THREAD, leaf))[::-1]
        page = path_page(tables, THREAD, leaf, after_depth=after, limit=limit)
        assert list(page) == whole[after : after + limit]

    in_tables(work)


@requirement("planes:branches:selections")
@given(
    parents,
    st.dictionaries(st.sampled_from(["", *map(str, range(MOST))]), st.sampled_from(list(map(str, range(MOST))))),
)
def test_selections_choose_the_path_that_a_walk_from_the_root_would_take(
    named: list[str | None], selections: dict[str, str]
) -> None:
    def work(tables: Tables) -> None:
        for at, parent in enumerate(named):
            put(tables, str(at), parent, place=at + 1)
        leaf = first_leaf(tables, THREAD)
        if leaf is None or not tables.children(THREAD, None):
            return
        chosen = leaf_by_selections(tables, THREAD, leaf, selections)
        assert chosen is not None
        assert [row.id for row in upwards(tables, THREAD, chosen)][::-1] == walked(tables, selections)

    in_tables(work)


def walked(tables: ReadTables, selections: dict[str, str]) -> list[str]:
    path: list[MessageRow] = []
    while True:
        here, depth = (path[-1].id, path[-1].depth) if path else (None, 0)
        children = [row for row in tables.children(THREAD, here) if row.depth == depth + 1]
        if not children:
            return [row.id for row in path]
        by_id = {row.id: row for row in children}
        path.append(by_id.get(selections.get(here or "", ""), children[0]))


@requirement("planes:branches:cost")
def test_the_way_to_an_ancestor_takes_few_reads_however_long_the_chain() -> None:
    def work(tables: Tables) -> None:
        parent = None
        for at in range(LONG):
            parent = put(tables, str(at), parent, place=at + 1).id
        counted = Counted(tables)
        leaf = get(tables, parent or "")
        for depth in range(FIRST_DEPTH, LONG + 1):
            counted.reads = 0
            assert ancestor_at(counted, THREAD, leaf, depth).depth == depth
            assert counted.reads <= 3 * LONG.bit_length()

    in_tables(work)


@requirement("planes:branches:cost")
def test_a_page_costs_as_much_in_a_long_thread_with_many_branches_as_in_a_short_one() -> None:
    def work(tables: Tables) -> None:
        parent, place = None, 0
        for at in range(LONG):
            for branch in range(3):
                place += 1
                put(tables, f"{at} {branch}", parent, place=place)
            parent = f"{at} 2"
        counted = Counted(tables)
        leaf = get(tables, parent or "")
        for after in range(0, LONG, 50):
            counted.reads = 0
            assert len(path_page(counted, THREAD, leaf, after_depth=after, limit=10)) == 10
            assert counted.reads <= 10 + 3 * LONG.bit_length()

    in_tables(work)


class Counted:
    """Tables that count the messages read."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.reads = 0

    def message(self, thread: str, message_id: str) -> MessageRow | None:
        self.reads += 1
        return self._tables.message(thread, message_id)


@requirement("planes:branches:active")
def test_at_each_fork_the_newest_child_that_stands_is_taken_else_the_newest() -> None:
    def work(tables: Tables) -> None:
        put(tables, "root", None, place=1)
        put(tables, "old", "root", place=2, stands=False)
        put(tables, "new", "root", place=3, stands=False)
        assert leaf_through(tables, THREAD, get(tables, "root")).id == "new"
        put(tables, "standing", "root", place=4)
        put(tables, "newest", "root", place=5, stands=False)
        assert leaf_through(tables, THREAD, get(tables, "root")).id == "standing"

    in_tables(work)


@requirement("planes:branches:missing-parent")
def test_a_chain_is_attached_when_its_parent_comes() -> None:
    def work(tables: Tables) -> None:
        for at, (message, parent) in enumerate(pairwise(["c", "b", "a", None]), start=1):
            put(tables, message, parent, place=at)  # type: ignore[arg-type]
        assert [row.id for row in upwards(tables, THREAD, get(tables, "c"))] == ["c", "b", "a"]

    in_tables(work)


def test_a_message_that_hangs_wrongly_is_hung_anew_with_all_below_it() -> None:
    def work(tables: Tables) -> None:
        parent = None
        for at in range(20):
            parent = put(tables, str(at), parent, place=at + 1).id
        spoiled = get(tables, "7")._replace(depth=3, jump="0")
        tables.put_messages(THREAD, [spoiled])
        assert not is_hung(tables, THREAD, spoiled)
        assert hang(tables, THREAD, spoiled) == 13
        assert all(is_hung(tables, THREAD, get(tables, str(at))) for at in range(20))

    in_tables(work)


def test_a_parent_that_is_missing_where_depth_says_there_is_one_is_an_error() -> None:
    def work(tables: Tables) -> None:
        tables.put_messages(THREAD, [MessageRow("a", "gone", "run-1", "user", 0, 1, 5, None, True)])
        with pytest.raises(LookupError):
            ancestor_at(tables, THREAD, get(tables, "a"), 1)

    in_tables(work)


async def test_a_thread_without_messages_has_no_leaf(scene: Scene) -> None:
    assert await scene.store.read(lambda tables: first_leaf(tables, THREAD)) is None
