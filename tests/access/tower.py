"""A real server with two tenants in one file, keys to it, and ways to ask as one of its key holders."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from msgspec import json
from msgspec.structs import replace

from fieldstone.servers.auth.keys import MadeKey
from fieldstone.servers.http.serve import House, start
from fieldstone.settings import Settings
from fieldstone.wiring import open_house
from tests.servers.auth.tokens import make
from tests.servers.live import message, unit

Body = dict[str, Any]


class Holder(NamedTuple):
    """Who has a key, and the agent that speaks with it."""

    agent: str
    key: str
    key_id: str = ""
    tenant: str = ""

    @property
    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.key}"} if self.key else {}


class Tower:
    def __init__(self, house: House, client: httpx.AsyncClient) -> None:
        self.house = house
        self.client = client

    def make_key(self, tenant: str, **wishes: Any) -> MadeKey:
        return make(self.house.keys, tenant, **wishes)

    def change_key(self, key_id: str, **changes: Any) -> None:
        """As if time had passed, or another process had written it: the server notices."""
        store = self.house.keys._store
        records = {record.id: record for record in store.keys()}  # noqa: SIM118 (it is no dict)
        store.put_key(replace(records[key_id], **changes))

    async def holder(self, tenant: str, agent: str, *, authority: int = 4, **wishes: Any) -> Holder:
        """A new key, and an agent that it registers with all that the key grants."""
        made = self.make_key(tenant, authority=authority, **wishes)
        holder = Holder(agent, made.key, made.id, tenant)
        await self.ask(holder, "REGISTER", {"id": agent, "role": "researcher", "authority": authority})
        return holder

    async def request(self, holder: Holder | None, method: str, path: str, body: Any = None) -> httpx.Response:
        content = body if isinstance(body, bytes | None) else json.encode(body)
        headers = holder.headers if holder else {}
        asked = self.client.build_request(method, path, content=content, headers=headers)
        answer = await self.client.send(asked, stream=True)
        return await _told(answer)

    async def send(self, holder: Holder | None, operation: str, payload: Body, **envelope: Any) -> httpx.Response:
        agent = envelope.pop("agent_id", holder.agent if holder else "nobody")
        envelope = message(operation, payload, agent_id=agent, **envelope)
        return await self.request(holder, "POST", f"/v1/{operation.lower()}", envelope)

    async def ask(self, holder: Holder, operation: str, payload: Body, **envelope: Any) -> Body:
        answer = await self.send(holder, operation, payload, **envelope)
        assert answer.status_code == 200, answer.text
        body: Body = answer.json()
        return body

    async def record(self, holder: Holder, content: str, *, session: str | None = None, **fields: Any) -> str:
        unit_id: str = (await self.ask(holder, "RECORD", unit(content, **fields), session_id=session))["memory_unit_id"]
        return unit_id

    async def attune(self, holder: Holder, hint: str | None = None, **scope: Any) -> Body:
        return await self.ask(holder, "ATTUNE", attunement(hint, **scope))


@asynccontextmanager
async def tower(db: Path | str = "memory:", *, conformance: bool = False, **settings: Any) -> AsyncIterator[Tower]:
    """One store for all tenants. Answers do not depend on how busy the machine is: nothing is late."""
    never_late = {"enrichment_timeout_ms": 60_000, "detection_timeout_ms": 60_000}
    given = Settings(**{"db": str(db), "port": 0, **never_late, **settings})
    async with open_house(given, conformance=conformance) as house:
        serving = await start(house.entrance, house.keys, given, house.host, house.conformance)
        try:
            async with httpx.AsyncClient(base_url=serving.url, timeout=30) as client:
                yield Tower(house, client)
        finally:
            await serving.stop()


async def _told(answer: httpx.Response) -> httpx.Response:
    """A stream that is followed has no end: the first piece stands for it."""
    if answer.status_code != 200 or not answer.url.path.endswith("/sse"):
        await answer.aread()
        return answer
    piece = await anext(answer.aiter_bytes())
    await answer.aclose()
    return httpx.Response(answer.status_code, headers=answer.headers, content=piece)


def attunement(hint: str | None = None, **scope: Any) -> Body:
    return {"scope": {"role": "researcher", "max_units": 1_000, **scope}, "context_hint": hint}


def refused(answer: httpx.Response) -> tuple[int, str]:
    """Status and code of a refusal, in either envelope."""
    body: Body = answer.json()
    return answer.status_code, body["code"] if "code" in body else body["error"].upper()


def ids(attuned: Body) -> list[str]:
    return [found["memory_unit"]["id"] for found in attuned["record"]]
