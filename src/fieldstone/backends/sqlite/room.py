"""What is kept back of a file with a size cap: archive and purge can write what they have to when it is full."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import apsw

from fieldstone.core.errors import StorageFull

NO_CAP_PAGES: Final = 0xFFFFFFFE
KEPT_SHARE: Final = 32  # one page of so many
KEPT_PAGES: Final = range(8, 257)  # at least, and at most 1 MiB: a batch's log entries, while its texts go


class Room:
    """SQLite refuses only what would make the file larger. Pages that were freed are there for whoever comes first, so
    everyday writes are refused a little earlier: as soon as they would take more pages than the cap less those kept."""

    def __init__(self) -> None:
        self._cap_pages: int | None = None

    def is_bounded(self, writer: apsw.Connection) -> bool:
        """Whether the file has a cap at all: without one there is nothing to look at."""
        return self._most_pages(writer) is not None

    @contextmanager
    def for_everyday(self, writer: apsw.Connection) -> Iterator[None]:
        """Around the statements of a transaction. One that takes no more pages than before goes on at any time."""
        most = self._most_pages(writer)
        if most is None:
            yield
            return
        before = _pages_in_use(writer)
        yield
        now = _pages_in_use(writer)
        if now > most and now > before:
            raise StorageFull

    def _most_pages(self, writer: apsw.Connection) -> int | None:
        if self._cap_pages is None:
            self._cap_pages = writer.pragma("max_page_count")
        if self._cap_pages >= NO_CAP_PAGES:
            return None
        return self._cap_pages - min(max(self._cap_pages // KEPT_SHARE, KEPT_PAGES.start), KEPT_PAGES.stop - 1)


def _pages_in_use(writer: apsw.Connection) -> int:
    pages: int = writer.execute("PRAGMA page_count").get
    free: int = writer.execute("PRAGMA freelist_count").get
    return pages - free
