"""Messages take the redaction road when they come in: what the model sees is what a transcript may hold."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from operator import eq
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from fieldstone.core.errors import InvalidPayload, SecretLeakage
from fieldstone.core.transcripts import AnyPart, CanonicalMessage, ToolCallPart, ToolResultPart
from fieldstone.planes.context.shapes import PARTS
from fieldstone.planes.trails import spelled
from fieldstone.redact import Harness, Trail

SCANNED_ON_THE_SPOT_CHARS: Final = 20_000  # less than a millisecond; more is for a thread

_NAMES: Final = frozenset({"type", "toolCallId"})  # of a part: they are ours or refused, and never rewritten
_PICTURE_OR_SOUND: Final = re.compile(r"data:(?:image|audio|video)/[\w.+-]++;base64,[A-Za-z0-9+/=_-]*+")


class Cleaner:
    """Remembers of what was said just before whether it may be the beginning of a secret."""

    def __init__(self, cleaning: Callable[[], Awaitable[Harness]]) -> None:
        self._cleaning: Final = cleaning
        self._harness: Harness | None = None
        self._trail = Trail()

    async def clean(self, message: CanonicalMessage) -> CanonicalMessage:
        """The message without secrets. Ids that hold one are refused: nobody could use them afterwards."""
        harness = await self._cleaning()
        if harness is not self._harness:  # what was noted of other secrets says nothing of these
            self._harness, self._trail = harness, Trail()
        try:
            cleaned, self._trail = await _without_secrets(harness, message, self._trail)
        except UnicodeEncodeError:
            raise InvalidPayload("A text holds half of a surrogate pair, which is no character.") from None
        return cleaned


async def clean_text(harness: Harness, text: str) -> str:
    return (await asyncio.to_thread(harness.clean_one, text)).text


async def _without_secrets(harness: Harness, message: CanonicalMessage, trail: Trail) -> tuple[CanonicalMessage, Trail]:
    _refuse_names(harness, message)
    bodies = [msgspec.to_builtins(part) for part in message.parts]
    said = [[body[key] for key in _told_in(body)] for body in bodies]
    dirty = list(_texts([said, message.metadata]))
    texts, trail = await _scanned(harness, trail, dirty)
    if all(map(eq, texts, dirty)):
        return message, trail
    said, metadata = _put_back([said, message.metadata], iter(texts))
    parts = tuple(map(_part, bodies, said))
    changed = [at for at, part in enumerate(parts) if part != message.parts[at]]
    return replace(message, parts=parts, metadata=_without_extras(metadata, changed)), trail


async def _scanned(harness: Harness, trail: Trail, texts: Sequence[str]) -> tuple[Sequence[str], Trail]:
    if sum(map(len, texts)) > SCANNED_ON_THE_SPOT_CHARS:
        group, trail = await asyncio.to_thread(harness.clean_after, trail, texts)
        return group.texts, trail
    clean = harness.clean_if_nothing_is_found([texts])
    if clean is None:
        clean = await asyncio.to_thread(harness.clean_groups, [texts])
    group, [trail] = harness.follow([trail], texts, clean[0])
    return group.texts, trail


def _refuse_names(harness: Harness, message: CanonicalMessage) -> None:
    calls = [part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart | ToolResultPart)]
    if any(harness.holds_secret([message.id, *calls])):
        raise SecretLeakage("The id of a message or of a tool call holds what looks like a secret.")


def _told_in(body: dict[str, Any]) -> list[str]:
    """The keys of a part whose values are texts, or hold some. Nobody reads a secret from a picture's bytes."""
    is_picture = body["type"] == "file" and _PICTURE_OR_SOUND.fullmatch(body["url"]) is not None
    return [key for key in body if key not in _NAMES and not (is_picture and key == "url")]


def _part(body: dict[str, Any], said: Sequence[Any]) -> AnyPart:
    values = dict(zip(_told_in(body), said, strict=True))
    part: AnyPart = msgspec.convert({**body, **values}, type=AnyPart)
    return part


def _texts(value: Any) -> Iterator[str]:
    """In the order in which `_put_back` asks for them."""
    if isinstance(value, str):
        yield value
    elif (spelling := spelled(value)) is not None:
        yield spelling
    elif isinstance(value, dict):
        for key, each in value.items():
            yield key
            yield from _texts(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)


def _put_back(value: Any, texts: Iterator[str]) -> Any:
    if isinstance(value, str):
        return next(texts)
    if (spelling := spelled(value)) is not None:
        text = next(texts)
        return value if text == spelling else text
    if isinstance(value, dict):
        return {next(texts): _put_back(each, texts) for each in value.values()}
    if isinstance(value, list | tuple):
        return [_put_back(each, texts) for each in value]
    return value


def _without_extras(metadata: dict[str, Any], changed: Sequence[int]) -> dict[str, Any]:
    """A maker's signature does not fit a part that was rewritten."""
    return {
        maker: {**kept, PARTS: {at: each for at, each in kept[PARTS].items() if int(at) not in changed}}
        if isinstance(kept, dict) and PARTS in kept
        else kept
        for maker, kept in metadata.items()
    }
