"""Where the end of a text may be the beginning of a secret: readers stop there until the next delta decides."""

import functools
import re
import string
from collections.abc import Iterator, Mapping
from importlib.resources import as_file, files
from typing import Final

from kingfisher_sdk.rules import Rules

from fieldstone.redact.harness import Harness
from fieldstone.redact.prefixes import literal_prefixes
from fieldstone.redact.readings import plain_reading, with_signs
from fieldstone.redact.seams import Trail

CHARACTERS_MIN: Final = 4  # fewer begin too many words
LITERAL_MIN: Final = 3
KNOWN_WITHIN: Final = 400  # a known secret's beginning is followed for 256 letters, with signs between them
SAID_WITHIN: Final = 300  # characters between the words that announce a secret and the end of the text
BOUNDARIES_MAX: Final = 64
KEY_HEAD_MAX: Final = 200  # a private key's first line

TOKEN: Final = string.ascii_letters + string.digits + "_-.~+/=:$@%"

Literals = Mapping[str, tuple[str, ...]]  # by their first characters


@functools.cache
def literal_beginnings() -> Literals:
    """How the tokens that the rules know by their shape begin. Loading takes a second: in a thread, and once."""
    with as_file(files("fieldstone.redact") / "rules.yml") as own_rules:
        rules = Rules([own_rules])
    patterns = [str(rules.detail(str(rule["id"]))["detection_regex"]) for rule in rules.metadata()]
    literals = set[str]().union(*map(literal_prefixes, patterns))
    found = sorted(filter(_is_of_a_token, literals))
    by_first: dict[str, list[str]] = {}
    for literal in found:
        by_first.setdefault(literal[:LITERAL_MIN], []).append(literal)
    return {first: tuple(literals) for first, literals in by_first.items()}


def opening(harness: Harness, literals: Literals, text: str) -> int | None:
    """Where what may still become a secret begins in a clean text; None: nothing of it may."""
    found = [
        *_of_known(harness, text),
        *_of_literals(literals, text),
        *_of_what_was_found(text),
        *_of_private_key(text),
        *_of_what_is_said(text),
    ]
    return min(found, default=None)


def _of_known(harness: Harness, text: str) -> Iterator[int]:
    if not harness.knows_secrets:
        return
    near = text[-KNOWN_WITHIN:]
    _, trail = harness.clean_after(Trail(), [near])
    data = near.encode()
    for beginning in trail.traces[-1].beginnings:
        reading = plain_reading(data)
        if beginning.has_signs:
            reading = with_signs(reading)
        first = len(reading.letters) - len(beginning.letters)
        start, _ = reading.view.origin(*reading.places(first, first + 1))
        at = len(data[:start].decode(errors="ignore"))
        if len(near) - at >= CHARACTERS_MIN:
            yield len(text) - len(near) + at


def _of_literals(literals: Literals, text: str) -> Iterator[int]:
    start = len(text.rstrip(TOKEN))
    word = text[start:]
    if len(word) < CHARACTERS_MIN:
        return
    for at in _boundaries(word):
        rest = word[at:]
        if len(rest) < CHARACTERS_MIN:
            return
        if any(rest.startswith(each) or each.startswith(rest) for each in literals.get(rest[:LITERAL_MIN], ())):
            yield start + at
            return


def _boundaries(word: str) -> Iterator[int]:
    """Where a token may begin in a word: at its begin, at a sign, and behind one."""
    yield 0
    for found, sign in enumerate(_SIGN.finditer(word)):
        if found > BOUNDARIES_MAX:
            return
        yield sign.start()
        yield sign.end()


def _of_what_was_found(text: str) -> Iterator[int]:
    """What stands directly behind a secret may belong to it."""
    goes_on = _KEY_GOES_ON.search(text) or _TOKEN_GOES_ON.search(text)
    if goes_on and goes_on[1]:
        yield goes_on.start(1)


def _of_private_key(text: str) -> Iterator[int]:
    at = text.rfind(_KEY_BEGIN)
    if at >= 0 and len(text) - at <= KEY_HEAD_MAX and _KEY_END not in text[at:]:
        yield at


def _of_what_is_said(text: str) -> Iterator[int]:
    """Passwords and keys that are announced by words. Only the value is kept back."""
    near = text[-SAID_WITHIN:]
    near = near[near.rfind("]") + 1 :] if "[REDACTED:" in near else near  # the words behind a secret announce another
    for pattern in (_SAID, _ADDRESS):
        if (said := pattern.search(near)) and said[1]:
            yield len(text) - len(near) + said.start(1)


def goes_on(marker: str, secret: str, rest: str) -> bool:
    """Whether a secret that was found may go on behind itself.

    Nothing has ended the token; or a private key has another line; or what was taken for a token's end begins one.
    """
    if not rest.strip(TOKEN) or (marker.endswith(_KEY_MARKER) and _KEY_REST.fullmatch(rest)):
        return True
    return _KEY_BEGIN in secret and _KEY_END not in rest and len(rest) <= KEY_HEAD_MAX


def _is_of_a_token(literal: str) -> bool:
    """Not a word or an address, which stands before the secret and is none of it."""
    return len(literal) >= LITERAL_MIN and _WORDS.search(literal) is None


_SIGN: Final = re.compile(r"[^A-Za-z0-9]")
_WORDS: Final = re.compile(
    r"^[A-Z]?[a-z]+$|^[A-Z]{5,}$|[\s\"'<>\[\]&]|://|^data:"
    r"|(?i:key|secret|token|passw|private|auth|account|client|redacted|byok)(?!-KEY)"
)
_KEY_BEGIN: Final = "-----BEGIN"
_KEY_END: Final = "-----END"
_KEY_MARKER: Final = "[REDACTED:fieldstone.private-key]"
_KEY_REST: Final = re.compile(r"[\s>|\"'+,\\]{0,12}(?:[A-Za-z0-9+/=]{0,15}|-{1,5}[ A-Z0-9]{0,100}-{0,5})")
_KEY_GOES_ON: Final = re.compile(rf"{re.escape(_KEY_MARKER)}({_KEY_REST.pattern})\Z")
_TOKEN_GOES_ON: Final = re.compile(rf"\[REDACTED:[^\[\]<>\r\n]{{1,200}}\]([{re.escape(TOKEN)}]*)\Z")
_SAID: Final = re.compile(
    r"(?i)(?:pass(?:word|wd|phrase|code|wort)|kennwort|\bpwd|secret|token|bearer|authorization|[a-z][ _-]?key)"
    r"[\"'`*_\]) \t]{0,4}(?:[:=]>?|\bis\b:?|\bwas\b:?|->)?[=>]?\s{0,4}[\"'`(*_]{0,3}"
    r"(?:(?:bearer|basic|token)[ \t]{1,3})?([^\s\"'`<>,;]*)\Z"
)
_ADDRESS: Final = re.compile(r"://[^\s/:@\"'<>`]{0,128}:([^\s/\"'<>`]{0,256})\Z")
