"""Full text behind the log."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct


class Document(Struct, frozen=True, gc=False, array_like=True):
    seq: int
    text: str


class Postings(NamedTuple):
    """Where the words of a query stand."""

    position: int  # of the index when it was searched
    documents: int  # in the whole index
    frequencies: dict[str, int]  # how many documents hold each word of the query, in any of its forms
    seqs: Mapping[str, Sequence[int]]  # of the words that were visited; frequent ones are pruned


class TextIndex(Protocol):
    """Which units hold which words. It follows the log, so it may be behind: `position` says how far.

    A search visits a bounded number of postings: the rarest words first, as many as fit into `most_postings`, at least
    one (`prune`). Of a word that is visited every document is there. What a match is worth is decided elsewhere.
    """

    def analyze(self, text: str) -> list[str]:
        """The terms of a text, as this index cuts and folds them."""
        ...

    async def position(self) -> int:
        """The seq up to which all units are in the index."""
        ...

    async def add(self, documents: Sequence[Document], *, position: int) -> None:
        """Index these and move on to `position`, in one step. One that is there already takes its own place."""
        ...

    async def search(self, queries: Sequence[Sequence[str]], *, most_postings: int) -> Sequence[Postings]:
        """One result for each query of words with distinct terms, all from the same state of the index.

        A word that is cut into more than one term stands nowhere.
        """
        ...

    async def remove(self, seqs: Sequence[int]) -> None:
        """Forget these documents; those that are not there are passed over. On disk when it returns: the position stays
        where it is, so nobody would notice one that came back."""
        ...

    async def scour(self) -> bool:
        """Overwrite what replaced and removed documents left in the index. False: a reader keeps an older state."""
        ...

    async def clear(self) -> None:
        """Forget everything; the position is 0 again."""
        ...


def joined(one: Postings, other: Postings) -> Postings:
    """Two indexes as if they were one. A word that either of them pruned is pruned."""
    words = one.frequencies.keys() | other.frequencies.keys()
    frequencies = {word: one.frequencies.get(word, 0) + other.frequencies.get(word, 0) for word in words}
    visited = {
        word for word in words if all(word in each.seqs or not each.frequencies.get(word) for each in (one, other))
    }
    seqs = {word: sorted({*one.seqs.get(word, ()), *other.seqs.get(word, ())}) for word in visited if frequencies[word]}
    return Postings(one.position, one.documents + other.documents, frequencies, seqs)


def prune(frequencies: dict[str, int], most_postings: int) -> list[str]:
    """The rarest words that fit into `most_postings`, at least one; words that stand nowhere are left out."""
    kept: list[str] = []
    visited = 0
    for word, frequency in sorted(frequencies.items(), key=lambda item: (item[1], item[0])):
        visited += frequency
        if frequency and (not kept or visited <= most_postings):
            kept.append(word)
    return kept
