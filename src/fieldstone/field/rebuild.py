"""Views are thrown away and built again from log and texts, by the rule that every write goes through."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

from msgspec import Struct

from fieldstone.core.events import (
    ContextAttuned,
    Entry,
    EntryWritten,
    NameCoined,
    TextBundle,
    bundle_type,
    decode_entry,
    decode_texts,
)
from fieldstone.ports.log import StoredText
from fieldstone.ports.store import Store
from fieldstone.ports.views import Change
from fieldstone.projections.text_follower import TextFollower
from fieldstone.projections.views import NameDigest, project

BATCH_ENTRIES: Final = 5_000

Progress = Callable[[int], None]


class Rebuilt(Struct, frozen=True):
    entries: int
    checksum: str
    unchanged: bool  # the views were already what the log says


async def rebuild(
    store: Store,
    name_digest: NameDigest,
    progress: Progress = lambda done: None,
    *,
    follower: TextFollower | None = None,
) -> Rebuilt:
    """An open field gives its `follower`: what is waiting there for the index must not be in it twice."""
    before = await _checksum_if_readable(store)
    counted = [0]
    await store.replace_views(_changes(store, name_digest, counted, progress))
    await (follower or TextFollower(store)).start_over()
    after = await store.views.checksum()
    return Rebuilt(counted[0], after, before == after)


async def _checksum_if_readable(store: Store) -> str | None:
    try:
        return await store.views.checksum()
    except Exception:  # why: whatever a backend raises on damaged rows, they are about to be made anew
        return None


async def _changes(
    store: Store, name_digest: NameDigest, counted: list[int], progress: Progress
) -> AsyncIterator[Sequence[Change]]:
    while entries := await store.log.read(after=counted[0], limit=BATCH_ENTRIES):
        decoded = [decode_entry(stored.body) for stored in entries]
        texts = await store.texts.get([entry.seq for entry in decoded if _needs_texts(entry)])
        changes: list[Change] = []
        for entry in decoded:
            changes.extend(project(entry, _bundle(entry, texts), name_digest))
        counted[0] = entries[-1].seq
        progress(counted[0])
        yield changes


def _needs_texts(entry: Entry) -> bool:
    return isinstance(entry.event, NameCoined | ContextAttuned | EntryWritten)


def _bundle(entry: Entry, texts: dict[int, StoredText]) -> TextBundle | None:
    stored = texts.get(entry.seq)
    if stored is None:
        return None
    return decode_texts(stored.body, bundle_type(entry.event))
