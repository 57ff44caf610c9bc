"""Is a candidate of a prose rule a secret, or a word that stands where one could?

"The password is hunter2!" names a secret, "the password is 12 characters long" does not. The patterns of rules.yml
propose values that hold a digit or a symbol; a judge keeps the beginning of a value that is a secret, or nothing.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

Judge = Callable[[bytes], bytes]

PASSWORD_BYTES_MIN = 6
KEY_BYTES_MIN = 8
# From here on a value with a letter and a digit is a key; shorter ones are often a name with a number.
KEY_BYTES_SURE = 12
# What is longer is no word, date, path or name; and the patterns below stay cheap.
WORD_BYTES_MAX = 256


def password(value: bytes) -> bytes:
    """Letters mixed with digits or symbols, or a row of digits; not a date, a path, a size or a piece of code."""
    value = _without_tail(value)
    core = value.strip(b"!?._*-")
    if len(value) < PASSWORD_BYTES_MIN or _is_something_else(core, value):
        return b""
    mixed = _LETTER.search(core) and (_DIGIT.search(core) or _SYMBOL.search(core))
    return value if mixed or core.isdigit() else b""


def quoted_password(value: bytes) -> bytes:
    """A password in quotes, which may hold spaces: but then it must not read like a message to the user."""
    if b" " not in value:
        return password(value)
    return b"" if _MESSAGE.search(value) or not _DIGIT.search(value) or not _LETTER.search(value) else value


def key(value: bytes) -> bytes:
    """A key or token that is named as one: letters and digits, and not words with a number behind them."""
    value = _without_tail(value)
    if len(value) < KEY_BYTES_MIN or not (_LETTER.search(value) and _DIGIT.search(value)):
        return b""
    named = _WORDS_AND_NUMBER.fullmatch(value) or (len(value) < KEY_BYTES_SURE and _NAME_AND_NUMBER.fullmatch(value))
    return b"" if named or _is_something_else(value, value) else value


def bearer(value: bytes) -> bytes:
    """A token after the word bearer: not "bearer token-based-authentication"."""
    value = value.rstrip(b".")
    mixed = _LETTER.search(value) and _DIGIT.search(value)
    return value if mixed and not _WORDS_AND_NUMBER.fullmatch(value) else b""


def header(value: bytes) -> bytes:
    """Credentials in a header: here a word alone is a placeholder, anything mixed is taken."""
    value = value.rstrip(b".")
    mixed = _DIGIT.search(value) or b"=" in value or _INNER_CAPITAL.search(value)
    return value if mixed and _LETTER.search(value) else b""


def prefixed(value: bytes) -> bytes:
    """A key known by its prefix: not "sk-learn-compatible-estimators"."""
    return value if _DIGIT.search(value) and not _WORDS_AND_NUMBER.fullmatch(value) else b""


def url_password(value: bytes) -> bytes:
    return b"" if _PLACEHOLDER.fullmatch(value) else value


JUDGES: Final[Mapping[str, Judge]] = {
    "fieldstone.api-key-header": header,
    "fieldstone.authorization-header": header,
    "fieldstone.bearer-token": bearer,
    "fieldstone.named-secret": key,
    "fieldstone.password": password,
    "fieldstone.quoted-password": quoted_password,
    "fieldstone.set-password": password,
    "fieldstone.sk-key": prefixed,
    "fieldstone.url-password": url_password,
}

# Bytes of other alphabets count as letters.
_LETTER = re.compile(rb"[A-Za-z\x80-\xff]")
_DIGIT = re.compile(rb"[0-9]")
_SYMBOL = re.compile(rb"[@#$%^&*+~|!?=]")
_INNER_CAPITAL = re.compile(rb"[a-z][A-Z]")

# Masked, or to be filled in: ****, $NAME, ${name}, $(command), {name}, {{ name }}, %s, %(name)s, %NAME%.
_TO_FILL_IN = (
    rb"[*xX.#?_-]+ | \$(?:[A-Z0-9_]+|[a-z_]+|[{(].*) | \{[^}]*\}? | .*\{\{.* | .*\$\{.* | %(?:[sdr]|[({].*|[A-Z_]+%)"
)
_PLACEHOLDER = re.compile(_TO_FILL_IN, re.VERBOSE | re.DOTALL)

_NO_SECRET = re.compile(
    _TO_FILL_IN
    + rb"""
    | (?:\.{0,2}|~)/[\w./~-]* | [A-Za-z]:\\.* | .*://.* | [a-z0-9_.-]+(?:/[a-z0-9_.-]+)+     # a path or an address
    | [\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}                                      # an e-mail address
    | \d{4}-\d\d-\d\d.* | \d{1,2}[/.]\d{1,2}[/.]\d{2,4} | \d{1,2}:\d\d.*              # a date or a time
    | v?\d+(?:[.,]\d+)+\S? | \d+%                                                     # a version or a number
    | \d+[-+_]?(?:bit|byte|char|character|digit|word|day|hour|minute|second|week|month|year|time)s?.*
    | (?i: sha-?\d | md[45] | argon2 | bcrypt | scrypt | pbkdf2 | aes-?\d | rsa-?\d | base(?:32|58|64|85) | utf-?\d+
         | oauth-?2 | [23]fa | mfa | tls | x\.?509 | ed25519 | [hre]s\d{3} | 1password | varchar | u?int\d+ )[\w.()-]*
    """,
    re.VERBOSE | re.DOTALL,
)

# A call, a subscript, a dotted name, a name that says what it holds: the secret is where the code gets it, not here.
_CODE = re.compile(
    rb"[a-z_][a-z0-9_.]*[(\[].*"
    rb"|[a-z_][a-z0-9_]*(?:\.[a-z_][a-z0-9_]*)+"
    rb"|(?=\w*_)\w*(?i:pass|pwd|secret|cred|key|token)\w*",
    re.DOTALL,
)

_WORDS_AND_NUMBER = re.compile(rb"(?:[A-Za-z][a-z]*[-_./])+(?:[A-Za-z][a-z]*[-_./]?)?v?\d{0,4}")
_NAME_AND_NUMBER = re.compile(rb"[A-Za-z][a-z]*[-_]?v?\d{1,4}")
_MESSAGE = re.compile(
    rb"(?i)\b(?:must|should|need|require[sd]?|least|most|characters?|digits?|enter|your|the|is|are|not|please|invalid|with)\b"
)

_NEXT_FIELD = re.compile(rb"&[\w.-]+=")


def _is_something_else(core: bytes, value: bytes) -> bool:
    return len(value) <= WORD_BYTES_MAX and bool(_NO_SECRET.fullmatch(core) or _CODE.fullmatch(value))


def _without_tail(value: bytes) -> bytes:
    """The value without the next field of a query, and without what ends a sentence, a bracket or an emphasis."""
    next_field = _NEXT_FIELD.search(value)
    return (value[: next_field.start()] if next_field else value).rstrip(b".:,;)]}*_")
