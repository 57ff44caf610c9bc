"""Units and conflicts as agents see them: rows, texts and names put together."""

import functools
from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec import UNSET

from fieldstone.core.conflicts import Conflict, Resolution
from fieldstone.core.events import (
    ConfidenceTexts,
    ReasonText,
    UnitRecorded,
    UnitTexts,
    decode_entry,
    decode_texts,
)
from fieldstone.core.units import Confidence, Intent, MemoryUnit, Relation, Source
from fieldstone.core.vocabulary import FIELD_AGENT_ID
from fieldstone.ports.log import StoredText
from fieldstone.ports.store import Store
from fieldstone.ports.views import ConflictRow, UnitRow
from fieldstone.projections.names import Names


class Reading:
    def __init__(self, store: Store, names: Names) -> None:
        self._store = store
        self._names = names

    async def units(self, rows: Sequence[UnitRow]) -> list[MemoryUnit]:
        wanted = [row.seq for row in rows] + [row.committed_seq for row in rows if row.committed_seq is not None]
        texts = await self._store.texts.get(wanted)
        return [await self._unit(row, texts) for row in rows]

    async def conflicts(self, rows: Sequence[ConflictRow]) -> list[Conflict]:
        sides = {seq for row in rows for seq in (row.unit_a, row.unit_b, row.winner) if seq is not None}
        ids = {seq: unit.id for seq, unit in (await self._store.views.units(sorted(sides))).items()}
        texts = await self._store.texts.get([row.seq for row in rows])
        return [await self._conflict(row, ids, texts) for row in rows]

    async def _unit(self, row: UnitRow, texts: dict[int, StoredText]) -> MemoryUnit:
        stored = texts.get(row.seq)
        said = decode_texts(stored.body, UnitTexts) if stored else None
        return MemoryUnit(
            id=row.id,
            mode=row.mode,
            type=row.type,
            content=said.content if said else "",
            intent=Intent(
                purpose=said.purpose if said else "",
                task_id=None if row.task is None else await self._names.name(row.task),
                question=said.question if said else None,
            ),
            confidence=_confidence(row, said, texts),
            source=Source(
                agent_id=await self._names.name(row.agent),
                agent_role=await self._names.role(row.registration),
                session_id=None if row.session is None else await self._names.name(row.session),
                timestamp=timestamp(row.at_ms),
            ),
            relations=await self._relations(row, said) if said and said.targets else (),
            status=row.status,
            epoch=row.epoch,
            archived_epoch=UNSET if row.archived_epoch is None else row.archived_epoch,
        )

    async def _relations(self, row: UnitRow, said: UnitTexts) -> tuple[Relation, ...]:
        event = decode_entry((await self._store.log.read(after=row.seq - 1, limit=1))[0].body).event
        logged = event.relations if isinstance(event, UnitRecorded) else ()
        return tuple(
            Relation(relation.type, target, description)
            for relation, target, description in zip(logged, said.targets, said.descriptions, strict=True)
        )

    async def _conflict(self, row: ConflictRow, ids: dict[int, str], texts: dict[int, StoredText]) -> Conflict:
        unit_a, unit_b = ids[row.unit_a], ids[row.unit_b]
        stored = texts.get(row.seq)
        description = decode_texts(stored.body, ReasonText).reason if stored else f"{unit_a} contradicts {unit_b}."
        return Conflict(
            id=row.id,
            type=row.type,
            status=row.status,
            unit_a=unit_a,
            unit_b=unit_b,
            description=description,
            detected_by=row.detected_by,
            resolution=await self._resolution(row, ids),
        )

    async def _resolution(self, row: ConflictRow, ids: dict[int, str]) -> Resolution | None:
        if row.strategy is None or row.resolved_epoch is None:
            return None
        loser = row.unit_a if row.winner == row.unit_b else row.unit_b
        by = FIELD_AGENT_ID if row.resolved_by is None else await self._names.name(row.resolved_by)
        winner = None if row.winner is None else ids[row.winner]
        return Resolution(row.strategy, winner, f"{ids[loser]} was {row.strategy}.", by, row.resolved_epoch)


def timestamp(at_ms: int) -> str:
    """RFC 3339 with milliseconds and Z."""
    return f"{_second(at_ms // 1_000)}.{at_ms % 1_000:03d}Z"


@functools.lru_cache(4_096)  # a replay has thousands of events of one second, and strftime takes longer than the rest
def _second(at_s: int) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _confidence(row: UnitRow, said: UnitTexts | None, texts: dict[int, StoredText]) -> Confidence | None:
    stored = None if row.committed_seq is None else texts.get(row.committed_seq)
    later = decode_texts(stored.body, ConfidenceTexts) if stored else ConfidenceTexts()
    reasoning = later.reasoning or (said.reasoning if said else None)
    evidence = later.evidence or (said.evidence if said else ())
    assumptions = later.assumptions or (said.assumptions if said else ())
    if row.score is None and reasoning is None and not evidence and not assumptions:
        return None
    return Confidence(row.score, reasoning, evidence, assumptions)
