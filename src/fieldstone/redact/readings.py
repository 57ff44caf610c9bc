"""Every reading of a text in which a known secret is looked for: the text itself, and what is behind its disguises.

The search goes from the text to what its escapes, its base64, its digits and its compressed runs stand for, and on from
there, level by level. Most texts have none of these: then they are read once, and what their letters would mean as
base64, which is noise. What a text can make this cost is bounded; one that would cost more cannot be vouched for.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from fieldstone.redact.encodings import ALIGNMENTS, from_base64, from_hex, inflated, readable, with_gzip
from fieldstone.redact.escapes import ROT13, rearranged, unescaped
from fieldstone.redact.likeness import has_run, may_hold_base64
from fieldstone.redact.lookalikes import canonical, has_lookalikes, has_other_letters, others
from fieldstone.redact.views import Kept, View, whole

# Encodings on top of each other that are taken off.
DEPTH_MAX: Final = 3
# Bytes that are read for one text, in its views all together. Usual texts need 1 to 5 times their length.
READ_BYTES_MIN: Final = 512 * 1024
READ_TIMES_MAX: Final = 24

_UPPER: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_ALPHANUMERIC: Final = _UPPER + _UPPER.lower() + b"0123456789"
_FOLD: Final = bytes.maketrans(_UPPER, _UPPER.lower())
# In a text in plain letters, what is left beyond ASCII are letters too. In noise it is noise.
_NO_LETTER: Final = bytes(byte for byte in range(128) if byte not in _ALPHANUMERIC)
_NO_LETTER_IN_NOISE: Final = bytes(byte for byte in range(256) if byte not in _ALPHANUMERIC)

_NO_LETTER_OR_SPACE: Final = bytes(byte for byte in _NO_LETTER if byte not in b" \t\r\n")
_WHITE_SPACE: Final = bytes(range(0x21)) + b"\x7f"

# Markup and numbering with letters or digits in it, which may stand in the middle of a secret, and what is left of it.
# Each begins with a byte that is found fast.
_MARKUP: Final = (
    (re.compile(rb"</?[A-Za-z!][^<>]{0,100}>"), b""),
    (re.compile(rb"\]\([^()\s]{0,200}\)"), b""),
    (re.compile(rb"\n[ \t>*|-]{0,8}+[0-9]{1,3}+[.)][ \t]"), b"\n"),
)
# The same where it was spaced, turned around or rotated with the rest: tags that say nothing, and what a link leaves.
_TAG_NAMES: Final = (b"wbr", b"br", b"b", b"i", b"u", b"s", b"em", b"strong", b"code", b"span", b"p", b"a", b"li")
_TAG: Final = re.compile(rb"</?(?i:%b)/?>|\]\(#?\)" % b"|".join(_TAG_NAMES))
# How they look before that is undone, by a sign that they have. Each begins with a byte that is found fast.
_SPACED_TAG: Final = {b"<": re.compile(rb"</?(?i:%b)/?>" % b"|".join(_TAG_NAMES)), b"]": re.compile(rb"\]\(#?\)")}
_TURNED_TAG: Final = {
    b"<": re.compile(rb">/?(?i:%b)/?<" % b"|".join([name[::-1] for name in _TAG_NAMES])),
    b"]": re.compile(rb"\)#?\(\]"),
}
_ROTATED_TAG: Final = {
    b"<": re.compile(rb"</?(?i:%b)/?>" % b"|".join([name.translate(ROT13) for name in _TAG_NAMES])),
    b"]": _SPACED_TAG[b"]"],
}
_NO_TAG: Final = bytes(byte for byte in range(128) if byte not in _ALPHANUMERIC + b"<>/[]()#%&;=\\+")


class Reading(NamedTuple):
    """A view, its letters and digits in lower case, and where in the view these stand."""

    view: View
    letters: bytes
    places: Kept
    is_noise: bool = False


class TooMuch(Exception):
    """The text would take more reading than anyone's text is worth."""


def readings(text: bytes) -> Iterator[Reading]:
    """Raises TooMuch, and TooLarge for a compressed run."""
    views = deque([whole(text)])
    seen: set[bytes] = set()
    left = READ_BYTES_MIN + READ_TIMES_MAX * len(text)
    while views:
        view = views.popleft()
        if view.data in seen:
            continue
        seen.add(view.data)
        left -= len(view.data)
        if left < 0:
            raise TooMuch
        yield from _read(view, views)


def plain_reading(text: bytes) -> Reading:
    """The text as it is, in plain letters."""
    return _text(_plain(whole(text)))


def letter_words(text: bytes) -> list[bytes]:
    """The words of a text, each without its punctuation."""
    return _plain(whole(text)).data.translate(_FOLD, _NO_LETTER_OR_SPACE).split()


def sign_words(text: bytes) -> list[bytes]:
    """The words of a text with their punctuation, and each without its last sign, which may be the sentence's."""
    words = text.translate(_FOLD).split()
    return [*words, *(word[:-1] for word in words)]


def with_signs(reading: Reading) -> Reading:
    """The same view, of which only white space is left out: for secrets that are more signs than letters."""
    data = reading.view.data
    return Reading(reading.view, data.translate(_FOLD, _WHITE_SPACE), Kept(data, _WHITE_SPACE))


def squeezed(text: bytes) -> bytes:
    """The letters and digits of a text in plain spelling: what all disguises by spacing and case have in common."""
    return text.translate(_FOLD, _NO_LETTER)


def _read(view: View, views: deque[View]) -> Iterator[Reading]:
    plain = _plain(view)
    yield _text(plain)
    if plain is not view:
        yield from _of_other_letters(view)
    if plain.depth < DEPTH_MAX:
        views.extend(_without_markup(plain))
        views.extend(unescaped(plain))
        yield from _decoded(plain, views)
    if not plain.depth:
        # What was done to escapes and tags was done last: there is nothing more below.
        for last in (*rearranged(plain), *_without_rearranged_tags(plain)):
            yield _text(_plain(last))


def _plain(view: View) -> View:
    return view if view.data.isascii() else canonical(view)


def _of_other_letters(view: View) -> Iterator[Reading]:
    """Rotation leaves other letters as they are, and a change of case makes new look-alikes: both are undone first."""
    met = others(view.data)
    if has_other_letters(met):
        yield _text(canonical(view.translated(ROT13)))
    if has_lookalikes(met):
        yield _text(canonical(view, str.lower))
        yield _text(canonical(view, str.upper))


def _without_markup(plain: View) -> Iterator[View]:
    view = plain
    for markup, left in _MARKUP:
        if markup.search(view.data):
            view = view.rewritten(markup, left, deeper=view is plain)
    if view is not plain:
        yield view


def _without_rearranged_tags(plain: View) -> Iterator[View]:
    # Rearranged they are of the same signs.
    signs = [sign for sign, closing in ((b"<", b">"), (b"]", b"(")) if sign in plain.data and closing in plain.data]
    if not signs:
        return
    tight = plain.kept(None, _NO_TAG)
    if _has_one(_SPACED_TAG, signs, tight):
        yield tight.rewritten(_TAG, b"")
    if _has_one(_TURNED_TAG, signs, tight):
        yield tight.backwards().rewritten(_TAG, b"")
    if _has_one(_ROTATED_TAG, signs, tight):
        yield tight.translated(ROT13).rewritten(_TAG, b"")


def _has_one(tags: Mapping[bytes, re.Pattern[bytes]], signs: Iterable[bytes], view: View) -> bool:
    return any(tags[sign].search(view.data) for sign in signs)


def _decoded(plain: View, views: deque[View]) -> Iterator[Reading]:
    if plain.depth:
        # Base64 that is broken up was the last thing done to a text: here only a run is decoded.
        may_be = in_a_run = has_run(plain) and may_hold_base64(plain)
    else:
        may_be = may_hold_base64(plain)
        in_a_run = may_be and has_run(plain)
    for noise in from_base64(plain, in_a_run=in_a_run) if may_be else ():
        yield _noise(noise)
        views.extend(readable(noise, in_a_run=in_a_run, pieces=ALIGNMENTS))
        if in_a_run:
            views.extend(inflated(noise, pieces=ALIGNMENTS))
    for noise in from_hex(plain):
        yield _noise(noise)
        views.extend(readable(noise, in_a_run=True))
        views.extend(inflated(noise))
    for turned in with_gzip(plain, in_a_run=in_a_run):
        for noise in from_base64(turned, in_a_run=True):
            views.extend(inflated(noise, pieces=ALIGNMENTS))


def _noise(view: View) -> Reading:
    letters = view.data.translate(_FOLD, _NO_LETTER_IN_NOISE)
    return Reading(view, letters, Kept(view.data, _NO_LETTER_IN_NOISE), is_noise=True)


def _text(view: View) -> Reading:
    return Reading(view, squeezed(view.data), Kept(view.data, _NO_LETTER))
