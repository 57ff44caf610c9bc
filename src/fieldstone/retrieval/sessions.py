"""What sessions are about: the words of a hint may stand in several units of a session, and its meaning in another."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from fieldstone.projections.columns import NO_SESSION, Snapshot
from fieldstone.projections.vector_index import Floats, Rows
from fieldstone.retrieval.lexical import information
from fieldstone.retrieval.score import Values

NEVER: Final = 1e-30
STEPS: Final = 1_000  # of nearness: counting by them takes a tenth of the time of sorting


class Sessions:
    """Those in which something matches. `rows`: the units that do, by themselves, ascending.

    In a session that holds much of what matches, a word or something near stands by chance. So both count only by how
    probable it is that each of their places would lie in another session.
    """

    def __init__(self, units: Snapshot, rows: Rows) -> None:
        self._rows = rows
        numbers, self._at, sizes = np.unique(units.session[rows], return_inverse=True, return_counts=True)
        elsewhere = np.where(numbers == NO_SESSION, 0.0, 1 - sizes / max(1, rows.size))  # no session is about nothing
        self._log_elsewhere: Floats = np.log(np.maximum(elsewhere, NEVER)).astype(np.float32)

    def by_words(self, places: Sequence[Rows]) -> Values:
        """For each unit how much of the query stands anywhere in its session. `places`: for each word its units, of
        those that match. A word that stands in most of these sessions tells little of one."""
        sessions = len(self._log_elsewhere)
        shares = np.zeros(sessions, np.float32)
        whole = 0.0
        for rows in places:
            told = np.zeros(sessions, np.bool_)
            told[self._at[np.searchsorted(self._rows, rows)]] = True
            weight = information(sessions, int(np.count_nonzero(told)))
            shares[told] += np.float32(weight) * np.exp(self._log_elsewhere[told] * np.float32(rows.size))
            whole += weight
        return (shares / np.float32(whole or 1))[self._at]

    def by_meaning(self, near: Values) -> Values:
        """For each unit how near the nearest one of its session is. `near`: of each of the units that match."""
        nearest = np.zeros(len(self._log_elsewhere), np.float32)
        np.maximum.at(nearest, self._at, near)
        as_near = np.bincount(_steps(near), minlength=STEPS + 1)[::-1].cumsum()[::-1].astype(np.float32)
        nearest *= np.exp(self._log_elsewhere * as_near[_steps(nearest)])
        return nearest[self._at]


def _steps(near: Values) -> Rows:
    return (near * np.float32(STEPS)).astype(np.int64)
