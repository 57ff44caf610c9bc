"""Which tokens of two statements stand for each other, and what is left over between them."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fieldstone.detection.statements import Statement


class Gap(NamedTuple):
    """What stands in the same place: indexes into the tokens of each side. One of them may be empty."""

    a: tuple[int, ...]
    b: tuple[int, ...]


def gaps(a: Statement, b: Statement) -> list[Gap]:
    """The places where two statements differ, without words that only stand elsewhere."""
    spans = list(_spans(a.keys, b.keys))
    left = {a.keys[at] for start, end, _, _ in spans for at in range(start, end)}
    moved = left & {b.keys[at] for _, _, start, end in spans for at in range(start, end)}
    found = []
    for a_start, a_end, b_start, b_end in spans:
        gap = Gap(
            tuple(at for at in range(a_start, a_end) if a.keys[at] not in moved),
            tuple(at for at in range(b_start, b_end) if b.keys[at] not in moved),
        )
        if gap.a or gap.b:
            found.append(gap)
    return _joined(found) if moved else found


def _joined(found: list[Gap]) -> list[Gap]:
    """Where words have moved, one leftover on each side face each other wherever they stand."""
    a = [at for gap in found for at in gap.a]
    b = [at for gap in found for at in gap.b]
    return [Gap((*a,), (*b,))] if len(a) == len(b) == 1 else found


def _spans(a: Sequence[str], b: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    start, a_end, b_end = 0, len(a), len(b)
    shortest = min(a_end, b_end)
    while start < shortest and a[start] == b[start]:
        start += 1
    while a_end > start and b_end > start and a[a_end - 1] == b[b_end - 1]:
        a_end, b_end = a_end - 1, b_end - 1
    at_a = at_b = start
    for match_a, match_b in _matches(a, b, start, a_end, b_end):
        if match_a > at_a or match_b > at_b:
            yield at_a, match_a, at_b, match_b
        at_a, at_b = match_a + 1, match_b + 1
    if at_a < a_end or at_b < b_end:
        yield at_a, a_end, at_b, b_end


def _matches(a: Sequence[str], b: Sequence[str], start: int, a_end: int, b_end: int) -> Iterator[tuple[int, int]]:
    """The longest common subsequence of the two middles."""
    if start in (a_end, b_end) or set(a[start:a_end]).isdisjoint(b[start:b_end]):
        return
    lengths = [[0] * (b_end - start + 1)]
    for i in range(a_end - 1, start - 1, -1):
        row, below, word = [0] * (b_end - start + 1), lengths[-1], a[i]
        for j in range(b_end - start - 1, -1, -1):
            row[j] = below[j + 1] + 1 if word == b[start + j] else max(below[j], row[j + 1])
        lengths.append(row)
    lengths.reverse()
    i, j = 0, 0
    while i < a_end - start and j < b_end - start:
        if a[start + i] == b[start + j]:
            yield start + i, start + j
            i, j = i + 1, j + 1
        elif lengths[i + 1][j] >= lengths[i][j + 1]:
            i += 1
        else:
            j += 1
