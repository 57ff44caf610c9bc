"""A flipped bit anywhere in an entry or a text is found, and the verification says where."""

import asyncio
import functools
import random
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.audit.verify import verify
from fieldstone.backends.sqlite.store import SqliteStore
from fieldstone.testing import KEY
from tests.faults.stores import (
    COLUMNS,
    Column,
    Contents,
    Verdict,
    change,
    contents_of,
    copy_store,
    flipped,
    read_cell,
    verdict_on,
    write_cell,
)

FLIPS_IN_CELLS: Final = 1_500
FLIPS_IN_THE_FILE: Final = 500
PIECE_BYTES: Final = 32  # a cell that overflows its page lies in pieces


class Cell(NamedTuple):
    column: Column
    seq: int
    value: bytes


@pytest.fixture(scope="module")
def cells(sound_store: Path) -> list[Cell]:
    connection = apsw.Connection(str(sound_store), flags=apsw.SQLITE_OPEN_READONLY)
    found = [
        Cell(column, seq, read_cell(connection, column, seq)) for column in COLUMNS for seq in _seqs(connection, column)
    ]
    connection.close()
    assert {cell.column for cell in found} == set(COLUMNS)
    return found


async def test_the_sound_store_is_sound(sound_store: Path, tmp_path: Path) -> None:
    verdict = await verdict_on(copy_store(sound_store, tmp_path))
    assert verdict.ok
    assert verdict.contents is not None
    assert len(verdict.contents.entries) > 25
    assert len(verdict.contents.texts) > 20


async def test_a_flipped_bit_in_any_cell_is_found_where_it_is(
    sound_store: Path, cells: list[Cell], tmp_path: Path
) -> None:
    """Every cell at least once, and many bits by chance; the file is written back after each."""
    path = copy_store(sound_store, tmp_path)
    change(path, lambda _: None)
    chance = random.Random(8)
    chosen = [*cells, *chance.choices(cells, [len(cell.value) for cell in cells], k=FLIPS_IN_CELLS - len(cells))]
    store, hand = SqliteStore.open(path, KEY, create=False), apsw.Connection(str(path))
    for cell in chosen:
        bit = chance.randrange(len(cell.value) * 8)
        write_cell(hand, cell.column, cell.seq, flipped(cell.value, bit))
        found = await verify(store)
        where = f"bit {bit} of {cell.column} at {cell.seq}"
        assert not found.ok, where
        assert found.first_bad is not None
        assert (found.first_bad.seq, found.first_bad.part) == (cell.seq, _part(cell.column)), where
        assert found.entries == cell.seq - 1
        write_cell(hand, cell.column, cell.seq, cell.value)
    assert (await verify(store)).ok
    hand.close()
    await store.close()


@given(data=st.data())
def test_a_flipped_bit_in_a_closed_store_is_found_where_it_is(
    sound_store: Path, cells: list[Cell], data: st.DataObject
) -> None:
    cell = data.draw(st.sampled_from(cells))
    bit = data.draw(st.integers(0, len(cell.value) * 8 - 1))
    with TemporaryDirectory() as folder:
        path = copy_store(sound_store, Path(folder))
        change(path, lambda hand: write_cell(hand, cell.column, cell.seq, flipped(cell.value, bit)))
        verdict = asyncio.run(verdict_on(path))
    assert not verdict.ok
    assert verdict.fault is not None
    assert (verdict.fault.seq, verdict.fault.part) == (cell.seq, _part(cell.column))


def test_a_flipped_bit_in_the_file_is_found_where_it_hit_an_entry_or_a_text(
    sound_store: Path, cells: list[Cell], tmp_path: Path
) -> None:
    file = sound_store.read_bytes()
    places = sorted({place for cell in cells for place in _places(file, cell.value)})
    assert len(places) > sum(len(cell.value) for cell in cells) * 0.9, "most bytes of the cells are known in the file"
    chance = random.Random(21)
    for at in chance.sample(places, FLIPS_IN_THE_FILE):
        verdict = _verdict_after_flip(sound_store, tmp_path, at * 8 + chance.randrange(8))
        assert not verdict.ok, f"byte {at}"


def test_whatever_bit_of_the_file_flips_a_good_verdict_means_the_same_history(
    sound_store: Path, sound_contents: Contents, tmp_path: Path
) -> None:
    """A bit outside of entries and texts may do no harm, or be noticed; what is not good is never called so."""
    size = sound_store.stat().st_size
    chance = random.Random(34)
    verdicts = []
    for bit in (chance.randrange(size * 8) for _ in range(FLIPS_IN_THE_FILE)):
        verdict = _verdict_after_flip(sound_store, tmp_path, bit)
        if verdict.ok:
            assert verdict.contents == sound_contents, f"bit {bit % 8} of byte {bit // 8}"
        verdicts.append(verdict.ok)
    assert True in verdicts
    assert False in verdicts


@pytest.fixture(scope="module")
def sound_contents(sound_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Contents:
    async def read(path: Path) -> Contents:
        store = SqliteStore.open(path, KEY, create=False)
        contents = await contents_of(store)
        await store.close()
        return contents

    return asyncio.run(read(copy_store(sound_store, tmp_path_factory.mktemp("read"))))


def _verdict_after_flip(sound: Path, folder: Path, bit: int) -> Verdict:
    with TemporaryDirectory(dir=folder) as place:
        path = copy_store(sound, Path(place))
        path.write_bytes(flipped(path.read_bytes(), bit))
        return asyncio.run(verdict_on(path))


def _places(file: bytes, value: bytes) -> Iterator[int]:
    """Where the bytes of a cell lie in the file: in one run, or in pieces where it overflows its page."""
    at = file.find(value)
    if at >= 0:
        yield from range(at, at + len(value))
        return
    for start in range(0, len(value) - PIECE_BYTES, PIECE_BYTES):
        at = file.find(value[start : start + PIECE_BYTES])
        if at >= 0:
            yield from range(at, at + PIECE_BYTES)


def _part(column: Column) -> str:
    return "entry" if column.startswith("log") else "text"


@functools.cache
def _table(column: Column) -> str:
    return column.split(".")[0]


def _seqs(connection: apsw.Connection, column: Column) -> list[int]:
    return [row[0] for row in connection.execute(f"SELECT position & 0xffffffff FROM {_table(column)}")]
