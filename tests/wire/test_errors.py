"""The one table: error ↔ code ↔ HTTP status."""

import pytest
from msgspec import json

from fieldstone.core import errors
from fieldstone.core.errors import FieldError
from fieldstone.wire.errors import HTTP_STATUS, ErrorBody, error_body, error_from, http_status
from fieldstone.wire.messages import OPERATIONS
from fieldstone.wire.operations import OPERATION_ROUTES
from tests.requirements import requirement

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, FieldError)][1:]

# §7 of the contract, word for word where it names a code, by its class where it names a kind.
STATUS = {
    400: {
        "INVALID_ENVELOPE",
        "INVALID_PAYLOAD",
        "MISSING_INTENT",
        "MISSING_CONFIDENCE",
        "INVALID_CONFIDENCE",
        "INVALID_TYPE",
        "EPOCH_OVERFLOW",
    },
    401: {"UNAUTHENTICATED"},
    403: {"FORBIDDEN", "AGENT_NOT_REGISTERED"},
    404: {
        "UNIT_NOT_FOUND",
        "CONFLICT_NOT_FOUND",
        "NOT_FOUND",
        "THREAD_NOT_FOUND",
        "RUN_NOT_FOUND",
        "UNKNOWN_STREAM",
    },
    405: {"METHOD_NOT_ALLOWED"},
    409: {"AGENT_ID_TAKEN", "INVALID_TRANSITION", "COMPACTION_RUNNING", "SEQ_CONFLICT"},
    410: {"UNIT_PURGED", "COMPACTED"},
    413: {"INVALID_PAYLOAD"},
    422: {"SECRET_LEAKAGE", "COMPACTION_REDACTION_FAILED", "TOKEN_BUDGET_EXCEEDED"},
    429: {"RATE_LIMITED"},
    500: {"INTERNAL_ERROR"},
    501: {"UNSUPPORTED_OPERATION"},
    503: {"SHUTTING_DOWN"},
    504: {"EPOCH_NOT_REACHED"},
    507: {"STORAGE_FULL"},
}


@requirement("akashik:errors:http-status")
def test_every_error_has_the_status_of_the_contract() -> None:
    assert set(HTTP_STATUS) == set(KINDS)
    table: dict[int, set[str]] = {}
    for kind, status in HTTP_STATUS.items():
        table.setdefault(status, set()).add(kind.code)
    assert table == STATUS


@requirement("akashik:errors:body", "akashik:errors:rejected")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("operation", [*OPERATIONS, None])
def test_an_error_goes_to_the_wire_and_comes_back_as_itself(kind: type[FieldError], operation: str | None) -> None:
    error = kind("It cannot be.")
    body = json.decode(json.encode(error_body(error, operation)), type=ErrorBody)
    assert (body.code, body.message, body.operation) == (kind.code, "It cannot be.", operation)
    assert (body.recoverable, body.suggested_action) == (kind.recoverable, kind.suggested_action)
    fields = set(json.decode(json.encode(body)))
    rejected = {"status", "rejection_reason"} if operation in ("RECORD", "REGISTER") else set()
    assert fields == {"code", "message", "operation", "recoverable", "suggested_action"} | rejected
    back = error_from(body, http_status(error))
    assert type(back) is kind
    assert back.message == "It cannot be."


def test_a_code_that_this_version_does_not_know_is_an_internal_error_that_tells_it() -> None:
    body = ErrorBody("TEAPOT", "I am one.", "RECORD", True, "Brew.")
    back = error_from(body, 418)
    assert isinstance(back, errors.InternalError)
    assert "418 TEAPOT" in back.message


def test_every_operation_has_one_route_and_the_unbuilt_ones_have_no_reply() -> None:
    assert sorted(route.operation for route in OPERATION_ROUTES) == sorted(OPERATIONS)
    assert len({route.path for route in OPERATION_ROUTES}) == len(OPERATIONS)
    for route in OPERATION_ROUTES:
        assert (route.request is None) == (route.reply is None)
