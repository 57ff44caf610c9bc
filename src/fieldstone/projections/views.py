"""From an entry of the log to the rows it changes. Used for every write and for every rebuild: one rule, one result."""

from collections.abc import Callable, Sequence
from typing import assert_never

from fieldstone.core.events import (
    AccessRefused,
    AgentDeregistered,
    AgentRegistered,
    ClockRaised,
    CompactionBegun,
    CompactionEnded,
    ConflictDetected,
    ConflictResolved,
    ConflictsListed,
    ContentReplaced,
    ContextAttuned,
    Entry,
    EntryTexts,
    EntryWritten,
    LabelKind,
    MemoryCompacted,
    MemoryConsolidated,
    NameCoined,
    NameKind,
    NameText,
    RetentionSet,
    SecretChanged,
    SessionCreated,
    SessionJoined,
    SessionLeft,
    TextBundle,
    UnitCommitted,
    UnitContested,
    UnitDiscarded,
    UnitEchoed,
    UnitEnriched,
    UnitGuarded,
    UnitPending,
    UnitRecorded,
    UnitReinstated,
    UnitRetracted,
    UnitsArchived,
    UnitsPurged,
    UnitsRestored,
    UnitSuperseded,
    UnitUnguarded,
)
from fieldstone.ports.views import (
    AgentRow,
    ArchiveUnits,
    Change,
    CommitUnit,
    CompactionRow,
    ConflictRow,
    DropGuard,
    DropMember,
    ElaborateUnits,
    EndCompaction,
    EntryRow,
    FeedRow,
    KeepHint,
    MarkEcho,
    MemberRow,
    NameRow,
    PurgeUnits,
    PutAgent,
    PutCompaction,
    PutConflict,
    PutEntry,
    PutFeed,
    PutGuard,
    PutMember,
    PutName,
    PutRelation,
    PutUnit,
    RelabelEntry,
    RelationRow,
    RemoveEntries,
    ReplaceName,
    ResolveConflict,
    RestoreUnits,
    ReturnEntries,
    SetUnitStatus,
    ShelveEntries,
    UnitRow,
)

NOBODY = 0

NameDigest = Callable[[NameKind | LabelKind, str], bytes]


def project(entry: Entry, texts: TextBundle | None, name_digest: NameDigest) -> Sequence[Change]:  # noqa: C901 (one case an event)
    event = entry.event
    match event:
        case UnitRecorded():
            unit = PutUnit(_unit_row(entry, event))
            return (unit, *_relations(entry.seq, event)) if event.relations else (unit,)
        case UnitCommitted(unit=unit, score=score):
            return (CommitUnit(unit, entry.epoch, entry.seq, score),)
        case UnitDiscarded(unit=unit) | UnitRetracted(unit=unit):
            return (SetUnitStatus(unit, "retracted"), RemoveEntries((unit,), entry.seq))
        case UnitSuperseded(unit=unit):
            return (SetUnitStatus(unit, "superseded"), RemoveEntries((unit,), entry.seq))
        case UnitContested(unit=unit):
            return (SetUnitStatus(unit, "contested"),)
        case UnitReinstated(unit=unit) | UnitEnriched(unit=unit):
            return (SetUnitStatus(unit, "active"),)
        case UnitPending(unit=unit):
            return (SetUnitStatus(unit, "pending_enrichment"),)
        case UnitEchoed(unit=unit, of=original):
            return (MarkEcho(unit, original),)
        case NameCoined(of=kind):
            # A name whose text is erased can no longer be looked up, and need not be.
            return (
                (PutName(NameRow(entry.seq, kind, name_digest(kind, texts.name))),)
                if isinstance(texts, NameText)
                else ()
            )
        case ContentReplaced(entry=seq, name=replaced):
            # In a rebuild the name's own entry meets the text that is there now.
            if isinstance(texts, EntryTexts):
                return (RelabelEntry(seq, *_labels(texts, name_digest)),)
            if replaced is None or not isinstance(texts, NameText):
                return ()
            return (ReplaceName(NameRow(seq, replaced, name_digest(replaced, texts.name))),)
        case AgentRegistered(agent=agent, authority=authority, credential=credential):
            return (PutAgent(AgentRow(agent, entry.seq, "idle", authority, credential)),)
        case AgentDeregistered(agent=agent, registration=registration, authority=authority, credential=credential):
            return (PutAgent(AgentRow(agent, registration, "offline", authority, credential)),)
        case SessionCreated(session=session, by=creator):
            return (PutMember(MemberRow(session, NOBODY)), PutMember(MemberRow(session, creator)))
        case SessionJoined(session=session, agent=agent):
            return (PutMember(MemberRow(session, agent)),)
        case SessionLeft(session=session, agent=agent):
            return (DropMember(MemberRow(session, agent)),)
        case ConflictDetected():
            return (PutConflict(_conflict_row(entry, event)),)
        case ConflictResolved(conflict=conflict, strategy=strategy, winner=winner, by=by):
            return (ResolveConflict(conflict, strategy, winner, by, entry.seq, entry.epoch),)
        case ContextAttuned():
            return (KeepHint(entry.seq),) if texts is not None else ()
        case UnitsArchived(units=units):
            return (ArchiveUnits(units, entry.epoch), ShelveEntries(units, entry.seq))
        case UnitsRestored(units=units):
            return (RestoreUnits(units), ReturnEntries(units))
        case UnitsPurged(units=units):
            return (PurgeUnits(units, entry.seq), RemoveEntries(units, entry.seq, purged=True))
        case EntryWritten():
            return _entry(entry, event, texts, name_digest)
        case MemoryCompacted(output=output):
            return (PutFeed(FeedRow(entry.seq, "memory.compacted", entry.at_ms, output)),)
        case MemoryConsolidated():
            return (PutFeed(FeedRow(entry.seq, "agent.memory.consolidated", entry.at_ms, None)),)
        case CompactionBegun(id=compaction_id, strategy=strategy):
            return (PutCompaction(CompactionRow(entry.seq, compaction_id, strategy, "running", 0, 0, 0, None)),)
        case CompactionEnded(compaction=compaction, state=state, units=count, syntheses=syntheses, bytes=size):
            return (EndCompaction(compaction, state, count, syntheses, size, entry.seq),)
        case UnitGuarded(unit=unit, guard=guard):
            return (PutGuard(unit, guard),)
        case UnitUnguarded(unit=unit, guard=guard):
            return (DropGuard(unit, guard),)
        case ClockRaised() | ConflictsListed() | AccessRefused() | RetentionSet() | SecretChanged():
            return ()
        case _:
            assert_never(event)


def _unit_row(entry: Entry, event: UnitRecorded) -> UnitRow:
    return UnitRow(
        entry.seq,
        event.id,
        event.mode,
        event.type,
        "draft" if event.mode == "draft" else "active",
        entry.epoch,
        entry.at_ms,
        event.agent,
        event.registration,
        event.session,
        event.task,
        event.score,
        None,
        None,
        None,
        event.trust,
    )


def _entry(entry: Entry, event: EntryWritten, texts: TextBundle | None, name_digest: NameDigest) -> Sequence[Change]:
    digest, tags = _labels(texts, name_digest) if isinstance(texts, EntryTexts) else (None, ())
    row = EntryRow(event.unit, event.session, entry.seq, digest, event.expires_ms, event.run)
    return (PutEntry(row, tags), PutFeed(FeedRow(entry.seq, "memory.written", entry.at_ms, event.unit)))


def _labels(texts: EntryTexts, name_digest: NameDigest) -> tuple[bytes | None, tuple[bytes, ...]]:
    tags = {name_digest("tag", tag) for tag in texts.tags}
    sources = {name_digest("source", source) for source in (texts.node_id, texts.agent_id) if source is not None}
    own = None if texts.id is None else name_digest("entry", texts.id)
    # Its id is a label, too: by it, those are found that had it before.
    return own, tuple(sorted(tags | sources | ({own} if own is not None else set())))


def _relations(source: int, event: UnitRecorded) -> Sequence[Change]:
    elaborated = tuple(each.target for each in event.relations if each.type == "elaborates" and each.target is not None)
    if elaborated and len(elaborated) == len(event.relations):  # of a synthesis, which may have thousands
        return (ElaborateUnits(source, elaborated),)
    return [
        PutRelation(RelationRow(source, place, relation.type, relation.target))
        for place, relation in enumerate(event.relations)
        if relation.target is not None
    ]


def _conflict_row(entry: Entry, event: ConflictDetected) -> ConflictRow:
    return ConflictRow(
        entry.seq,
        event.id,
        event.type,
        "detected",
        event.unit_a,
        event.unit_b,
        event.detected_by,
        None,
        None,
        None,
        None,
        None,
    )
