"""Who registered or dropped a known secret, and when, is on record; the value is not."""

from collections.abc import AsyncIterator, Callable

import pytest
from msgspec import structs

from fieldstone.backends.memory.store import MemoryStore, Room
from fieldstone.backends.memory.vault import MemoryVault
from fieldstone.core.errors import Forbidden, InvalidPayload, NotFound, StorageFull
from fieldstone.core.events import Entry, SecretChanged, SecretTexts, decode_texts
from fieldstone.field.field import LocalField
from fieldstone.field.secrets import Secrets, SecretScope
from fieldstone.testing import KEY
from tests.access.people import credential
from tests.faults.test_forged_import import forged_line
from tests.field.fields import opened
from tests.messages import accepted, join, record
from tests.redact.fakes import noise
from tests.requirements import requirement

OPERATOR = credential("operator", 8)


@pytest.fixture
async def store() -> MemoryStore:
    return MemoryStore(KEY)


@pytest.fixture
async def field(store: MemoryStore) -> AsyncIterator[LocalField]:
    made = await opened(store=store)
    yield made
    await made.close()


async def changes(field: LocalField) -> list[Entry]:
    entries = [line.entry for line in (await field.log(limit=1_000)).entries]
    return [entry for entry in entries if isinstance(entry.event, SecretChanged)]


async def beside(store: MemoryStore, entry: Entry) -> SecretTexts:
    stored = (await store.texts.get([entry.seq]))[entry.seq]
    return decode_texts(stored.body, SecretTexts)


@pytest.mark.parametrize(
    ("scope", "of", "holder"),
    [
        (SecretScope(tenant=True), "tenant", None),
        (SecretScope(user="u-1"), "user", "u-1"),
        (SecretScope(run="r-1"), "run", "r-1"),
    ],
    ids=str,
)
@requirement("akashik:access:secrets-recorded")
async def test_a_change_tells_who_made_it_and_of_what_and_never_the_value(
    field: LocalField, store: MemoryStore, scope: SecretScope, of: str, holder: str | None
) -> None:
    value = noise(24)
    await field.put_secret("db-password", value, scope, OPERATOR)
    await field.drop_secret("db-password")
    put, dropped = await changes(field)
    assert put.event == SecretChanged(change="registered", of=of, credential=OPERATOR.credential)  # type: ignore[arg-type]
    assert dropped.event == SecretChanged(change="dropped", of=of)  # type: ignore[arg-type]
    for entry in (put, dropped):
        assert structs.astuple(await beside(store, entry)) == ("db-password", holder)
    assert value.encode() not in b"".join([piece async for piece in field.export()])


async def test_what_is_refused_leaves_no_trace_of_a_change(field: LocalField) -> None:
    await field.put_secret("known", known := noise(24))
    attempts = [
        (field.put_secret("short", "x", caller=OPERATOR), InvalidPayload),
        (field.put_secret("no name", noise(24)), InvalidPayload),
        (field.put_secret("other", noise(24), SecretScope(user=known)), InvalidPayload),
        (field.put_secret("mine", noise(24), caller=credential("eve", 4)), Forbidden),
        (field.drop_secret("unknown"), NotFound),
        (field.drop_secret("known", credential("eve", 4)), Forbidden),
    ]
    for attempt, error in attempts:
        with pytest.raises(error):
            await attempt
    assert len(await changes(field)) == 1
    assert [secret.id for secret in await field.secrets()] == ["known"]


@pytest.mark.parametrize("disguise", [str.swapcase, lambda text: text[::-1], lambda text: text.encode().hex()])
@pytest.mark.parametrize("whose", ["its own", "another"])
@pytest.mark.parametrize("place", ["id", "user", "run"])
async def test_an_id_or_a_scope_that_holds_a_secret_in_disguise_is_refused(
    field: LocalField, disguise: Callable[[str], str], whose: str, place: str
) -> None:
    """They are listed, and stand in markers."""
    await field.put_secret("known", known := noise(24))
    value = noise(24)
    told = disguise(value if whose == "its own" else known)
    scopes = {"id": SecretScope(tenant=True), "user": SecretScope(user=told), "run": SecretScope(run=told)}
    name, scope = told if place == "id" else "other", scopes[place]
    with pytest.raises(InvalidPayload, match="holds a secret itself"):
        await field.put_secret(name, value, scope)
    beside_the_field = Secrets(MemoryVault())
    beside_the_field.put("known", known, SecretScope(tenant=True))
    with pytest.raises(InvalidPayload, match="holds a secret itself"):
        beside_the_field.put(name, value, scope)
    assert [secret.id for secret in await field.secrets()] == ["known"]


async def test_a_name_that_looks_like_a_secret_is_rewritten_on_record(field: LocalField, store: MemoryStore) -> None:
    name, run = (f"{'AK'}IA{noise(16).upper()}" for _ in range(2))
    await field.put_secret(name, noise(24), SecretScope(run=run))
    [put] = await changes(field)
    told = structs.astuple(await beside(store, put))
    assert all(text.startswith("[REDACTED:") for text in told), told
    assert [(secret.id, secret.scope.run) for secret in await field.secrets()] == [(name, run)]


async def test_a_name_that_became_a_secret_is_swept(field: LocalField, store: MemoryStore) -> None:
    late = f"zeppelin.{noise(12).lower()}"
    await field.put_secret(late, noise(24))
    await field.drop_secret(late)
    await field.put_secret("late", late)
    assert (await field.sweep()).replaced == 2
    assert [(await beside(store, entry)).name for entry in await changes(field)] == ["[REDACTED:late]"] * 2 + ["late"]
    assert (await field.verify()).ok


async def test_a_full_store_can_be_told_what_must_not_be_stored() -> None:
    field = await opened(store=MemoryStore(KEY, room=Room(max_bytes=1_000)))
    await join(field, "ada")
    with pytest.raises(StorageFull):
        await accepted(field, record("ada", "A long story. " * 100))
    for number in range(10):
        await field.put_secret(f"late-{number}", noise(24))
    assert len(await field.secrets()) == len(await changes(field)) == 10
    await field.close()


async def test_an_export_brings_the_record_along_and_not_the_secrets(field: LocalField) -> None:
    await field.put_secret("db-password", noise(24), caller=OPERATOR)
    lines = b"".join([piece async for piece in field.export()]).splitlines()
    other = await opened(store=MemoryStore(KEY))
    await other.import_lines(lines)
    assert await changes(other) == await changes(field)
    assert await other.secrets() == []
    assert (await other.verify()).ok
    await other.close()


async def test_a_forged_record_cannot_bring_a_text_into_the_log(field: LocalField) -> None:
    await field.put_secret("db-password", noise(24))
    last = (await field.log(limit=1_000)).entries[-1]
    forged = Entry(last.entry.seq + 1, last.entry.epoch, last.entry.at_ms, SecretChanged(change="dropped", of="run"))
    said = structs.replace(forged, event=structs.replace(forged.event, credential="what I wanted to say"))
    with pytest.raises(InvalidPayload, match="says what no field says"):
        await field.import_lines([forged_line(said, bytes.fromhex(last.hash), None)])
    assert (await field.import_lines([forged_line(forged, bytes.fromhex(last.hash), None)])).imported == 1
