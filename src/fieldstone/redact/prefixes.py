"""With which characters a match of a rule's pattern begins, as far as the pattern says them one by one.

A pattern is read here by itself: the standard library keeps what it reads of one to itself, and the rules are written
for another engine, which takes flags anywhere, calls the end \\z, and has no sets of sets.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

PREFIXES_MAX: Final = 400  # of one pattern; one that has more begins with anything
REPEATS_MAX: Final = 5


class Prefix(NamedTuple):
    """`whole`: it says all that was read so far, and what follows goes on from it."""

    text: str
    whole: bool


Prefixes = list[Prefix]

_NOTHING: Final = [Prefix("", True)]
_ANYTHING: Final = [Prefix("", False)]


def literal_prefixes(pattern: str) -> set[str]:
    """Of a pattern that ignores the case, in small letters as it says them, and in capitals."""
    ignores_case = "(?i)" in pattern
    prefixes, _ = _alternatives(pattern.replace("(?i)", ""), 0)
    texts = {prefix.text for prefix in prefixes}
    return texts | {text.upper() for text in texts} if ignores_case else texts


def _alternatives(pattern: str, at: int) -> tuple[Prefixes, int]:
    """Up to the bracket that closes them, or the end."""
    found: Prefixes = []
    while True:
        prefixes, at = _sequence(pattern, at)
        found += prefixes
        if pattern[at : at + 1] != "|":
            return list(dict.fromkeys(found)), at
        at += 1


def _sequence(pattern: str, at: int) -> tuple[Prefixes, int]:
    result = _NOTHING
    while at < len(pattern) and pattern[at] not in "|)":
        item, at = _item(pattern, at)
        item, at = _repeated(item, pattern, at)
        if len(result) <= PREFIXES_MAX:
            result = list(dict.fromkeys(longer for prefix in result for longer in _followed(prefix, item)))
    return result, at


def _followed(prefix: Prefix, item: Prefixes) -> Prefixes:
    return [Prefix(prefix.text + more, goes_on) for more, goes_on in item] if prefix.whole else [prefix]


def _item(pattern: str, at: int) -> tuple[Prefixes, int]:
    character = pattern[at]
    if character in _READERS:
        return _READERS[character](pattern, at)
    return ([Prefix(character, True)] if character not in "^$" else _NOTHING), at + 1


def _group(pattern: str, at: int) -> tuple[Prefixes, int]:
    """What looks ahead or behind takes nothing of the text."""
    opened = _OPENING.match(pattern, at)
    assert opened is not None
    prefixes, end = _alternatives(pattern, opened.end())
    return (_NOTHING if opened["looks"] else prefixes), end + 1


def _set(pattern: str, at: int) -> tuple[Prefixes, int]:
    found = _SET.match(pattern, at)
    assert found is not None, pattern
    members = _MEMBER.findall(found[1])
    if found[1].startswith("^") or _OPEN_SET.search(found[1]):
        return _ANYTHING, found.end()
    return [Prefix(member[-1], True) for member in members], found.end()


def _escaped(pattern: str, at: int) -> tuple[Prefixes, int]:
    character = pattern[at + 1]
    if character in "bBAzZ":
        return _NOTHING, at + 2
    if character == "x" and (code := _CODE.match(pattern, at)):
        return [Prefix(chr(int(code[1], 16)), True)], code.end()
    return ([Prefix(character, True)] if not character.isalnum() else _ANYTHING), at + 2


def _any(pattern: str, at: int) -> tuple[Prefixes, int]:
    return _ANYTHING, at + 1


def _repeated(item: Prefixes, pattern: str, at: int) -> tuple[Prefixes, int]:
    found = _REPEAT.match(pattern, at)
    if found is None:
        return item, at
    if found[1]:
        return [*_NOTHING, *item], found.end()
    times = int(found[2]) if found[2] else 0
    if not 0 < times <= REPEATS_MAX:
        return _ANYTHING, found.end()
    return [Prefix(text * times, True) if whole else Prefix(text, False) for text, whole in item], found.end()


_READERS: Final[dict[str, Callable[[str, int], tuple[Prefixes, int]]]] = {
    "(": _group,
    "[": _set,
    "\\": _escaped,
    ".": _any,
}
_OPENING: Final = re.compile(r"\((?:\?(?:(?P<looks><?[=!])|P?<\w+>|[a-z-]*[:)]|>))?")
_SET: Final = re.compile(r"\[((?:\^?\])?(?:\\.|\[:\w+:\]|[^\]\\])*)\]")
_MEMBER: Final = re.compile(r"\\?.", re.DOTALL)
# It has a range, or a name for many characters.
_OPEN_SET: Final = re.compile(r"[^\\]-[^\]]|\\[a-zA-Z0-9]|\[:")
_CODE: Final = re.compile(r"\\x([0-9A-Fa-f]{2})")
_REPEAT: Final = re.compile(r"(?:(\?|\{0?,1\})|[*+]|\{(\d+)\}|\{\d*,\d*\})[?+]?")
