"""Requests as tests send them: short, and complete where it does not matter what they say."""

from collections.abc import Sequence
from typing import Any

from fieldstone.core.replies import Accepted, AttuneReply, Registered
from fieldstone.core.requests import Attune, Commit, Deregister, Discard, Message, Record, Register, Retract, Scope
from fieldstone.core.units import Confidence, Intent, MemoryUnit, Relation
from fieldstone.core.vocabulary import Mode, RelationType
from fieldstone.field.field import LocalField

SURE = Confidence(0.9, "seen in the logs")


def register(agent: str, *, role: str = "researcher", authority: int | None = None, id: str | None = None) -> Message:
    return Message("REGISTER", agent, Register(agent, role, ("latency", "storage"), None, authority), id=id)


def deregister(agent: str, *, by: str | None = None) -> Message:
    return Message("DEREGISTER", by or agent, Deregister(agent))


def record(
    agent: str,
    content: str,
    *,
    mode: Mode = "committed",
    type: str = "finding",
    relations: Sequence[Relation] = (),
    confidence: Confidence | None = SURE,
    task: str | None = None,
    session: str | None = None,
    epoch: int = 0,
    id: str | None = None,
) -> Message:
    intent = Intent("so that others know", task)
    request = Record(mode, type, content, intent, confidence, tuple(relations) or None)
    return Message("RECORD", agent, request, session, epoch, id)


def relation(type: RelationType, target_id: str, description: str | None = None) -> Relation:
    return Relation(type, target_id, description)


def commit(agent: str, unit: str, *, confidence: Confidence | None = None, id: str | None = None) -> Message:
    return Message("COMMIT", agent, Commit(unit, confidence), id=id)


def discard(agent: str, unit: str, *, reason: str | None = None, id: str | None = None) -> Message:
    return Message("DISCARD", agent, Discard(unit, reason), id=id)


def retract(agent: str, unit: str, *, reason: str = "it was wrong", id: str | None = None) -> Message:
    return Message("RETRACT", agent, Retract(unit, reason), id=id)


def attune(agent: str, hint: str | None = None, *, max_units: int = 1_000, epoch: int = 0, **scope: Any) -> Message:
    return Message("ATTUNE", agent, Attune(Scope("researcher", max_units, **scope), hint), epoch=epoch)


async def join(field: LocalField, *agents: str) -> None:
    for agent in agents:
        assert isinstance(await field.send(register(agent)), Registered)


async def accepted(field: LocalField, message: Message) -> str:
    """The id of the unit that it made."""
    reply = await field.send(message)
    assert isinstance(reply, Accepted)
    return reply.memory_unit_id


async def attuned(field: LocalField, message: Message) -> list[MemoryUnit]:
    """What ATTUNE shows, best first."""
    reply = await field.send(message)
    assert isinstance(reply, AttuneReply)
    return [scoped.memory_unit for scoped in reply.record if isinstance(scoped.memory_unit, MemoryUnit)]
