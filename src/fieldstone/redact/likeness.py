"""Does base64 stand in a text? A look at the kinds of its letters, which costs less than to decode it.

A text is decoded if it may hold any. What is left out, as measured: of 1,000 pieces of base64 by themselves, 12 of
eleven letters and 1 of sixteen look like words or names. A secret is found in its base64 all the same, by its needles:
this is about one that was disguised before.
"""

import re
from collections.abc import Iterator
from typing import Final

from ahocorasick_rs import BytesAhoCorasick, Implementation, MatchKind

from fieldstone.redact.views import View

# Letters of base64 without a gap, as whoever encodes a text leaves them. Most names in code are shorter.
RUN_MIN: Final = 20
# Of base64, one letter in this many at least is a digit; or else a capital, and another one is none.
MIXED_SHARE: Final = 8
# Where there is one change there are many: not all of them are to be listed.
CHANGES_WITHIN: Final = 128
# So many letters by themselves, within so many bytes, may be base64 that is spaced: any English text has a few, far
# from each other. And so many pairs or threes in a row, too.
SINGLES_MIN: Final = 4
SINGLES_WITHIN: Final = 48
GROUPS_MIN: Final = 5

_SMALL: Final = b"abcdefghijklmnopqrstuvwxyz"
_ALPHANUMERIC: Final = _SMALL.upper() + _SMALL + b"0123456789"
# The kinds of letters in base64. Digits of base 16 are kinds by themselves: next to each other they are no sign of it.
_KIND_OF: Final = {b"0": b"0123456789", b"H": b"ABCDEF", b"h": b"abcdef", b"A": _SMALL[6:].upper(), b"a": _SMALL[6:]}
_KINDS: Final = bytes(
    next((ord(kind) for kind, letters in _KIND_OF.items() if byte in letters), ord(" ")) for byte in range(256)
)
# A digit beside a letter; a capital that begins no word; a small letter by itself between two capitals.
_CHANGES: Final = BytesAhoCorasick(
    [
        *(b"0a", b"a0", b"0A", b"A0"),
        *(
            small + capital + other
            for small in (b"a", b"h")
            for capital in (b"A", b"H")
            for other in (b"A", b"H", b"0")
        ),
        *(capital + small + other for small in (b"a", b"h") for capital in (b"A", b"H") for other in (b"A", b"H")),
    ],
    MatchKind.Standard,
    Implementation.DFA,
)
_ALPHANUMERIC_CLASS: Final = bytes(ord("x") if byte in _ALPHANUMERIC else ord(" ") for byte in range(256))
_LETTER_CLASS: Final = bytes(ord("x") if byte in _ALPHANUMERIC + b"+/-_" else ord(" ") for byte in range(256))
_RUN: Final = b"x" * RUN_MIN
# The first of them is a letter by itself.
_PIECES: Final = BytesAhoCorasick(
    [b" x ", *(gap.join([group] * GROUPS_MIN) + b" " for group in (b" xx", b" xxx") for gap in (b"", b" ", b"  "))],
    MatchKind.Standard,
    Implementation.DFA,
)
_SIGNS: Final = b"+/-_"
# It begins with the line break, which is found fast.
_LINES: Final = re.compile(rb"\n(?:(?<=[\w+/-]{8}\n)|(?<=[\w+/-]{8}\r\n))[> \t]*([\w+/-]{8})")
_NOT_CAPITAL: Final = bytes(byte for byte in range(256) if byte not in _SMALL.upper())
_NOT_DIGIT: Final = bytes(byte for byte in range(256) if byte not in b"0123456789")
_NOT_SMALL: Final = bytes(byte for byte in range(256) if byte not in _SMALL)
_HEX_ONLY: Final = re.compile(rb"[0-9a-f-]+|[0-9A-F-]+")


def may_hold_base64(view: View) -> bool:
    """Whether letters change their kind somewhere as they do in base64, and hardly in words, names and numbers."""
    kinds = view.data.translate(_KINDS)
    if b"a" not in kinds and b"A" not in kinds:
        return False  # it is all digits, of base 16 at most
    return _changes(kinds) or _is_in_pieces(view.data)


def has_run(view: View) -> bool:
    """Whether base64 stands in it unbroken, or in lines of its own, as whoever encodes a text leaves it."""
    # A sign may be a letter, or stand between the letters: their kinds change all the same.
    if any(_is_mixed(run) and _changes(run.translate(_KINDS, _SIGNS)) for run in _runs(view.data)):
        return True
    return any(_is_mixed(found[1]) for found in _LINES.finditer(view.data))


def _runs(data: bytes) -> Iterator[bytes]:
    """From one to the next by substring searches: most words are too short, and are not looked at."""
    letters = data.translate(_LETTER_CLASS) + b" "
    start = letters.find(_RUN)
    while start >= 0:
        end = letters.find(b" ", start)
        yield data[start:end]
        start = letters.find(_RUN, end)


def _changes(kinds: bytes) -> bool:
    start, size = 0, CHANGES_WITHIN
    while start < len(kinds):
        if _CHANGES.find_matches_as_indexes(kinds[start : start + size + 2]):
            return True
        # Where there was none so far there are few.
        start, size = start + size, 2 * size
    return False


def _is_in_pieces(data: bytes) -> bool:
    """Whether letters stand by themselves, or by twos or threes, as those of base64 that is spaced."""
    letters = data.translate(_ALPHANUMERIC_CLASS)
    # Where there is one group there are many: a look at the beginning may save the list of all of them.
    found = _PIECES.find_matches_as_indexes(letters[:CHANGES_WITHIN], overlapping=True)
    if len(letters) > CHANGES_WITHIN and not any(which for which, _, _ in found):
        found = _PIECES.find_matches_as_indexes(letters, overlapping=True)
    if any(which for which, _, _ in found):
        return True
    singles = [start for _, start, _ in found]
    return any(last - first <= SINGLES_WITHIN for first, last in zip(singles, singles[SINGLES_MIN - 1 :], strict=False))


def _is_mixed(run: bytes) -> bool:
    """Names and paths are of small letters or of capitals for the most part, and base64 is not, from its beginning."""
    return _is_mixed_all_over(run[:CHANGES_WITHIN]) or (len(run) > CHANGES_WITHIN and _is_mixed_all_over(run))


def _is_mixed_all_over(run: bytes) -> bool:
    if _HEX_ONLY.fullmatch(run):
        return False
    digits = len(run.translate(None, _NOT_DIGIT))
    small = len(run.translate(None, _NOT_SMALL))
    capitals = len(run.translate(None, _NOT_CAPITAL))
    return max(digits, min(capitals, small)) * MIXED_SHARE >= len(run)
