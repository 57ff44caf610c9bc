"""A small field with something of everything in it, the same to the byte each time it is made."""

import asyncio
from pathlib import Path
from typing import Final

from msgspec import Struct, json

from fieldstone.backends.memory.store import MemoryStore
from fieldstone.backends.memory.vault import MemoryVault
from fieldstone.core.requests import Detect, Message
from fieldstone.core.units import Confidence
from fieldstone.field.field import LocalField
from fieldstone.field.opening import open_local
from fieldstone.field.options import Models, Options
from fieldstone.field.secrets import Secrets
from fieldstone.ports.store import Store
from fieldstone.redact import shared_harness
from fieldstone.testing import KEY, ManualClock, SeededIds, WordCounter
from tests.messages import (
    accepted,
    attune,
    commit,
    deregister,
    discard,
    join,
    record,
    register,
    relation,
    retract,
)

EXPORT: Final = Path(__file__).with_name("field.v1.jsonl")
FACTS: Final = Path(__file__).with_name("field.v1.json")
DIGEST_KEY: Final = bytes(range(32))  # a store makes one by chance; the checksum of the views depends on it


class Facts(Struct, frozen=True):
    """What is true of the field that the export is of."""

    entries: int
    epoch: int
    head: str
    views: str
    units: dict[str, str]  # content → status


async def open_on(store: Store, clock: ManualClock) -> LocalField:
    return await open_local(
        store,
        clock=clock,
        ids=SeededIds(20250615),
        harness=shared_harness,
        secrets=Secrets(MemoryVault()),
        models=Models(WordCounter()),
        options=Options(detection_timeout_ms=60_000),
    )


async def facts_of(field: LocalField, store: Store) -> Facts:
    status = await field.status()
    rows = await store.views.scan_units(after=0, limit=1_000)
    units = [await field.unit(row.id) for row in rows]
    return Facts(
        entries=status.log_entries,
        epoch=status.epoch,
        head=(await store.log.head()).hash.hex(),
        views=await store.views.checksum(),
        units={unit.content: unit.status for unit in units},
    )


async def make() -> tuple[bytes, Facts]:
    store = MemoryStore(KEY)
    store.digest_key = DIGEST_KEY
    clock = ManualClock()
    field = await open_on(store, clock)
    await _live(field, clock)
    lines = b"".join([batch async for batch in field.export()])
    facts = await facts_of(field, store)
    await field.close()
    return lines, facts


async def _live(field: LocalField, clock: ManualClock) -> None:
    await join(field, "ada", "grace")
    await field.send(register("linus", role="reviewer", authority=8))
    clock.advance(1_000)
    first = await accepted(field, record("ada", "The cache is cold.", task="t-1", session="s-1"))
    second = await accepted(
        field,
        record("grace", "The cache is warm.", relations=[relation("contradicts", first, "one of us is wrong")]),
    )
    await accepted(field, record("ada", "It was cold at noon.", relations=[relation("supersedes", first)], task="t-1"))
    draft = await accepted(field, record("grace", "Is it the disk?", mode="draft", type="question", confidence=None))
    await field.send(commit("grace", draft, confidence=Confidence(0.5, "a guess", ("trace 9",), ("same host",))))
    dropped = await accepted(field, record("grace", "Never mind.", mode="draft", confidence=None))
    await field.send(discard("grace", dropped, reason="answered"))
    clock.advance(1_000)
    wrong = await accepted(field, record("ada", "It is the network.", relations=[relation("contradicts", second)]))
    await field.send(retract("linus", wrong, reason="the network was idle"))
    elsewhere = relation("supports", "elsewhere")
    await accepted(field, record("ada", "Zürich – 東京 – naïve", relations=[elsewhere], epoch=90))
    await accepted(field, record("linus", "It is not.", relations=[relation("contradicts", draft)], type="decision"))
    await field.send(attune("linus", "is the cache cold?", epoch=120))
    await field.send(Message("DETECT", "linus", Detect("list")))
    await field.send(deregister("grace", by="linus"))
    await asyncio.gather(*(accepted(field, record("ada", f"Reading {number}.", id=f"m-{number}")) for number in (1, 2)))


def read_facts() -> Facts:
    return json.decode(FACTS.read_bytes(), type=Facts)
