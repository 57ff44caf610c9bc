"""How much of what a request is about stands in a unit: the share of the query's rare words, by information."""

import math
from collections.abc import Collection, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fieldstone.ports.text_index import Postings
from fieldstone.projections.columns import Mask, Snapshot
from fieldstone.projections.text_follower import TailUnit, Terms
from fieldstone.retrieval.words import Query

Shares = NDArray[np.float32]
_NONE: Final = np.empty(0, np.int64)


class LexicalMatch:
    """For one query: each unit's share, and which words made it.

    Index and tail count as one collection, so a unit's share does not change when the index catches up with it.
    `drafts` are the caller's own: they match, but count in no frequency. `hidden` units, by seq, are not there for the
    caller, and so do not count in one either.
    """

    def __init__(
        self,
        query: Query,
        postings: Postings,
        tail: Sequence[TailUnit],
        drafts: Terms,
        hidden: NDArray[np.int64] = _NONE,
    ) -> None:
        self._words = query.words
        self._seqs: dict[str, NDArray[np.int64]] = {}
        self._among: tuple[Snapshot, dict[str, NDArray[np.int64]]] | None = None
        self._weights: dict[str, float] = {}
        unindexed = [unit for unit in tail if unit.since > postings.position]  # the index has moved on meanwhile
        documents = postings.documents + len(unindexed) - hidden.size
        for term, word in query.words.items():
            pruned = postings.frequencies.get(word, 0) > 0 and word not in postings.seqs
            if pruned:
                continue
            seqs = np.asarray(postings.seqs.get(word, ()), np.int64)
            fresh = [unit.seq for unit in unindexed if term in unit.terms]
            if fresh:
                seqs = np.union1d(seqs, np.asarray(fresh, np.int64))
            if hidden.size:
                seqs = np.setdiff1d(seqs, hidden, assume_unique=True)
            aside = [seq for seq, terms in drafts.items() if term in terms]
            # A word that stands nowhere counts, too: what is asked for is not there.
            self._weights[term] = information(documents, int(seqs.size))
            if seqs.size or aside:
                self._seqs[term] = np.union1d(seqs, np.asarray(aside, np.int64)) if aside else seqs

    @property
    def total(self) -> float:
        return sum(self._weights.values())

    def shares(self, units: Snapshot) -> Shares:
        """0 for a unit without any of the words, 1 for one with all of them."""
        shares = np.zeros(units.size, np.float32)
        for term, rows in self._rows_among(units).items():
            shares[rows] += self._weights[term] / self.total
        return np.minimum(shares, np.float32(1.0), out=shares)

    def share_in(self, terms: Collection[str]) -> float:
        """The share of a text with these terms, whether or not it is a unit."""
        found = sum(weight for term, weight in self._weights.items() if term in terms)
        return min(1.0, found / self.total) if self._weights else 0.0

    def places(self, units: Snapshot, visible: Mask) -> list[NDArray[np.int64]]:
        """For each word the visible rows in which it stands; none for one that nobody has used."""
        found = self._rows_among(units)
        rows = [found.get(term, _NONE) for term in self._weights]
        return [of_word[visible[of_word]] for of_word in rows]

    def _rows_among(self, units: Snapshot) -> dict[str, NDArray[np.int64]]:
        """By term the rows in which it stands. Kept: a request asks twice, and in a million units they take 1 ms."""
        if self._among is None or self._among[0] is not units:
            rows = {term: np.searchsorted(units.seq, seqs) for term, seqs in self._seqs.items()}
            self._among = units, {term: found[found < units.size] for term, found in rows.items()}
        return self._among[1]

    def words_in(self, seqs: Sequence[int]) -> list[list[str]]:
        """The query's words that stand in each of these units, most telling first."""
        found: list[list[str]] = [[] for _ in seqs]
        wanted = np.asarray(seqs, np.int64)
        for term in sorted(self._seqs, key=lambda term: -self._weights[term]):
            known = self._seqs[term]  # ascending
            places = np.minimum(np.searchsorted(known, wanted), known.size - 1)
            for at in np.flatnonzero(known[places] == wanted):
                found[at].append(self._words[term])
        return found


def information(documents: int, frequency: int) -> float:
    """Rare words tell more. Always above 0, also in a field of one unit."""
    return math.log(1 + (max(documents, frequency) - frequency + 0.5) / (frequency + 0.5))
