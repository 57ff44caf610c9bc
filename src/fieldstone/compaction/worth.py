"""What a piece is worth to those who ask later, and what it costs.

What is repeated is not what is asked for; what is specific is. So a piece is worth its names, figures and dates, that
it decides something or answers somebody, and the words that are said in it for the first time; never its likeness to
the rest.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from fieldstone.compaction.pace import unhurried
from fieldstone.compaction.pieces import Piece
from fieldstone.compaction.writing import Span, line
from fieldstone.ports.summarizer import Original
from fieldstone.ports.tokens import TokenCounter
from fieldstone.retrieval.summary import DECIDING, MOST_SPECIFICS
from fieldstone.retrieval.words import split

# A fact is worth this many words that nobody else says. Measured on talk: from 3 to 8 it makes no difference.
FACT_WORTH: Final = 4.0

_ASKS: Final = re.compile(r"[?？؟](?=[\"'”’)\]]*(?:\s|$))")


class Offer(Struct, frozen=True, gc=False):
    """A piece that may be quoted, and the tokens of a line of its own: in company it costs no more, mostly less."""

    span: Span
    worth: float
    tokens: int


def offers(group: Sequence[Original], pieces: Sequence[Piece], room_tokens: int, counter: TokenCounter) -> list[Offer]:
    """Of the pieces that are not essential those that tell anything and fit, the most telling for its tokens first.

    `group` is in the order in which it was said.
    """
    found = []
    for piece, worth in unhurried(zip(pieces, _worths(group, pieces), strict=True)):
        if piece.essential or worth <= 0:
            continue
        tokens = counter.count_within(line(group, piece.span), room_tokens)
        if tokens is not None:
            found.append(Offer(piece.span, worth, tokens))
    # Those of the same worth stay in the order of the group.
    return sorted(found, key=lambda offer: -offer.worth / offer.tokens)


def _worths(group: Sequence[Original], pieces: Sequence[Piece]) -> Iterator[float]:
    rarity = _rarity(pieces)
    # Those who talk call each other by name: that tells nothing.
    for author in {original.author for original in group}:
        rarity.update(dict.fromkeys(split(author), 0.0))
    answers = _answers(group)
    said: set[str] = set()
    times_said: Counter[tuple[str, ...]] = Counter()
    for piece in pieces:
        told = piece.facts
        counted = set(told.figures)
        plain = tuple(word for word in told.words if word not in counted)
        facts = len(told.dates) + sum(rarity[fact] for fact in (*told.figures, *told.names))
        facts += (not DECIDING.isdisjoint(plain)) + (piece.span.original in answers)
        worth = FACT_WORTH * min(facts, MOST_SPECIFICS) + sum(rarity[word] for word in plain if word not in said)
        said.update(plain)
        # A report that comes every hour is told by the first of its kind, and by the second a little.
        times_said[plain] += 1
        yield worth / times_said[plain]


def _rarity(pieces: Sequence[Piece]) -> dict[str, float]:
    """1 for a word of a single piece, towards 0 for one that all of them have."""
    frequency = Counter(word for piece in unhurried(pieces) for word in piece.facts.words)
    most = math.log(1 + len(pieces))
    return {word: 1 - math.log(times) / most for word, times in unhurried(frequency.items())}


def _answers(group: Sequence[Original]) -> set[int]:
    """What is said after another's question was asked for."""
    return {
        at
        for at in unhurried(range(1, len(group)))
        if group[at].author != group[at - 1].author and _ASKS.search(group[at - 1].text)
    }
