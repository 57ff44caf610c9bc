"""What is sealed opens with its key, in its place, and nowhere else."""

import base64
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.backends.sealing import KEY_BYTES, Sealer, key_from_file, key_from_text
from fieldstone.ports.access import WrongSealingKey

KEY = bytes(range(KEY_BYTES))
OTHER_KEY = bytes(KEY_BYTES)


@given(st.binary(), st.binary())
def test_what_is_sealed_opens_as_it_was(plain: bytes, context: bytes) -> None:
    assert Sealer(KEY).open(Sealer(KEY).seal(plain, context), context) == plain


def test_nothing_of_the_text_is_seen_and_no_sealing_is_like_another() -> None:
    sealer = Sealer(KEY)
    first, second = (sealer.seal(b"correct horse", b"acme/db") for _ in range(2))
    assert first != second
    assert b"correct" not in first


def test_another_key_opens_nothing_and_says_what_to_do() -> None:
    sealed = Sealer(KEY).seal(b"correct horse", b"acme/db")
    with pytest.raises(WrongSealingKey, match=r"Put back the secrets_key or the key file .* Nothing was changed"):
        Sealer(OTHER_KEY).open(sealed, b"acme/db")
    assert Sealer(KEY).open(sealed, b"acme/db") == b"correct horse"


def test_what_was_sealed_for_one_tenant_does_not_open_for_another() -> None:
    sealed = Sealer(KEY).seal(b"correct horse", b"acme/db")
    with pytest.raises(WrongSealingKey):
        Sealer(KEY).open(sealed, b"other/db")


@given(st.integers(min_value=0), st.integers(0, 7), st.integers(min_value=0))
def test_no_bit_of_it_can_be_changed_and_no_end_cut_off(place: int, bit: int, length: int) -> None:
    sealed = Sealer(KEY).seal(b"correct horse", b"acme/db")
    changed = bytearray(sealed)
    changed[place % len(sealed)] ^= 1 << bit
    for wrong in (bytes(changed), sealed[: length % len(sealed)], sealed + b"\0"):
        with pytest.raises(WrongSealingKey):
            Sealer(KEY).open(wrong, b"acme/db")


def test_a_key_of_the_settings_is_base64_of_32_bytes() -> None:
    assert key_from_text(base64.b64encode(KEY).decode()) == KEY


@pytest.mark.parametrize("text", ["", "short", base64.b64encode(bytes(31)).decode(), "é" * 44, "A" * 42 + "!="])
def test_any_other_text_is_refused_with_what_to_do_and_not_repeated(text: str) -> None:
    with pytest.raises(WrongSealingKey, match="openssl rand -base64 32") as refused:
        key_from_text(text)
    assert not text or text not in str(refused.value)


def test_a_key_file_is_made_at_first_need_for_its_owner_alone_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "field.db-access.key"
    key = key_from_file(path, make=True)
    assert len(key) == KEY_BYTES
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert key_from_file(path, make=True) == key_from_file(path, make=False) == key
    assert key_from_file(tmp_path / "other", make=True) != key
    assert {file.name for file in tmp_path.iterdir()} == {path.name, "other"}


def test_two_who_need_it_at_once_get_the_same_key(tmp_path: Path) -> None:
    keys: list[bytes] = []
    start = threading.Barrier(8)

    def need_it() -> None:
        start.wait()
        keys.append(key_from_file(tmp_path / "key", make=True))

    threads = [threading.Thread(target=need_it) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(keys) == 8
    assert len(set(keys)) == 1


def test_where_secrets_are_sealed_already_no_new_key_is_made(tmp_path: Path) -> None:
    path = tmp_path / "key"
    with pytest.raises(WrongSealingKey, match=r"their key is not there: .*Put the file back, or set secrets_key"):
        key_from_file(path, make=False)
    assert not path.exists()


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"not a key\n", base64.b64encode(bytes(33))])
def test_a_damaged_key_file_is_told_and_not_overwritten(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "key"
    path.write_bytes(content)
    with pytest.raises(WrongSealingKey, match="holds no key"):
        key_from_file(path, make=True)
    assert path.read_bytes() == content
