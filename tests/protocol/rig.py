"""A field under test: envelopes in, bodies out, whatever the transport; and what it has written down."""

from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from typing import Any, Final

from msgspec import json, structs, to_builtins

from fieldstone.client.door import Door
from fieldstone.core.units import MemoryUnit
from fieldstone.core.validate import Rules
from fieldstone.field.field import LogLine
from fieldstone.field.options import Options
from fieldstone.testing.world import ManualClock
from tests.protocol.ways import Answer, Place, Way

Body = dict[str, Any]

EVERYTHING: Final = 1_000_000  # a max_units that cuts nothing
# What reads and refusals leave joins the next write, and is no change that anyone asked for.
READ_KINDS: Final = frozenset({"context.attuned", "conflicts.listed", "access.refused"})


class Rig:
    def __init__(self, kind: type[Way], place: Place) -> None:
        self._kind = kind
        self._way = kind()
        self._numbers = count(1)
        self.place = place

    async def open(self) -> "Rig":
        await self._way.open(self.place)
        return self

    async def close(self) -> None:
        await self._way.close()

    async def restart(self, **options: Any) -> None:
        """Close it, and open it again on the same file; with other options, if they are given."""
        await self._way.close()
        self.place = self.place._replace(options=structs.replace(self.place.options, **options))
        self._way = self._kind()
        await self._way.open(self.place)

    @property
    def door(self) -> Door:
        return self._way.door

    @property
    def clock(self) -> ManualClock:
        return self.place.clock

    # --- envelopes ----------------------------------------------------------------------------------------------------

    async def post(self, body: bytes) -> Answer:
        return await self._way.post(body)

    async def send_envelope(self, envelope: Body) -> Answer:
        return await self._way.post(json.encode(envelope))

    async def send(self, operation: str, agent: str, payload: Body, /, **fields: Any) -> Answer:
        return await self.send_envelope(self.envelope(operation, agent, payload, **fields))

    async def ask(self, operation: str, agent: str, payload: Body, /, **fields: Any) -> Body:
        """The body of an answer that is no refusal."""
        status, body = await self.send(operation, agent, payload, **fields)
        assert status == 200, body
        return body

    async def refused(self, code: str, operation: str, agent: str, payload: Body, /, **fields: Any) -> Body:
        """The body of a refusal with this code, which has changed nothing."""
        return await self.refused_post(code, json.encode(self.envelope(operation, agent, payload, **fields)))

    async def refused_post(self, code: str, body: bytes) -> Body:
        before = await self.trace()
        _, refusal = await self.post(body)
        assert refusal.get("code") == code, refusal
        assert await self.trace() == before
        return refusal

    def envelope(self, operation: str, agent: str, payload: Body, /, **fields: Any) -> Body:
        return {
            "protocol": "akashik",
            "version": "0.1.0",
            "id": f"msg-{next(self._numbers)}",
            "operation": operation,
            "agent_id": agent,
            "session_id": None,
            "epoch": 0,
            "payload": payload,
            **fields,
        }

    # --- the usual requests -------------------------------------------------------------------------------------------

    async def register(self, *agents: str, role: str = "researcher", **fields: Any) -> Body:
        """The answer to the last one."""
        body: Body = {}
        for agent in agents:
            body = await self.ask("REGISTER", agent, {"id": agent, "role": role, **fields})
        return body

    async def record(
        self, agent: str, content: str = "The market grows.", *, session: Any = None, **fields: Any
    ) -> str:
        """The new unit's id."""
        unit_id: str = (await self.ask("RECORD", agent, unit(content, **fields), session_id=session))["memory_unit_id"]
        return unit_id

    async def draft(self, agent: str, content: str = "The market may grow.", **fields: Any) -> str:
        return await self.record(agent, content, mode="draft", **fields)

    async def attune(self, agent: str, hint: str | None = None, *, payload: Body | None = None, **scope: Any) -> Body:
        return await self.ask("ATTUNE", agent, attunement(hint, **scope) | (payload or {}))

    async def seen_by(self, agent: str, **scope: Any) -> set[str]:
        """The ids of all that ATTUNE brings."""
        return set(ids(await self.attune(agent, **scope)))

    # --- what is there ------------------------------------------------------------------------------------------------

    async def unit(self, unit_id: str) -> MemoryUnit:
        return await self.door.unit(unit_id)

    async def epoch(self) -> int:
        return (await self.door.status()).epoch

    async def log(self) -> list[LogLine]:
        lines: list[LogLine] = []
        after: int | None = 0
        while after is not None:
            page = await self.door.log(after=after, limit=1_000)
            lines += page.entries
            after = page.next
        return lines

    async def kinds(self) -> list[str]:
        """The kinds of the log's events, without what reads left."""
        return [kind for kind in map(kind_of, await self.log()) if kind not in READ_KINDS]

    async def trace(self) -> tuple[Any, ...]:
        """Everything that a write could have changed. What reads left may be written at any time, and is not in it."""
        status = await self.door.status()
        lines = [line for line in await self.log() if kind_of(line) not in READ_KINDS]
        return status.epoch, status.units, status.agents, status.conflicts_open, lines


OpenRig = Callable[..., Awaitable[Rig]]  # the fixture `rigs`


def kind_of(line: LogLine) -> str:
    kind: str = to_builtins(line.entry.event)["kind"]
    return kind


def plain(value: Any) -> Any:
    """As it is on the wire."""
    return json.decode(json.encode(value))


def unit(content: str = "The market grows.", *, mode: str = "committed", **fields: Any) -> Body:
    """A RECORD's payload. A field that is given as `...` is left out."""
    payload: Body = {"mode": mode, "type": "finding", "content": content, "intent": {"purpose": "size it"}}
    if mode == "committed":
        payload["confidence"] = {"score": 0.8, "reasoning": "two reports agree"}
    return {name: value for name, value in (payload | fields).items() if value is not ...}


def attunement(hint: str | None = None, *, role: str = "analyst", max_units: int = EVERYTHING, **scope: Any) -> Body:
    return {"scope": {"role": role, "max_units": max_units, **scope}, "context_hint": hint}


def relation(kind: str, target: str, **fields: str) -> Body:
    return {"type": kind, "target_id": target, **fields}


def ids(attuned: Body) -> list[str]:
    """The units of an attunement, in its order."""
    return [found["memory_unit"]["id"] for found in attuned["record"]]


def scores(attuned: Body) -> dict[str, float]:
    return {found["memory_unit"]["id"]: found["relevance_score"] for found in attuned["record"]}


def factors(attuned: Body) -> dict[str, dict[str, float]]:
    return {found["memory_unit"]["id"]: found["factors"] for found in attuned["record"]}


def reasons(attuned: Body) -> dict[str, str]:
    return {found["memory_unit"]["id"]: found["relevance_reason"] for found in attuned["record"]}


def warnings(body: Body) -> Sequence[tuple[str, str]]:
    return [(warning["code"], warning["message"]) for warning in body.get("warnings", ())]


def options(**rules: Any) -> Options:
    """Options with these rules. Nothing is late, however busy the machine is."""
    return Options(rules=Rules(**rules), version="test", enrichment_timeout_ms=60_000, detection_timeout_ms=60_000)
