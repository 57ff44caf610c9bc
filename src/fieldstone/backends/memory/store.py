"""Fields in memory."""

import secrets
from collections.abc import AsyncIterator, Sequence

from fieldstone.backends.memory.cold import MemoryCold
from fieldstone.backends.memory.log import MemoryContent, MemoryLog
from fieldstone.backends.memory.marks import MemoryMarks
from fieldstone.backends.memory.replies import MemoryReplies
from fieldstone.backends.memory.text_index import MemoryTextIndex
from fieldstone.backends.memory.vectors import MemoryVectors
from fieldstone.backends.memory.views import MemoryViews
from fieldstone.core.errors import StorageFull
from fieldstone.ports.lease import Holder
from fieldstone.ports.log import FieldKey
from fieldstone.ports.store import Commit, FieldOpen, UnknownField
from fieldstone.ports.views import Change


class Room:
    """What fields may take together."""

    def __init__(self, max_bytes: int | None = None) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0

    def take(self, size: int, *, makes_room: bool = False) -> None:
        """So many more bytes, or fewer. What makes room is never refused."""
        if self._max_bytes is not None and size > 0 and not makes_room and self._bytes + size > self._max_bytes:
            raise StorageFull
        self._bytes += size


class MemoryStores:
    """A field that is closed stays here, so that it can be opened again."""

    def __init__(self, *, max_bytes: int | None = None) -> None:
        self._room = Room(max_bytes)
        self._made: dict[FieldKey, MemoryStore] = {}

    async def fields(self) -> Sequence[FieldKey]:
        return sorted(self._made)

    async def tenants(self) -> Sequence[str]:
        return sorted({key.tenant for key in await self.fields()})

    async def open(self, key: FieldKey, *, create: bool = True) -> "MemoryStore":
        store = self._made.get(key)
        if store is None:
            if not create:
                raise UnknownField(f"There is no field {key.field!r}.")
            store = self._made[key] = MemoryStore(key, room=self._room)
        elif not store.closed:
            raise FieldOpen(f"{key.field!r} of {key.tenant!r} is open already.")
        store.closed = False
        return store

    def announce(self, holder: Holder) -> None:
        """Nothing to do: nobody else can want this place."""

    async def close(self) -> None:
        for store in self._made.values():
            await store.close()


class MemoryStore:
    description = "memory"
    durable = False

    def __init__(self, key: FieldKey, *, room: Room | None = None) -> None:
        self.key = key
        self.closed = False
        self.digest_key = secrets.token_bytes(32)
        self.log = MemoryLog()
        self.cold = MemoryCold()
        self.texts = MemoryContent(self.cold)
        self.views = MemoryViews()
        self.replies = MemoryReplies()
        self.text_index = MemoryTextIndex()
        self.marks = MemoryMarks()
        self.vectors = MemoryVectors(self._take)
        self._room = room or Room()
        self._bytes = 0

    async def commit(self, commit: Commit) -> None:
        size = sum(len(entry.body) for entry in commit.entries) + sum(len(text.body) for text in commit.texts)
        erased = (self.texts.texts.get(seq) for seq in set(commit.erased_texts))
        size -= sum(len(text.body) for text in erased if text is not None)
        head = await self.log.head()
        if any(entry.seq != seq for seq, entry in enumerate(commit.entries, head.seq + 1)):
            raise ValueError(f"entry {commit.entries[0].seq} does not continue the log, whose head is {head.seq}")
        self._take(size, makes_room=commit.makes_room)
        self.log.entries.extend(commit.entries)
        self.texts.texts.update({text.seq: text for text in commit.texts})
        for text in commit.replaced_texts:
            self.texts.replace(text)
        self.replies.remembered.update({reply.key: reply for reply in commit.replies})
        for change in commit.changes:
            self.views.apply(change)
        for seq in commit.erased_texts:
            self.texts.texts.pop(seq, None)
            self.views.drop_hint(seq)

    async def replace_views(self, changes: AsyncIterator[Sequence[Change]]) -> None:
        views = MemoryViews()
        async for batch in changes:
            for change in batch:
                views.apply(change)
        self.views.__dict__.update(views.__dict__)  # others hold this object, so its inside is what changes

    async def has_every_view(self) -> bool:
        return True

    async def move_units(self, *, limit: int, at_once: bool = True) -> int:
        return 0  # memory is neither hot nor cold

    async def scour(self) -> bool:
        return True  # nothing is left of what is gone

    async def bytes_used(self) -> int:
        return self._bytes + await self.cold.bytes_used()

    async def close(self) -> None:
        self.closed = True

    def _take(self, size: int, *, makes_room: bool = False) -> None:
        self._room.take(size, makes_room=makes_room)
        self._bytes += size
