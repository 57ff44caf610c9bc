"""One budget for several groups."""

from collections.abc import Sequence

from fieldstone.compaction.extractive import in_order
from fieldstone.compaction.pieces import pieces_of
from fieldstone.compaction.worth import offers
from fieldstone.compaction.writing import line
from fieldstone.ports.summarizer import Original
from fieldstone.ports.tokens import TokenCounter


def share_out(groups: Sequence[Sequence[Original]], most_tokens: int, counter: TokenCounter) -> list[int]:
    """How many tokens each group should get: what its essentials take, and its pieces that tell most among all.

    An equal share for each would keep the small talk of one group and lose the facts of another. A group that tells
    nothing gets nothing. Together they get no more than `most_tokens`, unless the essentials alone are more.
    """
    group_of = {original.unit_id: at for at, group in enumerate(groups) for original in group}
    together = in_order([original for group in groups for original in group])
    pieces = pieces_of(together)
    tokens = [0] * len(groups)
    for piece in pieces:
        if piece.essential:
            tokens[group_of[together[piece.span.original].unit_id]] += counter.count(line(together, piece.span))
    room_tokens = most_tokens - sum(tokens)
    for offer in offers(together, pieces, room_tokens, counter):
        if offer.tokens <= room_tokens:
            tokens[group_of[together[offer.span.original].unit_id]] += offer.tokens
            room_tokens -= offer.tokens
    return tokens
