"""Snapshot tokens: a run shows when it began, and sees what was there then.

A token says where the log stood, and has an id of its own for the run. It is sealed, so that nobody can make up a run
that was never begun, or read another tenant's log with it.
"""

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from hashlib import blake2b
from typing import Final

from fieldstone.core.errors import InvalidPayload
from fieldstone.field.entries import Moment

RUN_BYTES: Final = 8
SEQ_BYTES: Final = 8
SEAL_BYTES: Final = 16
TOKEN_CHARS: Final = 44
_PERSON: Final = b"openwop snapshot"


def token(moment: Moment, key: bytes) -> str:
    body = moment.seq.to_bytes(SEQ_BYTES, "big") + bytes.fromhex(moment.run)
    return urlsafe_b64encode(body + _seal(body, key)).decode()


def moment_of(given: str, key: bytes) -> Moment:
    """Raises `InvalidPayload` for what this field never gave out."""
    try:
        raw = urlsafe_b64decode(given.encode()) if len(given) == TOKEN_CHARS else b""
    except (NotBase64, ValueError):
        raw = b""
    if urlsafe_b64encode(raw).decode() != given:  # the last letter has bits that nothing decodes
        raw = b""
    body, seal = raw[:-SEAL_BYTES], raw[-SEAL_BYTES:]
    if len(body) != SEQ_BYTES + RUN_BYTES or not hmac.compare_digest(seal, _seal(body, key)):
        raise InvalidPayload("snapshot is none that a list of this host returned.")
    return Moment(int.from_bytes(body[:SEQ_BYTES], "big"), body[SEQ_BYTES:].hex())


def _seal(body: bytes, key: bytes) -> bytes:
    return blake2b(body, key=key, digest_size=SEAL_BYTES, person=_PERSON).digest()
