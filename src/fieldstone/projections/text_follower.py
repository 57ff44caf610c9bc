"""Keeps the text index in step with the log: behind it, in large batches, and never more than a little.

Only committed units count: a draft's words must not show in anybody else's scores, not even as a frequency. Drafts are
kept aside for their authors, and indexed when they are committed.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import structlog
from msgspec import Struct
from msgspec.structs import replace

from fieldstone.core.errors import FieldError
from fieldstone.core.events import UnitTexts, decode_texts
from fieldstone.ports.store import Store
from fieldstone.ports.text_index import Document
from fieldstone.ports.views import Change, CommitUnit, PutUnit, SetUnitStatus, UnitRow

BATCH_UNITS: Final = 1_000  # one transaction of about 20 ms
IDLE_MS: Final = 100  # with fewer waiting, the index follows after this long
RETRY_MS: Final = 1_000  # after a disk that would not take it

logger = structlog.get_logger("fieldstone.text_index")
Progress = Callable[[int], None]
Terms = Mapping[int, frozenset[str]]


class _Unindexed(Struct, frozen=True, gc=False):
    document: Document
    since: int  # the entry by which it counts: its record, or its commit


class TailUnit(NamedTuple):
    """A committed unit that was not in the index yet when it was asked for."""

    seq: int
    since: int
    terms: frozenset[str]


class TextFollower:
    """`tail` holds the units after the index's position: a search scans them, so no acknowledged unit is missed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tail: dict[int, _Unindexed] = {}
        self._drafts: dict[int, str] = {}
        self._terms: dict[int, frozenset[str]] = {}
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_behind = False  # a catch-up was begun and not finished: the tail alone would leave a gap
        self._closed = False

    async def catch_up(self, progress: Progress = lambda done: None) -> None:
        """Index every unit that the log has and the index has not. Called before a field is used."""
        self._is_behind = True
        position = await self._store.text_index.position()
        drafted = await self._store.views.drafted_units()
        await self._keep_drafts([row for row in drafted if row.status == "draft"])
        # Once drafts, these stand where their commit does: the index may have passed their record long ago.
        late = sorted((row for row in drafted if _is_here(row) and _since(row) > position), key=_since)
        done = 0
        while rows := await self._store.views.scan_units(after=position, limit=BATCH_UNITS):
            position = rows[-1].seq
            direct = [row for row in rows if _is_here(row) and row.committed_seq is None]
            due = [row for row in late if _since(row) <= position]
            await self._catch_up_with(sorted([*direct, *due], key=_since), position)
            late = late[len(due) :]
            done += len(rows)
            progress(done)
        if late:
            await self._catch_up_with(late, _since(late[-1]))
        self._is_behind = False

    async def start_over(self) -> None:
        """Throw the index away and fill it again. Nothing may be committed meanwhile."""
        await self._stop()
        await self._store.text_index.clear()
        self._tail.clear()
        self._drafts.clear()
        self._terms.clear()
        await self.catch_up()

    def follow(self, changes: Iterable[Change], texts: Mapping[int, UnitTexts]) -> None:
        """New units were committed. They are searchable at once, and in the index soon."""
        for change in changes:
            match change:
                case PutUnit(row) if row.seq in texts:
                    text = searchable(texts[row.seq])
                    if row.status == "draft":
                        self._drafts[row.seq] = text
                    else:
                        self._tail[row.seq] = _Unindexed(Document(row.seq, text), row.seq)
                case CommitUnit(unit=unit, committed_seq=since) if unit in self._drafts:
                    self._tail[unit] = _Unindexed(Document(unit, self._drafts.pop(unit)), since)
                case SetUnitStatus(unit=unit, status="retracted"):
                    self._drafts.pop(unit, None)
                case _:
                    pass
        self._schedule()

    async def replace(self, texts: Mapping[int, UnitTexts]) -> None:
        """The texts of these units were rewritten: they are found by what they say now, and by nothing else."""
        await self._stop()
        index = self._store.text_index
        rows, position = await self._store.views.units(sorted(texts)), await index.position()
        indexed = []
        for seq, each in texts.items():
            document = Document(seq, searchable(each))
            self._terms.pop(seq, None)
            if seq in self._drafts:
                self._drafts[seq] = document.text
            elif seq in self._tail:
                self._tail[seq] = replace(self._tail[seq], document=document)
            elif rows[seq].mode == "committed" and _since(rows[seq]) <= position:
                indexed.append(document)
        if indexed:
            await index.add(indexed, position=position)
        self._schedule()

    async def drop(self, units: Sequence[int]) -> None:
        """These units are no longer found here."""
        await self._stop()
        for seq in units:
            self._terms.pop(seq, None)
            self._drafts.pop(seq, None)
            self._tail.pop(seq, None)
        await self._store.text_index.remove(units)
        self._schedule()

    async def take_back(self, texts: Mapping[int, UnitTexts]) -> None:
        """Units that were dropped are found here again."""
        await self._stop()
        documents = [Document(seq, searchable(each)) for seq, each in sorted(texts.items())]
        index = self._store.text_index
        if (position := await index.position()) and documents:
            await index.add(documents, position=position)
        else:
            self._tail.update({document.seq: _Unindexed(document, document.seq) for document in documents})
        self._schedule()

    def tail(self) -> Sequence[TailUnit]:
        """The units after the index's position."""
        return [
            TailUnit(seq, waiting.since, self._terms_of(seq, waiting.document.text))
            for seq, waiting in self._tail.items()
        ]

    def drafts(self, seqs: Sequence[int]) -> Terms:
        """The terms of these drafts. For their author's eyes only."""
        return {seq: self._terms_of(seq, self._drafts[seq]) for seq in seqs if seq in self._drafts}

    async def close(self) -> None:
        self._closed = True
        await self._stop()

    def _terms_of(self, seq: int, text: str) -> frozenset[str]:
        terms = self._terms.get(seq)
        if terms is None:
            terms = self._terms[seq] = frozenset(self._store.text_index.analyze(text))
        return terms

    def _schedule(self) -> None:
        if self._closed or self._task is not None:
            return
        if len(self._tail) >= BATCH_UNITS:
            self._start()
        elif self._tail and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(IDLE_MS / 1e3, self._start)

    def _start(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._task is None and not self._closed:
            self._task = asyncio.get_running_loop().create_task(self._index())
            self._task.add_done_callback(self._stopped)

    async def _stop(self) -> None:
        if self._task is not None:
            await asyncio.wait([self._task])
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _stopped(self, task: asyncio.Task[None]) -> None:
        self._task = None
        failed = task.cancelled() or task.exception() is not None
        if self._closed or not self._tail:
            return
        if failed:
            logger.warning("text index is behind", units=len(self._tail), error=repr(task.exception()))
        if self._timer is None:
            delay_ms = RETRY_MS if failed else IDLE_MS
            self._timer = asyncio.get_running_loop().call_later(delay_ms / 1e3, self._start)

    async def _index(self) -> None:
        """A batch, and further full ones; a remainder waits for the next turn, so that batches stay large."""
        if self._is_behind:
            await self.catch_up()
        first = True
        while self._tail and not self._closed and (first or len(self._tail) >= BATCH_UNITS):
            first = False
            batch = list(self._tail.values())[:BATCH_UNITS]
            await self._store.text_index.add([waiting.document for waiting in batch], position=batch[-1].since)
            for waiting in batch:
                self._tail.pop(waiting.document.seq, None)
                self._terms.pop(waiting.document.seq, None)

    async def _catch_up_with(self, rows: Sequence[UnitRow], position: int) -> None:
        texts = await self._store.texts.get([row.seq for row in rows])
        batch = [
            _Unindexed(Document(row.seq, searchable(decode_texts(texts[row.seq].body, UnitTexts))), _since(row))
            for row in rows
            if row.seq in texts
        ]
        if not batch:
            return
        if not self._tail:  # else one before did not go in, and the position must not pass it
            try:
                await self._store.text_index.add([waiting.document for waiting in batch], position=position)
                return
            except FieldError as full:  # reads go on without room: what is not indexed is scanned
                logger.warning("text index is behind", code=full.code, units=len(batch))
        self._tail.update({waiting.document.seq: waiting for waiting in batch})
        if self._timer is None and not self._closed:  # the disk has just refused: not at once
            self._timer = asyncio.get_running_loop().call_later(RETRY_MS / 1e3, self._start)

    async def _keep_drafts(self, rows: list[UnitRow]) -> None:
        texts = await self._store.texts.get([row.seq for row in rows])
        for seq, stored in texts.items():
            self._drafts[seq] = searchable(decode_texts(stored.body, UnitTexts))


def searchable(texts: UnitTexts) -> str:
    """What of a unit can be found by words: what it says, and why it was recorded."""
    return " \n ".join([text for text in (texts.content, texts.purpose, texts.question) if text])


def _is_here(row: UnitRow) -> bool:
    """Archived units have an index of their own, and purged ones are nowhere."""
    return row.mode == "committed" and row.archived_epoch is None and row.purged_seq is None


def _since(row: UnitRow) -> int:
    return row.seq if row.committed_seq is None else row.committed_seq
