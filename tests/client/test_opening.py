"""open_field: paths, URLs, settings, and files that somebody holds."""

from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog

from fieldstone import StoreHeld, open_field
from fieldstone.client.remote import RemoteField, ServerUnreachable
from fieldstone.core.errors import InternalError
from fieldstone.core.requests import Message, Retract
from fieldstone.field.field import LocalField
from fieldstone.settings import Settings
from fieldstone.wiring import UnknownStore, log_to_stderr, open_local_field

WHY: dict[str, Any] = {"intent": "size the market", "confidence": 0.8, "reasoning": "two reports"}


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("FIELDSTONE_DB", "FIELDSTONE_URL"):
        monkeypatch.delenv(name, raising=False)


async def test_a_file_keeps_what_was_recorded(tmp_path: Path) -> None:
    for address in (tmp_path / "team.db", str(tmp_path / "team.db"), f"sqlite:{tmp_path / 'team.db'}", "team.db"):
        async with open_field(address) as field:
            ada = await field.agent("ada", role="researcher")
            await ada.record("Once more.", **WHY)
    async with open_field("team.db") as field:
        assert (await field.status()).units == 4


async def test_memory_keeps_nothing_and_every_one_is_its_own() -> None:
    for _ in range(2):
        async with open_field("memory:") as field:
            assert (await field.status()).units == 0
            await (await field.agent("ada", role="researcher")).record("Gone.", **WHY)


async def test_fields_of_one_file_are_apart(tmp_path: Path) -> None:
    async with open_field("team.db", field="research") as field:
        ada = await field.agent("ada", role="researcher")
        await ada.record("Ours.", session_id="s-1", **WHY)
    async with open_field("team.db", field="sales") as field:
        assert (await field.status()).units == 0
        assert not await field.agents()
        eve = await field.agent("eve", role="seller")
        assert not (await eve.attune("ours", sessions=["s-1"])).record
    async with open_field("team.db", field="research") as field:
        assert [agent.id for agent in await field.agents()] == ["ada"]


async def test_without_an_address_the_settings_decide(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_field() as field:
        assert str((await field.status()).store).endswith("fieldstone.db")
    monkeypatch.setenv("FIELDSTONE_DB", "memory:")
    async with open_field() as field:
        assert (await field.status()).store == "memory"
    monkeypatch.setenv("FIELDSTONE_URL", server)
    async with open_field() as field:
        assert isinstance(field.door, RemoteField)
    async with open_field("memory:") as field:
        assert isinstance(field.door, LocalField), "what the call says goes before the environment"


async def test_a_file_that_a_server_holds_is_used_through_that_server(server: str, tmp_path: Path) -> None:
    async with open_field(tmp_path / "served.db") as field, open_field(server) as same:
        assert isinstance(field.door, RemoteField)
        ada = await field.agent("ada", role="researcher")
        accepted = await ada.record("Through the server.", **WHY)
        assert (await same.unit(accepted.memory_unit_id)).content == "Through the server."


async def test_a_file_that_a_script_holds_is_refused_with_who_holds_it(tmp_path: Path) -> None:
    async with open_field("team.db"):
        with pytest.raises(StoreHeld, match="process") as held:
            async with open_field("team.db"):
                pass
        assert "team.db" in str(held.value)
        assert "fieldstone serve" in str(held.value)
    async with open_field("team.db") as field:
        assert (await field.status()).units == 0


async def test_an_unknown_kind_of_store_is_told_in_a_sentence() -> None:
    with pytest.raises(UnknownStore, match="postgres"):
        async with open_field("postgres://localhost/field"):
            pass


async def test_a_server_that_is_not_there_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fieldstone.client.remote.FIRST_PAUSE_S", 0.0)
    with pytest.raises(ServerUnreachable, match=r"127\.0\.0\.1:9 does not answer"):
        async with open_field("http://127.0.0.1:9"):
            pass


async def test_settings_reach_the_field() -> None:
    settings = Settings(
        db="memory:", remember_replies_hours=0.5, epoch_leap=7, memory_types=("hypothesis",), log_reads=False
    )
    field = await open_local_field(settings)
    try:
        options = field._options
        assert options.remember_replies_ms == 1_800_000
        assert options.rules.epoch_leap == 7
        assert options.rules.memory_types >= {"hypothesis", "finding"}
        assert options.log_reads is False
    finally:
        await field.close()


class Flaky:
    """A server that fails a few times, and then answers; it remembers what it was sent."""

    def __init__(self, *failures: int | Exception) -> None:
        self._failures = list(failures)
        self.bodies: list[bytes] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.bodies.append(request.content)
        if self._failures:
            failure = self._failures.pop(0)
            if isinstance(failure, Exception):
                raise failure
            return httpx.Response(failure, text="<html>proxy</html>")
        return httpx.Response(200, json={"status": "ok", "memory_unit_id": "mem-1", "epoch": 7})


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fieldstone.client.remote.FIRST_PAUSE_S", 0.0)


async def retract(server: Flaky) -> object:
    async with httpx.AsyncClient(transport=httpx.MockTransport(server), base_url="http://field") as client:
        message = Message("RETRACT", "ada", Retract("mem-1", "wrong"))
        return await RemoteField("http://field", client).send(message)


@pytest.mark.usefixtures("no_pause")
async def test_a_request_that_did_not_arrive_is_sent_again_under_the_same_id() -> None:
    server = Flaky(httpx.ConnectError("refused"), 503, httpx.ReadError("cut off"))
    assert getattr(await retract(server), "epoch", None) == 7
    assert len(server.bodies) == 4
    assert len(set(server.bodies)) == 1, "the same message, so that it is carried out once"


@pytest.mark.usefixtures("no_pause")
async def test_a_server_that_stays_away_is_given_up_after_a_few_tries() -> None:
    server = Flaky(*[httpx.ConnectError("refused")] * 20)
    with pytest.raises(ServerUnreachable):
        await retract(server)
    assert len(server.bodies) == 4


@pytest.mark.usefixtures("no_pause")
async def test_an_answer_that_is_not_the_fields_is_an_internal_error_without_its_text() -> None:
    with pytest.raises(InternalError, match="502") as broken:
        await retract(Flaky(502))
    assert "proxy" not in broken.value.message


def test_a_traceback_in_the_log_shows_no_variables(capsys: pytest.CaptureFixture[str]) -> None:
    """Where rich is installed, as it is here, structlog would show them, and texts that were not redacted yet."""

    def breaks(said: str) -> None:
        raise RuntimeError(len(said))

    before = structlog.get_config()
    try:
        log_to_stderr()
        try:
            breaks("tea at " + "five")
        except RuntimeError:
            structlog.get_logger().exception("it broke")
    finally:
        structlog.configure(**before)
    told = capsys.readouterr().err
    assert "in breaks" in told
    assert "tea at five" not in told
