"""Two ways to keep the same index: whatever is written and asked, memory and SQLite find the same."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from fieldstone.backends.memory.store import MemoryStore
from fieldstone.backends.sqlite.store import SqliteStore
from fieldstone.ports.store import Commit, Store
from fieldstone.ports.text_index import Document, Postings
from fieldstone.testing import KEY
from fieldstone.testing.rows import entries

MOST_DOCUMENTS = 12
# Everything that a request may hold: it is refused at the edge with a NUL or half of a surrogate pair.
anything = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)
words = st.lists(st.sampled_from(("cache", "Caches", "Zürich", "zurich", "naïve", "İstanbul", "ŉ", "ﬁne")), max_size=6)
documents = st.lists(anything | words.map(" ".join), max_size=MOST_DOCUMENTS)


@given(batches=st.lists(documents, min_size=1, max_size=2), most_postings=st.integers(1, 20))
def test_memory_and_sqlite_find_the_same(batches: list[list[str]], most_postings: int) -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(_compare(Path(folder) / "field.db", batches, most_postings))


async def _compare(path: Path, batches: list[list[str]], most_postings: int) -> None:
    stores: tuple[Store, ...] = (MemoryStore(KEY), SqliteStore.open(path, KEY))
    answers = []
    for store in stores:
        await store.commit(Commit(entries=entries(2 * MOST_DOCUMENTS)))
        seq = 0
        queries: list[list[str]] = []
        for texts in batches:
            batch = [Document(seq + place, text) for place, text in enumerate(texts, start=1)]
            seq += len(batch)
            await store.text_index.add(batch, position=max(seq, 1))
            queries += [sorted(set(store.text_index.analyze(text))) for text in texts]
        found = await store.text_index.search(queries, most_postings=most_postings)
        answers.append((queries, [_comparable(each, query) for each, query in zip(found, queries, strict=True)]))
        await store.close()
    assert answers[0] == answers[1]


def _comparable(found: Postings, query: Sequence[str]) -> object:
    """An index need not count its documents for a query without terms."""
    seqs = {term: sorted(seqs) for term, seqs in found.seqs.items()}
    return (found.documents, found.frequencies, seqs) if query else seqs
