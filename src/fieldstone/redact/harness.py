"""The road from text to clean text: the only maker of `CleanText`.

Most texts hold no secret. So the texts of many requests are searched in one scan, and when it finds nothing, nothing is
built for them. Else the texts are searched one by one; what is rewritten comes from those searches alone, so a text's
redaction never depends on its neighbours.
"""

import copy
import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, cast

from msgspec import Struct

from fieldstone.core.text import CleanText
from fieldstone.redact.known import Known, KnownSecret
from fieldstone.redact.markers import blanked, canonical, marker, markers
from fieldstone.redact.patterns import GROUP_BREAK, PIECE_BYTES, TEXT_BREAK, Patterns
from fieldstone.redact.private_keys import PrivateKeys
from fieldstone.redact.seams import Entry, Trail, followed
from fieldstone.redact.spans import Span, merged, outside

# A batch of 64 requests of usual size fits. Larger scans gain nothing, and lose more when something is found.
SCAN_BYTES_MAX = 32 * 1024

# A rewrite can bring a further secret to light: two that overlapped, a token set free by the marker beside it. More
# rounds than this are someone's design, and then nothing of the text is kept.
ROUNDS_MAX = 8
UNSETTLED = "fieldstone.unsettled"


class Redaction(NamedTuple):
    text: CleanText
    found: tuple[str, ...]


class CleanGroup(Struct, frozen=True, gc=False):
    """The texts of one request, clean, and the ids of the secrets that were taken out of them.

    With nothing found, `texts` is the very sequence that was given. A marker of another form is rewritten but is no
    secret: it is not in `found`.
    """

    texts: Sequence[CleanText]
    found: tuple[str, ...]


class Harness:
    """Takes secrets out of texts. A text must be encodable as UTF-8: lone surrogates are refused at the edge, where a
    request is decoded, and raise UnicodeEncodeError here."""

    def __init__(self, known: Iterable[KnownSecret] = ()) -> None:
        self._know(known, (Patterns(), PrivateKeys()))

    def knowing(self, known: Iterable[KnownSecret]) -> "Harness":
        """A harness with the same rules, which are dear to load, and other known secrets."""
        other = copy.copy(self)
        other._know(known, self._rules)
        return other

    @property
    def knows_secrets(self) -> bool:
        return self._known is not None

    @property
    def longest_known(self) -> int:
        """Characters of the longest known secret; 0 where none is known."""
        return 0 if self._known is None else self._known.longest

    def _know(self, known: Iterable[KnownSecret], rules: tuple["_Detector", ...]) -> None:
        secrets = tuple(known)
        self._rules = rules
        self._known = Known(secrets) if secrets else None
        # Each finds its own kind of secret; a new kind is a new detector here.
        self._detectors: tuple[_Detector, ...] = (*rules, self._known) if self._known else rules
        rule_ids = frozenset[str]().union({UNSETTLED}, *(detector.rule_ids for detector in self._detectors))
        self._own_names = frozenset(rule_id.encode() for rule_id in rule_ids)

    def clean_groups(self, groups: Sequence[Sequence[str]]) -> list[CleanGroup]:
        """Each group is the texts of one request; the answer is in the same order."""
        suspects = self._suspects([TEXT_BREAK.join(group).encode() for group in groups])
        answers = [CleanGroup(texts, ()) for texts in cast(Sequence[Sequence[CleanText]], groups)]
        for index in suspects:
            answers[index] = self._clean_group(groups[index])
        return answers

    def clean_if_nothing_is_found(self, groups: Sequence[Sequence[str]]) -> list[CleanGroup] | None:
        """The same where there is nothing to take out, which takes no time; else None: a text may be full of secrets,
        and then it takes long."""
        if any(groups) and self._suspects([TEXT_BREAK.join(group).encode() for group in groups]):
            return None
        return [CleanGroup(texts, ()) for texts in cast(Sequence[Sequence[CleanText]], groups)]

    def clean_after(self, trail: Trail, texts: Sequence[str]) -> tuple[CleanGroup, Trail]:
        """The texts of an entry, clean also of what goes on from the entries before; and the trail for the next one."""
        [group] = self.clean_groups([texts])
        group, [trail] = self.follow([trail], texts, group)
        return group, trail

    def follow(
        self, trails: Sequence[Trail], texts: Sequence[str], group: CleanGroup
    ) -> tuple[CleanGroup, list[Trail]]:
        """As `clean_after`, for texts that were cleaned in a batch, and several trails: an agent's and a session's."""
        return self._without_parts(trails, texts, group) if self._known else (group, list(trails))

    def clean_one(self, text: str) -> Redaction:
        [group] = self.clean_groups([[text]])
        return Redaction(group.texts[0], group.found)

    def holds_secret(self, ids: Sequence[str]) -> list[str | None]:
        """The rule that each id offends, or None. Ids that a client chose are refused for it, never rewritten."""
        encoded = [value.encode() for value in ids]
        suspects = self._suspects(encoded)
        return [self._offence(value) if index in suspects else None for index, value in enumerate(encoded)]

    def _clean_group(self, group: Sequence[str]) -> CleanGroup:
        suspects = self._suspects([text.encode() for text in group])
        found: dict[str, None] = {}
        texts = [self._clean(text, found) if index in suspects else CleanText(text) for index, text in enumerate(group)]
        return self._without_parts([], group, CleanGroup(texts, tuple(found)))[0]

    def _without_parts(
        self, trails: Sequence[Trail], texts: Sequence[str], group: CleanGroup
    ) -> tuple[CleanGroup, list[Trail]]:
        """The group without the parts of secrets that are whole only together."""
        if not self._known:
            return group, []
        cleaned = [text.encode() for text in group.texts]
        came = [canonical(text.encode()) for text in texts]
        entry = Entry([blanked(text) for text in came], [blanked(text) for text in cleaned])
        spans, trails = followed(self._known, trails, entry)
        if not any(spans):
            return group, trails
        found = dict.fromkeys(group.found)
        rewritten = []
        for text, its_spans in zip(cleaned, spans, strict=True):
            secrets = _outside_markers(text, merged(text, its_spans))
            found.update(dict.fromkeys(secret.rule_id for secret in secrets))
            rewritten.append(CleanText(_rewritten(text, secrets).decode()))
        return CleanGroup(rewritten, tuple(found)), trails

    def _clean(self, text: str, found: dict[str, None]) -> CleanText:
        data = text.encode()
        for _ in range(ROUNDS_MAX):
            data = canonical(data)
            secrets = self._secrets(data)
            if not secrets:
                return CleanText(data.decode())
            found.update(dict.fromkeys(secret.rule_id for secret in secrets))
            data = _rewritten(data, secrets)
        found[UNSETTLED] = None
        return CleanText(marker(UNSETTLED).decode())

    def _offence(self, value: bytes) -> str | None:
        secrets = self._secrets(canonical(value))
        return secrets[0].rule_id if secrets else None

    def _secrets(self, text: bytes) -> list[Span]:
        """The secrets of a text, in order and apart: between its markers, and in the names of markers not our own."""
        standing = list(markers(text))
        spans = _outside_markers(text, self._merged(text, blanked(text)))
        named = [each for each in standing if each.name not in self._own_names]
        suspects = self._suspects([each.name for each in named])
        for index in suspects:
            if inside := self._merged(named[index].name, named[index].name):
                spans.append(Span(named[index].start, named[index].end, inside[0].rule_id))
        return sorted(spans)

    def _merged(self, text: bytes, searched: bytes) -> list[Span]:
        return merged(text, self._spans(searched), self._known.rule_ids if self._known else frozenset())

    def _spans(self, text: bytes) -> Iterator[Span]:
        for detector in self._detectors:
            yield from detector.spans(text)

    def _suspects(self, items: Sequence[bytes]) -> set[int]:
        """Where in the list something may be found. A long item is searched in pieces, so it is always a suspect."""
        if len(items) == 1 and len(items[0]) <= PIECE_BYTES:  # whoever is alone, which is often
            return set(self._narrowed(items, range(1)))
        suspects = {index for index, item in enumerate(items) if len(item) > PIECE_BYTES}
        short = [index for index in range(len(items)) if index not in suspects] if suspects else range(len(items))
        for run in _runs(items, short):
            suspects.update(self._narrowed(items, run))
        return suspects

    def _narrowed(self, items: Sequence[bytes], indexes: Sequence[int]) -> Iterator[int]:
        """By halving: one secret among many requests costs a few scans."""
        texts = GROUP_BREAK.join([items[index] for index in indexes])
        if all(detector.none_in(texts) for detector in self._detectors):
            return
        if len(indexes) == 1:
            yield indexes[0]
            return
        middle = len(indexes) // 2
        yield from self._narrowed(items, indexes[:middle])
        yield from self._narrowed(items, indexes[middle:])


@functools.cache
def shared_harness() -> Harness:
    """The process's harness. Its rules load in 0.3 s, or 3.5 s where kingfisher has not compiled and kept them yet."""
    return Harness()


class _Detector(Protocol):
    """Finds secrets of one kind."""

    @property
    def rule_ids(self) -> frozenset[str]:
        """Every id that it may give a span."""

    def none_in(self, texts: bytes) -> bool:
        """True only if `spans` would find nothing in any of the texts, which stand between breaks. Every request pays
        for this question, and a false alarm only costs time."""

    def spans(self, text: bytes) -> Iterable[Span]:
        """The secrets of one text, in any order; they may overlap."""


def _runs(items: Sequence[bytes], indexes: Sequence[int]) -> Iterator[Sequence[int]]:
    """Runs of at most about SCAN_BYTES_MAX."""
    start = size = 0
    for at, index in enumerate(indexes):
        if size + len(items[index]) > SCAN_BYTES_MAX:
            yield indexes[start:at]
            start, size = at, 0
        size += len(items[index])
    if start < len(indexes):
        yield indexes[start:]


def _outside_markers(text: bytes, spans: Sequence[Span]) -> list[Span]:
    holes = [(each.start, each.end) for each in markers(text)]
    return [piece for span in spans for piece in outside(text, span, holes)]


def _rewritten(text: bytes, secrets: Sequence[Span]) -> bytes:
    pieces = []
    at = 0
    for secret in secrets:
        pieces += [text[at : secret.start], marker(secret.rule_id)]
        at = secret.end
    return b"".join([*pieces, text[at:]])
