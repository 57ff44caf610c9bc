"""One field's store: the log, the texts beside it and the views, written in one transaction."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from fieldstone.ports.log import ContentStore, EventLog, FieldKey, StoredEntry, StoredText
from fieldstone.ports.marks import Marks
from fieldstone.ports.replies import RememberedReply, Replies
from fieldstone.ports.text_index import TextIndex

if TYPE_CHECKING:  # both bring numpy, and a command's help should not wait for it
    from fieldstone.ports.vectors import VectorStore
    from fieldstone.ports.views import Change, Views


class StoreTooNew(Exception):
    """The store was written by a newer version of Fieldstone. Upgrade Fieldstone to open it."""


class UnknownField(Exception):
    """The store holds no field of this name."""


class Commit(NamedTuple):
    """All that one group of requests changes. It is written whole or not at all."""

    entries: Sequence[StoredEntry] = ()
    texts: Sequence[StoredText] = ()
    changes: Sequence[Change] = ()
    replies: Sequence[RememberedReply] = ()
    erased_texts: Sequence[int] = ()


class Store(Protocol):
    """When `commit` returns, the commit is on disk and visible to every read; when it raises, nothing of it is.

    It raises `StorageFull` where there is no room, and `ValueError` where `entries` do not continue the log: a store
    keeps the log dense whatever its callers do.
    """

    @property
    def key(self) -> FieldKey: ...

    @property
    def log(self) -> EventLog: ...

    @property
    def texts(self) -> ContentStore: ...

    @property
    def views(self) -> Views: ...

    @property
    def replies(self) -> Replies: ...

    @property
    def text_index(self) -> TextIndex: ...

    @property
    def marks(self) -> Marks: ...

    @property
    def vectors(self) -> VectorStore: ...

    @property
    def description(self) -> str:
        """For people: what kind of store, and where."""
        ...

    @property
    def durable(self) -> bool: ...

    @property
    def digest_key(self) -> bytes:
        """The store's own key for digests of names and messages. It never leaves the store."""
        ...

    async def commit(self, commit: Commit) -> None: ...

    async def replace_views(self, changes: AsyncIterator[Sequence[Change]]) -> None:
        """Throw every view row away and build them from these changes, in one transaction."""
        ...

    async def bytes_used(self) -> int: ...

    async def close(self) -> None: ...
