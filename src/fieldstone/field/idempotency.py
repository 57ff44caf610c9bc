"""What is kept of a message for comparing it with the next one of the same id: keyed digests, nothing readable."""

from hashlib import blake2b

from msgspec import Struct, json

from fieldstone.core.errors import InvalidEnvelope
from fieldstone.core.requests import Message
from fieldstone.core.vocabulary import Operation

_encoder = json.Encoder()


class Fingerprint(Struct, frozen=True, gc=False):
    key: bytes
    request: bytes
    operation: Operation


def used_before() -> InvalidEnvelope:
    return InvalidEnvelope(
        "id was used before, for another request.", suggested_action="Send it under an id of its own."
    )


class Fingerprints:
    def __init__(self, digest_key: bytes) -> None:
        self._keyed = blake2b(key=digest_key, digest_size=16)  # the key is worked in once, not for every message

    def of(self, message: Message) -> Fingerprint | None:
        """None where the message has no id of its own: it cannot come again."""
        if message.id is None:
            return None
        # Only whoever asked gets the answer again: the same message of another credential is another message.
        sender = "" if message.caller.credential is None else f"{message.caller.credential}\0"
        key, request = self._keyed.copy(), self._keyed.copy()
        key.update(f"{sender}{message.agent_id}\0{message.id}".encode())
        request.update(_encoder.encode((message.operation, message.session_id, message.request)))
        return Fingerprint(key.digest(), request.digest(), message.operation)
