"""One history in two stores at once: whatever is asked, memory and SQLite must answer the same and hold the same."""

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from fieldstone.backends.memory.store import MemoryStore
from fieldstone.backends.memory.vault import MemoryVault
from fieldstone.backends.sqlite.store import SqliteStore
from fieldstone.core.errors import FieldError
from fieldstone.core.events import AccessRefused, ClockRaised, ConflictsListed, ContextAttuned, decode_entry
from fieldstone.core.replies import Reply
from fieldstone.core.requests import Message
from fieldstone.field.field import LocalField
from fieldstone.field.opening import open_local
from fieldstone.field.options import Models, Options
from fieldstone.field.secrets import Secrets
from fieldstone.ports.log import Head
from fieldstone.ports.store import Store
from fieldstone.redact import shared_harness
from fieldstone.testing import KEY, ManualClock, SeededIds, WordCounter

T = TypeVar("T")
Outcome = Reply | FieldError

SHARED_MEMORY: Final = Path("/dev/shm")  # a disk that a thousand examples do not wear out
READS: Final = (ClockRaised, ContextAttuned, ConflictsListed, AccessRefused)


class Place:
    """One store with its field, and its own clock and ids: the same seed for both twins."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.clock = ManualClock()
        self.ids = SeededIds(seed=1)
        self.field: LocalField

    async def open(self) -> None:
        self.field = await open_local(
            self.store,
            clock=self.clock,
            ids=self.ids,
            harness=shared_harness,
            secrets=Secrets(MemoryVault()),
            models=Models(WordCounter()),
            options=Options(detection_timeout_ms=60_000),
        )


class Twins:
    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._folder = Path(tempfile.mkdtemp(dir=SHARED_MEMORY if SHARED_MEMORY.is_dir() else None))
        self.sqlite = self._run(self._open_sqlite())
        memory = MemoryStore(KEY)
        memory.digest_key = self.sqlite.store.digest_key  # so that digests of names, and with them checksums, agree
        memory.durable = True  # as REGISTER tells the agents
        self.memory = Place(memory)
        self._run(self.memory.open())

    @property
    def places(self) -> tuple[Place, Place]:
        return self.memory, self.sqlite

    def send(self, message: Message) -> Outcome:
        [outcome] = self.send_together([message])
        return outcome

    def send_together(self, messages: Sequence[Message]) -> list[Outcome]:
        """All at once, as concurrent callers would. What is refused leaves nothing."""
        answers: list[list[Outcome]] = []
        for place in self.places:
            before = self._run(place.store.log.head())
            outcomes = self._run(_gathered(place.field, messages))
            if all(isinstance(outcome, FieldError) for outcome in outcomes):
                assert self._run(_only_reads(place.store, before)), f"a refusal left something: {outcomes}"
            answers.append(outcomes)
        in_memory, in_sqlite = answers
        assert list(map(_comparable, in_memory)) == list(map(_comparable, in_sqlite))
        return in_sqlite

    def ask(self, question: Any) -> Any:
        """The same question to both; the one answer."""
        in_memory, in_sqlite = (self._run(question(place)) for place in self.places)
        assert in_memory == in_sqlite
        return in_sqlite

    def advance(self, ms: int) -> None:
        for place in self.places:
            place.clock.advance(ms)

    def reopen(self) -> None:
        self._run(self.memory.field.close())  # its store has nothing to close, and stays
        self._run(self.memory.open())
        self._run(self.sqlite.field.close())
        self._run(self._reopen_sqlite())

    def close(self) -> None:
        for place in self.places:
            self._run(place.field.close())
        self._runner.close()
        shutil.rmtree(self._folder)

    async def _open_sqlite(self) -> Place:
        place = Place(SqliteStore.open(self._folder / "field.db", KEY))
        await place.open()
        return place

    async def _reopen_sqlite(self) -> None:
        self.sqlite.store = SqliteStore.open(self._folder / "field.db", KEY)
        await self.sqlite.open()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)


async def _gathered(field: LocalField, messages: Sequence[Message]) -> list[Outcome]:
    outcomes = await asyncio.gather(*(field.send(message) for message in messages), return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException) and not isinstance(outcome, FieldError):
            raise outcome
    return [
        outcome for outcome in outcomes if not isinstance(outcome, BaseException) or isinstance(outcome, FieldError)
    ]


async def _only_reads(store: Store, before: Head) -> bool:
    """Reads leave their events with the next group, also when nothing of that group is accepted."""
    entries = await store.log.read(after=before.seq, limit=10_000)
    return all(isinstance(decode_entry(entry.body).event, READS) for entry in entries)


def _comparable(outcome: Outcome) -> object:
    return (outcome.code, outcome.message) if isinstance(outcome, FieldError) else outcome
