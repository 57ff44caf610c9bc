"""Secrets whose values are known, plain and in disguise.

One automaton looks for the letters and digits of those that are hard to guess, in every reading of the text; what it
finds is taken out of the text with the run that it was encoded in. Another looks for the other values as they are.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import lru_cache
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from fieldstone.redact.encodings import TooLarge, widened
from fieldstone.redact.fragments import Key, Part, split
from fieldstone.redact.markers import is_name, without
from fieldstone.redact.needles import Needle, needles
from fieldstone.redact.readings import Reading, TooMuch, letter_words, plain_reading, readings, sign_words, with_signs
from fieldstone.redact.search import Found, Hit, Search, automaton
from fieldstone.redact.spans import Span
from fieldstone.redact.strength import VALUE_CHARACTERS_MIN, Weakness, check_value

UNSEARCHABLE: Final = "fieldstone.unsearchable"
# Letters on each side of the seam between two texts among which a secret is put together.
SEAM_LETTERS_MAX: Final = 256
# So many of a needle tell quickly where none begins.
FIRST_LETTERS: Final = 4
MIDDLE_BYTES: Final = 6
# Of the views that are searched at once.
BATCH_BYTES: Final = 256 * 1024
# A text in which something is found is asked for it several times on its way.
LOOKS_KEPT: Final = 8
# Of a text that holds parts, until none is left.
PART_LOOKS_MAX: Final = 8


class KnownSecret(NamedTuple):
    id: str
    value: str


class Beginning(NamedTuple):
    """Letters at the end of a text with which a secret begins."""

    has_signs: bool
    letters: bytes


class _Look(NamedTuple):
    """What a text holds."""

    spans: Sequence[Span]
    parts: Sequence[Part]


class Known:
    """A detector."""

    def __init__(self, secrets: Iterable[KnownSecret]) -> None:
        self._secrets: Final = tuple(secrets)
        for secret in self._secrets:
            _check(secret)
        self.longest: Final = max((len(secret.value) for secret in self._secrets), default=0)
        self.rule_ids: Final = frozenset({UNSEARCHABLE, *(secret.id for secret in self._secrets)})
        # Held as long as they are looked for, so that they are there when the next secret comes.
        self._needles: Final = [_needles_of(secret.value) for secret in self._secrets]
        every = [(index, needle) for index, its in enumerate(self._needles) for needle in its]
        self._values: Final = [secret.value.encode() for secret in self._secrets]
        # Those that their letters alone do not find.
        self._unsure: Final = [
            index
            for index, (its, value) in enumerate(zip(self._needles, self._values, strict=True))
            if not _find_it_plain(its, value)
        ]
        self._middles: Final = automaton([_middle(self._values[index]) for index in self._unsure])
        ids = [secret.id for secret in self._secrets]
        self._letters: Final = Search((each for each in every if not each[1].has_signs), ids)
        self._signs: Final = Search((each for each in every if each[1].has_signs), ids)
        self._look: Final = lru_cache(maxsize=LOOKS_KEPT)(self._look_at)
        self._beginnings: Final = {has_signs: _beginnings(self._search(has_signs)) for has_signs in (False, True)}

    def none_in(self, texts: bytes) -> bool:
        """Also none that is cut in parts, which stand in different texts."""
        look = self._look(texts)
        return not (look.spans or split(look.parts) or any(part.is_most for part in look.parts))

    def spans(self, text: bytes) -> Sequence[Span]:
        return self._look(text).spans

    def parts(self, text: bytes) -> Sequence[Part]:
        """The parts of secrets in a text."""
        return self._look(text).parts

    def rests(self, most: Iterable[Part], text: bytes) -> list[Part]:
        """The short rests that these parts leave out, if the text has them."""
        return [found.part for found in self._rests(most, text)]

    def part_spans(self, text: bytes, most: Iterable[Part], secrets: Set[Key]) -> list[Span]:
        """Where the parts of these secrets stand in a text, and the rests. It is looked through once more: hardly any
        text is asked for this, and every one would pay for the places. And again without them, until there are none:
        of two encoded alike, one is read."""
        most = list(most)
        taken: dict[Span, None] = {}
        for _ in range(PART_LOOKS_MAX):
            spans = [span for span in self._part_spans(text, most, secrets) if span not in taken]
            if not spans:
                break
            taken.update(dict.fromkeys(spans))
            text = without(text, [(span.start, span.end) for span in spans])
        return list(taken)

    def said_rests(self, most: Iterable[Part], words: frozenset[bytes]) -> list[Part]:
        """The short rests that these parts leave out, if they are among the words."""
        return [rest for part in most for rest in self._search(part.key.has_signs).said_rests(part, words)]

    def ends(self, text: bytes) -> frozenset[bytes]:
        """The words of a text that could be the short rest of a secret."""
        return self._letters.ends(letter_words(text)) | self._signs.ends(sign_words(text))

    def across(self, beginnings: Iterable[Beginning], text: bytes) -> Iterator[Span]:
        """Secrets that begin with these letters, and end with the first letters of the text."""
        for has_signs, reading in self._seam_readings(text):
            for beginning in (each.letters for each in beginnings if each.has_signs == has_signs):
                letters = beginning + reading.letters[:SEAM_LETTERS_MAX]
                for secret, start, end in self._search(has_signs).whole(letters):
                    if start < len(beginning) < end:
                        place = reading.view.origin(*reading.places(0, end - len(beginning)))
                        yield Span(*place, self._secrets[secret].id)

    def beginnings(self, before: Iterable[Beginning], text: bytes) -> Iterator[Beginning]:
        """The last letters, of the text or of the text behind one of these, that could be the beginning of a secret."""
        for has_signs, reading in self._seam_readings(text):
            if reading.letters:
                for letters in (b"", *(each.letters for each in before if each.has_signs == has_signs)):
                    yield Beginning(has_signs, self._longest_beginning(has_signs, letters + reading.letters))

    def _part_spans(self, text: bytes, most: Iterable[Part], secrets: Set[Key]) -> Iterator[Span]:
        found = (each for batch in self._batches(text, []) for each in self._seen(batch) if isinstance(each, Found))
        for each in (*found, *self._rests(most, text)):
            if each.part.key in secrets:
                yield Span(*each.place(), each.part.key.secret_id)

    def _rests(self, most: Iterable[Part], text: bytes) -> Iterator[Found]:
        for has_signs, reading in self._seam_readings(text):
            for part in most:
                if part.key.has_signs == has_signs:
                    yield from self._search(has_signs).rests(part, reading)

    def _search(self, has_signs: bool) -> Search:
        return self._signs if has_signs else self._letters

    def _seam_readings(self, text: bytes) -> Iterator[tuple[bool, Reading]]:
        reading = plain_reading(text)
        yield False, reading
        if self._signs.needles:
            yield True, with_signs(reading)

    def _longest_beginning(self, has_signs: bool, letters: bytes) -> bytes:
        known, firsts = self._beginnings[has_signs]
        for start in range(max(0, len(letters) - SEAM_LETTERS_MAX), len(letters)):
            if letters[start : start + FIRST_LETTERS] in firsts or start > len(letters) - FIRST_LETTERS:
                end = letters[start:]
                at = bisect_left(known, end)
                if at < len(known) and known[at].startswith(end):
                    return end
        return b""

    def _look_at(self, text: bytes) -> _Look:
        spans = list(self._plain(text))
        parts: list[Part] = []
        hit: set[int] = set()
        if self._letters.needles:
            for batch in self._batches(text, spans):
                for each in self._seen(batch):
                    if isinstance(each, Hit):
                        hit.add(each.secret)
                        spans.append(self._span(text, each))
                    else:
                        parts.append(each.part)
        # The letters alone would leave the signs at a value's ends.
        spans += [span for secret in sorted(hit) for span in self._plainly(text, secret)]
        return _Look(spans, parts)

    def _seen(self, batch: Sequence[Reading]) -> Iterator[Hit | Found]:
        yield from self._letters.look(batch)
        if self._signs.needles:
            yield from self._signs.look([with_signs(reading) for reading in batch if not reading.is_noise])

    def _plain(self, text: bytes) -> Iterator[Span]:
        for which, at, _ in self._middles.find_matches_as_indexes(text, overlapping=True):
            index = self._unsure[which]
            value = self._values[index]
            start = at - _middle_at(value)
            if start >= 0 and text.startswith(value, start):
                yield Span(start, start + len(value), self._secrets[index].id)

    def _plainly(self, text: bytes, secret: int) -> Iterator[Span]:
        value = self._values[secret]
        start = text.find(value)
        while start >= 0:
            yield Span(start, start + len(value), self._secrets[secret].id)
            start = text.find(value, start + 1)

    def _batches(self, text: bytes, unsearchable: list[Span]) -> Iterator[Sequence[Reading]]:
        """The readings of a text, as many as are searched at once. What cannot be read is put on the list."""
        batch: list[Reading] = []
        size = 0
        try:
            for reading in readings(text):
                batch.append(reading)
                size += len(reading.view.data)
                if size > BATCH_BYTES:
                    yield batch
                    batch, size = [], 0
        except TooMuch:
            unsearchable.append(Span(0, len(text), UNSEARCHABLE))
        except TooLarge as run:
            unsearchable.append(Span(*widened(text, run.start, run.end), UNSEARCHABLE))
        yield batch

    def _span(self, text: bytes, hit: Hit) -> Span:
        place = widened(text, hit.start, hit.end) if hit.packed else (hit.start, hit.end)
        return Span(*place, self._secrets[hit.secret].id)


class _Needles(list[Needle]):
    """Of one value. A list by itself cannot be referred to weakly."""


# To make them is most of the work when a secret is added, and all but one were there before. Nothing is kept here of a
# value that no harness looks for any more.
_made: Final = WeakValueDictionary[str, _Needles]()


def _needles_of(value: str) -> _Needles:
    """None of a value that is found in plain form only."""
    made = _made.get(value)
    if made is None:
        made = _made[value] = _Needles(needles(value) if check_value(value) is None else ())
    return made


def _find_it_plain(its: Iterable[Needle], value: bytes) -> bool:
    """Whether one of them is all the letters of the value as it is, which then is found wherever it stands."""
    letters = plain_reading(value).letters
    return any(
        needle.letters == letters and needle.sure and bool(needle.spelling) for needle in its if not needle.has_signs
    )


def _beginnings(search: Search) -> tuple[list[bytes], frozenset[bytes]]:
    """The letters of the needles in order, and the first few of each."""
    letters = sorted(needle.letters for needle in search.needles if needle.sure)
    return letters, frozenset(each[:FIRST_LETTERS] for each in letters)


def _middle(value: bytes) -> bytes:
    """What is looked for of a value before the rest is compared: values have beginnings and ends in common."""
    at = _middle_at(value)
    return value[at : at + MIDDLE_BYTES]


def _middle_at(value: bytes) -> int:
    return (len(value) - MIDDLE_BYTES) // 2


def _check(secret: KnownSecret) -> None:
    if len(secret.value) < VALUE_CHARACTERS_MIN:
        raise ValueError(f"{secret.id}: {Weakness.TOO_SHORT.value}")
    if not is_name(secret.id):
        raise ValueError("A secret's id stands in a marker: it has no brackets or line breaks, and is short.")
