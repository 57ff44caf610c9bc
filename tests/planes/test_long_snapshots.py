"""Snapshots that are written piece by piece, so that no writer waits for megabytes; and files from before that."""

import asyncio
from importlib import resources
from pathlib import Path
from typing import Any

import apsw
import pytest
from msgspec import msgpack

from fieldstone.backends.sqlite.planes import SCHEMA, SqlitePlanes, planes_path
from fieldstone.planes import compaction
from fieldstone.planes.messages import encode_state
from fieldstone.planes.snapshots import replayed
from fieldstone.ports.planes import PlaneStore, ReadTables, SnapshotRow, SnapshotSeal, StreamRow, Tables
from tests.planes.events import delta, finished
from tests.planes.scene import SCOPE, Scene
from tests.planes.transport import STREAM, streams_of
from tests.requirements import requirement

EMPTY = SnapshotRow(STREAM, 3, 1, 0, b"", b"")


async def grown(store: PlaneStore, *pieces: bytes) -> bytes:
    def begin(tables: Tables) -> None:
        tables.put_stream(tables.stream(STREAM) or StreamRow(STREAM))
        tables.put_snapshot(EMPTY)

    await store.write(begin)
    whole = b""
    for piece in pieces:
        assert await store.write(lambda tables: tables.grow_snapshot(STREAM, 3, piece, at=len(whole)))  # noqa: B023
        whole += piece
    return whole


async def test_pieces_make_one_state_and_its_seal_comes_last(scene: Scene) -> None:
    whole = await grown(scene.store, b"one ", b"two " * 5_000, b"three")
    assert await scene.store.read(lambda tables: tables.snapshots(STREAM)) == [EMPTY._replace(state=whole)]
    seal = SnapshotSeal(3, 7, 1, b"checksum")
    assert await scene.store.write(lambda tables: tables.seal_snapshot(STREAM, seal))
    row = SnapshotRow(STREAM, 3, 7, 1, b"checksum", whole)
    assert await scene.store.read(lambda tables: (tables.snapshot(STREAM), tables.seals(STREAM))) == (row, [seal])


async def test_a_snapshot_that_is_gone_or_has_another_size_does_not_grow(scene: Scene) -> None:
    await grown(scene.store, b"one ")
    for at, last_seq in ((0, 3), (5, 3), (4, 2)):
        assert not await scene.store.write(
            lambda tables, at=at, seq=last_seq: tables.grow_snapshot(STREAM, seq, b"two", at=at)  # type: ignore[misc]
        )
    assert not await scene.store.write(lambda tables: tables.seal_snapshot(STREAM, SnapshotSeal(2, 7, 1, b"")))
    assert await scene.store.read(lambda tables: tables.snapshots(STREAM)) == [EMPTY._replace(state=b"one ")]


@pytest.mark.parametrize("way", ["dropped", "replaced", "dropped but another"])
async def test_no_piece_is_left_of_a_snapshot_that_is_gone(tmp_path: Path, way: str) -> None:
    planes = SqlitePlanes(tmp_path / "field.db")
    store = planes.open(SCOPE)
    await grown(store, b"one ", b"two ")
    if way == "replaced":
        await store.write(lambda tables: tables.put_snapshot(EMPTY))
    else:
        await store.write(lambda tables: tables.put_snapshot(EMPTY._replace(last_seq=4)))
        await store.write(lambda tables: tables.drop_snapshots(STREAM, but=4 if way == "dropped but another" else None))
    await planes.close()
    assert _rows(tmp_path, "SELECT count(*) FROM pieces") == [(0,)]


async def test_older_snapshots_go_piece_by_piece_once_they_are_below_the_floor(tmp_path: Path) -> None:
    planes = SqlitePlanes(tmp_path / "field.db")
    store = planes.open(SCOPE)
    streams = streams_of(Scene(store))
    await streams.append(STREAM, [delta("a "), delta("b "), delta("c "), delta("d ")])
    await grown(store, b"one ", b"two ")
    assert not await store.write(lambda tables: tables.erode_snapshots(STREAM)), "it is not below the floor"
    await store.write(lambda tables: tables.put_snapshot(EMPTY._replace(last_seq=4)))
    await store.write(lambda tables: tables.put_stream(StreamRow(STREAM, head=4, floor=4)))
    for left in (2, 2, 1):
        assert await store.write(lambda tables: tables.erode_snapshots(STREAM))
        assert len(await store.read(lambda tables: tables.seals(STREAM))) == left
    assert not await store.write(lambda tables: tables.erode_snapshots(STREAM))
    await planes.close()
    assert _rows(tmp_path, "SELECT count(*) FROM pieces") == [(0,)]


@requirement("planes:rules:snapshot-equals-replay", "planes:compaction:warm-start")
async def test_a_state_of_many_slices_is_the_full_replay_byte_for_byte(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "SLICE_BYTES", 100)
    streams = streams_of(scene)
    await streams.append(STREAM, [*[delta(f"word {number} ") for number in range(200)], finished(), delta("and on")])
    before = await scene.store.read(_state)
    assert (await streams.compact(STREAM)).eligible == 202
    await streams.settled()
    assert await scene.store.read(_state) == before
    await streams.append(STREAM, [delta(" further")])
    assert (await streams.compact(STREAM)).eligible == 1
    await streams.settled()
    assert b"and on further" in await scene.store.read(_state)
    assert [seal.last_seq for seal in await scene.store.read(lambda tables: tables.seals(STREAM))] == [203]


@requirement("planes:secrets:compacted")
async def test_a_deleted_stream_leaves_no_byte_of_a_snapshot_in_slices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "SLICE_BYTES", 1_000)
    planes = SqlitePlanes(tmp_path / "field.db")
    streams = streams_of(Scene(planes.open(SCOPE)))
    await streams.append(STREAM, [delta(f"kiln{number}qx ") for number in range(2_000)])
    await streams.compact(STREAM)
    await streams.settled()
    await streams.delete(STREAM)
    await streams.settled()
    held = _on_disk(tmp_path)
    assert not [number for number in range(2_000) if f"kiln{number}qx".encode() in held]
    await planes.close()


async def test_a_file_from_before_is_brought_up_to_date_with_its_snapshots(tmp_path: Path) -> None:
    _old_file(tmp_path)
    planes = SqlitePlanes(tmp_path / "field.db")
    store = planes.open(SCOPE)
    old = SnapshotRow(STREAM, 3, 7, 1, b"checksum", b"state")
    assert await store.read(lambda tables: tables.snapshots(STREAM)) == [old]
    await store.write(lambda tables: tables.put_snapshot(EMPTY._replace(last_seq=4)))
    assert await store.write(lambda tables: tables.grow_snapshot(STREAM, 4, b"more", at=0))
    assert await store.write(lambda tables: tables.drop_snapshots(STREAM)) == 2
    await planes.close()
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    new = SqlitePlanes(fresh / "field.db")
    await new.open(SCOPE).write(lambda tables: tables.put_stream(StreamRow(STREAM)))
    await new.close()
    schema = "SELECT name, sql FROM sqlite_schema ORDER BY name"
    assert _rows(tmp_path, schema) == _rows(fresh, schema)


async def test_two_that_bring_a_file_up_to_date_at_once_do_it_once(tmp_path: Path) -> None:
    _old_file(tmp_path)
    both = [SqlitePlanes(tmp_path / "field.db") for _ in range(2)]
    await asyncio.gather(*(each.open(SCOPE).read(lambda tables: tables.snapshots(STREAM)) for each in both))
    for each in both:
        await each.close()
    assert _rows(tmp_path, "PRAGMA user_version") == [(len(SCHEMA),)]


def _old_file(folder: Path) -> None:
    """As version 1 left it, with one snapshot."""
    connection = apsw.Connection(str(planes_path(folder / "field.db")))
    connection.execute((resources.files("fieldstone.backends.sqlite") / SCHEMA[0]).read_text())
    connection.execute("INSERT INTO scopes (scope_no, scope) VALUES (1, ?)", (SCOPE,))
    connection.execute(
        "INSERT INTO streams (stream_no, scope_no, stream, active_ms, head) VALUES (1, 1, ?, 1, 3)", (STREAM,)
    )
    about = msgpack.encode((7, 1, b"checksum"))
    connection.execute(
        "INSERT INTO snapshots (position, about, state) VALUES (?, ?, ?)", (1 << 30 | 3, about, b"state")
    )
    connection.execute("PRAGMA user_version=1")
    connection.close()


def _rows(folder: Path, query: str) -> list[Any]:
    connection = apsw.Connection(str(planes_path(folder / "field.db")))
    rows = connection.execute(query).fetchall()
    connection.close()
    return rows


def _on_disk(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


def _state(tables: ReadTables) -> bytes:
    return encode_state(replayed(tables, STREAM).state)
