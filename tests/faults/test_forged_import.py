"""A chain of hashes needs no key, so anyone can continue one: what is imported must also be possible."""

from collections.abc import Callable

import pytest
from msgspec import Raw, json, structs

from fieldstone.backends.memory.store import MemoryStore
from fieldstone.core.chain import link, seal
from fieldstone.core.errors import InvalidPayload
from fieldstone.core.events import (
    Entry,
    LoggedRelation,
    UnitRecorded,
    UnitSuperseded,
    UnitTexts,
    encode_entry,
    encode_texts,
)
from fieldstone.core.limits import MAX_EPOCH
from fieldstone.core.text import CleanText
from fieldstone.field.field import LocalField
from fieldstone.field.transfer import Line
from fieldstone.redact import shared_harness
from fieldstone.testing import KEY
from tests.faults.stores import open_field
from tests.messages import accepted, join, record

SALT = b"s" * 16
Forgery = Callable[[Entry], Entry]


def clean(text: str) -> CleanText:
    return shared_harness().clean_one(text).text


def forged_line(entry: Entry, previous: bytes, texts: UnitTexts | None) -> bytes:
    encoded = None if texts is None else encode_texts(texts)
    entry = structs.replace(entry, text=None if encoded is None else seal(SALT, encoded))
    body = encode_entry(entry)
    line = Line(Raw(body), link(previous, body).hex())
    if encoded is not None:
        line = Line(line.entry, line.hash, SALT.hex(), Raw(encoded))
    return json.encode(line)


async def field_with_a_unit() -> LocalField:
    field = await open_field(MemoryStore(KEY))
    await join(field, "ada")
    await accepted(field, record("ada", "The first unit."))
    return field


async def next_entry(field: LocalField) -> tuple[Entry, bytes]:
    """An entry that would be right: a second unit like the first, one epoch later; and the hash it stands on."""
    last = (await field.log(limit=1_000)).entries[-1]
    unit = UnitRecorded(
        id=f"mem-{'0' * 31}1", mode="committed", type="finding", agent=1, registration=2, session=None, score=0.5
    )
    entry = Entry(last.entry.seq + 1, last.entry.epoch + 1, last.entry.at_ms, unit)
    return entry, bytes.fromhex(last.hash)


def with_unit(**changes: object) -> Forgery:
    return lambda entry: structs.replace(entry, event=structs.replace(entry.event, **changes))


FORGERIES: dict[str, Forgery] = {
    "an epoch before the field's": lambda entry: structs.replace(entry, epoch=1),
    "an epoch that another unit has": lambda entry: structs.replace(entry, epoch=entry.epoch - 1),
    "the last epoch there is": lambda entry: structs.replace(entry, epoch=MAX_EPOCH),
    "a time that cannot be written": lambda entry: structs.replace(entry, at_ms=10**17),
    "a score above 1": with_unit(score=9.0),
    "a type that the field does not know": with_unit(type="nonsense"),
    "an id that no field makes": with_unit(id="mem-x"),
    "an agent that is none": with_unit(agent=99),
    "a registration that is none": with_unit(registration=1),
    "a session that is none": with_unit(session=3),
    "a relation without its text": with_unit(relations=(LoggedRelation("supports", 3),)),
    "a relation to what is no unit": with_unit(relations=(LoggedRelation("supports", 1),)),
}
TEXTS = UnitTexts(clean("The second unit."), clean("to go on"), reasoning=clean("seen"))


async def test_a_right_continuation_is_taken_in() -> None:
    """Without it the refusals below would prove nothing."""
    field = await field_with_a_unit()
    entry, previous = await next_entry(field)
    assert (await field.import_lines([forged_line(entry, previous, TEXTS)])).imported == 1
    assert (await field.status()).units == 2
    assert (await field.verify()).ok
    await field.close()


@pytest.mark.parametrize("what", FORGERIES)
async def test_a_continuation_that_cannot_be_is_refused_and_nothing_is_taken_in(what: str) -> None:
    field = await field_with_a_unit()
    before = await field.status()
    entry, previous = await next_entry(field)
    with pytest.raises(InvalidPayload, match="line 1"):
        await field.import_lines([forged_line(FORGERIES[what](entry), previous, TEXTS)])
    assert await field.status() == before
    await field.close()


async def test_a_unit_without_its_text_and_a_unit_that_is_not_there_are_refused() -> None:
    field = await field_with_a_unit()
    entry, previous = await next_entry(field)
    with pytest.raises(InvalidPayload, match="has no text"):
        await field.import_lines([forged_line(entry, previous, None)])
    gone = structs.replace(entry, event=UnitSuperseded(unit=77, by_unit=3))
    with pytest.raises(InvalidPayload, match="refers to entry 77"):
        await field.import_lines([forged_line(gone, previous, None)])
    await field.close()


async def test_a_unit_that_is_there_already_is_refused() -> None:
    field = await field_with_a_unit()
    taken = (await field.log(limit=1_000)).entries[2].entry.event
    assert isinstance(taken, UnitRecorded)
    entry, previous = await next_entry(field)
    with pytest.raises(InvalidPayload, match="an id that is taken"):
        await field.import_lines([forged_line(with_unit(id=taken.id)(entry), previous, TEXTS)])
    await field.close()
