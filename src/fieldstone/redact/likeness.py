"""Does base64 stand in a text? A look at the kinds of its letters, which costs less than to decode it.

A text is decoded if it may hold any. What is left out, as measured: of 1,000 pieces of base64 by themselves, 12 of
eleven letters and 1 of sixteen look like words or names. A secret is found in its base64 all the same, by its needles:
this is about one that was disguised before.
"""

import re
from typing import Final

from ahocorasick_rs import BytesAhoCorasick, Implementation, MatchKind

from fieldstone.redact.views import View

# Letters of base64 without a gap, as whoever encodes a text leaves them. Most names in code are shorter.
RUN_MIN: Final = 20
# Of base64, one letter in this many at least is a digit; or else a capital, and another one is none.
MIXED_SHARE: Final = 8
# Where there is one change there are many: not all of them are to be listed.
CHANGES_WITHIN: Final = 256
# So many letters by themselves may be base64 that is spaced, and so many pairs or threes in a row, too.
SINGLES_MIN: Final = 4
GROUPS_MIN: Final = 5

_SMALL: Final = b"abcdefghijklmnopqrstuvwxyz"
_ALPHANUMERIC: Final = _SMALL.upper() + _SMALL + b"0123456789"
_LETTERS_ONLY: Final = bytes(byte if byte in _ALPHANUMERIC + b"+/-_" else ord(" ") for byte in range(256))
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
_LETTER_CLASS: Final = bytes(ord("x") if byte != ord(" ") else byte for byte in _LETTERS_ONLY)
_RUN: Final = b"x" * RUN_MIN
_GROUPS: Final = BytesAhoCorasick(
    [gap.join([group] * GROUPS_MIN) + b" " for group in (b" xx", b" xxx") for gap in (b"", b" ", b"  ")],
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
    if _changes(view.data):
        return True
    letters = view.data.translate(_ALPHANUMERIC_CLASS)
    return letters.count(b" x ") >= SINGLES_MIN or bool(_GROUPS.find_matches_as_indexes(letters))


def has_run(view: View) -> bool:
    """Whether base64 stands in it unbroken, or in lines of its own, as whoever encodes a text leaves it."""
    # A substring search tells fast that there is none.
    if _RUN in view.data.translate(_LETTER_CLASS):
        runs = view.data.translate(_LETTERS_ONLY).split()
        # A sign may be a letter, or stand between the letters: their kinds change all the same.
        if any(_is_mixed(run) and _changes(run.translate(None, _SIGNS)) for run in runs if len(run) >= RUN_MIN):
            return True
    return any(_is_mixed(found[1]) for found in _LINES.finditer(view.data))


def _changes(data: bytes) -> bool:
    kinds = data.translate(_KINDS)
    starts = range(0, len(kinds), CHANGES_WITHIN)
    return any(_CHANGES.find_matches_as_indexes(kinds[start : start + CHANGES_WITHIN + 2]) for start in starts)


def _is_mixed(run: bytes) -> bool:
    """Names and paths are of small letters or of capitals for the most part, and base64 is not."""
    if _HEX_ONLY.fullmatch(run):
        return False
    digits = len(run.translate(None, _NOT_DIGIT))
    small = len(run.translate(None, _NOT_SMALL))
    capitals = len(run.translate(None, _NOT_CAPITAL))
    return max(digits, min(capitals, small)) * MIXED_SHARE >= len(run)
