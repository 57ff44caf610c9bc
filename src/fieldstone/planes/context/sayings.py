"""What a message says, as a text: for a summary, for a search, for a count of its tokens."""

import asyncio
import re
from collections.abc import Iterator
from typing import Final, assert_never

from fieldstone.core.transcripts import (
    AnyPart,
    CanonicalMessage,
    FilePart,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from fieldstone.planes.context.shapes import UNKNOWN_TOOL, as_json
from fieldstone.ports.tokens import TokenCounter

MESSAGE_TOKENS: Final = 4  # role and marks around each message, as chat templates have them
FILE_TOKENS: Final = 1_600  # about the most that a model takes for a picture; its own report corrects it
AUTHOR_CHARS: Final = 64  # of a tool's name, as a summary tells it
COUNTED_ON_THE_SPOT_CHARS: Final = 20_000  # about 5 ms; more is for a thread

_NOT_A_NAME: Final = re.compile(r"[^\w.-]+")


def author_of(message: CanonicalMessage) -> str:
    """Who a summary says that it was. A tool's name comes from outside: it may look like nothing but a name."""
    for part in message.parts:
        if isinstance(part, ToolResultPart):
            return f"tool {_NOT_A_NAME.sub('_', part.tool_name)[:AUTHOR_CHARS] or UNKNOWN_TOOL}"
    return message.role


def said_in(message: CanonicalMessage) -> str:
    return "\n".join(text for part in message.parts for text in _told(part))


def tokens_of(message: CanonicalMessage, counter: TokenCounter) -> int:
    """Of all that goes to the model."""
    return MESSAGE_TOKENS + sum(_tokens_of_part(part, counter) for part in message.parts)


async def counted(message: CanonicalMessage, counter: TokenCounter) -> int:
    """The same, without holding anyone up."""
    if len(said_in(message)) <= COUNTED_ON_THE_SPOT_CHARS:
        return tokens_of(message, counter)
    return await asyncio.to_thread(tokens_of, message, counter)


def output_text(output: object) -> str:
    """What a tool answered: its text, where there is one, else JSON."""
    if isinstance(output, str):
        return output
    if isinstance(output, list) and output and all(isinstance(block, dict) and "type" in block for block in output):
        return "\n".join(str(block.get("text", f"({block['type']})")) for block in output)
    return as_json(output)


def _told(part: AnyPart) -> Iterator[str]:
    match part:
        case TextPart():
            yield part.text
        case ReasoningPart():
            return  # what a model thought is not what it said
        case ToolCallPart():
            yield f"called {part.tool_name} with {_input_text(part)}"
        case ToolResultPart():
            yield f"failed: {output_text(part.output)}" if part.is_error else output_text(part.output)
        case FilePart():
            where = "" if part.url.startswith("data:") else f" at {part.url}"
            yield f"file {part.name or 'without a name'} ({part.mime_type}){where}"
        case _:
            assert_never(part)


def _tokens_of_part(part: AnyPart, counter: TokenCounter) -> int:
    match part:
        case TextPart() | ReasoningPart():
            return counter.count(part.text)
        case ToolCallPart():
            return counter.count(part.tool_name) + counter.count(_input_text(part)) + MESSAGE_TOKENS
        case ToolResultPart():
            return counter.count(output_text(part.output)) + MESSAGE_TOKENS
        case FilePart():
            return FILE_TOKENS
        case _:
            assert_never(part)


def _input_text(part: ToolCallPart) -> str:
    return part.input if isinstance(part.input, str) else as_json(part.input)
