"""Secrets in the entries of an OpenWOP memory: what is put, distilled, consolidated and deleted is stored clean.

Each place is tried with a secret that is known beforehand, or, where a text is written anew, with one that became known
after it was put. tests/mutate takes each of these scrubs out in turn.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

import pytest

from fieldstone.core.access import Caller
from fieldstone.core.errors import SecretLeakage
from fieldstone.core.limits import MAX_AUTHORITY
from fieldstone.field.compact import DELETED
from fieldstone.field.distillation import WHY
from fieldstone.field.entries import KeptEntry
from fieldstone.field.field import LocalField
from fieldstone.field.putting import PURPOSE, REASONING
from fieldstone.field.requoting import WHY as TAKEN_BACK
from fieldstone.field.synthesis import PROVENANCE_TAG
from fieldstone.profiles.openwop.adapter import MemoryAdapter, SeedEntry
from tests.field.fields import opened
from tests.redact.fakes import TOKENS, noise, private_key
from tests.requirements import requirement
from tests.scripted import eventually

REF: Final = "mem_house"
BUDGET: Final = 1_000
TOKEN: Final = TOKENS["GitHub personal"]
MARKER: Final = "[REDACTED:vault]"


@pytest.fixture
async def field() -> AsyncIterator[LocalField]:
    field = await opened()
    yield field
    await field.close()


@pytest.fixture
def memory(field: LocalField) -> MemoryAdapter:
    return MemoryAdapter(field)


async def exported(field: LocalField) -> str:
    """All that the log and the texts beside it say."""
    return b"".join([batch async for batch in field.export()]).decode()


async def listed(field: LocalField) -> list[KeptEntry]:
    return list(await field.memories.entries.list(REF, limit=None))


def phrase() -> str:
    """Nothing about it looks like a secret until somebody says that it is one."""
    return f"zeppelin {noise(10).lower()} under {noise(12).lower()}"


# --- put and seed -----------------------------------------------------------------------------------------------------


@requirement("openwop:sr-1:put")
async def test_an_entrys_content_and_tags_are_kept_without_their_secrets(
    field: LocalField, memory: MemoryAdapter
) -> None:
    await memory.put(REF, content=f"The token is {TOKEN}, as agreed.", tags=["plain", f"of {TOKEN}"])
    [entry] = await listed(field)
    assert "The token is [REDACTED:" in entry.content
    assert TOKEN not in entry.content
    assert TOKEN not in str(entry.tags)
    assert "plain" in entry.tags
    assert TOKEN not in await exported(field)


NAMED: Final[dict[str, Callable[[MemoryAdapter, str], Awaitable[object]]]] = {
    "an entry": lambda memory, secret: memory.seed(REF, [SeedEntry(id=secret, content="Fine.")]),
    "a node": lambda memory, secret: memory.put(REF, content="Fine.", node_id=secret),
    "an agent": lambda memory, secret: memory.put(REF, content="Fine.", agent_id=secret),
    "a memory": lambda memory, secret: memory.put(f"mem_{secret}", content="Fine."),
}


@requirement("openwop:sr-1:names-refused")
@pytest.mark.parametrize("what", NAMED)
async def test_an_id_of_an_entry_that_holds_a_secret_is_refused_and_nothing_is_kept(
    field: LocalField, memory: MemoryAdapter, what: str
) -> None:
    secret = noise(24).lower()
    await field.put_secret("vault", secret)
    before = await exported(field)
    with pytest.raises(SecretLeakage) as refusal:
        await NAMED[what](memory, secret)
    assert secret not in str(refusal.value)
    assert await exported(field) == before


@requirement("openwop:sr-1:split")
async def test_of_a_secret_split_over_entries_of_two_hosts_the_later_part_is_taken_out(field: LocalField) -> None:
    """Whoever reads the memory reads both."""
    secret = noise(32)
    await field.put_secret("vault", secret)
    one, other = (MemoryAdapter(field, Caller(credential, MAX_AUTHORITY)) for credential in ("one", "other"))
    await one.put(REF, content=f"It begins with {secret[:16]}")
    entry = await other.put(REF, content=f"{secret[16:]} is how it ends.")
    assert secret[16:] not in entry.content


# --- distillation -----------------------------------------------------------------------------------------------------


@requirement("openwop:sr-1:fresh-put", "openwop:distillation:recursive")
async def test_a_distillation_does_not_quote_a_secret_that_became_known_late(
    field: LocalField, memory: MemoryAdapter
) -> None:
    secret = phrase()
    for at in range(3):
        await memory.put(REF, content=f"We open door {at} with {secret}.")
    await field.put_secret("vault", secret)
    assert await memory.distil(REF, BUDGET) is not None
    [output] = await listed(field)
    assert MARKER in output.content
    assert secret not in output.content


@requirement("openwop:sr-1:split")
async def test_of_a_secret_in_a_source_no_part_gets_into_what_is_distilled(
    field: LocalField, memory: MemoryAdapter
) -> None:
    """Few lines of it would be quoted, and of those alone nobody could tell what they are."""
    key = private_key(lines=30)
    sources = [f"The door of the server room opens with this key:\n\n{key}\n\nKeep it well.", "The cat sleeps."]
    assert await memory.distil(REF, BUDGET, sources=sources) is not None
    [output] = await listed(field)
    told = await exported(field)
    assert "[REDACTED:" in told
    lines = key.splitlines()
    assert [line for line in lines if line in output.content or line in told] == []


@requirement("openwop:sr-1:own-words")
async def test_the_sources_of_a_distillation_are_kept_without_their_secrets(
    field: LocalField, memory: MemoryAdapter
) -> None:
    await memory.distil(REF, BUDGET, sources=[f"The token is {TOKEN}, as agreed.", "The cat sleeps."])
    told = await exported(field)
    assert "The token is [REDACTED:" in told
    assert TOKEN not in told


# --- consolidation ----------------------------------------------------------------------------------------------------


GIVEN: Final[dict[str, Callable[[MemoryAdapter, str], Awaitable[object]]]] = {
    "id": lambda memory, secret: memory.seed(REF, [SeedEntry(id=secret, content="The door is blue.")]),
    "tags": lambda memory, secret: memory.put(REF, content="The door is blue.", tags=[secret]),
    "node_id": lambda memory, secret: memory.put(REF, content="The door is blue.", node_id=secret),
    "agent_id": lambda memory, secret: memory.put(REF, content="The door is blue.", agent_id=secret),
}


@requirement("openwop:sr-1:tags-joined")
@pytest.mark.parametrize("place", GIVEN)
async def test_an_entry_that_gets_the_tags_of_another_is_kept_without_a_late_secret(
    field: LocalField, memory: MemoryAdapter, place: str
) -> None:
    secret = phrase()
    await memory.put(REF, content="The door is blue.", tags=["older"])
    await GIVEN[place](memory, secret)
    await field.put_secret("vault", secret)
    await memory.consolidate(REF)
    [entry] = await listed(field)
    assert "older" in entry.tags, "without it nothing was written anew"
    assert MARKER in str(getattr(entry, place))
    assert secret not in str(entry)


@requirement("openwop:sr-1:tags-joined")
async def test_tags_that_go_to_another_entry_lose_a_late_secret(field: LocalField, memory: MemoryAdapter) -> None:
    secret = phrase()
    await memory.put(REF, content="The door is blue.", tags=[f"of {secret}"])
    await memory.put(REF, content="The door is blue.", tags=["newer"])
    await field.put_secret("vault", secret)
    await memory.consolidate(REF)
    [entry] = await listed(field)
    assert set(entry.tags) == {"newer", f"of {MARKER}"}


# --- what was taken back, and is said no longer -----------------------------------------------------------------------


async def compacted(memory: MemoryAdapter, **contents: str) -> None:
    """Entries with these ids, which one stands for then."""
    await memory.seed(REF, [SeedEntry(id=entry_id, content=content) for entry_id, content in contents.items()])
    assert len(await memory.compact(REF, why="to be short", whole=True)) == 1


@requirement("openwop:sr-1:fresh-put")
async def test_what_stands_for_entries_is_made_anew_without_a_late_secret(
    field: LocalField, memory: MemoryAdapter
) -> None:
    secret = phrase()
    await compacted(memory, door="The door is blue.", key=f"We open it with {secret}.")
    await field.put_secret("vault", secret)
    await memory.seed(REF, [SeedEntry(id="door", content="The door is red.")])

    async def is_anew() -> bool:
        outputs = [entry.content for entry in await listed(field) if entry.is_output]
        return len(outputs) == 1 and "The door is blue." not in outputs[0]

    await eventually(is_anew)
    [output] = [entry for entry in await listed(field) if entry.is_output]
    assert f"We open it with {MARKER}." in output.content
    assert secret not in output.content


@requirement("openwop:sr-1:own-words")
async def test_the_reason_why_nothing_stands_for_entries_any_more_is_kept_without_a_secret(
    field: LocalField, memory: MemoryAdapter
) -> None:
    await field.put_secret("vault", TAKEN_BACK)
    await compacted(memory, door="The door is blue.", cat="The cat sleeps.")
    await memory.seed(REF, [SeedEntry(id="door", content="It is red."), SeedEntry(id="cat", content="It ran away.")])

    async def is_gone() -> bool:
        return not any(entry.is_output for entry in await listed(field))

    await eventually(is_gone)
    told = await exported(field)
    assert MARKER in told
    assert TAKEN_BACK not in told


# --- the host's own words ---------------------------------------------------------------------------------------------


async def lived(memory: MemoryAdapter) -> None:
    """Of each sentence that a host writes by itself, one."""
    entry = await memory.put(REF, content="The cat sleeps.")
    await memory.delete(REF, entry.id)
    await memory.distil(REF, BUDGET, sources=["The door is blue.", "The cat sleeps."])


SENTENCES: Final = {
    "the purpose of an entry": PURPOSE[-8:],  # not its first word, which is in the names of sessions, too
    "the reasoning of an entry": REASONING,
    "the reason of a deletion": DELETED,
    "the reason of a distillation": WHY,
    "the purpose of a distillation": "to keep what 2 entries say in fewer words",
    "the reasoning of a distillation": f"Made from 2 entries within {BUDGET} tokens.",
    "the tag of a distillation": PROVENANCE_TAG,
}


@requirement("openwop:sr-1:own-words")
@pytest.mark.parametrize("sentence", SENTENCES)
async def test_not_even_the_hosts_own_words_go_past_the_harness(
    field: LocalField, memory: MemoryAdapter, sentence: str
) -> None:
    """They come with the code, and yet somebody may have made them a secret: there is one road, and no way around."""
    other = await opened()
    await lived(MemoryAdapter(other))
    assert SENTENCES[sentence] in await exported(other), "else the test would prove nothing"
    await other.close()
    await field.put_secret("vault", SENTENCES[sentence])
    await lived(memory)
    told = await exported(field)
    assert MARKER in told
    assert SENTENCES[sentence] not in told


MADE: Final[dict[str, Callable[[MemoryAdapter], Awaitable[object]]]] = {
    "a compaction": lambda memory: memory.compact(REF, why="to be short", whole=True),
    "a distillation": lambda memory: memory.distil(REF, token_budget=BUDGET),
}


@requirement("openwop:sr-1:tags-joined")
@pytest.mark.parametrize("how", MADE)
async def test_tags_of_what_is_made_from_entries_lose_a_late_secret(
    field: LocalField, memory: MemoryAdapter, how: str
) -> None:
    secret = phrase()
    for content in ("The door is blue.", "The roof is red."):
        await memory.put(REF, content=content, tags=[f"of {secret}"])
    await field.put_secret("vault", secret)
    await MADE[how](memory)
    [entry] = await listed(field)
    assert f"of {MARKER}" in entry.tags
    assert secret not in str(entry.tags)
