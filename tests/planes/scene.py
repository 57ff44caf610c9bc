"""A field's planes with time and ids in a test's hand, and runs told as an agent would tell them."""

import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from msgspec import UNSET, json

from fieldstone.backends.memory.planes import MemoryPlanes
from fieldstone.backends.sqlite.planes import SqlitePlanes
from fieldstone.core.streams import StreamEvent
from fieldstone.core.transcripts import CanonicalMessage, Run, TextPart
from fieldstone.planes.reconcile import Reconcile
from fieldstone.planes.runs import ForkPoint, Runs, touch_run
from fieldstone.planes.transcript import Transcript
from fieldstone.ports.planes import EventRow, PlaneFile, PlaneStore, StreamRow, Tables
from fieldstone.testing import ManualClock, SeededIds
from tests.planes.events import delta

SCOPE: Final = "acme/research"
THREAD: Final = "t1"
SHARED_MEMORY: Final = Path("/dev/shm")  # a disk that a thousand examples do not wear out
BACKENDS: Final = ("memory", "sqlite")


class Scene:
    """`elsewhere` is the same store as another process would have it open."""

    def __init__(self, store: PlaneStore, elsewhere: PlaneStore | None = None) -> None:
        self.store = store
        self.elsewhere = elsewhere or store
        self.clock = ManualClock()
        self.runs = Runs(store, self.clock, SeededIds())
        self.transcript = Transcript(store, self.clock)
        self.reconcile = Reconcile(store, self.clock)

    async def begin(self, fork_from: ForkPoint = UNSET, thread: str = THREAD) -> Run:
        self.clock.advance(1)
        return await self.runs.begin_run(thread, fork_from)

    async def tell(self, run: Run, *events: StreamEvent) -> None:
        self.clock.advance(1)
        now_ms = self.clock.now_ms()
        await self.store.write(lambda tables: tell(tables, run.stream_id, events, now_ms))

    async def commit(self, run: Run) -> Run:
        self.clock.advance(1)
        return await self.runs.commit(run.thread_id, run.run_id)

    async def committed(self, *events: StreamEvent, fork_from: ForkPoint = UNSET, thread: str = THREAD) -> Run:
        run = await self.begin(fork_from, thread)
        await self.tell(run, *events)
        return await self.commit(run)

    async def said(self, *texts: str, fork_from: ForkPoint = UNSET, thread: str = THREAD) -> list[str]:
        """A committed run of one message for each text. The ids of its messages."""
        events = [each for text in texts for each in (delta(text), StreamEvent("step-finished"))]
        run = await self.committed(*events, fork_from=fork_from, thread=thread)
        rows = await self.store.read(lambda tables: tables.messages_of_run(run.run_id))
        return [row.id for row in rows]

    async def path(self, thread: str = THREAD) -> list[str]:
        return texts((await self.transcript.messages(thread)).messages)


def tell(tables: Tables, stream: str, events: Sequence[StreamEvent], now_ms: int) -> None:
    """As the transport log appends, without its redaction."""
    touch_run(tables, stream, now_ms)
    row = tables.stream(stream) or StreamRow(stream)
    tables.put_stream(row._replace(active_ms=now_ms))
    rows = [EventRow(seq, now_ms, json.encode(event)) for seq, event in enumerate(events, start=row.head + 1)]
    tables.put_events(stream, rows)


def texts(messages: Sequence[CanonicalMessage]) -> list[str]:
    return ["".join(part.text for part in each.parts if isinstance(part, TextPart)) for each in messages]


@asynccontextmanager
async def a_scene(backend: str) -> AsyncIterator[Scene]:
    folder = Path(tempfile.mkdtemp(dir=SHARED_MEMORY if SHARED_MEMORY.is_dir() else None))
    memory = MemoryPlanes()
    opened: list[PlaneFile] = [memory, memory]
    if backend == "sqlite":
        opened = [SqlitePlanes(folder / "field.db"), SqlitePlanes(folder / "field.db")]
    try:
        yield Scene(*(planes.open(SCOPE) for planes in opened))
    finally:
        for planes in opened:
            await planes.close()
        shutil.rmtree(folder)


async def in_scene(backend: str, play: Callable[[Scene], Awaitable[None]]) -> None:
    async with a_scene(backend) as scene:
        await play(scene)
