"""A short form of a text without a model: its own sentences, in their order, those that tell most.

What is repeated is not what is asked for later. So a sentence is chosen for the words that the request wants and for
what is specific in it (rare words, names, numbers, dates, decisions), and never for being like the others.
"""

import math
import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from fieldstone.retrieval.sentences import FENCE, MARKER, Sentence, blank, sentences_of
from fieldstone.retrieval.words import STOP_WORDS

Count = Callable[[str], int]

ELLIPSIS: Final = "…"
GAP: Final = f" {ELLIPSIS} "
GAP_TOKENS: Final = 2  # about

# Of a long text the beginning is read, and what stands around the wanted words: a million characters take 10 ms.
READ_CHARS: Final = 4_000
AROUND_CHARS: Final = 250  # to each side of a wanted word
STEMS_LOOKED_FOR: Final = 16  # in a long text; the longest ones
PLACES_OF_A_STEM: Final = 3
LEAST_WORDS: Final = 4  # a shorter piece of a sentence says nothing
MISSES: Final = 8  # so many sentences in turn that were too long: the room is used up
CHARS_PER_TOKEN: Final = 4  # of prose, about; only to compare lengths
MOST_CHARS_PER_TOKEN: Final = 16  # whatever is longer than this for each token is not worth counting

WANTED_WORTH: Final = 4.0  # times what the word tells
FIRST_WORTH: Final = 2.0
CONTENT_WORTH: Final = 1.0  # of each word that stands nowhere else in the text
CONTENT_WORD_CHARS: Final = 4
DECIDING_WORTH: Final = 1.5
SPECIFIC_WORTH: Final = 0.5
MOST_SPECIFICS: Final = 6  # a table of numbers is not the whole story
SENTENCE_TOKENS: Final = 20  # added to each length, so that a very short sentence does not win by its length alone

_CLAUSE_END: Final = re.compile(
    r"[,;:][\"'”’)\]]*+\s|\s[–—-]{1,2}\s|—|[、，；：]|\s(?=(?:and|but|because|which|while|whereas|although|so|since)\s)"
)
_WORD: Final = re.compile(r"[^\W_]+")
# A number; a name (the capital that begins a sentence is none); an identifier, a path, a version.
_SPECIFIC: Final = re.compile(r"\d++|(?<=[\s(\"'“/])[^\W\d_a-z](?=\w)|(?<=[a-z])[A-Z]|(?<=\w)[_/.](?=\w)")
_UNSPACED: Final = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uf900-\ufaff\uff66-\uff9f]")
_DECIDING_TEXT: Final = """
agreed always approved because blocked blocker cause caused chose chosen conclusion decided decision deadline deprecated
due failed fixed forbidden must never only owner postponed rejected required requires resolved result root therefore
until verified
"""
DECIDING: Final = frozenset(_DECIDING_TEXT.split())
# What turns a sentence into its opposite, or binds it to a condition. It has to stay, whatever is cut.
_NEGATION: Final = re.compile(
    r"(?i)\b(?:not?|never|none|nobody|nothing|nowhere|neither|nor|cannot|without|unless|except|hardly|only|if|until"
    r"|nicht|nie|niemals|kein\w*|ohne|außer|nur|falls|pas|jamais|sans|sauf|rien|aucune?|nunca|jamás|sin|nada|tampoco"
    r"|não|nem|sem|non|mai|senza|не|нет|ни|никогда|без)\b|n[’']t\b|[不没沒無无未非勿]|ない|ません|なし"
)
_ENDINGS: Final = (
    "ations",
    "ation",
    "ments",
    "ment",
    "ings",
    "ing",
    "ions",
    "ion",
    "ers",
    "ed",
    "er",
    "es",
    "ly",
    "s",
    "e",
)
LEAST_STEM_CHARS: Final = 3


class Wanted:
    """The words that a request is about, ready to be found in whatever form they stand in a text."""

    def __init__(self, words: Iterable[str] = ()) -> None:
        folded = {_fold(word) for word in words} - {""}
        self._stems = frozenset(map(_stem, folded))
        self._heads = {word[:LEAST_STEM_CHARS] for word in folded}  # few words need to be looked at any closer
        self._unspaced = sorted(word for word in folded if _UNSPACED.search(word))  # no spaces, no words to compare
        self.longest_stems = sorted(self._stems, key=lambda stem: (-len(stem), stem))[:STEMS_LOOKED_FOR]

    def found_in(self, text: str) -> frozenset[str]:
        if not self._stems:
            return frozenset()
        folded = _fold(text)
        return self.found_among(_WORD.findall(folded), folded)

    def found_among(self, words: Iterable[str], folded: str) -> frozenset[str]:
        """Where a text is cut into words already."""
        stems = self._stems.intersection(_stem(word) for word in words if word[:LEAST_STEM_CHARS] in self._heads)
        return stems.union(word for word in self._unspaced if word in folded)


def summarize(text: str, most_tokens: int, count: Count, wanted: Wanted) -> str | None:
    """The most telling sentences within `most_tokens`; None where no useful form is that short.

    A text that is short enough comes as it is.
    """
    if _tokens_within(text, most_tokens, count) is not None:
        return text
    sentences = list(_read(text, wanted))
    worths = _worths(sentences, wanted)
    order = sorted(range(len(sentences)), key=lambda at: (-worths[at], at))
    # That something was redacted must not be lost as well.
    order.sort(key=lambda at: MARKER.search(sentences[at].text) is None)
    chosen = _fitting(sentences, order, most_tokens, count)
    while chosen:
        summary = _joined(text, [sentences[at] for at in sorted(chosen)])
        if count(summary) <= most_tokens:
            return summary
        chosen.pop()  # the least telling one
    parts = (_cut(sentences[at].text, most_tokens, count, wanted) for at in order[:MISSES])
    return next((part for part in parts if part is not None), None)


def _read(text: str, wanted: Wanted) -> Iterator[Sentence]:
    for start, end in _windows(text, wanted):
        found = list(sentences_of(text, start, end))
        # At a window's edge a sentence may be only half there, and half a sentence can say the opposite.
        yield from found[start > 0 : len(found) - (end < len(text))]


def _windows(text: str, wanted: Wanted) -> list[tuple[int, int]]:
    if len(text) <= READ_CHARS:
        return [(0, len(text))]
    windows = [(0, READ_CHARS // 2)]
    folded = text.lower()
    places = sorted(at for stem in wanted.longest_stems for at in _places(folded, stem) if at >= READ_CHARS // 2)
    step = max(1, len(places) * 4 * AROUND_CHARS // READ_CHARS)
    for at in places[::step]:
        start, end = max(0, at - AROUND_CHARS), min(len(text), at + AROUND_CHARS)
        if start < windows[-1][1]:
            windows[-1] = (windows[-1][0], end)
        else:
            windows.append((start, end))
    return windows


def _places(folded: str, stem: str) -> Iterator[int]:
    at = -1
    for _ in range(PLACES_OF_A_STEM):
        at = folded.find(stem, at + 1)
        if at < 0:
            return
        yield at


def _worths(sentences: Sequence[Sentence], wanted: Wanted) -> list[float]:
    folded = [_fold(sentence.text) for sentence in sentences]
    words = [_WORD.findall(said) for said in folded]
    held = list(map(wanted.found_among, words, folded))
    telling = _telling(held)
    rarity = _telling([_content(said) for said in words])
    most = math.log(1 + len(sentences))
    worths = [WANTED_WORTH * sum(telling[stem] for stem in sorted(stems)) for stems in held]
    for at, sentence in enumerate(sentences):
        worths[at] += CONTENT_WORTH * sum(rarity[word] for word in _content(words[at])) / most
        worths[at] += SPECIFIC_WORTH * min(len(_SPECIFIC.findall(sentence.text)), MOST_SPECIFICS)
        worths[at] += 0.0 if DECIDING.isdisjoint(words[at]) else DECIDING_WORTH
        worths[at] += FIRST_WORTH if at == 0 else 0.0
        worths[at] /= SENTENCE_TOKENS + len(sentence.text) / CHARS_PER_TOKEN
    return worths


def _telling(held: Sequence[Collection[str]]) -> dict[str, float]:
    """What stands in few sentences tells more of them."""
    frequency = Counter(word for words in held for word in words)
    return {word: math.log(1 + len(held) / times) for word, times in frequency.items()}


def _content(words: Iterable[str]) -> list[str]:
    """Each once, in their order, so that sums are the same every time."""
    return [word for word in dict.fromkeys(words) if len(word) >= CONTENT_WORD_CHARS and word not in STOP_WORDS]


def _fitting(sentences: Sequence[Sentence], order: Sequence[int], most_tokens: int, count: Count) -> list[int]:
    """The first ones in the order that fit together."""
    chosen: list[int] = []
    left, misses = most_tokens, 0
    for at in order:
        if left <= 0 or misses == MISSES:
            break
        tokens = _tokens_within(sentences[at].text, left, count)
        if tokens is None:
            misses += 1
            continue
        chosen.append(at)
        left, misses = left - tokens - GAP_TOKENS, 0
    return chosen


def _joined(text: str, sentences: Sequence[Sentence]) -> str:
    """Neighbours stay as they stood; where something was left out, an ellipsis says so."""
    said = sentences[0].text
    for before, after in pairwise(sentences):
        between = text[before.end : after.start]
        said += (GAP if between.strip() else between) + after.text
    return said


def _cut(said: str, most_tokens: int, count: Count, wanted: Wanted) -> str | None:
    """As many whole clauses from the sentence's beginning as fit, if they still say what the sentence says."""
    if FENCE.match(said):
        return None
    most_chars = most_tokens * MOST_CHARS_PER_TOKEN
    ends = [found.start() for found in _CLAUSE_END.finditer(MARKER.sub(blank, said), 0, most_chars)]
    fitting = bisect_right(ends, most_tokens, key=lambda end: count(said[:end].rstrip() + ELLIPSIS))
    if not fitting:
        return None
    kept, dropped = said[: ends[fitting - 1]].rstrip(), said[ends[fitting - 1] :]
    part = kept + ELLIPSIS
    return part if _tells(kept, dropped, wanted) and count(part) <= most_tokens else None


def _tells(kept: str, dropped: str, wanted: Wanted) -> bool:
    """Whether what is kept is worth reading, and what is dropped cannot turn it round."""
    if _NEGATION.search(dropped) or MARKER.search(dropped):
        return False
    if not wanted.found_in(kept) and wanted.found_in(dropped):
        return False
    words = sum(1 for _ in _WORD.finditer(kept)) + sum(1 for _ in _UNSPACED.finditer(kept)) // 2
    return words >= LEAST_WORDS


def _tokens_within(said: str, most_tokens: int, count: Count) -> int | None:
    if len(said) > most_tokens * MOST_CHARS_PER_TOKEN:
        return None
    tokens = count(said)
    return tokens if tokens <= most_tokens else None


def _fold(said: str) -> str:
    """Without case and accents."""
    if said.isascii():
        return said.lower()
    return "".join(char for char in unicodedata.normalize("NFKD", said.casefold()) if not unicodedata.combining(char))


def _stem(word: str) -> str:
    """So that "deploy", "deploys", "deployed" and "deployments" are one word. No grammar: only the usual endings."""
    if word.endswith(("ies", "ied")):
        return word[:-3] + "y"
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= LEAST_STEM_CHARS:
            word = word.removesuffix(ending)
            break
    return word[:-1] if len(word) > LEAST_STEM_CHARS and word[-1] == word[-2] else word
