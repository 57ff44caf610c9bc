"""The cold files beside an SQLite store: when they are made, what is left in them, and what a kill does to them."""

import asyncio
import random
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import apsw
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.backends.memory.store import MemoryStore
from fieldstone.backends.sqlite.cold import SCHEMA_VERSION, cold_path
from fieldstone.backends.sqlite.store import SqliteStore
from fieldstone.backends.sqlite.text_index import index_path
from fieldstone.core.errors import StorageFull
from fieldstone.ports.cold import ForeignColdStore
from fieldstone.ports.log import StoredText
from fieldstone.ports.store import Commit, Store, StoreTooNew
from fieldstone.ports.text_index import Document
from fieldstone.ports.vectors import Quantized
from fieldstone.testing import KEY
from fieldstone.testing.rows import entries, head_of, text
from tests.conformance.cold_writer import batch
from tests.faults.disk import faulty_disk

PLENTY: Final = 1_000_000
PAGE_BYTES: Final = 4_096
LIVES: Final = 4
MOST_LINES: Final = 30
TEXTS: Final = 1_000
ERASED: Final = 900
WINDOW_BYTES: Final = 24
SHARED: Final = "shared"  # FTS5 writes of a term only what the one before it has not
MOST_SEQ: Final = 300


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "field.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore.open(path, KEY)
    yield store
    await store.close()


# --- the files -------------------------------------------------------------------------------------------------------


async def test_a_store_that_never_archived_has_no_cold_files(store: SqliteStore, path: Path) -> None:
    await store.commit(Commit(entries=entries(1), texts=[text(1)]))
    await store.cold.get([1])
    await store.cold.erase([1])
    await store.cold.index.search([["word"]], most_postings=10)
    assert await store.scour()
    assert await store.bytes_used() > 0
    assert not list(path.parent.glob("*-cold*"))
    await store.cold.put([text(1)])
    assert cold_path(path).exists()
    assert not index_path(cold_path(path)).exists()


async def test_a_cold_file_of_another_store_is_refused(path: Path) -> None:
    first = SqliteStore.open(path, KEY)
    await first.cold.put([text(1, "of another history")])
    await first.close()
    _remove(path)
    with pytest.raises(ForeignColdStore):
        SqliteStore.open(path, KEY)
    _remove(cold_path(path))
    again = SqliteStore.open(path, KEY)
    assert await again.texts.get([1]) == {}
    await again.close()


async def test_a_cold_file_of_a_newer_version_is_refused(store: SqliteStore, path: Path) -> None:
    await store.cold.put([text(1)])
    await store.close()
    _execute(cold_path(path), f"PRAGMA user_version={SCHEMA_VERSION + 1}")
    with pytest.raises(StoreTooNew):
        SqliteStore.open(path, KEY)


@pytest.mark.parametrize("left", [slice(100, None), slice(None, -2 * PAGE_BYTES)], ids=["no header", "cut short"])
async def test_a_cold_file_that_cannot_be_read_is_named(store: SqliteStore, path: Path, left: slice) -> None:
    await store.cold.put([text(1)])
    await store.close()
    cold_path(path).write_bytes(cold_path(path).read_bytes()[left])
    with pytest.raises(apsw.Error, match=re.escape(str(cold_path(path)))):
        SqliteStore.open(path, KEY)


@pytest.mark.parametrize("damage", ["bodies = zeroblob(length(bodies))", "bodies = x''", "salts = x'00'"])
async def test_a_damaged_block_is_told_and_never_read_as_something_else(
    store: SqliteStore, path: Path, damage: str
) -> None:
    await store.cold.put([text(1), text(100)])
    _execute(cold_path(path), f"UPDATE blocks SET {damage} WHERE position & 0xffffffff = 0")
    with pytest.raises(apsw.CorruptError, match=re.escape(str(cold_path(path)))):
        await store.texts.get([1])
    assert await store.texts.get([100]) == {100: text(100)}


async def test_neighbours_are_packed_together(store: SqliteStore, path: Path) -> None:
    said = [text(seq, f"what was said about release {seq} in the third week, word by word") for seq in range(1, 641)]
    await store.cold.put(said)
    packed = _execute(cold_path(path), "SELECT sum(length(bodies)) FROM blocks")
    assert isinstance(packed, int)
    assert packed * 5 < sum(len(each.body) for each in said)


# --- what is left ----------------------------------------------------------------------------------------------------


async def test_nothing_of_an_erased_text_is_left_in_the_cold_file(store: SqliteStore, path: Path) -> None:
    await store.cold.put([_telling(seq) for seq in range(1, 200)])
    before = {position: _block(path, position) for position in range(4)}
    await store.cold.erase([*range(1, 65), 70, 150])
    assert await store.scour()
    kept = b"".join(_block(path, position) for position in range(4))
    left = _bytes_of(path, "-cold")
    for block in before.values():
        windows = [block[at : at + WINDOW_BYTES] for at in range(0, len(block) - WINDOW_BYTES, WINDOW_BYTES)]
        assert not [window for window in windows if window in left and window not in kept]


@pytest.mark.parametrize("seed", [2, 4, 5])  # of eight, those with which SQLite's own overwriting leaves something
async def test_nothing_of_texts_erased_in_any_order_is_left_in_the_hot_file(
    store: SqliteStore, path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    said = [text(seq, f"<{seq:07d}>" * chance.choice((10, 30, 75))) for seq in range(1, TEXTS + 1)]
    await store.commit(Commit(entries=entries(TEXTS), texts=said))
    gone = chance.sample(range(1, TEXTS + 1), ERASED)
    for first in range(0, ERASED, 30):
        await store.commit(Commit(erased_texts=gone[first : first + 30]))
    assert await store.scour()
    left = _bytes_of(path)
    assert not [seq for seq in gone if b"<%07d>" % seq in left]
    assert list(await store.texts.read(after=0, limit=PLENTY)) == [each for each in said if each.seq not in set(gone)]
    assert _execute(path, "PRAGMA integrity_check") == "ok"


@pytest.mark.parametrize("which", ["hot", "cold"])
async def test_no_token_of_a_removed_document_is_left_in_its_index(store: SqliteStore, path: Path, which: str) -> None:
    chance = random.Random(4)
    index = store.text_index if which == "hot" else store.cold.index
    await store.commit(Commit(entries=entries(MOST_SEQ)))
    endings = {seq: "".join(chance.choices("bcdfghjkmnpqrtvwxz", k=10)) + "7" for seq in range(1, MOST_SEQ + 1)}
    for first in range(1, MOST_SEQ, 50):
        documents = [Document(seq, f"{SHARED}{endings[seq]} common") for seq in range(first, first + 50)]
        await index.add(documents, position=first + 49)
    gone = chance.sample(range(1, MOST_SEQ + 1), 12)  # so few that FTS5 would not clear them by itself
    await index.remove(gone)
    assert await store.scour()
    left = _bytes_of(path)
    # A term may be written without as much of its beginning as it has in common with its neighbour in the alphabet.
    assert not [seq for seq in gone if endings[seq][4:].encode() in left]
    assert all(endings[seq][4:].encode() in left for seq in endings if seq not in gone)


@pytest.mark.parametrize("where", ["", "-cold", "-index", "-cold-index"])
async def test_while_a_reader_keeps_an_older_state_scouring_waits_and_then_leaves_nothing(
    store: SqliteStore, path: Path, where: str
) -> None:
    await store.commit(Commit(entries=entries(2), texts=[text(1, "nowhere47else11"), text(2)]))
    await store.cold.put([_telling(1), _telling(2)])
    for index in (store.text_index, store.cold.index):
        await index.add([Document(1, "nowhere47else11"), Document(2, "word")], position=2)
    tells = _block(path, 0)[:WINDOW_BYTES], b"nowhere47else11"
    with _older_reader(Path(f"{path}{where}")):
        await store.commit(Commit(erased_texts=[1]))
        await store.cold.erase([1])
        for index in (store.text_index, store.cold.index):
            await index.remove([1])
        assert not await store.scour()
        assert any(tell in _bytes_of(path) for tell in tells)
    assert await store.scour()
    assert not any(tell in _bytes_of(path) for tell in tells)


async def test_our_own_readers_keep_no_older_state(store: SqliteStore) -> None:
    seqs = range(1, 201)
    await store.commit(Commit(entries=entries(len(seqs)), texts=[text(seq) for seq in seqs]))
    await store.cold.put([text(seq) for seq in range(1, 150)])
    model = await store.vectors.begin("model", 2, state="serving")
    await store.vectors.add(model.number, Quantized(np.arange(1, 3), np.ones(2, np.float32), np.ones((2, 2), np.int8)))
    for index in (store.text_index, store.cold.index):
        await index.add([Document(1, "word")], position=1)
    scan = store.vectors.scan(model.number)
    await anext(aiter(scan))  # and there it stays
    await store.texts.read(after=0, limit=10)
    await store.texts.get([1, 160])
    await store.views.scan_units(after=0, limit=1)
    for index in (store.text_index, store.cold.index):
        await index.search([["word"]], most_postings=1)
    assert await store.scour()
    await store.commit(Commit(erased_texts=[1]))
    assert await store.scour()


# --- no room ---------------------------------------------------------------------------------------------------------


async def test_a_disk_without_room_for_the_cold_file_refuses_all_of_it(path: Path) -> None:
    with faulty_disk(lambda name: "-cold" in name) as disk:
        store = SqliteStore.open(path, KEY)
        await store.cold.put([text(1)])
        disk.shrink_to(disk.taken_bytes() + 20_000)
        large = [StoredText(seq, bytes(16), random.Random(seq).randbytes(10_000)) for seq in range(2, 20)]
        with pytest.raises(StorageFull):
            await store.cold.put([text(1, "new"), *large])
        assert list(await store.cold.read(after=0, limit=PLENTY)) == [text(1)]
        disk.heal()
        await store.cold.put(large)
        assert list(await store.cold.read(after=0, limit=PLENTY)) == [text(1), *large]
        await store.close()


async def test_vectors_are_erased_from_a_full_store_and_more_of_them_are_refused(path: Path) -> None:
    store = SqliteStore.open(path, KEY, max_bytes=512 * 1024)
    model = (await store.vectors.begin("model", 256, state="serving")).number
    added = await _fill_with_vectors(store, model)
    with pytest.raises(StorageFull):  # an entry of many pages
        await store.commit(Commit(entries=entries(1), texts=[text(1, "x" * 40_000)]))
    gone = range(1, added, 30)
    for seq in gone:
        await store.vectors.erase([seq])
    left = [seq async for piece in store.vectors.scan(model) for seq in piece.seqs.tolist()]
    assert left == [seq for seq in range(1, added + 1) if seq not in gone]
    await store.close()


async def _fill_with_vectors(store: SqliteStore, model: int) -> int:
    """How many fit."""
    added = 0
    while True:
        seqs = np.arange(added + 1, added + 11)
        try:
            await store.vectors.add(model, Quantized(seqs, np.ones(10, np.float32), np.ones((10, 256), np.int8)))
        except StorageFull:
            return added
        added += 10


# --- kill -9 ---------------------------------------------------------------------------------------------------------


def test_a_batch_is_whole_or_not_there_after_a_kill_and_what_was_acknowledged_is(path: Path) -> None:
    chance = random.Random(11)
    put: set[int] = set()
    erased: set[int] = set()
    for _ in range(LIVES):
        for word, number in _one_life(path, chance.randint(1, MOST_LINES)):
            (put if word == "put" else erased).add(number)
        asyncio.run(_look(path, put, erased))
    assert put
    assert erased


def _one_life(path: Path, lines: int) -> Iterator[tuple[str, int]]:
    """What the writer said until the kill reached it counts, too."""
    command = [sys.executable, "-m", "tests.conformance.cold_writer", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        for count, line in enumerate(writer.stdout, start=1):
            word, number = line.split()
            yield word, int(number)
            if count == lines:
                writer.kill()


async def _look(path: Path, put: set[int], erased: set[int]) -> None:
    store = SqliteStore.open(path, KEY)
    there = {each.seq: each for each in await store.cold.read(after=0, limit=PLENTY)}
    assert await store.cold.get(range(max(put) * 200)) == there
    for number in range(max(put) + 2):
        odd = [each for each in batch(number) if each.seq % 2]
        found = [there[each.seq] for each in batch(number) if each.seq in there]
        allowed = [odd] if number in erased else [odd, batch(number)] if number in put else [odd, batch(number), []]
        assert found in allowed, number
    assert await store.scour()
    await store.close()
    assert _execute(cold_path(path), "PRAGMA integrity_check") == "ok"


# --- two ways to keep the same ---------------------------------------------------------------------------------------

seqs = st.lists(st.integers(1, MOST_SEQ), max_size=20, unique=True)
steps = st.lists(st.tuples(st.sampled_from(("put", "erase", "archive", "restore", "scour")), seqs), max_size=12)


@given(steps=steps, limit=st.integers(1, MOST_SEQ))
def test_memory_and_sqlite_keep_and_read_the_same(steps: list[tuple[str, list[int]]], limit: int) -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(_compare(Path(folder) / "field.db", steps, limit))


async def _compare(path: Path, steps: list[tuple[str, list[int]]], limit: int) -> None:
    stores: tuple[Store, ...] = (MemoryStore(KEY), SqliteStore.open(path, KEY))
    answers = []
    for store in stores:
        written = entries(MOST_SEQ)
        await store.commit(Commit(entries=written, texts=[text(seq) for seq in range(1, MOST_SEQ, 2)]))
        for number, (step, seqs) in enumerate(steps):
            await _take(store, step, seqs, number)
        everything = await store.texts.read(after=0, limit=PLENTY)
        some = await store.texts.read(after=MOST_SEQ // 3, limit=limit)
        answers.append((everything, some, await store.cold.read(after=limit, limit=limit), await store.log.head()))
        assert await store.texts.get(range(1, MOST_SEQ + 1)) == {each.seq: each for each in everything}
        assert answers[-1][-1] == head_of(written)
        await store.close()
    assert answers[0] == answers[1]


async def _take(store: Store, step: str, seqs: list[int], number: int) -> None:
    held = await store.texts.get(seqs)
    match step:
        case "put":
            await store.cold.put([text(seq, f"put by step {number}") for seq in seqs])
        case "erase":
            await store.cold.erase(seqs)
        case "archive":
            await store.cold.put(list(held.values()))
            await store.commit(Commit(erased_texts=seqs, makes_room=True))
        case "restore":
            await store.commit(Commit(replaced_texts=list(held.values())))
            await store.cold.erase(seqs)
        case _:
            assert await store.scour()


def _telling(seq: int) -> StoredText:
    """Nothing in it can be packed, so that it is there as it is or not at all."""
    chance = random.Random(seq)
    return StoredText(seq, chance.randbytes(16), chance.randbytes(chance.choice((40, 400, 2_000))))


def _block(path: Path, number: int) -> bytes:
    query = f"SELECT CAST(salts || bodies AS BLOB) FROM blocks WHERE position & 0xffffffff = {number}"
    found = _execute(cold_path(path), query)
    return found if isinstance(found, bytes) else b""


def _bytes_of(path: Path, suffix: str = "") -> bytes:
    return b"".join(file.read_bytes() for file in sorted(path.parent.glob(f"{path.name}{suffix}*")))


def _remove(path: Path) -> None:
    path.unlink()


def _execute(path: Path, statement: str) -> object:
    connection = apsw.Connection(str(path))
    result: object = connection.execute(statement).get
    connection.close()
    return result


@contextmanager
def _older_reader(path: Path) -> Iterator[None]:
    reader = apsw.Connection(str(path))
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    try:
        yield
    finally:
        reader.close()
