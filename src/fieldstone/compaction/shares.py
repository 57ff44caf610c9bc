"""One budget for several groups."""

from collections.abc import Iterator, Sequence

from fieldstone.compaction.extractive import in_order
from fieldstone.compaction.pace import unhurried
from fieldstone.compaction.pieces import pieces_of
from fieldstone.compaction.worth import Offer, offers
from fieldstone.compaction.writing import line
from fieldstone.ports.summarizer import Original
from fieldstone.ports.tokens import TokenCounter


def share_out(groups: Sequence[Sequence[Original]], most_tokens: int, counter: TokenCounter) -> list[int]:
    """How many tokens each group should get: what its essentials take, and its pieces that tell most among all.

    Shares by length would keep the small talk of one group and lose the facts of another. But first each group gets its
    most telling piece, as long as there is room: a synthesis has to say something. Together they get no more than
    `most_tokens`, unless the essentials alone are more.
    """
    together = in_order([original for group in groups for original in group])
    group_of_id = {original.unit_id: at for at, group in enumerate(groups) for original in group}
    group_of = [group_of_id[original.unit_id] for original in together]
    pieces = pieces_of(together)
    tokens = [0] * len(groups)
    for piece in unhurried(pieces):
        if piece.essential:
            tokens[group_of[piece.span.original]] += counter.count(line(together, piece.span))
    room_tokens = most_tokens - sum(tokens)
    ranked = offers(together, pieces, room_tokens, counter)
    for offer in unhurried(_first_of_each_first(ranked, group_of, tokens)):
        if offer.tokens <= room_tokens:
            tokens[group_of[offer.span.original]] += offer.tokens
            room_tokens -= offer.tokens
    return tokens


def _first_of_each_first(ranked: Sequence[Offer], group_of: Sequence[int], tokens: Sequence[int]) -> Iterator[Offer]:
    """The best offer of each group that has nothing yet, then the others."""
    served = {group for group, share in enumerate(tokens) if share}
    others: list[Offer] = []
    for offer in ranked:
        group = group_of[offer.span.original]
        if group in served:
            others.append(offer)
        else:
            served.add(group)
            yield offer
    yield from others
