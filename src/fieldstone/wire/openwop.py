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
# Of several with one name, what a caller here can do something with.
_FIRST: Final[tuple[type[FieldError], ...]] = (errors.InvalidPayload, errors.NotFound)


class OpenWopError(Struct, frozen=True):
    error: str
    message: str
    details: Any | UnsetType = UNSET


def openwop_error(error: FieldError) -> OpenWopError:
    return OpenWopError(_name(type(error)), error.message, error.extra.get("details", UNSET))


def error_from_openwop(body: OpenWopError, status: int) -> FieldError:
    """The error that a server answered with, as the same class that it was there."""
    for kind in (*_FIRST, *HTTP_STATUS):
        if HTTP_STATUS[kind] == status and _name(kind) == body.error:
            return kind(body.message)
    return errors.InternalError(f"the server answered {status} {body.error}: {body.message}")


def _name(kind: type[FieldError]) -> str:
    return _NAMES.get(kind, kind.code.lower())
