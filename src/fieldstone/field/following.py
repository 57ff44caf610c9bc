"""What follows when units are on disk: they are embedded, compared with what they restate, and with what they oppose.

The answer waits for it a little while and tells what was found. What takes longer goes on by itself.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from msgspec import UNSET, Struct, json, structs

from fieldstone.core.events import UnitEchoed, UnitEnriched, UnitPending, UnitTexts
from fieldstone.core.replies import Accepted, Done, Reply, Warning
from fieldstone.core.text import CleanText
from fieldstone.field.desk import Desk, Draft
from fieldstone.field.detecting import Detecting
from fieldstone.field.echoes import find_echo
from fieldstone.field.idempotency import Fingerprint
from fieldstone.field.meanings import Meanings
from fieldstone.field.state import FieldState
from fieldstone.field.work import Work
from fieldstone.field.writer import Landed, Outcome
from fieldstone.ports.replies import RememberedReply
from fieldstone.ports.world import Clock

LATE = Warning("ENRICHMENT_FAILED", "The unit has no embedding yet: it is found by its words, and gets one by itself.")


class Finding(Struct):
    """What was found out about one unit."""

    late: bool = False
    deferred: bool = False
    echo_of: int | None = None
    conflicts: tuple[str, ...] = ()


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

    async def finish(self, landed: Sequence[Landed], outcomes: list[Outcome], texts: Mapping[int, UnitTexts]) -> None:
        findings = {each.unit: Finding() for each in landed}
        await self._enrich(landed, texts, findings)
        await self._detect(findings)
        marked = {unit: found for unit, found in findings.items() if found.late or found.echo_of is not None}
        remembered: list[RememberedReply] = []
        for each in landed:
            answer = outcomes[each.at]
            if isinstance(answer, Accepted) and (completed := _completed(answer, findings[each.unit])) is not answer:
                outcomes[each.at] = completed
                if each.fingerprint is not None:
                    remembered.append(_remembered(each.fingerprint, completed, self._clock.now_ms()))
        if marked or remembered:
            await self._write(Marking(marked, remembered))

    async def _enrich(
        self, landed: Sequence[Landed], texts: Mapping[int, UnitTexts], findings: Mapping[int, Finding]
    ) -> None:
        new = {each.unit: texts[each.unit].content for each in landed if each.is_new and each.unit in texts}
        if not new or not self._meanings.configured:
            return
        for unit in await self._meanings.enrich(new, self._enrichment_timeout_ms):
            findings[unit].late = True
        for unit in new:
            if not findings[unit].late:
                findings[unit].echo_of = await find_echo(self._state, self._meanings.meaning, unit, texts[unit].content)

    async def _detect(self, findings: Mapping[int, Finding]) -> None:
        detected = await self._detecting.at_once(list(findings))
        for unit, found in findings.items():
            if detected is None:
                found.deferred = True
            else:
                found.conflicts = tuple(detected.get(unit, ()))


class Marking:
    """Statuses and echoes go on record, with the answers as they were completed."""

    def __init__(self, findings: Mapping[int, Finding], remembered: Sequence[RememberedReply]) -> None:
        self._findings = findings
        self._remembered = remembered

    def texts(self) -> Sequence[str]:
        return ()

    def names(self) -> Sequence[tuple[str, str]]:
        return ()

    async def decide(self, desk: Desk, clean: Sequence[CleanText]) -> tuple[Draft, Reply]:
        draft = desk.quiet_draft(desk.epoch)
        for unit, found in self._findings.items():
            if found.late and (await desk.unit_at(unit)).status == "active":
                draft.append(UnitPending(unit=unit))
            if found.echo_of is not None:
                draft.append(UnitEchoed(unit=unit, of=found.echo_of))
        for reply in self._remembered:
            desk.remember(reply)
        return draft, _NO_ANSWER


class Enriching:
    """Units that were pending have their embedding."""

    def __init__(self, units: Sequence[int]) -> None:
        self._units = units

    def texts(self) -> Sequence[str]:
        return ()

    def names(self) -> Sequence[tuple[str, str]]:
        return ()

    async def decide(self, desk: Desk, clean: Sequence[CleanText]) -> tuple[Draft, Reply]:
        draft = desk.quiet_draft(desk.epoch)
        for unit in self._units:
            if (await desk.unit_at(unit)).status == "pending_enrichment":
                draft.append(UnitEnriched(unit=unit))
        return draft, _NO_ANSWER


_NO_ANSWER = Done("", 0)  # nobody waits for these


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
