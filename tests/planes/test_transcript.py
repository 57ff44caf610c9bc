"""The durable transcript: branches, pages, the tree, switching, deleting, and the context of the next prompt."""

import asyncio
from base64 import urlsafe_b64encode
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json

from fieldstone.core.errors import InvalidPayload, InvalidTransition, RunNotFound, StreamCompacted, ThreadNotFound
from fieldstone.core.transcripts import (
    CanonicalMessage,
    Context,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from fieldstone.planes.compaction import HOLD_PREFIX
from fieldstone.planes.deletion import ERASED_AT_ONCE, STREAM_TAKES, mark_deleted
from fieldstone.planes.messages import message_id
from fieldstone.planes.snapshots import take_snapshot
from fieldstone.planes.streams import Streams
from fieldstone.planes.transcript import Transcript
from fieldstone.planes.window import Window
from fieldstone.ports.planes import PlaneStore, StreamRow, Tables
from fieldstone.redact import shared_harness
from fieldstone.testing import WordCounter
from tests.planes.events import call, delta, error, finished, reasoning, result, user
from tests.planes.scene import BACKENDS, THREAD, Scene, in_scene, texts
from tests.planes.transport import streams_of
from tests.requirements import requirement

MANY_RUNS: Final = 130

T = TypeVar("T")


async def pages(scene: Scene, limit: int, **asked: object) -> list[list[str]]:
    """All pages of a read, as texts."""
    found: list[list[str]] = []
    after: str | None = None
    while True:
        page = await scene.transcript.messages(THREAD, after=after, limit=limit, **asked)  # type: ignore[arg-type]
        found.append(texts(page.messages))
        after = page.next
        if after is None:
            return found


async def forked(scene: Scene) -> dict[str, str]:
    """a1 ─ a2 ─ a3, and from a1 also b2 ─ b3, which was committed later. By their texts, their ids."""
    a1, a2, a3 = await scene.said("a1", "a2", "a3")
    b2, b3 = await scene.said("b2", "b3", fork_from=a1)
    return {"a1": a1, "a2": a2, "a3": a3, "b2": b2, "b3": b3}


@requirement("planes:branches:active")
async def test_the_active_branch_is_read_by_default(scene: Scene) -> None:
    await forked(scene)
    assert await scene.path() == ["a1", "b2", "b3"]


@requirement("planes:branches:all")
async def test_all_branches_are_read_in_order_of_creation(scene: Scene) -> None:
    await forked(scene)
    assert await pages(scene, 2, branch="all") == [["a1", "a2"], ["a3", "b2"], ["b3"]]


@requirement("planes:branches:selections")
async def test_explicit_selections_win_for_their_read(scene: Scene) -> None:
    ids = await forked(scene)
    selections = {ids["a1"]: ids["a2"]}
    assert await pages(scene, 2, selections=selections) == [["a1", "a2"], ["a3"]]
    assert await scene.path() == ["a1", "b2", "b3"]


@requirement("planes:branches:selections")
async def test_the_key_of_the_root_is_empty(scene: Scene) -> None:
    [first] = await scene.said("first try")
    await scene.said("second try", fork_from=None)
    assert await pages(scene, 9, selections={"": first}) == [["first try"]]


@requirement("planes:branches:selections")
async def test_selections_that_choose_nothing_leave_the_active_branch(scene: Scene) -> None:
    ids = await forked(scene)
    for nothing in ({"gone": ids["a2"]}, {ids["a1"]: "gone"}, {ids["a3"]: ids["a2"]}, {"": ids["a2"]}):
        assert await pages(scene, 9, selections=nothing) == [["a1", "b2", "b3"]]
    with pytest.raises(InvalidPayload):
        await scene.transcript.messages(THREAD, selections=dict.fromkeys(map(str, range(1_001)), "x"))


@requirement("planes:branches:paged")
async def test_reads_are_paged_and_the_pages_of_one_path_belong_together(scene: Scene) -> None:
    ids = await forked(scene)
    first = await scene.transcript.messages(THREAD, limit=2)
    await scene.transcript.set_active(THREAD, ids["a2"])
    rest = await scene.transcript.messages(THREAD, limit=2, after=first.next)
    assert texts((*first.messages, *rest.messages)) == ["a1", "b2", "b3"]
    assert rest.next is None


@requirement("planes:branches:paged")
async def test_a_path_that_is_attached_between_two_pages_is_read_on_where_it_was(scene: Scene) -> None:
    coming = await scene.begin(None)
    await scene.tell(coming, delta("parent"))
    await scene.said("a", "b", "c", fork_from=message_id(coming.stream_id, 1))
    first = await scene.transcript.messages(THREAD, limit=1)
    await scene.commit(coming)
    rest = await scene.transcript.messages(THREAD, after=first.next)
    assert texts((*first.messages, *rest.messages)) == ["a", "b", "c"]
    assert await scene.path() == ["parent", "a", "b", "c"]


@requirement("planes:branches:paged")
async def test_a_limit_of_0_gives_none_and_one_below_is_refused(scene: Scene) -> None:
    await forked(scene)
    first = await scene.transcript.messages(THREAD, limit=2)
    for after in (None, first.next):
        page = await scene.transcript.messages(THREAD, limit=0, after=after)
        assert (page.messages, page.next) == ((), after)
    with pytest.raises(InvalidPayload):
        await scene.transcript.messages(THREAD, limit=-1)


@requirement("planes:branches:paged")
async def test_what_is_no_next_of_an_earlier_answer_is_refused(scene: Scene) -> None:
    await forked(scene)
    of_all = (await scene.transcript.messages(THREAD, branch="all", limit=1)).next
    of_path = (await scene.transcript.messages(THREAD, limit=1)).next
    for after in ("x", "é", "e30", "bm9uc2Vuc2U", of_all):
        with pytest.raises(InvalidPayload):
            await scene.transcript.messages(THREAD, after=after)
    for place in (-1, 2**64, "1"):
        with pytest.raises(InvalidPayload):
            await scene.transcript.messages(THREAD, branch="all", after=opaque(place=place))
    with pytest.raises(InvalidPayload):
        await scene.transcript.messages(THREAD, branch="all", after=of_path)
    with pytest.raises(InvalidPayload):
        await scene.transcript.messages(THREAD, branch="some")  # type: ignore[arg-type]


def opaque(**cursor: object) -> str:
    return urlsafe_b64encode(json.encode(cursor)).decode()


@requirement("planes:branches:tree")
async def test_the_tree_has_every_message_without_its_parts(scene: Scene) -> None:
    ids = await forked(scene)
    tree = await scene.transcript.tree(THREAD)
    assert [(node.id, node.parent_message_id) for node in tree.nodes] == [
        (ids["a1"], None),
        (ids["a2"], ids["a1"]),
        (ids["a3"], ids["a2"]),
        (ids["b2"], ids["a1"]),
        (ids["b3"], ids["b2"]),
    ]
    assert tree.active_leaf == ids["b3"]
    assert {node.role for node in tree.nodes} == {"assistant"}
    assert tree.nodes[0].created_at.endswith("Z")


@requirement("planes:branches:switch")
async def test_the_active_path_can_be_put_through_any_message_and_goes_on_by_the_default_rule(scene: Scene) -> None:
    ids = await forked(scene)
    assert await scene.transcript.set_active(THREAD, ids["a2"]) == ids["a3"]
    assert await scene.path() == ["a1", "a2", "a3"]
    assert await scene.transcript.set_active(THREAD, ids["a1"]) == ids["b3"]
    with pytest.raises(InvalidPayload):
        await scene.transcript.set_active(THREAD, "gone")


@requirement("planes:http:lists")
async def test_threads_are_listed_by_id_and_page_by_page(scene: Scene) -> None:
    for thread in ("b", "a", "c", "d"):
        await scene.said("hello", thread=thread)
    await scene.transcript.delete("b")
    first = await scene.transcript.threads(limit=2)
    rest = await scene.transcript.threads(limit=2, after=first.next)
    assert [each.thread_id for each in (*first.threads, *rest.threads)] == ["a", "c", "d"]
    assert rest.next is None


@requirement("planes:branches:not-found")
async def test_an_unknown_thread_is_not_found(scene: Scene) -> None:
    for asked in (
        scene.transcript.messages("t9"),
        scene.transcript.messages("t9", branch="all"),
        scene.transcript.tree("t9"),
        scene.transcript.thread("t9"),
        scene.transcript.set_active("t9", "m"),
        scene.transcript.delete("t9"),
        scene.transcript.context("t9"),
        scene.transcript.messages_by_id("t9", ["m"]),
    ):
        with pytest.raises(ThreadNotFound):
            await asked


@requirement("planes:branches:delete")
async def test_deleting_a_thread_takes_messages_runs_streams_and_snapshots_and_gives_a_receipt(scene: Scene) -> None:
    await forked(scene)
    await scene.said("another thread", thread="t2")
    open_run = await scene.begin()
    await scene.tell(open_run, delta("half"))
    runs = await scene.runs.runs(THREAD)
    await scene.store.write(lambda tables: take_snapshot(tables, runs[1].stream_id, now_ms=0))
    receipt = await scene.transcript.delete(THREAD)
    assert (receipt.thread_id, receipt.messages, receipt.runs) == (THREAD, 5, 3)
    assert (receipt.streams, receipt.snapshots) == (3, 1)
    assert receipt.deleted_at.endswith("Z")
    with pytest.raises(ThreadNotFound):
        await scene.path()
    with pytest.raises(ThreadNotFound):
        await scene.commit(open_run)
    for run in runs:
        row = await scene.store.read(lambda tables: tables.stream(run.stream_id))  # noqa: B023 (called at once)
        assert row is not None
        assert row.floor == row.head > 0, "a seq is never used twice"
        assert not await scene.store.read(lambda tables: tables.snapshots(run.stream_id))  # noqa: B023
    assert await scene.store.read(lambda tables: tables.truncated(limit=9)) == []
    assert await scene.path("t2") == ["another thread"]


@requirement("planes:branches:delete")
async def test_a_thread_that_is_deleted_can_begin_again_and_has_nothing_of_before(scene: Scene) -> None:
    await forked(scene)
    await scene.transcript.delete(THREAD)
    await scene.said("new")
    assert await scene.path() == ["new"]
    assert await pages(scene, 9, branch="all") == [["new"]]
    assert len(await scene.runs.runs(THREAD)) == 1
    receipt = await scene.transcript.delete(THREAD)
    assert (receipt.messages, receipt.runs) == (1, 1)


@requirement("planes:branches:delete")
async def test_a_deletion_that_was_cut_short_shows_nothing_of_the_thread_and_is_finished_when_it_begins_again(
    scene: Scene,
) -> None:
    await forked(scene)
    run = (await scene.runs.runs(THREAD))[0]
    await scene.store.write(lambda tables: mark_deleted(tables, THREAD, 1))
    with pytest.raises(ThreadNotFound):
        await scene.path()
    with pytest.raises(ThreadNotFound):
        await scene.runs.run(THREAD, run.run_id)
    await scene.said("new")
    assert await pages(scene, 9, branch="all") == [["new"]]


@requirement("planes:branches:delete-in-steps")
@requirement("planes:branches:delete")
async def test_a_thread_of_many_runs_is_deleted_in_small_steps_between_which_others_write(scene: Scene) -> None:
    runs = [await scene.committed(delta(f"answer {number}")) for number in range(MANY_RUNS)]
    await scene.store.write(lambda tables: take_snapshot(tables, runs[0].stream_id, now_ms=0))
    await scene.store.write(lambda tables: tables.put_reader(runs[1].stream_id, "ui", 1))
    stepping = Stepping(scene.store)
    receipt = await Transcript(cast(PlaneStore, stepping), scene.clock).delete(THREAD)
    assert (receipt.messages, receipt.runs, receipt.streams, receipt.snapshots) == (MANY_RUNS,) * 3 + (1,)
    assert stepping.steps[0].emptied == 0, "the first one only marks the thread"
    assert sum(step.emptied for step in stepping.steps) == MANY_RUNS
    assert max(step.emptied for step in stepping.steps) <= ERASED_AT_ONCE // STREAM_TAKES
    for run in runs:
        assert await scene.store.read(lambda tables: tables.readers(run.stream_id)) == {}  # noqa: B023
        with pytest.raises(StreamCompacted):
            await streams_of(scene).read(run.stream_id)


@requirement("planes:branches:delete")
async def test_a_stream_of_a_thread_that_is_being_deleted_cannot_be_held_or_registered_with(scene: Scene) -> None:
    run = await scene.committed(delta("told"))
    await scene.store.write(lambda tables: mark_deleted(tables, THREAD, 1))
    streams = streams_of(scene)
    with pytest.raises(RunNotFound):
        await streams.hold(run.stream_id, "audit")
    with pytest.raises(RunNotFound):
        await streams.set_reader(run.stream_id, "ui", 0)


@requirement("planes:rules:hold")
async def test_a_hold_on_a_stream_of_another_thread_hinders_no_deletion(scene: Scene) -> None:
    await scene.committed(delta("told"))
    other = await scene.committed(delta("keep me"), thread="t2")
    streams = streams_of(scene)
    await streams.hold(other.stream_id, "audit")
    await streams.hold("no run at all", "audit")
    assert (await scene.transcript.delete(THREAD)).runs == 1
    with pytest.raises(InvalidTransition):
        await scene.transcript.delete("t2")


@requirement("planes:branches:delete")
async def test_events_for_a_run_of_a_deleted_thread_are_refused(scene: Scene) -> None:
    run = await scene.begin()
    await scene.tell(run, delta("half"))
    await scene.store.write(lambda tables: mark_deleted(tables, THREAD, 1))
    with pytest.raises(RunNotFound):
        await scene.tell(run, delta(" more"))


@requirement("planes:rules:hold")
async def test_a_thread_with_a_stream_on_hold_is_not_deleted(scene: Scene) -> None:
    run = await scene.committed(delta("keep me"))
    await scene.store.write(lambda tables: tables.put_reader(run.stream_id, f"{HOLD_PREFIX}audit", 0))
    with pytest.raises(InvalidTransition):
        await scene.transcript.delete(THREAD)
    assert await scene.path() == ["keep me"]


async def test_messages_are_found_by_their_ids_on_whatever_branch_and_recalled_by_a_hint(scene: Scene) -> None:
    [answer] = await scene.said("The turbine runs at nine hundred volts")
    [other] = await scene.said("Nothing to do with it", fork_from=None)
    recalls = scene.transcript.recalls(THREAD)
    assert [message.id for message in await recalls.messages([other, "gone", answer])] == [other, answer]
    assert [message.id for message in await recalls.search("how many volts?", [other, answer])] == [answer]


async def test_a_run_over_the_transport_log_is_committed_with_what_readers_saw(scene: Scene) -> None:
    async def cleaning() -> object:
        return shared_harness()

    streams = Streams(scene.store, cleaning, scene.clock)  # type: ignore[arg-type]
    run = await scene.begin()
    await streams.append(run.stream_id, [user("q"), delta("a"), delta("b")])
    assert (await scene.runs.run(THREAD, run.run_id)).status == "streaming"
    await scene.commit(run)
    assert await scene.path() == ["q", "ab"]
    with pytest.raises(InvalidTransition):
        await streams.append(run.stream_id, [delta("late")])
    compacted = await streams.compact(run.stream_id)
    assert compacted.eligible == 3
    await streams.settled()
    with pytest.raises(StreamCompacted):
        await streams.read(run.stream_id)
    assert await scene.path() == ["q", "ab"]
    assert (await scene.reconcile.reconcile()).disagreements == ()
    await streams.close()


steps = st.lists(
    st.tuples(st.sampled_from(["go on", "fork", "switch"]), st.integers(0, 40), st.integers(1, 3)), max_size=14
)


@requirement("planes:branches:paged")
@pytest.mark.parametrize("backend", BACKENDS)
@given(steps, st.integers(1, 4))
def test_however_a_thread_grows_and_is_switched_its_pages_are_the_path_that_its_parents_tell(
    backend: str, steps: list[tuple[str, int, int]], limit: int
) -> None:
    async def play(scene: Scene) -> None:
        path: list[str] = []
        parents: dict[str, str | None] = {}
        for what, where, count in steps:
            known = [None, *parents]
            chosen = known[where % len(known)]
            if what == "switch":
                if chosen is None:
                    continue
                leaf = await scene.transcript.set_active(THREAD, chosen)
                path = way(parents, leaf)
                assert chosen in path
                continue
            fork = (path[-1] if path else None) if what == "go on" else chosen
            ids = await scene.said(*"xyz"[:count], fork_from=fork)
            parents |= dict(zip(ids, [fork, *ids], strict=False))
            path = way(parents, ids[-1]) if fork is None or fork in path else path
        if parents:
            assert await ids_of_pages(scene, limit) == path

    asyncio.run(in_scene(backend, play))


def way(parents: dict[str, str | None], leaf: str | None) -> list[str]:
    path = []
    while leaf is not None:
        path.append(leaf)
        leaf = parents[leaf]
    return path[::-1]


async def ids_of_pages(scene: Scene, limit: int) -> list[str]:
    page = await scene.transcript.messages(THREAD, limit=limit)
    found = [message.id for message in page.messages]
    while page.next is not None:
        assert len(page.messages) == limit
        page = await scene.transcript.messages(THREAD, limit=limit, after=page.next)
        found.extend(message.id for message in page.messages)
    return found


# --- the context of the next prompt -------------------------------------------------------------------------------


async def conversation(scene: Scene) -> None:
    await scene.committed(user("one two"), reasoning("hm hm hm"), delta("three"), finished())
    await scene.committed(
        user("four"), call("c1"), call("c2"), result("c1", "r r"), result("c2", "s"), delta("five six")
    )


def shape(context: Context) -> list[str]:
    return [message.role for message in context.messages]


@requirement("planes:prompt:provenance")
async def test_a_context_is_the_end_of_the_active_path_with_its_provenance(scene: Scene) -> None:
    await conversation(scene)
    whole = await scene.transcript.context(THREAD)
    assert shape(whole) == ["user", "assistant", "user", "assistant", "tool", "tool", "assistant"]
    leaf = (await scene.transcript.tree(THREAD)).active_leaf
    last = await scene.transcript.context(THREAD, last=1)
    assert texts(last.messages) == ["five six"]
    assert (last.provenance.thread_id, last.provenance.count, last.provenance.branch) == (THREAD, 1, leaf)
    assert last.provenance.first_message_id == last.provenance.last_message_id == leaf
    assert last.tokens is None


@requirement("planes:prompt:pairs")
async def test_a_context_never_splits_a_tool_call_from_its_result(scene: Scene) -> None:
    await conversation(scene)
    lengths = [len((await scene.transcript.context(THREAD, last=last)).messages) for last in range(8)]
    assert lengths == [0, 1, 1, 1, 4, 5, 6, 7]


@requirement("planes:prompt:budget")
async def test_a_context_stays_within_its_tokens(scene: Scene) -> None:
    await conversation(scene)
    counter = WordCounter()
    whole = await scene.transcript.context(THREAD, counter=counter)
    assert whole.tokens is not None
    context = whole
    for budget in range(whole.tokens + 2):
        context = await scene.transcript.context(THREAD, max_tokens=budget, counter=counter)
        assert context.tokens is not None
        assert context.tokens <= budget
        assert context.messages == whole.messages[len(whole.messages) - len(context.messages) :]
    assert context.messages == whole.messages
    with pytest.raises(ValueError, match="counter"):
        await scene.transcript.context(THREAD, max_tokens=5)
    with pytest.raises(InvalidPayload):
        await scene.transcript.context(THREAD, last=-1)


@requirement("planes:prompt:filters")
async def test_a_context_can_leave_out_reasoning_and_tool_results_with_their_calls(scene: Scene) -> None:
    await conversation(scene)
    context = await scene.transcript.context(THREAD, reasoning=False, tool_results=False)
    kinds = {type(part) for message in context.messages for part in message.parts}
    assert kinds == {TextPart}
    assert shape(context) == ["user", "assistant", "user", "assistant"]
    with_all = await scene.transcript.context(THREAD)
    kinds = {type(part) for message in with_all.messages for part in message.parts}
    assert kinds == {TextPart, ReasoningPart, ToolCallPart, ToolResultPart}


@requirement("planes:prompt:branch")
async def test_a_context_of_another_branch_is_chosen_by_selections(scene: Scene) -> None:
    ids = await forked(scene)
    context = await scene.transcript.context(THREAD, last=2, selections={ids["a1"]: ids["a2"]})
    assert texts(context.messages) == ["a2", "a3"]
    assert context.provenance.branch == ids["a3"]


async def test_the_context_of_a_thread_without_messages_is_empty(scene: Scene) -> None:
    await scene.begin()
    context = await scene.transcript.context(THREAD)
    assert (context.messages, context.provenance.count, context.provenance.branch) == ((), 0, None)


async def test_a_message_with_nothing_for_a_model_is_not_in_a_context(scene: Scene) -> None:
    await scene.committed(error("no model"))
    await scene.said("hello")
    assert texts((await scene.transcript.context(THREAD)).messages) == ["hello"]


@requirement("planes:prompt:budget")
async def test_a_context_reaches_over_many_pages(scene: Scene) -> None:
    await scene.said(*map(str, range(350)))
    context = await scene.transcript.context(THREAD, last=250)
    assert texts(context.messages) == [str(number) for number in range(100, 350)]


def message(number: int, *parts: TextPart | ToolCallPart | ToolResultPart) -> CanonicalMessage:
    return CanonicalMessage(f"m{number}", None, "assistant", parts, "", {"schemaVersion": 1})


any_parts = st.lists(
    st.one_of(
        st.just(TextPart("x")),
        st.sampled_from("ab").map(lambda call: ToolCallPart(call, "t", None)),
        st.sampled_from("ab").map(lambda call: ToolResultPart(call, "t", "x")),
    ),
    min_size=1,
    max_size=2,
)


@requirement("planes:prompt:pairs")
@given(st.lists(any_parts, max_size=12), st.integers(0, 12))
def test_whatever_was_called_no_limit_splits_a_call_from_its_result(
    said: list[list[TextPart | ToolCallPart | ToolResultPart]], last: int
) -> None:
    conversation = [message(number, *parts) for number, parts in enumerate(said)]
    window = Window(last, None, None)
    for each in reversed(conversation):
        if window.wants_more:
            window.add_older(each)
    kept = window.messages()
    assert list(kept) == conversation[len(conversation) - len(kept) :]
    assert len(kept) <= last
    left = conversation[: len(conversation) - len(kept)]
    assert not split(left, kept)


def split(left: Sequence[CanonicalMessage], kept: Sequence[CanonicalMessage]) -> bool:
    """Whether a result in `kept` answers a call in `left`: one that is open where `left` ends."""
    open_calls: list[str] = []
    for part in (part for each in left for part in each.parts):
        if isinstance(part, ToolCallPart):
            open_calls.append(part.tool_call_id)
        elif isinstance(part, ToolResultPart) and part.tool_call_id in open_calls:
            open_calls.remove(part.tool_call_id)
    for part in (part for each in kept for part in each.parts):
        if isinstance(part, ToolCallPart):
            open_calls = [each for each in open_calls if each != part.tool_call_id]
        elif isinstance(part, ToolResultPart) and part.tool_call_id in open_calls:
            return True
    return False


@requirement("planes:prompt:pairs")
def test_a_result_whose_call_is_nowhere_hides_nothing() -> None:
    window = Window(2, None, None)
    for each in (message(3, ToolResultPart("gone", "t", "x")), message(2, TextPart("b")), message(1, TextPart("a"))):
        window.add_older(each)
    assert [each.id for each in window.messages()] == ["m2", "m3"]


class Step:
    """One transaction of a deletion."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.emptied = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tables, name)

    def put_stream(self, row: StreamRow) -> None:
        self.emptied += 1
        self._tables.put_stream(row)


class Stepping:
    """A store that remembers its transactions."""

    def __init__(self, store: PlaneStore) -> None:
        self._store = store
        self.steps: list[Step] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def write(self, work: Callable[[Tables], T]) -> T:
        def stepping(tables: Tables) -> T:
            self.steps.append(Step(tables))
            return work(cast(Tables, self.steps[-1]))

        return await self._store.write(stepping)
