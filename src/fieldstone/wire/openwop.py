"""Errors in OpenWOP's envelope: `{error, message, details?}` and nothing else."""

from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType

from fieldstone.core import errors
from fieldstone.core.errors import FieldError
from fieldstone.wire.errors import HTTP_STATUS

# Those whose name there is not our code in small letters.
_NAMES: Final[dict[type[FieldError], str]] = {
    errors.InvalidEnvelope: "validation_error",
    errors.InvalidPayload: "validation_error",
    errors.PayloadTooLarge: "validation_error",
    errors.UnitNotFound: "not_found",
}


class OpenWopError(Struct, frozen=True):
    error: str
    message: str
    details: Any | UnsetType = UNSET


def openwop_error(error: FieldError) -> OpenWopError:
    name = _NAMES.get(type(error), error.code.lower())
    return OpenWopError(name, error.message, error.extra.get("details", UNSET))


def openwop_status(error: FieldError) -> int:
    return HTTP_STATUS[type(error)]


def error_from_openwop(body: OpenWopError, status: int) -> FieldError:
    """The error that a server answered with, as the same class that it was there."""
    for kind, its_status in HTTP_STATUS.items():
        if its_status == status and _NAMES.get(kind, kind.code.lower()) == body.error:
            return kind(body.message)
    return errors.InternalError(f"the server answered {status} {body.error}: {body.message}")
