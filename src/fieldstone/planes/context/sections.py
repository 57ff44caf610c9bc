"""Which section of a structured summary a sentence belongs to. Rules of form, for English; the rest is state."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import Final, Literal, get_args

from fieldstone.core.transcripts import CanonicalMessage, Role
from fieldstone.planes.context.sayings import author_of, said_in
from fieldstone.planes.context.summaries import Passed, note_of, passed_on
from fieldstone.retrieval.sentences import sentences_of

Section = Literal["decisions", "preferences", "current state", "open questions", "references"]
SECTIONS: Final[frozenset[str]] = frozenset(get_args(Section))

SENTENCES_MAX: Final = 2_000  # of one message; more are a listing, and the summariser reads it as a whole
ITEM_CHARS_MAX: Final = 600  # a longer sentence is a block of code, or no sentence
REFERENCES_MAX: Final = 100  # of one message

_DECIDES: Final = re.compile(
    r"(?i)\b(?:decided|decision|agreed|chose|chosen|settled on|approved|rejected|must|(?:we|i)(?:[’']ll| will| shall) "
    r"(?:use|keep|drop|ship|go with|stay with|move to)|let[’']s (?:use|keep|drop|go with|stay with)"
    r"|we (?:go with|use))\b"
)
_PREFERS: Final = re.compile(
    r"(?i)\b(?:prefers?|preferred|preference|favou?rite|would rather|always|never"
    r"|(?:i|we|he|she|they)(?:[’']d| would)? (?:like|love|hate|dislike)|please (?:use|avoid|keep|do not|don[’']t))\b"
)
_OPEN: Final = re.compile(
    r"(?i)\b(?:open question|tbd|todo|undecided|unclear|to be (?:decided|determined|done|clarified)"
    r"|not (?:yet )?(?:decided|known|clear)|(?:do not|don[’']t) know yet|needs? to (?:decide|find out|clarify))\b"
)
_ASKS: Final = re.compile(r"[?？؟][\"'”’)\]]*$")
# Addresses, paths, numbers of issues.
_REFERENCE: Final = re.compile(
    r"https?://[^\s<>\"'`)\]]+[^\s<>\"'`)\].,;:!?]|(?<![\w/.-])(?:\.{0,2}/)?(?:[\w.-]++/)++[\w-]++\.\w{1,8}\b"
    r"|\b[A-Z][A-Z0-9]{1,9}-\d+\b|(?<![\w&#])#\d+\b"
)


def sorted_out(going: Sequence[CanonicalMessage], after: Sequence[CanonicalMessage]) -> Iterator[Passed]:
    """All that was said, sentence by sentence, each with its section; and what it refers to."""
    last = {message.role: at for at, message in enumerate([*going, *after]) if note_of(message) is None}
    for at, message in enumerate(going):
        if note_of(message) is not None:
            yield from (_again(each, at, last) for each in passed_on([message]))
            continue
        author, text = author_of(message), said_in(message)
        if message.role == "tool":
            yield Passed(author, text, "current state")
        else:
            yield from _sentences(author, text, is_answered=_is_answered(author, at, last))
        for found in islice(_REFERENCE.finditer(text), REFERENCES_MAX):
            yield Passed(author, found.group(), "references")


def _again(passed: Passed, at: int, last: Mapping[Role, int]) -> Passed:
    """From an earlier summary: it stays in its section, unless it was a question and has been answered since."""
    is_question = passed.section == "open questions" and _ASKS.search(passed.text) is not None
    if passed.section not in SECTIONS or (is_question and _is_answered(passed.author, at, last)):
        return passed._replace(section="current state")
    return passed


def _is_answered(author: str, at: int, last: Mapping[Role, int]) -> bool:
    """Whether the other side has spoken since."""
    return last.get("assistant" if author == "user" else "user", -1) > at


def _sentences(author: str, text: str, *, is_answered: bool) -> Iterator[Passed]:
    sentences = list(islice(sentences_of(text), SENTENCES_MAX + 1))
    if len(sentences) > SENTENCES_MAX:
        yield Passed(author, text, "current state")
        return
    sections = [_section(sentence.text, is_answered=is_answered) for sentence in sentences]
    for section, run in groupby(zip(sections, sentences, strict=True), key=lambda each: each[0]):
        found = [sentence for _, sentence in run]
        if section == "current state":  # neighbours stay as they stood
            yield Passed(author, text[found[0].start : found[-1].end], section)
        else:
            yield from (Passed(author, sentence.text, section) for sentence in found)


def _section(sentence: str, *, is_answered: bool) -> Section:
    if len(sentence) > ITEM_CHARS_MAX:
        return "current state"
    if _OPEN.search(sentence):
        return "open questions"
    if _ASKS.search(sentence):
        return "current state" if is_answered else "open questions"
    if _DECIDES.search(sentence):
        return "decisions"
    return "preferences" if _PREFERS.search(sentence) else "current state"
