"""Entries from outside, checked as if they had been decided here: what they say must be possible after what was said.

The hash chain proves that an export is whole, not that a field wrote it: anyone can continue a chain.
"""

import re
from typing import Final, NoReturn, get_args

from msgspec import Struct

from fieldstone.core.authority import LEAST_TO
from fieldstone.core.errors import Forbidden, InvalidPayload, Unauthenticated
from fieldstone.core.events import (
    AccessRefused,
    AgentRegistered,
    AgentTexts,
    AnyEvent,
    CompactionBegun,
    ConflictDetected,
    ContentReplaced,
    Entry,
    EntryWritten,
    MemoryCompacted,
    MemoryConsolidated,
    NameCoined,
    NameKind,
    NameText,
    RetentionSet,
    SecretChanged,
    TextBundle,
    UnitCommitted,
    UnitRecorded,
    UnitsArchived,
    UnitsPurged,
    UnitsRestored,
    UnitTexts,
    decode_entry,
)
from fieldstone.core.limits import MAX_AUTHORITY, MAX_EPOCH
from fieldstone.core.validate import Rules
from fieldstone.core.vocabulary import OPERATION_LEVELS, UnitStatus
from fieldstone.ports.store import Store
from fieldstone.projections.views import NameDigest

MOST_MS: Final = 253_402_300_799_999  # the end of the year 9999, past which no timestamp can be written
EPOCH_ROOM: Final = 1_000_000_000  # below the last epoch: an import must leave the clock room to go on

_UNIT_ID: Final = re.compile(r"mem-[0-9a-f]{32}")
_CONFLICT_ID: Final = re.compile(r"conf-[0-9a-f]{32}")
_COMPACTION_ID: Final = re.compile(r"comp-[0-9a-f]{32}")
_DIGEST: Final = re.compile(r"[0-9a-f]{16}")
_RUN: Final = re.compile(r"[0-9a-f]{16}")
_CREDENTIAL: Final = re.compile(r"key-[0-9a-f]{16}|jwt-[0-9a-f]{32}")
# Numbers that an event may hold, and the kind of entry that each must refer to.
_REFERENCES: Final[dict[str, type[AnyEvent]]] = {
    "unit": UnitRecorded,
    "by_unit": UnitRecorded,
    "unit_a": UnitRecorded,
    "unit_b": UnitRecorded,
    "winner": UnitRecorded,
    "conflict": ConflictDetected,
    "agent": NameCoined,
    "by": NameCoined,
    "session": NameCoined,
    "task": NameCoined,
    "registration": AgentRegistered,
    "compaction": CompactionBegun,
    "output": UnitRecorded,
    "into": UnitRecorded,
    "ancestor": UnitRecorded,
}
_NAMES: Final[dict[str, NameKind]] = {"agent": "agent", "by": "agent", "session": "session", "task": "task"}
_STATUSES: Final = frozenset(get_args(UnitStatus))
_REFUSALS: Final = (Forbidden.code, Unauthenticated.code)
_OF_MANY: Final = UnitsArchived | UnitsRestored | UnitsPurged | MemoryCompacted | MemoryConsolidated
_TEXTS: Final[dict[type[AnyEvent], type[TextBundle]]] = {
    NameCoined: NameText,
    AgentRegistered: AgentTexts,
    UnitRecorded: UnitTexts,
}


class Clocks(Struct, frozen=True):
    """Where the field's time stands: the last entry's epoch, and that of the newest unit."""

    epoch: int
    newest_unit: int


class ForeignEntries:
    def __init__(self, store: Store, clocks: Clocks, rules: Rules, name_digest: NameDigest) -> None:
        self._store = store
        self._rules = rules
        self._name_digest = name_digest
        self._epoch = clocks.epoch
        self._newest_unit = clocks.newest_unit
        self._events: dict[int, AnyEvent | None] = {}
        self._ids: set[str] = set()
        self._names: set[bytes] = set()

    async def check(self, entry: Entry, texts: TextBundle | None, line: int, *, replaced: bool = False) -> None:
        """`replaced`: its text comes later."""
        self._check_time(entry, line)
        await self._check_references(entry, line)
        expected = _TEXTS.get(type(entry.event))
        if expected is not None and not isinstance(texts, expected) and not replaced:
            _refuse(line, f"entry {entry.seq} has no text")
        match entry.event:
            case UnitRecorded() as event:
                await self._check_unit(event, texts if isinstance(texts, UnitTexts) else None, entry, line)
            case NameCoined(of=kind) if isinstance(texts, NameText):
                await self._check_name(kind, texts, line)
            case ContentReplaced() as event:
                await self._check_replaced(event, texts, line)
            case ConflictDetected(id=conflict_id) if not _CONFLICT_ID.fullmatch(conflict_id):
                _refuse(line, f"entry {entry.seq} has an id that no field makes")
            case AgentRegistered(authority=authority, credential=credential):
                if not 0 <= authority <= MAX_AUTHORITY or not (credential is None or _CREDENTIAL.fullmatch(credential)):
                    _refuse(line, f"entry {entry.seq} has an authority that there is not")
            case CompactionBegun() as begun:
                self._check_compaction(begun, entry.seq, line)
            case AccessRefused() | RetentionSet() | SecretChanged() | EntryWritten() | UnitsPurged() as event if (
                not _is_plain(event)
            ):
                _refuse(line, f"entry {entry.seq} says what no field says")
            case UnitCommitted(score=score) if score is not None and not 0 <= score <= 1:
                _refuse(line, f"entry {entry.seq} has a score that there is not")
            case _:
                pass
        self._events[entry.seq] = entry.event

    def _check_time(self, entry: Entry, line: int) -> None:
        if not self._epoch <= entry.epoch <= MAX_EPOCH - EPOCH_ROOM:
            _refuse(line, f"the epoch of entry {entry.seq} does not follow the one before")
        if not 0 <= entry.at_ms <= MOST_MS:
            _refuse(line, f"the time of entry {entry.seq} is none")
        if isinstance(entry.event, UnitRecorded | UnitCommitted):
            if entry.epoch <= self._newest_unit:
                _refuse(line, f"the unit of entry {entry.seq} has no epoch of its own")
            self._newest_unit = entry.epoch
        self._epoch = entry.epoch

    async def _check_references(self, entry: Entry, line: int) -> None:
        numbers = [(getattr(entry.event, name, None), kind) for name, kind in _REFERENCES.items()]
        if isinstance(entry.event, UnitRecorded):
            numbers += [(relation.target, UnitRecorded) for relation in entry.event.relations]
        if isinstance(entry.event, _OF_MANY):
            numbers += [(unit, UnitRecorded) for unit in entry.event.units]
        for name, kind_of_name in _NAMES.items():
            number = getattr(entry.event, name, None)
            coined = await self.event(number) if number is not None and number > 0 else None
            if isinstance(coined, NameCoined) and coined.of != kind_of_name:
                _refuse(line, f"entry {entry.seq} refers to entry {number}, which is not what it should be")
        for number, kind in numbers:
            if number is not None and not isinstance(await self.event(number), kind):
                _refuse(line, f"entry {entry.seq} refers to entry {number}, which is not what it should be")

    async def _check_replaced(self, event: ContentReplaced, texts: TextBundle | None, line: int) -> None:
        old = await self.event(event.entry)
        if old is None or event.name != (old.of if isinstance(old, NameCoined) else None):
            _refuse(line, f"the text of entry {event.entry} is not of the kind that is said")
        if isinstance(texts, NameText) and event.name is not None:
            await self._check_name(event.name, texts, line)
        if isinstance(texts, UnitTexts) and isinstance(old, UnitRecorded):
            self._check_relations(old, texts, event.entry, line)

    async def event(self, number: int) -> AnyEvent | None:
        if number not in self._events:
            found = await self._store.log.read(after=number - 1, limit=1) if number > 0 else ()
            stored = found[0] if found and found[0].seq == number else None
            self._events[number] = decode_entry(stored.body).event if stored else None
        return self._events[number]

    async def _check_unit(self, event: UnitRecorded, texts: UnitTexts | None, entry: Entry, line: int) -> None:
        if not _UNIT_ID.fullmatch(event.id) or event.id in self._ids or await self._store.views.unit(event.id):
            _refuse(line, f"the unit of entry {entry.seq} has an id that is taken, or that no field makes")
        if event.type not in self._rules.memory_types:
            _refuse(line, f"the unit of entry {entry.seq} is of a type that this field does not know")
        if event.score is not None and not 0 <= event.score <= 1:
            _refuse(line, f"the unit of entry {entry.seq} has a score that there is not")
        if event.trust is not None and not 0 <= event.trust <= MAX_AUTHORITY:
            _refuse(line, f"the unit of entry {entry.seq} has a trust that there is not")
        if texts is not None:
            self._check_relations(event, texts, entry.seq, line)
        self._ids.add(event.id)

    def _check_compaction(self, begun: CompactionBegun, seq: int, line: int) -> None:
        if not _COMPACTION_ID.fullmatch(begun.id) or not (begun.policy is None or _DIGEST.fullmatch(begun.policy)):
            _refuse(line, f"entry {seq} has an id that no field makes")
        if not (set(begun.statuses or ()) <= _STATUSES and set(begun.types or ()) <= self._rules.memory_types):
            _refuse(line, f"entry {seq} asks for what there is not")

    def _check_relations(self, event: UnitRecorded, texts: UnitTexts, seq: int, line: int) -> None:
        if not len(event.relations) == len(texts.targets) == len(texts.descriptions):
            _refuse(line, f"the relations of entry {seq} and their texts do not match")

    async def _check_name(self, kind: NameKind, texts: NameText, line: int) -> None:
        digest = self._name_digest(kind, texts.name)
        if digest in self._names or await self._store.views.name(kind, digest) is not None:
            _refuse(line, "a name is coined a second time")
        self._names.add(digest)


def _is_plain(event: AccessRefused | RetentionSet | SecretChanged | EntryWritten | UnitsPurged) -> bool:
    """An event holds no text from outside: what was asked for is of our own lists."""
    if isinstance(event, EntryWritten):
        return event.run is None or bool(_RUN.fullmatch(event.run))
    is_ours = event.credential is None or bool(_CREDENTIAL.fullmatch(event.credential))
    if isinstance(event, RetentionSet | SecretChanged | UnitsPurged):
        return is_ours
    is_known = event.asked in LEAST_TO or event.asked in OPERATION_LEVELS
    return is_known and is_ours and event.code in _REFUSALS


def _refuse(line: int, why: str) -> NoReturn:
    raise InvalidPayload(f"line {line}: {why}.", suggested_action="Import what `fieldstone export` wrote, unchanged.")
