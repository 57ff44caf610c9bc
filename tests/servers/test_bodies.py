"""Bodies and bytes that no client should send: a coded answer, nothing changed, and the server goes on."""

import asyncio
import re
from collections.abc import AsyncIterator

import pytest
from msgspec import json
from starlette.types import Send

from fieldstone.servers.http import endpoint
from fieldstone.servers.http.answers import Answer
from fieldstone.servers.http.body import DRAIN_BYTES
from fieldstone.servers.http.exchange import answer_whole
from fieldstone.servers.http.protocol import FieldProtocol
from tests.requirements import requirement
from tests.scripted import eventually
from tests.servers.live import Held, Live, assert_refused, live_server, message, unit

ENVELOPE = json.encode(message("RECORD", unit("CONTENT")))
BROKEN = {
    "nothing": b"",
    "white space": b" \n",
    "text": b"hello",
    "half": ENVELOPE[:-1],
    "more": ENVELOPE + b"{}",
    "null": b"null",
    "number": b"1e999999",
    "string": b'"RECORD"',
    "NaN": ENVELOPE.replace(b":0,", b":NaN,"),
    "infinite": ENVELOPE.replace(b'"epoch":0', b'"epoch":1e400'),
    "huge int": ENVELOPE.replace(b'"epoch":0', b'"epoch":' + b"9" * 5_000),
    "deep": b"[" * 100_000,
    "deep objects": b'{"a":' * 100_000,
    "deep payload": ENVELOPE.replace(b'"payload":{', b'"payload":' + b"[" * 100_000),
    "bytes": b"\xff\xfe\x00",
    "utf-16": ENVELOPE.decode().encode("utf-16"),
    "byte order mark": b"\xef\xbb\xbf" + ENVELOPE,
    "latin-1": ENVELOPE.replace(b'"ada"', b'"\xe4da"'),
    "surrogate id": ENVELOPE.replace(b'"ada"', b'"\\ud800"'),
    "comment": b"/* */" + ENVELOPE,
    "gzip": b"\x1f\x8b\x08\x00",
}
BROKEN_PAYLOADS = {
    "surrogate": ENVELOPE.replace(b"CONTENT", b"\\ud800"),
    "half a pair": ENVELOPE.replace(b"CONTENT", b"\\udc00\\ud800"),
    "NUL": ENVELOPE.replace(b"CONTENT", b"\\u0000"),
    "raw control": ENVELOPE.replace(b"CONTENT", b"\x01"),
    "bytes": ENVELOPE.replace(b"CONTENT", b"\xff\xfe"),
    "NaN score": ENVELOPE.replace(b"0.9", b"NaN"),
    "infinite score": ENVELOPE.replace(b"0.9", b"1e400"),
    "huge score": ENVELOPE.replace(b"0.9", b"9" * 5_000),
    "relations": ENVELOPE.replace(
        b'"mode"', b'"relations":[' + b",".join([b'{"type":"informs","target_id":"x"}'] * 100_000) + b'],"mode"'
    ),
    "deep": ENVELOPE.replace(b'"CONTENT"', b"[" * 50_000 + b"]" * 50_000),
}


@requirement("akashik:envelope:malformed-is-coded")
@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN)
async def test_a_body_that_is_no_envelope_gets_a_coded_400_and_changes_nothing(team: Live, body: bytes) -> None:
    before = await team.log_entries()
    refused = assert_refused(await team.client.post("/v1/record", content=body), 400, "INVALID_ENVELOPE")
    assert refused["operation"] == "RECORD"
    answer = await team.client.post("/v1/messages", content=body)
    assert_refused(answer, 400, "INVALID_ENVELOPE")
    assert await team.log_entries() == before


@pytest.mark.parametrize("body", BROKEN_PAYLOADS.values(), ids=BROKEN_PAYLOADS)
async def test_a_payload_that_is_broken_inside_gets_a_coded_400_and_changes_nothing(team: Live, body: bytes) -> None:
    before = await team.log_entries()
    answer = await team.client.post("/v1/record", content=body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["code"] in {"INVALID_ENVELOPE", "INVALID_PAYLOAD", "INVALID_CONFIDENCE"}
    in_array = await team.client.post("/v1/messages", content=b"[" + body + b"]")
    assert in_array.status_code in (200, 400)  # what is not even JSON is refused as a whole
    assert "code" in (in_array.json()[0] if in_array.status_code == 200 else in_array.json())
    assert await team.log_entries() == before


@requirement("akashik:errors:too-large")
async def test_a_body_that_is_too_large_is_413_and_the_connection_goes_on(team: Live) -> None:
    body = json.encode(message("RECORD", unit("x" * 10_000_000)))
    assert_refused(await team.client.post("/v1/record", content=body), 413, "INVALID_PAYLOAD")
    assert_refused(await team.client.post("/v1/messages", content=body), 413, "INVALID_PAYLOAD")
    assert (await team.client.get("/healthz")).status_code == 200


async def test_a_body_that_is_too_large_and_comes_in_chunks_is_413(team: Live) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(200):
            yield b"x" * 50_000

    assert_refused(await team.client.post("/v1/record", content=pieces()), 413, "INVALID_PAYLOAD")


async def test_the_limit_is_the_setting_and_a_body_of_just_that_size_is_taken() -> None:
    async with live_server(max_body_bytes=2_000) as live:
        await live.join("ada")
        body = json.encode(message("RECORD", unit("fits")))
        fits = body + b" " * (2_000 - len(body))
        assert (await live.client.post("/v1/record", content=fits)).status_code == 200
        assert_refused(await live.client.post("/v1/record", content=fits + b" "), 413, "INVALID_PAYLOAD")


@requirement("akashik:errors:too-large")
async def test_a_client_that_sends_all_before_it_reads_sees_the_413(live: Live) -> None:
    """Such a client hangs, or is cut off, where a server answers without reading what was sent."""
    size = 40_000_000
    head = b"POST /v1/record HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % size
    answer = await live.raw(head + b"x" * size)
    assert answer.startswith(b"HTTP/1.1 413")


async def test_a_body_beyond_what_is_read_off_is_answered_and_the_connection_closed(live: Live) -> None:
    head = b"POST /v1/record HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % (DRAIN_BYTES + 1)
    answer = await live.raw(head + b"x" * 100_000)
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"connection: close" in answer


async def test_a_body_of_many_small_pieces_is_gathered_without_a_copy_for_each(team: Live) -> None:
    reader, writer = await asyncio.open_connection(*team.address)
    writer.write(b"GET /readyz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")
    mine = writer.get_extra_info("sockname")
    [line] = [each for each in _lines(team) if each.client == mine]
    line.data_received(b"POST /v1/record HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n")
    for piece in ENVELOPE:  # nobody has asked for them yet
        line.data_received(b"1\r\n%c\r\n" % piece)
    assert line.cycle.body == bytearray(ENVELOPE)
    assert type(line.cycle.body) is bytearray  # which grows in place
    line.data_received(b"0\r\n\r\n")
    assert b"HTTP/1.1 200 OK" in await reader.readuntil(b"\r\n\r\n{")
    writer.close()


async def test_an_unknown_path_is_answered_after_its_body_was_read(live: Live) -> None:
    head = b"POST /nowhere HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 9000000\r\n\r\n"
    assert (await live.raw(head + b"x" * 9_000_000)).startswith(b"HTTP/1.1 404")


@pytest.mark.parametrize(
    "data",
    [
        b"nonsense\r\n\r\n",
        b"GET /healthz HTTP/9.9\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"POST /v1/record HTTP/1.1\r\nhost: localhost\r\ncontent-length: x\r\n\r\n",
        b"POST /v1/record HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n",
        b"POST /v1/record HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n",
        b"POST /v1/record HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n5\r\nabcdefgh\r\n0\r\n\r\n",
        b"POST /v1/record HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
    ids=["nonsense", "version", "path", "length", "negative", "chunk", "chunk end", "both", "tls", "http2"],
)
async def test_bytes_that_are_not_http_get_a_coded_400(live: Live, data: bytes) -> None:
    answer = await live.raw(data)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400"), answer
    assert json.decode(body)["code"] == "INVALID_ENVELOPE"
    assert (await live.client.get("/healthz")).status_code == 200


async def test_requests_in_a_pipeline_are_answered_in_their_order(team: Live) -> None:
    one = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
    last = b"GET /v1/nowhere HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
    answer = await team.raw(one * 3 + last)
    assert [part[:3] for part in answer.split(b"HTTP/1.1 ")[1:]] == [b"200", b"200", b"200", b"404"]


@pytest.mark.parametrize(
    "request_line", ["GET /healthz", "HEAD /healthz", "GET /nowhere", "PATCH /v1/record", "GET /v1/units", "GET /docs"]
)
async def test_an_answer_in_one_write_has_the_bytes_that_it_would_have_in_two(
    team: Live, monkeypatch: pytest.MonkeyPatch, request_line: str
) -> None:
    asked = f"{request_line} HTTP/1.1\r\nhost: localhost\r\n".encode()
    whole: list[bool] = []

    def told(answer: Answer, send: Send) -> bool:
        whole.append(answer_whole(answer, send))
        return whole[-1]

    monkeypatch.setattr(endpoint, "answer_whole", told)
    in_one = await team.raw(asked + b"\r\n" + asked + b"connection: close\r\n\r\n")
    monkeypatch.setattr(endpoint, "answer_whole", lambda _answer, _send: False)
    in_two = await team.raw(asked + b"\r\n" + asked + b"connection: close\r\n\r\n")
    assert _without_date(in_one) == _without_date(in_two)
    has_own_headers = request_line.startswith(("HEAD", "PATCH")) or "/docs" in request_line
    assert whole == [not has_own_headers, False]


def _lines(live: Live) -> list[FieldProtocol]:
    return [each for each in live.serving._server.server_state.connections if isinstance(each, FieldProtocol)]


def _without_date(answers: bytes) -> bytes:
    return re.sub(rb"(?m)^date: .*\r\n", b"", answers)


async def test_a_client_that_goes_away_disturbs_nobody_and_what_was_accepted_is_finished(team: Live) -> None:
    body = json.encode(message("RECORD", unit("Sent, and gone.")))
    head = b"POST /v1/record HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % len(body)
    for data in (head + body, head + body[:10], head[:20]):
        _, writer = await asyncio.open_connection(*team.address)
        writer.write(data)
        await writer.drain()
        writer.transport.abort()
    unit_id = await team.record("ada", "From somebody who stays.")
    shown = (await team.send("ATTUNE", {"scope": {"role": "x", "max_units": 9}}, agent_id="ben")).json()["record"]
    assert unit_id in {found["memory_unit"]["id"] for found in shown}


async def test_a_request_whose_client_is_gone_before_the_answer_is_still_written(team: Live) -> None:
    held = Held(team.field)
    body = json.encode(message("RECORD", unit("Sent, and gone.")))
    _, writer = await asyncio.open_connection(*team.address)
    writer.write(b"POST /v1/record HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
    await held.arrived.wait()
    writer.transport.abort()
    held.let_go.set()
    await asyncio.wait_for(held.done.wait(), 10)
    assert (await team.field.status()).units == 1


async def test_a_follower_that_is_gone_is_let_go_whatever_it_asked_for_behind_its_stream(live: Live) -> None:
    state = live.serving._server.server_state
    reader, writer = await asyncio.open_connection(*live.address)
    writer.write(b"GET /v1/events HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: text/event-stream\r\n\r\n")
    assert b" 200 OK" in await reader.readuntil(b"\r\n\r\n")
    [line] = _lines(live)
    writer.write(b"GET /readyz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
    await eventually(lambda: asyncio.sleep(0.01, bool(line.pipeline)))
    line.transport.abort()  # as a beat does that nobody takes
    assert (await live.post("/v1/memory/notes", {"content": "The next piece of the stream."})).status_code == 201
    await eventually(lambda: asyncio.sleep(0.01, not state.tasks))
    writer.close()


async def test_a_client_that_leaves_an_export_does_not_hold_the_server(team: Live) -> None:
    for _ in range(3):
        await team.post("/v1/messages", [message("RECORD", unit("x" * 5_000)) for _ in range(1_000)])
    _, writer = await asyncio.open_connection(*team.address)
    writer.write(b"GET /v1/export HTTP/1.1\r\nhost: localhost\r\n\r\n")
    await writer.drain()
    writer.transport.abort()
    assert (await team.client.get("/healthz")).status_code == 200
