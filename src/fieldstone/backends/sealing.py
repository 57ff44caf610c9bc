"""Secrets at rest: sealed by a key that lies elsewhere, or beside them in a file that only its owner reads."""

import base64
import binascii
import os
import secrets
from pathlib import Path
from typing import Final

from nacl.exceptions import CryptoError
from nacl.secret import Aead

from fieldstone.ports.access import WrongSealingKey

KEY_BYTES: Final = Aead.KEY_SIZE
OWNER_ONLY: Final = 0o600


class Sealer:
    """XChaCha20-Poly1305: a new random nonce for every sealing, and the context bound to it."""

    def __init__(self, key: bytes) -> None:
        self._box = Aead(key)

    def seal(self, plain: bytes, context: bytes) -> bytes:
        return bytes(self._box.encrypt(plain, context))

    def open(self, sealed: bytes, context: bytes) -> bytes:
        try:
            return self._box.decrypt(sealed, context)
        except (CryptoError, ValueError):  # a ValueError: too short to hold a nonce
            raise WrongSealingKey(
                "A registered secret cannot be opened: the sealing key is not the one it was sealed with, or the file "
                "was changed. Put back the secrets_key or the key file that was in use; or, if it is lost, register "
                "the secrets again. Nothing was changed."
            ) from None


def key_from_text(text: str) -> bytes:
    """The setting secrets_key: base64 of 32 bytes. No message repeats what was given."""
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise WrongSealingKey(
            f"secrets_key is not base64 of {KEY_BYTES} bytes. `openssl rand -base64 {KEY_BYTES}` makes one."
        )
    return key


def key_from_file(path: Path, *, make: bool) -> bytes:
    """The key of a file; with `make`, a new one where there is no file.

    Where secrets are sealed already a new key would open none of them, so it must not be made.
    """
    if make and not path.exists():
        _make_key_file(path)
    try:
        text = path.read_text(encoding="ascii")
    except FileNotFoundError:
        raise WrongSealingKey(
            f"Secrets are sealed, and their key is not there: {path}. Put the file back, or set secrets_key."
        ) from None
    except UnicodeDecodeError:
        text = ""
    try:
        return key_from_text(text.strip())
    except WrongSealingKey:
        raise WrongSealingKey(f"{path} holds no key. Put back the file that was there, or set secrets_key.") from None


def _make_key_file(path: Path) -> None:
    """Whole or not at all, and never over one that another process has just made."""
    unfinished = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY)
        with os.fdopen(descriptor, "wb") as file:
            file.write(base64.b64encode(secrets.token_bytes(KEY_BYTES)) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        _link(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def _link(unfinished: Path, path: Path) -> None:
    try:
        path.hardlink_to(unfinished)
    except FileExistsError:
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # else a power cut could take the name away, and every secret with it
    finally:
        os.close(folder)
