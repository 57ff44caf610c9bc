"""Secrets that stream in over deltas: what was said last is cleaned again with what comes.

The deltas of one kind make up one running text, until their message ends. Each append cleans the end of
that text together with what is new. A secret that is whole now is taken out of all its pieces: the marker goes into the
first, the others lose their part.

Of the text only its end is kept in memory, as it is stored. One thing is kept as it came: a secret that is the last
thing of the text, since it may go on, and of its rest alone nobody could tell what it is. It is never written down.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from fieldstone.core.errors import InvalidPayload
from fieldstone.core.streams import REASONING, STEP_FINISHED, TEXT_DELTA, TOOL_RESULT, USER_MESSAGE, StreamEvent
from fieldstone.core.text import CleanText
from fieldstone.redact import Harness
from fieldstone.redact.openings import TOKEN, Literals, goes_on, opening
from fieldstone.redact.strength import VALUE_CHARACTERS_MIN

ENDS_TEXTS: Final = frozenset((STEP_FINISHED, TOOL_RESULT, USER_MESSAGE))
DELTAS: Final = {TEXT_DELTA: "delta", REASONING: "text"}  # the kinds that stream a text, and where it stands

# Longer than what any rule of bounded length takes. With a usual batch it is still one short scan.
WINDOW_CHARACTERS: Final = 2_048
# A known secret may be longer, and a disguise makes it longer still.
DISGUISED: Final = 3
# A run without white space is one token, up to this: they have to fit in a request's header.
TOKEN_CHARACTERS_MAX: Final = 16 * 1024
# A private key that is longer is cut.
RAW_CHARACTERS_MAX: Final = 64 * 1024
# What announces a secret stands so close before it.
CONTEXT_CHARACTERS: Final = 256
DEPTH_MAX: Final = 64
# A number with fewer digits, and a list with fewer bytes, is too short for a secret.
LONG_NUMBER: Final = 10 ** (VALUE_CHARACTERS_MIN - 1)
BYTE_MAX: Final = 255

# Those that touch stand for one region: where in it one secret ends and the next begins is not told.
_MARKERS: Final = re.compile(r"(?:\[REDACTED:[^\[\]<>\r\n]{1,200}?\])+")
_STARTS_MAX: Final = 64  # places that are tried for where a secret begins


class Piece(NamedTuple):
    """What the text has of one event: `kept` stands for good, `stored` is what may still change."""

    seq: int
    kept: str
    stored: str
    size: int  # of its part of `OpenText.came`


class Raw(NamedTuple):
    """A secret that is the last thing of a text, and was taken out of it."""

    start: int
    end: int
    marker: str


class OpenText(NamedTuple):
    """The end of a running text: as it is stored, but for the secret that may go on, which is as it came."""

    came: str = ""
    pieces: tuple[Piece, ...] = ()
    raw: Raw | None = None
    was_read_back: bool = False  # of a secret at its end only the marker is known


class StreamTrail(NamedTuple):
    """What a stream said last, up to `head`. By kind of delta, those whose text nothing has ended yet."""

    head: int = 0
    texts: Mapping[str, OpenText] = {}
    floor: int = 0  # when it was made: what is gone by now is in a snapshot


class Followed(NamedTuple):
    events: Sequence[StreamEvent]  # clean
    rewritten: Mapping[int, str]  # events before these, by seq: the text that they have now
    trail: StreamTrail
    held_from: int | None


class _Run:
    """A running text that goes on in this batch."""

    def __init__(self, text: OpenText) -> None:
        self.before = text
        self.seqs: list[int] = []
        self.texts: list[str] = []
        self.after = text
        self.clean: str | None = None

    def add(self, seq: int, text: str) -> None:
        self.seqs.append(seq)
        self.texts.append(text)


class _Words(NamedTuple):
    """The strings of an event that belong to no running text."""

    at: int
    strings: list[str]


def clean_words(harness: Harness, events: Sequence[StreamEvent]) -> Sequence[StreamEvent]:
    """The events with every string clean that belongs to no running text."""
    words = [_Words(at, strings) for at, event in enumerate(events) if (strings := list(_words_of(event)))]
    if not words:
        return events
    clean = list(events)
    for each, group in zip(words, harness.clean_groups([each.strings for each in words]), strict=True):
        if group.texts is not each.strings:
            clean[each.at] = _with_words(clean[each.at], group.texts)
    return clean


def clean_values(harness: Harness, value: Any, *, depth: int = 0) -> Any:
    """A JSON value with every string clean; the very same where there is nothing to take out.

    `depth`: less than 0 for what holds payloads further inside than an event does.
    """
    strings = list(_strings(value, depth))
    [group] = harness.clean_groups([strings])
    return value if group.texts is strings else _filled(value, iter(group.texts))


def follow(harness: Harness, literals: Literals, trail: StreamTrail, events: Sequence[StreamEvent]) -> Followed:
    """The events, whose words are clean, with running texts that are clean also of what goes on from before."""
    runs, going_on = _sorted_out(trail, events)
    for run in runs:
        _swallow(run)
    texts = [run.before.came + "".join(run.texts) for run in runs]
    clean = list(events)
    rewritten: dict[int, str] = {}
    for run, text, group in zip(runs, texts, harness.clean_groups([[text] for text in texts]), strict=True):
        for seq, now in _settle(harness, run, text, group.texts[0]).items():
            if seq > trail.head:
                clean[seq - trail.head - 1] = with_text(clean[seq - trail.head - 1], now)
            else:
                rewritten[seq] = now
    held = [_held_from(harness, literals, run) for run in going_on.values()]
    return Followed(
        clean,
        rewritten,
        StreamTrail(trail.head + len(events), {kind: run.after for kind, run in going_on.items()}, trail.floor),
        min((seq for seq in held if seq is not None), default=None),
    )


def window(harness: Harness) -> int:
    """How far back a secret may have begun that is completed now."""
    return max(WINDOW_CHARACTERS, DISGUISED * harness.longest_known)


def read_back(harness: Harness, pieces: Sequence[tuple[int, str]]) -> OpenText:
    """The running text of events that are stored, when nothing is known of how they came."""
    kept = tuple(Piece(seq, "", text, len(text)) for seq, text in pieces)
    return _trimmed(OpenText("".join(text for _, text in pieces), kept, was_read_back=True), window(harness))


def reaches_below(trail: StreamTrail, floor: int) -> bool:
    """Whether a compaction has taken away a part of its texts."""
    return trail.floor < floor and any(text.pieces and text.pieces[0].seq <= floor for text in trail.texts.values())


def text_of(event: StreamEvent) -> str | None:
    """What a delta adds to its running text; None: it is no delta."""
    text = event.payload.get(DELTAS[event.kind]) if event.kind in DELTAS else None
    return text if isinstance(text, str) else None


def ends_texts(event: StreamEvent) -> bool:
    """Whether the message ends with it. Whatever else comes between two deltas, a reader joins them."""
    return event.kind in ENDS_TEXTS


def with_text(event: StreamEvent, text: str) -> StreamEvent:
    """The delta with what is left of its text."""
    return StreamEvent(event.kind, {**event.payload, DELTAS[event.kind]: text})


def _sorted_out(trail: StreamTrail, events: Sequence[StreamEvent]) -> tuple[list[_Run], dict[str, _Run]]:
    """The running texts with something new, and those that nothing has ended."""
    going_on = {kind: _Run(text) for kind, text in trail.texts.items()}
    runs: list[_Run] = []
    for seq, event in enumerate(events, start=trail.head + 1):
        text = text_of(event)
        if text is None:
            going_on = {} if ends_texts(event) else going_on
            continue
        run = going_on.get(event.kind)
        if run is None:
            run = going_on[event.kind] = _Run(OpenText())
        if not run.seqs:
            runs.append(run)
        run.add(seq, text)
    return runs, going_on


def _swallow(run: _Run) -> None:
    """A secret of which only the marker is known may go on with the letters that come next."""
    if not (run.before.was_read_back and _ends_with_marker(run.before.came)):
        return
    for index, text in enumerate(run.texts):
        run.texts[index] = rest = text.lstrip(TOKEN)
        if rest:
            return


def _ends_with_marker(text: str) -> bool:
    return text.endswith("]") and any(found.end() == len(text) for found in _MARKERS.finditer(text))


def _settle(harness: Harness, run: _Run, text: str, clean: CleanText) -> dict[int, str]:
    """Which events have another text now than they came with, or than is stored."""
    before = run.before
    run.clean = clean
    if text == clean and not before.raw and not before.was_read_back:  # nearly always
        new = [Piece(seq, "", part, len(part)) for seq, part in zip(run.seqs, run.texts, strict=True)]
        run.after = _trimmed(OpenText(text, (*before.pieces, *new)), window(harness))
        return {}
    sizes = [*(piece.size for piece in before.pieces), *map(len, run.texts)]
    if before.raw and not _covers(clean, text, before.raw):
        # It was found to be a secret, and readers were told so: that does not change with what follows.
        text, sizes = _with_marker(text, sizes, before.raw)
        clean = harness.clean_one(text).text
    regions, raw = _aligned(harness, text, clean)
    parts = _cut(clean, sizes, regions)
    changed: dict[int, str] = {}
    pieces: list[Piece] = []
    for piece, part in zip(before.pieces, parts, strict=False):
        if part != piece.stored:
            changed[piece.seq] = piece.kept + part
        pieces.append(piece._replace(stored=part))
    for seq, came, part in zip(run.seqs, run.texts, parts[len(before.pieces) :], strict=True):
        if part != came or before.was_read_back:
            changed[seq] = part
        pieces.append(Piece(seq, "", part, 0))
    run.clean = clean
    is_swallowing = before.was_read_back and not any(run.texts)
    after = _with_raw(text, sizes, regions, clean, pieces) if raw else _as_stored(clean, pieces)
    run.after = _trimmed(after._replace(was_read_back=is_swallowing), window(harness))
    return changed


def _covers(clean: str, text: str, raw: Raw) -> bool:
    """Whether a marker stands for at least this region of the text."""
    if not clean.startswith(text[: raw.start]):
        return any(each.start <= raw.start and each.end >= raw.end for each in _regions(text, clean))
    marker = _MARKERS.match(clean, raw.start)
    if marker is None:
        return False
    behind = clean[marker.end() :]
    return _MARKERS.search(behind) is not None or len(text) - len(behind) >= raw.end


def _aligned(harness: Harness, text: str, clean: str) -> tuple[list[Raw], bool]:
    """What markers stand for in the text, by its offsets; and whether the last one is a secret that may go on.

    Of that one the place has to be right: what is kept as it came must give the same clean text again.
    """
    last = next(reversed(list(_MARKERS.finditer(clean))), None) if text != clean else None
    if last is not None and text.endswith(clean[last.end() :]):
        ahead, behind = clean[: last.start()], clean[last.end() :]
        end = len(text) - len(behind)
        for start in _starts(text, ahead, end):
            secret = text[start:end]
            if secret == last[0] or len(secret) > RAW_CHARACTERS_MAX or not goes_on(last[0], secret, behind):
                continue
            if harness.clean_one(ahead + text[start:]).text == clean:
                return [*_regions(text[:start], ahead), Raw(start, end, last[0])], True
    return _regions(text, clean), False


def _starts(text: str, ahead: str, end: int) -> Iterator[int]:
    """Where behind a clean text the next secret may begin: as near to the end as possible, since most are one token."""
    markers = list(_MARKERS.finditer(ahead))
    if not markers:
        if text.startswith(ahead):
            yield len(ahead)
        return
    literal = ahead[markers[-1].end() :]
    least = len(ahead) - sum(len(marker[0]) for marker in markers) - len(literal)
    at = end
    for _ in range(_STARTS_MAX):
        at = text.rfind(literal, least, at)
        if at < 0:
            return
        yield at + len(literal)
        at += len(literal) - 1


def _regions(text: str, clean: str) -> list[Raw]:
    """What markers stand for in the text: its parts around them are found in it in order.

    Where a part could be found in two places it does not matter which: all the pieces together are the clean text.
    """
    if text == clean:
        return []
    regions: list[Raw] = []
    at = done = 0
    markers = list(_MARKERS.finditer(clean))
    for index, marker in enumerate(markers):
        at += marker.start() - done
        done = marker.end()
        is_last = index + 1 == len(markers)
        behind = clean[done:] if is_last else clean[done : markers[index + 1].start()]
        if text.startswith(marker[0] + behind, at):  # it came with the text, or stands there already
            at += len(marker[0])
            continue
        end = len(text) - len(behind) if is_last else text.find(behind, at)
        if end < at or not text.startswith(behind, end):
            return [Raw(0, len(text), clean)]  # rewritten in a way that is not told by its markers
        regions.append(Raw(at, end, marker[0]))
        at = end
    return regions if len(text) - at == len(clean) - done else [Raw(0, len(text), clean)]


def _with_marker(text: str, sizes: Sequence[int], raw: Raw) -> tuple[str, list[int]]:
    marked = [Raw(raw.start, raw.end, raw.marker)]
    ends = _ends(sizes, marked)
    starts = [0, *ends[:-1]]
    return text[: raw.start] + raw.marker + text[raw.end :], [
        end - start for start, end in zip(starts, ends, strict=True)
    ]


def _cut(clean: str, sizes: Sequence[int], regions: Sequence[Raw]) -> list[str]:
    """The clean text in the pieces that the text came in. A marker goes to the piece in which its secret begins."""
    parts: list[str] = []
    start = 0
    for end in _ends(sizes, regions):
        parts.append(clean[start:end])
        start = end
    return parts


def _ends(sizes: Sequence[int], regions: Sequence[Raw]) -> list[int]:
    """Where the pieces of a text end once markers stand for its regions."""
    ends: list[int] = []
    came = shift = index = 0
    for size in sizes:
        came += size
        while index < len(regions) and regions[index].end <= came and regions[index].start < came:
            shift += len(regions[index].marker) - (regions[index].end - regions[index].start)
            index += 1
        if index < len(regions) and regions[index].start < came:
            ends.append(regions[index].start + shift + len(regions[index].marker))
        else:
            ends.append(came + shift)
    return ends


def _as_stored(clean: str, pieces: Sequence[Piece]) -> OpenText:
    return OpenText(clean, tuple(piece._replace(size=len(piece.stored)) for piece in pieces))


def _with_raw(text: str, sizes: Sequence[int], regions: Sequence[Raw], clean: str, pieces: Sequence[Piece]) -> OpenText:
    """The text as it is stored, but for the last region, which is as it came."""
    *before, last = regions
    ends = _ends(sizes, before)
    starts = [0, *ends[:-1]]
    [start] = _ends([last.start], before)
    sized = [piece._replace(size=end - at) for piece, at, end in zip(pieces, starts, ends, strict=True)]
    return OpenText(
        clean[:start] + text[last.start :], tuple(sized), Raw(start, start + last.end - last.start, last.marker)
    )


def _trimmed(text: OpenText, most: int) -> OpenText:
    """What lies further back than any secret reaches stands for good."""
    cut = _cut_at(text, most)
    if cut <= 0:
        return text
    end = 0
    for index, piece in enumerate(text.pieces):
        end += piece.size
        if end > cut:
            over = piece.size - (end - cut)
            first = Piece(piece.seq, piece.kept + piece.stored[:over], piece.stored[over:], piece.size - over)
            raw = text.raw and Raw(text.raw.start - cut, text.raw.end - cut, text.raw.marker)
            return OpenText(text.came[cut:], (first, *text.pieces[index + 1 :]), raw, text.was_read_back)
    return OpenText(was_read_back=text.was_read_back)


def _cut_at(text: OpenText, most: int) -> int:
    came = text.came
    cut = len(came) - most
    if text.raw:
        cut = min(cut, text.raw.start - CONTEXT_CHARACTERS)
    if cut <= 0:
        return 0
    gap = max(came.rfind(" ", 0, cut), came.rfind("\n", 0, cut)) + 1
    cut = max(gap, cut - TOKEN_CHARACTERS_MAX)
    # A marker is not cut in two: the halves would be plain text.
    for marker in _MARKERS.finditer(came):
        if marker.start() < cut < marker.end():
            return marker.start()
    return cut


def _held_from(harness: Harness, literals: Literals, run: _Run) -> int | None:
    """The first event whose text may still begin a secret."""
    clean = run.clean
    if clean is None:  # nothing of it is new
        clean = "".join(piece.stored for piece in run.after.pieces)
    at = opening(harness, literals, clean)
    if at is None:
        return None
    end = len(clean)
    for piece in reversed(run.after.pieces):
        end -= len(piece.stored)
        if end <= at:
            return piece.seq
    return run.after.pieces[0].seq if run.after.pieces else None


def _words_of(event: StreamEvent) -> Iterator[str]:
    if text_of(event) is None:
        return _strings(event.payload)
    return _strings(_beside_text(event)) if len(event.payload) > 1 else iter(())


def _beside_text(event: StreamEvent) -> dict[str, Any]:
    return {name: value for name, value in event.payload.items() if name != DELTAS[event.kind]}


def _strings(value: Any, depth: int = 0) -> Iterator[str]:
    """Every string of a payload, names and what numbers spell too, in order."""
    if depth > DEPTH_MAX:
        raise InvalidPayload("An event's payload is nested too deeply.")
    if isinstance(value, str):
        yield value
    elif (spelling := spelled(value)) is not None:
        yield spelling
    elif isinstance(value, dict):
        for name, each in value.items():
            if not isinstance(name, str):
                raise InvalidPayload("The names in a payload are strings.")
            yield name
            yield from _strings(each, depth + 1)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _strings(each, depth + 1)
    elif (value is not None and not isinstance(value, bool | int | float)) or not _is_finite(value):
        raise InvalidPayload("An event's payload holds what JSON does not have.")


def spelled(value: Any) -> str | None:
    """What a number says, or a list of bytes, where that may be a secret: JSON has other ways to write it than text."""
    if isinstance(value, int | float):
        is_long = _is_finite(value) and abs(value) >= LONG_NUMBER and value == int(value)
        return str(int(value)) if is_long else None
    if isinstance(value, list | tuple) and len(value) >= VALUE_CHARACTERS_MIN:
        is_bytes = all(type(each) is int and 0 <= each <= BYTE_MAX for each in value)
        return bytes(value).hex(" ") if is_bytes else None
    return None


def _is_finite(value: Any) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def _with_words(event: StreamEvent, words: Sequence[CleanText]) -> StreamEvent:
    text = text_of(event)
    if text is None:
        return StreamEvent(event.kind, _filled(event.payload, iter(words)))
    return StreamEvent(event.kind, {**_filled(_beside_text(event), iter(words)), DELTAS[event.kind]: text})


def _filled(value: Any, words: Iterator[str]) -> Any:
    if isinstance(value, str):
        return next(words)
    if (spelling := spelled(value)) is not None:
        word = next(words)
        return value if word == spelling else word
    if isinstance(value, dict):
        return {next(words): _filled(each, words) for each in value.values()}
    if isinstance(value, list | tuple):
        return [_filled(each, words) for each in value]
    return value
