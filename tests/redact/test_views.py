"""Every reading of a text knows where its bytes came from."""

from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.redact import KnownSecret, shared_harness
from fieldstone.redact.encodings import from_base64, from_hex, inflated, readable
from fieldstone.redact.escapes import rearranged, unescaped
from fieldstone.redact.known import UNSEARCHABLE
from fieldstone.redact.lookalikes import canonical
from fieldstone.redact.readings import readings, squeezed
from fieldstone.redact.views import View, whole
from tests.redact.fakes import noise

TEXTS = st.text(st.sampled_from("aB3 -=%&\\#x;uéаＡß日👩\u200b\u0301\n<b>"), max_size=60).map(str.encode)


def in_plain_letters(view: View) -> Iterator[View]:
    yield canonical(view)


def without_escapes(view: View) -> Iterator[View]:
    yield from unescaped(view)
    yield from rearranged(view)


def out_of_base64(view: View) -> Iterator[View]:
    return from_base64(view, in_a_run=True)


def backwards_and_squeezed(view: View) -> Iterator[View]:
    yield view.backwards().kept(None, b" -=%")


READERS = (in_plain_letters, without_escapes, out_of_base64, from_hex, backwards_and_squeezed)


@given(text=TEXTS, reader=st.sampled_from(READERS), other=st.sampled_from(READERS))
def test_every_byte_of_a_view_comes_from_a_range_of_the_text(
    text: bytes, reader: Callable[[View], Iterator[View]], other: Callable[[View], Iterator[View]]
) -> None:
    for view in reader(whole(text)):
        for deeper in (view, *other(view)):
            for at in range(len(deeper.data)):
                start, end = deeper.origin(at, at + 1)
                assert 0 <= start < end <= len(text)
            if deeper.data:
                start, end = deeper.origin(0, len(deeper.data))
                assert 0 <= start < end <= len(text)


@given(text=TEXTS)
def test_the_place_of_a_letter_holds_that_letter_or_its_like(text: bytes) -> None:
    plain = canonical(whole(text))
    for at in range(len(plain.data)):
        start, end = plain.origin(at, at + 1)
        assert plain.data[at : at + 1] in canonical(whole(text[start:end])).data or not plain.data.isascii()


@given(text=TEXTS)
def test_the_text_itself_is_the_first_thing_that_is_read_of_it(text: bytes) -> None:
    letters = [reading.letters for reading in readings(text) if not reading.view.depth and not reading.is_noise]
    assert squeezed(canonical(whole(text)).data) in letters


def test_readable_parts_of_noise_are_put_together_and_each_leads_back() -> None:
    data = b"\0\xff\xfe" + b"a readable sentence" + b"\0\x81\x82" + "ein größerer Satz".encode() + b"\xff"
    [view] = readable(whole(data), in_a_run=True)
    assert view.data.split(b"\n") == [b"", b"a readable sentence", "ein größerer Satz".encode()]
    start = view.data.index(b"gr")
    assert data[slice(*view.origin(start, start + 2))] == b"gr"


def test_bytes_that_only_begin_like_compressed_ones_give_nothing() -> None:
    assert not list(inflated(whole(b"\x1f\x8b\x08 not gzip, x\x9c not zlib")))


def test_a_text_that_takes_too_much_reading_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = shared_harness().knowing([KnownSecret("any", noise(20))])
    text = "It is %26%2335%3b and &lt;b&gt;, or so."
    assert harness.clean_one(text) == (text, ())
    monkeypatch.setattr("fieldstone.redact.readings.READ_BYTES_MIN", 0)
    monkeypatch.setattr("fieldstone.redact.readings.READ_TIMES_MAX", 2)
    assert harness.knowing([KnownSecret("any", noise(20))]).clean_one(text).found == (UNSEARCHABLE,)
