"""Secrets on the roads into the planes that the tests of deltas and of contexts do not take: ids, digests, much text.

tests/mutate takes each scrub out in turn; these are the tests that notice where no other one does.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

import pytest
from msgspec import json

from fieldstone.backends.memory.planes import MemoryPlanes
from fieldstone.backends.memory.store import MemoryStore
from fieldstone.backends.memory.vault import MemoryVault
from fieldstone.core.errors import SecretLeakage
from fieldstone.core.streams import StreamEvent
from fieldstone.core.transcripts import ThreadPage
from fieldstone.field.field import LocalField
from fieldstone.field.opening import open_local
from fieldstone.field.options import Models, Options
from fieldstone.field.secrets import Secrets
from fieldstone.field.threads import LocalThreads
from fieldstone.planes.streams import CLEANED_IN_THREAD_BYTES, Streams
from fieldstone.redact import shared_harness
from fieldstone.testing import KEY, ManualClock, SeededIds, WordCounter
from tests.planes.events import delta, result
from tests.planes.scene import SCOPE, Scene
from tests.planes.transport import KNOWN, STREAM, stored_texts, streams_of
from tests.redact.fakes import TOKENS

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


async def test_a_thread_whose_id_holds_a_secret_is_not_begun(field: LocalField) -> None:
    threads = LocalThreads(field)
    with pytest.raises(SecretLeakage):
        await threads.begin_run(f"thread of {KNOWN}")
    assert await threads.threads() == ThreadPage((), None)


async def test_a_run_that_forks_from_an_id_that_holds_a_secret_is_not_begun(field: LocalField) -> None:
    threads = LocalThreads(field)
    with pytest.raises(SecretLeakage):
        await threads.begin_run("t1", fork_from=KNOWN)
    assert await threads.threads() == ThreadPage((), None)


# --- texts ------------------------------------------------------------------------------------------------------------


async def test_a_secret_in_more_text_than_is_cleaned_on_the_spot_is_taken_out(scene: Scene) -> None:
    """Of words that belong to no running text, and in a thread."""
    streams = streams_of(scene)
    filler = "The market grows, and so does the report. " * (CLEANED_IN_THREAD_BYTES // 40)
    await streams.append(STREAM, [result("c1", {"page": f"{filler}The key is {KNOWN}, as agreed."})])
    stored = json.encode((await streams.read(STREAM)).events).decode()
    assert len(stored) > CLEANED_IN_THREAD_BYTES
    assert MARKER in stored
    assert KNOWN not in stored


async def test_a_secret_behind_one_that_grew_into_something_else_is_taken_out(scene: Scene) -> None:
    """Twenty characters were an access key; with more letters behind them they would be none, and stay redacted."""
    streams = streams_of(scene)
    await streams.append(STREAM, [delta(f"take {TOKENS['AWS access key']}")])
    await streams.append(STREAM, [delta(f"XYZ and {KNOWN} then")])
    stored = "".join(await stored_texts(scene))
    assert f"and {MARKER} then" in stored
    assert KNOWN not in stored
    assert TOKENS["AWS access key"] not in stored


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
