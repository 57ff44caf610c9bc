"""Is the history whole? Every entry, every link, every text, against what was written."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from msgspec import MsgspecError, Struct

from fieldstone.core.chain import link, seal
from fieldstone.core.events import EXPENDABLE_TEXTS, AnyEvent, ContentReplaced, Entry, UnitsPurged, decode_entry
from fieldstone.ports.log import GENESIS_HASH, Head, StoredEntry, StoredText
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
    """Walk the log from its first entry. It stops at the first fault and says where it is.

    Others may write meanwhile: what they append is walked, too.
    """
    checked = _Checked()
    try:
        fault = await _walk(store, checked, progress)
        faults = (await checked.first_strange(store), checked.first_missing(), fault)
        found = [each for each in faults if each is not None]
        fault = min(found, key=lambda each: each.seq) if found else await checked.first_that_came_back(store)
    except _Unreadable as unreadable:
        fault = Fault(checked.seq + 1, "store", str(unreadable))
    entries = checked.seq if fault is None else min(checked.seq, fault.seq - 1)
    return Verification(fault is None, entries, checked.texts, checked.hash.hex(), fault)


class _Checked:
    """How far the walk is, and what it found good.

    A text that is not the one its entry was written with may have been replaced since: a later entry must say so.
    """

    def __init__(self) -> None:
        self.seq = 0
        self.hash = GENESIS_HASH
        self.texts = 0
        self.strange: dict[int, str] = {}  # entry → the hash of what lies beside it now
        self.missing: set[int] = set()  # entries whose text ought to be there
        self._replaced: dict[int, str] = {}
        self._purged: set[int] = set()

    def note(self, event: AnyEvent) -> None:
        if isinstance(event, ContentReplaced):
            self._replaced[event.entry] = event.text
        elif isinstance(event, UnitsPurged):
            self._purged.update(event.texts)

    def first_missing(self) -> Fault | None:
        """A text that is not there must have been purged."""
        missing = self.missing - self._purged
        return Fault(min(missing), "text", "its text is missing") if missing else None

    async def first_strange(self, store: Store) -> Fault | None:
        """A text may have been replaced, or purged, since the walk read it: what lies there now decides."""
        for seq, text_hash in sorted(self.strange.items()):
            if self._replaced.get(seq) == text_hash:
                continue
            text = (await store.texts.get([seq])).get(seq)
            if text is not None and seal(text.salt, text.body) != self._replaced.get(seq):
                return Fault(seq, "text", "its text is not the one that was written")
        return None

    async def first_that_came_back(self, store: Store) -> Fault | None:
        """Where a text ought to be another one by now, or none, and is still, or again, the old one."""
        back = await store.texts.get(sorted(self._purged))
        if back:
            return Fault(min(back), "text", "its text was purged, and is here again")
        there = await store.texts.get(sorted(set(self._replaced) - set(self.strange)))
        old = [seq for seq, text in sorted(there.items()) if seal(text.salt, text.body) != self._replaced[seq]]
        return Fault(old[0], "text", "its text was replaced, and is here again") if old else None


class _Unreadable(Exception):
    """The store itself cannot read what lies there."""


class _Batch(NamedTuple):
    """Read in this order. So `entries` go at least as far as `head`, and `texts` as far as `entries`."""

    head: Head
    entries: Sequence[StoredEntry]
    texts: Sequence[StoredText]


async def _walk(store: Store, checked: _Checked, progress: Progress) -> Fault | None:
    entries = BATCH_ENTRIES
    while True:
        # A long walk lets others have their turn, but not near the end: who writes in every turn would move it on.
        if entries == BATCH_ENTRIES:
            await asyncio.sleep(0)
        batch = await _read(store, checked.seq)
        entries = len(batch.entries)
        texts = {text.seq: text for text in batch.texts}
        for stored in batch.entries:
            try:
                fault = _check(stored, texts.get(stored.seq), checked)
            except TypeError:  # a damaged page gives a number or nothing where bytes were
                fault = Fault(checked.seq + 1, "entry", "what lies there is of another kind than what was written")
            if fault:
                return fault
        progress(checked.seq)
        if not batch.entries:
            fault = _check_end(batch, checked)
            if fault is None or fault.part != "text" or (await _read(store, checked.seq)).head == batch.head:
                return fault


async def _read(store: Store, after: int) -> _Batch:
    try:
        return _Batch(
            await store.log.head(),
            await store.log.read(after=after, limit=BATCH_ENTRIES),
            await store.texts.read(after=after, limit=BATCH_ENTRIES),
        )
    except Exception as error:  # why: whatever a backend raises on damaged pages, it means that this place is bad
        raise _Unreadable(f"the store cannot be read after entry {after}: {error}") from error


def _check(stored: StoredEntry, text: StoredText | None, checked: _Checked) -> Fault | None:
    if stored.seq != checked.seq + 1:
        return Fault(checked.seq + 1, "entry", f"it is missing: the next one that is there is {stored.seq}")
    if link(checked.hash, stored.body) != stored.hash:
        return Fault(stored.seq, "entry", "its hash does not match what lies there")
    entry = _decoded(stored)
    if entry is None or entry.seq != stored.seq:
        return Fault(stored.seq, "entry", "it cannot be read as an entry of this place")
    if text is not None and entry.text is None:
        return Fault(stored.seq, "text", "a text lies beside an entry that has none")
    if text is None and entry.text is not None and not isinstance(entry.event, EXPENDABLE_TEXTS):
        checked.missing.add(stored.seq)
    if text is not None and (text_hash := seal(text.salt, text.body)) != entry.text:
        checked.strange[stored.seq] = text_hash
    checked.note(entry.event)
    checked.seq, checked.hash = stored.seq, stored.hash
    checked.texts += text is not None
    return None


def _check_end(batch: _Batch, checked: _Checked) -> Fault | None:
    """No entry is left. The log's head is kept apart from its entries, so that a cut-off tail is noticed."""
    if batch.head.seq > checked.seq:
        return Fault(checked.seq + 1, "entry", f"it is missing: the log's head is {batch.head.seq}")
    if batch.head.seq < checked.seq:
        return Fault(batch.head.seq + 1, "entry", f"it lies behind the log's head, which is {batch.head.seq}")
    if batch.head.hash != checked.hash:
        return Fault(checked.seq, "entry", "its hash is not the one that the log's head has")
    if batch.texts:
        return Fault(batch.texts[0].seq, "text", "a text lies beside no entry")
    return None


def _decoded(stored: StoredEntry) -> Entry | None:
    try:
        return decode_entry(stored.body)
    except MsgspecError:
        return None
