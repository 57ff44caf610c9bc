"""Finds needles in the readings of a text, whole or in part, and says where in the text they stand."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from ahocorasick_rs import BytesAhoCorasick, Implementation, MatchKind

from fieldstone.redact.fragments import LETTERS_MIN, REST_LETTERS, Key, Part, left_out
from fieldstone.redact.needles import Needle
from fieldstone.redact.readings import Reading, squeezed

# The automaton knows a few letters of a needle and the rest is compared, so that it stays in the processor's cache. Of
# a needle that is also found in part, every second group of them: any LETTERS_MIN letters hold one. Of a long needle
# fewer, so that about an eighth of it holds one.
GRAM_LETTERS: Final = LETTERS_MIN - 1
STRIDE_MIN: Final = 2
STRIDES_PER_NEEDLE: Final = 8
# Of all patterns together. The automaton takes about 400 bytes for each.
FEW_BYTES: Final = 1100
# A digit behind a letter, at best behind one that is no digit of base 16.
_KINDS: Final = bytes.maketrans(b"0123456789abcdefghijklmnopqrstuvwxyz", b"0" * 10 + b"h" * 6 + b"a" * 20)
_UNUSUAL_PAIRS: Final = (b"a0", b"h0", b"0a", b"0")
# Between the letters of two readings: in no needle.
BREAK: Final = b"\n"
# Signs that may stand between a secret's letters and those before and behind it.
SIGNS_MAX: Final = 64


def automaton(patterns: Sequence[bytes]) -> BytesAhoCorasick:
    """Of few patterns, one that takes more memory and half the time."""
    few = sum(map(len, patterns)) <= FEW_BYTES
    return BytesAhoCorasick(patterns, MatchKind.Standard, Implementation.DFA if few else Implementation.ContiguousNFA)


class _Match(NamedTuple):
    """Letters `first` to `last` of a needle; `shift` is where in the text's letters the needle would begin."""

    which: int
    first: int
    last: int
    shift: int


class Hit(NamedTuple):
    """A secret, where it stands in the text, and whether it is packed there in a run of base64 or digits."""

    secret: int
    start: int
    end: int
    packed: bool


class Found(NamedTuple):
    """A part of a secret, and its letters in a reading. Where that is in the text is worked out when it is asked."""

    part: Part
    reading: Reading
    start: int
    end: int

    def place(self) -> tuple[int, int]:
        return self.reading.view.origin(*self.reading.places(self.start, self.end))


class Search:
    def __init__(self, needles: Iterable[tuple[int, Needle]], ids: Sequence[str]) -> None:
        """Each needle with the number of its secret."""
        owned = list(needles)
        self.needles: Final = [needle for _, needle in owned]
        self._secrets: Final = [secret for secret, _ in owned]
        self._keys: Final = list(_keys(owned, ids))
        self._by_key: Final = {key: which for which, key in enumerate(self._keys)}
        grams = [(which, *gram) for which, needle in enumerate(self.needles) for gram in _grams(needle)]
        self._grams: Final = [(which, at, before, after) for which, at, _, before, after in grams]
        self._automaton: Final = automaton([letters for _, _, letters, _, _ in grams])
        self._ends: Final = frozenset(
            end for needle in self.needles if _is_found_in_part(needle) for end in _ends(needle.letters)
        )

    def whole(self, letters: bytes) -> Iterator[tuple[int, int, int]]:
        """The secrets that the letters alone are sure to be, each with its place in them."""
        for which, first, last, shift in self._matches(letters, whole_only=True):
            if self.needles[which].sure:
                yield self._secrets[which], shift + first, shift + last

    def look(self, readings: Sequence[Reading]) -> Iterator[Hit | Found]:
        """The needles of the readings, all at once, whole or in part."""
        begins: list[int] = []
        for which, first, last, shift in self._matches(BREAK.join([reading.letters for reading in readings])):
            begins = begins or list(accumulate((len(reading.letters) + len(BREAK) for reading in readings), initial=0))
            at = bisect_right(begins, shift + first) - 1
            seen = self._seen(readings[at], _Match(which, first, last, shift - begins[at]))
            if seen:
                yield seen

    def ends(self, words: Iterable[bytes]) -> frozenset[bytes]:
        """The words that could be the short rest of a secret."""
        return self._ends.intersection(words)

    def said_rests(self, most: Part, words: Iterable[bytes]) -> Iterator[Part]:
        """The rests that this part leaves out and that are among the words, which stand in no text at hand."""
        if most.key in self._by_key:
            letters = self.needles[self._by_key[most.key]].letters
            for first, last in left_out(most):
                if letters[first:last] in words:
                    yield Part(most.key, first, last)

    def rests(self, most: Part, reading: Reading) -> Iterator[Found]:
        """The rests that this part leaves out, where they stand by themselves."""
        if most.key not in self._by_key:
            return
        which = self._by_key[most.key]
        letters = self.needles[which].letters
        for first, last in left_out(most):
            for start in _places(letters[first:last], reading.letters):
                match = _Match(which, first, last, start - first)
                if most.key.has_signs or _stands_alone(reading, match):
                    yield self._found(reading, match)

    def _seen(self, reading: Reading, match: _Match) -> Hit | Found | None:
        needle = self.needles[match.which]
        if match.last - match.first < len(needle.letters):
            return self._found(reading, match) if _counts(reading, needle, match) else None
        place = _place(reading, needle, match.shift, match.shift + match.last)
        if place is None:
            return None
        secret = self._secrets[match.which]
        return Hit(secret, *reading.view.origin(*place), reading.view.packed or not needle.spelling)

    def _matches(self, letters: bytes, *, whole_only: bool = False) -> Iterator[tuple[int, int, int, int]]:
        """As in _Match, and as plain numbers: most come to nothing."""
        done: dict[tuple[int, int], int] = {}
        for index, start, end in self._automaton.find_matches_as_indexes(letters, overlapping=True):
            which, at, before, after = self._grams[index]
            # Nearly all are a few letters in the middle of a word, which goes on otherwise.
            if after and letters[end : end + 1] != after and letters[start - 1 : start] != before:
                continue
            shift = start - at
            if end <= done.get((which, shift), 0):
                continue
            needle = self.needles[which]
            if shift >= 0 and letters.startswith(needle.letters, shift):
                first, last = 0, len(needle.letters)
            elif whole_only or not _is_found_in_part(needle):
                continue
            else:
                first, last = _extended(letters, start, end, needle.letters, at)
            done[which, shift] = shift + last
            yield which, first, last, shift

    def _found(self, reading: Reading, match: _Match) -> Found:
        part = Part(self._keys[match.which], match.first, match.last)
        return Found(part, reading, match.shift + match.first, match.shift + match.last)


def _keys(owned: Iterable[tuple[int, Needle]], ids: Sequence[str]) -> Iterator[Key]:
    counts = Counter[int]()
    for secret, needle in owned:
        yield Key(ids[secret], needle.has_signs, counts[secret], len(needle.letters))
        counts[secret] += 1


def _is_found_in_part(needle: Needle) -> bool:
    """Of an encoding, the parts are found where it is decoded; of what is not sure as a whole, no part is."""
    return bool(needle.spelling) and needle.sure


def _grams(needle: Needle) -> Iterator[tuple[int, bytes, bytes, bytes]]:
    """Where it begins in the needle, its letters, and those before and behind it, one of which has to be there too; if
    there are none, the gram may be all."""
    letters = needle.letters
    if not _is_found_in_part(needle):
        at = _unusual(letters)
        yield at, letters[at : at + GRAM_LETTERS], letters[max(0, at - 1) : at], letters[at + GRAM_LETTERS :][:1]
        return
    yield 0, letters[:GRAM_LETTERS], b"", b""
    last = len(letters) - GRAM_LETTERS
    stride = max(STRIDE_MIN, len(letters) // STRIDES_PER_NEEDLE)
    for at in sorted({*range(stride, last + 1, stride), last}):
        end = at + GRAM_LETTERS
        yield at, letters[at:end], letters[at - 1 : at], letters[end : end + 1]


def _unusual(letters: bytes) -> int:
    """Where letters begin that few texts have: the automaton goes no further than the first of them in most words."""
    kinds = letters.translate(_KINDS)
    for pair in _UNUSUAL_PAIRS:
        at = kinds.find(pair, 0, len(kinds) - GRAM_LETTERS + len(pair))
        if at >= 0:
            return at
    return 0


def _ends(letters: bytes) -> Iterator[bytes]:
    for length in REST_LETTERS:
        yield letters[:length]
        yield letters[-length:]


def _extended(letters: bytes, start: int, end: int, needle: bytes, at: int) -> tuple[int, int]:
    """The needle's letters, before and behind those at `at`, that the text has too."""
    first, last = at, at + end - start
    while first and start and letters[start - 1] == needle[first - 1]:
        first, start = first - 1, start - 1
    while last < len(needle) and end < len(letters) and letters[end] == needle[last]:
        last, end = last + 1, end + 1
    return first, last


def _counts(reading: Reading, needle: Needle, match: _Match) -> bool:
    """Whether a part is noticed: a long one anywhere, a shorter one where it is an end and stands by itself."""
    if match.last - match.first >= LETTERS_MIN:
        return True
    if reading.is_noise or (match.first and match.last < len(needle.letters)):
        return False
    return needle.has_signs or _stands_alone(reading, match)


def _stands_alone(reading: Reading, match: _Match) -> bool:
    return reading.places.has_gap(match.shift + match.first) and reading.places.has_gap(match.shift + match.last)


def _places(part: bytes, letters: bytes) -> Iterator[int]:
    at = letters.find(part)
    while at >= 0:
        yield at
        at = letters.find(part, at + 1)


def _place(reading: Reading, needle: Needle, start: int, end: int) -> tuple[int, int] | None:
    if needle.spelling and not needle.has_signs:
        return _in_plain(reading, needle, start, end)
    return reading.places(max(0, start - needle.before), min(len(reading.letters), end + needle.after))


def _in_plain(reading: Reading, needle: Needle, start: int, end: int) -> tuple[int, int] | None:
    """Where the secret stands with its punctuation, as far as it is there; nowhere if it must be there and is not."""
    data = reading.view.data
    first, last = reading.places(start, end)
    before = reading.places(start - 1, start)[1] if start else 0
    after = reading.places(end, end + 1)[0] if end < len(reading.letters) else len(data)
    head, middle, tail = _parted(needle.spelling)
    behind = _signs_read(data[last : min(after, last + SIGNS_MAX)], tail)
    ahead = _signs_read(data[max(before, first - SIGNS_MAX) : first][::-1], head[::-1])
    complete = behind is not None and ahead is not None and _signs_read(data[first:last].lower(), middle) is not None
    if not (needle.sure or complete):
        return None
    return first - (ahead or 0), last + (behind or 0)


def _parted(spelling: bytes) -> tuple[bytes, bytes, bytes]:
    """What stands before the first letter, between the letters, and behind the last."""
    letters = [at for at in range(len(spelling)) if squeezed(spelling[at : at + 1])]
    return spelling[: letters[0]], spelling[letters[0] : letters[-1] + 1], spelling[letters[-1] + 1 :]


def _signs_read(data: bytes, signs: bytes) -> int | None:
    """Up to where all the signs are read, one after the other and with anything between them."""
    at = 0
    for sign in signs:
        at = data.find(sign, at) + 1
        if not at:
            return None
    return at
