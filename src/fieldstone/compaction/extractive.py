"""A synthesis without a model: the group's own words. The same group within the same budget gives the same bytes."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from fieldstone.compaction.pace import in_thread, unhurried
from fieldstone.compaction.pieces import forget, pieces_of, whole
from fieldstone.compaction.worth import Offer, offers
from fieldstone.compaction.writing import Span, written
from fieldstone.ports.summarizer import Distillate, Original, Quote
from fieldstone.ports.tokens import TokenCounter

NAME: Final = "extractive"
# Quotes that share a line cost less than they were counted for, and leave room for more. After so many rounds the rest
# is too little.
ROUNDS: Final = 4


class Extractive:
    """The `Summarizer` that needs nothing but a counter of tokens."""

    name = NAME

    def __init__(self, counter: TokenCounter) -> None:
        self._counter: Final = counter

    async def distil(self, group: Sequence[Original], most_tokens: int) -> Distillate:
        return await in_thread(distil, group, most_tokens, self._counter)

    async def close(self) -> None:
        """There is nothing to close."""


class Draft(NamedTuple):
    text: str
    quotes: tuple[Quote, ...]
    tokens: int


def distil(group: Sequence[Original], most_tokens: int, counter: TokenCounter) -> Distillate:
    """All of it, if it fits; else what is essential, and of the rest what tells most for its tokens."""
    ordered = in_order(group)
    distillate = _all_of_it(ordered, most_tokens, counter) or _best_of_it(ordered, most_tokens, counter)
    forget(group)
    return distillate


def _all_of_it(group: Sequence[Original], most_tokens: int, counter: TokenCounter) -> Distillate | None:
    said = ((at, original.text) for at, original in enumerate(unhurried(group)) if original.text.strip())
    text, quotes = written(group, [Span(at, *whole(text)) for at, text in said])
    tokens = counter.count_within(text, most_tokens)
    return None if tokens is None else Distillate(text, quotes, tokens, NAME)


def in_order(group: Sequence[Original]) -> list[Original]:
    """As it was said, however it was given."""
    return sorted(group, key=lambda original: (original.epoch, original.unit_id))


def _best_of_it(group: Sequence[Original], most_tokens: int, counter: TokenCounter) -> Distillate:
    pieces = pieces_of(group)
    essential = [piece.span for piece in pieces if piece.essential]
    room_tokens = most_tokens - counter.count(written(group, essential)[0])
    draft = filled(group, essential, offers(group, pieces, room_tokens, counter), most_tokens, counter)
    return Distillate(*draft, NAME, over_budget=draft.tokens > most_tokens)


def filled(
    group: Sequence[Original],
    spans: Sequence[Span],
    waiting: Sequence[Offer],
    most_tokens: int,
    counter: TokenCounter,
) -> Draft:
    """These quotes, and as many of the offers, in their order, as there is room for."""
    chosen = list(spans)
    draft = _drafted(group, chosen, counter)
    for _ in range(ROUNDS):
        taken, waiting = _first_fitting(waiting, most_tokens - draft.tokens)
        while taken:
            grown = _drafted(group, chosen + taken, counter)
            if grown.tokens <= most_tokens:
                chosen, draft = chosen + taken, grown
                break
            del taken[len(taken) // 2 :]  # they parted quotes that had shared a line
    return draft


def _drafted(group: Sequence[Original], spans: Sequence[Span], counter: TokenCounter) -> Draft:
    text, quotes = written(group, spans)
    return Draft(text, quotes, counter.count(text))


def _first_fitting(waiting: Sequence[Offer], room_tokens: int) -> tuple[list[Span], list[Offer]]:
    """Those that fit together, in their order, and the rest."""
    taken: list[Span] = []
    left: list[Offer] = []
    for offer in waiting:
        if offer.tokens <= room_tokens:
            taken.append(offer.span)
            room_tokens -= offer.tokens
        else:
            left.append(offer)
    return taken, left
