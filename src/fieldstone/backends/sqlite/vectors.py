"""Vectors of one stream, in blocks: a row for each vector would take half a minute to load at a million of them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import apsw
import numpy as np
from numpy.typing import NDArray

from fieldstone.backends.sqlite.cold_vectors import ColdModel, SqliteColdVectors
from fieldstone.backends.sqlite.connection import open_reader
from fieldstone.backends.sqlite.log import SQL, Span
from fieldstone.backends.sqlite.vector_blocks import BLOCK_BITS, by_block, check_shape, last_of_each, merged, picked
from fieldstone.ports.vectors import ModelState, Quantized, StoredModel, UnknownModel

SCAN_BLOCKS: Final = 1_024  # about 64,000 vectors
DROP_BLOCKS: Final = 128  # 2 MB overwritten in one transaction: commits in between wait for a few ms
MOVED_BLOCKS: Final = 16  # a quarter of a megabyte, there and here: about 5 ms each

T = TypeVar("T")


class Write(Protocol):
    """Carry this out in a transaction of its own, after whatever was begun before."""

    def __call__(self, work: Callable[[apsw.Connection], T], /) -> Awaitable[T]: ...


class SqliteVectors:
    """A dropped model is out of sight at once; its blocks are overwritten in steps, so that no commit waits long."""

    def __init__(self, path: Path, near: apsw.Connection, span: Span, write: Write, cold: SqliteColdVectors) -> None:
        self._path = path
        self._near = near
        self._stream_no = span.stream_no
        self._write = write
        self._cold = cold

    async def models(self) -> Sequence[StoredModel]:
        return [StoredModel(*row) for row in self._near.execute(SQL["all_models"], (self._stream_no,))]

    async def begin(self, name: str, dimension: int, *, state: ModelState) -> StoredModel:
        def insert(writer: apsw.Connection) -> int:
            number: int = writer.execute(SQL["begin_model"], (self._stream_no, name, dimension, state)).get
            return number

        try:
            return StoredModel(await self._write(insert), name, dimension, state)
        except apsw.ConstraintError as error:
            raise ValueError(f"the field has a {state} model already") from error

    async def add(self, model: int, batch: Quantized, *, cold: bool = False) -> None:
        if cold:
            found = self._model(self._near, model)
            await self._cold.add(_cold(found), batch, live=await self._live())
            return

        def insert(writer: apsw.Connection) -> int:
            found = self._model(writer, model)
            self._sweep(writer)  # what a crash has left of a dropped model goes along
            return _merge(writer, found, batch)

        await self._write(insert)

    async def scan(self, model: int, *, cold: bool = False) -> AsyncIterator[Quantized]:
        found = [known for known in await self.models() if known.number == model]
        if not found:
            return
        if cold:
            async for piece in self._cold.scan(_cold(found[0])):
                yield piece
            return
        reader = open_reader(self._path)  # its own, since it reads in another thread
        try:
            first = Span(model).base
            while blocks := await asyncio.to_thread(_read, reader, first, Span(model).end):
                yield _joined(blocks, found[0].dimension)
                first = blocks[-1].position + 1
        finally:
            reader.close()

    async def cold_seqs(self, model: int) -> NDArray[np.int64]:
        for known in await self.models():
            if known.number == model:
                return await self._cold.seqs(_cold(known))
        return np.empty(0, np.int64)

    async def cool(self, seqs: Sequence[int]) -> None:
        for model in await self.models():
            for part in _parts(seqs):
                held = await self._write(partial(_held, model, part))
                if len(held.seqs):
                    await self._cold.add(_cold(model), held, live=await self._live())
                    await self._write(partial(_remove, number=model.number, dimension=model.dimension, gone=part))

    async def warm(self, seqs: Sequence[int]) -> Mapping[int, Quantized]:
        came = {}
        for model in await self.models():
            held = await self._cold.get(_cold(model), seqs)
            if len(held.seqs):
                await self.add(model.number, held)
                came[model.number] = held
        await self._cold.erase(seqs)
        return came

    async def serve(self, model: int) -> None:
        def swap(writer: apsw.Connection) -> int:
            if self._model(writer, model).state == "serving":
                return 0
            writer.execute(SQL["set_serving_model_dropped"], (self._stream_no,))
            writer.execute(SQL["set_model_state"], ("serving", model))
            return 1

        await self._write(swap)
        await self._overwrite_dropped()

    async def drop(self, model: int) -> None:
        def mark(writer: apsw.Connection) -> int:
            self._model(writer, model)
            writer.execute(SQL["set_model_state"], ("dropped", model))
            return 1

        await self._write(mark)
        await self._overwrite_dropped()

    async def erase(self, seqs: Sequence[int]) -> None:
        def remove(writer: apsw.Connection) -> int:
            gone = _distinct(seqs)
            models: list[Any] = writer.execute(SQL["all_model_dimensions"], (self._stream_no,)).fetchall()
            return sum([_remove(writer, number, dimension, gone) for number, dimension in models])

        await self._write(remove)
        await self._cold.erase(seqs)

    async def _overwrite_dropped(self) -> None:
        while await self._write(self._sweep):
            pass
        await self._cold.drop_all_but(await self._live())

    async def _live(self) -> set[int]:
        return {model.number for model in await self.models()}

    def _sweep(self, writer: apsw.Connection) -> int:
        """A step of overwriting, 0 when there is nothing to do. A model of which nothing is left is forgotten."""
        number: int | None = writer.execute(SQL["dropped_model"], (self._stream_no,)).get
        if number is None:
            return 0
        span = Span(number)
        writer.execute(SQL["drop_blocks"], (span.base, span.end, DROP_BLOCKS))
        if writer.changes() < DROP_BLOCKS:
            writer.execute(SQL["forget_model"], (number,))
        return 1

    def _model(self, connection: apsw.Connection, number: int) -> StoredModel:
        for row in connection.execute(SQL["find_model"], (number, self._stream_no)):
            return StoredModel(*row)
        raise UnknownModel(f"the field has no model {number}")


class _Block(NamedTuple):
    """A row as it lies on disk."""

    position: int
    seqs: bytes
    scales: bytes
    codes: bytes


def _cold(model: StoredModel) -> ColdModel:
    return ColdModel(model.number, model.dimension)


def _distinct(numbers: Sequence[int]) -> NDArray[np.int64]:
    """Ascending. Not by `np.unique`: its first call loads a module, and whoever writes waited 10 ms for that."""
    return np.asarray(sorted(set(numbers)), np.int64)


def _parts(seqs: Sequence[int]) -> list[NDArray[np.int64]]:
    """So few blocks in each that nobody waits long for one."""
    ordered = _distinct(seqs)
    block_of = ordered >> BLOCK_BITS
    blocks = np.cumsum(np.diff(block_of, prepend=block_of[:1]) > 0)  # numbered as they come
    cuts = np.flatnonzero(np.diff(blocks // MOVED_BLOCKS)) + 1
    return [part for part in np.split(ordered, cuts) if len(part)]


def _held(model: StoredModel, seqs: NDArray[np.int64], writer: apsw.Connection) -> Quantized:
    blocks = _distinct((seqs >> BLOCK_BITS).tolist()).tolist()
    span = Span(model.number)
    held = _joined([row for block in blocks for row in _get(writer, span.position(block))], model.dimension)
    return picked(held, np.isin(held.seqs, seqs))


def _merge(writer: apsw.Connection, model: StoredModel, batch: Quantized) -> int:
    """Put the batch into its blocks; how many these were."""
    check_shape(batch, model.dimension)
    span = Span(model.number)
    written = 0
    for block, part in by_block(last_of_each(batch)):
        position = span.position(block)
        blocks = _get(writer, position)
        _put(writer, position, merged(_joined(blocks, model.dimension), part) if blocks else part)
        written += 1
    return written


def _remove(writer: apsw.Connection, number: int, dimension: int, gone: NDArray[np.int64]) -> int:
    """Take these units out of their blocks; how many vectors that were."""
    removed = 0
    for block in _distinct((gone >> BLOCK_BITS).tolist()).tolist():
        position = Span(number).position(block)
        held = _joined(_get(writer, position), dimension)
        stays = ~np.isin(held.seqs, gone)
        if not stays.any():
            writer.execute(SQL["drop_block"], (position,))
        elif not stays.all():
            _put(writer, position, picked(held, stays))
        removed += int((~stays).sum())
    return removed


def _read(reader: apsw.Connection, first: int, end: int) -> list[_Block]:
    return [_Block(*row) for row in reader.execute(SQL["scan_blocks"], (first, end, SCAN_BLOCKS))]


def _get(writer: apsw.Connection, position: int) -> list[_Block]:
    return [_Block(*row) for row in writer.execute(SQL["scan_blocks"], (position, position, 1))]


def _put(writer: apsw.Connection, position: int, block: Quantized) -> None:
    seqs, scales, codes = block.seqs.astype("<i8"), block.scales.astype("<f4"), block.codes.astype("i1")
    writer.execute(SQL["put_block"], (position, seqs.tobytes(), scales.tobytes(), codes.tobytes()))


def _joined(blocks: Sequence[_Block], dimension: int) -> Quantized:
    """No Python for a single vector: the bytes of all blocks are one array."""
    seqs = np.frombuffer(b"".join(block.seqs for block in blocks), "<i8")
    scales = np.frombuffer(b"".join(block.scales for block in blocks), "<f4")
    codes = np.frombuffer(b"".join(block.codes for block in blocks), "i1").reshape(-1, dimension)
    return Quantized(seqs, scales, codes)
