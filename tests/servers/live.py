"""A real server on a free loopback port, in the test's own event loop, and ways to talk to it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from msgspec import Struct, json

from fieldstone.core.replies import Reply
from fieldstone.core.requests import Message
from fieldstone.field.field import LocalField
from fieldstone.profiles.openwop.discovery import HostFeatures
from fieldstone.servers.http.serve import Serving, start
from fieldstone.settings import Settings
from fieldstone.wiring import open_local_field
from tests.servers.houses import entrance_to

ERROR_FIELDS = {"code", "message", "operation", "recoverable", "suggested_action"}
REJECTED_FIELDS = ERROR_FIELDS | {"status", "rejection_reason"}
CONFIDENCE = {"score": 0.9, "reasoning": "it was measured twice"}


class Live(Struct):
    field: LocalField
    serving: Serving
    client: httpx.AsyncClient

    @property
    def address(self) -> tuple[str, int]:
        url = httpx.URL(self.serving.url)
        return url.host, url.port or 0

    async def post(self, path: str, body: Any) -> httpx.Response:
        return await self.client.post(path, content=json.encode(body))

    async def send(self, operation: str, payload: dict[str, Any], **envelope: Any) -> httpx.Response:
        return await self.post(f"/v1/{operation.lower()}", message(operation, payload, **envelope))

    async def join(self, *agents: str, **payload: Any) -> None:
        for agent in agents:
            answer = await self.send("REGISTER", {"id": agent, "role": "researcher", **payload}, agent_id=agent)
            assert answer.status_code == 200, answer.text

    async def record(self, agent: str, content: str, **payload: Any) -> str:
        answer = await self.send("RECORD", unit(content, **payload), agent_id=agent)
        assert answer.status_code == 200, answer.text
        unit_id: str = answer.json()["memory_unit_id"]
        return unit_id

    async def log_entries(self) -> int:
        return (await self.field.status()).log_entries

    async def raw(self, data: bytes) -> bytes:
        """Bytes as they are, and what comes back until the server closes the connection."""
        reader, writer = await asyncio.open_connection(*self.address)
        try:
            writer.write(data)
            await writer.drain()
            return await asyncio.wait_for(reader.read(), 30)
        finally:
            writer.close()


class Held:
    """Requests come to the field and are held there until they are let go."""

    def __init__(self, field: LocalField) -> None:
        self.arrived = asyncio.Event()
        self.let_go = asyncio.Event()
        self.done = asyncio.Event()
        self._send = field.send
        field.send = self._held_send  # type: ignore[method-assign]

    async def _held_send(self, message: Message) -> Reply:
        self.arrived.set()
        await self.let_go.wait()
        reply = await self._send(message)
        self.done.set()
        return reply


@asynccontextmanager
async def live_server(**values: Any) -> AsyncIterator[Live]:
    """With the settings given, in memory unless they say otherwise."""
    settings = Settings(**{"db": "memory:", "port": 0, **values})
    field = await open_local_field(settings)
    try:
        serving = await start(*entrance_to(field), settings, HostFeatures())
        try:
            async with httpx.AsyncClient(base_url=serving.url, timeout=30) as client:
                yield Live(field, serving, client)
        finally:
            await serving.stop()
    finally:
        await field.close()


_numbers = iter(range(1, 1_000_000_000))


def message(operation: str, payload: Any, **envelope: Any) -> dict[str, Any]:
    return {
        "protocol": "akashik",
        "version": "0.1.0",
        "id": f"m-{next(_numbers)}",
        "operation": operation,
        "agent_id": "ada",
        "session_id": None,
        "epoch": 0,
        "payload": payload,
        **envelope,
    }


def unit(content: str, **payload: Any) -> dict[str, Any]:
    return {
        "mode": "committed",
        "type": "finding",
        "content": content,
        "intent": {"purpose": "so that others know"},
        "confidence": CONFIDENCE,
        **payload,
    }


def scope(**fields: Any) -> dict[str, Any]:
    return {"scope": {"role": "researcher", "max_units": 100, **fields}}


def assert_refused(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The answer is a refusal in the one format. Its body."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    body: dict[str, Any] = answer.json()
    assert body["code"] == code
    assert set(body) == (REJECTED_FIELDS if "status" in body else ERROR_FIELDS)
    return body
