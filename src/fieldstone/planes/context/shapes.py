"""What the shapes of different makers have in common. What is read is one message's role, parts and metadata.

What a maker has and the canonical message has not (a signature, a cache mark, a name) is kept in the metadata under the
maker's name, so that the same message goes out as it came in.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import UNSET

from fieldstone.core.errors import InvalidPayload
from fieldstone.core.transcripts import AnyPart, FilePart, Role

UNKNOWN_TOOL: Final = "unknown"
PARTS: Final = "parts"  # in the metadata: the further keys of each part, by its place

Names = dict[str, str]  # of tools, by the ids of their calls: a result does not say what was called
Extras = dict[str, Any]


class Said(NamedTuple):
    role: Role
    parts: tuple[AnyPart, ...]
    metadata: Mapping[str, Any]


class Blocks:
    """The parts of a message while it is read, and what else was said with each."""

    def __init__(self) -> None:
        self.parts: list[AnyPart] = []
        self._beside: dict[str, Extras] = {}

    def add(self, part: AnyPart, beside: Mapping[str, Any] | None = None) -> None:
        if beside:
            self._beside[str(len(self.parts))] = dict(beside)
        self.parts.append(part)

    def said(self, role: Role, maker: str, extras: Mapping[str, Any] | None = None) -> Said:
        kept = {**(extras or {}), **({PARTS: self._beside} if self._beside else {})}
        return Said(role, tuple(self.parts), {maker: kept} if kept else {})


def extras_of(metadata: Mapping[str, Any], maker: str) -> tuple[Extras, dict[int, Extras]]:
    """Those of the message, and those of its parts."""
    kept = metadata.get(maker)
    if not isinstance(kept, Mapping):
        return {}, {}
    parts = kept.get(PARTS)
    beside = {int(place): dict(each) for place, each in parts.items()} if isinstance(parts, Mapping) else {}
    return {key: value for key, value in kept.items() if key != PARTS}, beside


def without(block: Mapping[str, Any], *known: str) -> Extras:
    return {key: value for key, value in block.items() if key not in known}


def text_in(block: Mapping[str, Any], key: str) -> str:
    value = block.get(key)
    if not isinstance(value, str):
        raise InvalidPayload(f"A message's {key!r} has to be a text.")
    return value


def object_in(block: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = block.get(key)
    if not isinstance(value, Mapping):
        raise InvalidPayload(f"A message's {key!r} has to be an object.")
    return value


def blocks_in(content: object) -> Sequence[Mapping[str, Any]]:
    """A content as blocks; a plain text is one of them."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, Sequence) or not all(isinstance(block, Mapping) for block in content):
        raise InvalidPayload("A message's content is a text or a list of blocks.")
    return content


def no_such(what: str, maker: str) -> InvalidPayload:
    return InvalidPayload(f"{what!r} is nothing that a message of {maker} is known to have.")


def file_at(url: str, mime_type: str, name: object = None) -> FilePart:
    return FilePart(mime_type=mime_type, url=url, name=name if isinstance(name, str) else UNSET)


def file_of(data: str, mime_type: str, name: object = None) -> FilePart:
    """A file that lies in its URL, as base64."""
    return file_at(f"data:{mime_type};base64,{data}", mime_type, name)


def data_of(file: FilePart) -> str | None:
    """Its base64, where it lies in its URL."""
    head, comma, data = file.url.partition(",")
    return data if comma and head.startswith("data:") and head.endswith(";base64") else None


def mime_type_of(url: str, default: str) -> str:
    return url[len("data:") :].split(",")[0].split(";")[0] or default if url.startswith("data:") else default


def as_json(value: object) -> str:
    return msgspec.json.encode(value).decode()
