"""Callers who go away, and stores without room: nothing is left half done, and reads go on."""

import asyncio
from pathlib import Path

import pytest

from fieldstone.backends.memory.store import MemoryStore
from fieldstone.backends.sqlite.store import SqliteStore
from fieldstone.backends.sqlite.text_index import SqliteTextIndex
from fieldstone.core.errors import StorageFull
from fieldstone.core.replies import AttuneReply
from fieldstone.field import writer
from fieldstone.testing import KEY, FaultyStore, fail
from tests.faults.stores import open_field
from tests.messages import accepted, attune, attuned, join, record
from tests.requirements import requirement

UNITS = 1_200  # more than one batch of the index


async def test_a_rebuild_whose_caller_goes_away_is_finished_and_every_unit_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    field = await open_field(SqliteStore.open(tmp_path / "field.db", KEY))
    await join(field, "ada", "grace")
    await asyncio.gather(*(field.send(record("ada", f"quagga {number}")) for number in range(UNITS)))
    emptied, clear = asyncio.Event(), SqliteTextIndex.clear

    async def clear_and_tell(index: SqliteTextIndex) -> None:
        await clear(index)
        emptied.set()

    monkeypatch.setattr(SqliteTextIndex, "clear", clear_and_tell)
    rebuilding = asyncio.ensure_future(field.rebuild())
    await emptied.wait()  # the worst moment: the index is empty, and nothing is in it again
    rebuilding.cancel()
    await asyncio.gather(rebuilding, return_exceptions=True)
    await accepted(field, record("ada", "one more quagga"))
    await field._follower._index()  # the next batch, which must not jump over a gap
    await field.close()
    field = await open_field(SqliteStore.open(tmp_path / "field.db", KEY))
    reply = await field.send(attune("grace", "quagga", max_units=2 * UNITS))
    assert isinstance(reply, AttuneReply)
    assert [found.factors["lexical"] for found in reply.record if found.factors] == [1.0] * (UNITS + 1)
    await field.close()


@requirement("akashik:errors:storage-full")
async def test_a_read_that_brings_a_later_epoch_is_answered_by_a_store_without_room() -> None:
    store = FaultyStore(MemoryStore(KEY), at=4, strike=fail(StorageFull()), times=1_000)
    field = await open_field(store)
    await join(field, "ada", "grace")
    unit = await accepted(field, record("ada", "there was room for this"))
    before = (await field.status()).epoch
    assert [each.id for each in await attuned(field, attune("grace", epoch=before + 5))] == [unit]
    assert (await field.status()).epoch == before, "what is not on disk is not told on"
    await field.close()


@requirement("akashik:idempotency:same-answer")
async def test_beside_a_request_without_room_a_remembered_one_gets_its_first_answer() -> None:
    store = FaultyStore(MemoryStore(KEY), at=3, strike=fail(StorageFull()), times=1_000)
    field = await open_field(store)
    await join(field, "ada")
    first = await field.send(record("ada", "kept", id="m-1"))
    again, refused = await asyncio.gather(
        field.send(record("ada", "kept", id="m-1")),
        field.send(record("ada", "no room", id="m-2")),
        return_exceptions=True,
    )
    assert again == first
    assert isinstance(refused, StorageFull)
    await field.close()


async def test_waits_for_an_epoch_that_were_given_up_leave_nothing_behind() -> None:
    field = await open_field(MemoryStore(KEY))
    await join(field, "ada")
    waits = [asyncio.ensure_future(field._state.epoch_reached(10**9, timeout_ms=60_000)) for _ in range(20)]
    await asyncio.sleep(0)
    for wait in waits:
        wait.cancel()
    await asyncio.gather(*waits, return_exceptions=True)
    assert field._state._epoch_waiters == []
    await field.close()


async def test_much_text_is_cleaned_off_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    handed_over: list[object] = []
    to_thread = asyncio.to_thread

    async def noted(function: object, *arguments: object) -> object:
        handed_over.append(function)
        return await to_thread(function, *arguments)  # type: ignore[arg-type]

    field = await open_field(MemoryStore(KEY))
    await join(field, "ada")
    monkeypatch.setattr(asyncio, "to_thread", noted)
    await accepted(field, record("ada", "short"))
    assert not handed_over
    await accepted(field, record("ada", "word " * (writer.SCANNED_ON_THE_SPOT_CHARS // 4)))
    assert len(handed_over) == 1
    await field.close()
