"""What callers are told of a compaction: how far it is, what it did, and the same again when they ask again."""

from collections.abc import Sequence
from typing import Literal

from msgspec import UNSET, Struct, UnsetType, json, structs

from fieldstone.core.access import Caller
from fieldstone.core.replies import Compacted, CompactionProgress, Reply, Tested
from fieldstone.core.text import CleanText
from fieldstone.core.vocabulary import Strategy
from fieldstone.field.compacting import Asked, Plan, Running, tested
from fieldstone.field.desk import Desk, Draft
from fieldstone.field.idempotency import Fingerprint
from fieldstone.field.work import NO_ANSWER, Wordless
from fieldstone.ports.replies import RememberedReply

Residue = Literal["none", "pending"]


def is_theirs(caller: Caller, running: Running) -> bool:
    return caller.sees_all or (running.credential is not None and caller.credential == running.credential)


def told_to(caller: Caller, running: Running) -> CompactionProgress:
    """What it did in rooms that others do not see into is told to whoever asked for it, and to operators."""
    progress = progress_of(running)
    return progress if is_theirs(caller, running) else structs.replace(progress, result=UNSET)


def progress_of(running: Running) -> CompactionProgress:
    return CompactionProgress(running.id, running.state, running.done, running.total, running.result or UNSET)


def nothing_done(strategy: Strategy, plan: Plan, epoch: int) -> Compacted:
    return Compacted(
        units_affected=0,
        synthesis_units_created=0,
        storage_reclaimed_bytes=0,
        epoch=epoch,
        skipped=plan.skipped,
        residue="none" if strategy == "purge" else UNSET,
        tested=Tested("untested") if strategy == "summarize" else UNSET,
    )


def result_of(running: Running, asked: Asked, epoch: int, residue: Residue | UnsetType) -> Compacted:
    summarized = asked.selection.strategy == "summarize"
    return Compacted(
        units_affected=running.done,
        synthesis_units_created=len(running.syntheses),
        storage_reclaimed_bytes=running.bytes,
        epoch=epoch,
        compaction_id=running.id,
        skipped=tuple(running.skipped),
        synthesis_units=tuple(running.syntheses) if running.syntheses else UNSET,
        residue=residue,
        tested=(running.tested or tested(asked, None)) if summarized else UNSET,
        fell_back=tuple(running.fell_back) if running.fell_back else UNSET,
        cancelled=True if running.cancelled else UNSET,
        warnings=running.warnings,
    )


class Remembered(Struct, frozen=True):
    """What is kept of a message that asked for a compaction. `result` None: it is under way, or its process ended."""

    compaction_id: str
    units: int
    result: Compacted | None = None


def remember(fingerprint: Fingerprint, remembered: Remembered, at_ms: int) -> RememberedReply:
    return RememberedReply(fingerprint.key, fingerprint.request, at_ms, json.encode(remembered))


class Remembering(Wordless):
    """An answer that changed nothing, for the message that is sent again."""

    def __init__(self, remembered: RememberedReply) -> None:
        self._remembered = remembered

    async def decide(self, desk: Desk, clean: Sequence[CleanText]) -> tuple[Draft, Reply]:
        desk.remember(self._remembered)
        return desk.quiet_draft(desk.epoch), NO_ANSWER
