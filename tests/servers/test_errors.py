"""Refusals that belong to HTTP: addresses, methods, foreign pages, and what breaks inside."""

import io
from pathlib import Path

import httpx
import pytest

from fieldstone.core import errors
from fieldstone.core.errors import FieldError
from fieldstone.core.requests import Message
from fieldstone.wire.errors import HTTP_STATUS
from tests.requirements import requirement
from tests.servers.live import Live, assert_refused, live_server, message, unit

STATUS_OF_CONTRACT = {
    "MISSING_INTENT": 400,
    "MISSING_CONFIDENCE": 400,
    "INVALID_CONFIDENCE": 400,
    "INVALID_TYPE": 400,
    "INVALID_ENVELOPE": 400,
    "INVALID_PAYLOAD": 400,
    "EPOCH_OVERFLOW": 400,
    "UNAUTHENTICATED": 401,
    "FORBIDDEN": 403,
    "AGENT_NOT_REGISTERED": 403,
    "UNIT_NOT_FOUND": 404,
    "CONFLICT_NOT_FOUND": 404,
    "AGENT_ID_TAKEN": 409,
    "INVALID_TRANSITION": 409,
    "SECRET_LEAKAGE": 422,
    "INTERNAL_ERROR": 500,
    "UNSUPPORTED_OPERATION": 501,
    "SHUTTING_DOWN": 503,
    "EPOCH_NOT_REACHED": 504,
    "STORAGE_FULL": 507,
}


def every_error() -> list[type[FieldError]]:
    return [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, FieldError)][1:]


@requirement("akashik:errors:http-status", "akashik:errors:body")
@pytest.mark.parametrize("kind", every_error(), ids=lambda kind: kind.__name__)
async def test_every_error_has_its_status_and_the_five_fields(live: Live, kind: type[FieldError]) -> None:
    async def refuse(message: object) -> None:
        raise kind

    live.field.send = refuse  # type: ignore[method-assign,assignment]
    body = assert_refused(await live.send("DETECT", {"mode": "list"}), HTTP_STATUS[kind], kind.code)
    assert body["operation"] == "DETECT"
    assert body["message"] == kind().message
    if kind is not errors.PayloadTooLarge and kind.code in STATUS_OF_CONTRACT:
        assert HTTP_STATUS[kind] == STATUS_OF_CONTRACT[kind.code]


@requirement("akashik:errors:rejected")
async def test_a_refused_record_or_register_is_told_as_rejected_and_others_are_not(live: Live) -> None:
    for operation, payload in {"RECORD": unit("x"), "REGISTER": {"id": "ben", "role": "x"}}.items():
        body = (await live.send(operation, payload)).json()
        assert body["status"] == "rejected"
        assert body["code"] in body["rejection_reason"]
    body = (await live.send("DETECT", {"mode": "list"})).json()
    assert body["code"] == "AGENT_NOT_REGISTERED"
    assert "status" not in body


@requirement("akashik:errors:unknown-path")
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"])
async def test_an_unknown_path_is_404_in_the_same_format(live: Live, method: str) -> None:
    for path in ("/v1", "/v1/", "/v2/record", "/v1/record/", "/v1/units/", "/v1/units/a/b", "/favicon.ico"):
        assert_refused(await live.client.request(method, path), 404, "NOT_FOUND")


@requirement("akashik:errors:unknown-path")
@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("GET", "/v1/record", "POST"),
        ("DELETE", "/v1/messages", "POST"),
        ("POST", "/v1/agents", "GET, HEAD"),
        ("OPTIONS", "/v1/units/x", "GET, HEAD"),
        ("POST", "/v1/keys/x", "DELETE"),
        ("PATCH", "/v1/retention", "GET, HEAD, PUT"),
        ("TRACE", "/healthz", "GET, HEAD"),
    ],
)
async def test_a_wrong_method_is_405_in_the_same_format_and_names_the_right_ones(
    live: Live, method: str, path: str, allow: str
) -> None:
    answer = await live.client.request(method, path)
    assert_refused(answer, 405, "METHOD_NOT_ALLOWED")
    assert answer.headers["allow"] == allow


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/v1/field/status", "/v1/log", "/v1/export", "/docs", "/v1/x"])
async def test_head_answers_as_get_does_but_without_a_body(live: Live, path: str) -> None:
    get, head = await live.client.get(path), await live.client.head(path)
    assert head.status_code == get.status_code
    assert head.content == b""
    assert head.headers.get("content-length") == get.headers.get("content-length")
    assert (await live.client.get("/healthz")).json() == {"status": "ok"}


@requirement("akashik:errors:internal-silent")
async def test_an_internal_error_shows_nothing_of_its_cause_and_the_log_shows_where_it_was(
    live: Live, log_lines: io.StringIO
) -> None:
    async def explode(message: Message) -> None:
        raise ValueError(f"{message} broke it")  # as an exception's message may quote what a caller wrote

    live.field.send = explode  # type: ignore[method-assign,assignment]
    record = message("RECORD", unit("hidden-content"), agent_id="hidden-agent", id="hidden-id")
    body = assert_refused(await live.post("/v1/record", record), 500, "INTERNAL_ERROR")
    [in_array] = (await live.post("/v1/messages", [record])).json()
    alone = assert_refused(await live.post("/v1/messages", record), 500, "INTERNAL_ERROR")
    assert in_array == body
    assert alone["recoverable"] is False
    assert "hidden" not in str(body)
    assert "hidden" not in log_lines.getvalue()
    assert log_lines.getvalue().count("in explode") == 3
    assert "ValueError" in log_lines.getvalue()


@requirement("akashik:errors:storage-full")
async def test_a_full_store_is_507_and_reads_go_on(tmp_path: Path) -> None:
    async with live_server(db=str(tmp_path / "small.db"), max_bytes=1_000_000) as live:
        await live.join("ada")
        answers = [await live.send("RECORD", unit("x" * 100_000)) for _ in range(30)]
        body = assert_refused(answers[-1], 507, "STORAGE_FULL")
        assert body["recoverable"] is False
        assert (await live.client.get("/v1/field/status")).status_code == 200


# --- foreign pages ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:8420", "[::1]", "[::1]:80", "127.0.0.1"])
async def test_loopback_names_are_served(live: Live, host: str) -> None:
    assert (await live.client.get("/healthz", headers={"host": host})).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example:80",
        "localhost:x",
        "",
        "10.0.0.1",
        "a@localhost",
    ],
)
async def test_a_page_that_has_its_own_name_point_here_is_refused(live: Live, host: str) -> None:
    for path in ("/v1/field/status", "/healthz", "/docs", "/nowhere"):
        refused = assert_refused(await live.client.get(path, headers={"host": host}), 403, "FORBIDDEN")
        assert "setting `hosts`" in refused["suggested_action"]


async def test_a_request_without_a_host_is_refused(live: Live) -> None:
    assert (await live.raw(b"GET /healthz HTTP/1.0\r\n\r\n")).startswith(b"HTTP/1.1 403")


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://localhost:1", "https://localhost", "file://"]
)
async def test_a_page_of_another_origin_is_refused_and_changes_nothing(team: Live, origin: str) -> None:
    before = await team.log_entries()
    body = message("RECORD", unit("From a foreign page."))
    answer = await team.client.post("/v1/record", json=body, headers={"origin": origin})
    refused = assert_refused(answer, 403, "FORBIDDEN")
    assert refused["status"] == "rejected"
    assert "setting `origins`" in refused["suggested_action"]
    assert await team.log_entries() == before


async def test_a_page_of_this_server_may_use_it(team: Live) -> None:
    answer = await team.client.get("/v1/agents", headers={"origin": team.serving.url})
    assert answer.status_code == 200
    assert "access-control-allow-origin" not in answer.headers


async def test_no_answer_invites_other_origins(live: Live) -> None:
    preflight = {"origin": live.serving.url, "access-control-request-method": "POST"}
    answer: httpx.Response = await live.client.options("/v1/record", headers=preflight)
    assert answer.status_code == 405
    assert not [name for name in answer.headers if name.startswith("access-control")]
