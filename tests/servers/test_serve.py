"""From start to stop: what the operator sees, who may be served, and that nothing accepted is lost."""

import asyncio
import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from fieldstone.backends.tokens import Cl100kCounter
from fieldstone.ports.lease import StoreHeld
from fieldstone.servers.http.serve import CannotListen, NonLoopbackHost, check_address, start
from fieldstone.settings import Settings
from fieldstone.wiring import open_house, open_local_field, serve
from tests.requirements import requirement
from tests.servers.houses import entrance_to
from tests.servers.live import Held, Live, assert_refused, live_server, message, unit

PROGRAM = (
    "import sys\n"
    "from fieldstone.settings import Settings\n"
    "from fieldstone.wiring import serve\n"
    "serve(Settings(db=sys.argv[1], port=int(sys.argv[2])))\n"
)
STOP_TIMEOUT_S = 30


@contextlib.contextmanager
def process(db: Path, port: int = 0) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """A server of its own, and the line that it prints when it is ready."""
    command = [sys.executable, "-c", PROGRAM, str(db), str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield server, server.stdout.readline()
        finally:
            server.kill()


def url_in(line: str) -> str:
    found = re.search(r"http://127\.0\.0\.1:\d+", line)
    assert found, line
    return found[0]


@requirement("akashik:authority:open-mode-announced")
def test_the_ready_line_says_where_which_store_and_that_it_runs_open(tmp_path: Path) -> None:
    with process(tmp_path / "team.db") as (server, line):
        url = url_in(line)
        assert "team.db" in line
        assert "open for one local operator" in line
        assert f"{url}/docs" in line
        assert httpx.get(f"{url}/readyz").status_code == 200
        assert httpx.get(f"{url}/v1/field/status").json()["open_mode"] is True
        server.send_signal(signal.SIGTERM)
        assert server.wait(STOP_TIMEOUT_S) == 0
        assert server.stderr is not None
        assert "Traceback" not in server.stderr.read()


def test_a_program_that_starts_a_server_reads_in_json_where_it_is_and_that_it_stopped(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fieldstone", "serve", "--db", str(tmp_path / "team.db"), "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        ready = json.loads(server.stdout.readline())
        assert (ready["state"], ready["open_mode"]) == ("ready", True)
        assert ready["store"].endswith("team.db")
        assert httpx.get(f"{ready['url']}/readyz").status_code == 200
        server.send_signal(signal.SIGTERM)
        assert server.wait(STOP_TIMEOUT_S) == 0
        assert [json.loads(line) for line in server.stdout] == [{"state": "stopped"}]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_with_0_and_what_it_accepted_is_there(tmp_path: Path, number: signal.Signals) -> None:
    with process(tmp_path / "team.db") as (server, line):
        with httpx.Client(base_url=url_in(line)) as client:
            joined = client.post("/v1/register", json=message("REGISTER", {"id": "ada", "role": "x"}))
            assert joined.status_code == 200
            unit_id = client.post("/v1/record", json=message("RECORD", unit("Kept."))).json()["memory_unit_id"]
            server.send_signal(number)
            assert server.wait(STOP_TIMEOUT_S) == 0
    with process(tmp_path / "team.db") as (_, line):
        assert httpx.get(f"{url_in(line)}/v1/units/{unit_id}").json()["content"] == "Kept."


@requirement("akashik:errors:shutting-down")
async def test_a_stopping_server_refuses_new_requests_and_finishes_the_accepted_ones(team: Live) -> None:
    async with httpx.AsyncClient(base_url=team.serving.url) as other:
        assert (await other.get("/readyz")).status_code == 200  # an open connection
        held = Held(team.field)
        accepted = asyncio.create_task(team.send("RECORD", unit("Accepted in time.")))
        await held.arrived.wait()
        team.serving.begin_stop()
        refused = await other.get("/readyz")
        assert_refused(refused, 503, "SHUTTING_DOWN")
        assert refused.headers["connection"] == "close"
        held.let_go.set()
        assert (await accepted).json()["status"] == "accepted"
        await team.serving.ended()
        with pytest.raises(httpx.ConnectError):
            await other.get("/readyz")


async def test_every_route_but_the_sign_of_life_is_refused_while_stopping(live: Live) -> None:
    app = live.serving._server._app
    app.gate.stopping = True
    for path in ("/readyz", "/v1/field/status", "/docs", "/nowhere"):
        assert_refused(await live.client.get(path), 503, "SHUTTING_DOWN")
    assert_refused(await live.send("RECORD", unit("x")), 503, "SHUTTING_DOWN")
    assert (await live.client.get("/healthz")).status_code == 200


async def test_told_twice_to_stop_it_cuts_off_what_still_runs_with_503(team: Live) -> None:
    held = Held(team.field)
    waiting = asyncio.create_task(team.send("RECORD", unit("Never let go.")))
    await held.arrived.wait()
    team.serving.begin_stop()
    team.serving.begin_stop()
    assert_refused(await waiting, 503, "SHUTTING_DOWN")
    await asyncio.wait_for(team.serving.ended(), 5)


async def test_a_request_that_came_in_the_turn_of_the_cut_is_told_503_too(live: Live) -> None:
    server = live.serving._server
    reader, writer = await asyncio.open_connection(*live.address)
    request = b"GET /readyz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
    writer.write(request)
    assert await reader.readuntil(b"\r\n\r\n")
    [line] = server.server_state.connections
    server._app.gate.stopping = server.force_exit = True
    line.data_received(request)  # its task is there, and has not begun
    await server.shutdown()
    assert b"HTTP/1.1 503 " in await asyncio.wait_for(reader.read(), 5)
    assert not server.server_state.tasks
    writer.close()


async def test_a_client_that_holds_its_connection_open_does_not_hold_the_server() -> None:
    async with live_server() as live:
        _, writer = await asyncio.open_connection(*live.address)
        await asyncio.wait_for(live.serving.stop(), 5)
        writer.close()


@requirement("akashik:authority:open-mode-loopback")
@pytest.mark.parametrize("host", ["0.0.0.0", "10.1.2.3", "::", "192.168.0.1", "no-such-host.invalid"])
def test_an_address_other_than_loopback_is_refused_before_anything_is_opened(tmp_path: Path, host: str) -> None:
    with pytest.raises(NonLoopbackHost, match="there are no keys"):
        serve(Settings(db=str(tmp_path / "team.db"), host=host, port=0))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "localhost", "::1"])
def test_loopback_addresses_are_fine(host: str) -> None:
    check_address(host, is_open=True)


def test_with_keys_any_address_is_fine() -> None:
    check_address("0.0.0.0", is_open=False)


async def test_it_serves_on_the_loopback_address_that_it_is_given() -> None:
    field = await open_local_field(Settings(db="memory:"))
    serving = await start(*entrance_to(field), Settings(host="127.0.0.2", port=0))
    try:
        async with httpx.AsyncClient() as client:
            assert serving.url.startswith("http://127.0.0.2:")
            assert (await client.get(f"{serving.url}/healthz")).status_code == 200
    finally:
        await serving.stop()
        await field.close()


async def test_a_port_in_use_is_told_in_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        field = await open_local_field(Settings(db="memory:"))
        with pytest.raises(CannotListen, match=rf"127\.0\.0\.1:{port} cannot be served: Address already in use\. "):
            await start(*entrance_to(field), Settings(port=port))
        await field.close()


def test_a_port_in_use_lets_go_of_the_store(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        with pytest.raises(CannotListen):
            serve(Settings(db=str(tmp_path / "team.db"), port=taken.getsockname()[1]))
    with process(tmp_path / "team.db") as (_, line):
        assert url_in(line)


async def test_a_second_server_on_the_file_is_told_who_holds_it_and_where(tmp_path: Path) -> None:
    with process(tmp_path / "team.db") as (server, line):
        with pytest.raises(StoreHeld) as held:
            await open_local_field(Settings(db=str(tmp_path / "team.db")))
    assert held.value.holder is not None
    assert (held.value.holder.url, held.value.holder.pid) == (url_in(line), server.pid)
    assert "fieldstone serve" in str(held.value)


async def test_the_counter_of_tokens_is_loaded_when_the_house_opens_and_not_by_a_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted: list[str] = []
    monkeypatch.setattr(Cl100kCounter, "count", lambda _self, text: counted.append(text))
    async with open_house(Settings(db="memory:", port=0)):
        assert counted == [""]
