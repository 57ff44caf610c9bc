"""The vectors of archived units in memory: read when somebody asks for them, and let go when nobody does any more."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fieldstone.ports.vectors import VectorStore
from fieldstone.projections.meaning import Meaning, Reach
from fieldstone.projections.vector_index import Codes, Floats, Rows, VectorIndex

IDLE_S: Final = 300.0  # kept for so long after they were last asked for: reading a million takes seconds


class ColdMeaning:
    """Beside the `meaning` of what is not archived. `seqs` tells the units: row i is the i-th of them. `flush` returns
    when every vector that was made is in the store."""

    def __init__(
        self,
        store: VectorStore,
        meaning: Meaning,
        seqs: Callable[[], NDArray[np.int64]],
        flush: Callable[[], Awaitable[None]],
    ) -> None:
        self._store = store
        self._meaning = meaning
        self._seqs = seqs
        self._flush = flush
        self._index: VectorIndex | None = None
        self._late: list[Callable[[VectorIndex], None]] = []  # what changes while it is read, in its order
        self._reach: Reach | None = None
        self._reading: asyncio.Task[Reach] | None = None
        self._asked_s = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def reach(self) -> Reach | None:
        """All vectors, if those of archived units are here."""
        return self._reach

    async def whole(self) -> Reach:
        """All vectors. Who asks first waits until they are read, and does not stop it for the others by going away."""
        self._asked_s = asyncio.get_running_loop().time()
        if self._reach is not None:
            return self._reach
        if self._reading is None:
            self._reading = asyncio.get_running_loop().create_task(self._read())
            self._reading.add_done_callback(self._end_reading)
        return await asyncio.shield(self._reading)

    def put(self, rows: Rows, scales: Floats, codes: Codes) -> None:
        """These units are archived, and have these vectors."""
        self._change(lambda index: index.put(rows, scales, codes))

    def remove(self, rows: Rows) -> None:
        """These have no vectors any more. A unit that only came back may stay: its vector is the same."""
        self._change(lambda index: index.remove(rows))

    def let_go(self) -> None:
        self._reach = self._index = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])
        self.let_go()

    def _change(self, change: Callable[[VectorIndex], None]) -> None:
        if self._reading is not None:
            self._late.append(change)
        elif self._index is not None:
            change(self._index)

    async def _read(self) -> Reach:
        index = VectorIndex(self._meaning.model.dimension)
        await self._flush()  # what was put while nobody had asked is nowhere else
        async for batch in self._store.scan(self._meaning.model.number, cold=True):
            seqs = self._seqs()
            rows = np.searchsorted(seqs, batch.seqs)
            known = rows < len(seqs)
            put = partial(index.put, rows[known], batch.scales[known], batch.codes[known])
            await asyncio.to_thread(put)  # nobody else knows of it yet
        await asyncio.to_thread(index.shrink)
        for change in self._late:
            change(index)
        self._late.clear()
        self._index, self._reach, self._reading = index, self._meaning.with_archived(index), None
        self._timer = asyncio.get_running_loop().call_later(IDLE_S, self._let_go_if_idle)
        return self._reach

    def _end_reading(self, task: asyncio.Task[Reach]) -> None:
        """One that broke is begun anew by whoever asks next."""
        if self._reading is task:
            self._reading = None
            self._late.clear()
        if not task.cancelled():
            task.exception()  # told to those who wait, if anybody does

    def _let_go_if_idle(self) -> None:
        left_s = self._asked_s + IDLE_S - asyncio.get_running_loop().time()
        self._timer = None
        if left_s > 0:
            self._timer = asyncio.get_running_loop().call_later(left_s, self._let_go_if_idle)
        else:
            self.let_go()
