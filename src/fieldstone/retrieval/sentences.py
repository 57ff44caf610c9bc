"""Where the sentences of a text begin and end."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

WRAPPED_LINE_CHARS: Final = 60  # a line this long that does not end a sentence may be one that an editor wrapped

MARKER: Final = re.compile(r"\[REDACTED:[^\[\]<>\r\n]{1,200}\]")
FENCE: Final = re.compile(r"(?m)^[ \t]{0,8}(```|~~~)(?s:.*?)(?:^[ \t]{0,8}\1[ \t]*$|\Z)")
# Where a sentence may end: after a full stop and a space, after the stops of other scripts, at a line's end.
_END: Final = re.compile(
    r"""(?<![.!?…])(?P<stop>[.!?…]++)["'”’»)\]*_`]*+\s++|[。！？｡．؟।॥۔።]++["'”’»」』）)\]]*+\s*+|\r?\n\s*+"""
)
_ITEM: Final = re.compile(r"[-*+•‣▪>]\s|#{1,6}\s|\||\(?(?:\d{1,3}|[A-Za-z])[.)]\s")
_DOTTED: Final = re.compile(r"(?:\w\.)+\w")

# No sentence ends after these. That none ends after initials and "U.S." is told by their form.
_ABBREVIATIONS_TEXT: Final = """
al approx apr art aug bzw ca capt cf ch col corp dec dept dr ed eq est etc evt feb fig figs fr gen gov hr inc jan jr jul
jun lt ltd max messrs min mr mrs ms mt nov nr oct op pp prof ref refs rep rev sec sen sep sept sgt sr st tel vgl vol vs
"""
ABBREVIATIONS: Final = frozenset(_ABBREVIATIONS_TEXT.split())


class Sentence(NamedTuple):
    start: int
    end: int
    text: str


def sentences_of(text: str, start: int = 0, end: int | None = None) -> Iterator[Sentence]:
    """The sentences between two places. A block of code is one, and an item of a list begins one."""
    said = text[start:end]
    masked = MARKER.sub(blank, said)  # the name in a marker may hold anything
    fences = [found.span() for found in FENCE.finditer(masked)]
    masked = FENCE.sub(blank, masked)
    stops = {found.end() for found in _END.finditer(masked) if _ends(masked, found)}
    began = 0
    for stop in sorted(stops.union(*fences, [len(said)])):
        sentence = said[began:stop].strip()
        if sentence:
            at = start + said.index(sentence, began)
            yield Sentence(at, at + len(sentence), sentence)
        began = stop


def blank(found: re.Match[str]) -> str:
    return "x" * len(found.group())


def _ends(masked: str, found: re.Match[str]) -> bool:
    after = masked[found.end() : found.end() + 1]
    stop = found["stop"]
    if "\n" in found.group():
        return stop is not None or _line_ends(masked, found, after)
    if stop is None:
        return True
    return not after.islower() and not (stop == "." and _abbreviated(masked, found.start(), after))


def _line_ends(masked: str, found: re.Match[str], after: str) -> bool:
    """A line may go on in the next one where an editor wrapped it."""
    if found.group().count("\n") > 1 or _ITEM.match(masked, found.end()):
        return True
    line_chars = found.start() - (masked.rfind("\n", 0, found.start()) + 1)
    return line_chars < WRAPPED_LINE_CHARS and not after.islower()


def _abbreviated(masked: str, stop: int, after: str) -> bool:
    """Whether the full stop belongs to the word before it: "e.g.", "Dr.", "No. 5", an initial, an item's number."""
    words = masked[max(0, stop - 12) : stop].split()
    word = words[-1].lstrip("([\"'“‘*_").lower() if words else ""
    if word.isdigit():
        return stop == len(word) or masked[stop - len(word) - 1] == "\n"
    if word == "no":
        return after.isdigit()
    return word in ABBREVIATIONS or (len(word) == 1 and word.isalpha()) or _DOTTED.fullmatch(word) is not None
