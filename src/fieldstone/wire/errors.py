"""The one table: error ↔ code ↔ HTTP status. Every transport speaks it."""

from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType

from fieldstone.core import errors
from fieldstone.core.errors import FieldError

HTTP_STATUS: Final[dict[type[FieldError], int]] = {
    errors.InvalidEnvelope: 400,
    errors.InvalidPayload: 400,
    errors.PayloadTooLarge: 413,
    errors.MissingIntent: 400,
    errors.MissingConfidence: 400,
    errors.InvalidConfidence: 400,
    errors.InvalidType: 400,
    errors.EpochOverflow: 400,
    errors.Unauthenticated: 401,
    errors.Forbidden: 403,
    errors.AgentNotRegistered: 403,
    errors.UnitNotFound: 404,
    errors.ConflictNotFound: 404,
    errors.ThreadNotFound: 404,
    errors.RunNotFound: 404,
    errors.UnknownStream: 404,
    errors.NotFound: 404,
    errors.MethodNotAllowed: 405,
    errors.AgentIdTaken: 409,
    errors.InvalidTransition: 409,
    errors.CompactionRunning: 409,
    errors.SeqConflict: 409,
    errors.UnitPurged: 410,
    errors.StreamCompacted: 410,
    errors.SecretLeakage: 422,
    errors.CompactionRedactionFailed: 422,
    errors.TokenBudgetExceeded: 422,
    errors.RateLimited: 429,
    errors.InternalError: 500,
    errors.UnsupportedOperation: 501,
    errors.ShuttingDown: 503,
    errors.EpochNotReached: 504,
    errors.StorageFull: 507,
}

EXTRAS: Final = ("tombstone", "compaction_id", "head", "floor", "details")
# Requests whose refusal is told in the words of their answer, too.
_REJECTING: Final = ("RECORD", "REGISTER")


class ErrorBody(Struct, frozen=True):
    code: str
    message: str
    operation: str | None
    recoverable: bool
    suggested_action: str
    status: str | UnsetType = UNSET
    rejection_reason: str | UnsetType = UNSET
    tombstone: Any = UNSET
    compaction_id: Any = UNSET
    head: Any = UNSET
    floor: Any = UNSET
    details: Any = UNSET


def error_body(error: FieldError, operation: str | None) -> ErrorBody:
    rejected = operation in _REJECTING
    return ErrorBody(
        code=error.code,
        message=error.message,
        operation=operation,
        recoverable=error.recoverable,
        suggested_action=error.suggested_action,
        status="rejected" if rejected else UNSET,
        rejection_reason=f"{error.code}: {error.message}" if rejected else UNSET,
        **error.extra,
    )


def http_status(error: FieldError) -> int:
    return HTTP_STATUS[type(error)]


def error_from(body: ErrorBody, status: int) -> FieldError:
    """The error that a server answered with, as the same class that it was there."""
    for kind, its_status in HTTP_STATUS.items():
        if kind.code == body.code and its_status == status:
            error = kind(body.message, suggested_action=body.suggested_action)
            error.extra = {name: value for name in EXTRAS if (value := getattr(body, name)) is not UNSET}
            return error
    return errors.InternalError(f"the server answered {status} {body.code}: {body.message}")
