"""The road as a whole: many texts at once, any text, and always the same answer."""

import copy
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kingfisher_sdk.rules import Rules

from fieldstone.redact import Harness, shared_harness
from fieldstone.redact.harness import SCAN_BYTES_MAX, UNSETTLED
from fieldstone.redact.patterns import GROUP_BREAK, HIDDEN_SECRETS, OVERLAP_BYTES, PIECE_BYTES, RUN_BYTES_MAX, pieces
from fieldstone.redact.spans import Span
from tests.redact.fakes import ALNUM, HEX, TOKENS, noise, private_key
from tests.requirements import requirement

# What a secret is made of, whole and in parts, and what stands around it; joined at random it gives much that is almost
# a secret, and windows that reach for one in the next text.
FRAGMENTS = (
    *TOKENS.values(),
    *(token[: len(token) // 2] for token in TOKENS.values()),
    *(token[len(token) // 2 :] for token in TOKENS.values()),
    *(
        "the password is ",
        "password: ",
        "pwd=",
        "hunter2!",
        "api key is ",
        "secret",
        "algolia",
        "zoho: ",
        "client_id",
        "=",
    ),
    *(
        "aws_secret_access_key = ",
        noise(40),
        noise(32, HEX),
        'curl -u "bob:',
        'curl -H "Authorization: Bearer ',
        "bearer ",
    ),
    *("https://bob:", "@example.com", private_key(lines=3), private_key(lines=3)[:90], private_key(lines=3)[90:]),
    *(
        "[REDACTED:",
        "<REDACTED:a>",
        "[BYOK:b c]",
        "[REDACTED:fieldstone.password]",
        "&lt;REDACTED:",
        "]",
        ">",
        "false",
        "null",
    ),
    *(" ", "\n", ". ", ", ", '"', "'", "{", "}", "(", ")", "\x1e", "\0", "é", "日本", "👩‍🚀", "the ", "note "),
)
TEXTS = st.one_of(st.lists(st.sampled_from(FRAGMENTS), max_size=8).map("".join), st.text(max_size=40))


@requirement("redact:harness:idempotent")
@given(text=TEXTS)
def test_clean_text_is_clean(text: str) -> None:
    once = shared_harness().clean_one(text)
    assert shared_harness().clean_one(once.text) == (once.text, ())


@requirement("redact:harness:neighbours")
@given(groups=st.lists(st.lists(TEXTS, max_size=4), max_size=6))
def test_a_text_is_redacted_the_same_alone_and_among_others(groups: list[list[str]]) -> None:
    harness = shared_harness()
    alone = [[harness.clean_one(text).text for text in group] for group in groups]
    assert [list(group.texts) for group in harness.clean_groups(groups)] == alone


@requirement("redact:harness:neighbours")
@pytest.mark.parametrize("kind", TOKENS)
def test_a_secret_is_found_between_neighbours_that_begin_one_and_end_one(kind: str) -> None:
    before = ['curl -u "', "password for ", "aws secret key", "algolia", f"-----{'BEGIN'} PRIVATE KEY----- false"]
    after = ['" ', noise(32, HEX), noise(40), "@example.com", f"-----{'END'} PRIVATE KEY-----"]
    groups = [before, [*before, TOKENS[kind], *after], after, [TOKENS[kind]], [], after]
    cleaned = shared_harness().clean_groups(groups)
    assert cleaned[1].texts[len(before)] == cleaned[3].texts[0] == f"[REDACTED:{cleaned[3].found[0]}]"


@requirement("redact:harness:neighbours")
def test_a_text_reads_the_same_at_the_ends_of_a_batch_and_within_it() -> None:
    """A rule of the catalogue counts the line break behind this as the last of its forty characters."""
    text = "ZXlK" + "d2NIUWlPaU" + noise(39).replace("9", "8")
    answers = shared_harness().clean_groups([[text], ["x", text, "y"], [text]])
    assert {answers[0].texts[0], answers[1].texts[1], answers[2].texts[0]} == {shared_harness().clean_one(text).text}


@requirement("redact:harness:neighbours")
def test_no_rule_of_the_catalogue_reaches_from_one_request_into_another() -> None:
    """The windows are any character, line breaks too, so many times. Only for private keys, which have a detector of
    their own, there is no number."""
    window = re.compile(r"(?:\(\?:\.\|\[\\n\\r\]\)|\[\\s\\S-?\]|\(\?s:\.\)|\(\?s:\.)\{(\d+),(\d*)\}")
    rules = Rules()
    for rule in rules.metadata():
        detail = rules.detail(rule["id"])
        if detail["path"]:
            continue  # such a rule is for files of some name, and our texts have none
        for _, longest in window.findall(detail["detection_regex"]):
            assert rule["id"] == "betterleaks.private-key" if not longest else int(longest) < len(GROUP_BREAK)


@requirement("redact:patterns:hidden-secrets")
def test_what_the_catalogue_hides_and_calls_a_secret_is_on_our_list() -> None:
    hidden = {rule["id"] for rule in Rules().metadata() if not rule["visible"]}
    called_secret = {
        rule for rule in hidden if re.search(r"(secret|secret-access-key|passphrase|password|security-token)$", rule)
    }
    assert called_secret <= HIDDEN_SECRETS <= hidden


@requirement("redact:harness:nothing-found")
def test_with_nothing_found_the_given_texts_come_back_themselves() -> None:
    groups = [["plain", "words"], [], ("also", "plain")]
    for given_texts, answer in zip(groups, shared_harness().clean_groups(groups), strict=True):
        assert answer.texts is given_texts
        assert answer.found == ()
    assert shared_harness().clean_groups([]) == []


@requirement("redact:harness:found")
def test_the_ids_of_a_group_are_those_of_its_own_secrets_each_once() -> None:
    secret, other = f"the password is {'hunter2'}!", TOKENS["GitLab"]
    plain, both, one = shared_harness().clean_groups(
        [["plain"], [secret, "plain", f"{other} {other}", secret], [other]]
    )
    assert (plain.texts, plain.found) == (["plain"], ())
    assert both.found == ("fieldstone.password", "betterleaks.gitlab-pat")
    assert both.texts[1] == "plain"
    assert one.found == ("betterleaks.gitlab-pat",)


@requirement("redact:harness:unicode")
@pytest.mark.parametrize(
    "prose",
    ["Grüße, {} – für Zoë", "鍵は{}です。秘密", "👩‍🚀{}👩‍🚀", "é{}é", "\ufeff{}\u2028", "مفتاح {} هنا"],
)
def test_text_of_any_alphabet_around_a_secret_survives_byte_for_byte(prose: str) -> None:
    for token in TOKENS.values():
        redacted = shared_harness().clean_one(prose.format(token))
        [rule] = redacted.found
        assert redacted.text == prose.format(f"[REDACTED:{rule}]")


@requirement("redact:harness:long-texts")
@pytest.mark.parametrize("at", [0, 1, PIECE_BYTES - 20, PIECE_BYTES, 3 * PIECE_BYTES - 7, 99_000])
def test_a_secret_is_found_anywhere_in_a_long_text(at: int) -> None:
    prose = "the agent chose the cached index, since its latency was below the budget. " * 1400
    for token in (TOKENS["AWS access key"], f"ey{'J'}{noise(40)}.{noise(3000)}.{noise(43)}"):
        redacted = shared_harness().clean_one(f"{prose[:at]} {token} {prose[at:]}")
        [rule] = redacted.found
        assert redacted.text == f"{prose[:at]} [REDACTED:{rule}] {prose[at:]}"


@requirement("redact:harness:long-texts")
@given(runs=st.lists(st.integers(0, 3 * RUN_BYTES_MAX), max_size=6))
def test_the_pieces_of_a_text_are_bounded_cover_it_and_overlap(runs: list[int]) -> None:
    text = b" ".join(b"x" * run for run in runs)
    ranges = list(pieces(text))
    assert (ranges[0][0], ranges[-1][1]) == (0, len(text))
    assert all(0 < end - start <= RUN_BYTES_MAX for start, end in ranges if text)
    assert all(start < following <= end - OVERLAP_BYTES for (start, end), (following, _) in pairwise(ranges))


@requirement("redact:harness:long-texts")
def test_a_token_is_not_cut_in_a_long_run_without_white_space() -> None:
    token = TOKENS["GitHub personal"]
    for at in range(RUN_BYTES_MAX - 60, RUN_BYTES_MAX + 20, 4):
        redacted = shared_harness().clean_one("," * at + token + "," * RUN_BYTES_MAX)
        assert re.fullmatch(r",+\[REDACTED:[^,]+\],+", redacted.text)


@requirement("redact:harness:many-texts")
def test_more_texts_than_one_scan_takes_are_all_cleaned() -> None:
    token = TOKENS["GitLab"]
    groups = [
        ["x" * 1000, f"n {index} {token if index % 7 == 0 else 'none'}"] for index in range(4 * SCAN_BYTES_MAX // 1000)
    ]
    cleaned = shared_harness().clean_groups(groups)
    assert [bool(group.found) for group in cleaned] == [index % 7 == 0 for index in range(len(groups))]
    assert not any(token in text for group in cleaned for text in group.texts)


@requirement("redact:harness:hostile")
@pytest.mark.parametrize(
    "unit",
    [
        'curl -H "Authorization: Bearer a1b2c3d4e5f6"\n',
        "AKIA" + "B" * 16 + " ",
        "ey" + "Jaaaaaaaaa.",
        "password is a1b2c3 ",
        "aa-",
        "pass",
        f"-----{'BEGIN'} PRIVATE KEY-----\n",
        "[REDACTED:",
        "<REDACTED:x>",
        "password for x ",
    ],
)
def test_a_text_made_of_almost_nothing_but_matches_does_not_take_its_length_squared(unit: str) -> None:
    """A square in the engine or an exponent in one of our own patterns would make this last for minutes."""
    text = f"password: {unit * (60_000 // len(unit))}!"
    assert shared_harness().clean_one(text).text


@requirement("redact:harness:settles")
def test_a_text_in_which_every_rewrite_brings_a_new_secret_is_dropped_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = copy.copy(shared_harness())
    monkeypatch.setattr(harness, "_detectors", (Insatiable(),))
    assert harness.clean_one("a") == (f"[REDACTED:{UNSETTLED}]", ("test.insatiable", UNSETTLED))


class Insatiable:
    """A detector to which all is a secret, the names of markers too."""

    rule_ids = frozenset({"test.insatiable"})

    def none_in(self, texts: bytes) -> bool:
        return False

    def spans(self, text: bytes) -> list[Span]:
        return [Span(0, len(text), "test.insatiable")]


@requirement("redact:ids:refused")
def test_an_id_that_holds_a_secret_is_named_with_its_rule_and_the_others_are_not() -> None:
    ids = ["agent-7", TOKENS["GitLab"], "550e8400-e29b-41d4-a716-446655440000", f"run:{TOKENS['AWS access key']}:1", ""]
    assert shared_harness().holds_secret(ids) == [
        None,
        "betterleaks.gitlab-pat",
        None,
        "fieldstone.aws-access-key-id",
        None,
    ]
    assert shared_harness().holds_secret([]) == []


@requirement("redact:ids:refused")
@given(ids=st.lists(TEXTS, max_size=6))
def test_an_id_holds_a_secret_exactly_when_cleaning_it_as_text_finds_one(ids: list[str]) -> None:
    harness = shared_harness()
    assert [rule is not None for rule in harness.holds_secret(ids)] == [
        bool(harness.clean_one(value).found) for value in ids
    ]


@requirement("redact:ids:no-false-alarm")
@pytest.mark.parametrize("alphabet", [HEX, ALNUM, ALNUM + "-_"])
def test_random_ids_of_usual_lengths_are_accepted(alphabet: str) -> None:
    ids = [noise(length, alphabet) for length in (8, 12, 16, 21, 22, 26, 32, 36, 40, 64) for _ in range(20)]
    assert shared_harness().holds_secret(ids) == [None] * len(ids)


@requirement("redact:harness:surrogates")
def test_a_lone_surrogate_is_the_callers_fault_and_is_said_so() -> None:
    with pytest.raises(UnicodeEncodeError):
        shared_harness().clean_one("a\ud800b")


@requirement("redact:harness:no-rule-cache")
def test_the_rules_load_where_the_cache_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KF_RULE_CACHE_DIR", "/dev/null/not-a-directory")
    assert Harness().clean_one(TOKENS["GitLab"]).found == ("betterleaks.gitlab-pat",)


def test_the_process_has_one_harness() -> None:
    assert shared_harness() is shared_harness()
