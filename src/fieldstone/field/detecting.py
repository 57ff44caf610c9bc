"""Compares units with what was said before: those about the same subject are found, and judged pair by pair."""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import islice
from typing import Final, NamedTuple

import numpy as np
import structlog

from fieldstone.core.errors import FieldError
from fieldstone.core.events import UnitTexts, decode_texts
from fieldstone.core.replies import Reply
from fieldstone.core.text import CleanText
from fieldstone.core.vocabulary import SHOWN_STATUSES
from fieldstone.detection.judge import Claim, Verdict, judge
from fieldstone.detection.statements import Prepared, prepare
from fieldstone.detection.subject import subject_terms
from fieldstone.field.desk import Desk, Draft
from fieldstone.field.meanings import Meanings
from fieldstone.field.relate import contest
from fieldstone.field.second_reading import SecondReading
from fieldstone.field.state import FieldState
from fieldstone.field.work import NO_ANSWER, Work
from fieldstone.ports.marks import DETECTED
from fieldstone.ports.views import UnitRow
from fieldstone.ports.world import Clock, Ids
from fieldstone.projections.columns import LAST_SHOWN_STATUS
from fieldstone.projections.text_follower import TextFollower
from fieldstone.retrieval.words import split

NEAREST: Final = 12  # units that are nearest in meaning
LEAST_SIMILARITY: Final = 0.3
MOST_BY_WORDS: Final = 24
POSTINGS: Final = 4_000
SHARED_WORDS: Final = 2  # one word in common does not make a common subject
COMPARED_AT_ONCE: Final = 8
AT_ONCE_SHARE: Final = 0.2  # of the time limit is what we expect to need at most; under load nobody waits at all
PAUSE_MS: Final = 20  # between batches, and as long as others write
MOST_PAUSES: Final = 100  # then it has its turn, whoever writes: a field that is never quiet is compared, too
RETRY_MS: Final = 1_000  # after a store that had no room
NEWEST: Final = 1 << 62
KEPT_TEXTS: Final = 2_048  # as they were read: about 10 MB
CLOSING_MS: Final = 2_000  # what is not compared by then is compared at the next opening
MARK_EVERY: Final = 256  # units; a crash makes no more than these be compared again

logger = structlog.get_logger("fieldstone.detecting")


class Found(NamedTuple):
    unit: int  # the one that was compared
    other: int
    verdict: Verdict


class Detecting:
    """`write` puts work on disk; `quiet` says that nobody else is writing. `second` reads what the rules decided."""

    def __init__(
        self,
        state: FieldState,
        meanings: Meanings,
        follower: TextFollower,
        clock: Clock,
        ids: Ids,
        write: Callable[[Work], Awaitable[Reply]],
        quiet: Callable[[], bool],
        second: SecondReading | None = None,
        *,
        enabled: bool,
        timeout_ms: int,
        compares_entries: bool = False,
    ) -> None:
        self._state = state
        self._meanings = meanings
        self._follower = follower
        self.clock = clock
        self._ids = ids
        self._write = write
        self._quiet = quiet
        self._second = second
        self._enabled = enabled
        self._timeout_ms = timeout_ms
        self._compares_entries = compares_entries
        self._backlog: deque[int] = deque()
        self._task: asyncio.Task[None] | None = None
        self._running: set[asyncio.Task[dict[int, list[str]] | None]] = set()
        self._prepared: dict[str, Prepared] = {}
        self._looked_at = 0  # units that are being compared at once
        self._mean_ms = 1.0
        self._through = 0
        self._marked = 0
        self._closed = False

    @property
    def behind(self) -> int:
        """How many units have not been compared yet."""
        return len(self._backlog)

    async def start(self) -> None:
        """Units that were not compared before the field was closed, or cut off, are compared now."""
        if not self._enabled:
            return
        self._marked = self._through = await self._state.store.marks.get(DETECTED)
        units = self._state.columns.snapshot(0)
        first = int(np.searchsorted(units.seq, self._marked, side="right"))
        new = units.seq[first:][units.status[first:] <= LAST_SHOWN_STATUS].tolist()
        # A draft counts from its commit on, which the mark may be before.
        drafted = await self._state.store.views.drafted_units()
        self.defer([*(row.seq for row in drafted if row.seq <= self._marked < (row.committed_seq or 0)), *new])

    async def at_once(self, units: Sequence[int]) -> dict[int, list[str]] | None:
        """The conflicts of each unit; None where that takes longer than the answer may wait: then it is done later."""
        if not self._enabled:
            return {}
        self._looked_at += len(units)
        if self._backlog or self._looked_at * self._mean_ms > self._timeout_ms * AT_ONCE_SHARE:
            self._looked_at -= len(units)
            self.defer(units)
            return None
        task = asyncio.get_running_loop().create_task(self._detect_or_defer(units))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        await asyncio.wait([task], timeout=self._timeout_ms / 1e3)
        return task.result() if task.done() else None

    def defer(self, units: Iterable[int]) -> None:
        """They are compared when there is time."""
        if not self._enabled:
            return
        self._backlog.extend(units)
        self._start()

    async def _detect_or_defer(self, units: Sequence[int]) -> dict[int, list[str]] | None:
        try:
            found = await self.detect_each(units)
        except FieldError:  # no room to put it on record: asked again when there is
            self.defer(units)
            return None
        finally:
            self._looked_at -= len(units)
        await self._passed(units)
        return found

    async def detect_each(self, units: Sequence[int]) -> dict[int, list[str]]:
        """The same as `detect`, but a unit that cannot be compared is told in the logs and hinders no other."""
        try:
            return await self.detect(units)
        except FieldError:
            raise
        except Exception as broken:  # why: whatever is in one unit, the others are to be compared
            if len(units) == 1:
                logger.error("a unit cannot be compared", unit=units[0], error=type(broken).__name__, exc_info=broken)
                return {}
        each = [await self.detect_each([unit]) for unit in units]
        return {unit: conflicts for found in each for unit, conflicts in found.items()}

    async def detect(self, units: Sequence[int], *, both_ways: bool = False) -> dict[int, list[str]]:
        """Compare these units, and put on record what contradicts. The new conflicts of each."""
        began = self.clock.monotonic_ms()
        found: dict[frozenset[int], Found] = {}  # two units may find each other
        for unit in units:
            for each in await self.compare(unit, both_ways=both_ways):
                found.setdefault(frozenset((each.unit, each.other)), each)
        taken_ms = (self.clock.monotonic_ms() - began) / max(1, len(units))
        self._mean_ms += 0.2 * (taken_ms - self._mean_ms)
        contesting = Contesting(list(found.values()), self._ids)
        if found:
            await self._write(contesting)
        return contesting.conflicts

    async def compare(self, unit: int, *, both_ways: bool = False) -> list[Found]:
        """The units before it that this one contradicts, and that are not in dispute with it already. `both_ways`: the
        ones after it, too."""
        rows = await self._state.store.views.units([unit])
        if unit not in rows or not _stands(rows[unit]) or self._is_a_hosts(rows[unit]):
            return []
        texts = await self._texts([unit])
        if unit not in texts:
            return []
        # What was a draft for a while has to be compared with what was recorded meanwhile, too.
        before = unit if rows[unit].committed_seq is None and not both_ways else NEWEST
        similar = await self._similar(unit, before)
        others = [*similar, *await self._with_same_words(texts[unit], before)]
        others = [seq for seq in dict.fromkeys(others) if seq != unit and not self._state.in_dispute(unit, seq)]
        return await self._judged(rows[unit], texts[unit], others, similar)

    def forget_texts(self) -> None:
        """What was read of texts that are no more must not stay in memory."""
        self._prepared.clear()

    async def close(self) -> None:
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if await self._finish_running() and self._enabled and not self._backlog:
            self._through = self._state.head.seq  # nobody writes any more: commits of drafts are behind us, too
            await self._mark()

    async def _finish_running(self) -> bool:
        """Whether all of them came to their end: a model that has a word in it may take long."""
        if not self._running:
            return True
        _, left = await asyncio.wait(self._running, timeout=CLOSING_MS / 1e3)
        for task in left:
            task.cancel()
        return not left

    # --- in the background --------------------------------------------------------------------------------------------

    def _start(self) -> None:
        if self._backlog and self._task is None and not self._closed:
            self._task = asyncio.get_running_loop().create_task(self._work())
            self._task.add_done_callback(self._stopped)

    async def _work(self) -> None:
        while self._backlog:
            await self._turn()
            units = list(islice(self._backlog, COMPARED_AT_ONCE))
            try:
                await self.detect_each(units)
            except FieldError as full:  # asked again when there is room
                logger.warning("conflicts are not on record yet", code=full.code, units=len(self._backlog))
                await asyncio.sleep(RETRY_MS / 1e3)
                continue
            for _ in units:
                self._backlog.popleft()
            await self._passed(units)
        await self._mark()

    async def _turn(self) -> None:
        """Others go first, but not for ever."""
        for _ in range(MOST_PAUSES):
            await asyncio.sleep(PAUSE_MS / 1e3)
            if self._quiet():
                return

    async def _passed(self, units: Sequence[int]) -> None:
        self._through = max(self._through, *units)
        if self._through - self._marked >= MARK_EVERY:
            await self._mark()

    async def _mark(self) -> None:
        """Note how far it has come, if nothing before is left."""
        others = self._running - {asyncio.current_task()}
        if self._backlog or any(not task.done() for task in others) or self._through <= self._marked:
            return
        self._marked = self._through
        try:
            await self._state.store.marks.set(DETECTED, self._through)
        except FieldError as full:  # the units are compared once more, that is all
            logger.warning("how far detection has come is not on disk", code=full.code)

    def _stopped(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("detection broke", error=type(error).__name__, exc_info=error)
        self._start()  # what came while it was about to stop

    # --- finding and judging ------------------------------------------------------------------------------------------

    async def _similar(self, unit: int, before: int) -> dict[int, float]:
        meaning = self._meanings.meaning
        if meaning is None:
            return {}
        units = self._state.columns.snapshot(self._state.epoch)
        row = np.asarray([self._state.columns.row_of(unit)], np.int64)
        query = meaning.index.vectors(row)[0]
        if not query.any():
            return {}
        mask = (units.status <= LAST_SHOWN_STATUS) & ~units.archived & (units.seq < before)
        rows, similarities = await asyncio.to_thread(meaning.index.search, query, mask, NEAREST)
        return {
            int(units.seq[at]): float(similarity)
            for at, similarity in zip(rows, similarities, strict=True)
            if similarity >= LEAST_SIMILARITY
        }

    async def _with_same_words(self, text: str, before: int) -> list[int]:
        words = list(dict.fromkeys(word for term in subject_terms(text) for word in split(term)))
        if not words:
            return []
        tail = self._follower.tail()
        [postings] = await self._state.store.text_index.search([words], most_postings=POSTINGS)
        shared: Counter[int] = Counter()
        for seqs in postings.seqs.values():
            shared.update(seqs)
        terms = {term for word in words for term in self._state.store.text_index.analyze(word)}
        for fresh in tail:
            if common := len(terms & fresh.terms):
                shared[fresh.seq] = common
        enough = min(SHARED_WORDS, max(1, len(words) - 1))  # one of them may be what the two differ in
        eligible = Counter({seq: count for seq, count in shared.items() if count >= enough and seq < before})
        return [seq for seq, _ in eligible.most_common(MOST_BY_WORDS)]

    async def _judged(self, row: UnitRow, text: str, others: Sequence[int], similar: dict[int, float]) -> list[Found]:
        rows = await self._state.store.views.units(others)
        heard = {seq for seq, other in rows.items() if _stands(other) and self._is_comparable(row, other)}
        texts = await self._texts([seq for seq in others if seq in heard])
        newer = self._claim(row, text)
        older = {seq: self._claim(rows[seq], said) for seq, said in texts.items()}
        verdicts = {seq: judge(newer, claim, similar.get(seq)) for seq, claim in older.items()}
        if self._second is not None:
            verdicts = await self._second.read(newer, older, verdicts, similar)
        return [Found(row.seq, seq, verdict) for seq, verdict in verdicts.items() if verdict is not None]

    def _is_comparable(self, unit: UnitRow, other: UnitRow) -> bool:
        return not self._is_a_hosts(other) and self._in_one_room(unit, other)

    def _is_a_hosts(self, row: UnitRow) -> bool:
        """An entry of an OpenWOP memory: its engine decides what holds, unless the field is told to have a word."""
        return row.session in self._state.memories and not self._compares_entries

    def _in_one_room(self, unit: UnitRow, other: UnitRow) -> bool:
        """No conflict that the Field finds crosses the door of a closed session: it would tell what is behind it."""
        if unit.session == other.session or self._state.cross_session:
            return True
        return not any(self._state.sessions.is_closed(session) for session in (unit.session, other.session))

    def _claim(self, row: UnitRow, text: str) -> Claim:
        """Most of the work is to read a text, and what is similar to one unit is so to the next."""
        prepared = self._prepared.get(text)
        if prepared is None:
            if len(self._prepared) >= KEPT_TEXTS:
                self._prepared.clear()
            prepared = self._prepared[text] = prepare(text)
        return Claim(text, row.type, row.epoch, row.score, row.agent, row.session, prepared)

    async def _texts(self, units: Sequence[int]) -> dict[int, str]:
        stored = await self._state.store.texts.get(units)
        return {seq: decode_texts(each.body, UnitTexts).content for seq, each in stored.items()}


class Contesting:
    """Conflicts that the Field found go on record, unless a side is gone by then."""

    message = None  # nobody asked for it
    brings_news = False

    def __init__(self, found: Sequence[Found], ids: Ids) -> None:
        self._found = found
        self._ids = ids
        self.conflicts: dict[int, list[str]] = {}

    def texts(self) -> Sequence[str]:
        return [found.verdict.description for found in self._found]

    def names(self) -> Sequence[tuple[str, str]]:
        return ()

    async def decide(self, desk: Desk, clean: Sequence[CleanText]) -> tuple[Draft, Reply]:
        draft = desk.quiet_draft(desk.epoch)
        for found, description in zip(self._found, clean, strict=True):
            unit, other = await desk.unit_at(found.unit), await desk.unit_at(found.other)
            if _stands(unit) and _stands(other) and not desk.in_dispute(found.unit, found.other):
                newer, older = (unit, other) if unit.epoch >= other.epoch else (other, unit)
                conflict = await contest(draft, desk, self._ids, newer, older, found.verdict.detected_by, description)
                self.conflicts.setdefault(found.unit, []).append(conflict)
        return draft, NO_ANSWER


def _stands(row: UnitRow) -> bool:
    return row.purged_seq is None and row.mode == "committed" and row.status in SHOWN_STATUSES
