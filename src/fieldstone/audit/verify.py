"""Is the history whole? Every entry, every link, every text, against what was written."""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import MsgspecError, Struct

from fieldstone.core.chain import link, seal
from fieldstone.core.events import EXPENDABLE_TEXTS, Entry, decode_entry
from fieldstone.ports.log import GENESIS_HASH, StoredEntry, StoredText
from fieldstone.ports.store import Store

BATCH_ENTRIES: Final = 1_000

Progress = Callable[[int], None]


class Fault(Struct, frozen=True):
    """The first thing that is not as it was written."""

    seq: int
    part: str  # entry, text or store
    problem: str


class Verification(Struct, frozen=True):
    ok: bool
    entries: int
    texts: int
    head: str
    first_bad: Fault | None


async def verify(store: Store, progress: Progress = lambda done: None) -> Verification:
    """Walk the log from its first entry. It stops at the first fault and says where it is."""
    checked = _Checked()
    expected = await store.log.head()
    try:
        fault = await _walk(store, checked, progress)
    except _Unreadable as unreadable:
        fault = Fault(checked.seq + 1, "store", str(unreadable))
    if fault is None and (checked.seq, checked.hash) != expected:
        fault = Fault(checked.seq + 1, "entry", f"the log ends at {checked.seq}, but its head was {expected.seq}")
    return Verification(fault is None, checked.seq, checked.texts, checked.hash.hex(), fault)


class _Checked:
    """How far the walk is, and what it found good."""

    def __init__(self) -> None:
        self.seq = 0
        self.hash = GENESIS_HASH
        self.texts = 0


class _Unreadable(Exception):
    """The store itself cannot read what lies there."""


async def _walk(store: Store, checked: _Checked, progress: Progress) -> Fault | None:
    while True:
        entries, texts = await _read(store, checked.seq)
        texts_by_seq = {text.seq: text for text in texts}
        for stored in entries:
            fault = _check_entry(stored, checked) or _check_text(stored, texts_by_seq.pop(stored.seq, None), checked)
            if fault:
                return fault
            checked.seq, checked.hash = stored.seq, stored.hash
        if texts_by_seq:
            return Fault(min(texts_by_seq), "text", "a text lies beside no entry")
        progress(checked.seq)
        if len(entries) < BATCH_ENTRIES:
            return None


async def _read(store: Store, after: int) -> tuple[Sequence[StoredEntry], list[StoredText]]:
    try:
        entries = await store.log.read(after=after, limit=BATCH_ENTRIES)
        last_batch = len(entries) < BATCH_ENTRIES
        texts = await store.texts.read(after=after, limit=BATCH_ENTRIES)
    except Exception as error:  # why: whatever a backend raises on damaged pages, it means that this place is bad
        raise _Unreadable(f"the store cannot be read after entry {after}: {error}") from error
    end = entries[-1].seq if entries and not last_batch else None
    return entries, [text for text in texts if end is None or text.seq <= end]


def _check_entry(stored: StoredEntry, checked: _Checked) -> Fault | None:
    if stored.seq != checked.seq + 1:
        return Fault(checked.seq + 1, "entry", f"it is missing: the next one that is there is {stored.seq}")
    if link(checked.hash, stored.body) != stored.hash:
        return Fault(stored.seq, "entry", "its hash does not match what lies there")
    entry = _decoded(stored)
    if entry is None or entry.seq != stored.seq:
        return Fault(stored.seq, "entry", "it cannot be read as an entry of this place")
    return None


def _check_text(stored: StoredEntry, text: StoredText | None, checked: _Checked) -> Fault | None:
    entry = _decoded(stored)
    if entry is None:
        return None
    if text is None:
        if entry.text is not None and not isinstance(entry.event, EXPENDABLE_TEXTS):
            return Fault(stored.seq, "text", "its text is missing")
        return None
    checked.texts += 1
    if entry.text is None:
        return Fault(stored.seq, "text", "a text lies beside an entry that has none")
    if seal(text.salt, text.body) != entry.text:
        return Fault(stored.seq, "text", "its text is not the one that was written")
    return None


def _decoded(stored: StoredEntry) -> Entry | None:
    try:
        return decode_entry(stored.body)
    except MsgspecError:
        return None
