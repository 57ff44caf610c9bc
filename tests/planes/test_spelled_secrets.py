"""Secrets that JSON spells without a string, and secrets that are also words of the Field's own."""

from typing import Any, Final

import pytest
from msgspec import json

from fieldstone.core.streams import StreamEvent
from fieldstone.core.transcripts import CanonicalMessage, ToolResultPart
from fieldstone.planes.context.cleaning import Cleaner
from fieldstone.planes.streams import Streams
from fieldstone.planes.sweeping import PlanesSwept, sweep_planes
from fieldstone.redact import Harness, shared_harness
from fieldstone.redact.known import KnownSecret
from fieldstone.retrieval.reading import timestamp
from fieldstone.testing import ManualClock
from tests.planes.events import call, delta, finished, result, user
from tests.planes.scene import THREAD, Scene
from tests.planes.transport import KNOWN, STREAM
from tests.requirements import requirement

NUMBER: Final = int("8273" + "645091" + "827364")
HARNESS: Final = shared_harness().knowing([KnownSecret("db-key", KNOWN), KnownSecret("account", str(NUMBER))])
SPELLED: Final[dict[str, Any]] = {
    "a number": NUMBER,
    "a negative number": -NUMBER,
    "a number with a point": float(NUMBER),
    "bytes": list(KNOWN.encode()),
}
HARMLESS: Final[dict[str, Any]] = {
    "int": 1_794_838_207_963,
    "float": 12_345_678.5,
    "whole": 1e300,
    "bytes": list(b"nothing to see here"),
    "mixed": [1, 2, 3, 4, 5, 6, 7, True, 300],
    "small": [0, -1, 7, 99],
}
TODAY: Final = timestamp(ManualClock().now_ms())[:10]


class Learning:
    """A harness that comes to know the secrets."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness

    async def __call__(self) -> Harness:
        return self.harness


def is_clean(told: object) -> bool:
    return not any(json.encode(value) in json.encode(told) for value in SPELLED.values())


@requirement("planes:secrets:sweep")
@pytest.mark.parametrize("value", SPELLED.values(), ids=SPELLED)
async def test_a_secret_that_numbers_spell_is_not_stored_and_one_that_was_is_swept(scene: Scene, value: Any) -> None:
    learning = Learning(shared_harness())
    streams = Streams(scene.store, learning, scene.clock)
    run = await scene.begin()
    events = [call("c1", given=[value]), result("c1", {"page": {"value": value}}), finished(usage=value)]
    for stream in (STREAM, run.stream_id):
        await streams.append(stream, events)
    await scene.commit(run)
    await streams.compact(run.stream_id)
    await streams.settled()
    learning.harness = HARNESS
    assert await sweep_planes(streams) == PlanesSwept(3, 1, 2)
    appended = await streams.append("another", events)
    snapshot = await streams.snapshot(run.stream_id)
    assert snapshot is not None
    assert is_clean([appended, await streams.read(STREAM), snapshot, await scene.transcript.messages(THREAD)])


@pytest.mark.parametrize("value", SPELLED.values(), ids=SPELLED)
async def test_no_context_holds_a_secret_that_numbers_spell(value: Any) -> None:
    result = ToolResultPart("c1", "search", {"found": [value], **HARMLESS})
    message = CanonicalMessage("m1", None, "tool", (result,), "2026-01-31T08:00:00Z", {"note": value})
    clean = await Cleaner(Learning(HARNESS)).clean(message)
    assert is_clean(clean)
    [part] = clean.parts
    assert isinstance(part, ToolResultPart)
    assert {**part.output, "found": []} == {"found": [], **HARMLESS}


async def test_numbers_that_are_no_secret_stay_as_they_came(scene: Scene) -> None:
    streams = Streams(scene.store, Learning(HARNESS), scene.clock)
    events = [StreamEvent("custom", {**HARMLESS, "secret": KNOWN})]
    [stored] = (await streams.append(STREAM, events)).events
    assert stored.event.payload == {**HARMLESS, "secret": "[REDACTED:db-key]"}


@requirement("planes:secrets:sweep")
@pytest.mark.parametrize("word", ["assistant", "metadata", "createdAt", "schemaVersion", "reasoning", TODAY])
async def test_a_sweep_for_a_word_that_messages_are_made_of_leaves_them_readable(scene: Scene, word: str) -> None:
    learning = Learning(shared_harness())
    streams = Streams(scene.store, learning, scene.clock)
    run = await scene.begin()
    await streams.append(run.stream_id, [user("Who?"), delta(f"The {word}, it is."), finished()])
    await scene.commit(run)
    await streams.append(STREAM, [user("Who?"), delta(f"The {word}, it is."), call("c1", word)])
    for stream in (STREAM, run.stream_id):
        await streams.compact(stream)
    await streams.settled()
    learning.harness = shared_harness().knowing([KnownSecret("weak", word)])
    await sweep_planes(streams)
    assert await scene.path() == ["Who?", "The [REDACTED:weak], it is."]
    snapshot = await streams.snapshot(STREAM)
    assert snapshot is not None, "it can be read"
    assert f"The {word}".encode() not in bytes(snapshot.state)
