"""With 200 secrets known, nothing is taken out of texts that hold none of them."""

import base64
import functools
import gzip
import hashlib
import importlib.metadata
import itertools
import json
import quopri
import random
import re
import sysconfig
import urllib.parse
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from fieldstone.redact import Harness, shared_harness
from fieldstone.redact.known import KnownSecret
from fieldstone.redact.seams import Trail
from tests.redact.forms import secrets
from tests.requirements import requirement

CORPUS_BYTES = 1_000_000  # `python -m benchmarks redaction` takes four times as much
TEXT_BYTES = 2_000
TEXTS_A_UNIT = 3
PATTERN_ALARMS_MAX = 1


@requirement("akashik:secrets:no-false-alarms")
def test_no_known_secret_is_found_where_there_is_none() -> None:
    alarms = [(alarm, text) for text in harmless_texts(CORPUS_BYTES) for alarm in _known_alarms(text)]
    assert not alarms


def test_no_secret_is_put_together_from_the_texts_of_harmless_units() -> None:
    """Each text is long enough to end in what could be the beginning of a secret, and to begin with its end."""
    ids = {secret.id for secret in secrets()}
    trail = Trail()
    for unit in _batches(harmless_texts(CORPUS_BYTES // 2)):
        cleaned, trail = _harness().clean_after(trail, unit)
        assert not ids.intersection(cleaned.found), unit


def test_the_rules_for_unknown_secrets_take_next_to_nothing_for_one() -> None:
    """Code that is squeezed together, `password=password+b"x"`, can look like a password to them."""
    alarms = {text: found for text in harmless_texts(CORPUS_BYTES) if (found := shared_harness().clean_one(text).found)}
    assert len(alarms) <= PATTERN_ALARMS_MAX, alarms


# --- the harmless texts ----------------------------------------------------------------------------------------------


def harmless_texts(size_bytes: int, *, with_data: bool = True) -> Iterator[str]:
    """Prose, code, ids, hashes and data as agents note them, about 2 kB each, from what every machine with this project
    has. No text is twice the same."""
    chance = random.Random("harmless")
    makers = itertools.cycle(MAKERS if with_data else PLAIN_MAKERS)
    while size_bytes > 0:
        text = next(makers)(chance)
        size_bytes -= len(text.encode())
        yield text


def source_code(chance: random.Random) -> str:
    return _excerpt(_library(), chance)


def minified_code(chance: random.Random) -> str:
    lines = re.sub(r"\s*\n\s*", ";", _excerpt(_library(), chance, 2 * TEXT_BYTES))
    return re.sub(r" *([^\w\s]) *", r"\1", lines)


def documentation(chance: random.Random) -> str:
    return _excerpt(_docstrings(), chance)


def licence(chance: random.Random) -> str:
    return _excerpt(_licences(), chance)


def prose(chance: random.Random) -> str:
    words = _words()
    return _filled(lambda: " ".join(chance.choices(words, k=chance.randint(4, 20))).capitalize() + ". ")


def ids(chance: random.Random) -> str:
    return _filled(lambda: f"unit {uuid.UUID(int=chance.getrandbits(128))} of run-{chance.randint(1, 9999)}\n")


def hashes(chance: random.Random) -> str:
    kinds = (hashlib.md5, hashlib.sha1, hashlib.sha256, hashlib.sha512)
    return _filled(lambda: f"{chance.choice(kinds)(chance.randbytes(9)).hexdigest()}  file-{chance.randint(1, 999)}\n")


def digests(chance: random.Random) -> str:
    return _filled(lambda: f"sha512-{base64.b64encode(chance.randbytes(64)).decode()} ")


def image(chance: random.Random) -> str:
    data = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + chance.randbytes(TEXT_BYTES * 3 // 4)
    return f"![plot](data:image/png;base64,{base64.b64encode(data).decode()})"


def attachment(chance: random.Random) -> str:
    return base64.encodebytes(source_code(chance).encode()).decode()


def packed(chance: random.Random) -> str:
    data = gzip.compress(_excerpt(_library(), chance, 3 * TEXT_BYTES).encode(), mtime=0)
    return base64.urlsafe_b64encode(data).decode()


def hex_dump(chance: random.Random) -> str:
    data = source_code(chance).encode()[: TEXT_BYTES // 4]
    return "\n".join(f"{at:08x}  {data[at : at + 16].hex(' ')}" for at in range(0, len(data), 16))


def json_document(chance: random.Random) -> str:
    def row() -> dict[str, object]:
        return {
            "id": chance.getrandbits(53),
            "hash": chance.randbytes(8).hex(),
            "text": " ".join(chance.choices(_words(), k=6)),
        }

    return json.dumps({"rows": [row() for _ in range(12)], "raw": json.dumps({"nested": json.dumps(row())})})


def encoded_prose(chance: random.Random) -> str:
    text = documentation(chance)[: TEXT_BYTES // 2]
    return chance.choice((urllib.parse.quote, _quoted_printable, _escaped, _entities))(text)


MAKERS: tuple[Callable[[random.Random], str], ...] = (
    *(source_code, documentation, licence, prose, json_document, minified_code),
    *(ids, hashes, digests, image, attachment, packed, hex_dump, encoded_prose),
)
PLAIN_MAKERS = (source_code, minified_code, documentation, licence, prose, json_document, ids, hashes)


def _quoted_printable(text: str) -> str:
    return quopri.encodestring(text.encode()).decode()


def _escaped(text: str) -> str:
    return "".join(f"\\u{ord(letter):04x}" for letter in text if ord(letter) < 0x10000)


def _entities(text: str) -> str:
    return "".join(f"&#{ord(letter)};" for letter in text)


def _filled(line: Callable[[], str]) -> str:
    text = ""
    while len(text) < TEXT_BYTES:
        text += line()
    return text


def _excerpt(text: str, chance: random.Random, size: int = TEXT_BYTES) -> str:
    start = chance.randrange(len(text) - size)
    return text[start : start + size]


@functools.cache
def _library() -> str:
    """The standard library, without its tests, which hold keys, and without the one password in its documentation."""
    root = Path(sysconfig.get_paths()["stdlib"])
    files = [*root.glob("*.py"), *root.glob("[a-su-z]*/*.py")]
    texts = [path.read_text(encoding="utf-8", errors="ignore") for path in sorted(files)]
    return "\n".join(texts).replace("passwd='geheim$parole'", "")


@functools.cache
def _docstrings() -> str:
    """Comments and other strings are stepped over, so that no quotation mark in them counts as one of three."""
    steps = r'"""(.*?)"""|#[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    return "\n\n".join(text for text in re.findall(steps, _library(), re.DOTALL) if text)


@functools.cache
def _licences() -> str:
    """Of the installed packages, each wording once."""
    files = (file for package in importlib.metadata.distributions() for file in package.files or ())
    named = {str(file.locate()) for file in files if re.search(r"LICEN[CS]E|COPYING|NOTICE", file.name)}
    texts = [Path(path).read_text(encoding="utf-8", errors="ignore") for path in sorted(named) if Path(path).is_file()]
    return "\n\n".join(dict.fromkeys(texts))


@functools.cache
def _words() -> list[str]:
    return sorted(set(re.findall(r"\b[a-z]{2,12}\b", _docstrings())))


# --- what they are run against ---------------------------------------------------------------------------------------


@functools.cache
def _harness() -> Harness:
    return shared_harness().knowing(KnownSecret(secret.id, secret.value) for secret in secrets())


def _known_alarms(text: str) -> set[str]:
    return {secret.id for secret in secrets()}.intersection(_harness().clean_one(text).found)


def _batches(texts: Iterator[str]) -> Iterator[list[str]]:
    while batch := list(itertools.islice(texts, TEXTS_A_UNIT)):
        yield batch
