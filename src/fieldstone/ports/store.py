"""One field's store: the log, the texts beside it and the views, written in one transaction."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from fieldstone.ports.cold import ColdStore
from fieldstone.ports.lease import Holder
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


class FieldOpen(Exception):
    """The field is open already. A log has one that appends to it: use the store that is open, or close it first."""


class Commit(NamedTuple):
    """All that one group of requests changes. It is written whole or not at all."""

    entries: Sequence[StoredEntry] = ()
    texts: Sequence[StoredText] = ()
    changes: Sequence[Change] = ()
    replies: Sequence[RememberedReply] = ()
    erased_texts: Sequence[int] = ()
    replaced_texts: Sequence[StoredText] = ()
    makes_room: bool = False  # archive and purge: a full store keeps some room back for these


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
    def texts(self) -> ContentStore:
        """Wherever they lie, hot or cold."""
        ...

    @property
    def cold(self) -> ColdStore: ...

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

    async def has_every_view(self) -> bool:
        """Whether no view row is missing: those of archived units may lie in a file that is lost. They are replaced."""
        ...

    async def move_units(self, *, limit: int, at_once: bool = True) -> int:
        """Rows of archived units go to cold storage, oldest first, at most so many; how many did. 0: none are left.

        `views` reads them as before. The copy is on disk before the row goes; one that changes comes back by itself,
        and goes again with the next that are moved. A row that is restored leaves no copy once none are left. Without
        `at_once` rows may go with the commits that archive others next, and those of the last ones later.
        """
        ...

    async def scour(self) -> bool:
        """Overwrite what replaced and deleted rows left in journals, free pages and indexes.

        False where a reader of an older state is open: its pages are overwritten once it is gone.
        """
        ...

    async def bytes_used(self) -> int: ...

    async def close(self) -> None: ...


class Place(Protocol):
    """Where fields lie, held by this process."""

    def announce(self, holder: Holder) -> None:
        """Tell whoever wants the place next where its holder can be reached."""
        ...

    async def tenants(self) -> Sequence[str]:
        """Whose fields lie here, sorted."""
        ...

    async def close(self) -> None:
        """Close the fields that are still open, and give the place back."""
        ...


class Stores(Place, Protocol):
    """The fields of one place, held by one process: a file, say, and whatever their stores share of it.

    Each field is open once, or not. What happens to the one is nothing to the others: they may write at the same time,
    and closing one leaves the rest open.
    """

    async def fields(self) -> Sequence[FieldKey]:
        """Those that are there, open or not, sorted."""
        ...

    async def open(self, key: FieldKey, *, create: bool = True) -> Store:
        """One that was closed before has what it had. Raises `FieldOpen`, and `UnknownField` where none is made."""
        ...
