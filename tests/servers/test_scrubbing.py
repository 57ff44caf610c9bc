"""What leaves the server beside answers: refusals and log lines. They hold no secret, whatever got into them."""

import io
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
import structlog

from fieldstone.servers.http.logs import configure_logs
from fieldstone.servers.http.serve import House, serve
from fieldstone.settings import Settings
from fieldstone.wiring import open_house
from tests.messages import join
from tests.servers.houses import entrance_to
from tests.servers.live import Live, live_server, message, unit

# A field's name and an operation's: what a refusal repeats, because callers who misspell need it.
FIELD_NAME: Final = "zeppelin_umbrella"
OPERATION: Final = "ZEPPELIN_UMBRELLA"

BAD: Final = ("RECORD", unit("All is well.") | {FIELD_NAME: 1})  # cannot be decoded
REFUSED: Final = ("REGISTER", {"id": "zoe", "role": "r", "required_operations": [OPERATION]})


@pytest.fixture
async def guarded(team: Live) -> Live:
    """A server that knows the word as a secret, however it is spelt."""
    await team.field.put_secret("word", FIELD_NAME)
    return team


async def refusal(live: Live, path: str, sent: tuple[str, dict[str, Any]], *, in_array: bool = False) -> str:
    operation, payload = sent
    body = message(operation, payload, agent_id="zoe")
    return (await live.post(path, [body] if in_array else body)).text


async def test_without_a_known_secret_refusals_repeat_what_was_misspelt(team: Live) -> None:
    """Without it the refusals below would prove nothing."""
    for path in ("/v1/messages", "/v1/record"):
        assert FIELD_NAME in await refusal(team, path, BAD)
    for path in ("/v1/messages", "/v1/register"):
        assert OPERATION in await refusal(team, path, REFUSED)
    for sent, word in ((BAD, FIELD_NAME), (REFUSED, OPERATION)):
        assert word in await refusal(team, "/v1/messages", sent, in_array=True)


async def test_a_refusal_on_an_operations_own_route_repeats_no_secret(guarded: Live) -> None:
    assert "[REDACTED:word]" in (told := await refusal(guarded, "/v1/record", BAD))
    assert FIELD_NAME not in told
    assert "[REDACTED:word]" in (told := await refusal(guarded, "/v1/register", REFUSED))
    assert OPERATION not in told


async def test_a_message_that_cannot_be_decoded_is_refused_without_its_secret(guarded: Live) -> None:
    assert "[REDACTED:word]" in (told := await refusal(guarded, "/v1/messages", BAD))
    assert FIELD_NAME not in told


async def test_a_message_that_is_refused_is_told_without_its_secret(guarded: Live) -> None:
    assert "[REDACTED:word]" in (told := await refusal(guarded, "/v1/messages", REFUSED))
    assert OPERATION not in told


async def test_one_of_many_messages_that_cannot_be_decoded_is_refused_without_its_secret(guarded: Live) -> None:
    assert "[REDACTED:word]" in (told := await refusal(guarded, "/v1/messages", BAD, in_array=True))
    assert FIELD_NAME not in told


async def test_one_of_many_messages_that_is_refused_is_told_without_its_secret(guarded: Live) -> None:
    assert "[REDACTED:word]" in (told := await refusal(guarded, "/v1/messages", REFUSED, in_array=True))
    assert OPERATION not in told


async def test_no_log_line_holds_a_secret_of_an_open_field(guarded: Live, log_lines: io.StringIO) -> None:
    entrance, _ = entrance_to(guarded.field)
    async with entrance.tenants.visit("local"):
        configure_logs("info", "json", log_lines, scrub=entrance.scrub)
        structlog.get_logger("x").error(f"broke at {FIELD_NAME}", where=OPERATION, times=3)
    assert "[REDACTED:word]" in log_lines.getvalue()
    assert FIELD_NAME not in log_lines.getvalue()
    assert OPERATION not in log_lines.getvalue()


def test_every_text_of_a_log_line_is_scrubbed(log_lines: io.StringIO) -> None:
    configure_logs("info", "json", log_lines, scrub=lambda text: text.replace("hidden", "…"))
    structlog.get_logger("x").error("hidden event", field="hidden field", times=3)
    assert "hidden" not in log_lines.getvalue()


@pytest.mark.usefixtures("log_lines")
def test_a_server_that_runs_scrubs_its_log(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FIELDSTONE_SECRET_WORD", FIELD_NAME)
    settings = Settings(db="memory:", port=0)

    @asynccontextmanager
    async def house_that_talks() -> AsyncIterator[House]:
        async with open_house(settings) as house:
            [field] = house.entrance.tenants.open_fields()
            await join(field, "ada")  # it waits for the rules

            def announce(_url: str) -> None:
                structlog.get_logger("x").error(f"broke at {FIELD_NAME}")
                os.kill(os.getpid(), signal.SIGTERM)

            yield house._replace(announce=announce)

    serve(settings, house_that_talks)
    told = capsys.readouterr().err
    assert "broke at [REDACTED:word]" in told
    assert FIELD_NAME not in told


async def test_a_refusal_that_comes_before_the_rules_are_loaded_waits_for_them() -> None:
    async with live_server() as live:
        await live.field.put_secret("word", FIELD_NAME)
        assert FIELD_NAME not in await refusal(live, "/v1/record", BAD)
