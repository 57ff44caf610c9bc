"""kill -9 at any step of a stream's compaction: what is left is correct, and whoever comes next ends it."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Literal, NamedTuple

import apsw
import pytest

from fieldstone.backends.sqlite.planes import SqlitePlanes, planes_path
from fieldstone.backends.system import SystemClock
from fieldstone.core.streams import STEP_FINISHED, TEXT_DELTA, StreamEvent
from fieldstone.planes.compaction import CHUNK_EVENTS, SLICE_BYTES
from fieldstone.planes.messages import encode_state
from fieldstone.planes.snapshots import replayed
from fieldstone.planes.streams import Streams
from fieldstone.ports.planes import ReadTables
from tests.crash.mortal import Mother, borne, mother
from tests.crash.stream_compactor import SCOPE, STREAM, Job, cleaning
from tests.requirements import requirement

READ_TO: Final = 2 * CHUNK_EVENTS + 50  # by a reader: deleting up to here takes three steps
HEAD: Final = READ_TO + 30
LEAST_STEPS: Final = 9  # a place, two slices of the snapshot, its seal, the floor, three times rows, what they left
MOST_STEPS: Final = 20


class Prepared(NamedTuple):
    folder: Path
    state: bytes


@pytest.fixture(scope="module")
def compactor() -> Iterator[Mother]:
    with mother("tests.crash.stream_compactor") as process:
        yield process


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    folder = tmp_path_factory.mktemp("prepared")
    return Prepared(folder, asyncio.run(_prepare(folder / "field.db")))


@requirement("planes:rules:crash")
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_stream_whose_compaction_is_killed_at_any_step_is_whole_and_the_next_one_ends_it(
    compactor: Mother, prepared: Prepared, tmp_path: Path, when: Literal["before", "after"]
) -> None:
    for step in range(1, MOST_STEPS):
        place = tmp_path / f"{step}"
        shutil.copytree(prepared.folder, place)
        how = borne(compactor, Job(str(place / "field.db"), step, when))
        asyncio.run(_check(place / "field.db", prepared.state, f"killed {when} step {step}: {how}"))
        if how == "done":
            assert step > LEAST_STEPS, "it was killed at each of them"
            return
        assert how == "dead 9"
    pytest.fail("it never came to its end")


async def _prepare(path: Path) -> bytes:
    async with _opened(path) as streams:
        deltas = [StreamEvent(TEXT_DELTA, {"delta": f" word {at}" * 30}) for at in range(HEAD - 1)]
        await streams.append(STREAM, [*deltas[:1_500], StreamEvent(STEP_FINISHED, {"stepIndex": 0}), *deltas[1_500:]])
        await streams.set_reader(STREAM, "ui", READ_TO)
        state = await streams.store.read(_state)
        assert SLICE_BYTES < len(state) < 2 * SLICE_BYTES
        return state


async def _check(path: Path, state: bytes, told: str) -> None:
    async with _opened(path) as streams:
        await _check_whole(streams, state, told)
        streams.resume()
        await streams.settled()
        await _check_whole(streams, state, told)
        await streams.compact(STREAM)
        await streams.settled()
        assert await _check_whole(streams, state, told) == READ_TO, told
        appended = await streams.append(STREAM, [StreamEvent(TEXT_DELTA, {"delta": " and on"})])
        assert [each.seq for each in appended.events] == [HEAD + 1], told
    connection = apsw.Connection(str(planes_path(path)))
    assert connection.pragma("integrity_check") == "ok", told
    assert connection.execute("SELECT count(*) FROM events").get == HEAD + 1 - READ_TO, told
    assert connection.execute("SELECT count(*) FROM snapshots").get == 1, told
    assert connection.execute("SELECT count(*) FROM pieces").get == 2, told
    connection.close()


async def _check_whole(streams: Streams, state: bytes, told: str) -> int:
    """The floor. What is above it can be read, and with the snapshot it makes all that there was."""
    status = await streams.info(STREAM)
    assert status.head == HEAD, told
    assert status.floor in (0, READ_TO), told
    page = await streams.read(STREAM, after=status.floor, limit=HEAD)
    assert [each.seq for each in page.events] == list(range(status.floor + 1, HEAD + 1)), told
    assert await streams.store.read(_state) == state, told
    return status.floor


def _state(tables: ReadTables) -> bytes:
    return encode_state(replayed(tables, STREAM).state)


@asynccontextmanager
async def _opened(path: Path) -> AsyncIterator[Streams]:
    planes = SqlitePlanes(path)
    streams = Streams(planes.open(SCOPE), cleaning, SystemClock())
    yield streams
    await streams.close()
    await planes.close()
