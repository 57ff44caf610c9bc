"""The log: structured, and without anything that a caller wrote."""

import io
import logging

import pytest
import structlog
from msgspec import json

from fieldstone.servers.http import endpoint
from fieldstone.servers.http.logs import configure_logs
from tests.servers.live import Live, live_server, message, scope, unit


async def test_at_debug_level_every_request_is_a_line_without_content_ids_or_bodies(log_lines: io.StringIO) -> None:
    async with live_server(log_level="debug") as live:
        await live.join("hidden-agent")
        unit_id = await live.record("hidden-agent", "hidden-content", intent={"purpose": "hidden-purpose"})
        await live.send("ATTUNE", {**scope(), "context_hint": "hidden-hint"}, agent_id="hidden-agent")
        await live.client.get(f"/v1/units/{unit_id}")
        await live.client.get("/v1/units/hidden-unit")
        await live.client.get("/hidden-path?hidden=query")
        await live.post("/v1/messages", message("DETECT", {"mode": "list"}, agent_id="hidden-agent"))
        await live.client.post("/v1/record", content=b"hidden-garbage")
    assert "hidden" not in log_lines.getvalue()
    assert unit_id not in log_lines.getvalue()
    lines = [json.decode(line) for line in log_lines.getvalue().splitlines()]
    requests = [line for line in lines if line["event"] == "request"]
    told = [(line["method"], line["route"], line["operation"], line["status"]) for line in requests]
    assert told == [
        ("POST", "/v1/register", "REGISTER", 200),
        ("POST", "/v1/record", "RECORD", 200),
        ("POST", "/v1/attune", "ATTUNE", 200),
        ("GET", "/v1/units/{id}", None, 200),
        ("GET", "/v1/units/{id}", None, 404),
        ("GET", "*", None, 404),
        ("POST", "/v1/messages", "DETECT", 200),
        ("POST", "/v1/record", "RECORD", 400),
    ]
    assert all(line["ms"] > 0 and line["level"] == "debug" for line in requests)


async def test_by_default_only_failures_and_slow_requests_are_lines(
    team: Live, log_lines: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    await team.record("ada", "Nothing to tell.")
    assert log_lines.getvalue() == ""
    await team.send("MERGE", {})
    monkeypatch.setattr(endpoint, "SLOW_MS", 0)
    await team.record("ada", "Slow.")
    lines = [json.decode(line) for line in log_lines.getvalue().splitlines()]
    told = [(line["operation"], line["status"], line["level"]) for line in lines if line["event"] == "request"]
    assert told == [("MERGE", 501, "warning"), ("RECORD", 200, "warning")]


def test_what_libraries_log_loses_its_arguments_and_keeps_its_place(log_lines: io.StringIO) -> None:
    try:
        raise KeyError("hidden") from ValueError("hidden")
    except KeyError:
        logging.getLogger("some.library").error("It broke on %s\nhidden", "hidden", exc_info=True)
    [line] = [json.decode(line) for line in log_lines.getvalue().splitlines()]
    assert (line["event"], line["logger"], line["level"]) == ("It broke on %s", "some.library", "error")
    assert "test_what_libraries_log" in line["exception"]
    assert "KeyError" in line["exception"]
    assert "ValueError" in line["exception"]


@pytest.mark.parametrize(("form", "is_json"), [("json", True), ("console", False), ("auto", True)])
def test_the_form_is_json_or_console_and_auto_is_json_outside_a_terminal(
    log_lines: io.StringIO, form: str, is_json: bool
) -> None:
    configure_logs("info", form, log_lines)
    structlog.get_logger("x").info("told", count=1)
    structlog.get_logger("x").debug("not told")
    [line] = log_lines.getvalue().splitlines()
    assert line.startswith("{") is is_json
    assert "told" in line


def test_a_console_traceback_has_no_message_either(log_lines: io.StringIO) -> None:
    configure_logs("info", "console", log_lines)
    try:
        raise ValueError("hid" + "den")
    except ValueError as error:
        structlog.get_logger("x").error("it broke", exc_info=error)
        structlog.get_logger("x").exception("it broke again")
    assert "hidden" not in log_lines.getvalue()
    assert log_lines.getvalue().count("ValueError") >= 2


async def test_units_leave_no_text_in_the_log_of_a_group_that_failed(team: Live, log_lines: io.StringIO) -> None:
    async def explode(commit: object) -> None:
        raise OSError(f"{commit} could not be written")

    team.field._store.commit = explode  # type: ignore[method-assign]
    answer = await team.send("RECORD", unit("hidden-content"), session_id="hidden-session")
    assert answer.status_code == 500
    assert "OSError" in log_lines.getvalue()
    assert "hidden" not in log_lines.getvalue()
