"""The hash chain: each entry's hash covers the one before; each text's hash is salted, and tells nothing alone."""

from hashlib import sha256


def link(previous: bytes, body: bytes) -> bytes:
    """The hash of an entry that stands after `previous`."""
    return sha256(previous + body).digest()


def seal(salt: bytes, body: bytes) -> str:
    """The hash of a text, as its entry holds it. With text and salt erased, it can be neither read nor guessed."""
    return sha256(salt + body).hexdigest()
