"""A known secret is taken out in every form in which it may leak."""

import base64
import codecs
import functools
import gzip
import html
import json
import quopri
import re
import unicodedata
import urllib.parse
from collections.abc import Callable, Iterable, Sequence

import pytest

from fieldstone.redact import Harness, shared_harness
from fieldstone.redact.harness import CleanGroup
from fieldstone.redact.known import KnownSecret
from fieldstone.redact.seams import Trail
from tests.redact.forms import FORMS, KINDS, SECRETS, Attack, attacks, compositions, secrets, split, split_attacks
from tests.requirements import requirement

# Of every form and for every secret, by chance; `python -m benchmarks redaction` takes all variants.
VARIANTS_EACH = 3
SPLITS_EACH = 6
COMPOSITIONS = 1_000
COMPOSITIONS_FOUND_MIN = 0.99
MISSES_SHOWN = 12


@requirement("akashik:secrets:forms")
@pytest.mark.parametrize("form", FORMS)
def test_a_known_secret_is_taken_out_in_every_form(form: str) -> None:
    succeeded = [attack for attack, group in _tried(form) if attack.succeeds(group.texts, group.found)]
    assert not succeeded, _listed(succeeded)


@pytest.mark.parametrize("form", FORMS)
def test_the_words_around_a_disguised_secret_stay(form: str) -> None:
    lost = [
        (attack, group) for attack, group in _tried(form) if not all(word in group.texts[0] for word in attack.around)
    ]
    assert not lost, f"{len(lost)} texts lost words: {lost[:MISSES_SHOWN]}"


@requirement("akashik:secrets:forms-composed")
def test_a_known_secret_under_two_disguises_is_taken_out() -> None:
    succeeded = _succeeded(compositions(COMPOSITIONS))
    assert len(succeeded) <= (1 - COMPOSITIONS_FOUND_MIN) * COMPOSITIONS, _listed(succeeded)


@requirement("akashik:secrets:split")
def test_a_secret_split_over_two_texts_of_a_unit_is_taken_out() -> None:
    succeeded = _succeeded(split_attacks(each=SPLITS_EACH))
    assert not succeeded, _listed(succeeded)


@requirement("akashik:secrets:split")
def test_a_secret_split_over_consecutive_entries_is_taken_out_of_the_later_one() -> None:
    """Three texts an entry, as a unit has them; the parts stand in any of them."""
    succeeded = []
    for number, secret in enumerate(secrets()):
        for texts, parts in split(secret.value)[number % 3 :: 3]:
            first, second = (["Looked at the log.", "", "To be sure."] for _ in range(2))
            first[number % 3], second[number // 3 % 3] = texts
            _, trail = _harness().clean_after(Trail(), first)
            entry, _ = _harness().clean_after(trail, second)
            if parts[1] in entry.texts[number // 3 % 3] or secret.id not in entry.found:
                succeeded.append(Attack("split over entries", secret, texts, parts))
    assert not succeeded, _listed(succeeded)


def test_a_secret_split_over_many_entries_is_not_left_whole() -> None:
    left = []
    for secret in secrets():
        size = -(-len(secret.value) // 4)
        trail, out = Trail(), ""
        for at in range(0, len(secret.value), size):
            entry, trail = _harness().clean_after(trail, [secret.value[at : at + size]])
            out += entry.texts[0]
        if secret.value in out:
            left.append(secret)
    assert not left, f"{len(left)} of {SECRETS}: {left[:MISSES_SHOWN]}"


# --- the attacks themselves ------------------------------------------------------------------------------------------


def test_there_are_200_secrets_of_7_kinds_and_none_is_a_part_of_another() -> None:
    values = [secret.value for secret in secrets()]
    assert len(set(values)) == len(values) == SECRETS == 200
    assert {secret.kind for secret in secrets()} == set(KINDS)
    assert len(KINDS) == 7
    assert not [(a, b) for a in values for b in values if a != b and a in b]


def _base64_decoded(text: str) -> str:
    text = re.sub(r"\s+>?", "", text).translate(str.maketrans("-_", "+/"))
    return base64.b64decode(text + "=" * (-len(text) % 4)).decode()


def _hex_decoded(text: str) -> str:
    return bytes.fromhex(re.sub(r"0[xX]|[^0-9a-fA-F]", "", text)).decode()


def _json_decoded(text: str) -> str:
    decoded: str = json.loads(f'"{text}"')
    return decoded


def _bytes_decoded(text: str) -> str:
    codes = re.findall(r"\\x([0-9a-f]{2})|\\([0-7]{3})", text)
    return bytes(int(sixteen, 16) if sixteen else int(eight, 8) for sixteen, eight in codes).decode()


def _characters_decoded(text: str) -> str:
    return re.sub(r"\\U(\w{8})|\\[ux]\{(\w+)\}", lambda found: chr(int(found[1] or found[2], 16)), text)


def _without_backslashes(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _gunzipped(text: str) -> str:
    standard = text.translate(str.maketrans("-_", "+/"))
    return gzip.decompress(base64.b64decode(standard + "=" * (-len(text) % 4))).decode()


# The variants of a form may be of several languages: one of the inverses undoes each.
INVERSES: dict[str, tuple[Callable[[str], str], ...]] = {
    "base64": (_base64_decoded,),
    "base64 inside longer text": (_base64_decoded,),
    "base64 twice": (lambda text: _base64_decoded(_base64_decoded(text)),),
    "base64 in lines": (_base64_decoded,),
    "gzip and base64": (_gunzipped,),
    "hex": (_hex_decoded,),
    "hex inside longer text": (_hex_decoded,),
    "hex with separators": (_hex_decoded,),
    "percent-encoded": (urllib.parse.unquote, urllib.parse.unquote_plus),
    "escaped": (_json_decoded, _bytes_decoded, _characters_decoded, _without_backslashes),
    "HTML entities": (html.unescape,),
    "quoted-printable": (lambda text: quopri.decodestring(text.encode()).decode(),),
    "rot13": (lambda text: codecs.decode(text, "rot13"),),
    "reversed": (lambda text: text[::-1],),
    "soft hyphens": (lambda text: text.replace("\N{SOFT HYPHEN}", ""),),
    "full-width": (lambda text: unicodedata.normalize("NFKC", text),),
}


@pytest.mark.parametrize("form", INVERSES)
def test_an_encoded_secret_can_be_decoded(form: str) -> None:
    """Else not finding it would be no leak, and finding it no merit."""
    lost = [
        (secret, text)
        for secret in secrets()
        for text, _ in FORMS[form](secret.value)
        if not any(secret.value in _undone(inverse, text) for inverse in INVERSES[form])
    ]
    assert not lost


def _undone(inverse: Callable[[str], str], text: str) -> str:
    try:
        return inverse(text)
    except ValueError:
        return ""  # a variant of another language than this inverse speaks


# --- what they are run against ---------------------------------------------------------------------------------------


@functools.cache
def _harness() -> Harness:
    return shared_harness().knowing(KnownSecret(secret.id, secret.value) for secret in secrets())


@functools.cache
def _tried(form: str) -> list[tuple[Attack, CleanGroup]]:
    tried = list(attacks(form, each=VARIANTS_EACH))
    return [(attack, group) for attack in tried for group in _harness().clean_groups([attack.texts])]


def _succeeded(tried: Iterable[Attack]) -> list[Attack]:
    def comes_through(attack: Attack) -> bool:
        [group] = _harness().clean_groups([attack.texts])
        return attack.succeeds(group.texts, group.found)

    return list(filter(comes_through, tried))


def _listed(succeeded: Sequence[Attack]) -> str:
    shown = "\n".join(f"  {attack.form}: {attack.secret} {attack.texts}" for attack in succeeded[:MISSES_SHOWN])
    return f"{len(succeeded)} came through:\n{shown}"
