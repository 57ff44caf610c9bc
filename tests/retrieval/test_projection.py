"""From an entry of the log to the rows it changes: the one rule for every write and every rebuild."""

from collections.abc import Sequence
from typing import Any

import pytest

from fieldstone.core.events import (
    AccessRefused,
    AgentDeregistered,
    AgentRegistered,
    AnyEvent,
    ClockRaised,
    CompactionBegun,
    CompactionEnded,
    ConflictDetected,
    ConflictResolved,
    ConflictsListed,
    ContentReplaced,
    ContextAttuned,
    Entry,
    EntryWritten,
    HintText,
    LoggedRelation,
    MemoryCompacted,
    MemoryConsolidated,
    NameCoined,
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
    decode_entry,
    encode_entry,
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
from fieldstone.projections.views import project
from fieldstone.redact import shared_harness

RECORDED: dict[str, Any] = {"id": "mem-1", "type": "finding", "agent": 1, "registration": 2, "session": 3, "task": 4}
RELATIONS = (LoggedRelation("supports", 5), LoggedRelation("informs"))
ELABORATED = (LoggedRelation("elaborates", 5), LoggedRelation("elaborates", 6))


def unit_row(**fields: Any) -> UnitRow:
    plain = UnitRow(9, "mem-1", "committed", "finding", "active", 7, 1_000, 1, 2, 3, 4, 0.5, None, None)
    return plain._replace(**fields)


PUT_RELATIONS = [
    PutRelation(RelationRow(9, place, relation.type, relation.target))
    for place, relation in enumerate(RELATIONS)
    if relation.target is not None
]

CASES: list[tuple[AnyEvent, Sequence[Change]]] = [
    (UnitRecorded(mode="committed", score=0.5, relations=RELATIONS, **RECORDED), [PutUnit(unit_row()), *PUT_RELATIONS]),
    (
        UnitRecorded(mode="committed", score=0.5, relations=ELABORATED, **RECORDED),
        [PutUnit(unit_row()), ElaborateUnits(9, (5, 6))],
    ),
    (UnitRecorded(mode="draft", **RECORDED), [PutUnit(unit_row(mode="draft", status="draft", score=None))]),
    (UnitCommitted(unit=5, by=1, score=0.7), [CommitUnit(5, 7, 9, 0.7)]),
    (UnitDiscarded(unit=5, by=1), [SetUnitStatus(5, "retracted"), RemoveEntries((5,), 9)]),
    (UnitRetracted(unit=5, by=1), [SetUnitStatus(5, "retracted"), RemoveEntries((5,), 9)]),
    (UnitSuperseded(unit=5, by_unit=8), [SetUnitStatus(5, "superseded"), RemoveEntries((5,), 9)]),
    (UnitContested(unit=5, conflict=6), [SetUnitStatus(5, "contested")]),
    (UnitReinstated(unit=5), [SetUnitStatus(5, "active")]),
    (UnitPending(unit=5), [SetUnitStatus(5, "pending_enrichment")]),
    (UnitEnriched(unit=5), [SetUnitStatus(5, "active")]),
    (UnitEchoed(unit=5, of=3), [MarkEcho(5, 3)]),
    (AgentRegistered(agent=1, authority=4), [PutAgent(AgentRow(1, 9, "idle", 4))]),
    (
        AgentDeregistered(agent=1, registration=2, authority=4, by=1),
        [PutAgent(AgentRow(1, 2, "offline", 4))],
    ),
    (
        ConflictDetected(id="conf-1", type="factual", detected_by="explicit", unit_a=8, unit_b=5),
        [PutConflict(ConflictRow(9, "conf-1", "factual", "detected", 8, 5, "explicit", None, None, None, None, None))],
    ),
    (
        ConflictResolved(conflict=6, strategy="retracted", winner=8),
        [ResolveConflict(6, "retracted", 8, None, 9, 7)],
    ),
    (UnitRecorded(mode="committed", score=0.5, trust=2, **RECORDED), [PutUnit(unit_row(trust=2))]),
    (AgentRegistered(agent=1, authority=4, credential="key-1"), [PutAgent(AgentRow(1, 9, "idle", 4, "key-1"))]),
    (SessionCreated(session=3, by=1), [PutMember(MemberRow(3, 0)), PutMember(MemberRow(3, 1))]),
    (SessionJoined(session=3, agent=2), [PutMember(MemberRow(3, 2))]),
    (SessionLeft(session=3, agent=2), [DropMember(MemberRow(3, 2))]),
    (ContentReplaced(entry=5, text="00" * 32), []),
    (AccessRefused(asked="RECORD", code="FORBIDDEN"), []),
    (RetentionSet(policies=2), []),
    (SecretChanged(change="registered", of="tenant"), []),
    (UnitsArchived(compaction=8, units=(5, 6)), [ArchiveUnits((5, 6), 7), ShelveEntries((5, 6), 9)]),
    (UnitsRestored(units=(5,)), [RestoreUnits((5,)), ReturnEntries((5,))]),
    (UnitsPurged(compaction=8, units=(5,), texts=(5,)), [PurgeUnits((5,), 9), RemoveEntries((5,), 9, purged=True)]),
    (
        CompactionBegun(id="comp-1", strategy="archive", by=1, epoch=6),
        [PutCompaction(CompactionRow(9, "comp-1", "archive", "running", 0, 0, 0, None))],
    ),
    (
        CompactionEnded(compaction=8, state="done", units=2, syntheses=1, bytes=30),
        [EndCompaction(8, "done", 2, 1, 30, 9)],
    ),
    (
        MemoryCompacted(compaction=8, output=7, sources=2),
        [PutFeed(FeedRow(9, "memory.compacted", 1_000, 7))],
    ),
    (
        MemoryConsolidated(session=3, inputs=2, outputs=1),
        [PutFeed(FeedRow(9, "agent.memory.consolidated", 1_000, None))],
    ),
    (
        EntryWritten(unit=7, session=3, expires_ms=5, run="00112233aabbccdd"),
        [
            PutEntry(EntryRow(7, 3, 9, None, 5, "00112233aabbccdd"), ()),
            PutFeed(FeedRow(9, "memory.written", 1_000, 7)),
        ],
    ),
    (UnitGuarded(unit=5, guard="hold"), [PutGuard(5, "hold")]),
    (UnitUnguarded(unit=5, guard="pin"), [DropGuard(5, "pin")]),
    (ClockRaised(), []),
    (ConflictsListed(agent=1, returned=3), []),
    (ContextAttuned(agent=1, max_units=5), []),
    (NameCoined(of="agent"), []),
]


def digest(kind: str, name: str) -> bytes:
    return f"{kind}:{name}".encode()


def projected(event: AnyEvent, texts: TextBundle | None = None) -> list[Change]:
    return list(project(Entry(9, 7, 1_000, event), texts, digest))


@pytest.mark.parametrize(("event", "changes"), CASES, ids=lambda value: type(value).__name__)
def test_an_event_changes_the_rows_that_it_is_about(event: AnyEvent, changes: Sequence[Change]) -> None:
    assert projected(event) == list(changes)


@pytest.mark.parametrize("event", [event for event, _ in CASES], ids=lambda event: type(event).__name__)
def test_an_entry_that_was_written_and_read_changes_the_same_rows(event: AnyEvent) -> None:
    entry = Entry(9, 7, 1_000, event, "00" * 32)
    assert decode_entry(encode_entry(entry)) == entry
    assert list(project(decode_entry(encode_entry(entry)), None, digest)) == projected(event)


def test_every_kind_of_event_is_tried_here() -> None:
    assert {type(event) for event, _ in CASES} == set(AnyEvent.__args__)


def test_a_name_is_found_by_its_digest_as_long_as_its_text_is_there() -> None:
    name = NameText(shared_harness().clean_one("ada").text)
    assert projected(NameCoined(of="agent"), name) == [PutName(NameRow(9, "agent", b"agent:ada"))]
    assert projected(NameCoined(of="task"), name) == [PutName(NameRow(9, "task", b"task:ada"))]


def test_a_read_is_among_the_kept_hints_as_long_as_its_hint_is_there() -> None:
    hint = HintText(shared_harness().clean_one("about to decide").text)
    assert projected(ContextAttuned(agent=1, max_units=5), hint) == [KeepHint(9)]


def test_a_name_that_was_rewritten_is_found_by_its_new_digest() -> None:
    name = NameText(shared_harness().clean_one("[REDACTED:x]#3").text)
    replaced = ContentReplaced(entry=3, text="00" * 32, name="agent")
    assert projected(replaced, name) == [ReplaceName(NameRow(3, "agent", b"agent:[REDACTED:x]#3"))]
