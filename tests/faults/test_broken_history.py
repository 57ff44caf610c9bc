"""Entries that are missing, moved, cut off or too many are found, and so are texts; writers do not disturb it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import apsw
import pytest

from fieldstone.audit.verify import Fault, Verification, verify
from fieldstone.backends.memory.store import MemoryStore
from fieldstone.backends.sqlite.store import SqliteStore
from fieldstone.core.chain import link
from fieldstone.ports.log import EventLog, Head, StoredEntry
from fieldstone.ports.store import Store
from fieldstone.testing import KEY, FaultyLog, FaultyStore
from tests.faults.stores import change, copy_store, open_field, read_cell, verdict_on, write_cell
from tests.messages import accepted, join, record
from tests.requirements import requirement

Work = Callable[[apsw.Connection], object]
ENTRIES = 31  # of the small field; a test below says so, too


def sql(statement: str) -> Work:
    return lambda connection: connection.execute(statement)


def swap_entries(connection: apsw.Connection) -> None:
    first, second = (_row(connection, seq) for seq in (7, 8))
    for seq, (body, entry_hash) in ((8, first), (7, second)):
        write_cell(connection, "log.body", seq, body)
        write_cell(connection, "log.hash", seq, entry_hash)


def rewrite_entry_and_its_hash(connection: apsw.Connection) -> None:
    """As one would who knows how hashes are made, but not that each covers the one before."""
    body = read_cell(connection, "log.body", 9).replace(b'"epoch":', b'"epoch":1')
    write_cell(connection, "log.body", 9, body)
    write_cell(connection, "log.hash", 9, link(read_cell(connection, "log.hash", 8), body))


def swap_texts(connection: apsw.Connection) -> None:
    first, second = (
        (read_cell(connection, "texts.salt", seq), read_cell(connection, "texts.body", seq)) for seq in (1, 2)
    )
    for seq, (salt, body) in ((1, second), (2, first)):
        write_cell(connection, "texts.salt", seq, salt)
        write_cell(connection, "texts.body", seq, body)


DAMAGE: list[tuple[str, Work, int, str]] = [
    ("a missing entry", sql("DELETE FROM log WHERE position & 0xffffffff = 12"), 12, "entry"),
    ("the first entry missing", sql("DELETE FROM log WHERE position & 0xffffffff = 1"), 1, "entry"),
    ("reordered entries", swap_entries, 7, "entry"),
    ("a rewritten entry with a hash of its own", rewrite_entry_and_its_hash, 10, "entry"),
    ("a cut-off tail", sql(f"DELETE FROM log WHERE position & 0xffffffff > {ENTRIES - 3}"), ENTRIES - 2, "entry"),
    ("a log that is gone", sql("DELETE FROM log"), 1, "entry"),
    ("a head set back", sql("UPDATE streams SET head_seq = head_seq - 1"), ENTRIES, "entry"),
    ("a head set on", sql("UPDATE streams SET head_seq = head_seq + 1"), ENTRIES + 1, "entry"),
    ("another hash in the head", sql("UPDATE streams SET head_hash = zeroblob(32)"), ENTRIES, "entry"),
    (
        "an entry too many",
        sql("INSERT INTO log SELECT position + 1, body, hash FROM log ORDER BY position DESC LIMIT 1"),
        ENTRIES + 1,
        "entry",
    ),
    ("a missing text", sql("DELETE FROM texts WHERE position & 0xffffffff = 2"), 2, "text"),
    ("exchanged texts", swap_texts, 1, "text"),
    (
        "a text behind the end",
        sql(f"INSERT INTO texts SELECT position + {ENTRIES + 6}, salt, body FROM texts LIMIT 1"),
        ENTRIES + 7,
        "text",
    ),
]


@pytest.mark.parametrize(("work", "seq", "part"), [each[1:] for each in DAMAGE], ids=[each[0] for each in DAMAGE])
async def test_damage_is_found_where_it_is(work: Work, seq: int, part: str, sound_store: Path, tmp_path: Path) -> None:
    path = copy_store(sound_store, tmp_path)
    change(path, work)
    verdict = await verdict_on(path)
    assert not verdict.ok
    assert verdict.fault is not None
    assert (verdict.fault.seq, verdict.fault.part) == (seq, part), verdict.fault.problem


async def test_a_text_beside_an_entry_that_has_none_is_found(sound_store: Path, tmp_path: Path) -> None:
    path = copy_store(sound_store, tmp_path)
    connection = apsw.Connection(str(path))
    bare: int = connection.execute("SELECT min(position) FROM log WHERE CAST(body AS TEXT) LIKE '%\"text\":null%'").get
    connection.close()
    change(path, sql(f"INSERT INTO texts SELECT {bare}, salt, body FROM texts LIMIT 1"))
    verdict = await verdict_on(path)
    assert verdict.fault == Fault(bare & 0xFFFFFFFF, "text", "a text lies beside an entry that has none")


@requirement("akashik:level:log-never-rewritten")
@pytest.mark.parametrize("statement", ["UPDATE log SET body = x'00'", "DELETE FROM log"])
async def test_the_file_itself_refuses_to_rewrite_the_log(statement: str, sound_store: Path, tmp_path: Path) -> None:
    path = copy_store(sound_store, tmp_path)
    connection = apsw.Connection(str(path))
    with pytest.raises(apsw.ConstraintError, match="append-only"):
        connection.execute(statement)
    connection.close()
    assert (await verdict_on(path)).ok


# --- the same in any store, with a log that shows something else than what was written -------------------------------


async def damaged(show: Callable[[Sequence[StoredEntry]], Sequence[StoredEntry]]) -> Verification:
    store = MemoryStore(KEY)
    field = await open_field(store)
    await join(field, "ada")
    for number in range(5):
        await accepted(field, record("ada", f"Reading {number}."))
    found = await verify(_showing(store, show))
    await field.close()
    return found


def _showing(store: Store, show: Callable[[Sequence[StoredEntry]], Sequence[StoredEntry]]) -> Store:
    return FaultyStore(store, log=FaultyLog(store.log, show))


async def test_a_sound_log_is_good() -> None:
    found = await damaged(lambda entries: entries)
    assert found == Verification(True, 7, 7, found.head, None)


async def test_an_entry_that_is_not_shown_is_missing() -> None:
    found = await damaged(lambda entries: [entry for entry in entries if entry.seq != 4])
    assert found.first_bad == Fault(4, "entry", "it is missing: the next one that is there is 5")
    assert found.entries == 3


async def test_entries_in_another_order_are_found() -> None:
    found = await damaged(lambda entries: entries[::-1])
    assert found.first_bad == Fault(1, "entry", "it is missing: the next one that is there is 7")


async def test_a_tail_that_is_not_shown_is_missing() -> None:
    found = await damaged(lambda entries: [entry for entry in entries if entry.seq < 6])
    assert found.first_bad == Fault(6, "entry", "it is missing: the log's head is 7")


async def test_a_store_that_cannot_be_read_is_no_good_one() -> None:
    def broken(entries: Sequence[StoredEntry]) -> Sequence[StoredEntry]:
        raise OSError("the disk makes a noise")

    found = await damaged(broken)
    assert found.first_bad == Fault(1, "store", "the store cannot be read after entry 0: the disk makes a noise")


# --- while others write ----------------------------------------------------------------------------------------------


class GrowingLog:
    """Somebody appends right after each look at its entries: texts are there then that the walk has no entry for."""

    def __init__(self, log: EventLog, grow: Callable[[int], Awaitable[object]], *, times: int) -> None:
        self._log = log
        self._grow = grow
        self._left = times

    async def head(self) -> Head:
        return await self._log.head()

    async def read(self, *, after: int, limit: int) -> Sequence[StoredEntry]:
        found = await self._log.read(after=after, limit=limit)
        if self._left:
            self._left -= 1
            await self._grow(self._left)
        return found


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_log_that_grows_while_it_is_walked_is_good(kind: str, tmp_path: Path) -> None:
    store: Store = MemoryStore(KEY) if kind == "memory" else SqliteStore.open(tmp_path / "field.db", KEY)
    field = await open_field(store)
    await join(field, "ada")
    growing = GrowingLog(store.log, lambda left: accepted(field, record("ada", f"Entry number {left}.")), times=6)
    found = await verify(FaultyStore(store, log=growing))
    assert found == Verification(True, 8, 8, found.head, None)
    await field.close()


async def test_a_field_is_verified_while_it_is_written_to(tmp_path: Path) -> None:
    field = await open_field(SqliteStore.open(tmp_path / "field.db", KEY))
    await join(field, *(f"agent-{number}" for number in range(4)))

    async def write(agent: int) -> None:
        for number in range(60):
            await accepted(field, record(f"agent-{agent}", f"Reading {number} of agent {agent}."))

    writing = asyncio.gather(*(write(agent) for agent in range(4)))
    verdicts = []
    while not writing.done():
        verdicts.append(await field.verify())
    await writing
    assert all(found.ok for found in verdicts), [found.first_bad for found in verdicts]
    assert len({found.entries for found in verdicts}) > 1
    assert (await field.verify()).entries == 8 + 240
    await field.close()


def _row(connection: apsw.Connection, seq: int) -> tuple[bytes, bytes]:
    return read_cell(connection, "log.body", seq), read_cell(connection, "log.hash", seq)
