"""Cold storage: the texts and words of archived units, out of the way of everyday reads and writes."""

from collections.abc import Sequence
from typing import Protocol

from fieldstone.ports.log import StoredText
from fieldstone.ports.text_index import TextIndex


class ForeignColdStore(Exception):
    """What lies here was archived from another store. Move it away, or bring its own store back."""


class ColdStore(Protocol):
    """Archived texts of one field, packed closely: slower to change than the hot ones, and a fraction of their size.

    A write is on disk when it returns and raises `StorageFull` where the disk has no room. It has no size cap of its
    own, so that what is archived can leave a store that is full. `Store.texts` reads hot and cold texts alike; where a
    text is in both, the hot one counts: to archive, put it here before it is erased there, and to restore the reverse.
    """

    @property
    def index(self) -> TextIndex:
        """The words of archived units. `position` is the entry up to which all that was archived is in it."""
        ...

    async def put(self, texts: Sequence[StoredText]) -> None:
        """Keep all of these or none. One that is there already is replaced."""
        ...

    async def get(self, seqs: Sequence[int]) -> dict[int, StoredText]:
        """The bundles of these entries; those that are not here are left out."""
        ...

    async def read(self, *, after: int, limit: int) -> Sequence[StoredText]:
        """Bundles with seq > `after`, ascending, at most `limit`."""
        ...

    async def erase(self, seqs: Sequence[int]) -> None:
        """Overwrite the texts of these entries, all or none. Those that are not here are passed over."""
        ...

    async def scour(self) -> bool:
        """Overwrite what erased texts and removed words left behind. False: a reader keeps an older state."""
        ...

    async def bytes_used(self) -> int: ...


def hot_and_cold(hot: Sequence[StoredText], cold: Sequence[StoredText], limit: int) -> list[StoredText]:
    """Two readings from the same place on as one, ascending, at most `limit`. Of a text in both the hot one counts."""
    texts = {text.seq: text for text in (*cold, *hot)}
    return [texts[seq] for seq in sorted(texts)[:limit]]
