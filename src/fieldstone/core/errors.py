"""Every refusal of the Field. The class docstring is the default message; `suggested_action` says what to do.

    FieldError
    ├── InvalidEnvelope          the message itself
    ├── InvalidPayload           what it carries
    │   └── PayloadTooLarge
    ├── MissingIntent, MissingConfidence, InvalidConfidence, InvalidType
    ├── AgentNotRegistered, AgentIdTaken
    ├── UnitNotFound, UnitPurged, ConflictNotFound, InvalidTransition, CompactionRunning
    ├── ThreadNotFound, RunNotFound, UnknownStream, SeqConflict, StreamCompacted
    ├── Forbidden, Unauthenticated, RateLimited
    ├── SecretLeakage, CompactionRedactionFailed, TokenBudgetExceeded
    ├── EpochOverflow, EpochNotReached
    ├── UnsupportedOperation, NotFound, MethodNotAllowed
    └── StorageFull, ShuttingDown, InternalError

The HTTP status of each code stands in `wire/errors.py`, the one table for all transports.
"""

from collections.abc import Mapping
from copy import copy
from types import MappingProxyType
from typing import ClassVar


class FieldError(Exception):
    """The Field refused the request."""

    code: ClassVar[str] = "INTERNAL_ERROR"
    recoverable: ClassVar[bool] = True
    suggested_action: str = "Correct the request and send it again."

    extra: Mapping[str, object] = MappingProxyType({})  # fields of the body beside the usual ones

    def __init__(
        self,
        message: str | None = None,
        *,
        suggested_action: str | None = None,
        extra: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message or _first_line(type(self)))
        if suggested_action is not None:
            self.suggested_action = suggested_action
        if extra is not None:
            self.extra = extra

    @property
    def message(self) -> str:
        return str(self.args[0])

    def __str__(self) -> str:
        """What a traceback shows: what is wrong, and what to do. Over the wire the two are fields of their own."""
        return f"{self.message} {self.suggested_action}"


class InvalidEnvelope(FieldError):
    """The envelope is malformed."""

    code = "INVALID_ENVELOPE"
    suggested_action = (
        "Send protocol, version, id, operation, agent_id, session_id, epoch and payload, and nothing else."
    )


class InvalidPayload(FieldError):
    """The payload is malformed."""

    code = "INVALID_PAYLOAD"
    suggested_action = "Correct the named field and send the request again."


class PayloadTooLarge(InvalidPayload):
    """The request body is larger than the server accepts."""

    suggested_action = "Split the request, or record less at once."


class MissingIntent(FieldError):
    """Every memory needs a reason: intent.purpose is missing or blank."""

    code = "MISSING_INTENT"
    suggested_action = "Resubmit with intent.purpose: why you record this."


class MissingConfidence(FieldError):
    """A committed unit needs confidence.score and confidence.reasoning."""

    code = "MISSING_CONFIDENCE"
    suggested_action = "Resubmit with confidence {score, reasoning}, or record it as a draft."


class InvalidConfidence(FieldError):
    """confidence.score must be a number from 0.0 to 1.0."""

    code = "INVALID_CONFIDENCE"
    suggested_action = "Resubmit with a score from 0.0 to 1.0."


class InvalidType(FieldError):
    """The memory type is not one that this Field knows."""

    code = "INVALID_TYPE"
    suggested_action = "Use one of the Field's memory types."


class AgentNotRegistered(FieldError):
    """agent_id is not a registered, active agent."""

    code = "AGENT_NOT_REGISTERED"
    suggested_action = "Call REGISTER first."


class AgentIdTaken(FieldError):
    """Another active agent has this id."""

    code = "AGENT_ID_TAKEN"
    suggested_action = "Choose another id, or DEREGISTER the agent that holds it."


class ConflictNotFound(FieldError):
    """There is no such conflict."""

    code = "CONFLICT_NOT_FOUND"
    recoverable = False
    suggested_action = "List the conflicts with DETECT."


class UnitNotFound(FieldError):
    """There is no such memory unit."""

    code = "UNIT_NOT_FOUND"
    recoverable = False
    suggested_action = "Use the memory_unit_id that RECORD or ATTUNE returned."


class UnitPurged(FieldError):
    """The memory unit was purged. Only its tombstone is left."""

    code = "UNIT_PURGED"
    recoverable = False
    suggested_action = "It is gone for good: the tombstone says when, and why."


class CompactionRunning(FieldError):
    """Another compaction of this Field is under way."""

    code = "COMPACTION_RUNNING"
    suggested_action = "Wait for its end, or cancel it: DELETE /v1/compactions/{id}."


class ThreadNotFound(FieldError):
    """There is no such thread, or it was deleted."""

    code = "THREAD_NOT_FOUND"
    suggested_action = "List the threads; the first run of a new thread makes it."


class RunNotFound(FieldError):
    """There is no such run in this thread."""

    code = "RUN_NOT_FOUND"
    suggested_action = "List the thread's runs."


class UnknownStream(FieldError):
    """There is no such stream."""

    code = "UNKNOWN_STREAM"
    suggested_action = "Append to it first, or check its id."


class SeqConflict(FieldError):
    """The stream's head is not where the request expects it."""

    code = "SEQ_CONFLICT"
    suggested_action = "Read what came since, and append with the head that this answer tells."


class StreamCompacted(FieldError):
    """Events up to the stream's floor are gone: a snapshot stands for them."""

    code = "COMPACTED"
    suggested_action = "Load the snapshot and read on after its lastSeq, or read after the floor."


class InvalidTransition(FieldError):
    """What it is now does not allow this step."""

    code = "INVALID_TRANSITION"
    suggested_action = "Read its present status and choose a step that the status allows."


class Forbidden(FieldError):
    """The agent's authority or authorship does not allow this."""

    code = "FORBIDDEN"
    suggested_action = "Ask an agent with the authority for it."


class Unauthenticated(FieldError):
    """The request carries no valid credential."""

    code = "UNAUTHENTICATED"
    suggested_action = "Send a valid key: Authorization: Bearer KEY; FIELDSTONE_KEY for commands, key= in Python."


class RateLimited(FieldError):
    """The credential has used up its rate or its quota."""

    code = "RATE_LIMITED"
    suggested_action = "Wait as long as Retry-After says, or ask the operator for more."
    retry_after_s: float | None = None

    def __init__(
        self, message: str | None = None, *, suggested_action: str | None = None, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message, suggested_action=suggested_action)
        self.retry_after_s = retry_after_s


class SecretLeakage(FieldError):
    """An id or text holds what looks like a secret."""

    code = "SECRET_LEAKAGE"
    suggested_action = "Remove the secret and send the request again; if it was real, revoke it."


class CompactionRedactionFailed(FieldError):
    """What was to be kept in fewer words holds a secret, and the policy is to refuse."""

    code = "COMPACTION_REDACTION_FAILED"
    suggested_action = "Sweep the store for the secret, or let the tenant's policy rewrite."


class TokenBudgetExceeded(FieldError):
    """The token budget is smaller than what the sources and the shortest output need."""

    code = "TOKEN_BUDGET_EXCEEDED"
    suggested_action = "Give at least the tokens that minimumRequired says, or fewer sources."


class UnsupportedOperation(FieldError):
    """This Field does not support the operation."""

    code = "UNSUPPORTED_OPERATION"
    recoverable = False
    suggested_action = "Use an operation from field_capabilities.supported_operations."


class EpochOverflow(FieldError):
    """The epoch is too far ahead of the Field's clock."""

    code = "EPOCH_OVERFLOW"
    recoverable = False
    suggested_action = "Send the epoch of the Field's last answer."


class EpochNotReached(FieldError):
    """The Field did not reach min_epoch in time."""

    code = "EPOCH_NOT_REACHED"
    suggested_action = "Ask again, or without min_epoch."


class StorageFull(FieldError):
    """The store has no room: nothing of this request was written."""

    code = "STORAGE_FULL"
    recoverable = False
    suggested_action = "Free disk space or raise max_bytes, then send the request again. Reads go on."


class NotFound(FieldError):
    """There is nothing at this address."""

    code = "NOT_FOUND"
    suggested_action = "See /v1/openapi.json for the routes."


class MethodNotAllowed(FieldError):
    """This address does not take that HTTP method."""

    code = "METHOD_NOT_ALLOWED"
    suggested_action = "See /v1/openapi.json for the routes."


class ShuttingDown(FieldError):
    """The server is shutting down and takes no new requests."""

    code = "SHUTTING_DOWN"
    suggested_action = "Send the request again in a moment."


class InternalError(FieldError):
    """Something broke inside the Field; the server's log has the details."""

    code = "INTERNAL_ERROR"
    recoverable = False
    suggested_action = "Report it to the operator."


def with_message(error: FieldError, message: str) -> FieldError:
    """The same error in other words; itself where they are the same."""
    if message == error.message:
        return error
    reworded = copy(error)
    reworded.args = (message,)
    return reworded


def _first_line(kind: type[FieldError]) -> str:
    return (kind.__doc__ or "").strip().splitlines()[0]
