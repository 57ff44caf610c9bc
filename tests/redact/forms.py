"""The forms in which a known secret may leak, written from issue 4's list and without a look at what finds them.

Each form is a function from a secret to its variants. `FORMS` holds those of one text, `split` cuts a text in two, and
`compositions` puts two of them on top of each other. The 200 secrets are put together at run time, so that no file
holds anything that looks like one.
"""

import base64
import codecs
import functools
import gzip
import html
import io
import itertools
import json
import quopri
import random
import re
import string
import unicodedata
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from html.entities import html5
from typing import Final, NamedTuple, TypeVar

from tests.redact.fakes import ALNUM, BASE32, DIGITS, HEX

SECRETS: Final = 200


class Secret(NamedTuple):
    id: str
    kind: str
    value: str


class Disguise(NamedTuple):
    """A text that gives a secret away, and the part of it that speaks of the secret alone: no more than crumbs of that
    may be left."""

    text: str
    core: str


class Split(NamedTuple):
    """Two texts, and the part of a disguised secret in each."""

    texts: tuple[str, str]
    parts: tuple[str, str]


# Shorter runs than this are found in any text.
CRUMB_CHARACTERS: Final = 8


class Attack(NamedTuple):
    """The texts of one unit that give a secret away, and of each the core; no run of a core that is longer than the
    share of crumbs may be left."""

    form: str
    secret: Secret
    texts: tuple[str, ...]
    cores: tuple[str, ...]
    crumb_share: float = 0.25
    around: tuple[str, ...] = ()  # words that have nothing to do with it

    def succeeds(self, outputs: Sequence[str], found: Sequence[str]) -> bool:
        """Whether the secret was not named, or can be put together from what came out. Of a secret that was split, a
        part may be left; not all of them."""
        left = all(self._stands(core, output) for core, output in zip(self.cores, outputs, strict=True))
        return left or self.secret.id not in found

    def _stands(self, core: str, output: str) -> bool:
        run = max(CRUMB_CHARACTERS, int(len(core) * self.crumb_share))
        return core in output or any(core[at : at + run] in output for at in range(len(core) - run + 1))


Encode = Callable[[str], list[str]]
Form = Callable[[str], list[Disguise]]
Pieces = TypeVar("Pieces", str, list[str])
Way = TypeVar("Way")


# --- the secrets -----------------------------------------------------------------------------------------------------


@functools.cache
def secrets() -> tuple[Secret, ...]:
    """200 secrets of 7 kinds, always the same ones; each has more than 40 bits, and none is a part of another."""
    chance = random.Random("forms")
    kinds = itertools.islice(itertools.cycle(KINDS), SECRETS)
    return tuple(
        Secret(f"vault-{number}", kind, KINDS[kind](chance, number // len(KINDS)))
        for number, kind in enumerate(kinds, start=1)
    )


def provider_key(chance: random.Random, number: int) -> str:
    shapes = (
        lambda: "AKIA" + _draw(chance, BASE32, 16),
        lambda: "ghp" + "_" + _draw(chance, ALNUM, 36),
        lambda: "glpat" + "-" + _draw(chance, ALNUM, 20),
        lambda: "sk" + "-" + _draw(chance, ALNUM, 48),
        lambda: "sk" + "-ant-api03-" + _draw(chance, ALNUM, 93) + "AA",
        lambda: "AIza" + _draw(chance, ALNUM + "_-", 35),
        lambda: "xoxb" + f"-{_draw(chance, DIGITS, 12)}-{_draw(chance, DIGITS, 13)}-{_draw(chance, ALNUM, 24)}",
        lambda: "sk" + "_live_" + _draw(chance, ALNUM, 24),
        lambda: "npm" + "_" + _draw(chance, ALNUM, 36),
    )
    return shapes[number % len(shapes)]()


def base64url_token(chance: random.Random, number: int) -> str:
    return base64.urlsafe_b64encode(chance.randbytes((12, 16, 24, 32, 48)[number % 5])).decode().rstrip("=")


def hex_token(chance: random.Random, number: int) -> str:
    token = chance.randbytes((8, 16, 20, 32)[number % 4]).hex()
    return token.upper() if number % 3 == 2 else token


def uuid_like(chance: random.Random, number: int) -> str:
    return "-".join(_draw(chance, HEX, length) for length in (8, 4, 4, 4, 12))


def passphrase(chance: random.Random, number: int) -> str:
    words = [_word(chance) for _ in range(5 + number % 3)]
    return (" ", "-", " ", ".", "_")[number % 5].join(words)


def password(chance: random.Random, number: int) -> str:
    """Every seventh has a letter that is not ASCII: the bytes of its encodings are not its characters then."""
    foreign = chance.choice("éüñø") if number % 7 == 3 else ""
    symbols = _draw(chance, "!#$%&*+,-./:;<=>?@^_|~\"'\\()[]{}", 5)
    drawn = [*symbols, *_draw(chance, ALNUM, 9 + number % 8), *foreign]
    chance.shuffle(drawn)
    return "".join(drawn)


def connection_password(chance: random.Random, number: int) -> str:
    """By itself, or in the whole address: both are what people register."""
    value = _draw(chance, ALNUM + "!$*-._~", 14 + number % 12)
    scheme = ("postgresql", "mysql", "redis", "amqp")[number % 4]
    return value if number % 2 else f"{scheme}://{_word(chance)}:{value}@db-{number}.internal:5432/{_word(chance)}"


KINDS: Final[dict[str, Callable[[random.Random, int], str]]] = {
    "provider key": provider_key,
    "base64url token": base64url_token,
    "hex token": hex_token,
    "UUID-like": uuid_like,
    "passphrase": passphrase,
    "password with symbols": password,
    "connection string": connection_password,
}


def _draw(chance: random.Random, alphabet: str, length: int) -> str:
    return "".join(chance.choice(alphabet) for _ in range(length))


def _word(chance: random.Random) -> str:
    return "".join(chance.choice("bdfgklmnprstvz") + chance.choice("aeiou") for _ in range(chance.choice((2, 3))))


# --- encodings -------------------------------------------------------------------------------------------------------


def plain(secret: str) -> list[str]:
    return [secret]


def base64_alone(secret: str) -> list[str]:
    encoded = [_standard(secret), _url_safe(secret)]
    return [*encoded, *(text.rstrip("=") for text in encoded)]


def base64_twice(secret: str) -> list[str]:
    return [
        _standard(_standard(secret)),
        _url_safe(_url_safe(secret)),
        _standard(_standard(secret).rstrip("=")).rstrip("="),
        _url_safe(_url_safe(secret).rstrip("=")).rstrip("="),
    ]


def base64_inside(secret: str) -> list[Disguise]:
    """At all three alignments, near the ends of the longer text and far from them."""
    variants = []
    for encode in (_standard, _url_safe):
        for before, after in NEIGHBOURS:
            text, core = _inside_base64(encode, before, secret, after)
            variants.append(Disguise(text, text[core]))
    return variants


def base64_wrapped(secret: str) -> list[Disguise]:
    """In lines as mail, PEM and narrow columns have them."""
    variants = []
    for width, end in ((76, "\n"), (64, "\r\n"), (64, "\n    "), (16, "\n"), (20, "\n> ")):
        whole, core = _inside_base64(_standard, CONTEXT, secret, CONTEXT)
        text = _wrapped(whole, width, end)
        variants.append(Disguise(text, text[_after_wrapping(core, width, end)]))
    alone = [_wrapped(_standard(secret), 8, "\n"), _wrapped(_url_safe(secret), 12, "\r\n")]
    return [*variants, *(Disguise(text, text) for text in alone)]


def gzip_base64(secret: str) -> list[str]:
    packed = [
        gzip.compress(secret.encode(), mtime=0),
        gzip.compress(secret.encode(), compresslevel=1, mtime=1_700_000_000),
        gzip.compress((CONTEXT + secret + CONTEXT).encode(), mtime=0),
        _gzip_with_name(secret),
    ]
    encoded = [base64.b64encode(data).decode() for data in packed]
    return [*encoded, base64.urlsafe_b64encode(packed[0]).decode().rstrip("=")]


def hex_alone(secret: str) -> list[str]:
    digits = secret.encode().hex()
    return [digits, digits.upper(), f"0x{digits}", f"0X{digits.upper()}"]


def hex_inside(secret: str) -> list[Disguise]:
    return [
        Disguise(f"{before.encode().hex()}{core}{after.encode().hex()}", core)
        for before, after in ((":", ""), (CONTEXT, CONTEXT), ("", "\n"))
        for core in (secret.encode().hex(),)
    ]


def hex_separated(secret: str) -> list[str]:
    data = secret.encode()
    lines = [data[at : at + 16].hex(" ") for at in range(0, len(data), 16)]
    return [
        *(data.hex(separator) for separator in ":- ._"),
        *(data.hex(separator).upper() for separator in ":- "),
        data.hex(" ", -2),
        ", ".join(f"0x{byte:02x}" for byte in data),
        ",".join(f"{byte:02X}" for byte in data),
        "\n".join(lines),
    ]


def percent_encoded(secret: str) -> list[str]:
    each = [f"%{byte:02X}" for byte in secret.encode()]
    return [
        "".join(each),
        "".join(each).lower(),
        urllib.parse.quote(secret, safe=""),
        urllib.parse.quote_plus(secret),
        _every_other(secret, lambda letter: "".join(f"%{byte:02X}" for byte in letter.encode()), always="%"),
    ]


def escaped(secret: str) -> list[str]:
    """As JSON, Python, JavaScript, C, Rust, Perl and shells write it."""
    return [
        json.dumps(secret)[1:-1],
        json.dumps(secret)[1:-1].replace("/", "\\/"),
        _utf16_escaped(secret),
        "".join(f"\\u{unit:04X}" for unit in _utf16(secret)),
        _every_other(secret, _utf16_escaped, always='\\"'),
        "".join(f"\\U{ord(letter):08x}" for letter in secret),
        "".join(f"\\u{{{ord(letter):x}}}" for letter in secret),
        "".join(f"\\x{byte:02x}" for byte in secret.encode()),
        "".join(f"\\x{{{ord(letter):X}}}" for letter in secret),
        "".join(f"\\{byte:03o}" for byte in secret.encode()),
        re.sub(r"([^\w\s])", r"\\\1", secret),
        re.sub(r"([^A-Za-z0-9])", r"\\\1", secret),
    ]


def html_entities(secret: str) -> list[str]:
    return [
        "".join(f"&#{ord(letter)};" for letter in secret),
        "".join(f"&#x{ord(letter):x};" for letter in secret),
        "".join(f"&#X{ord(letter):04X};" for letter in secret),
        "".join(f"&#{ord(letter):07d};" for letter in secret),
        "".join(f"&#{ord(letter)}" for letter in secret),
        _every_other(secret, lambda letter: f"&#{ord(letter)};", always="&"),
        html.escape(secret),
        "".join(f"&{NAMED[letter]}" if letter in NAMED else letter for letter in secret),
    ]


def quoted_printable(secret: str) -> list[str]:
    each = [f"={byte:02X}" for byte in secret.encode()]
    needed = [letter if letter.isascii() and letter != "=" else _quoted(letter) for letter in secret]
    return [
        "".join(each),
        "=\n".join("".join(line) for line in _pieces(each, 25)),
        "=\r\n".join("".join(line) for line in _pieces(needed, 8)),
        quopri.encodestring(secret.encode(), quotetabs=True).decode(),
        _every_other(secret, _quoted, always="="),
    ]


def rot13(secret: str) -> list[str]:
    return [codecs.encode(secret, "rot13")]


def reversed_text(secret: str) -> list[str]:
    return [secret[::-1], f"\N{RIGHT-TO-LEFT OVERRIDE}{secret[::-1]}\N{POP DIRECTIONAL FORMATTING}"]


def case_folded(secret: str) -> list[str]:
    alternating = "".join(letter.upper() if at % 2 else letter.lower() for at, letter in enumerate(secret))
    return [secret.lower(), secret.upper(), secret.swapcase(), alternating]


# --- letters that look the same, or are not seen ---------------------------------------------------------------------


def zero_width(secret: str) -> list[str]:
    middle = len(secret) // 2
    return [
        *(character.join(secret) for character in ZERO_WIDTH[:6]),
        "".join(f"{a}{b}" for a, b in zip(secret, itertools.cycle(ZERO_WIDTH))),
        *(f"{secret[:middle]}{character}{secret[middle:]}" for character in ZERO_WIDTH[6:]),
        (ZERO_WIDTH[0] * 5).join(secret),
    ]


def soft_hyphens(secret: str) -> list[str]:
    return ["\N{SOFT HYPHEN}".join(secret), "\N{SOFT HYPHEN}".join(_pieces(secret, 5))]


def combining_marks(secret: str) -> list[str]:
    acute, strike, below = "\N{COMBINING ACUTE ACCENT}", "\N{COMBINING LONG STROKE OVERLAY}", "\N{COMBINING DOT BELOW}"
    return [
        "".join(letter + acute for letter in secret),
        "".join(letter + strike for letter in secret),
        "".join(letter + acute + below + strike for letter in secret),
        "".join(letter + "\N{COMBINING ENCLOSING CIRCLE}" for letter in secret),
        # One character where Unicode has one: the letter itself is then gone.
        unicodedata.normalize("NFC", "".join(letter + acute for letter in secret)),
        unicodedata.normalize("NFC", "".join(letter + below for letter in secret)),
        _every_other(secret, lambda letter: letter + acute),
        unicodedata.normalize("NFD", secret),
    ]


def full_width(secret: str) -> list[str]:
    return [_translated(secret, FULL_WIDTH), _every_other(secret, lambda letter: FULL_WIDTH.get(letter, letter))]


def homoglyphs(secret: str) -> list[str]:
    tables = list(LOOK_ALIKES.values())
    mixed = "".join(tables[at % len(tables)].get(letter, letter) for at, letter in enumerate(secret))
    return [*(_translated(secret, table) for table in tables), mixed]


# --- pieces ----------------------------------------------------------------------------------------------------------


def spaced(secret: str) -> list[str]:
    thin, fixed, hard_hyphen, dash = "\N{THIN SPACE}", "\N{NO-BREAK SPACE}", "\N{NON-BREAKING HYPHEN}", "\N{EN DASH}"
    return [
        *(between.join(secret) for between in (" ", "  ", "\t", thin, fixed, "-", hard_hyphen, dash, " - ")),
        " ".join(_pieces(secret, 4)),
        "-".join(_pieces(secret, 4)),
    ]


def broken_over_lines(secret: str) -> list[str]:
    ends = ("\n", "\r\n", "\n    ", "\\\n", "-\n", "\n> ", "\n- ", "\n* ", "\n# ", "\n// ", "\n\n")
    middle = len(secret) // 2
    return [
        *(f"{secret[:middle]}{end}{secret[middle:]}" for end in ends),
        "\n".join(_pieces(secret, 8)),
        "\n> ".join(["", *_pieces(secret, 8)]).lstrip(),
        "\n".join(f"{number}. {piece}" for number, piece in enumerate(_pieces(secret, 8), start=1)),
    ]


def broken_by_markdown(secret: str) -> list[str]:
    a, b = secret[: len(secret) // 2], secret[len(secret) // 2 :]
    return [
        *(f"{mark}{a}{mark}{b}" for mark in ("**", "_", "`", "~~", "***")),
        *(f"{a}{mark}{b}{mark}" for mark in ("**", "__", "`")),
        f"`{a}``{b}`",
        f"**{a}** **{b}**",
        f"| {a} | {b} |",
        f"[{a}](#){b}",
        *(f"{a}{tag}{b}" for tag in ("<br>", "<br/>", "<wbr>", "<!-- -->", "</b><b>")),
        f"<b>{a}</b>{b}",
        "".join(f"**{letter}**" for letter in secret),
    ]


def split(text: str) -> list[Split]:
    """In the middle and near the ends; the parts alone, at the seam, and each within prose of its own."""
    parts = [(text[:at], text[at:]) for at in (len(text) // 2, len(text) // 3, len(text) - len(text) // 4)]
    return [
        *(Split((a, b), (a, b)) for a, b in parts),
        *(Split((f"It begins with {a}", f"{b} is the rest."), (a, b)) for a, b in parts),
        *(Split((f"The first part is {a}.", f"And the second is {b}, as agreed."), (a, b)) for a, b in parts),
    ]


# --- all of them -----------------------------------------------------------------------------------------------------


def _whole(encode: Encode) -> Form:
    """The form whose text speaks of the secret alone. Variants that change nothing for this secret are left out."""

    def variants(secret: str) -> list[Disguise]:
        return [Disguise(text, text) for text in dict.fromkeys(encode(secret)) if text != secret]

    return variants


FORMS: Final[dict[str, Form]] = {
    "plain": lambda secret: [Disguise(text, text) for text in plain(secret)],
    "base64": _whole(base64_alone),
    "base64 inside longer text": base64_inside,
    "base64 twice": _whole(base64_twice),
    "base64 in lines": base64_wrapped,
    "gzip and base64": _whole(gzip_base64),
    "hex": _whole(hex_alone),
    "hex inside longer text": hex_inside,
    "hex with separators": _whole(hex_separated),
    "percent-encoded": _whole(percent_encoded),
    "escaped": _whole(escaped),
    "HTML entities": _whole(html_entities),
    "quoted-printable": _whole(quoted_printable),
    "rot13": _whole(rot13),
    "reversed": _whole(reversed_text),
    "case-folded": _whole(case_folded),
    "zero-width characters": _whole(zero_width),
    "soft hyphens": _whole(soft_hyphens),
    "combining marks": _whole(combining_marks),
    "full-width": _whole(full_width),
    "homoglyphs": _whole(homoglyphs),
    "spaced or hyphenated": _whole(spaced),
    "broken over lines": _whole(broken_over_lines),
    "broken by markdown": _whole(broken_by_markdown),
}
SPLIT: Final = "split over two texts"

# Where a disguised secret stands: alone, and at the start, in the middle and at the end of a line; punctuation at both
# ends.
SURROUNDINGS: Final = (
    "{}",
    "We saw {} in the log, and went on.",
    "{} is what it said.",
    "The answer was: {}",
    "It failed (with {}), twice.",
    'He wrote "{}", nothing else.',
    "first line\n{}\nlast line",
    "Use '{}'; then restart.",
    "see `{}`.",
    "value={}; next",
    "Is it {}?\nYes.",
    "- {}\n- done!",
)


def attacks(form: str, *, each: int | None = None) -> Iterator[Attack]:
    """Every secret in every variant of the form, or in `each` of them by chance."""
    chance = random.Random(form)
    for secret in secrets():
        for text, core in _some(FORMS[form](secret.value), each, chance):
            frame = chance.choice(SURROUNDINGS)
            around = tuple(word for word in frame.split() if "{}" not in word)
            yield Attack(form, secret, (frame.replace("{}", text),), (core,), around=around)


def split_attacks(*, each: int | None = None) -> Iterator[Attack]:
    """Every secret split over two texts of a unit: one after the other, in the other order, and with a third between
    them; in all ways, or in `each` of them by chance."""
    chance = random.Random(SPLIT)
    for secret in secrets():
        ways = [
            Attack(SPLIT, secret, texts, cores)
            for (a, b), (part, rest) in split(secret.value)
            for texts, cores in (
                ((a, b), (part, rest)),
                ((b, a), (rest, part)),
                ((a, "Nothing to see here.", b), (part, "", rest)),
            )
        ]
        yield from _some(ways, each, chance)


def _some(ways: Sequence[Way], count: int | None, chance: random.Random) -> Sequence[Way]:
    return ways if count is None else chance.sample(ways, min(count, len(ways)))


# --- one over the other ----------------------------------------------------------------------------------------------

# Twice is a composition by itself; and plain is no disguise.
_COMPOSED: Final = tuple(name for name in FORMS if name not in {"plain", "base64 twice"})
# The same one again: only an encoding becomes another text by it.
_AGAIN: Final = frozenset({"base64", "hex", "percent-encoded", "escaped", "HTML entities", "quoted-printable"})
# Without its letters' case a base64 text is lost for everyone, so nothing leaks.
_NEEDS_CASE: Final = frozenset({"base64", "base64 inside longer text", "base64 in lines", "gzip and base64"})


def composed_pairs() -> list[tuple[str, str]]:
    """Inner and outer form of every composition from which the secret can be had again."""
    return [
        (inner, outer)
        for inner in _COMPOSED
        for outer in (*_COMPOSED, SPLIT)
        if (inner != outer or inner in _AGAIN) and not (outer == "case-folded" and inner in _NEEDS_CASE)
    ]


def compositions(count: int) -> Iterator[Attack]:
    """The first `count` of an endless sequence that goes round all pairs; the same ones on every machine."""
    chance = random.Random("compositions")
    pairs = composed_pairs()
    chance.shuffle(pairs)
    made = (_composition(*pair, chance) for pair in itertools.cycle(pairs))
    yield from itertools.islice((attack for attack in made if attack), count)


def _composition(inner: str, outer: str, chance: random.Random) -> Attack | None:
    """None where the outer form changes nothing of what the inner one wrote: that is no composition."""
    form = f"{outer} over {inner}"
    secret = chance.choice(secrets())
    under = chance.choice(FORMS[inner](secret.value))
    if outer == SPLIT:
        return Attack(form, secret, *chance.choice(split(under.text)), crumb_share=1.0)
    variants = FORMS[outer](under.text)
    if not variants:
        return None
    over = chance.choice(variants)
    # Of what surrounds the secret in the inner text, much may be left; here it cannot be told apart.
    crumb_share = 0.5 if under.core == under.text else 1.0
    text = chance.choice(SURROUNDINGS).replace("{}", over.text)
    return Attack(form, secret, (text,), (over.core,), crumb_share)


# --- tables and small steps ------------------------------------------------------------------------------------------

CONTEXT: Final = "The service was restarted at noon, "
# All three alignments, near the ends of the longer text and far from them.
NEIGHBOURS: Final = (
    *(("", "."), (":", ""), ("k=", ";\n")),
    *((CONTEXT, CONTEXT), (CONTEXT[1:], ""), (CONTEXT[2:], "!")),
)

ZERO_WIDTH: Final = (
    "\N{ZERO WIDTH SPACE}",
    "\N{ZERO WIDTH NON-JOINER}",
    "\N{ZERO WIDTH JOINER}",
    "\N{WORD JOINER}",
    "\N{ZERO WIDTH NO-BREAK SPACE}",
    "\N{INVISIBLE SEPARATOR}",
    "\N{MONGOLIAN VOWEL SEPARATOR}",
    "\N{LEFT-TO-RIGHT MARK}",
    "\N{RIGHT-TO-LEFT MARK}",
    "\N{FIRST STRONG ISOLATE}",
    "\N{INVISIBLE TIMES}",
    "\N{COMBINING GRAPHEME JOINER}",
    "\N{VARIATION SELECTOR-16}",
    "\N{TAG LATIN SMALL LETTER A}",
)

FULL_WIDTH: Final = {chr(code): chr(code + 0xFEE0) for code in range(0x21, 0x7F)} | {" ": "\N{IDEOGRAPHIC SPACE}"}


def _table(latin: str, alike: str) -> dict[str, str]:
    return dict(zip(latin, alike, strict=True))


def _mathematical(small: int, capital: int, digit: int) -> dict[str, str]:
    rows = ((string.ascii_lowercase, small), (string.ascii_uppercase, capital), (string.digits, digit))
    return {letter: chr(first + at) for letters, first in rows for at, letter in enumerate(letters)}


LOOK_ALIKES: Final = {
    "Cyrillic": _table("aceopxyijshqwdABCEHIJKMOPSTXY", "асеорхуіјѕһԛԝԁАВСЕНІЈКМОРЅТХҮ"),
    "Greek": _table("oviupxkaABEHIKMNOPTXYZ", "ονιυρχκαΑΒΕΗΙΚΜΝΟΡΤΧΥΖ"),
    "Armenian": _table("ounhgqSOLU", "օսոհցզՏՕԼՍ"),
    "Cherokee": _table("ABCDEGHJKLMPRSTVWZ", "ᎪᏴᏟᎠᎬᏀᎻᎫᏦᏞᎷᏢᎡᏚᎢᏙᎳᏃ"),
    "mathematical bold": _mathematical(0x1D41A, 0x1D400, 0x1D7CE),
    "mathematical monospace": _mathematical(0x1D68A, 0x1D670, 0x1D7F6),
}

# One name for each sign of ASCII that has one. Only those that end in a semicolon: the others are for old pages.
NAMED: Final = {
    letter: name
    for name, letter in sorted(html5.items(), reverse=True)
    if name.endswith(";") and len(letter) == 1 and letter in string.punctuation
}


def _standard(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _url_safe(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode()


def _inside_base64(encode: Callable[[str], str], before: str, secret: str, after: str) -> tuple[str, slice]:
    """The text, and where in it every bit is the secret's."""
    start, end = len(before.encode()), len((before + secret).encode())
    return encode(before + secret + after), slice(-(-start * 8 // 6), end * 8 // 6)


def _wrapped(text: str, width: int, end: str) -> str:
    return end.join(_pieces(text, width))


def _after_wrapping(place: slice, width: int, end: str) -> slice:
    return slice(*(at + at // width * len(end) for at in (place.start, place.stop)))


def _gzip_with_name(text: str) -> bytes:
    buffer = io.BytesIO()
    with gzip.GzipFile("notes.txt", "wb", fileobj=buffer, mtime=0) as file:
        file.write(text.encode())
    return buffer.getvalue()


def _utf16(text: str) -> Iterator[int]:
    """What JSON and JavaScript count as characters."""
    data = text.encode("utf-16-be")
    return (int.from_bytes(data[at : at + 2]) for at in range(0, len(data), 2))


def _utf16_escaped(text: str) -> str:
    return "".join(f"\\u{unit:04x}" for unit in _utf16(text))


def _quoted(text: str) -> str:
    return "".join(f"={byte:02X}" for byte in text.encode())


def _every_other(text: str, encode: Callable[[str], str], *, always: str = "") -> str:
    return "".join(encode(letter) if at % 2 or letter in always else letter for at, letter in enumerate(text))


def _pieces(text: Pieces, length: int) -> list[Pieces]:
    return [text[at : at + length] for at in range(0, len(text), length)]


def _translated(text: str, table: Mapping[str, str]) -> str:
    return "".join(table.get(letter, letter) for letter in text)
