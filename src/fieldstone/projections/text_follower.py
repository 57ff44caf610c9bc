"""Keeps the text index in step with the log: behind it, in large batches, and never more than a little."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

import structlog

from fieldstone.core.errors import FieldError
from fieldstone.core.events import UnitTexts, decode_texts
from fieldstone.ports.store import Store
from fieldstone.ports.text_index import Document

BATCH_UNITS: Final = 1_000  # one transaction of about 20 ms
IDLE_MS: Final = 100  # with fewer waiting, the index follows after this long
RETRY_MS: Final = 1_000  # after a disk that would not take it

logger = structlog.get_logger("fieldstone.text_index")
Progress = Callable[[int], None]


class TextFollower:
    """`tail` holds the units after the index's position: a search scans them, so no acknowledged unit is missed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tail: dict[int, str] = {}
        self._tail_terms: dict[int, frozenset[str]] = {}
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    async def catch_up(self, progress: Progress = lambda done: None) -> None:
        """Index every unit that the log has and the index has not. Called before a field is used."""
        after = await self._store.text_index.position()
        done = 0
        while rows := await self._store.views.scan_units(after=after, limit=BATCH_UNITS):
            seqs = [row.seq for row in rows]
            texts = await self._store.texts.get(seqs)
            documents = [
                Document(seq, searchable(decode_texts(texts[seq].body, UnitTexts))) for seq in seqs if seq in texts
            ]
            try:
                await self._store.text_index.add(documents, position=seqs[-1])
            except FieldError as full:  # reads go on without room: what is not indexed is scanned
                logger.warning("text index is behind", code=full.code, units=len(documents))
                self.follow((document.seq, document.text) for document in documents)
            after = seqs[-1]
            done += len(rows)
            progress(done)

    def follow(self, units: Iterable[tuple[int, str]]) -> None:
        """New units were committed. They are searchable at once, and in the index soon."""
        self._tail.update(units)
        if self._closed or self._task is not None:
            return
        if len(self._tail) >= BATCH_UNITS:
            self._start()
        elif self._tail and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(IDLE_MS / 1e3, self._start)

    def tail(self) -> dict[int, frozenset[str]]:
        """The terms of each unit after the index's position."""
        for seq, text in self._tail.items():
            if seq not in self._tail_terms:
                self._tail_terms[seq] = frozenset(self._store.text_index.analyze(text))
        return dict(self._tail_terms)

    async def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            await asyncio.wait([self._task])

    def _start(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._task is None and not self._closed:
            self._task = asyncio.get_running_loop().create_task(self._index())
            self._task.add_done_callback(self._stopped)

    def _stopped(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if self._closed or not self._tail:
            return
        failed = task.cancelled() or task.exception() is not None
        if failed:
            logger.warning("text index is behind", units=len(self._tail), error=repr(task.exception()))
        if self._timer is None:
            delay_ms = RETRY_MS if failed else IDLE_MS
            self._timer = asyncio.get_running_loop().call_later(delay_ms / 1e3, self._start)

    async def _index(self) -> None:
        """A batch, and further full ones; a remainder waits for the next turn, so that batches stay large."""
        first = True
        while self._tail and not self._closed and (first or len(self._tail) >= BATCH_UNITS):
            first = False
            batch = [Document(seq, text) for seq, text in list(self._tail.items())[:BATCH_UNITS]]
            await self._store.text_index.add(batch, position=batch[-1].seq)
            for document in batch:
                self._tail.pop(document.seq, None)
                self._tail_terms.pop(document.seq, None)


def searchable(texts: UnitTexts) -> str:
    """What of a unit can be found by words: what it says, and why it was recorded."""
    return " \n ".join(filter(None, (texts.content, texts.purpose, texts.question)))
