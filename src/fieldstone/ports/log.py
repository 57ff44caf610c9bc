"""The append-only log, and the texts that lie beside it."""

from collections.abc import Sequence
from typing import NamedTuple, NewType, Protocol

from msgspec import Struct

StreamName = NewType("StreamName", str)
FIELD_STREAM = StreamName("field")

GENESIS_HASH = bytes(32)


class FieldKey(NamedTuple):
    """Whose memory it is. Every row, index and cache is scoped by it."""

    tenant: str
    field: str


class StoredEntry(Struct, frozen=True, gc=False):
    """An entry as it lies on disk. `hash` covers the entry before and `body`, byte for byte."""

    seq: int
    body: bytes
    hash: bytes


class StoredText(Struct, frozen=True, gc=False):
    """The encoded text bundle of entry `seq`. Its hash stands in the entry."""

    seq: int
    salt: bytes
    body: bytes


class Head(NamedTuple):
    seq: int
    hash: bytes


class EventLog(Protocol):
    """The entries of one field's stream: dense from 1, never rewritten, never removed.

    Appending is the business of `Store.commit`, which writes entries, texts and views in one transaction.
    """

    async def head(self) -> Head:
        """The last entry's seq and hash; 0 and `GENESIS_HASH` where there is none."""
        ...

    async def read(self, *, after: int, limit: int) -> Sequence[StoredEntry]:
        """Entries with seq > `after`, ascending, at most `limit`. What lies there, undecoded."""
        ...


class ContentStore(Protocol):
    """Texts beside the log, in erasable form."""

    async def get(self, seqs: Sequence[int]) -> dict[int, StoredText]:
        """The bundles of these entries; those that are gone or never were are left out."""
        ...

    async def read(self, *, after: int, limit: int) -> Sequence[StoredText]:
        """Bundles with seq > `after`, ascending, at most `limit`."""
        ...
