"""Rows of one stream's archived units, packed in blocks in the cold file; the store itself says which of them count.

A copy is on disk here before its row leaves the store's table, and the store's transaction that takes it away also says
so. Whoever changes a row that is here brings it back first, in the same transaction. What the store does not name is a
copy too many: a crash may leave one, and it is dropped when there is time.
"""

import asyncio
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple, TypeVar

import apsw
from msgspec import json, msgpack

from fieldstone.backends.sqlite.cold import PACKING_LEVEL, SqliteColdFile, sign
from fieldstone.backends.sqlite.log import SQL, Span
from fieldstone.backends.sqlite.text_index import HashAt
from fieldstone.core.limits import DEFAULT_AUTHORITY
from fieldstone.core.vocabulary import Mode, UnitStatus
from fieldstone.ports.views import UnitRow

BLOCK_BITS: Final = 6  # 64 seqs: read in 60 µs for the sake of one of them
BLOCK_MASK: Final = (1 << BLOCK_BITS) - 1
BITS_BYTES: Final = (1 << BLOCK_BITS) // 8
READ_BLOCKS: Final = 32
STEM_CHARS: Final = 20  # of an id: the time it was made, and enough to tell all but a few apart

COPIED: Final = "copied"  # the store's mark: its log's end when rows that are counted on were last copied

MISSING: Final = "rows of archived units are missing: rebuild the views"
DAMAGED: Final = "a block of archived units is damaged: rebuild the views"

Row = TypeVar("Row", bound=tuple[Any, ...])
Bits = dict[int, int]  # by block: which of its seqs
Rows = dict[int, UnitRow]  # by seq, ascending


class Window(NamedTuple):
    """Blocks as they lie. There may be others past `until`; None: there are no more."""

    blocks: Sequence[tuple[int, bytes, bytes]]  # position, ids, columns
    after: int
    until: int | None


class Packed(NamedTuple):
    """Rows of one block."""

    units: int  # which of its seqs, a bit each
    drafted: bool  # whether one of them was a draft
    ids: bytes
    columns: bytes  # the others


class ColdUnits:
    """`moved` says whose rows are here and not in the store. It may name too many while a transaction is under way, and
    never too few: whoever reads looks into the store first, and a row that is there counts."""

    def __init__(self, file: SqliteColdFile, near: apsw.Connection, span: Span, owner: bytes, hash_at: HashAt) -> None:
        self._file = file
        self._near = near
        self._span = span
        self._owner = owner
        self._hash_at = hash_at
        self._copied_at = 0  # the log's end when rows were last copied
        self._came_back = False  # something, since `moved` was read
        self.moved = self._named_all()
        self._copied = self._there()
        # Whether all that the store counts on is here, as it was last: the file may be lost, or one of the two older.
        self.is_whole = not self.moved or (self._has_all() and self._is_of_this_log())

    # --- reading -----------------------------------------------------------------------------------------------------

    def get(self, seqs: Iterable[int]) -> Rows:
        """Those of these that are here."""
        return self._read(self._file.near(), seqs) if self.moved else {}

    def find(self, unit_id: str) -> UnitRow | None:
        near = self._whole()
        if near is None:
            return None
        query = "SELECT position & 0xffffffff FROM unit_ids WHERE stem = ? AND position BETWEEN ? AND ?"
        found: list[Any] = near.execute(query, (_stem(unit_id), self._span.base, self._span.end)).fetchall()
        rows = self.get(seq for (seq,) in found)
        return next((row for row in rows.values() if row.id == unit_id), None)

    def window(self, after: int) -> Window:
        """The next few blocks, as they lie."""
        near = self._whole()
        if near is None:
            return Window([], after, None)
        query = (
            "SELECT position, ids, columns FROM unit_blocks WHERE position BETWEEN ? AND ? ORDER BY position LIMIT ?"
        )
        first = self._span.position(max(after, 0) >> BLOCK_BITS)
        blocks: list[Any] = near.execute(query, (first, self._span.end, READ_BLOCKS)).fetchall()
        is_last = len(blocks) < READ_BLOCKS
        until = None if is_last else self._last_of(blocks[-1][0])
        return Window(blocks, after, until)

    def rows_in(self, window: Window, until: int | None) -> list[UnitRow]:
        return self._unpacked(window, until, _rows)

    def columns_in(self, window: Window, until: int | None) -> list[tuple[Any, ...]]:
        """As the store's own table gives them to those who read all units."""
        return self._unpacked(window, until, _batch_rows)

    def drafted(self) -> list[UnitRow]:
        near = self._whole()
        if near is None:
            return []
        query = "SELECT ids, columns FROM unit_blocks WHERE drafted AND position BETWEEN ? AND ? ORDER BY position"
        blocks: list[Any] = near.execute(query, (self._span.base, self._span.end)).fetchall()
        rows = (row for block in blocks for row in _rows(*block))
        return [row for row in self._counting(rows, 0, None) if _was_a_draft(row)]

    # --- moving ------------------------------------------------------------------------------------------------------

    async def copy(self, rows: Mapping[int, bytes], head: int) -> None:
        """On disk when it returns. `head`: the log's end when they were read."""
        ids, new, mixed = await self._prepared(rows)
        copied: Bits = {}
        anchor = (self._span.stream_no, head, self._hash_at(head))

        def merge(writer: apsw.Connection) -> None:
            sign(writer, self._span, self._owner)
            writer.execute("INSERT OR REPLACE INTO unit_anchors (stream_no, position, anchor) VALUES (?, ?, ?)", anchor)
            pairs = "SELECT value ->> 0, value ->> 1 FROM json_each(?)"
            writer.execute(f"INSERT OR IGNORE INTO unit_ids (stem, position) {pairs}", (ids,))
            for block, packed in new.items():
                copied[block] = self._put(writer, block, packed)
            for block, part in mixed.items():
                copied[block] = self._put(writer, block, _packed(self._kept(writer, block) | part))

        await self._file.write(merge)
        self._copied |= copied
        self._copied_at = head

    async def _prepared(self, rows: Mapping[int, bytes]) -> tuple[str, dict[int, Packed], dict[int, Rows]]:
        """Their ids as `json_each` takes them, whole blocks, and parts of those in which others lie already. One block
        in each turn: Python's work in a thread would keep the loop from its own, for 5 ms at a time."""
        stems: list[tuple[str, int]] = []
        new: dict[int, Packed] = {}
        mixed: dict[int, Rows] = {}
        for block, seqs in groupby(sorted(rows), lambda seq: seq >> BLOCK_BITS):
            part = {seq: _ROW.decode(rows[seq]) for seq in seqs}
            stems += [(_stem(row.id), self._span.base | seq) for seq, row in part.items()]
            if self.moved.get(block):
                mixed[block] = part
            else:
                new[block] = _packed(part)
            await asyncio.sleep(0)
        return json.encode(stems).decode(), new, mixed

    def leave(self, writer: apsw.Connection, rows: Mapping[int, bytes]) -> None:
        """In the store's transaction: rows that are what they were when they were copied leave its table."""
        now = writer.execute(SQL["get_units"], (self._span.positions(rows),))
        same = [row[0] for row in now if packed_row(row) == rows[row[0]]]
        writer.execute(SQL["drop_units"], (self._span.positions(same),))
        for block, units in _bits_of(same).items():
            self._name(writer, block, self._named(writer, block) | units)
        writer.execute(SQL["set_mark"], (self._span.stream_no, COPIED, self._copied_at))

    def bring_back(self, writer: apsw.Connection, seqs: Iterable[int]) -> None:
        """In the store's transaction: those of these that are here are rows of its table again."""
        wanted = {seq for seq in seqs if self._is_moved(seq)}
        if not wanted:
            return
        named = {block: self._named(writer, block) for block in {seq >> BLOCK_BITS for seq in wanted}}
        back = sorted(seq for seq in wanted if named[seq >> BLOCK_BITS] >> (seq & BLOCK_MASK) & 1)
        rows = self._read(self._file.beside(), back)
        writer.executemany(SQL["put_unit"], [(self._span.base | row.seq, *row[1:]) for row in rows.values()])
        for block, units in _bits_of(back).items():
            self._name(writer, block, named[block] & ~units)
        self._came_back = True

    def expect(self, seqs: Iterable[int]) -> None:
        """These are about to leave the store's table."""
        for block, units in _bits_of(seqs).items():
            self.moved[block] = self.moved.get(block, 0) | units

    def start_over(self) -> None:
        """Every row is in the store's table again, and was made anew."""
        self.moved, self.is_whole = {}, True

    async def tidy(self) -> None:
        """Drop the copies that nobody counts on. Nothing may move meanwhile."""
        if self._came_back:
            self._came_back, self.moved = False, self._named_all()
        loose = [block for block, units in self._copied.items() if units & ~self.moved.get(block, 0)]
        if not loose:
            return
        left: Bits = {}

        def drop(writer: apsw.Connection) -> None:
            for block in loose:
                left[block] = self._put(writer, block, _packed(self._kept(writer, block)))

        await self._file.write(drop)
        self._copied = {block: units for block, units in (self._copied | left).items() if units}

    # --- blocks ------------------------------------------------------------------------------------------------------

    def _named_all(self) -> Bits:
        rows: list[Any] = self._near.execute(SQL["all_moved_units"], (self._span.base, self._span.end)).fetchall()
        return _bits(rows)

    def _there(self) -> Bits:
        near = self._file.near()
        if near is None:
            return {}
        query = "SELECT position & 0xffffffff, units FROM unit_blocks WHERE position BETWEEN ? AND ?"
        with self._file.named():
            rows: list[Any] = near.execute(query, (self._span.base, self._span.end)).fetchall()
        return _bits(rows)

    def _has_all(self) -> bool:
        return all(units & ~self._copied.get(block, 0) == 0 for block, units in self.moved.items())

    def _is_of_this_log(self) -> bool:
        """A row that came back, changed and went again lies where it lay: only the log tells an older one apart."""
        near, stream_no = self._file.near(), self._span.stream_no
        counted_on: int = self._near.execute(SQL["get_mark"], (stream_no, COPIED)).get or 0
        query = "SELECT position, anchor FROM unit_anchors WHERE stream_no = ?"
        found: tuple[int, bytes | None] | None = None if near is None else near.execute(query, (stream_no,)).get
        if found is None:
            return counted_on == 0  # copied before there were anchors
        position, anchor = found
        return position >= counted_on and self._hash_at(position) == anchor

    def _read(self, connection: apsw.Connection | None, seqs: Iterable[int]) -> Rows:
        wanted = sorted({seq for seq in seqs if self._is_moved(seq)})
        found: Rows = {}
        for block, part in groupby(wanted, lambda seq: seq >> BLOCK_BITS):
            with self._file.named():
                held = {} if connection is None else _get(connection, self._span.position(block))
            try:
                found |= {seq: held[seq] for seq in part}
            except KeyError as missing:
                raise apsw.CorruptError(MISSING) from missing
        return found

    def _kept(self, writer: apsw.Connection, block: int) -> Rows:
        """What the store counts on of a block. The rest may even be damaged."""
        moved = self.moved.get(block, 0)
        held = _get(writer, self._span.position(block)) if moved else {}
        return {seq: row for seq, row in held.items() if moved >> (seq & BLOCK_MASK) & 1}

    def _put(self, writer: apsw.Connection, block: int, packed: Packed) -> int:
        position = self._span.position(block)
        if not packed.units:
            writer.execute("DELETE FROM unit_blocks WHERE position = ?", (position,))
            return 0
        query = "INSERT OR REPLACE INTO unit_blocks (position, units, drafted, ids, columns) VALUES (?, ?, ?, ?, ?)"
        writer.execute(query, (position, _packed_bits(packed.units), *packed[1:]))
        return packed.units

    def _named(self, writer: apsw.Connection, block: int) -> int:
        found: bytes | None = writer.execute(SQL["get_moved_units"], (self._span.position(block),)).get
        return 0 if found is None else int.from_bytes(found, "little")

    def _name(self, writer: apsw.Connection, block: int, units: int) -> None:
        position = self._span.position(block)
        if units:
            writer.execute(SQL["set_moved_units"], (position, _packed_bits(units)))
        else:
            writer.execute(SQL["drop_moved_units"], (position,))

    def _is_moved(self, seq: int) -> bool:
        return seq >= 0 and self.moved.get(seq >> BLOCK_BITS, 0) >> (seq & BLOCK_MASK) & 1 == 1

    def _counting(self, rows: Iterable[Row], after: int, until: int | None) -> Iterator[Row]:
        in_reach = (row for row in rows if after < row[0] and (until is None or row[0] <= until))
        return (row for row in in_reach if self._is_moved(row[0]))

    def _unpacked(self, window: Window, until: int | None, unpack: Callable[[bytes, bytes], list[Row]]) -> list[Row]:
        found: list[Row] = []
        for position, ids, columns in window.blocks:
            block = position - self._span.base
            first, last = block << BLOCK_BITS, self._last_of(position)
            if until is not None and first > until:
                break
            rows = unpack(ids, columns)
            within = window.after < first and (until is None or last <= until)
            is_all = within and self.moved.get(block) == self._copied.get(block)  # as it nearly always is
            found += rows if is_all else self._counting(rows, window.after, until)
        return found

    def _last_of(self, position: int) -> int:
        return (position - self._span.base) << BLOCK_BITS | BLOCK_MASK

    def _whole(self) -> apsw.Connection | None:
        if not self.is_whole:
            raise apsw.CorruptError(MISSING)
        return self._file.near() if self.moved else None


# --- bits ------------------------------------------------------------------------------------------------------------


def _bits(rows: Iterable[tuple[int, bytes]]) -> Bits:
    return {block: int.from_bytes(units, "little") for block, units in rows}


def _bits_of(seqs: Iterable[int]) -> Bits:
    blocks: Bits = {}
    for seq in seqs:
        blocks[seq >> BLOCK_BITS] = blocks.get(seq >> BLOCK_BITS, 0) | 1 << (seq & BLOCK_MASK)
    return blocks


def _packed_bits(units: int) -> bytes:
    return units.to_bytes(BITS_BYTES, "little")


def _stem(unit_id: str) -> str:
    return unit_id[:STEM_CHARS]


# --- packing ---------------------------------------------------------------------------------------------------------


def packed_row(row: Sequence[object]) -> bytes:
    """As one value: thousands of tuples that wait would call Python's collector, which keeps everybody waiting."""
    return _ENCODER.encode(row)


def _packed(rows: Rows) -> Packed:
    if not rows:
        return Packed(0, False, b"", b"")
    [units] = _bits_of(rows).values()
    ordered = [rows[seq] for seq in sorted(rows)]
    seqs, ids, *rest = zip(*ordered, strict=True)
    return Packed(units, any(map(_was_a_draft, ordered)), _squeezed(ids), _squeezed((seqs, *rest)))


def _squeezed(values: object) -> bytes:
    return zlib.compress(msgpack.encode(values), PACKING_LEVEL)


def _get(connection: apsw.Connection, position: int) -> Rows:
    query = "SELECT ids, columns FROM unit_blocks WHERE position = ?"
    found: tuple[bytes, bytes] | None = connection.execute(query, (position,)).get
    return {} if found is None else {row.seq: row for row in _rows(*found)}


def _rows(ids: bytes, columns: bytes) -> list[UnitRow]:
    seqs, *rest = _columns(columns)
    try:
        named = _IDS.decode(zlib.decompress(ids))
        return [UnitRow(*row) for row in zip(seqs, named, *rest, strict=True)]
    except (zlib.error, ValueError) as error:  # msgspec's errors are ValueErrors, too
        raise apsw.CorruptError(DAMAGED) from error


def _batch_rows(_ids: bytes, columns: bytes) -> list[tuple[Any, ...]]:
    """0 stands for none, as in the store's own query."""
    seqs, mode, kind, status, epoch, _, agent, registration, session, task, score, *rest = _columns(columns)
    committed, archived, echo, trust, purged = rest
    trusted = [DEFAULT_AUTHORITY if each is None else each for each in trust]
    blank = ([each or 0 for each in column] for column in (committed, archived, echo))
    places = ([each or 0 for each in column] for column in (session, task))
    gone = [each or 0 for each in purged]
    return list(
        zip(seqs, mode, kind, status, epoch, agent, registration, *places, score, *blank, trusted, gone, strict=True)
    )


def _columns(columns: bytes) -> Sequence[list[Any]]:
    try:
        return _COLUMNS.decode(zlib.decompress(columns))
    except (zlib.error, ValueError) as error:  # msgspec's errors are ValueErrors, too
        raise apsw.CorruptError(DAMAGED) from error


def _was_a_draft(row: UnitRow) -> bool:
    return row.mode == "draft" or row.committed_seq is not None


_ENCODER: Final = msgpack.Encoder()
_ROW: Final = msgpack.Decoder(UnitRow)
_IDS: Final = msgpack.Decoder(list[str])
_COLUMNS: Final = msgpack.Decoder(  # those of UnitRow, without the id
    tuple[
        list[int],
        list[Mode],
        list[str],
        list[UnitStatus],
        list[int],
        list[int],
        list[int],
        list[int],
        list[int | None],
        list[int | None],
        list[float | None],
        list[int | None],
        list[int | None],
        list[int | None],
        list[int | None],
        list[int | None],
    ]
)
