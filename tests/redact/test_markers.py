"""The marker that stands where a secret was, in our form and in others."""

import pytest

from fieldstone.redact import shared_harness
from tests.redact.fakes import TOKENS
from tests.requirements import requirement


@requirement("redact:marker:foreign-form")
@pytest.mark.parametrize(
    "foreign",
    [
        "<REDACTED:{}>",
        "[BYOK:{}]",
        "<redacted:{}>",
        "[byok:{}]",
        "[Redacted:{}]",
        "&lt;REDACTED:{}&gt;",
        "&lt;redacted:{}&gt;",
    ],
)
@pytest.mark.parametrize("name", ["openai", "db-password-1", "a b", "ключ", "x" * 200, "a/b.c:1&2"])
def test_a_marker_of_another_form_becomes_ours_with_its_name(foreign: str, name: str) -> None:
    assert shared_harness().clean_one(f"see {foreign.format(name)}.") == (f"see [REDACTED:{name}].", ())


@requirement("redact:marker:canonical-stays")
@pytest.mark.parametrize(
    "text",
    [
        "the password is [REDACTED:db-password-1]!",
        "password=[REDACTED:key7], api key is [REDACTED:k8]",
        "postgres://alice:[REDACTED:pg-1]@db.example.com/x",
        "Authorization: Bearer [REDACTED:run-42-token]",
        "[REDACTED:betterleaks.github-pat] and [REDACTED:a][REDACTED:b]",
        'curl -u "[REDACTED:x1]" https://example.com',
    ],
)
def test_a_marker_in_our_form_stays_and_is_not_taken_for_the_secret(text: str) -> None:
    assert shared_harness().clean_one(text) == (text, ())


@requirement("redact:marker:no-smuggling")
@pytest.mark.parametrize("form", ["<REDACTED:{}>", "[BYOK:{}]", "[REDACTED:{}]", "&lt;REDACTED:{}&gt;"])
@pytest.mark.parametrize("kind", TOKENS)
def test_a_secret_as_the_name_of_a_marker_is_taken_out(form: str, kind: str) -> None:
    redacted = shared_harness().clean_one(f"a {form.format(TOKENS[kind])} b")
    [rule] = redacted.found
    assert redacted.text == f"a [REDACTED:{rule}] b"


@requirement("redact:marker:no-smuggling")
def test_markers_inside_a_secret_stay_and_the_secret_around_them_is_taken_out() -> None:
    half = "QWxhZGRpbjpvcGVuIHNlc2FtZQ" * 4
    text = f"-----{'BEGIN'} PRIVATE KEY-----\n{half}\n[REDACTED:mine]\n{half}\n-----{'END'} PRIVATE KEY-----"
    redacted = shared_harness().clean_one(text)
    assert half[:16] not in redacted.text
    assert "[REDACTED:mine]" in redacted.text


@requirement("redact:marker:not-a-marker")
@pytest.mark.parametrize(
    "text", ["<REDACTED:>", f"<REDACTED:{'x' * 201}>", "<REDACTED:a\nb>", "[BYOK: and [BYOK]", "<REDACTED:a]"]
)
def test_what_only_begins_like_a_marker_is_plain_text(text: str) -> None:
    assert shared_harness().clean_one(text) == (text, ())


@requirement("redact:marker:name-is-no-context")
def test_the_name_in_our_marker_does_not_make_secrets_of_its_neighbours() -> None:
    text = "[REDACTED:fieldstone.password] is Tuesday2 and [REDACTED:fieldstone.named-secret]: 550e8400e29b41d4"
    assert shared_harness().clean_one(text) == (text, ())
