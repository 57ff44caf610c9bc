"""Secrets whose values are known: what is found of them, under which name, and what is left alone.

The forms of issue 4, one by one and in pairs, are in test_forms.py.
"""

import base64
import codecs
import gc
import gzip
import urllib.parse
import zlib
from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fieldstone.redact import Harness, KnownSecret, check_value, shared_harness
from fieldstone.redact.encodings import INFLATED_BYTES_MAX
from fieldstone.redact.known import UNSEARCHABLE, Known, _made
from tests.redact.fakes import TOKENS, noise
from tests.requirements import requirement

VALUE = "kX7-" + noise(20) + "!q"
OTHER = noise(28)
SIGNS = "~{]|<" + "^%&;" + ">=`?[:)"
WORDS = "tuvoka" + " lemira " + "sodani peruko"
KNOWN = (
    KnownSecret("vault-a", VALUE),
    KnownSecret("vault-b", OTHER),
    KnownSecret("signs", SIGNS),
    KnownSecret("words", WORDS),
    KnownSecret("weak", "Password" + "123"),
)
HARNESS = shared_harness().knowing(KNOWN)


def hexadecimal(value: str) -> str:
    return value.encode().hex()


def in_base64(value: str) -> str:
    return base64.b64encode(value.encode()).decode()


def percented(value: str) -> str:
    return "".join(f"%{byte:02x}" for byte in value.encode())


def entities(value: str) -> str:
    return "".join(f"&#{ord(character)};" for character in value)


def full_width(value: str) -> str:
    return "".join(chr(ord(character) + 0xFEE0) if "!" <= character <= "~" else character for character in value)


def spaced(value: str) -> str:
    return " ".join(value)


ENCODERS: tuple[Callable[[str], str], ...] = (str, hexadecimal, in_base64, percented, entities, full_width, spaced)

PROSE = st.text(st.sampled_from("abc def,.\n(é日👩‍🚀—“"), max_size=30)
VALUES = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x17F, exclude_categories=["Cc", "Cf"]), min_size=10)


@given(before=PROSE, after=PROSE, encode=st.sampled_from(ENCODERS))
def test_exactly_the_disguised_secret_is_replaced_by_its_marker(
    before: str, after: str, encode: Callable[[str], str]
) -> None:
    text = f"{before} {encode(OTHER)} {after}"
    assert HARNESS.clean_one(text) == (f"{before} [REDACTED:vault-b] {after}", ("vault-b",))


@given(value=VALUES, before=PROSE, after=PROSE)
def test_a_value_that_is_hard_to_guess_is_found_in_plain_form_and_in_base64(
    value: str, before: str, after: str
) -> None:
    assume(check_value(value) is None)
    harness = shared_harness().knowing([KnownSecret("any", value)])
    for text in (value, in_base64(value)):
        redacted = harness.clean_one(f"{before} {text} {after}")
        assert text not in redacted.text
        assert redacted.found == ("any",)


FRAGMENTS = (
    *(VALUE, VALUE[:9], VALUE[9:], OTHER, OTHER[:14], OTHER[14:], WORDS, WORDS[:13], SIGNS, SIGNS[7:], "Password123"),
    *(encode(value) for encode in ENCODERS for value in (VALUE, OTHER, WORDS)),
    *(encode(OTHER)[:20] for encode in ENCODERS),
    *("[REDACTED:", "<REDACTED:", "]", ">", " ", "\n", "-", "=", "%", "\\", "&", "é", "日", "the ", "\x1e", "\u200b"),
)
TEXTS = st.lists(st.sampled_from(FRAGMENTS), max_size=7).map("".join)


@given(text=TEXTS)
def test_clean_text_is_clean(text: str) -> None:
    once = HARNESS.clean_one(text)
    assert HARNESS.clean_one(once.text) == (once.text, ())
    assert not any(value in once.text for _, value in KNOWN)


@given(texts=st.lists(TEXTS, max_size=5))
def test_a_text_by_itself_is_redacted_the_same_alone_and_in_a_batch(texts: list[str]) -> None:
    alone = [HARNESS.clean_one(text).text for text in texts]
    assert [group.texts[0] for group in HARNESS.clean_groups([[text] for text in texts])] == alone


@given(ids=st.lists(TEXTS, max_size=4))
def test_an_id_offends_exactly_when_it_holds_a_secret_as_a_whole(ids: list[str]) -> None:
    for value, offence in zip(ids, HARNESS.holds_secret(ids), strict=True):
        found = HARNESS.clean_one(value).found
        assert offence in found if offence else not any(secret in value for _, secret in KNOWN)


@pytest.mark.parametrize(
    "text",
    [
        base64.b64encode(VALUE.encode("utf-16-le")).decode(),
        base64.b32encode(VALUE.encode()).decode(),
        base64.b64encode(zlib.compress(VALUE.encode())).decode(),
        gzip.compress(VALUE.encode(), mtime=0).hex(),
        in_base64(percented(in_base64(VALUE))),
        in_base64(f"GET /?q={urllib.parse.quote(in_base64(VALUE))}"),
        in_base64(entities(full_width(VALUE))),
        percented(percented(percented(VALUE))),
    ],
    ids=["UTF-16", "base32", "zlib", "gzip in hex", "three deep", "in an address", "full-width entities", "thrice"],
)
def test_further_forms_are_found(text: str) -> None:
    assert HARNESS.clean_one(f"see {text} here") == ("see [REDACTED:vault-a] here", ("vault-a",))


@pytest.mark.parametrize("encode", [str, in_base64, hexadecimal, percented, spaced])
def test_a_value_of_nothing_but_signs_is_found(encode: Callable[[str], str]) -> None:
    assert HARNESS.clean_one(f"it is {encode(SIGNS)} now") == ("it is [REDACTED:signs] now", ("signs",))


def test_the_few_letters_of_a_value_full_of_signs_are_no_secret_by_themselves() -> None:
    harness = shared_harness().knowing([KnownSecret("mixed", "pass" + "word~$%&|<^+")])
    text = "The password must be long. Password? PASSWORD! pass, word."
    assert harness.clean_one(text) == (text, ())
    assert harness.clean_one("p a s s w o r d ~ $ % & | < ^ +").found == ("mixed",)


@requirement("akashik:secrets:weak-values")
def test_a_value_that_is_easy_to_guess_is_found_in_plain_form_only() -> None:
    weak = KNOWN[-1].value
    assert HARNESS.clean_one(f"x{weak}x") == ("x[REDACTED:weak]x", ("weak",))
    for text in (weak.lower(), in_base64(weak), "-".join(weak), weak[::-1]):
        assert HARNESS.clean_one(text).found == ()


def test_a_known_secret_gives_its_own_id_where_a_rule_would_find_it_too() -> None:
    token = TOKENS["GitHub personal"]
    harness = shared_harness().knowing([KnownSecret("ours", token), KnownSecret("part", token[10:30])])
    assert harness.clean_one(f"use {token}.") == ("use [REDACTED:ours].", ("ours",))


def test_of_two_values_one_in_the_other_the_longer_gives_the_name() -> None:
    harness = shared_harness().knowing([KnownSecret("inner", VALUE), KnownSecret("outer", f"{VALUE}-{OTHER}")])
    assert harness.clean_one(f"{VALUE}-{OTHER} {VALUE}") == ("[REDACTED:outer] [REDACTED:inner]", ("outer", "inner"))


@pytest.mark.parametrize("encode", ENCODERS)
def test_the_name_of_a_foreign_marker_may_hold_a_secret_too(encode: Callable[[str], str]) -> None:
    assert HARNESS.clean_one(f"a <REDACTED:{encode(OTHER)}> b").text == "a [REDACTED:vault-b] b"


def test_a_secret_written_around_a_marker_is_taken_out() -> None:
    redacted = HARNESS.clean_one(f"{OTHER[:14]}[REDACTED:x]{OTHER[14:]}")
    assert redacted.text == "[REDACTED:vault-b][REDACTED:x][REDACTED:vault-b]"


def test_the_harness_one_started_from_knows_nothing_of_it() -> None:
    assert not shared_harness().knows_secrets
    assert HARNESS.knows_secrets
    assert shared_harness().clean_one(OTHER).found == ()
    assert HARNESS.knowing([]).clean_one(OTHER).found == ()
    assert HARNESS.knowing([KnownSecret("new", OTHER)]).clean_one(OTHER).found == ("new",)


def test_what_is_made_of_a_value_is_made_once_and_forgotten_with_the_last_harness() -> None:
    value = noise(24)
    one = Known([KnownSecret("a", value)])
    other = Known([KnownSecret("b", value), KnownSecret("c", noise(24))])
    assert one._needles[0] is other._needles[0]
    assert value in _made
    del one, other
    gc.collect()
    assert value not in _made


@pytest.mark.parametrize(
    "secret",
    [KnownSecret("short", "a1b2c3d"), KnownSecret("a]b", VALUE), KnownSecret("", VALUE), KnownSecret("a\nb", VALUE)],
    ids=["a short value", "a bracket in the id", "no id", "a line break in the id"],
)
def test_a_secret_that_cannot_be_kept_out_is_refused_and_its_value_not_told(secret: KnownSecret) -> None:
    with pytest.raises(ValueError, match=r"characters|marker") as refused:
        Harness.knowing(shared_harness(), [secret])
    assert secret.value not in str(refused.value)


def test_a_compressed_run_that_cannot_be_searched_is_taken_out() -> None:
    bomb = base64.b64encode(gzip.compress(b"\0" * (2 * INFLATED_BYTES_MAX), mtime=0)).decode()
    assert HARNESS.clean_one(f"see {bomb} end") == (f"see [REDACTED:{UNSEARCHABLE}] end", (UNSEARCHABLE,))


@pytest.mark.parametrize(
    "unit",
    [
        *("%41", "%25", "\\", "\\u0041", "&#65;", "&amp;", "=41", "a=\n", "0x41,", "41 ", "H4sI", "eJw=", "<b>", "]("),
        *("1. a\n", "AbCdEf12\n", "а", "ａ", "a\u200b", OTHER[:12], OTHER[5:20], f"{OTHER} ", in_base64(OTHER)),
    ],
)
def test_a_text_made_of_almost_nothing_but_disguises_does_not_take_its_length_squared(unit: str) -> None:
    """A square in one of the readings would make this last for minutes."""
    assert HARNESS.clean_one(unit * (60_000 // len(unit))).text


def test_a_text_of_other_letters_in_the_batch_does_not_hide_a_disguise() -> None:
    rotated = full_width(OTHER[::2]), codecs.encode(OTHER[1::2], "rot13")
    text = "".join(a + b for a, b in zip(*rotated, strict=True))
    groups = HARNESS.clean_groups([["日本語"], [text], ["ж"]])
    assert [group.found for group in groups] == [(), ("vault-b",), ()]


@pytest.mark.parametrize(
    "value",
    [
        "\U0001f5dd\U0001f512\U0001f600\U0001f680\U0001f512\U0001f4bb\U0001f469\U0001f4bb",
        '/<\U0001f600"\U0001f4bb~\U0001f511\U0001f60e!',
        "3B\x02\x07\x7f\x7f\x1b\x7f\x7f\x7f",
        "^<@@\u0308\u0308\u0301_",
        "!!quiet.Harbour.7713.lantern!!",
    ],
)
def test_a_value_of_signs_or_with_signs_at_its_ends_is_taken_out_whole(value: str) -> None:
    harness = shared_harness().knowing([KnownSecret("odd", value)])
    assert harness.clean_one(f"the key is {value} ok").text == "the key is [REDACTED:odd] ok"


@pytest.mark.parametrize("between", ["-", "_"])
def test_a_secret_that_is_compressed_and_then_spelled_letter_by_letter_is_found(between: str) -> None:
    spelled = between.join(base64.b64encode(zlib.compress(KNOWN[0].value.encode())).decode())
    assert HARNESS.clean_one(f"the note says {spelled} and it is all here").found


@pytest.mark.parametrize(("size", "between"), [(2, " "), (2, "_"), (3, " "), (2, " - ")])
def test_a_secret_that_is_spaced_and_then_encoded_in_small_groups_is_found(size: int, between: str) -> None:
    digits = "7f3a" + "09be51" + "c2d846"  # its base64 has no letters that change their kind within a pair
    letters = base64.b64encode(" ".join(digits).encode()).decode()
    grouped = between.join(letters[start : start + size] for start in range(0, len(letters), size))
    harness = shared_harness().knowing([KnownSecret("digits", digits)])
    assert harness.clean_one(f"the note says {grouped} and it is all here").found == ("digits",)
