"""The end of a conversation that fits a limit, found from its newest message upwards."""

from collections.abc import Iterator
from typing import Final

from msgspec import json
from msgspec.structs import replace

from fieldstone.core.errors import InvalidPayload
from fieldstone.core.transcripts import (
    MAX_PAGE,
    AnyPart,
    CanonicalMessage,
    FilePart,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from fieldstone.planes.context.pairs import blocks_of
from fieldstone.ports.tokens import TokenCounter

PAIR_REACH: Final = 1_000  # messages above the limit in which the call of a result is looked for


class Window:
    """At most `last` messages and `max_tokens`; a tool call and its result are both in it, or neither is."""

    def __init__(
        self,
        last: int | None,
        max_tokens: int | None,
        counter: TokenCounter | None,
        *,
        reasoning: bool = True,
        tool_results: bool = True,
    ) -> None:
        if (last is not None and last < 0) or (max_tokens is not None and max_tokens < 0):
            raise InvalidPayload("A context has 0 or more messages and 0 or more tokens.")
        if max_tokens is not None and counter is None:
            raise ValueError("A budget of tokens needs a counter.")
        self._room: Final = min(MAX_PAGE if last is None else last, MAX_PAGE)
        self._max_tokens: Final = max_tokens
        self._counter: Final = counter
        self._dropped: Final = _dropped_parts(reasoning=reasoning, tool_results=tool_results)
        self._newest_first: list[CanonicalMessage] = []
        self._tokens: list[int] = []  # of the messages that fit
        self._full = self._room == 0
        self._waiting: set[str] = set()  # results whose call is not seen yet

    @property
    def wants_more(self) -> bool:
        """Also above the limit, for the calls of results below it: they say where it may cut."""
        if not self._full:
            return True
        return bool(self._waiting) and len(self._newest_first) - len(self._tokens) < PAIR_REACH

    def add_older(self, message: CanonicalMessage) -> None:
        """The next one up the path."""
        message = replace(message, parts=tuple(part for part in message.parts if not isinstance(part, self._dropped)))
        if not message.parts:
            return  # there is nothing in it for a model
        if not self._full:
            self._take(message)
        self._newest_first.append(message)
        self._waiting -= {part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart)}
        if not self._full:
            self._waiting |= {part.tool_call_id for part in message.parts if isinstance(part, ToolResultPart)}

    def messages(self) -> tuple[CanonicalMessage, ...]:
        """The oldest first."""
        everything = self._newest_first[::-1]
        start = len(everything) - len(self._tokens)
        for block in blocks_of(everything):
            if block.places[0] < start <= block.places[-1]:
                start = block.places[-1] + 1
        return tuple(everything[start:])

    def tokens(self) -> int | None:
        """Of what `messages` has; None where they were not counted."""
        return sum(self._tokens[: len(self.messages())]) if self._counter else None

    def _take(self, message: CanonicalMessage) -> None:
        tokens = self._count(message)
        if tokens is None or len(self._tokens) == self._room:
            self._full = True
        else:
            self._tokens.append(tokens)

    def _count(self, message: CanonicalMessage) -> int | None:
        """None where they are more than there is room for: of a long text not much has to be read."""
        if self._counter is None:
            return 0
        if self._max_tokens is None:
            return sum(map(self._counter.count, _texts(message)))
        room = self._max_tokens - sum(self._tokens)
        counted = 0
        for text in _texts(message):
            tokens = self._counter.count_within(text, room - counted)
            if tokens is None:
                return None
            counted += tokens
        return counted


def _dropped_parts(*, reasoning: bool, tool_results: bool) -> tuple[type[AnyPart], ...]:
    """A call without its result is of no use to a model, and most refuse it: they go together."""
    tools: tuple[type[AnyPart], ...] = () if tool_results else (ToolCallPart, ToolResultPart)
    return tools if reasoning else (*tools, ReasoningPart)


def _texts(message: CanonicalMessage) -> Iterator[str]:
    for part in message.parts:
        match part:
            case TextPart() | ReasoningPart():
                yield part.text
            case ToolCallPart():
                yield part.tool_name
                yield json.encode(part.input).decode()
            case ToolResultPart():
                yield part.output if isinstance(part.output, str) else json.encode(part.output).decode()
            case FilePart():
                yield f"{part.mime_type} {part.name or ''}"
