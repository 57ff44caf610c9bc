"""Export and import: the log and its texts as JSON lines, entry by entry, with the hashes that prove them.

An import continues an empty field, or one that holds the beginning of the same history: entries that are there
already are skipped, so an import that broke off goes on where it was. Another history is refused.

A text that was replaced stands beside the entry that says so, whose hash proves it: the original one is nowhere.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Final

from msgspec import MsgspecError, Raw, Struct, json

from fieldstone.core.chain import link, seal
from fieldstone.core.errors import InvalidPayload, SecretLeakage
from fieldstone.core.events import (
    EXPENDABLE_TEXTS,
    AnyEvent,
    ContentReplaced,
    Entry,
    TextBundle,
    UnitsPurged,
    UnitTexts,
    bundle_type,
    decode_entry,
    decode_texts,
)
from fieldstone.core.validate import Rules
from fieldstone.field.foreign import Clocks, ForeignEntries
from fieldstone.ports.log import Head, StoredEntry, StoredText
from fieldstone.ports.store import Commit, Store
from fieldstone.ports.views import Change, PutUnit
from fieldstone.projections.views import NameDigest, project
from fieldstone.redact import Harness

BATCH_ENTRIES: Final = 1_000
LINES_A_TURN: Final = 100
NO_TEXT: Final = Raw(b"null")


class Line(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One entry on its way between two fields."""

    entry: Raw
    hash: str
    salt: str | None = None
    text: Raw = NO_TEXT  # not `Raw | None`: in a union msgspec takes nothing but the null
    replaced: bool = False  # the text stands beside a later entry, or a later one says that it was purged


class Imported(Struct, frozen=True):
    imported: int
    skipped: int


class Taken(Struct, frozen=True):
    """What an import brought, for those who keep state of their own."""

    imported: Imported
    changes: list[Change]
    unit_texts: dict[int, UnitTexts]
    purged: list[UnitsPurged]
    head: Head
    epoch: int

    def late_texts(self) -> dict[int, UnitTexts]:
        """Those of units that came before, and whose texts were replaced."""
        new = {change.row.seq for change in self.changes if isinstance(change, PutUnit)}
        return {seq: texts for seq, texts in self.unit_texts.items() if seq not in new}


async def export(store: Store) -> AsyncIterator[bytes]:
    """Lines, in batches that end with a newline: the history as it is now, however long the taking takes."""
    after, end = 0, (await store.log.head()).seq
    while entries := await store.log.read(after=after, limit=min(BATCH_ENTRIES, end - after)):
        decoded = [decode_entry(stored.body) for stored in entries]
        texts = await store.texts.get([_beside(entry) for entry in decoded])
        lines = (_line(*each, texts.get(_beside(each[1]))) for each in zip(entries, decoded, strict=True))
        yield b"".join(json.encode(line) + b"\n" for line in lines)
        after = entries[-1].seq


async def import_lines(
    store: Store,
    lines: Iterable[bytes],
    head: Head,
    clocks: Clocks,
    rules: Rules,
    name_digest: NameDigest,
    harness: Harness,
) -> Taken:
    """Take in what continues this field's history. All of it is checked before any of it is written."""
    entries: list[StoredEntry] = []
    texts: list[StoredText] = []
    replaced: list[StoredText] = []
    changes: list[Change] = []
    unit_texts: dict[int, UnitTexts] = {}
    purged: list[UnitsPurged] = []
    foreign = ForeignEntries(store, clocks, rules, name_digest)
    skipped, epoch = 0, clocks.epoch
    for number, raw in enumerate(lines, start=1):
        if not raw.strip():
            continue
        line, entry, stored = _read(raw, number)
        if entry.seq <= head.seq and not entries:
            await _check_known(store, stored, number)
            skipped += 1
            continue
        head = _check_next(stored, entry, head, number)
        _refuse_secrets(stored.body, entry, number, harness)
        told = await foreign.event(_beside(entry)) if isinstance(entry.event, ContentReplaced) else entry.event
        bundle = _check_text(line, entry, told, number, harness, replaced if told is not entry.event else texts)
        await foreign.check(entry, bundle, number, replaced=line.replaced)
        entries.append(stored)
        if isinstance(entry.event, UnitsPurged):
            purged.append(entry.event)
        if isinstance(bundle, UnitTexts):
            unit_texts[_beside(entry)] = bundle
        changes.extend(project(entry, bundle, name_digest))
        epoch = entry.epoch
        if number % LINES_A_TURN == 0:
            await asyncio.sleep(0)  # a long import lets others have their turn
    if entries:
        gone = sorted({seq for event in purged for seq in event.texts})
        await store.commit(Commit(entries, texts, changes, erased_texts=gone, replaced_texts=replaced))
    return Taken(Imported(len(entries), skipped), changes, unit_texts, purged, head, epoch)


def _beside(entry: Entry) -> int:
    """The entry beside which the text of this line lies."""
    return entry.event.entry if isinstance(entry.event, ContentReplaced) else entry.seq


def _text_hash(entry: Entry) -> str | None:
    return entry.event.text if isinstance(entry.event, ContentReplaced) else entry.text


def _line(stored: StoredEntry, entry: Entry, text: StoredText | None) -> Line:
    body, link = Raw(stored.body), stored.hash.hex()
    if text is None:
        is_missing = entry.text is not None and not isinstance(entry.event, EXPENDABLE_TEXTS)
        return Line(body, link, replaced=is_missing)
    if seal(text.salt, text.body) != _text_hash(entry):
        return Line(body, link, replaced=True)
    return Line(body, link, text.salt.hex(), Raw(text.body))


def _read(raw: bytes, number: int) -> tuple[Line, Entry, StoredEntry]:
    try:
        line = json.decode(raw, type=Line)
        entry = decode_entry(bytes(line.entry))
        if entry.seq < 1:
            raise ValueError("entries count from 1")
        return line, entry, StoredEntry(entry.seq, bytes(line.entry), bytes.fromhex(line.hash))
    except (MsgspecError, ValueError) as error:
        raise InvalidPayload(
            f"line {number} is not a line of an export.", suggested_action="Import what `fieldstone export` wrote."
        ) from error


async def _check_known(store: Store, stored: StoredEntry, number: int) -> None:
    known = await store.log.read(after=stored.seq - 1, limit=1)
    if not known or known[0].hash != stored.hash:
        raise InvalidPayload(
            f"line {number}: this field has another history. Import into an empty field, or one made from this export."
        )


def _check_next(stored: StoredEntry, entry: Entry, head: Head, number: int) -> Head:
    if entry.seq != head.seq + 1:
        raise InvalidPayload(f"line {number}: entry {entry.seq} does not follow entry {head.seq}.")
    if link(head.hash, stored.body) != stored.hash:
        raise InvalidPayload(f"line {number}: the hash of entry {entry.seq} does not match what it holds.")
    return Head(entry.seq, stored.hash)


def _check_text(
    line: Line, entry: Entry, told: AnyEvent | None, number: int, harness: Harness, texts: list[StoredText]
) -> TextBundle | None:
    """`told`: the event whose text it is."""
    if line.text == NO_TEXT or line.salt is None:
        if _text_hash(entry) is not None and not (line.replaced or isinstance(told, EXPENDABLE_TEXTS)):
            raise InvalidPayload(f"line {number}: the text of entry {entry.seq} is missing.")
        return None
    if told is None:
        raise InvalidPayload(f"line {number}: entry {entry.seq} replaces the text of an entry that is not there.")
    try:
        stored = StoredText(_beside(entry), bytes.fromhex(line.salt), bytes(line.text))
        bundle = decode_texts(stored.body, bundle_type(told))
    except (MsgspecError, ValueError) as error:
        raise InvalidPayload(f"line {number}: the text of entry {entry.seq} cannot be read.") from error
    if seal(stored.salt, stored.body) != _text_hash(entry):
        raise InvalidPayload(f"line {number}: the text of entry {entry.seq} is not the one that was written.")
    _refuse_secrets(stored.body, entry, number, harness)
    texts.append(stored)
    return bundle


def _refuse_secrets(body: bytes, entry: Entry, number: int, harness: Harness) -> None:
    """An export is text from outside like any other. It cannot be rewritten here without breaking its chain."""
    if harness.clean_one(body.decode()).found:
        raise SecretLeakage(f"line {number}: entry {entry.seq} holds what looks like a secret.")
