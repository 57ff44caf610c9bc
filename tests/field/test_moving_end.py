"""What reads the log to its end comes to an end, though others write in every turn."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from fieldstone.backends.memory.store import MemoryStore
from fieldstone.core.requests import Compact, CompactFilter, Message
from fieldstone.field.field import LocalField
from fieldstone.field.transfer import export
from fieldstone.testing import KEY
from tests.field.fields import opened
from tests.messages import join, record, register
from tests.requirements import requirement

MOST_WRITES = 1_000  # beside what takes a few turns


async def _export(field: LocalField, store: MemoryStore) -> None:
    async for _ in export(store):
        await asyncio.sleep(0)  # whoever takes the lines is slower than the disk


async def _verify(field: LocalField, store: MemoryStore) -> None:
    assert (await field.verify()).ok


async def _purge(field: LocalField, store: MemoryStore) -> None:
    await field.send(Message("COMPACT", "op", Compact("purge", CompactFilter(types=("finding",)), verify=False)))


@requirement("akashik:compact:ends-beside-writers")
@pytest.mark.parametrize("reading", [_export, _verify, _purge])
async def test_others_that_write_in_every_turn_do_not_keep_it_from_ending(
    reading: Callable[[LocalField, MemoryStore], Coroutine[Any, Any, None]],
) -> None:
    store = MemoryStore(KEY)
    field = await opened(store=store, detect_conflicts=False)  # so whoever writes is answered at once
    await join(field, "ada")
    await field.send(register("op", authority=10))
    await field.send(record("ada", "a quagga was seen"))
    running = asyncio.ensure_future(reading(field, store))
    writes = 0
    while not running.done() and writes < MOST_WRITES:
        await field.send(record("ada", "somebody else writes, too", type="observation"))
        writes += 1
    assert running.done()
    await running
    await field.close()
