"""How good a ranking is, given what should have been found: recall, reciprocal rank and nDCG, each from 0 to 1."""

import math
from collections.abc import Collection, Iterable, Sequence
from statistics import fmean
from typing import NamedTuple

from msgspec import Struct


class Answer(NamedTuple):
    """What was found for one question, best first, and what should have been."""

    found: Sequence[str]
    wanted: Collection[str]


class Quality(Struct, frozen=True):
    """Means over questions. `recall` by the number of units that were looked at; `ndcg` over one of these numbers."""

    questions: int
    recall: dict[int, float]
    mrr: float
    ndcg: float


def quality(answers: Collection[Answer], *, cuts: Iterable[int], ndcg_cut: int) -> Quality:
    return Quality(
        questions=len(answers),
        recall={cut: _mean(recall(answer, cut) for answer in answers) for cut in cuts},
        mrr=_mean(reciprocal_rank(answer) for answer in answers),
        ndcg=_mean(ndcg(answer, ndcg_cut) for answer in answers),
    )


def recall(answer: Answer, cut: int) -> float:
    """The share of the wanted ones that is among the first `cut`: half of what is needed is worth a half."""
    wanted = _required(answer)
    return len(wanted.intersection(answer.found[:cut])) / len(wanted)


def reciprocal_rank(answer: Answer) -> float:
    """1 where the first one is wanted, 1/2 where the second is the first wanted one, 0 where none is."""
    wanted = _required(answer)
    return next((1 / place for place, found in enumerate(answer.found, start=1) if found in wanted), 0.0)


def ndcg(answer: Answer, cut: int) -> float:
    """The gain of the wanted ones among the first `cut`, less the later they come, as a share of the best possible."""
    wanted = _required(answer)
    gain = sum(_discount(place) for place, found in enumerate(answer.found[:cut], start=1) if found in wanted)
    return gain / sum(_discount(place) for place in range(1, min(cut, len(wanted)) + 1))


def _discount(place: int) -> float:
    return 1 / math.log2(place + 1)


def _required(answer: Answer) -> set[str]:
    if not answer.wanted:
        raise ValueError("a question for which nothing should be found measures nothing")
    return set(answer.wanted)


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return fmean(listed) if listed else 0.0
