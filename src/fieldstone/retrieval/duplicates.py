"""Near-duplicates: units that say the same, so that one of them is enough for a page.

Near in meaning is not enough: "the limit is 50" and "the limit is 500" are as near as can be. What is counted, and
whether it is denied, must be the same, and most of the words.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

import numpy as np

from fieldstone.projections.columns import Snapshot
from fieldstone.projections.meaning import Reach
from fieldstone.projections.vector_index import Rows
from fieldstone.retrieval.words import STOP_WORDS, split

SAME_MEANING: Final = 0.75  # above what any two units of the field have in common
MOST_PAIRS: Final = 200  # the nearest ones: their texts are read
SAME_WORDS: Final = 0.7  # of all the words of both
LEAST_WORDS: Final = 3  # "Thank you!" and "Thanks!" are not worth comparing
COMPARED: Final = 128  # units of a page's pool that are compared with each other

_DENIALS: Final = frozenset(["no", "not", "never", "none", "nobody", "nothing", "without", "cannot", "neither", "nor"])
_NUMBER_WORDS: Final = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion dozen half quarter once
twice first second third fourth fifth
"""
_NUMBERS: Final = re.compile(rf"\d+(?:[.,]\d+)*|\b(?:{'|'.join(_NUMBER_WORDS.split())})\b")

Texts = Callable[[Sequence[int]], Awaitable[Mapping[int, str]]]


async def find_duplicates(units: Snapshot, meaning: Reach | None, pool: Rows, texts: Texts) -> dict[int, int]:
    """The rows of the pool that restate an older one of the pool, each with that one's row."""
    duplicates = _echoes(units, pool)
    if meaning is None:
        return duplicates
    rows = np.sort(pool[:COMPARED])  # older ones first: the first to say it is the original
    suspects = _pairs(units, meaning, rows)
    said = await texts([int(units.seq[row]) for row in sorted({row for pair in suspects for row in pair})])
    for original, row in suspects:
        if row in duplicates or original in duplicates:
            continue
        one, other = said.get(int(units.seq[original])), said.get(int(units.seq[row]))
        if one is not None and other is not None and restates(other, one):
            duplicates[row] = original
    return duplicates


def restates(text: str, original: str) -> bool:
    """Whether it says no more than the original, and nothing against it."""
    if _NUMBERS.findall(text.lower()) != _NUMBERS.findall(original.lower()):
        return False
    words, others = set(split(text)), set(split(original))
    if _denials(text, words) != _denials(original, others):
        return False
    words, others = words - STOP_WORDS, others - STOP_WORDS
    if min(len(words), len(others)) < LEAST_WORDS:
        return words == others
    return len(words & others) / len(words | others) >= SAME_WORDS


def _denials(text: str, words: set[str]) -> int:
    return len(words & _DENIALS) + text.lower().count("n't") + text.lower().count("n’t")


def _echoes(units: Snapshot, pool: Rows) -> dict[int, int]:
    """Units whose author had just been shown what they say."""
    echoes = np.sort(pool[units.echo_of[pool] > 0])  # older ones first: the echo of an echo goes back to the first
    originals = np.searchsorted(units.seq, units.echo_of[echoes])
    there = set(pool.tolist())
    found: dict[int, int] = {}
    for row, original in zip(echoes.tolist(), originals.tolist(), strict=True):
        if original in there:
            found[row] = found.get(original, original)
    return found


def _pairs(units: Snapshot, meaning: Reach, rows: Rows) -> list[tuple[int, int]]:
    """Pairs that are near enough to look at, each the older one first."""
    vectors = meaning.index.vectors(rows)
    near = np.triu(np.einsum("ik,jk->ij", vectors, vectors, optimize=False), 1)
    places = np.argwhere(near >= same_meaning(units, meaning))
    if len(places) > MOST_PAIRS:
        places = places[np.argsort(-near[places[:, 0], places[:, 1]], kind="stable")[:MOST_PAIRS]]
    return [(int(rows[one]), int(rows[other])) for one, other in places]


def same_meaning(units: Snapshot, meaning: Reach) -> float:
    """The least similarity of units that say the same: in some models everything is near everything."""
    mean = meaning.lie(units).mean
    by_chance = min(0.99, float(mean @ mean))
    return by_chance + SAME_MEANING * (1 - by_chance)
