"""The transport log: dense numbers that are never used twice, batches that are whole, and no silent holes."""

import asyncio

import pytest

from fieldstone.core.errors import (
    InvalidPayload,
    InvalidTransition,
    PayloadTooLarge,
    SecretLeakage,
    SeqConflict,
    StreamCompacted,
)
from fieldstone.core.streams import MAX_APPEND_EVENTS, MAX_EVENT_BYTES, StreamEvent
from fieldstone.planes.streams import StreamStatus
from tests.planes.events import call, delta, finished, user
from tests.planes.scene import Scene
from tests.planes.transport import KNOWN, STREAM, streams_of
from tests.requirements import requirement


@requirement("planes:streams:dense")
async def test_events_are_numbered_from_1_without_a_gap_and_read_as_they_were_given(scene: Scene) -> None:
    streams = streams_of(scene)
    given = [user("hello"), delta("Hi "), call("c1", query="weather"), finished()]
    appended = await streams.append(STREAM, given[:2])
    assert (appended.head, [each.seq for each in appended.events]) == (2, [1, 2])
    await streams.append(STREAM, given[2:])
    page = await streams.read(STREAM)
    assert [each.event for each in page.events] == given
    assert [each.seq for each in page.events] == [1, 2, 3, 4]
    assert (page.head, page.floor) == (4, 0)


@requirement("planes:streams:stored-event")
async def test_an_event_has_its_stream_and_the_time_in_utc_to_the_millisecond(scene: Scene) -> None:
    [event] = (await streams_of(scene).append(STREAM, [delta("x")])).events
    assert event.stream_id == STREAM
    assert event.timestamp == "2025-06-15T15:06:40.000Z"


@requirement("planes:streams:unknown-kinds")
async def test_an_unknown_kind_is_stored_and_passed_on(scene: Scene) -> None:
    streams = streams_of(scene)
    strange = StreamEvent("heart-beat", {"rate": 61.5, "of": [None, True, {"deep": "er"}]})
    await streams.append(STREAM, [strange])
    assert (await streams.read(STREAM)).events[0].event == strange


@requirement("planes:http:queries")
@pytest.mark.parametrize(
    ("event", "field"),
    [
        (StreamEvent("text-delta", {}), "delta"),
        (StreamEvent("text-delta", {"delta": 7}), "delta"),
        (StreamEvent("reasoning", {"delta": "hm"}), "text"),
        (StreamEvent("tool-call", {"toolName": "search", "input": {}}), "toolCallId"),
        (StreamEvent("tool-call", {"toolCallId": "c1", "toolName": None}), "toolName"),
        (StreamEvent("tool-result", {"output": "found"}), "toolCallId"),
        (StreamEvent("file", {"mimeType": "image/png"}), "url"),
        (StreamEvent("user-message", {"text": "hello"}), "content"),
    ],
)
@requirement("planes:streams:payloads")
async def test_an_event_without_what_its_kind_tells_is_refused_by_the_fields_name_and_nothing_is_stored(
    scene: Scene, event: StreamEvent, field: str
) -> None:
    streams = streams_of(scene)
    with pytest.raises(InvalidPayload, match=rf"events\[1\]\.payload\.{field} "):
        await streams.append(STREAM, [delta("fine"), event])
    assert (await streams.info(STREAM)).head == 0


async def test_what_a_kind_does_not_need_may_be_missing_or_more(scene: Scene) -> None:
    given = [
        StreamEvent("step-started", {}),
        StreamEvent("text-delta", {"delta": "", "logprob": -1}),
        StreamEvent("user-message", {"content": None}),
        StreamEvent("error", {}),
        StreamEvent("step-finished", {}),
    ]
    assert [each.event for each in (await streams_of(scene).append(STREAM, given)).events] == given


@requirement("planes:streams:empty-append")
async def test_an_empty_append_returns_nothing_and_creates_nothing(scene: Scene) -> None:
    appended = await streams_of(scene).append(STREAM, [])
    assert (appended.events, appended.head) == ([], 0)
    assert await scene.store.read(lambda tables: tables.stream(STREAM)) is None


@requirement("planes:streams:unknown-stream")
async def test_an_unknown_stream_reads_as_empty_with_head_0(scene: Scene) -> None:
    streams = streams_of(scene)
    page = await streams.read("never")
    assert (page.events, page.head, page.floor) == ([], 0, 0)
    assert await streams.info("never") == StreamStatus(0, 0, None)


@requirement("planes:streams:paged")
async def test_reading_is_exclusive_of_after_and_paged_by_limit(scene: Scene) -> None:
    streams = streams_of(scene)
    await streams.append(STREAM, [delta(f"{n} ") for n in range(10)])
    page = await streams.read(STREAM, after=3, limit=4)
    assert [each.seq for each in page.events] == [4, 5, 6, 7]
    assert (await streams.read(STREAM, limit=0)).events == []
    assert (await streams.read(STREAM, after=10)).events == []
    assert (await streams.read(STREAM, after=99)).events == []


@requirement("planes:streams:paged")
@pytest.mark.parametrize(("after", "limit"), [(-1, 10), (0, -1), (0, 10_001)])
async def test_a_page_out_of_bounds_is_refused(scene: Scene, after: int, limit: int) -> None:
    with pytest.raises(InvalidPayload):
        await streams_of(scene).read(STREAM, after=after, limit=limit)


@requirement("planes:streams:expected-seq")
async def test_an_append_that_expects_another_head_is_refused_and_told_the_head(scene: Scene) -> None:
    streams = streams_of(scene)
    await streams.append(STREAM, [delta("a"), delta("b")], expected_seq=0)
    with pytest.raises(SeqConflict) as refused:
        await streams.append(STREAM, [delta("c")], expected_seq=1)
    assert refused.value.extra == {"head": 2}
    assert (await streams.append(STREAM, [delta("c")], expected_seq=2)).head == 3


@requirement("planes:streams:expected-seq")
async def test_of_two_that_expect_the_same_head_one_is_stored(scene: Scene) -> None:
    one, other = streams_of(scene), streams_of(scene)
    outcomes = await asyncio.gather(
        *(each.append(STREAM, [delta("x")], expected_seq=0) for each in (one, other, one)), return_exceptions=True
    )
    assert sum(isinstance(outcome, SeqConflict) for outcome in outcomes) == 2
    assert (await one.read(STREAM)).head == 1


@requirement("planes:streams:idempotency-key")
async def test_the_same_request_with_the_same_key_is_stored_once_and_answered_the_same(scene: Scene) -> None:
    streams = streams_of(scene)
    first = await streams.append(STREAM, [delta("a"), delta("b")], idempotency_key="k1")
    await streams.append(STREAM, [delta("c")])
    assert await streams.append(STREAM, [delta("a"), delta("b")], idempotency_key="k1") == first
    assert await streams_of(scene).append(STREAM, [delta("a"), delta("b")], idempotency_key="k1") == first
    assert (await streams.read(STREAM)).head == 3


@requirement("planes:streams:idempotency-key")
async def test_a_key_that_was_used_for_other_events_is_refused(scene: Scene) -> None:
    streams = streams_of(scene)
    await streams.append(STREAM, [delta("a")], idempotency_key="k1")
    with pytest.raises(InvalidPayload, match="idempotencyKey was used before"):
        await streams.append(STREAM, [delta("b")], idempotency_key="k1")
    await streams.append("another", [delta("b")], idempotency_key="k1")


@requirement("planes:streams:idempotency-key")
async def test_a_key_given_twice_at_the_same_time_is_stored_once(scene: Scene) -> None:
    streams = streams_of(scene)
    answers = await asyncio.gather(
        *(streams.append(STREAM, [delta("a")], idempotency_key="k1") for _ in range(5)),
        *(streams_of(scene).append(STREAM, [delta("a")], idempotency_key="k1") for _ in range(5)),
    )
    assert {answer.head for answer in answers} == {1}


@requirement("planes:streams:many-writers")
async def test_many_writers_leave_no_gap_and_see_no_error(scene: Scene) -> None:
    writers = [streams_of(scene) for _ in range(4)]
    answers = await asyncio.gather(
        *(writer.append(STREAM, [delta("a"), delta("b")]) for writer in writers for _ in range(25))
    )
    seqs = sorted(each.seq for answer in answers for each in answer.events)
    assert seqs == list(range(1, 201))
    assert all(answer.events[1].seq == answer.events[0].seq + 1 for answer in answers), "a batch is one piece"


@requirement("planes:streams:batch-atomic")
async def test_a_batch_with_one_bad_event_is_refused_whole(scene: Scene) -> None:
    streams = streams_of(scene)
    for bad in (
        StreamEvent("x", {"not JSON": {1, 2}}),
        StreamEvent("x", {"not JSON": b"bytes"}),
        StreamEvent("text-delta", {"delta": "\ud800"}),
        StreamEvent("text-delta", {"delta": "x" * MAX_EVENT_BYTES}),
        StreamEvent("", {}),
        StreamEvent("k" * 257, {}),
    ):
        with pytest.raises((InvalidPayload, PayloadTooLarge)):
            await streams.append(STREAM, [delta("good"), bad])
    assert (await streams.read(STREAM)).head == 0


@requirement("planes:streams:batch-atomic")
async def test_a_refused_append_takes_no_other_with_it(scene: Scene) -> None:
    streams = streams_of(scene)
    outcomes = await asyncio.gather(
        streams.append(STREAM, [delta("a")]),
        streams.append(STREAM, [delta("b")], expected_seq=7),
        streams.append(STREAM, [StreamEvent("x", {"not JSON": {1}})]),
        streams.append(STREAM, [delta("c")]),
        return_exceptions=True,
    )
    assert [type(outcome).__name__ for outcome in outcomes] == [
        "AppendedEvents",
        "SeqConflict",
        "InvalidPayload",
        "AppendedEvents",
    ]
    assert [each.event for each in (await streams.read(STREAM)).events] == [delta("a"), delta("c")]


async def test_more_events_than_one_transaction_takes_are_refused(scene: Scene) -> None:
    with pytest.raises(PayloadTooLarge):
        await streams_of(scene).append(STREAM, [delta("")] * (MAX_APPEND_EVENTS + 1))


@requirement("planes:rules:never-twice", "planes:rules:never-a-hole")
async def test_after_a_deletion_the_numbers_go_on_and_an_old_reader_is_told(scene: Scene) -> None:
    streams = streams_of(scene)
    await streams.append(STREAM, [delta("a"), delta("b"), delta("c")])
    await streams.delete(STREAM)
    assert await streams.info(STREAM) == StreamStatus(3, 3, None)
    page = await streams.read(STREAM, after=3)
    assert (page.events, page.head, page.floor) == ([], 3, 3)
    with pytest.raises(StreamCompacted) as gone:
        await streams.read(STREAM, after=1)
    assert gone.value.extra == {"floor": 3}
    assert (await streams.append(STREAM, [delta("d")])).head == 4
    assert [each.seq for each in (await streams.read(STREAM, after=3)).events] == [4]
    await streams.settled()


async def test_a_stream_that_is_deleted_twice_or_never_was_is_no_error(scene: Scene) -> None:
    streams = streams_of(scene)
    await streams.delete("never")
    assert await scene.store.read(lambda tables: tables.stream("never")) is None
    await streams.append(STREAM, [delta("a")])
    await streams.delete(STREAM)
    await streams.delete(STREAM)
    assert (await streams.info(STREAM)).head == 1
    await streams.settled()


async def test_a_deleted_stream_forgets_its_keys_and_readers(scene: Scene) -> None:
    streams = streams_of(scene)
    await streams.append(STREAM, [delta("a")], idempotency_key="k1")
    await streams.set_reader(STREAM, "ui", 1)
    await streams.delete(STREAM)
    assert await streams.readers(STREAM) == {}
    assert (await streams.append(STREAM, [delta("another")], idempotency_key="k1")).head == 2
    await streams.settled()


@requirement("planes:rules:hold")
async def test_a_stream_on_hold_is_not_deleted(scene: Scene) -> None:
    streams = streams_of(scene)
    await streams.append(STREAM, [delta("a")])
    await streams.hold(STREAM, "audit")
    with pytest.raises(InvalidTransition):
        await streams.delete(STREAM)
    await streams.lift(STREAM, "audit")
    await streams.delete(STREAM)
    await streams.settled()


@requirement("planes:streams:finished-run")
async def test_a_finished_run_takes_no_more_events(scene: Scene) -> None:
    streams = streams_of(scene)
    run = await scene.begin()
    await streams.append(run.stream_id, [delta("a")])
    assert (await scene.runs.run(run.thread_id, run.run_id)).status == "streaming"
    await scene.commit(run)
    with pytest.raises(InvalidTransition):
        await streams.append(run.stream_id, [delta("too late")])
    assert (await streams.read(run.stream_id)).head == 1


@requirement("planes:runs:append-or-refused")
async def test_an_append_that_races_a_commit_is_in_the_transcript_or_refused(scene: Scene) -> None:
    streams = streams_of(scene)
    run = await scene.begin()
    await streams.append(run.stream_id, [delta("begun ")])
    outcomes = await asyncio.gather(
        *(streams.append(run.stream_id, [delta(f"[{n}]")]) for n in range(10)),
        scene.runs.commit(run.thread_id, run.run_id),
        *(streams_of(scene).append(run.stream_id, [delta(f"[{n}]")]) for n in range(10, 20)),
        return_exceptions=True,
    )
    stored = [f"[{n}]" for n, outcome in enumerate([*outcomes[:10], *outcomes[11:]]) if not _refused(outcome)]
    [said] = await scene.path()
    assert sorted(said.removeprefix("begun ").replace("][", "] [").split()) == sorted(stored)


@requirement("planes:streams:names")
@pytest.mark.parametrize("name", ["", "n" * 257])
async def test_an_id_has_1_to_256_characters(scene: Scene, name: str) -> None:
    streams = streams_of(scene)
    with pytest.raises(InvalidPayload):
        await streams.append(name, [delta("a")])
    with pytest.raises(InvalidPayload):
        await streams.append(STREAM, [delta("a")], idempotency_key=name)
    with pytest.raises(InvalidPayload):
        await streams.set_reader(STREAM, name, 0)


@requirement("planes:streams:names")
async def test_names_that_hold_a_secret_are_refused_and_never_rewritten(scene: Scene) -> None:
    streams = streams_of(scene)
    await streams.append(STREAM, [delta("a")])
    with pytest.raises(SecretLeakage):
        await streams.append(f"run-{KNOWN}", [delta("a")])
    with pytest.raises(SecretLeakage):
        await streams.append(STREAM, [delta("a")], idempotency_key=KNOWN)
    with pytest.raises(SecretLeakage):
        await streams.append(STREAM, [StreamEvent(f"x-{KNOWN}", {})])
    with pytest.raises(SecretLeakage):
        await streams.set_reader(STREAM, KNOWN, 1)
    assert (await streams.read(STREAM)).head == 1


@requirement("planes:rules:never-a-hole")
async def test_a_reader_that_comes_too_late_is_told_so(scene: Scene) -> None:
    streams = streams_of(scene)
    await streams.append(STREAM, [delta("a"), finished()])
    await streams.compact(STREAM)
    with pytest.raises(StreamCompacted):
        await streams.set_reader(STREAM, "ui", 1)
    with pytest.raises(InvalidPayload):
        await streams.set_reader(STREAM, "ui", 3)
    await streams.set_reader(STREAM, "ui", 2)
    assert await streams.readers(STREAM) == {"ui": 2}
    await streams.drop_reader(STREAM, "ui")
    assert await streams.readers(STREAM) == {}
    await streams.settled()


def _refused(outcome: object) -> bool:
    return isinstance(outcome, InvalidTransition)
