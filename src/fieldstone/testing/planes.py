"""What a store of the planes promises. What a crash does to it is tested with a process that is killed."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, Protocol, TypeVar

import pytest
from msgspec import json

from fieldstone.core.errors import ShuttingDown, StorageFull
from fieldstone.core.streams import MAX_SEQ
from fieldstone.ports.planes import (
    Appended,
    EventRow,
    MessageRow,
    PlaneFile,
    PlaneStore,
    RunRow,
    StreamRow,
    Tables,
    ThreadRow,
)
from fieldstone.testing.plane_rows import (
    NOTHING,
    NOW_MS,
    PLENTY,
    append,
    body,
    change_all,
    event_row,
    event_rows,
    everything,
    fill,
    message_row,
    put_messages,
    put_runs,
    run_row,
    snapshot_row,
    there,
    truncate,
)

SCOPE: Final = "acme/research"
OTHER_SCOPE: Final = "acme/sales"
WRITERS: Final = 20
APPENDS: Final = 10
LONG_MS: Final = 60_000  # nobody waits for it: what is waited for comes
SMALL_BYTES: Final = 512 * 1024
PLACE_BITS: Final = MAX_SEQ.bit_length()


Row = TypeVar("Row")


class OpenPlanes(Protocol):
    """Within one test all openings are of one place. One that keeps nothing gives the same object each time."""

    def __call__(self, *, max_bytes: int | None = None) -> PlaneFile: ...


async def seqs(store: PlaneStore, stream: str = "s", *, after: int = 0) -> list[int]:
    return [row.seq for row in await store.read(lambda tables: tables.events(stream, after=after, limit=PLENTY))]


async def head(store: PlaneStore, stream: str = "s") -> int:
    row = await store.read(lambda tables: tables.stream(stream))
    return 0 if row is None else row.head


class PlanesCase:
    """Give a fixture `open_planes`; the tests get a `store` of one scope."""

    @pytest.fixture
    async def planes(self, open_planes: OpenPlanes) -> AsyncIterator[PlaneFile]:
        planes = open_planes()
        yield planes
        await planes.close()

    @pytest.fixture
    def store(self, planes: PlaneFile) -> PlaneStore:
        return planes.open(SCOPE)


class PlaneStoreTests(PlanesCase):
    # --- transactions ------------------------------------------------------------------------------------------------

    async def test_where_nothing_was_written_nothing_is_found(self, store: PlaneStore) -> None:
        assert await store.read(everything) == NOTHING
        assert await store.write(everything) == NOTHING
        assert await store.scour()

    async def test_what_a_work_returns_is_returned_and_what_it_writes_it_can_read(self, store: PlaneStore) -> None:
        def work(tables: Tables) -> list[EventRow]:
            append("s", 3)(tables)
            return tables.events("s", after=1, limit=PLENTY)

        assert await store.write(work) == event_rows(2, after=1)
        assert await store.read(lambda tables: tables.events("s", after=0, limit=PLENTY)) == event_rows(3)

    async def test_a_work_that_raises_is_undone_whole(self, store: PlaneStore) -> None:
        await store.write(fill)
        before = await store.read(everything)

        def work(tables: Tables) -> None:
            change_all(tables)
            assert everything(tables) != before
            raise LookupError("after all of it")

        with pytest.raises(LookupError, match="after all of it"):
            await store.write(work)
        assert await store.read(everything) == before
        await store.write(change_all)
        assert await store.read(everything) != before

    async def test_of_works_that_are_written_together_one_that_raises_undoes_only_itself(
        self, store: PlaneStore
    ) -> None:
        def failing(tables: Tables) -> int:
            append("s", 5, said="never")(tables)
            raise LookupError

        works = [failing if number % 3 == 1 else append("s", 2) for number in range(30)]
        outcomes = await asyncio.gather(*map(store.write, works), return_exceptions=True)
        assert [isinstance(outcome, LookupError) for outcome in outcomes] == [number % 3 == 1 for number in range(30)]
        assert await store.read(lambda tables: tables.events("s", after=0, limit=PLENTY)) == event_rows(40)

    async def test_a_writer_that_is_cancelled_hinders_no_other(self, store: PlaneStore) -> None:
        tasks = [asyncio.ensure_future(store.write(append("s", 1))) for _ in range(9)]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert [outcome for outcome in outcomes[1::2] if not isinstance(outcome, int)] == []
        last = await head(store)
        assert 4 <= last <= 9
        assert await seqs(store) == list(range(1, last + 1))

    async def test_a_store_that_is_closed_refuses_and_what_was_asked_before_is_written(
        self, planes: PlaneFile, store: PlaneStore
    ) -> None:
        writing = asyncio.ensure_future(store.write(append("s", 2)))
        await asyncio.sleep(0)
        await store.close()
        await store.close()
        assert await writing == 2
        with pytest.raises(ShuttingDown):
            await store.write(append("s", 2))
        again = planes.open(SCOPE)
        assert await seqs(again) == [1, 2]
        await planes.close()
        await planes.close()
        for refused in (again.read(everything), again.changed(-1, timeout_ms=0), again.scour(), again.bytes_used()):
            with pytest.raises(ShuttingDown):
                await refused

    async def test_whoever_waits_for_a_change_is_woken_when_the_place_is_closed(
        self, planes: PlaneFile, store: PlaneStore
    ) -> None:
        seen = await store.changed(-1, timeout_ms=0)
        waiting = asyncio.ensure_future(store.changed(seen, timeout_ms=LONG_MS))
        await asyncio.sleep(0)
        await planes.close()
        assert await waiting == seen

    # --- seqs --------------------------------------------------------------------------------------------------------

    async def test_many_writers_of_one_stream_leave_no_gap(self, store: PlaneStore, planes: PlaneFile) -> None:
        stores = [store, planes.open(SCOPE)]

        async def writer(number: int) -> None:
            for _ in range(APPENDS):
                await stores[number % 2].write(append("s", 1 + number % 3))

        await asyncio.gather(*map(writer, range(WRITERS)))
        written = sum(APPENDS * (1 + number % 3) for number in range(WRITERS))
        assert await seqs(store) == list(range(1, written + 1))
        assert await head(store) == written

    @pytest.mark.parametrize("rows", [[1], [2], [4], [3, 5], [4, 3]])
    async def test_events_that_do_not_continue_the_stream_are_refused(
        self, store: PlaneStore, rows: Sequence[int]
    ) -> None:
        await store.write(append("s", 2))
        with pytest.raises(ValueError, match="continue"):
            await store.write(lambda tables: tables.put_events("s", [event_row(seq) for seq in rows]))
        assert await seqs(store) == [1, 2]

    async def test_what_belongs_to_no_stream_or_thread_is_refused(self, store: PlaneStore) -> None:
        works: list[Callable[[Tables], object]] = [
            lambda tables: tables.put_events("s", event_rows(1)),
            lambda tables: tables.replace_events("s", event_rows(1)),
            lambda tables: tables.put_snapshot(snapshot_row(1)),
            lambda tables: tables.put_appended("s", "key", Appended(b"", 1, 1)),
            lambda tables: tables.put_reader("s", "ada", 1),
            lambda tables: tables.put_run(run_row(1)),
            lambda tables: tables.put_messages("t", [message_row(1)]),
            lambda tables: tables.put_bodies("t", {1: b"{}"}),
        ]
        for work in works:
            with pytest.raises(ValueError, match=r"'s'|'t'"):
                await store.write(work)
        assert await store.read(everything) == NOTHING

    @pytest.mark.parametrize("change", [{"head": 4}, {"head": 6}, {"floor": 1}, {"floor": 6}])
    async def test_a_head_moves_only_with_events_and_a_floor_never_falls_or_passes_it(
        self, store: PlaneStore, change: dict[str, Any]
    ) -> None:
        await store.write(append("s", 5))
        await store.write(truncate("s", 2))
        with pytest.raises(ValueError, match="'s'"):
            await store.write(lambda tables: tables.put_stream(there(tables.stream("s"))._replace(**change)))
        with pytest.raises(ValueError, match="'new'"):
            await store.write(lambda tables: tables.put_stream(StreamRow("new", **change)))
        assert await store.read(lambda tables: tables.stream("s")) == StreamRow("s", 5, 2, active_ms=NOW_MS)

    async def test_no_events_change_nothing(self, store: PlaneStore) -> None:
        await store.write(append("s", 2))
        await store.write(lambda tables: tables.put_events("s", []))
        assert await seqs(store) == [1, 2]
        assert await head(store) == 2

    # --- events ------------------------------------------------------------------------------------------------------

    async def test_events_are_read_in_order_after_a_seq_until_another_and_up_to_a_limit(
        self, store: PlaneStore
    ) -> None:
        await store.write(append("s", 257))
        await store.write(append("other", 9))
        for after, until, limit in [
            (0, None, 1000),
            (100, None, 7),
            (250, 255, 9),
            (5, 5, 9),
            (300, None, 9),
            (0, 9, 0),
        ]:
            rows = await _read_both_ways(store, after=after, until=until, limit=limit)
            assert rows == event_rows(257)[after : until or 257][:limit]

    async def test_events_are_replaced_where_they_are_and_keep_their_seq(self, store: PlaneStore) -> None:
        await store.write(append("s", 4))
        await store.write(truncate("s", 1))
        changed = [event_row(2, "[REDACTED]"), event_row(4, "a longer text " * 500)]
        await store.write(lambda tables: tables.replace_events("s", changed))
        rows = await _read_both_ways(store)
        assert rows == [changed[0], event_row(3), changed[1]]
        for gone in (1, 5):
            with pytest.raises(ValueError, match=f"no event {gone}"):
                await store.write(partial(_replace, event_row(gone)))

    # --- floors ------------------------------------------------------------------------------------------------------

    async def test_events_up_to_the_floor_are_out_of_sight_before_their_rows_are_deleted(
        self, store: PlaneStore
    ) -> None:
        await store.write(append("s", 10))
        await store.write(truncate("s", 7))
        assert await seqs(store) == [8, 9, 10]
        assert await seqs(store, after=3) == [8, 9, 10]
        assert await store.read(lambda tables: tables.truncated(limit=9)) == ["s"]
        assert await store.write(lambda tables: tables.delete_events("s", limit=9)) == 7
        assert await seqs(store) == [8, 9, 10]

    async def test_rows_up_to_the_floor_are_deleted_in_chunks_and_it_is_known_what_is_left(
        self, store: PlaneStore
    ) -> None:
        await store.write(append("s", 25))
        await store.write(append("whole", 5))
        await store.write(truncate("s", 22))
        gone: list[int] = []
        while await store.read(lambda tables: tables.truncated(limit=9)):
            gone.append(await store.write(lambda tables: tables.delete_events("s", limit=10)))
            assert await seqs(store) == [23, 24, 25]
        assert gone == [10, 10, 2]
        assert await store.write(lambda tables: tables.delete_events("s", limit=10)) == 0
        assert await store.write(lambda tables: tables.delete_events("nobody", limit=10)) == 0
        assert await seqs(store, "whole") == [1, 2, 3, 4, 5]

    async def test_a_stream_with_no_event_left_continues_after_its_old_head(self, store: PlaneStore) -> None:
        await store.write(append("s", 4))
        await store.write(truncate("s", 4))
        await store.write(lambda tables: tables.delete_events("s", limit=PLENTY))
        assert await seqs(store) == []
        assert await head(store) == 4
        assert await store.write(append("s", 2)) == 6
        assert await seqs(store) == [5, 6]
        row = await store.read(lambda tables: tables.stream("s"))
        assert row == StreamRow("s", head=6, floor=4, active_ms=NOW_MS)

    # --- beside the events -------------------------------------------------------------------------------------------

    async def test_a_streams_row_is_read_as_it_was_put(self, store: PlaneStore) -> None:
        rows = [StreamRow(f"s-{number}", 0, 0, number or None, number or None, number) for number in range(5)]
        await store.write(lambda tables: _each(tables.put_stream, reversed(rows)))
        assert await store.read(lambda tables: tables.streams(limit=9)) == rows
        assert await store.read(lambda tables: tables.streams(after="s-1", limit=2)) == rows[2:4]
        await store.write(lambda tables: tables.put_stream(rows[3]._replace(held_from=None, held_ms=None)))
        assert await store.read(lambda tables: tables.stream("s-3")) == StreamRow("s-3", active_ms=3)

    async def test_snapshots_lie_beside_each_other_until_they_are_dropped(self, store: PlaneStore) -> None:
        rows = [snapshot_row(seq, state=b"x" * 9_000 * seq) for seq in (1, 2, 9)]
        await store.write(append("s", 9))
        await store.write(append("other", 9))
        other = snapshot_row(5, stream="other")
        await store.write(lambda tables: _each(tables.put_snapshot, (*rows, other)))
        assert await store.read(lambda tables: tables.snapshot("s")) == rows[2]
        assert await store.read(lambda tables: tables.snapshots("s")) == rows[::-1]
        assert await store.read(lambda tables: tables.seals("s")) == [row.seal for row in rows[::-1]]
        assert await store.read(lambda tables: tables.seals("nothing")) == []
        changed = rows[2]._replace(state=b"another", state_version=300)
        await store.write(lambda tables: tables.put_snapshot(changed))
        assert await store.write(lambda tables: tables.drop_snapshots("s", but=9)) == 2
        assert await store.read(lambda tables: tables.snapshots("s")) == [changed]
        assert await store.write(lambda tables: tables.drop_snapshots("s")) == 1
        assert await store.read(lambda tables: tables.snapshot("s")) is None
        assert await store.read(lambda tables: tables.snapshot("other")) == other

    @pytest.mark.parametrize("number", [-1, MAX_SEQ + 1, (1 << PLACE_BITS) | 1])
    async def test_a_number_out_of_range_reaches_into_no_other_stream_or_thread(
        self, store: PlaneStore, number: int
    ) -> None:
        await store.write(fill)
        await store.write(lambda tables: tables.put_thread(ThreadRow("u", NOW_MS, NOW_MS)))
        before = await store.read(everything)
        with pytest.raises(ValueError, match="up to"):
            await store.write(lambda tables: tables.put_snapshot(snapshot_row(number)))
        with pytest.raises(ValueError, match="up to"):
            await store.write(lambda tables: tables.put_messages("u", [message_row(number)]))
        assert await store.read(lambda tables: tables.bodies("u", [number])) == {}
        assert await store.read(lambda tables: tables.events("s", after=number, until=number, limit=9)) == []
        assert await store.write(lambda tables: tables.drop_snapshots("nobody", but=number)) == 0
        assert await store.read(everything) == before

    async def test_an_idempotency_key_is_remembered_until_it_is_dropped(self, store: PlaneStore) -> None:
        await store.write(append("s", 9))
        await store.write(append("other", 9))
        kept = {f"key {number} ü": Appended(b"digest %d" % number, number, number + 1) for number in range(5)}
        for key, each in kept.items():
            await store.write(partial(_put_appended, key, each))
        assert await store.read(lambda tables: {key: tables.appended("s", key) for key in kept}) == kept
        assert await store.read(lambda tables: {tables.appended("other", key) for key in kept}) == {None}
        dropped = [await store.write(lambda tables: tables.drop_appended("s", limit=3)) for _ in range(3)]
        assert dropped == [3, 2, 0]
        assert await store.read(lambda tables: tables.appended("s", "key 1 ü")) is None

    async def test_readers_have_their_cursors_until_they_go(self, store: PlaneStore) -> None:
        await store.write(append("s", 9))
        await store.write(lambda tables: tables.put_reader("s", "ben", 3))
        await store.write(lambda tables: tables.put_reader("s", "ada", 3))
        await store.write(lambda tables: tables.put_reader("s", "ben", 7))
        assert await store.read(lambda tables: tables.readers("s")) == {"ada": 3, "ben": 7}
        assert await store.write(lambda tables: tables.drop_reader("s", "ada")) is True
        assert await store.write(lambda tables: tables.drop_reader("s", "ada")) is False
        assert await store.write(lambda tables: tables.drop_reader("nobody", "ada")) is False
        assert await store.read(lambda tables: tables.readers("s")) == {"ben": 7}

    # --- scopes ------------------------------------------------------------------------------------------------------

    async def test_what_lies_in_one_scope_does_not_exist_for_another(
        self, planes: PlaneFile, store: PlaneStore
    ) -> None:
        other = planes.open(OTHER_SCOPE)
        await store.write(fill)
        assert await other.read(everything) == NOTHING
        before = await store.read(everything)
        await other.write(fill)
        await other.write(change_all)
        await other.write(lambda tables: tables.drop_thread("t", limit=PLENTY))
        assert await store.read(everything) == before
        assert await planes.open(SCOPE).read(everything) == before

    # --- changes -----------------------------------------------------------------------------------------------------

    async def test_whoever_waits_for_a_change_is_woken_by_it_and_can_read_it(
        self, planes: PlaneFile, store: PlaneStore
    ) -> None:
        seen = await store.changed(-1, timeout_ms=0)
        waiting = [
            asyncio.ensure_future(each.changed(seen, timeout_ms=LONG_MS)) for each in (store, planes.open("x/y"))
        ]
        await asyncio.sleep(0)
        await store.write(append("s", 1))
        numbers = await asyncio.gather(*waiting)
        assert seen not in numbers
        assert await seqs(store) == [1]
        assert await store.changed(seen, timeout_ms=LONG_MS) in numbers

    async def test_where_nothing_changes_the_wait_ends_with_the_number_that_was_seen(self, store: PlaneStore) -> None:
        await store.write(append("s", 1))
        seen = await store.changed(-1, timeout_ms=0)
        assert await store.changed(seen, timeout_ms=1) == seen
        await seqs(store)
        assert await store.changed(seen, timeout_ms=0) == seen

    async def test_no_change_is_missed_between_two_waits(self, store: PlaneStore) -> None:
        async def follow() -> list[int]:
            seen, found = -1, list[int]()
            while len(found) < WRITERS:
                seen = await store.changed(seen, timeout_ms=LONG_MS)
                found += await seqs(store, after=len(found))
            return found

        following = asyncio.ensure_future(follow())
        for _ in range(WRITERS):
            await store.write(append("s", 1))
        assert await following == list(range(1, WRITERS + 1))

    async def test_what_another_opening_writes_wakes_too(self, store: PlaneStore, open_planes: OpenPlanes) -> None:
        other = open_planes()
        seen = await store.changed(-1, timeout_ms=0)
        waiting = asyncio.ensure_future(store.changed(seen, timeout_ms=LONG_MS))
        await asyncio.sleep(0)
        await other.open(SCOPE).write(append("s", 2))
        assert await waiting != seen
        assert await seqs(store) == [1, 2]
        await other.close()

    # --- room --------------------------------------------------------------------------------------------------------

    async def test_a_full_store_refuses_the_whole_batch_keeps_the_rest_and_takes_more_when_there_is_room(
        self, open_planes: OpenPlanes
    ) -> None:
        planes = open_planes(max_bytes=SMALL_BYTES)
        store = planes.open(SCOPE)
        written = await _fill_up(store)
        assert written > 0
        assert await seqs(store) == list(range(1, written + 1))
        assert await head(store) == written
        await store.write(truncate("s", written))
        while await store.write(lambda tables: tables.delete_events("s", limit=100)):
            pass
        assert await store.write(append("s", 100)) == written + 100
        await planes.close()

    async def test_what_is_scoured_reads_as_before(self, store: PlaneStore) -> None:
        await store.write(fill)
        await store.write(change_all)
        before = await store.read(everything)
        assert await store.bytes_used() > 0
        assert await store.scour()
        assert await store.read(everything) == before


class TranscriptTablesTests(PlanesCase):
    """The tables of runs, threads and messages."""

    async def test_threads_are_read_as_they_were_put_and_listed_by_id(self, store: PlaneStore) -> None:
        rows = [ThreadRow(f"t-{number}", NOW_MS, NOW_MS + number) for number in range(4)]
        rows.append(ThreadRow("t-ü", NOW_MS, NOW_MS, leaf="msg-7", messages=7, runs=2, deleted_ms=NOW_MS + 9))
        await store.write(lambda tables: _each(tables.put_thread, reversed(rows)))
        assert await store.read(lambda tables: tables.threads(limit=9)) == rows
        assert await store.read(lambda tables: tables.threads(after="t-0", limit=2)) == rows[1:3]
        changed = rows[0]._replace(leaf="msg-1", messages=1, runs=1)
        await store.write(lambda tables: tables.put_thread(changed))
        assert await store.read(lambda tables: tables.thread("t-0")) == changed

    async def test_runs_are_found_by_id_stream_thread_and_fork(self, store: PlaneStore) -> None:
        rows = [run_row(place, fork_from=None if place % 2 else "msg-1") for place in range(1, 7)]
        other = run_row(1, thread="u")
        await store.write(lambda tables: put_runs(tables, [*rows, other]))
        assert await store.read(lambda tables: tables.run("run-t-3")) == rows[2]
        assert await store.read(lambda tables: tables.run_of_stream("run:run-t-3")) == rows[2]
        assert await store.read(lambda tables: tables.runs("t", limit=9)) == rows[::-1]
        assert await store.read(lambda tables: tables.runs("t", before_place=5, limit=2)) == [rows[3], rows[2]]
        assert await store.read(lambda tables: tables.runs("u", limit=9)) == [other]
        assert await store.read(lambda tables: tables.runs_forked_at("t", None)) == rows[::2]
        assert await store.read(lambda tables: tables.runs_forked_at("t", "msg-1")) == rows[1::2]

    async def test_a_run_is_replaced_by_the_one_with_its_id_and_keeps_its_place(self, store: PlaneStore) -> None:
        await store.write(lambda tables: put_runs(tables, [run_row(1), run_row(2)]))
        done = run_row(1, status="committed", finished_ms=NOW_MS + 5, messages=3)
        await store.write(lambda tables: tables.put_run(done))
        assert await store.read(lambda tables: tables.run("run-t-1")) == done
        for wrong in (run_row(3, id="run-t-1"), run_row(2, id="run-new"), run_row(3, stream="run:run-t-2")):
            with pytest.raises(ValueError, match=r"place|promise"):
                await store.write(partial(_put_run, wrong))
        assert await store.read(lambda tables: tables.runs("t", limit=9)) == [run_row(2), done]

    async def test_open_runs_of_all_threads_are_found_by_their_last_activity(self, store: PlaneStore) -> None:
        statuses = ("created", "streaming", "committed", "failed", "cancelled", "superseded")
        rows = [run_row(place, status=status) for place, status in enumerate(statuses, 1)]
        late = run_row(9, thread="u", status="streaming")
        await store.write(lambda tables: put_runs(tables, [late, *rows]))
        assert await store.read(lambda tables: tables.open_runs()) == [*rows[:2], late]
        assert await store.read(lambda tables: tables.open_runs(inactive_since_ms=NOW_MS + 2)) == rows[:2]
        assert await store.read(lambda tables: tables.open_runs(inactive_since_ms=NOW_MS)) == []

    async def test_children_that_stand_come_first_and_of_each_kind_the_newest(self, store: PlaneStore) -> None:
        rows = [message_row(place, parent="msg-0", stands=place in (2, 4)) for place in range(1, 6)]
        roots = [message_row(place, stands=False) for place in (6, 7)]
        await store.write(lambda tables: put_messages(tables, [*rows, *roots]))
        children = await store.read(lambda tables: tables.children("t", "msg-0"))
        assert [row.place for row in children] == [4, 2, 5, 3, 1]
        assert await store.read(lambda tables: tables.children("t", "msg-0", limit=1)) == [rows[3]]
        assert await store.read(lambda tables: tables.children("t", None)) == roots[::-1]
        assert await store.read(lambda tables: tables.children("u", None)) == []

    async def test_messages_come_in_the_order_of_creation_and_their_bodies_apart(self, store: PlaneStore) -> None:
        rows = [message_row(place, run=f"run-t-{1 + place % 2}") for place in range(1, 8)]
        await store.write(lambda tables: put_messages(tables, rows[::-1]))
        assert await store.read(lambda tables: tables.messages("t", after_place=0, limit=99)) == rows
        assert await store.read(lambda tables: tables.messages("t", after_place=2, limit=3)) == rows[2:5]
        assert await store.read(lambda tables: tables.message("t", "msg-3")) == rows[2]
        assert await store.read(lambda tables: tables.message("u", "msg-3")) is None
        assert await store.read(lambda tables: tables.messages_of_run("run-t-2")) == rows[::2]
        assert await store.read(lambda tables: tables.bodies("t", [5, 1, 99])) == {1: body(1), 5: body(5)}
        assert await store.read(lambda tables: tables.bodies("t", [])) == {}
        assert await store.read(lambda tables: tables.bodies("u", [1])) == {}

    async def test_a_message_is_replaced_by_the_one_with_its_id_and_keeps_its_place(self, store: PlaneStore) -> None:
        await store.write(lambda tables: put_messages(tables, [message_row(1), message_row(2)]))
        attached = message_row(2, parent="msg-1", depth=2, jump="msg-1")
        await store.write(lambda tables: tables.put_messages("t", [attached]))
        await store.write(lambda tables: tables.put_bodies("t", {2: b"another"}))
        assert await store.read(lambda tables: tables.message("t", "msg-2")) == attached
        assert await store.read(lambda tables: tables.bodies("t", [1, 2])) == {1: body(1), 2: b"another"}
        for wrong in (message_row(3, id="msg-1"), message_row(1, id="msg-new")):
            with pytest.raises(ValueError, match=r"place|promise"):
                await store.write(partial(_put_message, wrong))
        with pytest.raises(ValueError, match="no message"):
            await store.write(lambda tables: tables.put_bodies("t", {3: b"{}"}))
        assert await store.read(lambda tables: tables.messages("t", after_place=0, limit=9)) == [
            message_row(1),
            attached,
        ]

    async def test_all_messages_of_a_run_stand_or_fall_together(self, store: PlaneStore) -> None:
        rows = [message_row(place, run=f"run-t-{1 + place % 2}") for place in range(1, 6)]
        await store.write(lambda tables: put_messages(tables, rows))
        await store.write(lambda tables: tables.restand("run-t-1", stands=False))
        standing = [row.stands for row in await store.read(lambda tables: tables.messages("t", after_place=0, limit=9))]
        assert standing == [True, False, True, False, True]
        await store.write(lambda tables: tables.restand("run-t-1", stands=True))
        await store.write(lambda tables: tables.restand("run-nobody", stands=False))
        assert await store.read(lambda tables: tables.messages("t", after_place=0, limit=9)) == rows

    async def test_a_thread_is_dropped_in_chunks_and_its_row_stays(self, store: PlaneStore) -> None:
        await store.write(lambda tables: put_messages(tables, [message_row(place) for place in range(1, 8)]))
        await store.write(lambda tables: tables.put_thread(ThreadRow("u", NOW_MS, NOW_MS)))
        await store.write(lambda tables: tables.put_run(run_row(1, thread="u")))
        gone: list[int] = []
        while not gone or gone[-1] == 4:
            gone.append(await store.write(lambda tables: tables.drop_thread("t", limit=4)))
        assert gone == [4, 4, 1]
        assert await store.write(lambda tables: tables.drop_thread("nobody", limit=4)) == 0
        assert await store.read(lambda tables: tables.messages("t", after_place=0, limit=9)) == []
        assert await store.read(lambda tables: tables.bodies("t", range(9))) == {}
        assert await store.read(lambda tables: tables.runs("t", limit=9)) == []
        assert await store.read(lambda tables: tables.run_of_stream("run:run-t-1")) is None
        assert await store.read(lambda tables: tables.thread("t")) is not None
        assert await store.read(lambda tables: tables.runs("u", limit=9)) == [run_row(1, thread="u")]


# --- works -----------------------------------------------------------------------------------------------------------


def _each(put: Callable[[Row], None], rows: Iterable[Row]) -> None:
    for row in rows:
        put(row)


async def _read_both_ways(
    store: PlaneStore, *, after: int = 0, until: int | None = None, limit: int = PLENTY
) -> list[EventRow]:
    """Row by row; the blocks tell the same."""
    rows = await store.read(lambda tables: tables.events("s", after=after, until=until, limit=limit))
    blocks = await store.read(lambda tables: tables.event_blocks("s", after=after, until=until, limit=limit))
    assert all(block.seqs for block in blocks)
    told = [zip(seqs, json.decode(times), json.decode(bodies), strict=True) for seqs, times, bodies in blocks]
    assert [each for block in told for each in block] == [(row.seq, row.at_ms, json.decode(row.body)) for row in rows]
    return rows


def _replace(row: EventRow, tables: Tables) -> None:
    tables.replace_events("s", [row])


def _put_appended(key: str, appended: Appended, tables: Tables) -> None:
    tables.put_appended("s", key, appended)


def _put_run(row: RunRow, tables: Tables) -> None:
    tables.put_run(row)


def _put_message(row: MessageRow, tables: Tables) -> None:
    tables.put_messages("t", [row])


async def _fill_up(store: PlaneStore) -> int:
    """The head when there is no room for a further batch."""
    written = 0
    while True:
        try:
            written = await store.write(append("s", 100, said="word " * 20))
        except StorageFull:
            return written
