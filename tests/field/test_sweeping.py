"""A sweep reaches what was made of the texts, too: the index, the vectors, and what is kept in memory."""

from fieldstone.backends.memory.store import MemoryStore
from fieldstone.core.replies import AttuneReply
from fieldstone.field.field import LocalField
from fieldstone.testing import KEY
from tests.field.fields import opened, staffed
from tests.messages import accepted, attune, record
from tests.redact.fakes import noise
from tests.scripted import ScriptedEmbedder


def late_secret() -> str:
    """Nothing about it looks like a secret until somebody says that it is one."""
    return f"zeppelin {noise(10).lower()} under {noise(12).lower()}"


async def swept(field: LocalField, secret: str, *, texts: int = 1) -> None:
    await field.put_secret("door", secret)
    assert (await field.sweep()).replaced == texts


async def lexical(field: LocalField, hint: str) -> float:
    """How well the words of the hint fit the one unit that is there."""
    reply = await field.send(attune("ben", hint))
    assert isinstance(reply, AttuneReply)
    [found] = reply.record
    return found.factors.get("lexical", 0.0) if found.factors else 0.0


async def embedded_units(store: MemoryStore) -> list[int]:
    [model] = await store.vectors.models()
    return [int(seq) async for piece in store.vectors.scan(model.number) for seq in piece.seqs]


async def test_what_was_swept_is_found_by_the_words_that_are_left_and_by_no_other() -> None:
    field, secret = await staffed(), late_secret()
    await accepted(field, record("ada", f"The door opens with {secret}."))
    assert await lexical(field, secret) > 0
    await swept(field, secret, texts=2)  # the unit's, and the hint of the read
    assert await lexical(field, "door opens") > 0
    assert await lexical(field, secret) == 0
    await field.close()


async def test_the_vector_of_a_swept_text_is_erased_also_where_the_model_is_silent() -> None:
    embedder, store, secret = ScriptedEmbedder(), MemoryStore(KEY), late_secret()
    field = await staffed(embedder, store=store)
    await accepted(field, record("ada", f"The door opens with {secret}."))
    await field.close()
    assert len(await embedded_units(store)) == 1
    silent = ScriptedEmbedder()
    silent.fails = True
    field = await opened(silent, store=store)
    await swept(field, secret)
    assert await embedded_units(store) == []
    await field.close()


async def test_a_swept_text_is_embedded_as_it_is_now() -> None:
    embedder, secret = ScriptedEmbedder(), late_secret()
    field = await staffed(embedder)
    await accepted(field, record("ada", f"The door opens with {secret}."))
    await swept(field, secret)
    await field.close()
    assert any("The door opens with [REDACTED:door]." in text for [text] in embedder.calls)


async def test_no_reading_of_a_swept_text_stays_in_memory() -> None:
    field, secret = await staffed(), late_secret()
    for agent in ("ada", "ben"):
        await accepted(field, record(agent, f"The door of {agent} opens with {secret}."))
    assert any(secret in text for text in field._detecting._prepared), "else the test would prove nothing"
    await field.put_secret("door", secret)
    await field.sweep()
    assert not any(secret in text for text in field._detecting._prepared)
    await field.close()
