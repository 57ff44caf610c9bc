"""What the golden files decode to today. The first version's bytes stay; a later version adds files and samples."""

from pathlib import Path
from typing import Final, NamedTuple

from fieldstone.core.events import (
    AccessRefused,
    AgentDeregistered,
    AgentRegistered,
    AgentTexts,
    ClockRaised,
    CompactionBegun,
    CompactionEnded,
    ConfidenceTexts,
    ConflictDetected,
    ConflictResolved,
    ConflictsListed,
    ContentReplaced,
    ContextAttuned,
    Entry,
    EntryTexts,
    EntryWritten,
    HintText,
    LoggedRelation,
    MemoryCompacted,
    MemoryConsolidated,
    NameCoined,
    NameText,
    ReasonText,
    RetentionSet,
    RetentionTexts,
    SecretChanged,
    SecretTexts,
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
    UnitTexts,
    UnitUnguarded,
    encode_entry,
    encode_texts,
)
from fieldstone.core.text import CleanText

EVENTS: Final = Path(__file__).with_name("events")
AT_MS: Final = 1_750_000_000_123
TEXT_HASH: Final = "0f" * 32
KEY_ID: Final = "key-0198c3f1a7de55b2"
BETWEEN: Final = b"\t"  # between an entry and its texts: JSON never holds one


class Sample(NamedTuple):
    """An entry, and the texts beside it."""

    entry: Entry
    texts: TextBundle | None = None


FIRST_VERSION: Final[dict[str, tuple[Sample, ...]]] = {
    "clock.raised": (Sample(Entry(1, 9_007_199_254_740_991, AT_MS, ClockRaised())),),
    "name.coined": (
        Sample(Entry(1, 1, AT_MS, NameCoined(of="agent"), TEXT_HASH), NameText(CleanText("ada"))),
        Sample(Entry(2, 1, AT_MS, NameCoined(of="session"), TEXT_HASH), NameText(CleanText('a "quoted" session'))),
        Sample(Entry(3, 1, AT_MS, NameCoined(of="task"), TEXT_HASH), NameText(CleanText("übung/東京"))),
    ),
    "agent.registered": (
        Sample(
            Entry(2, 1, AT_MS, AgentRegistered(agent=1, authority=4), TEXT_HASH),
            AgentTexts(CleanText("researcher"), (CleanText("latency"), CleanText("storage"))),
        ),
        Sample(Entry(2, 1, AT_MS, AgentRegistered(agent=1, authority=0), TEXT_HASH), AgentTexts(CleanText("onlooker"))),
        Sample(
            Entry(2, 1, AT_MS, AgentRegistered(agent=1, authority=4, credential=KEY_ID), TEXT_HASH),
            AgentTexts(CleanText("researcher")),
        ),
    ),
    "agent.deregistered": (
        Sample(Entry(9, 5, AT_MS, AgentDeregistered(agent=1, registration=2, authority=4, by=3))),
        Sample(Entry(9, 5, AT_MS, AgentDeregistered(agent=1, registration=2, authority=4, by=3, credential=KEY_ID))),
    ),
    "session.created": (Sample(Entry(9, 5, AT_MS, SessionCreated(session=4, by=1))),),
    "session.joined": (Sample(Entry(9, 5, AT_MS, SessionJoined(session=4, agent=1))),),
    "session.left": (Sample(Entry(9, 5, AT_MS, SessionLeft(session=4, agent=1))),),
    "content.replaced": (
        Sample(Entry(9, 5, AT_MS, ContentReplaced(entry=7, text=TEXT_HASH))),
        Sample(Entry(9, 5, AT_MS, ContentReplaced(entry=1, text=TEXT_HASH, name="agent"))),
    ),
    "compaction.begun": (
        Sample(
            Entry(
                9,
                5,
                AT_MS,
                CompactionBegun(
                    id="comp-0200",
                    strategy="purge",
                    by=1,
                    epoch=4,
                    max_age_epochs=100,
                    session=4,
                    types=("finding", "observation"),
                    statuses=("superseded",),
                    ancestor=7,
                    verify=False,
                ),
                TEXT_HASH,
            ),
            ReasonText(CleanText("asked for by the person it is about")),
        ),
        Sample(
            Entry(9, 5, AT_MS, CompactionBegun(id="comp-0200", strategy="archive", by=1, epoch=4), TEXT_HASH),
            ReasonText(CleanText("archive by ada")),
        ),
        Sample(
            Entry(
                9,
                5,
                AT_MS,
                CompactionBegun(
                    id="comp-0201",
                    strategy="archive",
                    by=1,
                    epoch=4,
                    policy="0f1e2d3c4b5a6978",
                    before=3,
                    beyond_newest=100,
                ),
                TEXT_HASH,
            ),
            ReasonText(CleanText("archive by retention policy aged")),
        ),
        Sample(
            Entry(
                9,
                5,
                AT_MS,
                CompactionBegun(
                    id="comp-0200",
                    strategy="summarize",
                    by=1,
                    epoch=4,
                    session=4,
                    group_units=100,
                    output_bytes=65_536,
                    deletes=True,
                ),
                TEXT_HASH,
            ),
            ReasonText(CleanText("scheduled")),
        ),
    ),
    "units.archived": (
        Sample(Entry(10, 5, AT_MS, UnitsArchived(compaction=9, units=(7, 8)))),
        Sample(Entry(10, 5, AT_MS, UnitsArchived(compaction=9, units=(7, 8), into=11))),
    ),
    "units.restored": (
        Sample(Entry(10, 5, AT_MS, UnitsRestored(units=(7,), credential=KEY_ID))),
        Sample(Entry(10, 5, AT_MS, UnitsRestored(units=(7,)))),
    ),
    "units.purged": (
        Sample(Entry(10, 5, AT_MS, UnitsPurged(compaction=9, units=(7,), texts=(7, 8)))),
        Sample(
            Entry(10, 5, AT_MS, UnitsPurged(compaction=None, units=(7,), texts=(7, 8), credential=KEY_ID), TEXT_HASH),
            ReasonText(CleanText("deleted by the memory's host")),
        ),
    ),
    "memory.written": (
        Sample(
            Entry(
                8, 5, AT_MS, EntryWritten(unit=7, session=4, expires_ms=AT_MS + 1, run="00112233aabbccdd"), TEXT_HASH
            ),
            EntryTexts(
                CleanText("note-1"), (CleanText("ops"), CleanText("eu")), CleanText("summarise"), CleanText("ada")
            ),
        ),
        Sample(Entry(8, 5, AT_MS, EntryWritten(unit=7, session=4), TEXT_HASH), EntryTexts()),
    ),
    "memory.consolidated": (
        Sample(Entry(12, 5, AT_MS, MemoryConsolidated(session=4, inputs=3, outputs=2, units=(7,)))),
    ),
    "memory.compacted": (
        Sample(Entry(12, 5, AT_MS, MemoryCompacted(compaction=9, output=11, sources=2, units=(7, 8), bytes=120))),
        Sample(Entry(12, 5, AT_MS, MemoryCompacted(compaction=9, output=11, sources=120))),
        Sample(
            Entry(
                12,
                5,
                AT_MS,
                MemoryCompacted(
                    compaction=None,
                    output=11,
                    sources=2,
                    units=(7, 8),
                    bytes=120,
                    token_budget=8_000,
                    tokens_used=910,
                    index_updated=True,
                ),
            )
        ),
    ),
    "compaction.ended": (
        Sample(Entry(13, 5, AT_MS, CompactionEnded(compaction=9, state="done", units=2, syntheses=1, bytes=210))),
        Sample(Entry(13, 5, AT_MS, CompactionEnded(compaction=9, state="cancelled"))),
    ),
    "unit.guarded": (
        Sample(Entry(9, 5, AT_MS, UnitGuarded(unit=7, guard="hold"))),
        Sample(Entry(9, 5, AT_MS, UnitGuarded(unit=7, guard="hold", credential=KEY_ID))),
    ),
    "unit.unguarded": (
        Sample(Entry(9, 5, AT_MS, UnitUnguarded(unit=7, guard="pin"))),
        Sample(Entry(9, 5, AT_MS, UnitUnguarded(unit=7, guard="pin", credential=KEY_ID))),
    ),
    "retention.set": (
        Sample(
            Entry(9, 5, AT_MS, RetentionSet(policies=1, credential=KEY_ID), TEXT_HASH),
            RetentionTexts((CleanText('{"name":"aged","strategy":"archive","max_age":"30d"}'),)),
        ),
        Sample(Entry(9, 5, AT_MS, RetentionSet(policies=0), TEXT_HASH), RetentionTexts()),
    ),
    "secret.changed": (
        Sample(
            Entry(9, 5, AT_MS, SecretChanged(change="registered", of="run", credential=KEY_ID), TEXT_HASH),
            SecretTexts(CleanText("db-password"), CleanText("run-1")),
        ),
        Sample(
            Entry(9, 5, AT_MS, SecretChanged(change="dropped", of="tenant"), TEXT_HASH),
            SecretTexts(CleanText("db-password")),
        ),
    ),
    "access.refused": (
        Sample(Entry(9, 5, AT_MS, AccessRefused(asked="RECORD", code="FORBIDDEN"))),
        Sample(
            Entry(
                9,
                5,
                AT_MS,
                AccessRefused(asked="export", code="FORBIDDEN", credential=KEY_ID, authority=4, times=31),
            )
        ),
    ),
    "unit.recorded": (
        Sample(
            Entry(
                7,
                3,
                AT_MS,
                UnitRecorded(
                    id="mem-0198",
                    mode="committed",
                    type="finding",
                    agent=1,
                    registration=2,
                    session=5,
                    task=6,
                    score=0.75,
                    relations=(LoggedRelation("contradicts", 4), LoggedRelation("supports")),
                ),
                TEXT_HASH,
            ),
            UnitTexts(
                content=CleanText("The cache is cold after a restart.\nSee [REDACTED:fieldstone.github-token]."),
                purpose=CleanText("explain the p99"),
                question=CleanText("why is the first minute slow?"),
                reasoning=CleanText("measured twice"),
                evidence=(CleanText("trace 17"), CleanText("trace 18")),
                assumptions=(CleanText("same hardware"),),
                targets=(CleanText("mem-0197"), CleanText("elsewhere")),
                descriptions=(CleanText("the opposite was measured"), None),
            ),
        ),
        Sample(
            Entry(
                8,
                4,
                AT_MS,
                UnitRecorded(id="mem-0199", mode="draft", type="question", agent=1, registration=2),
                TEXT_HASH,
            ),
            UnitTexts(content=CleanText("Is it?"), purpose=CleanText("ask")),
        ),
        Sample(
            Entry(
                8,
                4,
                AT_MS,
                UnitRecorded(id="mem-0200", mode="committed", type="synthesis", agent=1, registration=2, trust=2),
                TEXT_HASH,
            ),
            UnitTexts(content=CleanText("It is."), purpose=CleanText("sum up")),
        ),
    ),
    "unit.committed": (
        Sample(
            Entry(9, 5, AT_MS, UnitCommitted(unit=8, by=1, score=1.0), TEXT_HASH),
            ConfidenceTexts(CleanText("asked around"), (CleanText("mail of 3 May"),), (CleanText("it was read"),)),
        ),
        Sample(Entry(9, 5, AT_MS, UnitCommitted(unit=8, by=1))),
    ),
    "unit.discarded": (
        Sample(Entry(9, 5, AT_MS, UnitDiscarded(unit=8, by=1), TEXT_HASH), ReasonText(CleanText("answered elsewhere"))),
        Sample(Entry(9, 5, AT_MS, UnitDiscarded(unit=8, by=1))),
    ),
    "unit.retracted": (
        Sample(Entry(9, 5, AT_MS, UnitRetracted(unit=7, by=1), TEXT_HASH), ReasonText(CleanText("it was wrong"))),
    ),
    "unit.superseded": (Sample(Entry(9, 5, AT_MS, UnitSuperseded(unit=7, by_unit=8))),),
    "unit.contested": (Sample(Entry(9, 5, AT_MS, UnitContested(unit=7, conflict=8))),),
    "unit.pending": (Sample(Entry(8, 5, AT_MS, UnitPending(unit=7))),),
    "unit.enriched": (Sample(Entry(9, 5, AT_MS, UnitEnriched(unit=7))),),
    "unit.echoed": (Sample(Entry(9, 5, AT_MS, UnitEchoed(unit=7, of=4))),),
    "unit.reinstated": (Sample(Entry(9, 5, AT_MS, UnitReinstated(unit=7))),),
    "conflict.detected": (
        Sample(
            Entry(
                9,
                5,
                AT_MS,
                ConflictDetected(id="conf-0200", type="factual", detected_by="explicit", unit_a=8, unit_b=7),
                TEXT_HASH,
            ),
            ReasonText(CleanText("both cannot be true")),
        ),
        Sample(
            Entry(
                9,
                5,
                AT_MS,
                ConflictDetected(id="conf-0200", type="priority", detected_by="explicit", unit_a=8, unit_b=7),
            )
        ),
    ),
    "conflict.resolved": (
        Sample(Entry(10, 6, AT_MS, ConflictResolved(conflict=9, strategy="superseded", winner=8))),
        Sample(
            Entry(10, 6, AT_MS, ConflictResolved(conflict=9, strategy="manual", winner=7, by=1), TEXT_HASH),
            ReasonText(CleanText("the first trace was right")),
        ),
        Sample(Entry(10, 6, AT_MS, ConflictResolved(conflict=9, strategy="manual"))),
    ),
    "context.attuned": (
        Sample(
            Entry(
                11,
                6,
                AT_MS,
                ContextAttuned(
                    agent=3,
                    max_units=20,
                    since_epoch=2,
                    order="epoch",
                    format="ids_only",
                    available=31,
                    returned=2,
                    shown=((7, 0.875), (8, 1.0)),
                ),
                TEXT_HASH,
            ),
            HintText(CleanText("why is the first minute slow")),
        ),
        Sample(Entry(11, 6, AT_MS, ContextAttuned(agent=3, max_units=1))),
    ),
    "conflicts.listed": (Sample(Entry(12, 6, AT_MS, ConflictsListed(agent=3, returned=2))),),
}


def golden_file(kind: str, version: int) -> Path:
    return EVENTS / f"{kind}.v{version}.jsonl"


def stored_line(sample: Sample) -> bytes:
    """An entry's body as it lies in the log, and where it has texts, their bundle as it lies beside it."""
    body = encode_entry(sample.entry)
    return body if sample.texts is None else body + BETWEEN + encode_texts(sample.texts)
