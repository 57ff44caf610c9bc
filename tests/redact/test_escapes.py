"""What escapes stand for, and when there are none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.redact.escapes import rearranged, unescaped
from fieldstone.redact.views import whole

WRITTEN = {"%41": "A", "\\x42": "B", "&#67;": "C", "=44": "D", "\\u0045": "E", "&amp;": "&", "%20": " "}


@given(parts=st.lists(st.sampled_from([*WRITTEN, "x-y", "="]), min_size=1, max_size=8))
def test_escapes_of_several_kinds_are_resolved_at_once(parts: list[str]) -> None:
    text = ".".join([*parts, "%41"])
    meant = ".".join([*(WRITTEN.get(part, part) for part in parts), "A"])
    assert meant.encode() in [view.data for view in unescaped(whole(text.encode()))]


@pytest.mark.parametrize("text", ["x = 0xFFFF00", "a &# b", "key=value; other=value", "5 % of it", "C:\\dir"])
def test_what_only_begins_like_an_escape_is_not_read_a_second_time(text: str) -> None:
    assert not [*unescaped(whole(text.encode())), *rearranged(whole(text.encode()))]


@pytest.mark.parametrize("between", ["", " ", ", "])
def test_numbers_of_bytes_are_read_however_they_are_separated(between: str) -> None:
    text = between.join(f"0x{byte:02x}" for byte in b"Kd7.mw2")
    assert [view.data.replace(b" ", b"") for view in unescaped(whole(text.encode()))] == [b"Kd7.mw2"]


@pytest.mark.parametrize("sign", ["=", "%"])
def test_escapes_that_were_spaced_or_turned_around_are_resolved(sign: str) -> None:
    written = "".join(f"{sign}{byte:02X}" for byte in b"Kd7mw2")
    for text in (" ".join(written), written[::-1]):
        assert b"Kd7mw2" in [view.data for view in rearranged(whole(text.encode()))]
