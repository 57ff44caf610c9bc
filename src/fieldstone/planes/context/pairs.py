"""Which messages belong together: a tool call and its results are one block, and stay or go as one."""

from collections.abc import Sequence
from typing import NamedTuple

from fieldstone.core.transcripts import CanonicalMessage, ToolCallPart, ToolResultPart


class Block(NamedTuple):
    places: tuple[int, ...]  # in the list of messages, ascending
    is_open: bool  # a call in it waits for its result


def blocks_of(messages: Sequence[CanonicalMessage]) -> list[Block]:
    """Every message is in one block; most are alone in theirs. In the order of their first messages."""
    matching = _Matching()
    for place, message in enumerate(messages):
        matching.read(place, message)
    return matching.blocks()


class _Call:
    def __init__(self, place: int) -> None:
        self.place = place
        self.is_open = True


class _Matching:
    """Some models count their call ids from zero in every answer, so a result belongs to the latest call of its id."""

    def __init__(self) -> None:
        self._first: list[int] = []  # for each place the first place of its block, or one nearer to it
        self._calls: dict[str, list[_Call]] = {}

    def read(self, place: int, message: CanonicalMessage) -> None:
        self._first.append(place)
        for part in message.parts:
            match part:
                case ToolCallPart():
                    self._calls.setdefault(part.tool_call_id, []).append(_Call(place))
                case ToolResultPart():
                    self._close(place, part.tool_call_id)
                case _:
                    pass

    def blocks(self) -> list[Block]:
        members: dict[int, list[int]] = {}
        for place in range(len(self._first)):
            members.setdefault(self._root(place), []).append(place)
        waiting = {self._root(call.place) for calls in self._calls.values() for call in calls if call.is_open}
        return [Block(tuple(places), root in waiting) for root, places in members.items()]

    def _close(self, place: int, call_id: str) -> None:
        calls = self._calls.get(call_id)
        if not calls:
            return  # a result without a call is nobody's
        call = next((each for each in reversed(calls) if each.is_open), calls[-1])
        call.is_open = False
        one, other = sorted((self._root(place), self._root(call.place)))
        self._first[other] = one

    def _root(self, place: int) -> int:
        while self._first[place] != place:
            self._first[place] = self._first[self._first[place]]
            place = self._first[place]
        return place
