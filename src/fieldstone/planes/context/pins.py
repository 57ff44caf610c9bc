"""What stays: the system's messages, pinned ones, the last ones, and whatever belongs to one of them."""

from collections.abc import Collection, Sequence

from fieldstone.core.transcripts import CanonicalMessage
from fieldstone.planes.context.pairs import blocks_of


def movable(messages: Sequence[CanonicalMessage], pinned: Collection[str], keep_last: int) -> list[int]:
    """The places of the messages that a compaction may take. Pins are ids of messages, wherever these stand by now.

    A block goes as a whole or not at all, and a call without its result not at all: the result may still come.
    """
    first_kept = max(0, len(messages) - keep_last)

    def stays(place: int) -> bool:
        return place >= first_kept or messages[place].role == "system" or messages[place].id in pinned

    taken = [block.places for block in blocks_of(messages) if not block.is_open and not any(map(stays, block.places))]
    return sorted(place for places in taken for place in places)
