"""What follows when units are on disk: they are embedded, compared with what they restate, and with what they oppose.

The answer waits for it a little while and tells what was found. What takes longer goes on by itself.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

import structlog
from msgspec import UNSET, Struct, json, structs

from fieldstone.core.errors import FieldError
from fieldstone.core.events import UnitEchoed, UnitEnriched, UnitPending, UnitTexts
from fieldstone.core.replies import Accepted, Reply, Warning
from fieldstone.core.text import CleanText
from fieldstone.field.desk import Desk, Draft
from fieldstone.field.detecting import Detecting
from fieldstone.field.echoes import find_echo
from fieldstone.field.idempotency import Fingerprint
from fieldstone.field.meanings import Meanings
from fieldstone.field.state import FieldState
from fieldstone.field.work import NO_ANSWER, Wordless, Work
from fieldstone.field.writer import Landed, Outcome
from fieldstone.ports.replies import RememberedReply
from fieldstone.ports.world import Clock

TELL_AFTER_MS: Final = 200  # late units come in many batches: their statuses go on record together
RETRY_MS: Final = 1_000  # after a store that had no room

logger = structlog.get_logger("fieldstone.following")
LATE = Warning("ENRICHMENT_FAILED", "The unit has no embedding yet: it is found by its words, and gets one by itself.")


class Finding(Struct):
    """What was found out about one unit."""

    late: bool = False
    deferred: bool = False
    echo_of: int | None = None
    conflicts: tuple[str, ...] = ()


Findings = defaultdict[int, Finding]  # of those units about which there is something to tell


class Following:
    def __init__(
        self,
        state: FieldState,
        meanings: Meanings,
        detecting: Detecting,
        clock: Clock,
        write: Callable[[Work], Awaitable[Reply]],
        *,
        enrichment_timeout_ms: int,
    ) -> None:
        self._state = state
        self._meanings = meanings
        self._detecting = detecting
        self._clock = clock
        self._write = write
        self._enrichment_timeout_ms = enrichment_timeout_ms
        self._arrived: set[int] = set()  # late units that have their vectors
        self._telling: asyncio.Task[None] | None = None
        self._closed = False

    async def finish(self, landed: Sequence[Landed], outcomes: list[Outcome], texts: Mapping[int, UnitTexts]) -> None:
        findings: Findings = defaultdict(Finding)
        await self._enrich(landed, texts, findings)
        await self._detect(landed, findings)
        if not findings:
            return  # nearly always: there is nothing to add to what was answered
        marked = {unit: found for unit, found in findings.items() if found.late or found.echo_of is not None}
        remembered: list[RememberedReply] = []
        for each in landed:
            answer, found = outcomes[each.at], findings.get(each.unit)
            if found is None or not isinstance(answer, Accepted) or (completed := _completed(answer, found)) is answer:
                continue
            outcomes[each.at] = completed
            if each.fingerprint is not None:
                remembered.append(_remembered(each.fingerprint, completed, self._clock.now_ms()))
        if marked or remembered:
            await self._mark(Marking(marked, remembered, self._meanings.lacks))

    def enriched(self, units: Sequence[int]) -> None:
        """Units that were late have their vectors: that goes on record soon, and again if there is no room now."""
        self._arrived.update(units)
        if self._telling is None and not self._closed:
            self._telling = asyncio.get_running_loop().create_task(self._tell())
            self._telling.add_done_callback(self._told)

    async def close(self) -> None:
        """What cannot be told any more is told when the field opens again."""
        self._closed = True
        if self._telling is not None:
            self._telling.cancel()
            await asyncio.wait([self._telling])
        if self._arrived:
            await self._mark(Enriching(sorted(self._arrived)))

    async def _mark(self, work: Work) -> None:
        try:
            await self._write(work)
        except FieldError as full:  # the units and their answers are safe: only what was found out is not on record
            logger.warning("what follows from units is not on record", code=full.code)

    async def _tell(self) -> None:
        while self._arrived:
            await asyncio.sleep(TELL_AFTER_MS / 1e3)
            units = sorted(self._arrived)
            enriching = Enriching(units)
            try:
                await self._write(enriching)
            except FieldError as full:
                logger.warning("units are still pending on record", units=len(units), code=full.code)
                await asyncio.sleep(RETRY_MS / 1e3)
                continue
            self._arrived.difference_update(units)
            self._detecting.defer(enriching.told)  # by their words they were compared, and not by their meaning

    def _told(self, task: asyncio.Task[None]) -> None:
        self._telling = None
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("telling of units broke", error=type(error).__name__, exc_info=error)
        if self._arrived:  # those that came while it was about to stop
            self.enriched(())

    async def _enrich(self, landed: Sequence[Landed], texts: Mapping[int, UnitTexts], findings: Findings) -> None:
        new: dict[int, str] = {}
        for each in landed:
            if not each.is_new:
                # A draft that takes effect was embedded when it was recorded, or is still waiting.
                if self._meanings.lacks(each.unit):
                    findings[each.unit].late = True
            elif (said := texts.get(each.unit)) is not None:
                new[each.unit] = said.content
        if not new or not self._meanings.configured:
            return
        for unit in await self._meanings.enrich(new, self._enrichment_timeout_ms):
            findings[unit].late = True
        if self._state.recent.nobody_read:
            return
        for unit in new:
            if unit not in findings or not findings[unit].late:
                meaning, reach = self._meanings.meaning, self._meanings.reach
                echo_of = await find_echo(self._state, meaning, reach, unit, texts[unit].content)
                if echo_of is not None:
                    findings[unit].echo_of = echo_of

    async def _detect(self, landed: Sequence[Landed], findings: Findings) -> None:
        units = list({each.unit: None for each in landed})
        detected = await self._detecting.at_once(units)
        if detected is None:
            for unit in units:
                findings[unit].deferred = True
        else:
            for unit, conflicts in detected.items():
                findings[unit].conflicts = tuple(conflicts)


class Marking(Wordless):
    """Statuses and echoes go on record, with the answers as they were completed.

    `lacks` says whether a unit is still without its vector: one that has got it meanwhile is not pending any more.
    """

    def __init__(
        self, findings: Mapping[int, Finding], remembered: Sequence[RememberedReply], lacks: Callable[[int], bool]
    ) -> None:
        self._findings = findings
        self._remembered = remembered
        self._lacks = lacks

    async def decide(self, desk: Desk, clean: Sequence[CleanText]) -> tuple[Draft, Reply]:
        draft = desk.quiet_draft(desk.epoch)
        for unit, found in self._findings.items():
            if found.late and (await desk.unit_at(unit)).status == "active" and self._lacks(unit):
                draft.append(UnitPending(unit=unit))
            if found.echo_of is not None:
                draft.append(UnitEchoed(unit=unit, of=found.echo_of))
        for reply in self._remembered:
            desk.remember(reply)
        return draft, NO_ANSWER


class Enriching(Wordless):
    """Units that were pending have their embedding."""

    def __init__(self, units: Sequence[int]) -> None:
        self._units = units
        self.told: list[int] = []

    async def decide(self, desk: Desk, clean: Sequence[CleanText]) -> tuple[Draft, Reply]:
        draft = desk.quiet_draft(desk.epoch)
        for unit in self._units:
            if (await desk.unit_at(unit)).status == "pending_enrichment":
                draft.append(UnitEnriched(unit=unit))
                self.told.append(unit)
        return draft, NO_ANSWER


def _completed(answer: Accepted, found: Finding) -> Accepted:
    if not (found.late or found.deferred or found.conflicts):
        return answer
    warnings = (*(answer.warnings or ()), LATE) if found.late else answer.warnings
    return structs.replace(
        answer,
        conflicts_detected=(*answer.conflicts_detected, *found.conflicts),
        conflict_detection="deferred" if found.deferred else UNSET,
        warnings=warnings,
    )


def _remembered(fingerprint: Fingerprint, answer: Accepted, at_ms: int) -> RememberedReply:
    return RememberedReply(fingerprint.key, fingerprint.request, at_ms, json.encode(answer))
