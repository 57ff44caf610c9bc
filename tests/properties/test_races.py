"""What is committed while a read goes on concerns the next one, and never breaks this one."""

from collections.abc import Awaitable, Callable, Sequence

import pytest

from fieldstone.backends.memory.store import MemoryStore
from fieldstone.core.replies import AttuneReply
from fieldstone.core.requests import Message
from fieldstone.field.field import LocalField
from fieldstone.ports.text_index import Document, Postings, TextIndex
from fieldstone.testing import KEY, FaultyStore
from tests.faults.stores import open_field
from tests.messages import accepted, attune, join, record, relation
from tests.requirements import requirement


class SlowIndex:
    """While it searches, something else happens."""

    def __init__(self, index: TextIndex) -> None:
        self._index = index
        self.meanwhile: Callable[[], Awaitable[None]] | None = None

    def analyze(self, text: str) -> list[str]:
        return self._index.analyze(text)

    async def position(self) -> int:
        return await self._index.position()

    async def add(self, documents: Sequence[Document], *, position: int) -> None:
        await self._index.add(documents, position=position)

    async def search(self, queries: Sequence[Sequence[str]], *, most_postings: int) -> Sequence[Postings]:
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile()
        return await self._index.search(queries, most_postings=most_postings)

    async def remove(self, seqs: Sequence[int]) -> None:
        await self._index.remove(seqs)

    async def scour(self) -> bool:
        return await self._index.scour()

    async def clear(self) -> None:
        await self._index.clear()


@requirement("akashik:attune:conflicts")
@pytest.mark.parametrize("before", [0, 1, 3])
async def test_a_conflict_that_comes_while_attune_looks_concerns_the_next_call(before: int) -> None:
    memory = MemoryStore(KEY)
    index = SlowIndex(memory.text_index)
    field = await open_field(FaultyStore(memory, text_index=index))
    await join(field, "ada", "grace", "linus")
    for number in range(before):
        await accepted(field, record("ada", f"unit {number}"))

    async def disagree() -> None:
        first = await accepted(field, record("ada", "it is cold"))
        await accepted(field, record("grace", "it is warm", relations=[relation("contradicts", first)]))

    index.meanwhile = disagree
    seen = await _attuned(field, attune("linus", "cold"))
    assert (len(seen.record), len(seen.conflicts)) == (before, 0)
    after = await _attuned(field, attune("linus", "cold"))
    assert (len(after.record), len(after.conflicts)) == (before + 2, 1)
    assert after.epoch > seen.epoch
    await field.close()


async def _attuned(field: LocalField, message: Message) -> "AttuneReply":  # type: ignore[type-arg]
    reply = await field.send(message)
    assert isinstance(reply, AttuneReply)
    return reply
