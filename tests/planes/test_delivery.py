"""Live delivery: the replay, its end, then what comes; each seq once, ascending, none missing."""

import asyncio
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json

from fieldstone.backends.sqlite.planes import SqlitePlanes
from fieldstone.core.errors import StreamCompacted
from fieldstone.core.streams import StoredEvent
from fieldstone.planes import delivery
from fieldstone.planes.delivery import BufferOverflow, Delivery, ReplayEnd, Subscription
from fieldstone.planes.streams import Streams
from fieldstone.ports.planes import EventRow
from fieldstone.testing import ManualClock
from tests.planes.events import delta, finished
from tests.planes.scene import BACKENDS, SCOPE, Scene, in_scene
from tests.planes.transport import KNOWN, STREAM, cleaning, delivery_of, streams_of, taken
from tests.requirements import requirement


@requirement("planes:delivery:order")
async def test_first_the_replay_then_its_end_then_what_comes(scene: Scene) -> None:
    streams = streams_of(scene)
    hub = delivery_of(scene, streams)
    await streams.append(STREAM, [delta("a "), delta("b ")])
    subscription = hub.subscribe(STREAM)
    assert _seqs(await subscription.next()) == [1, 2]
    assert await subscription.next() == ReplayEnd(2)
    waiting = asyncio.create_task(subscription.next())
    await streams.append(STREAM, [delta("c ")])
    assert _seqs(await waiting) == [3]
    hub.close()


@requirement("planes:delivery:as-read")
async def test_an_event_is_delivered_as_a_reader_gets_it(scene: Scene) -> None:
    streams = streams_of(scene)
    hub = delivery_of(scene, streams)
    name = 'a "stream" of – signs'
    await streams.append(name, [delta('He said "hi"\n'), finished(usage={"tokens": 3})])
    found = await hub.subscribe(name).next()
    assert not isinstance(found, ReplayEnd)
    assert found is not None
    decoded = [json.decode(each.data, type=StoredEvent) for each in found]
    assert decoded == (await streams.read(name)).events
    frame = json.decode(found[0].frame)
    assert (frame["type"], frame["streamId"], frame["event"]["seq"]) == ("event", name, 1)
    hub.close()


@requirement("planes:delivery:each-once", "planes:delivery:missed-only")
@pytest.mark.parametrize(("after", "seqs", "end"), [(0, [1, 2, 3], 3), (2, [3], 3), (3, [], 3), (9, [], 3)])
async def test_a_subscriber_gets_what_it_missed(scene: Scene, after: int, seqs: list[int], end: int) -> None:
    streams = streams_of(scene)
    hub = delivery_of(scene, streams)
    await streams.append(STREAM, [delta("a "), delta("b "), delta("c ")])
    assert await taken(hub.subscribe(STREAM, after=after), 0) == (seqs, [ReplayEnd(end)])
    hub.close()


@requirement("planes:delivery:unknown-stream")
async def test_an_unknown_stream_gives_the_end_of_its_replay_and_then_what_comes(scene: Scene) -> None:
    streams = streams_of(scene)
    hub = delivery_of(scene, streams)
    subscription = hub.subscribe("not yet")
    assert await subscription.next() == ReplayEnd(0)
    waiting = asyncio.create_task(subscription.next())
    await streams.append("not yet", [delta("a")])
    assert _seqs(await waiting) == [1]
    hub.close()


@requirement("planes:rules:never-a-hole")
async def test_below_the_floor_a_subscriber_is_told_the_floor(scene: Scene) -> None:
    streams = streams_of(scene)
    hub = delivery_of(scene, streams)
    await streams.append(STREAM, [delta("a"), finished()])
    await streams.compact(STREAM)
    with pytest.raises(StreamCompacted) as told:
        await hub.subscribe(STREAM, after=1).next()
    assert told.value.extra == {"floor": 2}
    assert await hub.subscribe(STREAM, after=2).next() == ReplayEnd(2)
    await streams.settled()


@requirement("planes:rules:never-a-hole")
async def test_a_replay_that_a_compaction_overtakes_ends_with_the_floor_and_no_hole(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "PAGE_EVENTS", 2)
    streams = streams_of(scene)
    await streams.append(STREAM, [delta("a "), delta("b "), delta("c "), finished()])
    subscription = delivery_of(scene, streams).subscribe(STREAM)
    assert _seqs(await subscription.next()) == [1, 2]
    await streams.compact(STREAM)
    with pytest.raises(StreamCompacted):
        await subscription.next()
    await streams.settled()


@requirement("planes:delivery:each-once")
@given(data=st.data(), backend=st.sampled_from(BACKENDS))
def test_each_seq_comes_once_ascending_and_none_is_missing_whoever_appends_when(
    data: st.DataObject, backend: str
) -> None:
    """Events come before, during and after the replay, from this process and from others."""
    batches = data.draw(st.lists(st.integers(1, 7), min_size=1, max_size=12))
    first = data.draw(st.integers(0, 20))
    after = data.draw(st.integers(0, first))
    page = data.draw(st.integers(1, 5))
    seed = data.draw(st.integers(0, 1_000))

    async def play(scene: Scene) -> None:
        ours, theirs = streams_of(scene), streams_of(scene)
        hub = delivery_of(scene, ours)
        if first:
            await ours.append(STREAM, [delta("x ")] * first)
        subscribers = [asyncio.create_task(taken(hub.subscribe(STREAM, after=after), first + sum(batches)))]
        chance = random.Random(seed)
        for size in batches:
            await chance.choice((ours, theirs)).append(STREAM, [delta("y ")] * size)
            if chance.random() < 0.5:
                subscribers.append(asyncio.create_task(taken(hub.subscribe(STREAM), first + sum(batches))))
            for _ in range(chance.randrange(4)):
                await asyncio.sleep(0)
        for index, subscriber in enumerate(subscribers):
            seqs, ends = await asyncio.wait_for(subscriber, 20)
            assert seqs == list(range((0 if index else after) + 1, first + sum(batches) + 1))
            assert len(ends) == 1
        hub.close()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delivery, "PAGE_EVENTS", page)
        asyncio.run(in_scene(backend, play))


@requirement("planes:streams:tail-across-processes")
async def test_events_of_another_process_arrive(tmp_path: Path) -> None:
    """Two openings of one file know nothing of each other but what is in it."""
    clock = ManualClock()
    ours, theirs = SqlitePlanes(tmp_path / "field.db"), SqlitePlanes(tmp_path / "field.db")
    here, there = (Streams(planes.open(SCOPE), cleaning, clock) for planes in (ours, theirs))
    hub = Delivery(here, clock)
    subscription = hub.subscribe(STREAM)
    await _live(subscription)
    for n in range(1, 4):
        waiting = asyncio.create_task(subscription.next())
        await there.append(STREAM, [delta("from there ")])
        assert _seqs(await asyncio.wait_for(waiting, 20)) == [2 * n - 1]
        waiting = asyncio.create_task(subscription.next())
        await here.append(STREAM, [delta("from here ")])
        assert _seqs(await asyncio.wait_for(waiting, 20)) == [2 * n]
    hub.close()
    await ours.close()
    await theirs.close()


@requirement("planes:delivery:encoded-once")
async def test_one_tail_reads_for_all_and_an_event_is_encoded_once(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = streams_of(scene)
    hub = delivery_of(scene, streams)
    subscribers = [hub.subscribe(STREAM) for _ in range(50)]
    for each in subscribers:
        assert await each.next() == ReplayEnd(0)
    encoded: list[int] = []
    monkeypatch.setattr(delivery, "encode_stored", _counting(encoded))
    waiting = [asyncio.create_task(each.next()) for each in subscribers]
    await asyncio.sleep(0)
    await streams.append(STREAM, [delta("a "), delta("b ")])
    found = await asyncio.gather(*waiting)
    assert [_seqs(each) for each in found] == [[1, 2]] * 50
    assert sorted(set(encoded)) == [1, 2]
    assert len({id(each[0]) for each in found if isinstance(each, list)}) <= len(encoded)
    hub.close()


@requirement("planes:delivery:slow-cut-off")
async def test_a_slow_subscriber_is_cut_off_and_the_others_go_on(scene: Scene) -> None:
    streams = streams_of(scene)
    hub = delivery_of(scene, streams, queue_events=10)
    cut_off: list[str] = []
    slow = hub.subscribe(STREAM, on_overflow=lambda: cut_off.append("slow"))
    quick = hub.subscribe(STREAM)
    for each in (slow, quick):
        await _live(each)
    for n in range(1, 13):
        await streams.append(STREAM, [delta("b ")])
        assert _seqs(await quick.next()) == [n]
    assert cut_off == ["slow"]
    with pytest.raises(BufferOverflow):
        await slow.next()
    hub.close()


@requirement("planes:delivery:slow-cut-off")
async def test_a_queue_is_bounded_in_bytes_too(scene: Scene) -> None:
    streams = streams_of(scene)
    hub = delivery_of(scene, streams, queue_bytes=1_000)
    slow = hub.subscribe(STREAM)
    await _live(slow)
    waiting = asyncio.create_task(slow.next())
    await streams.append(STREAM, [delta("long " * 300)])
    with pytest.raises(BufferOverflow):
        await waiting
    hub.close()


@requirement("planes:delivery:replay-paged")
async def test_a_long_replay_of_one_who_is_slow_costs_no_queue(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "PAGE_EVENTS", 5)
    streams = streams_of(scene)
    hub = delivery_of(scene, streams, queue_events=10)
    await streams.append(STREAM, [delta("x ")] * 40)
    slow = hub.subscribe(STREAM)
    assert _seqs(await slow.next()) == [1, 2, 3, 4, 5]
    await streams.append(STREAM, [delta("y ")] * 40)
    seqs, ends = await taken(slow, 80)
    assert (seqs, ends) == (list(range(6, 81)), [ReplayEnd(40)])
    hub.close()


@requirement("planes:secrets:decided")
async def test_what_may_begin_a_secret_is_delivered_when_it_is_decided(scene: Scene) -> None:
    streams = streams_of(scene)
    hub = delivery_of(scene, streams)
    subscription = hub.subscribe(STREAM)
    assert await subscription.next() == ReplayEnd(0)
    waiting = asyncio.create_task(subscription.next())
    await streams.append(STREAM, [delta("use "), delta(KNOWN[:8])])
    assert _seqs(await waiting) == [1]
    waiting = asyncio.create_task(subscription.next())
    await streams.append(STREAM, [delta(KNOWN[8:]), delta(" now")])
    found = await waiting
    assert _seqs(found) == [2, 3, 4]
    assert isinstance(found, list)
    assert KNOWN[:8].encode() not in b"".join(each.data for each in found)
    hub.close()


@requirement("planes:secrets:decided")
async def test_after_250_ms_it_is_delivered_though_nothing_else_comes(scene: Scene) -> None:
    streams = streams_of(scene)
    hub = delivery_of(scene, streams)
    subscription = hub.subscribe(STREAM)
    assert await subscription.next() == ReplayEnd(0)
    waiting = asyncio.create_task(subscription.next())
    await streams.append(STREAM, [delta(KNOWN[:8])])
    assert await _still_waits(waiting)
    scene.clock.advance(250)
    assert _seqs(await asyncio.wait_for(waiting, 10)) == [1]
    hub.close()


async def test_a_wait_may_be_given_up_and_taken_up_again(scene: Scene) -> None:
    streams = streams_of(scene)
    hub = delivery_of(scene, streams)
    subscription = hub.subscribe(STREAM)
    assert await subscription.next() == ReplayEnd(0)
    assert await subscription.next(timeout_s=0.001) == ()
    given_up = asyncio.create_task(subscription.next())
    await asyncio.sleep(0)
    given_up.cancel()
    await streams.append(STREAM, [delta("a ")])
    assert _seqs(await subscription.next()) == [1]
    hub.close()


@requirement("planes:delivery:ends")
async def test_who_leaves_is_not_waited_for_and_the_last_one_ends_the_tail(scene: Scene) -> None:
    streams = streams_of(scene)
    hub = delivery_of(scene, streams)
    one, other = hub.subscribe(STREAM), hub.subscribe(STREAM)
    for each in (one, other):
        await _live(each)
    one.close()
    await streams.append(STREAM, [delta("a ")])
    assert _seqs(await other.next()) == [1]
    other.close()
    other.close()
    again = hub.subscribe(STREAM)
    await streams.append(STREAM, [delta("b ")])
    assert (await taken(again, 2))[0] == [1, 2]
    hub.close()


@requirement("planes:delivery:ends")
async def test_the_end_of_delivery_ends_every_subscription(scene: Scene) -> None:
    streams = streams_of(scene)
    hub = delivery_of(scene, streams)
    live, fresh = hub.subscribe(STREAM), hub.subscribe(STREAM)
    assert await live.next() == ReplayEnd(0)
    waiting = asyncio.create_task(live.next())
    await asyncio.sleep(0)
    hub.close()
    assert await waiting is None
    assert [each async for each in fresh] == []


@requirement("planes:rules:never-twice")
async def test_a_stream_that_is_deleted_under_its_subscribers_goes_on_with_the_next_number(scene: Scene) -> None:
    streams = streams_of(scene)
    hub = delivery_of(scene, streams)
    await streams.append(STREAM, [delta("a ")])
    subscription = hub.subscribe(STREAM)
    assert _seqs(await subscription.next()) == [1]
    assert await subscription.next() == ReplayEnd(1)
    waiting = asyncio.create_task(subscription.next())
    await streams.delete(STREAM)
    await streams.append(STREAM, [delta("b ")])
    assert _seqs(await waiting) == [2]
    hub.close()
    await streams.settled()


async def _live(subscription: Subscription) -> None:
    """It has read an empty stream, and waits for what comes."""
    assert await subscription.next() == ReplayEnd(0)
    assert await subscription.next(timeout_s=0.001) == ()


async def _still_waits(task: "asyncio.Task[object]") -> bool:
    done, _ = await asyncio.wait([task], timeout=0.05)
    return not done


def _counting(encoded: list[int]) -> object:
    encode = delivery.encode_stored

    def counting(stream: bytes, row: EventRow) -> bytes:
        encoded.append(row.seq)
        return encode(stream, row)

    return counting


def _seqs(found: object) -> list[int]:
    assert isinstance(found, list), found
    return [each.seq for each in found]


@requirement("planes:delivery:each-once")
async def test_a_subscriber_beyond_the_head_keeps_nobody_else_from_going_on(scene: Scene) -> None:
    streams = streams_of(scene)
    hub = delivery_of(scene, streams)
    ahead, other = hub.subscribe(STREAM, after=2), hub.subscribe(STREAM)
    assert await ahead.next() == ReplayEnd(0)
    waiting = asyncio.create_task(ahead.next())
    await asyncio.sleep(0)
    assert await other.next() == ReplayEnd(0)
    following = asyncio.create_task(other.next())
    await streams.append(STREAM, [delta("a "), delta("b "), delta("c ")])
    assert _seqs(await following) == [1, 2, 3]
    assert _seqs(await waiting) == [3]
    hub.close()
