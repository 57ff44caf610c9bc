"""What a compaction takes, how short it has to be, and how its result is put in place. Pure."""

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from fieldstone.core.transcripts import CanonicalMessage
from fieldstone.planes.context.pairs import blocks_of
from fieldstone.planes.context.pins import movable
from fieldstone.planes.context.summaries import note_of

SUMMARY_SHARE: Final = 0.3  # of the messages that go: a longer summary would be due again at once
SUMMARY_TOKENS_MIN: Final = 64  # less says nothing


class Entry(NamedTuple):
    message: CanonicalMessage
    tokens: int  # counted


class Plan(NamedTuple):
    going: list[CanonicalMessage]
    after: list[CanonicalMessage]
    most_tokens: int


def planned(entries: Sequence[Entry], pinned: Collection[str], keep_last: int, excess_tokens: int) -> Plan | None:
    """None where nothing may go. `excess_tokens` is what should be saved; it may be more than can be."""
    messages = [entry.message for entry in entries]
    places = movable(messages, pinned, keep_last)
    if not places:
        return None
    tokens = sum(entries[place].tokens for place in places)
    told = sum(entries[place].tokens for place in places if note_of(messages[place]) is not None)
    # An earlier summary is short already. As long as there is room, what it tells need not be told in fewer words.
    share = told + int(SUMMARY_SHARE * (tokens - told))
    most = min(share, max(SUMMARY_TOKENS_MIN, tokens - excess_tokens))
    return Plan([messages[place] for place in places], messages[places[-1] + 1 :], most)


def kept_in_need(entries: Sequence[Entry], pinned: Collection[str], keep_last: int, excess_tokens: int) -> int:
    """How many of the last messages can stay when so much has to go: half of them, a quarter, at least the last one."""
    messages = [entry.message for entry in entries]
    while keep_last > 1:
        places = movable(messages, pinned, keep_last)
        if sum(entries[place].tokens for place in places) - SUMMARY_TOKENS_MIN >= excess_tokens:
            break
        keep_last //= 2
    return keep_last


def going_now(messages: Sequence[CanonicalMessage], replaced: Collection[str], pinned: Collection[str]) -> list[int]:
    """The places of what a finished summary may replace. Since it was begun, messages may have come and been pinned.

    A result that came late belongs to its call: then both stay.
    """
    here = {message.id for message in messages if message.id in replaced and message.id not in pinned}
    blocks = [block.places for block in blocks_of(messages)]
    whole = [places for places in blocks if all(messages[place].id in here for place in places)]
    return sorted(place for places in whole for place in places)


def put_in_place(entries: Sequence[Entry], going: Sequence[int], summary: Entry) -> list[Entry]:
    """The summary stands where the first of those stood that went. All others keep their order."""
    gone = set(going)
    kept = [(at, entry) for at, entry in enumerate(entries) if at not in gone]
    return [
        *(entry for at, entry in kept if at < going[0]),
        summary,
        *(entry for at, entry in kept if at > going[0]),
    ]
