"""§1: the envelope, whole or not at all."""

import json
from typing import Any

import pytest

from tests.protocol.rig import Rig, unit
from tests.requirements import requirement

FIELDS = ("protocol", "version", "id", "operation", "agent_id", "session_id", "epoch", "payload")


@requirement("akashik:envelope:exact-fields")
@pytest.mark.parametrize("missing", FIELDS)
async def test_an_envelope_without_one_of_its_fields_is_refused(team: Rig, missing: str) -> None:
    envelope = team.envelope("RECORD", "ada", unit())
    del envelope[missing]
    refusal = await team.refused_post("INVALID_ENVELOPE", json.dumps(envelope).encode())
    assert missing in refusal["message"]


@requirement("akashik:envelope:exact-fields")
async def test_an_envelope_with_one_more_field_is_refused(team: Rig) -> None:
    refusal = await team.refused("INVALID_ENVELOPE", "RECORD", "ada", unit(), priority=1)
    assert "priority" in refusal["message"]


@requirement("akashik:envelope:exact-fields")
async def test_an_envelope_with_all_of_its_fields_and_no_more_is_taken(team: Rig) -> None:
    envelope = team.envelope("RECORD", "ada", unit())
    assert set(envelope) == set(FIELDS)
    assert (await team.send_envelope(envelope)).status == 200


@requirement("akashik:envelope:header-known")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("protocol", "Akashik"),
        ("protocol", "mcp"),
        ("protocol", ""),
        ("version", "0.1"),
        ("version", "0.2.0"),
        ("version", "1.0.0"),
        ("operation", "FORGET"),
        ("operation", "record"),
        ("operation", ""),
    ],
)
async def test_another_protocol_version_or_operation_is_refused(team: Rig, name: str, value: str) -> None:
    refusal = await team.refused("INVALID_ENVELOPE", "RECORD", "ada", unit(), **{name: value})
    assert name in refusal["message"]


@requirement("akashik:envelope:id-non-empty")
async def test_an_empty_id_is_refused(team: Rig) -> None:
    refusal = await team.refused("INVALID_ENVELOPE", "RECORD", "ada", unit(), id="")
    assert refusal["message"].startswith("id ")


@requirement("akashik:envelope:field-types")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("id", 7),
        ("id", None),
        ("agent_id", None),
        ("agent_id", ""),
        ("agent_id", ["ada"]),
        ("session_id", 7),
        ("session_id", ""),
        ("session_id", {}),
        ("epoch", -1),
        ("epoch", 1.5),
        ("epoch", "1"),
        ("epoch", None),
        ("epoch", True),
        ("payload", None),
        ("payload", []),
        ("payload", "{}"),
        ("payload", 0),
    ],
)
async def test_a_field_of_the_wrong_kind_is_refused_and_named(team: Rig, name: str, value: Any) -> None:
    refusal = await team.refused("INVALID_ENVELOPE", "RECORD", "ada", unit(), **{name: value})
    assert name in refusal["message"]


@requirement("akashik:envelope:field-types")
async def test_a_session_is_a_string_or_null(team: Rig) -> None:
    for session in ("sprint-7", None):
        unit_id = await team.record("ada", session=session)
        assert (await team.unit(unit_id)).source.session_id == session


@requirement("akashik:envelope:malformed-is-coded")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"7",
        b'"RECORD"',
        b"[1]",
        b"\xff\xfe{}",
        b"\xef\xbb\xbf{}",
        b'{"protocol": "akashik",}',
        b"{'protocol': 'akashik'}",
        b'{"protocol": "akashik"} {"protocol": "akashik"}',
        b"[" * 100_000,
        b'{"payload":' * 50_000 + b"1" + b"}" * 50_000,
    ],
    ids=lambda body: repr(body[:24]),
)
async def test_a_body_that_is_no_envelope_is_refused_in_the_error_format(team: Rig, body: bytes) -> None:
    before = await team.trace()
    status, refusal = await team.post(body)
    assert status == 400
    assert refusal["code"] == "INVALID_ENVELOPE"
    assert set(refusal) >= {"code", "message", "operation", "recoverable", "suggested_action"}
    assert await team.trace() == before
