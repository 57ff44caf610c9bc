"""With which characters a match of a pattern begins."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kingfisher_sdk.rules import Rules

from fieldstone.redact.prefixes import PREFIXES_MAX, literal_prefixes


@pytest.mark.parametrize(
    ("pattern", "prefixes"),
    [
        (r"\bghx_[A-Za-z0-9]{36}\b", {"ghx_"}),
        (r"(?:live|test)_[a-z]+", {"live_", "test_"}),
        (r"k(?P<kind>ey|ept)-\d{4}", {"key-", "kept-"}),
        (r"xo[bp]-\w+", {"xob-", "xop-"}),
        (r"a{3}b", {"aaab"}),
        (r"a{9}b", {""}),
        (r"ab?c", {"ac", "abc"}),
        (r"ab{0,1}c", {"ac", "abc"}),
        (r"(?i)sgx\.", {"sgx.", "SGX."}),
        (r"(?<![a-z])(?=k)key\x2dX\z", {"key-X"}),
        (r"pat[[:alnum:]]{14}", {"pat"}),
        (r"[^\s]x|q[]x]", {"", "q]", "qx"}),
        (r".*key", {""}),
    ],
)
def test_what_a_pattern_says_one_by_one_is_what_its_matches_begin_with(pattern: str, prefixes: set[str]) -> None:
    assert literal_prefixes(pattern) == prefixes


REPEATS = st.sampled_from(["?", "{2}", "+", "*", "{0,1}", "{1,3}"])
PATTERNS = st.recursive(
    st.sampled_from(["a", "b-", r"\.", "[xy]", "[a-c]", r"\d", ".", "^", r"\b"]),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda each: f"(?:{'|'.join(each)})"),
        st.builds("(?:{}){}".format, inner, REPEATS),
    ),
    max_leaves=6,
)


@given(pattern=PATTERNS, text=st.text("abcxy-.1", max_size=8))
def test_every_match_begins_with_one_of_them(pattern: str, text: str) -> None:
    found = re.match(pattern, text)
    if found and len(prefixes := literal_prefixes(pattern)) <= PREFIXES_MAX:
        assert found[0].startswith(tuple(prefixes))


def test_every_rule_of_the_catalogue_can_be_read() -> None:
    rules = Rules()
    patterns = [str(rules.detail(str(rule["id"]))["detection_regex"]) for rule in rules.metadata()]
    assert len(set[str]().union(*map(literal_prefixes, patterns))) > len(patterns) // 2
