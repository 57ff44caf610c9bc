"""Bytes behind base64, hexadecimal digits and compression.

Base64 is not sought: the whole text is decoded, without whatever is not of the alphabet, at each of the four places
where a group of letters can begin. That costs less than to look for runs, and line breaks, quoting or spaces between
the letters make no difference. Nearly all that comes out is noise; what can be read as text is a view of its own.
"""

import re
import zlib
from binascii import a2b_base64, a2b_hex
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

import numpy as np

from fieldstone.redact.escapes import ROT13
from fieldstone.redact.views import Kept, Origin, Pieced, View

# Shorter ones hold no secret of eight characters.
LETTERS_MIN: Final = 11
HEX_DIGITS_MIN: Final = 16
# A group has four letters, and may begin with any of the first four.
ALIGNMENTS: Final = 4
LETTER_BITS: Final = 6
_NO_BITS: Final = b"A"
# What is read out of noise as a text, in bytes: a power of two. Sixteen readable bytes in a row come by chance once in
# ten million.
READABLE_MIN: Final = 16
# Bytes from which on numpy is faster than to replace them.
NOISE_MIN: Final = 2048
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
    ord("a") if byte in range(0x20, 0x7F) or byte in b"\t\r\n" else ord(" ") for byte in range(256)
)
# In UTF-8: a is a character by itself, b, c and d begin one of two, three and four bytes, and e goes on with it.
_UTF8_CLASS: Final = bytes(
    _IS_READABLE[byte]
    if byte < 0x80
    else ord("e" if byte < 0xC0 else "b" if byte < 0xE0 else "c" if byte < 0xF0 else "d" if byte < 0xF1 else " ")
    for byte in range(256)
)
_KINDS: Final = np.frombuffer(b"abcde", dtype=np.uint8)[:, np.newaxis]
_CHARACTERS: Final = ((b"deee", b"aaaa"), (b"cee", b"aaa"), (b"be", b"aa"))
_READABLE: Final = b"a" * READABLE_MIN
_READABLE_PART: Final = re.compile(rb"a{%d,}" % READABLE_MIN)
# Beside one that is long enough, shorter ones count too.
_UTF8_PART: Final = re.compile(rb"a{%d,}" % (READABLE_MIN // 2))

_HEX_CLASS: Final = bytes(ord("x") if byte in b"0123456789abcdefABCDEF" else ord(" ") for byte in range(256))
_HEX_SIGN: Final = b"x" * HEX_DIGITS_MIN
# It begins with letters that are found fast.
_HEX_RUN: Final = re.compile(b"x" * (HEX_DIGITS_MIN - 1) + b"x+")
_SEPARATORS: Final = b" \t\r\n:,.-_|"

# So begins gzip in base64.
_GZIP_LETTERS: Final = b"H4sI"
# Behind the header of zlib stands what kind of block follows: there are three of four.
_KNOWN_BLOCK: Final = bytes(byte for byte in range(256) if byte & 0b110 != 0b110)
_ZLIB: Final = re.compile(rb"\x78[\x01\x5e\x9c\xda](?=[%b])" % re.escape(_KNOWN_BLOCK))
_GZIP: Final = re.compile(rb"\x1f\x8b\x08")


class TooLarge(Exception):
    """The compressed run that begins here in the text gives so much that nobody can say what is in it."""

    def __init__(self, start: int, end: int) -> None:
        super().__init__()
        self.start, self.end = start, end


def from_base64(view: View, *, in_a_run: bool) -> Iterator[View]:
    """All that base64 in the text can stand for. In the alphabet for addresses, a dash is a letter: only in a run."""
    letters = view.data.translate(None, _NOT_STANDARD)
    if len(letters) >= LETTERS_MIN:
        yield _groups(view, letters, _NOT_STANDARD)
    if in_a_run:
        url_safe = view.data.translate(_URL_SAFE, _NOT_URL_SAFE)
        if url_safe != letters and len(url_safe) >= LETTERS_MIN:
            yield _groups(view, url_safe, _NOT_URL_SAFE)


def from_hex(view: View) -> Iterator[View]:
    """What the runs of hexadecimal digits stand for, put together; also as if each run began at its second digit."""
    classes = view.data.translate(_HEX_CLASS, _SEPARATORS)
    # A substring search tells fast that there is none.
    if _HEX_SIGN not in classes:
        return
    digits = view.data.translate(None, _SEPARATORS)
    runs = [run.span() for run in _HEX_RUN.finditer(classes)]
    for skipped in (0, 1):
        # An even number of each run: a digit that has none to go with is left out.
        pairs = [(start + skipped, end - (end - start - skipped) % 2) for start, end in runs]
        decoded = a2b_hex(b"".join([digits[start:end] for start, end in pairs]))
        yield view.read(decoded, _Digits(Kept(view.data, _SEPARATORS), pairs), deeper=True, packed=True)


def with_gzip(view: View, *, in_a_run: bool) -> Iterator[View]:
    """The text backwards or rotated, where the first letters of a compressed run are seen that way; and as it is, but
    not where it stands `in_a_run`, of which all is tried anyway."""
    if b"4" not in view.data:
        return
    letters = view.data.translate(None, _NOT_STANDARD)
    if not in_a_run and _GZIP_LETTERS in letters:
        yield view
    if _GZIP_LETTERS[::-1] in letters:
        yield view.backwards()
    if _GZIP_LETTERS.translate(ROT13) in letters:
        yield view.translated(ROT13)


def readable(view: View, *, in_a_run: bool, pieces: int = 1) -> Iterator[View]:
    """What can be read as text in decoded bytes, in each of so many pieces. Text that is not ASCII is looked for only
    `in_a_run`."""
    if in_a_run and not _has_characters(view.data):
        return
    classes = _characters(view.data) if in_a_run else view.data.translate(_IS_READABLE)
    if _READABLE not in classes:
        return
    part = _UTF8_PART if in_a_run else _READABLE_PART
    for start, end in _piece_ranges(view, pieces):
        if classes.find(_READABLE, start, end) >= 0:
            yield _put_together(view, [found.span() for found in part.finditer(classes, start, end)])


def _put_together(view: View, parts: Sequence[tuple[int, int]]) -> View:
    """The parts in one view, a line for each: there may be thousands."""
    output: list[bytes] = []
    at: list[int] = []
    sources: list[tuple[int, int]] = []
    done = size = 0
    for start, end in parts:
        output += (b"\n", view.data[start:end])
        at += (size, size + 1)
        sources += ((done, start), (start, end))
        size += 1 + end - start
        done = end
    return view.read(b"".join(output), Pieced(at, sources), deeper=True)


def _has_characters(data: bytes) -> bool:
    """Whether READABLE_MIN bytes of whole characters stand in a row. Of long data, told without a branch: in noise the
    processor cannot foresee which way one goes, and to replace bytes takes longer."""
    if len(data) < NOISE_MIN:
        return _READABLE in _characters(data)
    kinds = np.frombuffer(data.translate(_UTF8_CLASS), dtype=np.uint8)
    # A bit for each byte, the first the highest: to shift left is to look at the bytes that follow.
    alone, of_two, of_three, of_four, goes_on = map(int.from_bytes, np.packbits(kinds == _KINDS, axis=1))
    two_follow = goes_on << 1 & goes_on << 2
    four = of_four & two_follow & goes_on << 3
    three = of_three & two_follow | four >> 1
    two = of_two & goes_on << 1 | three >> 1
    row = alone | four | three | two | two >> 1
    length = 1
    while length < READABLE_MIN:
        row &= row >> length
        length *= 2
    return row != 0


def _characters(data: bytes) -> bytes:
    """The bytes of whole characters as a."""
    classes = data.translate(_UTF8_CLASS)
    for written, known in _CHARACTERS:
        classes = classes.replace(written, known)
    return classes


def inflated(view: View, *, pieces: int = 1) -> Iterator[View]:
    """What compressed runs in the bytes give, each in one of so many pieces. Raises TooLarge."""
    headers = _headers(view.data)
    if not headers:
        return
    data = memoryview(view.data)
    ends = [end for _, end in _piece_ranges(view, pieces)]
    tries_left = TRIES + len(data) // BYTES_PER_TRY
    bytes_left = INFLATED_BYTES_MAX
    for start, header_end in headers:
        piece_end = ends[bisect_right(ends, start)]
        if not tries_left:
            raise TooLarge(*view.origin(start, header_end))
        tries_left -= 1
        stream = zlib.decompressobj(wbits=_ANY_HEADER)
        try:
            output = stream.decompress(data[start:piece_end], bytes_left)
        except zlib.error:
            continue
        bytes_left -= len(output)
        if stream.unconsumed_tail or not bytes_left:
            raise TooLarge(*view.origin(start, header_end))
        if len(output) >= INFLATED_BYTES_MIN:
            # Where a broken run ends cannot be told: it is widened to what it begins in.
            end = piece_end - len(stream.unused_data) if stream.eof else header_end
            yield view.read(output, _always(start, end), deeper=True, packed=True)


def _headers(data: bytes) -> list[tuple[int, int]]:
    """Where compressed runs may begin. Each kind by itself begins with bytes that are found fast, both together not."""
    return sorted(found.span() for header in (_ZLIB, _GZIP) for found in header.finditer(data))


def _piece_ranges(view: View, pieces: int) -> list[tuple[int, int]]:
    size = len(view.data) // pieces
    return [(start, start + size) for start in range(0, pieces * size, size)]


def _groups(view: View, letters: bytes, dropped: bytes) -> View:
    """The letters decoded from each of the first four on, one after the other in one view. Zero bytes are between."""
    size = len(letters) // 4 * 4 + 8
    decoded = a2b_base64(letters.ljust(size, _NO_BITS))
    # To shift the bits takes half as long as to decode the letters again.
    bits = int.from_bytes(decoded)
    shifted = [(bits << LETTER_BITS * skipped).to_bytes(len(decoded) + 3)[3:] for skipped in range(1, ALIGNMENTS)]
    origin = _Letters(Kept(view.data, dropped), len(letters), size)
    return view.read(b"".join([decoded, *shifted]), origin, deeper=True, packed=True)


class _Letters:
    """The origin of decoded base64: every letter with a bit of the range in it."""

    def __init__(self, kept: Kept, letters: int, size: int) -> None:
        self._kept: Final = kept
        self._letters: Final = letters
        self._size: Final = size

    def __call__(self, start: int, end: int) -> tuple[int, int]:
        skipped, first = divmod(start * 4 // 3, self._size)
        last = -(-end * 4 // 3) - skipped * self._size
        return self._kept(min(skipped + first, self._letters - 1), min(skipped + last, self._letters))


class _Digits:
    """The origin of decoded digits, which stand in these runs of what was kept."""

    def __init__(self, kept: Kept, runs: Sequence[tuple[int, int]]) -> None:
        self._kept: Final = kept
        self._runs: Final = runs

    def __call__(self, start: int, end: int) -> tuple[int, int]:
        return self._kept(self._places[2 * start], self._places[2 * end - 1] + 1)

    @cached_property
    def _places(self) -> list[int]:
        return [place for run in self._runs for place in range(*run)]


def widened(text: bytes, start: int, end: int) -> tuple[int, int]:
    """The range with the rest of the runs of base64 or digits that it begins and ends in."""
    classes = text.translate(_IS_IN_RUN)
    following = classes.find(b" ", end)
    return classes.rfind(b" ", 0, start) + 1, following if following >= 0 else len(text)


def _always(start: int, end: int) -> Origin:
    return lambda _start, _end: (start, end)
