"""The hash chain."""

from hypothesis import given
from hypothesis import strategies as st

from fieldstone.core.chain import link, seal

bodies = st.lists(st.binary(max_size=30), min_size=1, max_size=8)


def chained(entries: list[bytes]) -> list[bytes]:
    hashes = [bytes(32)]
    for body in entries:
        hashes.append(link(hashes[-1], body))
    return hashes[1:]


@given(entries=bodies, at=st.integers(0, 7), changed=st.binary(max_size=30))
def test_a_changed_entry_changes_its_hash_and_every_later_one(entries: list[bytes], at: int, changed: bytes) -> None:
    at %= len(entries)
    other = [*entries[:at], changed, *entries[at + 1 :]]
    before, after = chained(entries), chained(other)
    assert before[:at] == after[:at]
    if changed != entries[at]:
        assert all(one != two for one, two in zip(before[at:], after[at:], strict=True))


@given(entries=bodies, at=st.integers(0, 7))
def test_a_missing_entry_changes_what_comes_after_it(entries: list[bytes], at: int) -> None:
    at %= len(entries)
    without = [*entries[:at], *entries[at + 1 :]]
    assert chained(without)[-1:] != chained(entries)[-1:]


def test_two_entries_in_another_order_give_another_head() -> None:
    assert chained([b"a", b"b"])[-1] != chained([b"b", b"a"])[-1]


@given(salt=st.binary(min_size=16, max_size=16), other=st.binary(min_size=16, max_size=16), body=st.binary(max_size=40))
def test_a_seal_fits_its_text_and_salt_alone(salt: bytes, other: bytes, body: bytes) -> None:
    assert seal(salt, body) == seal(salt, body)
    assert (seal(salt, body) == seal(other, body)) == (salt == other)
    assert seal(salt, body) != seal(salt, body + b"x")
    assert len(seal(salt, body)) == 64
