"""Messages in the shape of OpenAI's chat, in and out. Reasoning does not go out: no endpoint takes it back."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, assert_never

import msgspec

from fieldstone.core.errors import InvalidPayload
from fieldstone.core.transcripts import (
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
    mime_type_of,
    no_such,
    object_in,
    text_in,
    without,
)

MAKER: Final = "openai"
FILE_ID: Final = "openai-file:"  # the URL of a file that lies with OpenAI
_KNOWN: Final = ("role", "content", "tool_calls", "tool_call_id", "reasoning_content")


def from_openai(messages: Sequence[Mapping[str, Any]], names: Names) -> list[Said]:
    """One for each. `names` learns which tool each call is for."""
    return [_read(message, names) for message in messages]


def to_openai(messages: Sequence[CanonicalMessage]) -> list[dict[str, Any]]:
    return [shown for message in messages for shown in _shown(message)]


def _read(message: Mapping[str, Any], names: Names) -> Said:
    blocks, extras = Blocks(), without(message, *_KNOWN)
    role = text_in(message, "role")
    match role:
        case "system" | "developer":
            _read_content(message, blocks)
            return blocks.said("system", MAKER, extras if role == "system" else {**extras, "role": role})
        case "user":
            _read_content(message, blocks)
            return blocks.said("user", MAKER, extras)
        case "assistant":
            _read_answer(message, blocks, names)
            return blocks.said("assistant", MAKER, extras)
        case "tool":
            call_id = text_in(message, "tool_call_id")
            blocks.add(_result(call_id, names.get(call_id, UNKNOWN_TOOL), message.get("content")))
            return blocks.said("tool", MAKER, extras)
        case _:
            raise no_such(role, "OpenAI")


def _read_answer(message: Mapping[str, Any], blocks: Blocks, names: Names) -> None:
    reasoning = message.get("reasoning_content")
    if isinstance(reasoning, str) and reasoning:
        blocks.add(ReasoningPart(text=reasoning))
    if message.get("content") is not None:
        _read_content(message, blocks)
    for call in message.get("tool_calls") or ():
        if not isinstance(call, Mapping):
            raise InvalidPayload("A message's 'tool_calls' are objects.")
        function = object_in(call, "function")
        call_id, name = text_in(call, "id"), text_in(function, "name")
        names[call_id] = name
        made = ToolCallPart(tool_call_id=call_id, tool_name=name, input=_input(text_in(function, "arguments")))
        blocks.add(made, without(call, "id", "function", "type"))


def _input(arguments: str) -> Any:
    """Models write JSON that is none: then the text is what was called with."""
    try:
        read = msgspec.json.decode(arguments)
    except (ValueError, RecursionError):  # msgspec's errors are ValueErrors
        return arguments
    return read if isinstance(read, dict) else arguments


def _result(call_id: str, name: str, content: object) -> ToolResultPart:
    blocks_in(content)  # a text or blocks, and nothing else
    return ToolResultPart(tool_call_id=call_id, tool_name=name, output=content, is_error=False)


def _read_content(message: Mapping[str, Any], blocks: Blocks) -> None:
    for block in blocks_in(message.get("content")):
        kind = text_in(block, "type")
        match kind:
            case "text":
                blocks.add(TextPart(text=text_in(block, "text")), without(block, "type", "text"))
            case "refusal":
                blocks.add(TextPart(text=text_in(block, "refusal")), {"type": "refusal"})
            case "image_url":
                image = object_in(block, "image_url")
                url = text_in(image, "url")
                blocks.add(file_at(url, mime_type_of(url, "image/*")), without(image, "url"))
            case "input_audio":
                audio = object_in(block, "input_audio")
                blocks.add(file_of(text_in(audio, "data"), f"audio/{text_in(audio, 'format')}"))
            case "file":
                blocks.add(_file(object_in(block, "file")))
            case _:
                raise no_such(kind, "OpenAI")


def _file(file: Mapping[str, Any]) -> FilePart:
    url = FILE_ID + text_in(file, "file_id") if "file_id" in file else text_in(file, "file_data")
    return file_at(url, mime_type_of(url, "application/pdf"), file.get("filename"))


def _shown(message: CanonicalMessage) -> Iterator[dict[str, Any]]:
    extras, beside = extras_of(message.metadata, MAKER)
    match message.role:
        case "tool":
            for part in message.parts:
                if isinstance(part, ToolResultPart):
                    yield {"role": "tool", "tool_call_id": part.tool_call_id, "content": _output(part.output), **extras}
        case "assistant":
            calls = list(_calls(message, beside))
            content = _content(message, beside)
            yield {"role": "assistant", "content": content, **({"tool_calls": calls} if calls else {}), **extras}
        case "system" | "user":
            yield {"role": message.role, "content": _content(message, beside) or "", **extras}
        case _:
            assert_never(message.role)


def _calls(message: CanonicalMessage, beside: Mapping[int, Extras]) -> Iterator[dict[str, Any]]:
    """A call whose result stands in the same message was made at another maker's: here nobody could answer it."""
    served = {part.tool_call_id for part in message.parts if isinstance(part, ToolResultPart)}
    for at, part in enumerate(message.parts):
        if isinstance(part, ToolCallPart) and part.tool_call_id not in served:
            arguments = part.input if isinstance(part.input, str) else as_json(part.input)
            function = {"name": part.tool_name, "arguments": arguments}
            yield {"id": part.tool_call_id, "type": "function", "function": function, **beside.get(at, {})}


def _output(output: object) -> object:
    """As it came where it came from a chat; else a text."""
    is_text = isinstance(output, str) or (isinstance(output, list) and all(_is_text_block(each) for each in output))
    return output if is_text else as_json(output)


def _is_text_block(block: object) -> bool:
    return isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str)


def _content(message: CanonicalMessage, beside: Mapping[int, Extras]) -> str | list[dict[str, Any]] | None:
    blocks = [
        _block(part, beside.get(at, {}))
        for at, part in enumerate(message.parts)
        if isinstance(part, TextPart | FilePart)
    ]
    if not blocks:
        return None
    if len(blocks) == 1 and set(blocks[0]) == {"type", "text"}:
        text: str = blocks[0]["text"]
        return text
    return blocks


def _block(part: TextPart | FilePart, beside: Extras) -> dict[str, Any]:
    if isinstance(part, TextPart):
        if beside.get("type") == "refusal":
            return {"type": "refusal", "refusal": part.text}
        return {"type": "text", "text": part.text, **beside}
    data = data_of(part)
    if part.mime_type.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": part.url, **beside}}
    if part.mime_type.startswith("audio/") and data is not None:
        return {"type": "input_audio", "input_audio": {"data": data, "format": part.mime_type.partition("/")[2]}}
    named = {"filename": part.name} if part.name else {}
    if part.url.startswith(FILE_ID):
        return {"type": "file", "file": {"file_id": part.url.removeprefix(FILE_ID), **named}}
    return {"type": "file", "file": {"file_data": part.url, **named}}
