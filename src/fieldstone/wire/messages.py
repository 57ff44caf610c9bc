"""Envelopes and payloads: bytes → typed message, typed message → bytes."""

import math
import re
from collections.abc import Mapping
from typing import Any, Final, NoReturn, get_args

import msgspec
from msgspec import Raw, Struct, json

from fieldstone.core.access import LOCAL, Caller
from fieldstone.core.errors import (
    EpochOverflow,
    FieldError,
    InvalidConfidence,
    InvalidEnvelope,
    InvalidPayload,
    InvalidType,
    UnsupportedOperation,
)
from fieldstone.core.limits import MAX_EPOCH
from fieldstone.core.requests import REQUESTS, Attune, Commit, Message, Record, Request
from fieldstone.core.validate import Rules, check_message
from fieldstone.core.vocabulary import MEMORY_TYPES, Operation
from fieldstone.wire.allowed import allowed_values, field_names

PROTOCOL: Final = "akashik"
VERSION: Final = "0.1.0"
OPERATIONS: Final[tuple[Operation, ...]] = get_args(Operation)


class Envelope(Struct, frozen=True, forbid_unknown_fields=True):
    protocol: str
    version: str
    id: str
    operation: str
    agent_id: str
    session_id: str | None
    epoch: int
    payload: Raw


_encoder = json.Encoder()
_envelopes = json.Decoder(Envelope)
_payloads: Final[dict[str, json.Decoder[Request]]] = {name: json.Decoder(kind) for name, kind in REQUESTS.items()}

# Where a wrong type has a code of its own.
_CODED_PATHS: Final[dict[tuple[str, str], type[FieldError]]] = {
    ("RECORD", "$.type"): InvalidType,
    ("RECORD", "$.confidence.score"): InvalidConfidence,
    ("COMMIT", "$.confidence.score"): InvalidConfidence,
}
_AT = re.compile(r"(?P<what>.*) - at `(?P<path>[^`]*)`", re.DOTALL)
_PLACES = re.compile(r"\[(?:[0-9]+|\.\.\.)\]")  # of an item in a list
_UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(?P<name>.*)`", re.DOTALL)
_SAFE_SENTENCES = re.compile(r"(Expected `[a-z0-9 |,]+`, got `[a-z]+`)|(Object missing required field `[a-z_]+`)")
_PLAIN_NAME = re.compile(r"[a-z]{1,12}(_[a-z]{0,12}){0,3}")  # words; what is longer may be anything


class BadMessage(Exception):
    """A message that could not be decoded, with the operation it named, if it came that far."""

    def __init__(self, error: FieldError, operation: str | None = None) -> None:
        super().__init__(error.message)
        self.error = error
        self.operation = operation


def decode_message(body: bytes, expected: Operation | None = None, caller: Caller = LOCAL) -> Message:
    """`expected`: the operation that the route stands for. Raises `BadMessage`."""
    envelope = _decode_envelope(body)
    try:
        return _open(envelope, expected, caller)
    except FieldError as error:
        raise BadMessage(error, envelope.operation if envelope.operation in OPERATIONS else None) from error


def encode_message(message: Message, message_id: str) -> bytes:
    """What JSON cannot carry (NaN, half of a surrogate pair) is refused here, in the Field's words."""
    if _has_no_number(message.request):
        _refuse_unsendable(message)
    try:
        return _encode(message, message_id)
    except UnicodeEncodeError:
        _refuse_unsendable(message)


def _encode(message: Message, message_id: str) -> bytes:
    return _encoder.encode(
        {
            "protocol": PROTOCOL,
            "version": VERSION,
            "id": message_id,
            "operation": message.operation,
            "agent_id": message.agent_id,
            "session_id": message.session_id,
            "epoch": message.epoch,
            "payload": message.request,
        }
    )


def request_from(operation: Operation, fields: Mapping[str, Any]) -> Request:
    """A request from Python values, with the same refusals as from bytes."""
    try:
        return msgspec.convert(fields, REQUESTS[operation])
    except msgspec.ValidationError as error:
        _refuse_payload(operation, str(error))


def _has_no_number(request: Request) -> bool:
    numbers: list[float | None] = []
    if isinstance(request, Record | Commit) and request.confidence is not None:
        numbers.append(request.confidence.score)
    if isinstance(request, Attune):
        numbers += [request.scope.relevance_threshold, request.scope.recency_weight]
    return any(number is not None and not math.isfinite(number) for number in numbers)


def _refuse_unsendable(message: Message) -> NoReturn:
    types = frozenset((*MEMORY_TYPES, message.request.type)) if isinstance(message.request, Record) else frozenset()
    check_message(message, Rules(memory_types=types))
    raise InvalidPayload("The request holds a value that JSON cannot carry.")


def _decode_envelope(body: bytes) -> Envelope:
    try:
        envelope = _envelopes.decode(body)
    except RecursionError:
        raise BadMessage(InvalidEnvelope("The message is nested too deeply.")) from None
    except msgspec.ValidationError as error:
        raise BadMessage(InvalidEnvelope(f"The envelope is malformed: {told(str(error), Envelope)}.")) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadMessage(InvalidEnvelope("The message is not valid JSON in UTF-8.")) from error
    return envelope


def _open(envelope: Envelope, expected: Operation | None, caller: Caller) -> Message:
    if envelope.protocol != PROTOCOL:
        raise InvalidEnvelope(f"protocol must be {PROTOCOL!r}.")
    if envelope.version != VERSION:
        raise InvalidEnvelope(f"version must be {VERSION!r}: no other one is supported.")
    if not envelope.id:
        raise InvalidEnvelope("id must not be empty.")
    operation = _operation(envelope.operation)
    if expected is not None and operation != expected:
        raise InvalidEnvelope(f"operation must be {expected} on this route.")
    if envelope.epoch < 0:
        raise InvalidEnvelope("epoch must not be negative.")
    if envelope.epoch > MAX_EPOCH:
        raise EpochOverflow("epoch is beyond 2^53-1.")
    payload = bytes(envelope.payload)
    if not payload.lstrip().startswith(b"{"):
        raise InvalidEnvelope("payload must be an object.")
    return Message(
        operation,
        envelope.agent_id,
        _decode_payload(operation, payload),
        envelope.session_id,
        envelope.epoch,
        envelope.id,
        caller,
    )


def _operation(name: str) -> Operation:
    for operation in OPERATIONS:
        if operation == name:
            return operation
    raise InvalidEnvelope(f"operation must be one of: {', '.join(OPERATIONS)}.")


def _decode_payload(operation: Operation, payload: bytes) -> Request:
    decoder = _payloads.get(operation)
    if decoder is None:
        raise UnsupportedOperation(f"{operation} is not built yet.")
    try:
        return decoder.decode(payload)
    except RecursionError:
        raise InvalidPayload("The payload is nested too deeply.") from None
    except msgspec.ValidationError as error:
        _refuse_payload(operation, str(error))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidPayload("The payload holds a text that is not valid Unicode.") from error


def _refuse_payload(operation: Operation, problem: str) -> NoReturn:
    kind = REQUESTS[operation]
    _, path = _split(problem, kind)
    refusal = _CODED_PATHS.get((operation, path))
    if refusal is not None:
        raise refusal
    raise InvalidPayload(f"The payload is malformed: {told(problem, kind)}.")


def told(problem: str, kind: Any) -> str:
    """The sentence of a decoder of `kind`, without what the caller wrote: it may be anything, a secret included."""
    what, path = _split(problem, kind)
    unknown = _UNKNOWN_FIELD.fullmatch(what)
    if unknown:
        name = unknown["name"] if _PLAIN_NAME.fullmatch(unknown["name"]) else "…"
        what = f"Object contains unknown field `{name}`"
    elif what.startswith("Invalid enum value"):
        allowed = allowed_values(kind, path)
        what = f"not one of {', '.join(allowed)}" if allowed else "not one of the allowed values"
    elif what.startswith("Invalid RFC3339"):
        what = "not a time such as 2027-01-31T00:00:00Z"
    elif not _SAFE_SENTENCES.fullmatch(what):
        what = "not what is expected"
    return what if path == "$" else f"{what} - at `{path}`"


def _split(problem: str, kind: Any) -> tuple[str, str]:
    """What is wrong, and where: a path of fields that we know, or `$`."""
    found = _AT.fullmatch(problem)
    if found and all(name in field_names(kind) for name in _PLACES.sub("", found["path"]).split(".")):
        return found["what"], found["path"]
    return problem, "$"
