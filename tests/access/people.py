"""A field without a server, and callers with credentials who speak to it as their agents."""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from msgspec import json
from msgspec.structs import replace

from fieldstone.core.access import Caller
from fieldstone.core.replies import Accepted, AttuneReply, Detection, Reply
from fieldstone.core.requests import Detect, DetectFilter, DetectMode, Message
from fieldstone.core.units import MemoryUnit
from fieldstone.field.field import LocalField
from tests.access.sessions import close_session
from tests.field.fields import opened
from tests.messages import attune, record, register
from tests.scripted import ScriptedEmbedder

VAULT = "vault"
UNKNOWN_UNIT = "mem-" + "0" * 32


class Person(NamedTuple):
    """An agent and the credential that it is bound to."""

    field: LocalField
    agent: str
    caller: Caller

    async def send(self, message: Message) -> Reply:
        return await self.field.send(replace(message, caller=self.caller))

    async def join(self, authority: int | None = None) -> "Person":
        await self.send(register(self.agent, authority=authority))
        return self

    async def record(self, content: str, **how: Any) -> str:
        return (await self.accepted(content, **how)).memory_unit_id

    async def accepted(self, content: str, **how: Any) -> Accepted:
        reply = await self.send(record(self.agent, content, **how))
        assert isinstance(reply, Accepted)
        return reply

    async def attune(self, hint: str | None = None, **scope: Any) -> AttuneReply[MemoryUnit]:
        reply = await self.send(attune(self.agent, hint, **scope))
        assert isinstance(reply, AttuneReply)
        return cast("AttuneReply[MemoryUnit]", reply)  # it asked for whole units

    async def sees(self, hint: str | None = None, **scope: Any) -> set[str]:
        return {shown.memory_unit.id for shown in (await self.attune(hint, **scope)).record}

    async def detect(
        self, mode: DetectMode, target: str | None = None, wanted: DetectFilter | None = None
    ) -> Detection:
        reply = await self.send(Message("DETECT", self.agent, Detect(mode, target, wanted)))
        assert isinstance(reply, Detection)
        return reply


class Company(NamedTuple):
    """ada and ben are members of the vault, eve is not. Each has a credential of authority 8."""

    field: LocalField
    ada: Person
    ben: Person
    eve: Person


def credential(name: str, authority: int = 8, **grants: Any) -> Caller:
    return Caller(f"key-{name.encode().hex():0>16}", authority, **grants)


def person(field: LocalField, name: str, authority: int = 8, **grants: Any) -> Person:
    return Person(field, name, credential(name, authority, **grants))


async def company(*, by_meaning: bool = True, **options: Any) -> Company:
    field = await opened(ScriptedEmbedder() if by_meaning else None, **options)
    ada, ben, eve = [await person(field, name).join(8) for name in ("ada", "ben", "eve")]
    await close_session(field, VAULT, "ada", "ben")
    return Company(field, ada, ben, eve)


def encoded(*replies: Any) -> str:
    """All that the replies tell, as it goes over the wire."""
    return "\n".join(json.encode(reply, enc_hook=lambda _unset: None).decode() for reply in replies)


def tells_any(reply: Any, hidden: Sequence[str]) -> list[str]:
    text = encoded(reply)
    return [each for each in hidden if each in text]
