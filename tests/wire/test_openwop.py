"""Errors in OpenWOP's envelope come back as what they were."""

import pytest
from msgspec import json

from fieldstone.core.errors import CompactionRedactionFailed, FieldError, Forbidden, InvalidPayload, NotFound
from fieldstone.wire.errors import http_status
from fieldstone.wire.openwop import OpenWopError, error_from_openwop, openwop_error


@pytest.mark.parametrize("kind", [InvalidPayload, NotFound, Forbidden, CompactionRedactionFailed])
def test_an_error_is_on_the_other_side_what_it_was_here(kind: type[FieldError]) -> None:
    error = kind("in these words")
    body = json.decode(json.encode(openwop_error(error)), type=OpenWopError)
    again = error_from_openwop(body, http_status(error))
    assert (type(again), again.message) == (kind, "in these words")
    assert again.suggested_action == error.suggested_action
