"""Bytes behind base64, hexadecimal digits and compression.

Base64 is not sought: the whole text is decoded, without whatever is not of the alphabet, at each of the four places
where a group of letters can begin. That costs less than to look for runs, and line breaks, quoting or spaces between
the letters make no difference. Nearly all that comes out is noise; what can be read as text is a view of its own.
"""

import re
import zlib
from binascii import a2b_base64
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

from fieldstone.redact.escapes import ROT13
from fieldstone.redact.views import Kept, Origin, Pieced, View

# Shorter ones hold no secret of eight characters.
LETTERS_MIN: Final = 11
HEX_DIGITS_MIN: Final = 16
# What is read out of noise as a text, in bytes. Sixteen readable bytes in a row come by chance once in ten million.
READABLE_MIN: Final = 16
# Letters of base64 without a gap, as whoever encodes a text leaves them. Most names in code are shorter.
RUN_MIN: Final = 20
# Of base64, one letter in this many at least is a digit; or else a capital, and another one is none.
MIXED_SHARE: Final = 8
# What the compressed runs of a view may give. More cannot be searched in time.
INFLATED_BYTES_MAX: Final = 256 * 1024
INFLATED_BYTES_MIN: Final = 4
# Beginnings of a compressed run that may be tried. By chance there is one in 16 kB of noise.
TRIES: Final = 16
BYTES_PER_TRY: Final = 64
_ANY_HEADER: Final = 32 + zlib.MAX_WBITS

_SMALL: Final = b"abcdefghijklmnopqrstuvwxyz"
_ALPHANUMERIC: Final = _SMALL.upper() + _SMALL + b"0123456789"
_NOT_STANDARD: Final = bytes(byte for byte in range(256) if byte not in _ALPHANUMERIC + b"+/")
_NOT_URL_SAFE: Final = bytes(byte for byte in range(256) if byte not in _ALPHANUMERIC + b"-_")
_URL_SAFE: Final = bytes.maketrans(b"-_", b"+/")

# Classes of bytes, so that a run of one class is found by the speed of a substring search.
_IS_IN_RUN: Final = bytes(ord("x") if byte in _ALPHANUMERIC + b"+/-_=" else ord(" ") for byte in range(256))
_IS_READABLE: Final = bytes(
    ord("x") if byte in range(0x20, 0x7F) or byte in b"\t\r\n" else ord(" ") for byte in range(256)
)
# In UTF-8: a is a character by itself, b, c and d begin one of two, three and four bytes, and e goes on with it.
_UTF8_CLASS: Final = bytes(
    ord("a" if _IS_READABLE[byte] == ord("x") else " ")
    if byte < 0x80
    else ord("e" if byte < 0xC0 else "b" if byte < 0xE0 else "c" if byte < 0xF0 else "d" if byte < 0xF1 else " ")
    for byte in range(256)
)
_CHARACTERS: Final = ((b"deee", b"aaaa"), (b"cee", b"aaa"), (b"be", b"aa"))
_LETTERS_ONLY: Final = bytes(byte if byte in _ALPHANUMERIC + b"+/-_" else ord(" ") for byte in range(256))
# It begins with the line break, which is found fast.
_LINES: Final = re.compile(rb"\n(?:(?<=[\w+/-]{8}\n)|(?<=[\w+/-]{8}\r\n))[> \t]*([\w+/-]{8})")
_NOT_CAPITAL: Final = bytes(byte for byte in range(256) if byte not in _SMALL.upper())
_NOT_DIGIT: Final = bytes(byte for byte in range(256) if byte not in b"0123456789")
_NOT_SMALL: Final = bytes(byte for byte in range(256) if byte not in _SMALL)
_HEX_ONLY: Final = re.compile(rb"[0-9a-f-]+|[0-9A-F-]+")
_READABLE: Final = b"x" * READABLE_MIN
_UTF8: Final = b"a" * READABLE_MIN
_READABLE_PART: Final = re.compile(rb"[\t\r\n\x20-\x7e]{%d,}" % READABLE_MIN)
_UTF8_PART: Final = re.compile(
    rb"(?:[\t\r\n\x20-\x7e]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|\xf0[\x90-\xbf][\x80-\xbf]{2}){8,}"
)

_HEX_CLASS: Final = bytes(ord("x") if byte in b"0123456789abcdefABCDEF" else ord(" ") for byte in range(256))
_HEX_SIGN: Final = b"x" * HEX_DIGITS_MIN
_HEX_RUN: Final = re.compile(rb"(?:[0-9a-fA-F][ \t\r\n:,.\-_|]{0,2}){%d,}" % HEX_DIGITS_MIN)
_SEPARATORS: Final = b" \t\r\n:,.-_|"

# So begins gzip in base64.
_GZIP_LETTERS: Final = b"H4sI"
_COMPRESSED: Final = re.compile(rb"\x1f\x8b\x08|\x78[\x01\x5e\x9c\xda]")


class TooLarge(Exception):
    """The compressed run that begins here in the text gives so much that nobody can say what is in it."""

    def __init__(self, start: int, end: int) -> None:
        super().__init__()
        self.start, self.end = start, end


def from_base64(view: View, *, in_a_run: bool) -> Iterator[View]:
    """All that base64 in the text can stand for. In the alphabet for addresses, a dash is a letter: only in a run."""
    letters = view.data.translate(None, _NOT_STANDARD)
    yield from _groups(view, letters, _NOT_STANDARD)
    if in_a_run:
        url_safe = view.data.translate(_URL_SAFE, _NOT_URL_SAFE)
        if url_safe != letters:
            yield from _groups(view, url_safe, _NOT_URL_SAFE)


def from_hex(view: View) -> Iterator[View]:
    """What the runs of hexadecimal digits stand for, put together; also as if each run began at its second digit."""
    if _HEX_SIGN not in view.data.translate(_HEX_CLASS, _SEPARATORS):
        return
    runs = [found.span() for found in _HEX_RUN.finditer(view.data)]
    for skipped in (0, 1):
        digits = b"".join([_digits(view.data[start:end], skipped) for start, end in runs])
        if digits:
            yield view.read(bytes.fromhex(digits.decode()), _Digits(view.data, runs, skipped), deeper=True, packed=True)


def with_gzip(view: View) -> Iterator[View]:
    """The text as it is, backwards or rotated, where the first letters of a compressed run are seen that way."""
    letters = view.data.translate(None, _NOT_STANDARD)
    if _GZIP_LETTERS in letters:
        yield view
    if _GZIP_LETTERS[::-1] in letters:
        yield view.backwards()
    if _GZIP_LETTERS.translate(ROT13) in letters:
        yield view.translated(ROT13)


def readable(view: View, *, in_a_run: bool) -> Iterator[View]:
    """What can be read as text in decoded bytes. Text that is not ASCII is looked for only `in_a_run`."""
    if in_a_run:
        if _UTF8 in _characters(view.data):
            yield _put_together(view, _UTF8_PART)
    elif _READABLE in view.data.translate(_IS_READABLE):
        yield _put_together(view, _READABLE_PART)


def _put_together(view: View, parts: re.Pattern[bytes]) -> View:
    """The parts in one view, a line for each: there may be thousands."""
    output: list[bytes] = []
    at: list[int] = []
    sources: list[tuple[int, int]] = []
    done = size = 0
    for found in parts.finditer(view.data):
        for piece, source in ((b"\n", (done, found.start())), (found[0], found.span())):
            output.append(piece)
            at.append(size)
            sources.append(source)
            size += len(piece)
        done = found.end()
    return view.read(b"".join(output), Pieced(at, sources), deeper=True)


def _characters(data: bytes) -> bytes:
    classes = data.translate(_UTF8_CLASS)
    for written, known in _CHARACTERS:
        classes = classes.replace(written, known)
    return classes


def has_run(view: View) -> bool:
    """Whether base64 stands in it unbroken, or in lines of its own, as whoever encodes a text leaves it."""
    runs = view.data.translate(_LETTERS_ONLY).split()
    if max(map(len, runs), default=0) >= RUN_MIN and any(len(run) >= RUN_MIN and _is_mixed(run) for run in runs):
        return True
    return any(_is_mixed(found[1]) for found in _LINES.finditer(view.data))


def _is_mixed(run: bytes) -> bool:
    """Names and paths are of small letters or of capitals for the most part, and base64 is not."""
    if _HEX_ONLY.fullmatch(run):
        return False
    digits = len(run.translate(None, _NOT_DIGIT))
    small = len(run.translate(None, _NOT_SMALL))
    capitals = len(run.translate(None, _NOT_CAPITAL))
    return max(digits, min(capitals, small)) * MIXED_SHARE >= len(run)


def inflated(view: View) -> Iterator[View]:
    """What compressed runs in the bytes give. Raises TooLarge."""
    data = memoryview(view.data)
    tries_left = TRIES + len(data) // BYTES_PER_TRY
    bytes_left = INFLATED_BYTES_MAX
    for found in _COMPRESSED.finditer(view.data):
        start = found.start()
        if not tries_left:
            raise TooLarge(*view.origin(start, found.end()))
        tries_left -= 1
        stream = zlib.decompressobj(wbits=_ANY_HEADER)
        try:
            output = stream.decompress(data[start:], bytes_left)
        except zlib.error:
            continue
        bytes_left -= len(output)
        if stream.unconsumed_tail or not bytes_left:
            raise TooLarge(*view.origin(start, found.end()))
        if len(output) >= INFLATED_BYTES_MIN:
            # Where a broken run ends cannot be told: it is widened to what it begins in.
            end = len(data) - len(stream.unused_data) if stream.eof else found.end()
            yield view.read(output, _always(start, end), deeper=True, packed=True)


def _groups(view: View, letters: bytes, dropped: bytes) -> Iterator[View]:
    if len(letters) < LETTERS_MIN:
        return
    kept = Kept(view.data, dropped)
    for skipped in range(4):
        group = letters[skipped:]
        if len(group) % 4 == 1:
            group = group[:-1]
        decoded = a2b_base64(group + b"=" * (-len(group) % 4))
        yield view.read(decoded, _Letters(kept, skipped), deeper=True, packed=True)


class _Letters:
    """The origin of decoded base64: every letter with a bit of the range in it."""

    def __init__(self, kept: Kept, skipped: int) -> None:
        self._kept: Final = kept
        self._skipped: Final = skipped

    def __call__(self, start: int, end: int) -> tuple[int, int]:
        first, last = self._skipped + start * 4 // 3, self._skipped + -(-end * 4 // 3)
        return self._kept(first, last)


class _Digits:
    """The origin of decoded digits."""

    def __init__(self, source: bytes, runs: Sequence[tuple[int, int]], skipped: int) -> None:
        self._source: Final = source
        self._runs: Final = runs
        self._skipped: Final = skipped

    def __call__(self, start: int, end: int) -> tuple[int, int]:
        return self._places[2 * start], self._places[2 * end - 1] + 1

    @cached_property
    def _places(self) -> list[int]:
        places: list[int] = []
        for start, end in self._runs:
            digits = [place for place in range(start, end) if self._source[place] not in _SEPARATORS][self._skipped :]
            places += digits[: len(digits) // 2 * 2]
        return places


def _digits(run: bytes, skipped: int) -> bytes:
    digits = run.translate(None, _SEPARATORS)[skipped:]
    return digits[: len(digits) // 2 * 2]


def widened(text: bytes, start: int, end: int) -> tuple[int, int]:
    """The range with the rest of the runs of base64 or digits that it begins and ends in."""
    classes = text.translate(_IS_IN_RUN)
    following = classes.find(b" ", end)
    return classes.rfind(b" ", 0, start) + 1, following if following >= 0 else len(text)


def _always(start: int, end: int) -> Origin:
    return lambda _start, _end: (start, end)
