"""The marker that stands where a secret was: `[REDACTED:<secretId>]` (OpenWOP SR-1).

A marker's own text must neither be taken for a secret nor hide one. So markers are blanked out before a text is
searched, and the name inside a marker that is not our own is searched as a text by itself.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

# A name longer than this is no name; the brackets are then plain text, which is searched like any other.
NAME_CHARACTERS_MAX = 200

_NAME = rb"((?:[^\[\]<>\r\n\x80-\xff]|[\xc2-\xf4][\x80-\xbf]{1,3}){1,%d}?)" % NAME_CHARACTERS_MAX
_OURS = re.compile(rb"\[REDACTED:" + _NAME + rb"\]")
_FOREIGN = re.compile(
    rb"\[(?:REDACTED|BYOK):" + _NAME + rb"\]|<REDACTED:" + _NAME + rb">|&lt;REDACTED:" + _NAME + rb"&gt;",
    re.IGNORECASE,
)


class Marker(NamedTuple):
    start: int
    end: int
    name: bytes


def is_name(text: str) -> bool:
    """Whether a marker may bear this name."""
    return _OURS.fullmatch(marker(text)) is not None


def marker(secret_id: str) -> bytes:
    return b"[REDACTED:%s]" % secret_id.encode()


def canonical(text: bytes) -> bytes:
    """The text with every marker of another form written in ours."""
    return _FOREIGN.sub(lambda found: b"[REDACTED:%s]" % found[found.lastindex or 0], text)


def markers(text: bytes) -> Iterator[Marker]:
    """The markers in a canonical text."""
    for found in _OURS.finditer(text):
        yield Marker(found.start(), found.end(), found[1])


def blanked(text: bytes) -> bytes:
    """The text with its markers blanked out, every other byte in its place."""
    return _OURS.sub(lambda found: _blank(found.end() - found.start()), text)


def without(text: bytes, ranges: Iterable[tuple[int, int]]) -> bytes:
    """The text with these ranges blanked out in the same way."""
    left = bytearray(text)
    for start, end in ranges:
        left[start:end] = _blank(end - start)
    return bytes(left)


def _blank(length: int) -> bytes:
    # No rule steps over both a line break and a control character, so what stands on the two sides stays apart.
    return (b"\x1e\n" * (length // 2 + 1))[: length - 1] + b"\x1e"
