"""Full text in dictionaries, by the same rules as the default store's."""

from collections.abc import Sequence

from fieldstone.backends.analysis import Analyzer
from fieldstone.ports.text_index import Document, Postings, prune


class MemoryTextIndex:
    def __init__(self) -> None:
        self._analyzer = Analyzer()
        self._postings: dict[str, set[int]] = {}
        self._terms: dict[int, frozenset[str]] = {}  # of each document, so that it can be taken out again
        self._position = 0

    def analyze(self, text: str) -> list[str]:
        return self._analyzer.terms(text)

    async def position(self) -> int:
        return self._position

    async def add(self, documents: Sequence[Document], *, position: int) -> None:
        self._forget([document.seq for document in documents])
        for document in documents:
            self._terms[document.seq] = frozenset(self.analyze(document.text))
            for term in self._terms[document.seq]:
                self._postings.setdefault(term, set()).add(document.seq)
        self._position = position

    async def remove(self, seqs: Sequence[int]) -> None:
        self._forget(seqs)

    async def search(self, queries: Sequence[Sequence[str]], *, most_postings: int) -> Sequence[Postings]:
        return [self._search(terms, most_postings) for terms in queries]

    async def scour(self) -> bool:
        return True

    async def clear(self) -> None:
        self._postings.clear()
        self._terms.clear()
        self._position = 0

    def _forget(self, seqs: Sequence[int]) -> None:
        for seq in seqs:
            for term in self._terms.pop(seq, ()):
                self._postings[term].discard(seq)

    def _search(self, words: Sequence[str], most_postings: int) -> Postings:
        found = {word: self._seqs_of(word) for word in words}
        frequencies = {word: len(seqs) for word, seqs in found.items()}
        seqs = {word: sorted(found[word]) for word in prune(frequencies, most_postings)}
        return Postings(self._position, len(self._terms), frequencies, seqs)

    def _seqs_of(self, word: str) -> set[int]:
        terms = self.analyze(word)
        return self._postings.get(terms[0], set()) if len(terms) == 1 else set()
