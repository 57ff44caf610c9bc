"""Compactions in the background, and what belongs to them: restoring, guards, lineage."""

from collections.abc import AsyncIterator
from typing import Final, get_args

from msgspec import Struct, json

from fieldstone.core.errors import InvalidPayload
from fieldstone.core.replies import CompactionProgress
from fieldstone.core.vocabulary import Guard
from fieldstone.servers.http.answers import EVENT_STREAM, Answer, done, reply
from fieldstone.servers.http.body import drain, read_json
from fieldstone.servers.http.endpoint import Handler
from fieldstone.servers.http.entrance import Visit
from fieldstone.servers.http.query import number_in, query_of

MOST_RESTORED: Final = 10_000
LIST_LIMIT: Final = 100  # rows a page, where the caller does not say

_GUARDS: Final[tuple[Guard, ...]] = get_args(Guard)


class Restore(Struct, frozen=True, forbid_unknown_fields=True):
    unit_ids: tuple[str, ...] | None = None
    compaction_id: str | None = None


class Restored(Struct, frozen=True):
    restored: int


class Begun(Struct, frozen=True):
    compaction_id: str


async def compactions(visit: Visit) -> Answer:
    after, limit = _page(query_of(visit.scope))
    return reply(await visit.field.compactions(after=after, limit=limit, caller=visit.caller))


async def guards(visit: Visit) -> Answer:
    query = query_of(visit.scope)
    after, limit = _page(query)
    wanted = _guard(query.get("guard"))
    return reply(await visit.field.guards(wanted, after=after, limit=limit, caller=visit.caller))


async def compaction(visit: Visit) -> Answer:
    return reply(await visit.field.compaction(visit.scope["path_params"]["id"], visit.caller))


async def cancel_compaction(visit: Visit) -> Answer:
    await drain(visit.receive)
    return reply(await visit.field.cancel_compaction(visit.scope["path_params"]["id"], visit.caller))


async def compaction_events(visit: Visit) -> Answer:
    await drain(visit.receive)  # what comes next on this line is that the caller went away
    steps = visit.field.watch_compaction(visit.scope["path_params"]["id"], visit.caller)
    first = await anext(steps)
    return Answer(200, _event(first), EVENT_STREAM, stream=visit.held(_events(steps)))


async def restore(visit: Visit) -> Answer:
    wanted = await read_json(visit.scope, visit.receive, Restore)
    if (wanted.unit_ids is None) == (wanted.compaction_id is None):
        raise InvalidPayload("Give either unit_ids or compaction_id.")
    if wanted.compaction_id is not None:
        return reply(Restored(await visit.field.restore_compaction(wanted.compaction_id, visit.caller)))
    if len(wanted.unit_ids or ()) > MOST_RESTORED:
        raise InvalidPayload(f"unit_ids has more than {MOST_RESTORED} ids.")
    return reply(Restored(await visit.field.restore(wanted.unit_ids or (), visit.caller)))


async def lineage(visit: Visit) -> Answer:
    return reply(await visit.field.lineage(visit.scope["path_params"]["id"], visit.caller))


def guarding(guard: Guard) -> Handler:
    async def answer(visit: Visit) -> Answer:
        await drain(visit.receive)
        await visit.field.guard(visit.scope["path_params"]["id"], guard, visit.caller)
        return done()

    return answer


def unguarding(guard: Guard) -> Handler:
    async def answer(visit: Visit) -> Answer:
        await drain(visit.receive)
        await visit.field.unguard(visit.scope["path_params"]["id"], guard, visit.caller)
        return done()

    return answer


def _page(query: dict[str, str]) -> tuple[int, int]:
    return number_in(query, "after", 0), number_in(query, "limit", LIST_LIMIT)


def _guard(text: str | None) -> Guard | None:
    if text is None:
        return None
    for guard in _GUARDS:
        if text == guard:
            return guard
    raise InvalidPayload(f"guard must be one of: {', '.join(_GUARDS)}.")


async def _events(steps: AsyncIterator[CompactionProgress]) -> AsyncIterator[bytes]:
    async for step in steps:
        yield _event(step)


def _event(step: CompactionProgress) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (step.state.encode(), json.encode(step))
