"""What is looked for in a reading to find one secret: its letters, and its letters as some encodings leave them.

Readings take most disguises off. Here are those that a reading cannot take off: letters turned around or rotated, and
encodings whose letters lost their case, or were spaced, turned around or rotated in their turn.
"""

import base64
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from fieldstone.redact.escapes import ROT13
from fieldstone.redact.lookalikes import canonical
from fieldstone.redact.readings import squeezed
from fieldstone.redact.strength import is_hard_to_guess
from fieldstone.redact.views import whole

# Fewer letters than this are found anywhere; such a secret is looked for with its punctuation.
LETTERS_MIN: Final = 4
SURE_LETTERS_MIN: Final = 8


class Needle(NamedTuple):
    """`letters` are found in a reading's letters.

    In plain text, `spelling` is the secret with its punctuation. If the letters alone are too few or too usual to be
    `sure`, the punctuation has to be there too; and another needle `has_signs`, it is looked for with them.
    In an encoding, `before` and `after` count the letters beside these that hold a few bits of the secret.
    """

    letters: bytes
    spelling: bytes = b""
    sure: bool = True
    has_signs: bool = False
    before: int = 0
    after: int = 0


def needles(value: str) -> Iterator[Needle]:
    data = value.encode()
    for turned in (data, data.translate(ROT13)):
        yield from _plain(canonical(whole(turned)).data)
        if not value.isascii():
            # As it is found in noise, where other letters than ASCII's cannot be told from it.
            yield from _plain(turned.decode("ascii", "ignore").encode())
    yield from _base32(data)
    for encoded in (*_base64(data), *_hex(data)):
        yield encoded
        yield _turned(encoded)
        yield encoded._replace(letters=encoded.letters.translate(ROT13))


def _plain(value: bytes) -> Iterator[Needle]:
    spelling = _WHITE_SPACE.sub(b"", value).lower()
    letters = squeezed(spelling)
    sure = len(letters) >= SURE_LETTERS_MIN and is_hard_to_guess(letters.decode())
    if len(letters) >= LETTERS_MIN:
        yield Needle(letters, spelling, sure)
        yield Needle(letters[::-1], spelling[::-1], sure)
    if not sure and len(spelling) >= SURE_LETTERS_MIN:
        yield Needle(spelling, spelling, has_signs=True)
        yield Needle(spelling[::-1], spelling[::-1], has_signs=True)


def _base64(data: bytes) -> Iterator[Needle]:
    """At its three alignments, and twice."""
    for shift in range(3):
        first, last = -(-shift * 8 // 6), (shift + len(data)) * 8 // 6
        letters = base64.b64encode(b"\0" * shift + data)[first:last]
        before, after = int(shift > 0), int((shift + len(data)) % 3 > 0)
        yield Needle(squeezed(letters), before=before, after=after)
        if not shift:
            yield Needle(squeezed(base64.b64encode(letters)[: len(letters) * 8 // 6]), after=after)


def _hex(data: bytes) -> Iterator[Needle]:
    yield Needle(data.hex().encode())


def _base32(data: bytes) -> Iterator[Needle]:
    for shift in range(5):
        first, last = -(-shift * 8 // 5), (shift + len(data)) * 8 // 5
        letters = base64.b32encode(b"\0" * shift + data)[first:last]
        yield Needle(squeezed(letters), before=int(shift > 0), after=int((shift + len(data)) % 5 > 0))


def _turned(needle: Needle) -> Needle:
    return needle._replace(letters=needle.letters[::-1], before=needle.after, after=needle.before)


_WHITE_SPACE: Final = re.compile(rb"\s+")
