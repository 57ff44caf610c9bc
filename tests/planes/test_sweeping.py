"""A secret that becomes known late is cleared from everything that the planes hold."""

from pathlib import Path

import pytest

from fieldstone.backends.sqlite.planes import SqlitePlanes
from fieldstone.core.errors import InvalidPayload
from fieldstone.planes.streams import Streams
from fieldstone.planes.sweeping import PlanesSwept, sweep_planes
from fieldstone.redact import Harness, shared_harness
from tests.planes.events import call, delta, finished, result
from tests.planes.scene import SCOPE, Scene
from tests.planes.transport import HARNESS, KNOWN, STREAM, stored_texts
from tests.requirements import requirement

MARKER = "[REDACTED:db-key]"


class Learning:
    """A harness that comes to know the secret."""

    def __init__(self) -> None:
        self.harness = shared_harness()

    async def __call__(self) -> Harness:
        return self.harness


def unknowing(scene: Scene) -> tuple[Streams, Learning]:
    learning = Learning()
    return Streams(scene.store, learning, scene.clock), learning


@requirement("planes:secrets:sweep")
async def test_a_sweep_clears_a_late_secret_from_events_also_over_deltas(scene: Scene) -> None:
    streams, learning = unknowing(scene)
    await streams.append(STREAM, [delta("use ")])
    await streams.append(STREAM, [delta(character) for character in KNOWN])
    await streams.append(STREAM, [delta(" now"), call("c1", query=KNOWN), result("c1", [KNOWN]), finished()])
    assert (await sweep_planes(streams)).events == 0
    learning.harness = HARNESS
    swept = await sweep_planes(streams)
    assert swept.events == len(KNOWN) + 2
    stored = await stored_texts(scene)
    assert "".join(stored) == f"use {MARKER} now"
    assert KNOWN not in str(await streams.read(STREAM))
    assert await sweep_planes(streams) == PlanesSwept(0, 0, 0)


@requirement("planes:secrets:sweep")
async def test_a_secret_over_many_pages_of_events_is_cleared(scene: Scene) -> None:
    streams, learning = unknowing(scene)
    await streams.append(STREAM, [delta("w ") for _ in range(490)])
    await streams.append(STREAM, [delta(character) for character in KNOWN])
    await streams.append(STREAM, [delta(" end") for _ in range(10)])
    learning.harness = HARNESS
    await sweep_planes(streams)
    assert "".join(await stored_texts(scene)) == "w " * 490 + MARKER + " end" * 10


@requirement("planes:secrets:sweep")
async def test_a_sweep_clears_snapshots_and_messages(scene: Scene) -> None:
    streams, learning = unknowing(scene)
    run = await scene.begin()
    await streams.append(run.stream_id, [delta("it is "), delta(KNOWN), finished()])
    await scene.commit(run)
    await streams.compact(run.stream_id)
    await streams.settled()
    learning.harness = HARNESS
    assert await sweep_planes(streams) == PlanesSwept(0, 1, 1)
    assert await scene.path() == [f"it is {MARKER}"]
    snapshot = await streams.snapshot(run.stream_id)
    assert snapshot is not None, "it is good, with a checksum of its own"
    assert KNOWN.encode() not in bytes(snapshot.state)
    assert MARKER.encode() in bytes(snapshot.state)


@requirement("planes:secrets:sweep")
async def test_a_secret_that_a_compaction_cut_in_two_is_cleared_from_both_halves(scene: Scene) -> None:
    streams, learning = unknowing(scene)
    await streams.append(STREAM, [delta("see "), delta(KNOWN[:10]), delta(KNOWN[10:] + " so"), finished()])
    await streams.set_reader(STREAM, "ui", 2)
    await streams.compact(STREAM)
    learning.harness = HARNESS
    await sweep_planes(streams)
    snapshot = await streams.snapshot(STREAM)
    assert snapshot is not None
    assert f"see {MARKER}".encode() in bytes(snapshot.state)
    assert [each.event.payload for each in (await streams.read(STREAM, after=2, limit=1)).events] == [{"delta": " so"}]
    await streams.settled()


@requirement("planes:secrets:sweep")
async def test_what_comes_after_a_sweep_goes_on_from_the_clean_text(scene: Scene) -> None:
    streams, learning = unknowing(scene)
    await streams.append(STREAM, [delta(f"take {KNOWN} ")])
    learning.harness = HARNESS
    await sweep_planes(streams)
    await streams.append(STREAM, [delta("and go")])
    assert await stored_texts(scene) == [f"take {MARKER} ", "and go"]


@requirement("planes:streams:again-after-secret")
@requirement("planes:streams:idempotency-key")
async def test_an_append_is_answered_as_the_first_time_although_its_secret_became_known_since(scene: Scene) -> None:
    streams, learning = unknowing(scene)
    await streams.append(STREAM, [delta("before ")])
    told = [delta(f"take {KNOWN} "), call("c1", query=KNOWN)]
    first = await streams.append(STREAM, told, idempotency_key="k1")
    learning.harness = HARNESS
    try:
        again = await streams.append(STREAM, told, idempotency_key="k1")
    except InvalidPayload as refused:
        raise AssertionError("the same request is taken for another") from refused
    assert ([each.seq for each in again.events], again.head) == ([2, 3], first.head)
    await sweep_planes(streams)
    swept = await streams.append(STREAM, told, idempotency_key="k1")
    assert [each.event for each in swept.events] == [delta(f"take {MARKER} "), call("c1", query=MARKER)]
    with pytest.raises(InvalidPayload, match="idempotencyKey was used before"):
        await streams.append(STREAM, [delta(f"keep {KNOWN} "), call("c1", query=KNOWN)], idempotency_key="k1")
    assert (await streams.info(STREAM)).head == first.head


@requirement("planes:secrets:sweep")
async def test_no_byte_of_the_file_holds_what_was_swept(tmp_path: Path, scene: Scene) -> None:
    planes = SqlitePlanes(tmp_path / "field.db")
    learning = Learning()
    streams = Streams(planes.open(SCOPE), learning, scene.clock)
    await streams.append(STREAM, [delta(f"take {KNOWN} "), call("c1", query=KNOWN)])
    learning.harness = HARNESS
    assert _files_with(KNOWN, tmp_path) != []
    await sweep_planes(streams)
    assert _files_with(KNOWN, tmp_path) == [], "at once: closing the store would clear its journal in any case"
    await planes.close()


def _files_with(secret: str, folder: Path) -> list[str]:
    return [file.name for file in folder.iterdir() if secret.encode() in file.read_bytes()]
