"""Stores that fail when they are told to, for tests of what stands on them."""

import os
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Literal

from fieldstone.ports.cold import ColdStore
from fieldstone.ports.log import ContentStore, EventLog, FieldKey, Head, StoredEntry
from fieldstone.ports.marks import Marks
from fieldstone.ports.replies import Replies
from fieldstone.ports.store import Commit, Store
from fieldstone.ports.text_index import TextIndex
from fieldstone.ports.vectors import VectorStore
from fieldstone.ports.views import Change, Views

Strike = Callable[[], None]
Damage = Callable[[Sequence[StoredEntry]], Sequence[StoredEntry]]


def fail(error: Exception) -> Strike:
    """The commit raises this."""

    def strike() -> None:
        raise error

    return strike


def die() -> None:
    """The process ends here and now, as by kill -9: nothing is flushed, closed or said."""
    os.kill(os.getpid(), signal.SIGKILL)


class FaultyStore:
    """A store whose commits from number `at` on (the first is 1), `times` of them, are struck; by default none is.

    Struck `before`, a commit has no effect; struck `after`, it is on disk and its caller does not hear of it. With a
    `log` or a `text_index` of its own it shows that one instead of the store's.
    """

    def __init__(
        self,
        store: Store,
        *,
        at: int = 0,
        strike: Strike = die,
        when: Literal["before", "after"] = "before",
        times: int = 1,
        log: EventLog | None = None,
        text_index: TextIndex | None = None,
    ) -> None:
        self._store = store
        self._struck = range(at, at + times)
        self._strike = strike
        self._when = when
        self._log = log or store.log
        self._text_index = text_index or store.text_index
        self.commits = 0

    @property
    def key(self) -> FieldKey:
        return self._store.key

    @property
    def log(self) -> EventLog:
        return self._log

    @property
    def texts(self) -> ContentStore:
        return self._store.texts

    @property
    def cold(self) -> ColdStore:
        return self._store.cold

    @property
    def views(self) -> Views:
        return self._store.views

    @property
    def replies(self) -> Replies:
        return self._store.replies

    @property
    def text_index(self) -> TextIndex:
        return self._text_index

    @property
    def marks(self) -> Marks:
        return self._store.marks

    @property
    def vectors(self) -> VectorStore:
        return self._store.vectors

    @property
    def description(self) -> str:
        return f"{self._store.description} (faulty)"

    @property
    def durable(self) -> bool:
        return self._store.durable

    @property
    def digest_key(self) -> bytes:
        return self._store.digest_key

    async def commit(self, commit: Commit) -> None:
        self.commits += 1
        struck = self.commits in self._struck
        if struck and self._when == "before":
            self._strike()
        await self._store.commit(commit)
        if struck and self._when == "after":
            self._strike()

    async def replace_views(self, changes: AsyncIterator[Sequence[Change]]) -> None:
        await self._store.replace_views(changes)

    async def has_every_view(self) -> bool:
        return await self._store.has_every_view()

    async def move_units(self, *, limit: int, at_once: bool = True) -> int:
        return await self._store.move_units(limit=limit, at_once=at_once)

    async def scour(self) -> bool:
        return await self._store.scour()

    async def bytes_used(self) -> int:
        return await self._store.bytes_used()

    async def close(self) -> None:
        await self._store.close()


class FaultyLog:
    """A log that shows something else than what was written: `damage` says what."""

    def __init__(self, log: EventLog, damage: Damage) -> None:
        self._log = log
        self._damage = damage

    async def head(self) -> Head:
        return await self._log.head()

    async def read(self, *, after: int, limit: int) -> Sequence[StoredEntry]:
        return self._damage(await self._log.read(after=after, limit=limit))
