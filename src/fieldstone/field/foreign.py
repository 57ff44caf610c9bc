"""Entries from outside, checked as if they had been decided here: what they say must be possible after what was said.

The hash chain proves that an export is whole, not that a field wrote it: anyone can continue a chain.
"""

import re
from typing import Final, NoReturn

from msgspec import Struct

from fieldstone.core.errors import InvalidPayload
from fieldstone.core.events import (
    AgentRegistered,
    AgentTexts,
    AnyEvent,
    ConflictDetected,
    Entry,
    NameCoined,
    NameText,
    TextBundle,
    UnitCommitted,
    UnitRecorded,
    UnitTexts,
    decode_entry,
)
from fieldstone.core.limits import MAX_AUTHORITY, MAX_EPOCH
from fieldstone.core.validate import Rules
from fieldstone.ports.store import Store
from fieldstone.projections.views import NameDigest

MOST_MS: Final = 253_402_300_799_999  # the end of the year 9999, past which no timestamp can be written
EPOCH_ROOM: Final = 1_000_000_000  # below the last epoch: an import must leave the clock room to go on

_UNIT_ID: Final = re.compile(r"mem-[0-9a-f]{32}")
_CONFLICT_ID: Final = re.compile(r"conf-[0-9a-f]{32}")
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
}
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

    async def check(self, entry: Entry, texts: TextBundle | None, line: int) -> None:
        self._check_time(entry, line)
        await self._check_references(entry, line)
        expected = _TEXTS.get(type(entry.event))
        if expected is not None and not isinstance(texts, expected):
            _refuse(line, f"entry {entry.seq} has no text")
        match entry.event:
            case UnitRecorded() as event if isinstance(texts, UnitTexts):
                await self._check_unit(event, texts, entry, line)
            case NameCoined() as event if isinstance(texts, NameText):
                await self._check_name(event, texts, line)
            case ConflictDetected(id=conflict_id) if not _CONFLICT_ID.fullmatch(conflict_id):
                _refuse(line, f"entry {entry.seq} has an id that no field makes")
            case AgentRegistered(authority=authority) if not 0 <= authority <= MAX_AUTHORITY:
                _refuse(line, f"entry {entry.seq} has an authority that there is not")
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
        for number, kind in numbers:
            if number is not None and not isinstance(await self._event(number), kind):
                _refuse(line, f"entry {entry.seq} refers to entry {number}, which is not what it should be")

    async def _event(self, number: int) -> AnyEvent | None:
        if number not in self._events:
            found = await self._store.log.read(after=number - 1, limit=1) if number > 0 else ()
            stored = found[0] if found and found[0].seq == number else None
            self._events[number] = decode_entry(stored.body).event if stored else None
        return self._events[number]

    async def _check_unit(self, event: UnitRecorded, texts: UnitTexts, entry: Entry, line: int) -> None:
        if not _UNIT_ID.fullmatch(event.id) or event.id in self._ids or await self._store.views.unit(event.id):
            _refuse(line, f"the unit of entry {entry.seq} has an id that is taken, or that no field makes")
        if event.type not in self._rules.memory_types:
            _refuse(line, f"the unit of entry {entry.seq} is of a type that this field does not know")
        if event.score is not None and not 0 <= event.score <= 1:
            _refuse(line, f"the unit of entry {entry.seq} has a score that there is not")
        if not len(event.relations) == len(texts.targets) == len(texts.descriptions):
            _refuse(line, f"the relations of entry {entry.seq} and their texts do not match")
        self._ids.add(event.id)

    async def _check_name(self, event: NameCoined, texts: NameText, line: int) -> None:
        digest = self._name_digest(event.of, texts.name)
        if digest in self._names or await self._store.views.name(event.of, digest) is not None:
            _refuse(line, "a name is coined a second time")
        self._names.add(digest)


def _refuse(line: int, why: str) -> NoReturn:
    raise InvalidPayload(f"line {line}: {why}.", suggested_action="Import what `fieldstone export` wrote, unchanged.")
