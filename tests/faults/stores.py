"""A small field in a file, and ways to look at it and to damage it."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal, NamedTuple

import apsw

from fieldstone.audit.verify import Fault, Verification, verify
from fieldstone.backends.memory.vault import MemoryVault
from fieldstone.backends.sqlite.store import SqliteStore
from fieldstone.core.units import Confidence
from fieldstone.field.field import LocalField
from fieldstone.field.opening import open_local
from fieldstone.field.options import Models, Options
from fieldstone.field.secrets import Secrets
from fieldstone.ports.log import StoredEntry, StoredText
from fieldstone.ports.store import Store
from fieldstone.redact import shared_harness
from fieldstone.testing import KEY, ManualClock, SeededIds, WordCounter
from tests.messages import accepted, attune, commit, discard, join, record, relation, retract

Column = Literal["log.body", "log.hash", "texts.salt", "texts.body"]
COLUMNS: Final[tuple[Column, ...]] = ("log.body", "log.hash", "texts.salt", "texts.body")
LONG_TEXT: Final = " ".join(f"word{number}" for number in range(2_000))  # more than a page: it overflows into others


class Contents(NamedTuple):
    entries: list[StoredEntry]
    texts: list[StoredText]


class Verdict(NamedTuple):
    """What a verification says, or why it could not even begin. Nothing there says ok unless all is well."""

    ok: bool
    fault: Fault | None
    contents: Contents | None = None


async def open_field(store: Store, *, ids: SeededIds | None = None, clock: ManualClock | None = None) -> LocalField:
    return await open_local(
        store,
        clock=clock or ManualClock(),
        ids=ids or SeededIds(1),
        harness=shared_harness,
        secrets=Secrets(MemoryVault()),
        models=Models(WordCounter()),
        options=Options(detection_timeout_ms=60_000),
    )


async def make_small_field(path: Path) -> None:
    field = await open_field(SqliteStore.open(path, KEY))
    await join(field, "ada", "grace")
    first = await accepted(field, record("ada", "The cache is cold.", task="t-1", session="s-1"))
    await accepted(field, record("grace", "It is warm.", relations=[relation("contradicts", first, "look again")]))
    await accepted(field, record("ada", LONG_TEXT))
    draft = await accepted(field, record("grace", "Is it?", mode="draft", confidence=None))
    await field.send(commit("grace", draft, confidence=Confidence(0.5, "a guess")))
    dropped = await accepted(field, record("grace", "No.", mode="draft", confidence=None))
    await field.send(discard("grace", dropped, reason="said before"))
    await field.send(attune("ada", "is the cache cold?"))
    await accepted(field, record("ada", "At noon it was.", relations=[relation("supersedes", first)]))
    wrong = await accepted(field, record("ada", "It is the network."))
    await field.send(retract("ada", wrong))
    for number in range(8):
        await accepted(field, record("grace", f"Reading {number}: {number * 7} ms."))
    await field.close()


async def contents_of(store: Store) -> Contents:
    return Contents(
        list(await store.log.read(after=0, limit=10_000)), list(await store.texts.read(after=0, limit=10_000))
    )


async def verdict_on(path: Path) -> Verdict:
    """Open the bare store, as `fieldstone verify` does, and verify it. Whatever is raised is a report, too."""
    try:
        store = SqliteStore.open(path, KEY, create=False)
    except Exception as error:
        return Verdict(False, Fault(0, "store", f"it cannot be opened: {error}"))
    try:
        found: Verification = await verify(store)
        return Verdict(found.ok, found.first_bad, await contents_of(store) if found.ok else None)
    except Exception as error:
        return Verdict(False, Fault(0, "store", f"it cannot be read: {error}"))
    finally:
        await store.close()


def copy_store(sound: Path, folder: Path) -> Path:
    """A closed store is its file and the index beside it."""
    for file in sound.parent.glob(f"{sound.name}*"):
        shutil.copy(file, folder / file.name)
    return folder / sound.name


def change(path: Path, work: Callable[[apsw.Connection], object]) -> None:
    """Write to a closed store behind its back: what keeps the log append-only is taken away first."""
    connection = apsw.Connection(str(path))
    triggers = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")]
    for trigger in triggers:
        connection.execute(f"DROP TRIGGER {trigger}")
    work(connection)
    connection.close()


def read_cell(connection: apsw.Connection, column: Column, seq: int) -> bytes:
    table, name = column.split(".")
    value: bytes = connection.execute(f"SELECT {name} FROM {table} WHERE position & 0xffffffff = ?", (seq,)).get
    return value


def write_cell(connection: apsw.Connection, column: Column, seq: int, value: bytes) -> None:
    table, name = column.split(".")
    connection.execute(f"UPDATE {table} SET {name} = ? WHERE position & 0xffffffff = ?", (value, seq))


def flipped(value: bytes, bit: int) -> bytes:
    at, place = divmod(bit, 8)
    return value[:at] + bytes([value[at] ^ (1 << place)]) + value[at + 1 :]
