"""Messages in the shape of Anthropic's messages, in and out.

There a user's message may hold the results of tools: each of them is a message of its own here, and goes back together
with its neighbours. The system's texts stand apart there, whatever place they have in the conversation.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, assert_never

from fieldstone.core.transcripts import (
    AnyPart,
    CanonicalMessage,
    FilePart,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from fieldstone.planes.context.shapes import (
    UNKNOWN_TOOL,
    Blocks,
    Extras,
    Names,
    Said,
    as_json,
    blocks_in,
    data_of,
    extras_of,
    file_at,
    file_of,
    no_such,
    object_in,
    text_in,
    without,
)

MAKER: Final = "anthropic"
FILE_ID: Final = "anthropic-file:"  # the URL of a file that lies with Anthropic
PLAIN_TEXT: Final = "data:text/plain,"
SERVED_RESULT: Final = "_tool_result"  # of tools that run at Anthropic's, such as web_search_tool_result
HIDDEN: Final = "redacted_thinking"

Block = dict[str, Any]


class AnthropicPrompt(NamedTuple):
    """The two arguments of a request."""

    system: list[Block]
    messages: list[dict[str, Any]]


def from_anthropic(
    messages: Sequence[Mapping[str, Any]], names: Names, *, system: str | Sequence[Mapping[str, Any]] = ()
) -> list[Said]:
    """`names` learns which tool each call is for."""
    said = [each for message in messages for each in _read(message, names)]
    return [*_read_system(system), *said]


def to_anthropic(messages: Sequence[CanonicalMessage]) -> AnthropicPrompt:
    system: list[Block] = []
    shown: list[dict[str, Any]] = []
    for message in messages:
        blocks = list(_shown(message))
        if message.role == "system":
            system += blocks
            continue
        role = "assistant" if message.role == "assistant" else "user"
        if shown and shown[-1]["role"] == role:
            shown[-1]["content"] += blocks
        elif blocks:
            shown.append({"role": role, "content": blocks})
    return AnthropicPrompt(system, shown)


def _read_system(system: str | Sequence[Mapping[str, Any]]) -> list[Said]:
    blocks = Blocks()
    for block in blocks_in(system):
        _read_block(block, blocks, {})
    return [blocks.said("system", MAKER)] if blocks.parts and blocks.parts != [TextPart(text="")] else []


def _read(message: Mapping[str, Any], names: Names) -> Iterator[Said]:
    role = text_in(message, "role")
    if role not in {"user", "assistant"}:
        raise no_such(role, "Anthropic")
    blocks = Blocks()
    for block in blocks_in(message.get("content")):
        if block.get("type") == "tool_result":
            if blocks.parts:
                yield blocks.said("user", MAKER)
            blocks = Blocks()
            yield _result(block, names)
        else:
            _read_block(block, blocks, names)
    if blocks.parts:
        yield blocks.said("user" if role == "user" else "assistant", MAKER)


def _result(block: Mapping[str, Any], names: Names) -> Said:
    call_id = text_in(block, "tool_use_id")
    content = block.get("content", "")
    blocks_in(content)  # a text or blocks, and nothing else
    result = ToolResultPart(
        tool_call_id=call_id,
        tool_name=names.get(call_id, UNKNOWN_TOOL),
        output=content,
        is_error=bool(block.get("is_error", False)),
    )
    alone = Blocks()
    alone.add(result, without(block, "type", "tool_use_id", "content", "is_error"))
    return alone.said("tool", MAKER)


def _read_block(block: Mapping[str, Any], blocks: Blocks, names: Names) -> None:
    kind = text_in(block, "type")
    match kind:
        case "text":
            blocks.add(TextPart(text=text_in(block, "text")), without(block, "type", "text"))
        case "thinking":
            blocks.add(ReasoningPart(text=text_in(block, "thinking")), without(block, "type", "thinking"))
        case "redacted_thinking":
            blocks.add(ReasoningPart(text=""), block)
        case "tool_use":
            call_id, name = text_in(block, "id"), text_in(block, "name")
            names[call_id] = name
            made = ToolCallPart(tool_call_id=call_id, tool_name=name, input=dict(object_in(block, "input")))
            blocks.add(made, without(block, "type", "id", "name", "input"))
        case "server_tool_use":
            blocks.add(ToolCallPart(text_in(block, "id"), text_in(block, "name"), block.get("input")), {"type": kind})
        case _ if kind.endswith(SERVED_RESULT):  # it stands in the message of its call
            name = kind.removesuffix(SERVED_RESULT)
            blocks.add(ToolResultPart(text_in(block, "tool_use_id"), name, block.get("content")), {"type": kind})
        case "image" | "document":
            blocks.add(_file(kind, block), without(block, "type", "source", "title"))
        case _:
            raise no_such(kind, "Anthropic")


def _file(kind: str, block: Mapping[str, Any]) -> FilePart:
    source, name = object_in(block, "source"), block.get("title")
    mime_type = "image/*" if kind == "image" else "application/pdf"
    match text_in(source, "type"):
        case "base64":
            return file_of(text_in(source, "data"), text_in(source, "media_type"), name)
        case "text":
            return file_at(PLAIN_TEXT + text_in(source, "data"), "text/plain", name)
        case "url":
            return file_at(text_in(source, "url"), mime_type, name)
        case "file":
            return file_at(FILE_ID + text_in(source, "file_id"), mime_type, name)
        case other:
            raise no_such(other, "Anthropic")


def _shown(message: CanonicalMessage) -> Iterator[Block]:
    _, beside = extras_of(message.metadata, MAKER)
    for at, part in enumerate(message.parts):
        yield from _block(part, beside.get(at, {}))


def _block(part: AnyPart, beside: Extras) -> Iterator[Block]:
    """Empty texts, and thoughts that are not signed, would be refused there: they do not go out."""
    match part:
        case TextPart():
            if part.text:
                yield {"type": "text", "text": part.text, **beside}
        case ReasoningPart():
            if beside.get("type") == HIDDEN:
                yield beside
            elif "signature" in beside:
                yield {"type": "thinking", "thinking": part.text, **beside}
        case ToolCallPart():
            arguments = part.input if isinstance(part.input, dict) else {"input": part.input}
            yield {"type": "tool_use", "id": part.tool_call_id, "name": part.tool_name, "input": arguments, **beside}
        case ToolResultPart():
            failed = {"is_error": True} if part.is_error else {}
            output = part.output if "type" in beside else _output(part.output)
            shown = {"tool_use_id": part.tool_call_id, "content": output}
            yield {"type": "tool_result", **shown, **failed, **beside}
        case FilePart():
            kind = "image" if part.mime_type.startswith("image/") else "document"
            titled = {"title": part.name} if part.name else {}
            yield {"type": kind, "source": _source(part), **titled, **beside}
        case _:
            assert_never(part)


def _output(output: object) -> object:
    is_blocks = isinstance(output, list) and all(isinstance(each, dict) and "type" in each for each in output)
    return output if isinstance(output, str) or is_blocks else as_json(output)


def _source(file: FilePart) -> dict[str, Any]:
    data = data_of(file)
    if data is not None:
        return {"type": "base64", "media_type": file.mime_type, "data": data}
    if file.url.startswith(PLAIN_TEXT):
        return {"type": "text", "media_type": "text/plain", "data": file.url.removeprefix(PLAIN_TEXT)}
    if file.url.startswith(FILE_ID):
        return {"type": "file", "file_id": file.url.removeprefix(FILE_ID)}
    return {"type": "url", "url": file.url}
