"""What is decoded from digits and base64, and where noise is read as text."""

from base64 import b64decode, b64encode

from hypothesis import given
from hypothesis import strategies as st

from fieldstone.redact.encodings import ALIGNMENTS, NOISE_MIN, READABLE_MIN, from_base64, from_hex, readable
from fieldstone.redact.views import whole

VALUE = b"Kd7-mw2_Rx9.pq"
LETTERS = st.text("ABCxyz019+/", min_size=11, max_size=80).map(str.encode)
CHARACTERS = st.sampled_from(["a", "\N{LATIN SMALL LETTER E WITH ACUTE}", "\N{CJK UNIFIED IDEOGRAPH-5B57}", "\N{KEY}"])


@given(letters=LETTERS)
def test_base64_is_decoded_from_each_of_its_first_four_letters(letters: bytes) -> None:
    [decoded] = from_base64(whole(letters), in_a_run=False)
    size = len(decoded.data) // ALIGNMENTS
    for skipped in range(ALIGNMENTS):
        groups = letters[skipped:][: (len(letters) - skipped) // 4 * 4]
        assert decoded.data[skipped * size :].startswith(b64decode(groups))


@given(before=st.text("0123456789abcdef", max_size=20), between=st.sampled_from(["", " ", ":", "  \n  ", " - "]))
def test_digits_are_decoded_however_they_are_separated_and_lead_back_to_where_they_stand(
    before: str, between: str
) -> None:
    digits = between.join(VALUE.hex())
    text = f"see {before} , {digits} there".encode()
    [view] = [view for view in from_hex(whole(text)) if VALUE in view.data]
    at = view.data.index(VALUE)
    start, end = view.origin(at, at + len(VALUE))
    assert text[start:end] == digits.encode()


@given(
    characters=st.lists(CHARACTERS, max_size=20),
    before=st.binary(max_size=8),
    after=st.sampled_from([b"\xff", b"\xff" * NOISE_MIN]),
)
def test_whole_characters_are_read_out_of_noise_if_they_are_many_in_a_row(
    characters: list[str], before: bytes, after: bytes
) -> None:
    text = "".join(characters).encode()
    read = b"".join(view.data for view in readable(whole(before + b"\0" + text + after), in_a_run=True))
    assert (text in read) == (len(text) >= READABLE_MIN) or not text


def test_a_secret_in_base64_leads_back_to_its_letters() -> None:
    text = b"It was " + b64encode(b"key " + VALUE) + b", they say."
    views = [view for view in from_base64(whole(text), in_a_run=True) if VALUE in view.data]
    for view in views:
        at = view.data.index(VALUE)
        start, end = view.origin(at, at + len(VALUE))
        assert b64encode(b"key " + VALUE)[5:] in text[start : end + 2]
    assert views
