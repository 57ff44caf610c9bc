"""Secrets on the roads into the planes that the tests of deltas and of contexts do not take: ids, digests, much text.

tests/mutate takes each scrub out in turn; these are the tests that notice where no other one does.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Final

import pytest
from msgspec import json, to_builtins

from fieldstone.backends.memory.planes import MemoryPlanes
from fieldstone.backends.memory.store import MemoryStore
from fieldstone.backends.memory.vault import MemoryVault
from fieldstone.backends.sqlite.planes import SqlitePlanes
from fieldstone.core.errors import SecretLeakage
from fieldstone.core.streams import MAX_STREAM_ID_CHARS, StreamEvent
from fieldstone.core.transcripts import ThreadPage
from fieldstone.field.field import LocalField
from fieldstone.field.opening import open_local
from fieldstone.field.options import Models, Options
from fieldstone.field.remembering import Remembering
from fieldstone.field.secrets import Secrets
from fieldstone.field.threads import LocalThreads
from fieldstone.planes.streams import CLEANED_IN_THREAD_BYTES, Streams
from fieldstone.planes.sweeping import PlanesSwept, sweep_planes
from fieldstone.ports.planes import SnapshotRow
from fieldstone.redact import Harness, shared_harness
from fieldstone.redact.known import KnownSecret
from fieldstone.testing import KEY, ManualClock, SeededIds, WordCounter
from tests.messages import join
from tests.planes.events import delta, finished, reasoning, result
from tests.planes.scene import SCOPE, THREAD, Scene
from tests.planes.test_deltas import BETWEEN
from tests.planes.transport import HARNESS, KNOWN, STREAM, streams_of
from tests.protocol.ways import on_disk
from tests.redact.fakes import noise
from tests.requirements import requirement

MARKER: Final = "[REDACTED:db-key]"

# --- ids that callers choose ------------------------------------------------------------------------------------------

NAMED: Final[dict[str, Callable[[Streams], Awaitable[object]]]] = {
    "a stream": lambda streams: streams.append(f"run:{KNOWN}", [delta("Fine.")]),
    "an idempotency key": lambda streams: streams.append(STREAM, [delta("Fine.")], idempotency_key=KNOWN),
    "a kind of event": lambda streams: streams.append(STREAM, [StreamEvent(KNOWN, {})]),
    "a reader's stream": lambda streams: streams.set_reader(f"run:{KNOWN}", "me", 0),
    "a reader": lambda streams: streams.set_reader(STREAM, KNOWN, 0),
    "a hold": lambda streams: streams.hold(STREAM, KNOWN),
}


@requirement("planes:streams:names")
@pytest.mark.parametrize("what", NAMED)
async def test_a_secret_as_the_name_of_something_is_refused_and_nothing_is_kept(scene: Scene, what: str) -> None:
    streams = streams_of(scene)
    with pytest.raises(SecretLeakage) as refusal:
        await NAMED[what](streams)
    assert KNOWN not in str(refusal.value)
    assert await scene.store.read(lambda tables: tables.streams(limit=10)) == []
    assert await streams.readers(STREAM) == {}


@pytest.fixture
async def field() -> AsyncIterator[LocalField]:
    """In memory, with planes, and with one known secret."""
    field = await open_local(
        MemoryStore(KEY),
        clock=ManualClock(),
        ids=SeededIds(),
        harness=shared_harness,
        secrets=Secrets(MemoryVault()),
        models=Models(WordCounter()),
        options=Options(),
        planes=MemoryPlanes().open(SCOPE),
    )
    await field.put_secret("db-key", KNOWN)
    yield field
    await field.close()


@requirement("planes:secrets:everywhere")
async def test_a_thread_whose_id_holds_a_secret_is_not_begun(field: LocalField) -> None:
    threads = LocalThreads(field)
    with pytest.raises(SecretLeakage):
        await threads.begin_run(f"thread of {KNOWN}")
    assert await threads.threads() == ThreadPage((), None)


@requirement("planes:secrets:everywhere")
async def test_a_run_that_forks_from_an_id_that_holds_a_secret_is_not_begun(field: LocalField) -> None:
    threads = LocalThreads(field)
    with pytest.raises(SecretLeakage):
        await threads.begin_run("t1", fork_from=KNOWN)
    assert await threads.threads() == ThreadPage((), None)


# --- texts ------------------------------------------------------------------------------------------------------------


@requirement("planes:secrets:everywhere")
async def test_a_secret_in_more_text_than_is_cleaned_on_the_spot_is_taken_out(scene: Scene) -> None:
    """Of words that belong to no running text, and in a thread."""
    streams = streams_of(scene)
    filler = "The market grows, and so does the report. " * (CLEANED_IN_THREAD_BYTES // 40)
    await streams.append(STREAM, [result("c1", {"page": f"{filler}The key is {KNOWN}, as agreed."})])
    stored = json.encode((await streams.read(STREAM)).events).decode()
    assert len(stored) > CLEANED_IN_THREAD_BYTES
    assert MARKER in stored
    assert KNOWN not in stored


@requirement("planes:secrets:everywhere")
@pytest.mark.parametrize("make", [delta, lambda text: result("c1", text)], ids=["delta", "words"])
async def test_the_digest_of_a_request_tells_nothing_of_a_secret(
    scene: Scene, make: Callable[[str], StreamEvent]
) -> None:
    """It is that of the clean events: whoever has the file could try values until one fits."""
    streams = streams_of(scene)
    await streams.append("run:secret", [make(f"use {KNOWN} now")], idempotency_key="once")
    await streams.append("run:marker", [make(f"use {MARKER} now")], idempotency_key="once")
    kept = await scene.store.read(
        lambda tables: [tables.appended(stream, "once") for stream in ("run:secret", "run:marker")]
    )
    assert None not in kept
    assert kept[0] == kept[1]


@requirement("planes:secrets:any-cut")
@pytest.mark.parametrize("another", [False, True], ids=["the same process", "another process"])
@pytest.mark.parametrize("between", BETWEEN, ids=lambda event: event.kind)
async def test_a_secret_with_other_events_between_its_pieces_is_in_no_message(
    scene: Scene, between: StreamEvent, *, another: bool
) -> None:
    """The projection joins the text over them, and so does what looks for secrets."""
    run, streams = await scene.begin(), streams_of(scene)
    for piece in ("take ", KNOWN[:8], KNOWN[8:16], KNOWN[16:] + " now"):
        if another:
            streams = streams_of(scene)  # which has only what is stored to go by
        await streams.append(run.stream_id, [delta(piece), between])
    await scene.commit(run)
    assert await scene.path() == [f"take {MARKER} now"]


# --- secrets that became known late -----------------------------------------------------------------------------------


def phrase() -> str:
    """Nothing about it looks like a secret until somebody says that it is one."""
    return f"zeppelin {noise(10).lower()} under {noise(12).lower()}"


class Learning:
    """A harness that comes to know the secret."""

    def __init__(self) -> None:
        self.harness = shared_harness()

    async def __call__(self) -> Harness:
        return self.harness


@requirement("planes:secrets:sweep")
async def test_no_byte_of_an_open_file_holds_what_was_swept(tmp_path: Path, scene: Scene) -> None:
    """Not even its journal, which goes when the file is closed: a server may run for months."""
    planes, learning = SqlitePlanes(tmp_path / "field.db"), Learning()
    streams = Streams(planes.open(SCOPE), learning, scene.clock)
    await streams.append(STREAM, [delta(f"take {KNOWN} "), result("c1", KNOWN)])
    assert KNOWN.encode() in on_disk(tmp_path), "without it the test would prove nothing"
    learning.harness = HARNESS
    await sweep_planes(streams)
    assert KNOWN.encode() not in on_disk(tmp_path)
    await planes.close()


@requirement("planes:secrets:compacted")
@pytest.mark.parametrize("another", [False, True], ids=["the same process", "another process"])
async def test_the_first_half_of_a_secret_does_not_stay_in_a_snapshot_when_the_other_half_comes(
    scene: Scene, *, another: bool
) -> None:
    learning = Learning()
    streams = Streams(scene.store, learning, scene.clock)
    await streams.append(STREAM, [delta("take "), delta(KNOWN[:10])])
    assert (await streams.compact(STREAM)).eligible == 2
    await streams.settled()
    learning.harness = HARNESS
    if another:
        streams = Streams(scene.store, learning, scene.clock)
    await streams.append(STREAM, [delta(KNOWN[10:] + " now")])
    snapshot = await streams.snapshot(STREAM)
    assert snapshot is not None
    assert f"take {MARKER}".encode() in bytes(snapshot.state)
    assert KNOWN[:10].encode() not in bytes(snapshot.state)


@requirement("planes:secrets:sweep")
async def test_a_late_secret_that_is_a_kind_of_event_is_swept(scene: Scene) -> None:
    learning = Learning()
    streams = Streams(scene.store, learning, scene.clock)
    await streams.append(STREAM, [StreamEvent(KNOWN, {"a": 1})])
    learning.harness = HARNESS
    assert await sweep_planes(streams) == PlanesSwept(1, 0, 0)
    assert [each.event for each in (await streams.read(STREAM)).events] == [StreamEvent(MARKER, {"a": 1})]


@requirement("planes:secrets:sweep")
async def test_a_stream_whose_name_holds_a_late_secret_goes_on_under_another(scene: Scene) -> None:
    learning = Learning()
    streams = Streams(scene.store, learning, scene.clock)
    for name in (f"of {KNOWN}", f"of {KNOWN.upper()}"):  # which become the same one without their secrets
        await streams.append(name, [delta(f"Fine, {KNOWN}.")], idempotency_key="k1")
        await streams.set_reader(name, "me", 1)
    learning.harness = HARNESS
    assert await sweep_planes(streams) == PlanesSwept(2, 0, 0, 2)
    assert await sweep_planes(streams) == PlanesSwept(0, 0, 0)
    for name in (f"of {MARKER}#1", f"of {MARKER}#2"):
        assert [each.event for each in (await streams.read(name)).events] == [delta(f"Fine, {MARKER}.")]
        assert await streams.readers(name) == {"me": 1}
        assert (await streams.append(name, [delta("More.")])).head == 2
    assert (await streams.info(f"of {KNOWN}")).head == 0


@requirement("planes:secrets:sweep")
async def test_a_thread_whose_name_holds_a_late_secret_goes_on_under_another(scene: Scene) -> None:
    learning = Learning()
    streams = Streams(scene.store, learning, scene.clock)
    run = await scene.begin(thread=KNOWN)
    learning.harness = HARNESS
    assert (await sweep_planes(streams)).names == 1
    threads = await scene.store.read(lambda tables: [row.thread for row in tables.threads(limit=9)])
    assert threads == [f"{MARKER}#1"]
    [begun] = await scene.store.read(lambda tables: tables.runs(threads[0], limit=9))
    assert (begun.id, begun.thread) == (run.run_id, threads[0])
    assert (await sweep_planes(streams)).names == 0


@requirement("planes:secrets:sweep")
async def test_a_name_that_is_too_long_without_its_secrets_becomes_a_short_one(scene: Scene) -> None:
    learning = Learning()
    streams = Streams(scene.store, learning, scene.clock)
    filled = KNOWN + " " + "x" * (MAX_STREAM_ID_CHARS - len(KNOWN) - 1)
    await streams.append(filled, [delta("Fine.")])
    learning.harness = HARNESS
    await sweep_planes(streams)
    [row] = await scene.store.read(lambda tables: tables.streams(limit=9))
    assert len(row.stream) <= MAX_STREAM_ID_CHARS
    assert (await streams.append(row.stream, [delta("More.")])).head == 2


@requirement("planes:secrets:sweep")
async def test_no_byte_of_the_file_holds_a_name_that_was_swept(tmp_path: Path, scene: Scene) -> None:
    planes = SqlitePlanes(tmp_path / "field.db")
    learning = Learning()
    streams = Streams(planes.open(SCOPE), learning, scene.clock)
    await streams.append(KNOWN, [delta("Fine.")])
    await streams.set_reader(KNOWN, KNOWN, 1)
    learning.harness = HARNESS
    await sweep_planes(streams)
    await planes.close()
    assert KNOWN.encode() not in on_disk(tmp_path)


@requirement("planes:secrets:sweep")
async def test_a_reader_whose_name_is_a_late_secret_goes_on_under_another(scene: Scene) -> None:
    learning = Learning()
    streams = Streams(scene.store, learning, scene.clock)
    await streams.append(STREAM, [delta("Fine.")])
    await streams.set_reader(STREAM, KNOWN, 0)
    await streams.set_reader(STREAM, "me", 0)
    await streams.hold(STREAM, f"case {KNOWN}")
    learning.harness = HARNESS
    assert (await sweep_planes(streams)).names == 2
    assert (await sweep_planes(streams)).names == 0
    assert await streams.readers(STREAM) == {"me": 0, f"{MARKER}#1": 0}
    await streams.lift(STREAM, f"case {MARKER}#1")
    await streams.delete(STREAM)


@requirement("planes:secrets:sweep")
async def test_a_late_secret_in_a_snapshot_that_nobody_can_read_is_swept(scene: Scene) -> None:
    """Of another version, perhaps: its bytes lie in the file all the same."""
    learning = Learning()
    streams = Streams(scene.store, learning, scene.clock)
    await streams.append(STREAM, [delta("Fine."), finished()])
    unreadable = SnapshotRow(STREAM, 1, 1, 99, b"none", json.encode({"text": KNOWN}))
    await scene.store.write(lambda tables: tables.put_snapshot(unreadable))
    learning.harness = HARNESS
    assert await sweep_planes(streams) == PlanesSwept(0, 1, 0)
    left = await scene.store.read(lambda tables: tables.snapshots(STREAM))
    assert [(each.last_seq, each.state) for each in left] == [(1, b"")]


@requirement("planes:secrets:sweep")
@pytest.mark.parametrize("end", [[finished()], []], ids=["a message", "a draft"])
async def test_a_late_secret_over_pieces_of_reasoning_is_swept_from_messages_and_snapshots(
    scene: Scene, end: list[StreamEvent]
) -> None:
    """Each letter is a part of its own there."""
    learning = Learning()
    streams = Streams(scene.store, learning, scene.clock)
    run = await scene.begin()
    await streams.append(run.stream_id, [*map(reasoning, f"take {KNOWN} now"), *end])
    await scene.commit(run)
    await streams.compact(run.stream_id)
    await streams.settled()
    learning.harness = HARNESS
    assert await sweep_planes(streams) == PlanesSwept(0, 1, 1)
    snapshot = await streams.snapshot(run.stream_id)
    assert snapshot is not None
    state = json.decode(bytes(snapshot.state))
    [kept] = state["messages"] or [state["draft"]]
    [message] = (await scene.transcript.messages(THREAD)).messages
    for each in (kept, to_builtins(message)):
        assert "".join(part["text"] for part in each["parts"]) == f"take {MARKER} now"


@requirement("planes:secrets:sweep")
@pytest.mark.parametrize("between", BETWEEN, ids=lambda event: event.kind)
async def test_a_late_secret_with_other_events_between_its_letters_is_swept_from_messages(
    scene: Scene, between: StreamEvent
) -> None:
    learning = Learning()
    streams = Streams(scene.store, learning, scene.clock)
    run = await scene.begin()
    for letter in KNOWN:
        await streams.append(run.stream_id, [delta(letter), between])
    await scene.commit(run)
    learning.harness = HARNESS
    await sweep_planes(streams)
    assert await scene.path() == [MARKER]


@requirement("planes:secrets:sweep")
async def test_a_sweep_of_the_field_clears_its_planes_too(field: LocalField) -> None:
    threads, secret = LocalThreads(field), phrase()
    run = await threads.begin_run("t1")
    await threads.append("t1", run.run_id, [delta(f"We open the door with {secret}."), finished()])
    await threads.commit("t1", run.run_id)
    await field.put_secret("vault", secret)
    await field.sweep()
    told = str(await threads.messages("t1")) + str(await field.planes.streams.read(run.stream_id))
    assert told.count("We open the door with [REDACTED:vault].") == 2
    assert secret not in told


@requirement("planes:secrets:sweep")
async def test_what_is_remembered_of_a_run_is_told_without_a_late_secret(field: LocalField) -> None:
    threads, secret = LocalThreads(field), phrase()
    await join(field, "ada")
    run = await threads.begin_run("t1")
    await threads.append("t1", run.run_id, [delta(f"Decision: we open the door with {secret}."), finished()])
    await threads.commit("t1", run.run_id)
    await field.put_secret("vault", secret)
    [unit] = await Remembering(field).remember("t1", run.run_id, "ada")
    assert "[REDACTED:vault]" in unit.content
    assert secret not in unit.content
    assert (await field.unit(unit.memory_unit_id)).content == unit.content


@requirement("planes:secrets:any-cut")
async def test_a_long_known_secret_with_spaces_in_it_is_caught_over_deltas(scene: Scene) -> None:
    long = " ".join(f"{noise(11)}-{at}" for at in range(300))
    harness = shared_harness().knowing([KnownSecret("account", long)])

    async def cleaning() -> Harness:
        return harness

    streams = Streams(scene.store, cleaning, scene.clock)
    for at in range(0, len(long), 400):
        await streams.append("talk", [delta(long[at : at + 400])])
    await streams.append("talk", [finished()])
    text = "".join(event.event.payload.get("delta", "") for event in (await streams.read("talk")).events)
    assert text.strip() == "[REDACTED:account]"
