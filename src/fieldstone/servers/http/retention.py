"""Retention policies over HTTP."""

from msgspec import Struct

from fieldstone.compaction.retention import Policy
from fieldstone.field.retention import Outcome, PolicyStatus
from fieldstone.servers.http.answers import Answer, reply
from fieldstone.servers.http.body import drain, read_json
from fieldstone.servers.http.entrance import Visit


class Policies(Struct, frozen=True, forbid_unknown_fields=True):
    policies: tuple[Policy, ...]


class Outcomes(Struct, frozen=True):
    policies: tuple[Outcome, ...]


class PolicyStatuses(Struct, frozen=True):
    policies: tuple[PolicyStatus, ...]


async def policies(visit: Visit) -> Answer:
    return reply(Policies(await visit.field.retention(visit.caller)))


async def set_policies(visit: Visit) -> Answer:
    given = await read_json(visit.scope, visit.receive, Policies)
    return reply(Policies(await visit.field.set_retention(given.policies, visit.caller)))


async def plan(visit: Visit) -> Answer:
    await drain(visit.receive)
    return reply(Outcomes(await visit.field.plan_retention(visit.caller)))


async def apply(visit: Visit) -> Answer:
    await drain(visit.receive)
    return reply(Outcomes(await visit.field.apply_retention(visit.caller)))


async def status(visit: Visit) -> Answer:
    return reply(PolicyStatuses(await visit.field.retention_status(visit.caller)))
