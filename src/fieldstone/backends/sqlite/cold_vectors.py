"""Vectors of archived units, packed in blocks in the cold file."""

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

import apsw
import numpy as np
from numpy.typing import NDArray

from fieldstone.backends.sqlite.cold import SqliteColdFile
from fieldstone.backends.sqlite.connection import open_reader
from fieldstone.backends.sqlite.log import Span
from fieldstone.backends.sqlite.vector_blocks import (
    BLOCK_BITS,
    by_block,
    check_shape,
    joined,
    last_of_each,
    merged,
    no_vectors,
    picked,
    without,
)
from fieldstone.ports.cold import ForeignColdStore
from fieldstone.ports.vectors import Quantized

SCAN_BLOCKS: Final = 256  # about 16,000 vectors: unpacked in 20 ms
SEQS_BLOCKS: Final = 16_384
DROP_BLOCKS: Final = 128  # 2 MB overwritten in one transaction
BLOCK_SEQS: Final = 1 << BLOCK_BITS

T = TypeVar("T")


class ColdModel(NamedTuple):
    number: int
    dimension: int


class SqliteColdVectors:
    """Those of one stream. Which blocks there are is known, so that a vector that is not cold costs nothing."""

    def __init__(self, file: SqliteColdFile, owner: bytes) -> None:
        self._file = file
        self._owner = owner
        self._blocks: dict[int, set[int]] | None = None  # by model

    async def add(self, model: ColdModel, batch: Quantized, *, live: Collection[int]) -> None:
        """What lies here of models that are not `live` any more goes along."""
        check_shape(batch, model.dimension)
        new = dict(by_block(last_of_each(batch)))
        span = Span(model.number)

        def merge(writer: apsw.Connection) -> None:
            _sign(writer, model, self._owner)
            self._check_owner(writer, model.number)
            self._drop_step(live, writer)
            for block, part in new.items():
                _put(writer, span.position(block), merged(_get(writer, span, block, model.dimension), part))

        self._there().setdefault(model.number, set()).update(new)  # one too many costs a look, one too few hides it
        await self._file.write(merge)

    async def get(self, model: ColdModel, seqs: Sequence[int]) -> Quantized:
        """Those of these units that are here, ascending; also what was on its way when this was asked."""
        blocks = self._blocks_of(model.number, seqs)
        if not blocks:
            return no_vectors(model.dimension)

        def read(writer: apsw.Connection) -> Quantized:
            self._check_owner(writer, model.number)
            span = Span(model.number)
            held = joined([_get(writer, span, block, model.dimension) for block in blocks])
            return picked(held, np.isin(held.seqs, np.asarray(seqs, np.int64)))

        return await self._file.write(read)

    async def erase(self, seqs: Sequence[int]) -> None:
        blocks = {number: here for number in self._there() if (here := self._blocks_of(number, seqs))}
        if not blocks:
            return
        gone = np.asarray(seqs, np.int64)

        def remove(writer: apsw.Connection) -> list[tuple[int, int]]:
            return [
                (model.number, block)
                for model in self._models(writer)
                for block in blocks.get(model.number, ())
                if _remove(writer, model, block, gone)
            ]

        for number, block in await self._file.write(remove):
            self._there()[number].discard(block)

    async def drop_all_but(self, live: Collection[int]) -> None:
        """Overwrite what lies here of other models, in steps."""
        dropped = self._there().keys() - live
        if not dropped:
            return
        steps = 1
        while steps:
            steps = await self._file.write(partial(self._drop_step, live))
        for number in dropped:
            del self._there()[number]

    async def scan(self, model: ColdModel) -> AsyncIterator[Quantized]:
        """All of the model by seq, in pieces."""
        span = Span(model.number)

        def piece(reader: apsw.Connection, first: int) -> tuple[Quantized, int]:
            rows = _rows(reader, "members, scales, codes", first, span.end, SCAN_BLOCKS)
            parts = [_unpacked(row, model.dimension) for row in rows] or [no_vectors(model.dimension)]
            return joined(parts), rows[-1][0] if rows else span.end

        async for found in self._read(model.number, piece, span):
            yield found

    async def seqs(self, model: ColdModel) -> NDArray[np.int64]:
        span = Span(model.number)

        def piece(reader: apsw.Connection, first: int) -> tuple[NDArray[np.int64], int]:
            rows = _rows(reader, "members", first, span.end, SEQS_BLOCKS)
            return _seqs_of(rows), rows[-1][0] if rows else span.end

        parts = [found async for found in self._read(model.number, piece, span)]
        return np.concatenate([np.empty(0, np.int64), *parts])

    async def _read(
        self, number: int, piece: Callable[[apsw.Connection, int], tuple[T, int]], span: Span
    ) -> AsyncIterator[T]:
        """In a thread, and by a reader of its own. A piece says at which position it ended."""
        near = self._file.near()
        if near is None:
            return
        self._check_owner(near, number)
        reader = open_reader(self._file.path)
        try:
            last = span.base - 1
            while last < span.end:
                with self._file.named():
                    found, last = await asyncio.to_thread(piece, reader, last + 1)
                if last < span.end:
                    yield found
        finally:
            reader.close()

    def _there(self) -> dict[int, set[int]]:
        if self._blocks is None:
            near = self._file.near()
            self._blocks = {} if near is None else {model.number: _blocks(near, model) for model in self._models(near)}
        return self._blocks

    def _blocks_of(self, number: int, seqs: Sequence[int]) -> list[int]:
        there = self._there().get(number, set())
        return sorted(there & {seq >> BLOCK_BITS for seq in seqs}) if there else []

    def _models(self, connection: apsw.Connection) -> list[ColdModel]:
        """Ours, also those that the store has dropped."""
        rows = connection.execute("SELECT number, dimension FROM vector_models WHERE owner = ?", (self._owner,))
        return [ColdModel(*row) for row in rows]

    def _check_owner(self, connection: apsw.Connection, number: int) -> None:
        owner = connection.execute("SELECT owner FROM vector_models WHERE number = ?", (number,)).get
        if owner not in (None, self._owner):
            raise ForeignColdStore(f"{self._file.path} was archived from another store. Move it away.")

    def _drop_step(self, live: Collection[int], writer: apsw.Connection) -> int:
        """A step of overwriting, 0 when there is nothing to do."""
        for model in self._models(writer):
            if model.number in live:
                continue
            span = Span(model.number)
            query = "SELECT position FROM vectors WHERE position BETWEEN ? AND ? LIMIT ?"
            writer.execute(f"DELETE FROM vectors WHERE position IN ({query})", (span.base, span.end, DROP_BLOCKS))
            if writer.changes() < DROP_BLOCKS:
                writer.execute("DELETE FROM vector_models WHERE number = ?", (model.number,))
            return 1
        return 0


def _sign(writer: apsw.Connection, model: ColdModel, owner: bytes) -> None:
    query = "INSERT OR IGNORE INTO vector_models (number, owner, dimension) VALUES (?, ?, ?)"
    writer.execute(query, (model.number, owner, model.dimension))


def _blocks(connection: apsw.Connection, model: ColdModel) -> set[int]:
    span = Span(model.number)
    query = "SELECT position & 0xffffffff FROM vectors WHERE position BETWEEN ? AND ?"
    rows: list[Any] = connection.execute(query, (span.base, span.end)).fetchall()
    return {block for (block,) in rows}


def _rows(connection: apsw.Connection, columns: str, first: int, end: int, limit: int) -> list[Any]:
    query = f"SELECT position, {columns} FROM vectors WHERE position BETWEEN ? AND ? ORDER BY position LIMIT ?"
    return connection.execute(query, (first, end, limit)).fetchall()


def _get(connection: apsw.Connection, span: Span, block: int, dimension: int) -> Quantized:
    position = span.position(block)
    for row in _rows(connection, "members, scales, codes", position, position, 1):
        return _unpacked(row, dimension)
    return no_vectors(dimension)


def _put(writer: apsw.Connection, position: int, block: Quantized) -> None:
    query = "INSERT OR REPLACE INTO vectors (position, members, scales, codes) VALUES (?, ?, ?, ?)"
    writer.execute(query, (position, *_packed(block)))


def _remove(writer: apsw.Connection, model: ColdModel, block: int, gone: NDArray[np.int64]) -> bool:
    """Whether nothing is left of the block."""
    span = Span(model.number)
    held = _get(writer, span, block, model.dimension)
    stays = without(held, gone)
    if not len(stays.seqs):
        writer.execute("DELETE FROM vectors WHERE position = ?", (span.position(block),))
    elif len(stays.seqs) < len(held.seqs):
        _put(writer, span.position(block), stays)
    return not len(stays.seqs)


# --- a row -----------------------------------------------------------------------------------------------------------


def _packed(block: Quantized) -> tuple[bytes, bytes, bytes]:
    members = np.zeros(BLOCK_SEQS, np.bool_)
    members[block.seqs & (BLOCK_SEQS - 1)] = True
    # No string of bytes comes twice in codes; that some are rarer than others saves a fifteenth, in half the time.
    packer = zlib.compressobj(1, strategy=zlib.Z_HUFFMAN_ONLY)
    codes = packer.compress(block.codes.astype("i1").tobytes()) + packer.flush()
    return np.packbits(members, bitorder="little").tobytes(), block.scales.astype("<f4").tobytes(), codes


def _unpacked(row: tuple[int, bytes, bytes, bytes], dimension: int) -> Quantized:
    position, members, scales, codes = row
    try:
        seqs = _seqs_of([(position, members)])
        unpacked = np.frombuffer(zlib.decompress(codes), "i1").reshape(len(seqs), dimension)
        found = Quantized(seqs, np.frombuffer(scales, "<f4"), unpacked)
    except (zlib.error, ValueError) as error:
        raise apsw.CorruptError("a block of archived vectors is damaged") from error
    if len(found.scales) != len(seqs):
        raise apsw.CorruptError("a block of archived vectors is damaged")
    return found


def _seqs_of(rows: Sequence[tuple[int, bytes]]) -> NDArray[np.int64]:
    """The units of these blocks. No Python for a single one."""
    positions = np.fromiter((position for position, _ in rows), np.int64, len(rows))
    first = (positions & 0xFFFF_FFFF) << BLOCK_BITS
    bits = np.frombuffer(b"".join(members for _, members in rows), np.uint8)
    at, seq = np.nonzero(np.unpackbits(bits, bitorder="little").reshape(len(rows), BLOCK_SEQS))
    return first[at] + seq
