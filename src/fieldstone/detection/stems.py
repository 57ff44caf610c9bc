"""Forms of one word as one stem. Only equality matters here: a stem need not be a word."""

from functools import lru_cache
from typing import Final

STEMS_KEPT = 20_000  # single words, never a text: they say nothing about who wrote what

_IRREGULAR: Final = {
    form: base
    for base, forms in {
        "agree": "agreed",
        "disagree": "disagreed",
        "run": "ran",
        "sit": "sat",
        "stand": "stood",
        "sleep": "slept",
        "go": "went gone goes",
        "come": "came",
        "get": "got gotten",
        "give": "gave given",
        "take": "took taken",
        "make": "made",
        "build": "built",
        "buy": "bought",
        "sell": "sold",
        "send": "sent",
        "keep": "kept",
        "leave": "left",
        "lose": "lost",
        "win": "won",
        "find": "found",
        "hold": "held",
        "write": "wrote written",
        "choose": "chose chosen",
        "break": "broke broken",
        "speak": "spoke spoken",
        "eat": "ate eaten",
        "drink": "drank drunk",
        "drive": "drove driven",
        "ride": "rode ridden",
        "rise": "rose risen",
        "grow": "grew grown",
        "fall": "fell fallen",
        "know": "knew known",
        "see": "saw seen",
        "say": "said",
        "tell": "told",
        "think": "thought",
        "bring": "brought",
        "begin": "began begun",
        "meet": "met",
        "pay": "paid",
        "read": "reads",
        "lead": "led",
        "lie": "lying lay",
        "man": "men",
        "woman": "women",
        "child": "children",
        "person": "people",
        "mouse": "mice",
        "foot": "feet",
        "wear": "wore worn",
        "hide": "hid hidden",
        "forget": "forgot forgotten",
        "swim": "swam swum",
        "fly": "flew flown",
    }.items()
    for form in forms.split()
}
# The direction, not a form of "leave": it is looked at as it stands.
_IRREGULAR.pop("left")

_VOWELS: Final = frozenset("aeiouy")
_SHORTEST_STEM = 3


@lru_cache(maxsize=STEMS_KEPT)
def stem(word: str) -> str:
    word = _IRREGULAR.get(word, word)
    if len(word) <= _SHORTEST_STEM or not word.isalpha():
        return word
    return _without_e(_without_ending(_without_plural(word)))


def _without_plural(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes", "zes", "oes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is", "as")):
        return word[:-1]
    return word


def _without_ending(word: str) -> str:
    if word.endswith("ied") and len(word) > 4:
        return word[:-3] + "y"
    for ending in ("ing", "ed"):
        rest = word[: -len(ending)]
        if word.endswith(ending) and len(rest) >= _SHORTEST_STEM and not _VOWELS.isdisjoint(rest) and rest[-1] != "e":
            return rest[:-1] if rest[-1] == rest[-2] and rest[-1] not in "lsz" else rest
    return word


def _without_e(word: str) -> str:
    return word[:-1] if word.endswith("e") and len(word) > _SHORTEST_STEM else word
