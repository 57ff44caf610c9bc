"""Escapes of one character at a time: percent signs, backslashes, HTML entities, quoted-printable."""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from html.entities import html5
from typing import Final

from fieldstone.redact.views import View

_HEX: Final = rb"[0-9A-Fa-f]"


def _by_sign(percent: bytes, backslash: bytes, ampersand: bytes, equals: bytes) -> dict[bytes, re.Pattern[bytes]]:
    """A pattern for each sign, which it begins with: one for all four would step through the text byte by byte."""
    patterns = {b"%": percent, b"\\": backslash, b"&": ampersand, b"=": equals}
    return {sign: re.compile(pattern.replace(b"H", _HEX), re.VERBOSE) for sign, pattern in patterns.items()}


_ESCAPES: Final = _by_sign(
    rb"%(?: (?P<percent>HH) | u(?P<percent_u>H{4}) )",
    rb"""
      \\\\{0,7}(?: [xX](?P<byte>HH) | [xX]\{(?P<byte_braced>H{1,6})\}
         | [uU](?P<high>[Dd][89ABab]HH)\\{1,8}[uU](?P<low>[Dd][C-Fc-f]HH)
         | [uU](?P<long>00(?:0H|10)H{4}) | [uU](?P<unicode>H{4}) | [uU]\{(?P<braced>H{1,6})\}
         | (?P<octal>[0-3][0-7]{2}) | (?P<letter>[nrtbfav0]) | (?P<line>\r?\n) )
    """,
    rb"&(?: \#(?P<decimal>[0-9]{1,7});? | \#[xX](?P<hex>H{1,6});? | (?P<name>[A-Za-z]{2,31}[0-9]{0,2});? )",
    rb"=(?: (?P<quoted>HH) | (?P<soft>[ \t]*\r?\n) )",
)
# Escapes that stand for any character at all. In a text that was rearranged nothing else is looked for: there the lone
# backslash would be seen in every line of code.
_ANY: Final = _by_sign(
    rb"%u?HH",
    rb"\\\\{0,7}(?:[xX]\{?HH|[uU]\{?HH|[0-3][0-7]{2})",
    rb"&(?:\#[xX]?HH|[A-Za-z]{2,31};)",
    rb"=HH[^=]{0,2}=HH[^=]{0,2}=HH",
)
# The last of these in any arrangement. Most equals signs are of code, or end base64.
_NEAR_EQUALS: Final = re.compile(rb"=[^=]{2,4}=[^=]{2,4}=")
# What makes a text worth resolving. An equals sign and two digits stand in code, too.
_WORTH: Final = _by_sign(
    rb"%u?HH",
    rb"\\\\{0,7}[xXuU0-3nrtbfav]",
    rb"&(?:\#|[A-Za-z]{2,31};)",
    rb"=(?:3D|20|[C-F][0-9A-F]=[89AB][0-9A-F]|HH[^=]{0,2}=HH)",
)
# Numbers of bytes and characters: 0x73, 0x65; U+0073. In tight text only what stands before it tells where it ends.
_NUMBERS: Final = {
    sign: re.compile(number.replace(b"H", _HEX))
    for sign, number in {
        b"0": rb"0[xX](?:(?P<number>HH)(?=0[xX]|[^0-9A-Fa-f]|\Z)|(?P<last_number>HH)(?<=0[xX]HH0[xX]HH))",
        b"+": rb"[uU]\+(?P<point>H{4,6})",
    }.items()
}
_ANY_NUMBER: Final = re.compile(b"|".join([number.pattern for number in _NUMBERS.values()]))
# Whether there is one. Each begins with a byte that is found fast.
_IS_NUMBER: Final = {b"0": _NUMBERS[b"0"], b"+": re.compile(rb"\+(?<=[uU]\+)H{4}".replace(b"H", _HEX))}
# A line that goes on, in the middle of another escape perhaps.
_SOFT_BREAK: Final = re.compile(rb"[=\\][ \t]*\r?\n[ \t>]*")
_IS_SOFT_BREAK: Final = tuple(map(re.compile, (rb"=[ \t]*\r?\n", rb"\\[ \t]*\r?\n")))
# The sign of another escape, itself escaped as signs are in a pattern or in a shell.
_ESCAPED_SIGN: Final = re.compile(rb"\\[&%=]")
_BACKSLASH: Final = re.compile(rb"\\(?=[&%=#;])")
_BYTES: Final = frozenset({"percent", "byte", "octal", "quoted", "number", "last_number"})
_NOTHING: Final = frozenset({"line", "soft"})
# What escapes stand for, of those that were met: no longer than an escape of one character is, and so many.
MEANING_BYTES_MAX: Final = 10
MEANINGS_MAX: Final = 4096
_meanings: Final[dict[bytes, bytes]] = {}
_LETTERS: Final = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"", b"f": b"\n", b"a": b"", b"v": b"\n", b"0": b""}

_IN_ANY_CASE: Final = {name.lower(): meaning for name, meaning in html5.items() if meaning.isascii()}

# What stands between letters that were spaced, broken over lines or marked up.
_BETWEEN: Final = bytes(range(0x21)) + b"-*_`>|~,:\x7f"
ROT13: Final = bytes.maketrans(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", b"NOPQRSTUVWXYZABCDEFGHIJKLMnopqrstuvwxyzabcdefghijklm"
)


def unescaped(view: View) -> Iterator[View]:
    """The text with its escapes resolved."""
    data = view.data
    if b"+" in data or (b"0" in data and (b"x" in data or b"X" in data)):
        tight = data.translate(None, _BETWEEN)
        met = [sign for sign, number in _IS_NUMBER.items() if number.search(tight)]
        if met:
            number = _NUMBERS[met[0]] if len(met) == 1 else _ANY_NUMBER
            yield view.kept(None, _BETWEEN).rewritten(number, _meant, deeper=True)
    signs = _signs(data)
    if not signs:
        return
    if b"\\" in signs and _ESCAPED_SIGN.search(data):
        yield view.rewritten(_BACKSLASH, b"", deeper=True)
    if any(soft_break.search(data) for soft_break in _IS_SOFT_BREAK):
        yield view.rewritten(_SOFT_BREAK, b"", deeper=True)
    if any(_WORTH[sign].search(data) for sign in signs):
        yield from _resolved(view)


def rearranged(view: View) -> Iterator[View]:
    """The same where the escapes themselves were spaced, turned around or rotated."""
    signs = _signs(view.data)
    if not signs:
        return
    tight = view.data.translate(None, _BETWEEN)
    if b"=" in signs and not _NEAR_EQUALS.search(tight):
        signs.remove(b"=")
    if not signs:
        return
    if len(tight) < len(view.data) and any(_count(sign, tight) != _count(sign, view.data) for sign in signs):
        yield from _resolved(view.kept(None, _BETWEEN))
    # A view is made of what is there: most texts have no such escape.
    if _has_any(signs, tight[::-1]):
        yield from _resolved(view.kept(None, _BETWEEN).backwards())
    rotated = tight.translate(ROT13)
    if rotated != tight and _has_any(signs, rotated):
        yield from _resolved(view.kept(ROT13, _BETWEEN))


def _resolved(view: View) -> Iterator[View]:
    """With what the escapes stand for. Only those are looked for that are there: of one sign they are found fast."""
    signs = tuple(sign for sign, escape in _ESCAPES.items() if escape.search(view.data))
    if signs:
        yield view.rewritten(_escape(signs), _meant, deeper=True)


@cache
def _escape(signs: tuple[bytes, ...]) -> re.Pattern[bytes]:
    return re.compile(b"|".join([_ESCAPES[sign].pattern for sign in signs]), re.VERBOSE)


def _signs(data: bytes) -> list[bytes]:
    return [sign for sign in _ANY if sign in data]


def _has_any(signs: Iterable[bytes], data: bytes) -> bool:
    return any(_ANY[sign].search(data) for sign in signs)


def _count(sign: bytes, data: bytes) -> int:
    return len(_ANY[sign].findall(data))


def _meant(found: re.Match[bytes]) -> bytes:
    """An encoded text has thousands of escapes and few characters: each is worked out once."""
    written = found[0]
    meaning = _meanings.get(written)
    if meaning is None:
        meaning = _meaning(found)
        if len(written) <= MEANING_BYTES_MAX and len(_meanings) < MEANINGS_MAX:
            _meanings[written] = meaning
    return meaning


def _meaning(found: re.Match[bytes]) -> bytes:
    kind, digits = found.lastgroup, found[found.lastgroup or 0]
    if kind in _BYTES:
        return bytes([int(digits, 8 if kind == "octal" else 16)])
    if kind in _NOTHING:
        return b""
    if kind == "letter":
        return _LETTERS[digits]
    if kind == "name":
        return _named(digits, found[0])
    if kind == "low":
        high = int(found["high"], 16)
        return chr(0x10000 + ((high - 0xD800) << 10) + int(digits, 16) - 0xDC00).encode()
    return _character(int(digits, 10 if kind == "decimal" else 16))


def _named(name: bytes, written: bytes) -> bytes:
    text = f"{name.decode()};"
    meaning = html5.get(text) or _IN_ANY_CASE.get(text.lower())
    return meaning.encode() if meaning else written


def _character(code: int) -> bytes:
    return chr(code).encode("utf-8", "replace") if code < 0x110000 else b" "
